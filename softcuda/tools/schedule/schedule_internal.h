/* schedule_internal.h — other orders of a kernel's accesses to memory: one by a seed, or all of them.
 *
 *     schedule.c    the tool: its options, and the hooks of the observer
 *     seed.c        --schedule SEED: lets splits wait before accesses, by random numbers
 *     explore.c     --schedule all, replay:...: at each access, decides whose turn it is
 *       entity.c      the splits that could make the next access
 *       footprint.c   the bytes that an instruction accesses; which two instructions conflict
 *       races.c       pairs of conflicting accesses whose order can be reversed: what is left to be tried
 *       image.c       memory as it was before the launch, and after its first schedule
 *       replay.c      a schedule as a string
 *       difference.c  what differs between two schedules, in words
 *
 * A step is an access to shared or global memory by a split: its lanes access together.  All instructions between two accesses of a
 * split are executed without a choice, because no other split can see them.  A schedule is a list of steps; two schedules that
 * differ only in the order of steps without conflict have the same result, and one of them is enough. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_SCHEDULE_SCHEDULE_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_SCHEDULE_SCHEDULE_INTERNAL_H

#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_schedule_tool;

#define SCHEDULE "schedule"

enum {
	MAX_ENTITIES = 256,          /* splits of a launch that can be explored */
	MAX_LANES = 2048,            /* of a launch that can be explored */
	MOST_SECONDS = 60,           /* of the search of one launch */
	MAX_STEPS = 20000,           /* of one schedule */
	MAX_DEVIATIONS = 4096,       /* in a replay string */
};

/* ---- footprint.c ------------------------------------------------------------------------------------------------ */

struct span { uint64_t at; uint32_t bytes; bool writes; uint8_t commutes; };  /* commutes: kind of a red; 0: none */
struct footprint {
	unsigned n;
	struct span *span;           /* owned */
};

/* The bytes of shared and global memory that lanes `on` are about to access; false: none, or no memory for the list. */
bool gpul_footprint_make(struct warp_state *s, const struct insn *i, uint32_t on, uint64_t block, struct footprint *out);
void gpul_footprint_free(struct footprint *f);
bool gpul_footprint_copy(const struct footprint *from, struct footprint *to);
bool gpul_footprints_conflict(const struct footprint *a, const struct footprint *b);
void gpul_footprint_only_reads(struct footprint *f);   /* nothing was changed after all */
bool gpul_footprint_writes(const struct footprint *f);
/* A host address of global memory; NULL: the span is of shared memory. */
uint8_t *gpul_span_global(const struct span *s);

/* ---- image.c ---------------------------------------------------------------------------------------------------- */

enum { CHUNK_BYTES = 256 };
struct chunk {
	uint64_t at;                 /* 0: a free place of the table */
	uint64_t touched[CHUNK_BYTES / 64];   /* bit k: a step writes to byte k; the other bytes may belong to others */
	uint8_t original[CHUNK_BYTES], first[CHUNK_BYTES];  /* before the launch, and after the first schedule */
};
struct image {
	struct chunk *chunk;         /* a hash table by address */
	unsigned n, capacity;        /* capacity: a power of two, or 0 */
	bool has_first;
};

/* Keep what global memory contains before a step writes to it; false: no memory. */
bool gpul_image_keep(struct image *m, const struct footprint *f);
void gpul_image_end_first(struct image *m);          /* memory is the result of the first schedule */
/* The first range of bytes at or after address *at that differs from the first result; false: there is none. */
bool gpul_image_differs(const struct image *m, uint64_t from, uint64_t *at, uint32_t *bytes);
const uint8_t *gpul_image_first(const struct image *m, uint64_t at);  /* the first result of a byte that differs, and those behind it */
void gpul_image_restore(const struct image *m);      /* as before the launch */
void gpul_image_clear(struct image *m);

/* ---- entity.c --------------------------------------------------------------------------------------------------- */

/* A split that is about to make an access. */
struct entity {
	uint32_t block, warp, lanes; /* block: its linear index */
	const struct func_code *code;
	const struct insn *insn;
	struct footprint footprint;
	uint64_t digest;             /* of its registers */
};

/* ---- explore.c -------------------------------------------------------------------------------------------------- */

/* One of the splits that could make a step. */
struct choice {
	struct entity who;
	bool waits;                  /* it would only poll again what nobody has changed */
	bool asleep;                 /* all schedules that begin with it have been tried before */
	bool done, wanted;           /* tried, or to be tried, from here */
	struct entity *pair;         /* why it is wanted: the two accesses whose order is to be reversed, the first one first; or NULL */
};

struct step {
	struct choice *choice;
	unsigned n_choices, chosen;
	struct footprint executed;
	uint64_t *before;            /* set of the steps that happen before it: bit k is step k */
};

struct deviation { unsigned step; uint32_t block, warp, lane; };

struct outcome {
	gpul_exec_fault fault;
	char *printed;
	size_t n_printed;
};

enum phase { PHASE_OFF, PHASE_EXPLORE, PHASE_LAST };

struct explorer {
	struct observer o;
	bool all;                    /* else replay */
	bool exhaustive;             /* all: without partial-order reduction, to check it */
	uint64_t seed;               /* of seed.c; unused by the others */
	bool by_seed;
	uint64_t max_schedules;
	uint64_t n_launches, launch_number, replayed_launch;  /* launch_number: of the explored one, from 0 */

	struct gpul_exec_launch *launch;   /* NULL: none is explored */
	enum phase phase;
	struct block **blocks;       /* resident ones of the launch */
	unsigned n_blocks, blocks_capacity;
	uint64_t n_begun;

	struct step *step;           /* the schedule; those below depth have been executed */
	unsigned n_steps, depth, steps_capacity;
	bool granted, executing;     /* step[depth] may be executed, is being executed */
	uint8_t *old_bytes;          /* what the executing step could overwrite */
	uint64_t n_changes;          /* of memory, by the steps so far */
	struct visit *visits;        /* when each split made the same access before, to find polls */
	unsigned n_visits, visits_capacity;
	uint64_t *known;             /* for each lane, the set of steps that happen before its next one */
	uint64_t n_lanes;

	struct deviation deviation[MAX_DEVIATIONS];
	unsigned n_deviations;

	uint64_t n_schedules, n_redundant, began_ns;
	bool abandoned, gave_up, too_long, differs;
	const char *why_not;         /* why it is not complete */
	struct outcome now, first;
	struct image image;
	void (*print)(void *user, const char *text, size_t text_bytes);   /* of the machine */
	void *print_user;
};

struct visit { uint32_t block, warp, lanes; const struct insn *insn; uint64_t digest, n_changes; };

enum { KNOWN_WORDS = MAX_STEPS / 64 + 1 };

/* entity.c.  True: every split of the launch has ended, waits for others, or is about to make an access; out receives the latter.
 * s: the warp that runs now, at instruction i. */
bool gpul_entities_collect(const struct explorer *x, struct warp_state *s, const struct insn *i, struct entity out[MAX_ENTITIES],
			   unsigned *n);
uint64_t gpul_block_number(const struct block *b);
/* races.c */
uint64_t *gpul_known_of(struct explorer *x, uint32_t block, uint32_t warp, unsigned lane);
void gpul_races_find(struct explorer *x, unsigned step);
void gpul_known_join(struct explorer *x, const struct block *b, const uint32_t lanes[], unsigned n_warps);
/* difference.c */
void gpul_difference_report(struct explorer *x);
/* replay.c.  The default order: the split that made the last step, if it can go on; else the first one.  -1: all wait. */
int gpul_default_choice(const struct step *step, const struct step *last, bool avoid_sleepers);
/* Write the deviations of the current schedule from the default: "/12-0.1.0/20-1.0.0". */
void gpul_schedule_print(const struct explorer *x, char *buf, size_t bytes);
bool gpul_schedule_parse(const char *text, struct explorer *x);

/* explore.c, seed.c: called by schedule.c */
bool gpul_explore_wants(const struct func_code *code, const struct insn *i);
enum observed gpul_explore_before(struct explorer *x, struct warp_state *s, const struct insn *i, uint32_t on);
void gpul_explore_after(struct explorer *x, struct warp_state *s, const struct insn *i, uint32_t on, bool waits);
void gpul_explore_run_begins(struct explorer *x);
void gpul_explore_run_ends(struct explorer *x, const gpul_exec_fault *fault);
void gpul_explore_end(struct explorer *x);
bool gpul_seed_wants(const struct insn *i);
void *gpul_seed_new_block(const struct explorer *x, const struct block *b);
enum observed gpul_seed_before(struct explorer *x, struct warp_state *s, const struct insn *i);

#endif
