/* schedule_internal.h — runs a kernel with its memory accesses in other orders: in one order that a seed determines, or in all
 * possible orders.
 *
 *     schedule.c    the tool: its options and its observer's hooks
 *     seed.c        --schedule SEED: makes splits wait before accesses at random
 *     explore.c     --schedule all, replay:...: at each access, chooses the split that runs
 *       entity.c      finds the splits that could make the next access
 *       footprint.c   finds the bytes that an instruction accesses, and whether two instructions conflict
 *       races.c       finds pairs of conflicting accesses whose order can be reversed, and must be tried
 *       image.c       keeps memory as it was before the launch, and after its first schedule
 *       schedule_replay.c      converts a schedule to a string and back
 *       difference.c  describes how the results of two schedules differ
 *
 * A step is one access to shared or global memory by a split (lanes of a warp that execute together). The instructions between two accesses
 * need no scheduling choice, because no other split can observe them. A schedule is a list of steps. Two schedules that differ
 * only in the order of non-conflicting steps have the same result, so only one of them is run. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_SCHEDULE_SCHEDULE_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_SCHEDULE_SCHEDULE_INTERNAL_H

#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_schedule_tool;

#define SCHEDULE "schedule"

enum {
	MAX_ENTITIES = 256,    /* a launch with more splits (groups of lanes that execute together) is not explored */
	MAX_LANES = 2048,      /* a launch with more threads is not explored */
	MOST_SECONDS = 60,     /* time limit in seconds for the search of one launch */
	MAX_STEPS = 20000,     /* maximum number of steps of one schedule */
	MAX_DEVIATIONS = 4096, /* maximum number of deviations in a replay string */
};

/* ---- footprint.c: the bytes that an instruction accesses --------------------------------------------------------- */

/* a range of bytes that an instruction accesses; spans with the same `commutes`, which is not 0, do not conflict (commuting_kind()) */
struct span {
	uint64_t at;
	uint32_t bytes;
	bool writes;
	uint8_t commutes;
};
struct footprint {
	unsigned n;
	struct span *span; /* the array of spans; owned */
};

/* Find the bytes of shared and global memory that the lanes in `on` are about to access; false: none, or out of memory. */
bool gpul_footprint_make(struct warp_state *s, const struct insn *i, uint32_t on, uint64_t block, struct footprint *out);
void gpul_footprint_free(struct footprint *f);
bool gpul_footprint_copy(const struct footprint *from, struct footprint *to);
bool gpul_footprints_conflict(const struct footprint *a, const struct footprint *b);
void gpul_footprint_only_reads(struct footprint *f); /* marks all spans as only read, after the instruction has changed no memory */
bool gpul_footprint_writes(const struct footprint *f);
/* Return the host address of a span in global memory; NULL if the span is in shared memory. */
uint8_t *gpul_span_global(const struct span *s);

/* ---- image.c ---------------------------------------------------------------------------------------------------- */

enum { CHUNK_BYTES = 256 };
struct chunk {
	uint64_t at;                        /* address of the chunk; 0: the entry of the hash table is empty */
	uint64_t touched[CHUNK_BYTES / 64]; /* bit k is set if a step writes byte k; the other bytes may belong to other allocations */
	uint8_t original[CHUNK_BYTES], first[CHUNK_BYTES]; /* contents before the launch, and after the first schedule */
};
struct image {
	struct chunk *chunk;  /* a hash table, indexed by address */
	unsigned n, capacity; /* capacity: a power of two, or 0 */
	bool has_first;
};

/* Save the contents of global memory before a step writes to it; false: out of memory. */
bool gpul_image_keep(struct image *m, const struct footprint *f);
void gpul_image_end_first(struct image *m); /* saves memory as the result of the first schedule */
/* Find the first range at or after `from` that differs from the first schedule's result; sets *at. Returns false if there is none. */
bool gpul_image_differs(const struct image *m, uint64_t from, uint64_t *at, uint32_t *bytes);
const uint8_t *gpul_image_first(const struct image *m, uint64_t at); /* returns the result of the first schedule, from byte `at` on */
void gpul_image_restore(const struct image *m);                      /* restores the contents from before the launch */
void gpul_image_clear(struct image *m);

/* ---- entity.c --------------------------------------------------------------------------------------------------- */

/* A split (a group of lanes that execute together) that is about to make an access. */
struct entity {
	uint32_t block, warp, lanes; /* block: linear index of the block */
	const struct func_code *code;
	const struct insn *insn;
	struct footprint footprint;
	uint64_t digest; /* hash of the registers of these lanes */
};

/* ---- explore.c -------------------------------------------------------------------------------------------------- */

/* A split (lanes that execute together) that could make the next access, and whether the search must try it or has tried it. */
struct choice {
	struct entity who;
	bool waits;          /* the lanes would only poll again, because no memory has changed since their previous access */
	bool asleep;         /* the choice is in the sleep set: every schedule that continues with it has been tried */
	bool done, wanted;   /* done: the choice has been tried at this step; wanted: the search must try it */
	struct entity *pair; /* the reason for `wanted`: the two accesses to reverse, in their original order; NULL: none */
};

struct step {
	struct choice *choice;
	unsigned n_choices, chosen;
	struct footprint executed;
	uint64_t *before; /* bit k is set if step k happens before this step */
};

struct deviation {
	unsigned step;
	uint32_t block, warp, lane;
};

struct outcome {
	gpul_exec_fault fault;
	char *printed;
	size_t n_printed;
};

enum phase { PHASE_OFF, PHASE_EXPLORE, PHASE_LAST };

struct explorer {
	struct observer o;
	bool all;        /* try all schedules; false: replay one schedule */
	bool exhaustive; /* true for option `all` without partial-order reduction, which verifies the reduction */
	uint64_t seed;   /* seed of the random order (seed.c) */
	bool by_seed;
	uint64_t max_schedules;
	uint64_t n_launches, launch_number, replayed_launch; /* launch_number: number of the explored launch, counted from 0 */

	struct gpul_exec_launch *launch; /* the explored launch; NULL: none */
	enum phase phase;
	struct block **blocks; /* the resident blocks of the launch */
	unsigned n_blocks, blocks_capacity;
	uint64_t n_begun;

	struct step *step; /* the current schedule; steps [0, depth) have been executed */
	unsigned n_steps, depth, steps_capacity;
	bool granted, executing; /* granted: the chosen lanes may execute step[depth]; executing: they are doing so */
	uint8_t *old_bytes;      /* the old contents of the bytes that the current step may overwrite */
	uint64_t n_changes;      /* number of changes of memory by the steps so far */
	struct visit *visits;    /* for each group of lanes and instruction: the last access, to detect polling */
	unsigned n_visits, visits_capacity;
	uint64_t *known; /* for each lane, a set of steps: those that happen before the lane's next step */
	uint64_t n_lanes;

	struct deviation deviation[MAX_DEVIATIONS];
	unsigned n_deviations;

	uint64_t n_schedules, n_redundant, began_ns;
	bool abandoned, gave_up, too_long, differs;
	const char *why_not; /* why the exploration is incomplete; NULL: it is complete */
	struct outcome now, first;
	struct image image;
	void (*print)(void *user, const char *text,
		      size_t text_bytes); /* the machine's print callback, which is replaced while a launch is explored */
	void *print_user;
};

struct visit {
	uint32_t block, warp, lanes;
	const struct insn *insn;
	uint64_t digest, n_changes;
};

enum { KNOWN_WORDS = MAX_STEPS / 64 + 1 };

/* entity.c: returns true if every split of the launch has ended, waits for others, or is about to make an access; out receives the
 * splits that are about to make an access. s is the running warp, and i its current instruction. */
bool gpul_entities_collect(const struct explorer *x, struct warp_state *s, const struct insn *i, struct entity out[MAX_ENTITIES],
			   unsigned *n);
uint64_t gpul_block_number(const struct block *b);
/* Functions of races.c. */
uint64_t *gpul_known_of(struct explorer *x, uint32_t block, uint32_t warp, unsigned lane);
void gpul_races_find(struct explorer *x, unsigned step);
void gpul_known_join(struct explorer *x, const struct block *b, const uint32_t lanes[], unsigned n_warps);
/* Functions of difference.c. */
void gpul_difference_report(struct explorer *x);
/* schedule_replay.c: return the index of the default choice: the lanes of the last step, else the first that can run; -1: none. */
int gpul_default_choice(const struct step *step, const struct step *last, bool avoid_sleepers);
/* Write the steps at which the current schedule deviates from the default order: "/12-0.1.0/20-1.0.0". */
void gpul_schedule_print(const struct explorer *x, char *buf, size_t bytes);
bool gpul_schedule_parse(const char *text, struct explorer *x);

/* Functions of explore.c and seed.c, which schedule.c calls. */
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
