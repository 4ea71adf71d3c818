/* synccheck_internal.h — defines the state that synccheck keeps for a block, and declares how its files report errors.
 *
 *     synccheck.c ── before() ──> sync_barrier.c   bar.sync, bar.arrive, bar.red: checks counts and divergence
 *                             ──> member.c    *.sync: member masks, lanes that shuffles read
 *                             ──> mbarrier.c  the life cycle of each mbarrier
 *                             ──> stall.c     records the loads of a block that makes no progress
 *     block_yields() ──> stall.c              finds blocks that poll forever
 *     deadlock(), stall.c ──> who_waits.c     describes what each thread waits for
 *     all of them ──> sync_finding.c               reports */
#ifndef GPULOAD_SOFTCUDA_TOOLS_SYNCCHECK_SYNCCHECK_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_SYNCCHECK_SYNCCHECK_INTERNAL_H

#include <pthread.h>

#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_synccheck_tool;

#define SYNCCHECK "synccheck"

enum { MAX_POLLS = 64 };

/* Lanes of a warp that have arrived at a barrier by the same instruction. */
struct arrival {
	const struct func_code *code;
	const struct insn *insn;
	uint32_t warp, lanes;
	uint32_t behind; /* lanes that had already passed the barrier instruction, except lanes that are about to return */
};

/* The arrivals at one of the block's barriers since it last completed. */
struct arrivals {
	struct arrival *list;
	unsigned n, capacity;
};

struct mbarrier_object {
	uint64_t at;                  /* offset in shared memory */
	const struct func_code *code; /* the function that contains the mbarrier.init */
	const struct insn *insn;
};

/* A word that a warp loaded while its block made no progress. */
struct poll {
	const struct func_code *code;
	const struct insn *insn;
	uint32_t warp, lanes, bytes;
	uint64_t at; /* address that the first active lane loaded */
	uint8_t space;
	bool mbarrier;
};

struct sync_block {
	struct arrivals at[N_BARRIERS];
	struct mbarrier_object *mbarriers;
	unsigned n_mbarriers, mbarriers_capacity;

	/* The following members belong to stall.c. */
	unsigned idle_turns; /* number of turns (runs of the block by the worker) in succession without progress */
	uint32_t n_live;
	uint64_t idle_since_ns; /* time at which `suspect` was set */
	bool suspect;           /* the block may poll forever, so its loads are recorded */
	bool reported;
	bool stalls;       /* the block is counted in synccheck.n_stalled */
	bool reads_others; /* since its state was saved, the block has loaded a clock, or global memory, which others may change */
	bool many_polls;   /* the block has polled more than MAX_POLLS words, so that some are not in `polls` */
	uint64_t saved[2]; /* hash of the block's state after an earlier turn; if a later hash is equal, the state repeats */
	/* turns_since: turns since `saved` was set; after `power` turns, `saved` is set again, and `power` doubled (Brent's algorithm). */
	uint64_t turns_since, power;
	struct poll polls[MAX_POLLS];
	unsigned n_polls;
};

struct synccheck {
	struct observer o;
	uint64_t timeout_ms;
	bool ends;                  /* option: end launches that wait longer than timeout_ms */
	_Atomic unsigned n_stalled; /* number of blocks that have polled for longer than the time limit */
	struct tool_findings findings;
};

static inline struct sync_block *sync_block_of(const struct synccheck *c, struct block *b)
{
	return *block_note(b, &c->o);
}

/* ---- sync_finding.c -------------------------------------------------------------------------------------------------- */

/* Returns true if this is the first finding of its kind at this instruction: the caller must report it.  Later findings are only
 * counted. */
bool gpul_sync_is_new(struct synccheck *c, const char *kind, const struct func_code *code, const struct insn *i);
/* Report an error of lanes at an instruction, unless it was reported before: "PLACE: INSTRUCTION: TEXT", then kernel, block and lanes. */
void gpul_sync_report(struct synccheck *c, const char *kind, struct warp_state *s, const struct insn *i, uint32_t lanes, const char *fmt,
		      ...) __attribute__((format(printf, 6, 7)));
/* Return the lanes of a warp that exist: the last warp of a block may have fewer than 32 threads. */
uint32_t gpul_sync_existing(const struct warp_state *s);
/* Write the opcode with its modifiers, such as "bar.sync", to buf. */
const char *gpul_sync_opcode(const struct func_code *code, const struct insn *i, char *buf, size_t bytes);

/* ---- sync_barrier.c -------------------------------------------------------------------------------------------------- */

bool gpul_sync_is_barrier(const struct insn *i);
void gpul_sync_before_barrier(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on);
void gpul_sync_barrier_completes(struct synccheck *c, struct sync_block *m, struct block *b, unsigned id);

/* ---- member.c --------------------------------------------------------------------------------------------------- */

/* True if the instruction is a *.sync with a member mask; stores the operand with the mask in *mask (may be NULL). */
bool gpul_sync_has_members(const struct insn *i, opref *mask);
void gpul_sync_before_members(struct synccheck *c, struct warp_state *s, const struct insn *i, uint32_t on);

/* ---- mbarrier.c ------------------------------------------------------------------------------------------------- */

/* True if the instruction initialises, uses or invalidates an mbarrier. */
bool gpul_sync_is_mbarrier(const struct func_code *code, const struct insn *i);
bool gpul_sync_module_has_mbarriers(const struct func_code *code);
void gpul_sync_before_mbarrier(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on);
/* Check a store or atomic operation that is not an mbarrier instruction. */
void gpul_sync_before_store(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on);

/* ---- stall.c, who_waits.c --------------------------------------------------------------------------------------- */

void gpul_sync_before_poll(struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on);
void gpul_sync_stall_ends(struct synccheck *c, struct sync_block *m); /* called when the block has made progress or ended */
void gpul_sync_block_yields(struct synccheck *c, struct sync_block *m, struct block *b);
/* Describe what each thread of the block waits for: one line for each group of threads, each after a newline. */
void gpul_sync_who_waits(struct synccheck *c, const struct sync_block *m, struct block *b, char *buf, size_t bytes);

#endif
