/* warp_internal.h — warps, their splits and frames, blocks, launches, workers.
 *
 * A warp's lanes usually stand at one instruction.  When they part, each group is a split:
 *
 *     warp ── splits[0..n)   { frame, pc, mask, state }   disjoint masks, together `live`
 *               └─ frame ── parent frame ...               one for each call in progress
 *
 * One split runs, inside a window of instructions (floor, limit) that holds no other split of its
 * frame; reaching limit means meeting one, and they merge.  A warp with one split has a window without
 * ends, so converged code pays nothing.  The split to run is the deepest frame's, then the lowest
 * instruction's: that is where lanes that went apart meet again soonest.  A split that has looped for
 * long, or sleeps, is passed over until the others had their turn: so a lane that waits for another
 * lane of its own warp does not wait for ever.
 *
 * Handlers return the next instruction, or s->limit after setting s->event. */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_WARP_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_WARP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "softcuda/exec/memory_internal.h"
#include "softcuda/exec/program_internal.h"

enum { RESERVED_SMEM_BYTES = 1024, N_BARRIERS = CLUSTER_BARRIER + 1, BACK_EDGES = 1000 };

struct frame {
	struct frame *parent;            /* NULL: the kernel's own */
	const struct func_code *code;
	const struct call_site *site;    /* of the call that made it */
	const struct insn *return_to;    /* in the parent */
	uint32_t lanes;                  /* that are in it or in calls from it */
	uint32_t local_offset;           /* of its variables in each lane's local memory */
	uint32_t depth;
	uint32_t size_class;             /* log2 of the bytes that regs has */
	uint8_t *regs;
};

enum split_state { SPLIT_READY, SPLIT_PASSED, SPLIT_SYNC, SPLIT_BARRIER };

struct split {
	const struct insn *pc;
	struct frame *frame;
	uint32_t mask;
	uint8_t state;                   /* enum split_state */
	uint8_t barrier;                 /* SPLIT_BARRIER: which */
	bool released;                   /* its *.sync may run with the lanes it has */
	int back_edges;                  /* backward jumps left in this turn; below 0: passed over */
	uint32_t need;                   /* SPLIT_SYNC: lanes that its masks name */
};

enum event {
	EVENT_NONE,       /* reached limit: another split stands there */
	EVENT_SWITCH,     /* left the window: choose again */
	EVENT_YIELD,      /* looped for long, or slept */
	EVENT_SYNC,       /* waits for lanes of its warp; s->need */
	EVENT_BARRIER,    /* ran a barrier instruction, the one before pc */
	EVENT_EXIT,       /* its lanes ended, or moved to another split: choose again */
	EVENT_FAULT,
};

struct warp_state {
	struct warp w;                   /* first: a handler's struct warp is this */
	const struct insn *floor, *limit;
	const struct insn *pc;           /* where to go on after an event */
	const struct insn *run_start;    /* first instruction not counted yet */
	int back_edges;                  /* the current split's */
	enum event event;
	unsigned current, n_splits;
	struct frame *frame;             /* the current split's */
	uint64_t n_instructions;
	uint32_t need;                   /* EVENT_SYNC */
	uint8_t *local;                  /* lane 0's local memory */
	uint64_t local_stride;           /* to the next lane's */
	uint32_t local_bytes;            /* of each lane */
	uint8_t *shared;
	uint32_t shared_bytes;
	const uint8_t *params;
	uint32_t param_bytes;
	struct range_cache *cache;
	struct block *block;
	uint32_t index;                  /* of the warp in its block */
	bool done;
	uint32_t arrived[N_BARRIERS];    /* lanes that arrived at each barrier in this phase */
	struct split splits[LANES];
};

struct barrier {
	uint32_t expected;               /* threads; 0: all of the block that live */
	uint32_t arrived, arrived_live;  /* with and without lanes that do not exist */
	bool in_use;
	uint32_t popc;                   /* of the predicates seen by bar.red */
	bool any, all;
};

struct block_shape {
	uint64_t program_id;             /* 0: none yet */
	const gpul_exec_kernel *kernel;
	uint32_t block[3], dynamic_bytes;
};

struct block {
	struct block *next;              /* in a worker's list of free ones */
	struct worker *worker;
	struct gpul_exec_launch *launch;
	bool polls;                      /* it asked memory for news, or slept, since it last got its turn */
	bool progressed;                 /* a warp ended or reached a barrier, in the last turn */
	struct block_shape shape;        /* what the memory below was laid out for */
	uint8_t *memory;
	size_t memory_bytes;
	struct warp_state *warps;
	unsigned n_warps, n_done;
	uint32_t n_threads, n_live;
	uint32_t index[3];               /* %ctaid */
	uint8_t *shared;
	uint32_t shared_bytes;
	struct barrier barriers[N_BARRIERS];
};

struct gpul_exec_launch {
	struct gpul_exec_launch *next;   /* in the machine's list of those with blocks to start */
	struct gpul_exec_machine *machine;
	const gpul_exec_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t shared_bytes, dynamic_base, dynamic_bytes;
	uint32_t reserved_base;          /* of the shared memory that %reserved_smem_offset_* name */
	uint64_t grid_id;
	unsigned device;                 /* whose rights in memory its blocks have */
	bool cooperative, listed;
	uint8_t *params;
	uint8_t *workspace;              /* cooperative: what %envreg1,2 point to */
	uint64_t n_blocks;
	_Atomic uint64_t next_block, n_ended, n_instructions;
	_Atomic bool stop;               /* faulted or aborted: end your blocks */
	_Atomic int refs;
	pthread_mutex_t lock;            /* of what follows */
	pthread_cond_t ended_cond;
	bool ended;
	gpul_exec_fault fault;
	void (*done)(void *user, const gpul_exec_fault *fault);
	void *done_user;
};

struct worker {
	struct gpul_exec_machine *machine;
	unsigned index;
	pthread_t thread;
	_Atomic uint64_t turns;              /* odd: in the instructions of a block (gpul_exec_machine_settle) */
	struct range_cache cache[GPUL_EXEC_MAX_DEVICES];
	struct block *free_blocks;
	unsigned n_free_blocks;
	struct block **resident;
	unsigned n_resident, resident_capacity;
	struct gpul_exec_launch *current;    /* whose blocks it takes; holds a reference */
	struct frame *free_frames[33];       /* by size class */
	uint8_t *scratch;                    /* bank 3 */
};

/* ---- for handlers ---------------------------------------------------------------------------- */

static inline struct warp_state *state_of(struct warp *w)
{
	return (struct warp_state *)w;
}

static inline unsigned first_lane(uint32_t mask)
{
	return (unsigned)__builtin_ctz(mask);
}

static inline unsigned count_lanes(uint32_t mask)
{
	return (unsigned)__builtin_popcount(mask);
}

/* A loop over the lanes of a mask, and over those that run: l is the lane. */
#define EACH_LANE_OF(l, lanes) \
	for (uint32_t rest_ = (lanes), l = 0; rest_ && (l = first_lane(rest_), 1); rest_ &= rest_ - 1)
#define EACH_ACTIVE(l, w) EACH_LANE_OF(l, (w)->mask)

/* Stop here: the scheduler goes on at pc. */
static inline const struct insn *raise_event(struct warp_state *s, enum event event, const struct insn *pc)
{
	s->event = event;
	s->pc = pc;
	return s->limit;
}

/* Count the instructions from run_start up to and with `last`; the next run begins at `next`. */
static inline void count_run(struct warp_state *s, const struct insn *last, const struct insn *next)
{
	s->n_instructions += count_lanes(s->w.mask) * (uint64_t)(last - s->run_start + 1);
	s->run_start = next;
}

/* split.c */
const struct insn *gpul_split_diverge(struct warp_state *s, const struct insn *i, const struct insn *target,
				      uint32_t taken);
const struct insn *gpul_split_scatter(struct warp_state *s, const struct insn *const target[LANES],
				      struct frame *const frame[LANES]);
const struct insn *gpul_split_exit(struct warp_state *s);
void gpul_split_start(struct warp_state *s, const struct insn *entry, struct frame *frame, uint32_t mask);
/* Run until the warp ended, waits, or every split of it had its turn. */
enum warp_result { WARP_DONE, WARP_WAITS, WARP_YIELDS, WARP_FAULT } gpul_warp_run(struct warp_state *s);

/* call.c */
const struct insn *gpul_call(struct warp_state *s, const struct insn *i, const struct func_code *callee);
const struct insn *gpul_call_pointer(struct warp_state *s, const struct insn *i);
const struct insn *gpul_call_return(struct warp_state *s, const struct insn *i);

/* frame.c */
struct frame *gpul_frame_create(struct worker *k, const struct func_code *code);
void gpul_frame_free(struct worker *k, struct frame *f);
void gpul_frame_leave(struct worker *k, struct frame *f, uint32_t lanes);  /* also of all its parents */

/* builtins.c */
const struct insn *gpul_call_builtin(struct warp_state *s, const struct insn *i);
enum builtin gpul_builtin_find(const char *name);

/* print.c: one lane's vprintf.  The number of arguments; *stop: set on a fault. */
int gpul_lane_printf(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t format_at, uint64_t args,
		     const struct insn **stop);

/* access.c: whether a lane may read [at, at + bytes), a generic address. */
bool gpul_lane_may_read(struct warp_state *s, unsigned lane, uint64_t at, uint64_t bytes);
/* The string there, cut to fit; false: it cannot be read. */
bool gpul_lane_string(struct warp_state *s, unsigned lane, uint64_t at, char *buf, size_t bytes);

/* barrier.c */
void gpul_barrier_arrive(struct warp_state *s);
void gpul_block_lanes_ended(struct warp_state *s, uint32_t lanes);

/* block.c */
enum block_result { BLOCK_DONE, BLOCK_YIELDS, BLOCK_FAULT } gpul_block_run(struct block *b);

/* block_memory.c */
struct block *gpul_block_create(struct worker *k, struct gpul_exec_launch *l, uint64_t index);  /* NULL: no memory */
void gpul_block_release(struct block *b);  /* its instructions are counted; kept for the next one */
void gpul_worker_free_memory(struct worker *k);

/* fault.c.  All record the launch's first fault and return s->limit. */
const struct insn *gpul_fault_access(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t address,
				     unsigned bytes, bool write);
const struct insn *gpul_fault_text(struct warp_state *s, const struct insn *i, gpul_exec_fault_kind kind,
				   unsigned lane, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void gpul_launch_fault(struct gpul_exec_launch *l, const gpul_exec_fault *fault);

/* heap.c: device malloc and free, of one machine. */
struct heap;
struct heap *gpul_heap_create(gpul_exec_memory *m, uint64_t bytes);  /* NULL: no memory */
void gpul_heap_destroy(struct heap *h);
uint64_t gpul_heap_alloc(struct heap *h, uint64_t bytes);  /* 0: full */
bool gpul_heap_free(struct heap *h, uint64_t address);     /* false: not from it */
struct heap *gpul_heap_of(struct gpul_exec_machine *m);    /* created by the first call; NULL: no memory */

/* launch.c */
struct gpul_exec_launch *gpul_launch_create(struct gpul_exec_machine *m, const gpul_exec_launch_config *c);
void gpul_launch_destroy(struct gpul_exec_launch *l);
void gpul_launch_unref(struct gpul_exec_launch *l);
void gpul_launch_skip_rest(struct gpul_exec_launch *l);  /* of a stopped launch: its unstarted blocks count as ended */
void gpul_launch_blocks_ended(struct gpul_exec_launch *l, uint64_t n);  /* the last one ends the launch */

/* machine.c, worker.c */
struct gpul_exec_machine {
	gpul_exec_memory *memory;
	gpul_exec_machine_options options;
	pthread_mutex_t lock;            /* of what follows */
	pthread_cond_t work;             /* a launch was listed, or quit */
	struct gpul_exec_launch *first, *last;  /* with blocks to start */
	struct worker *workers;
	unsigned n_workers, n_sleeping;
	bool started;
	struct heap *heap;               /* made by the first malloc */
	_Atomic bool stops;              /* a listed launch was stopped: somebody must end it */
	_Atomic bool quits;              /* end everything */
	_Atomic bool paused;             /* no turn begins (gpul_exec_machine_pause) */
};
gpul_status gpul_machine_list(struct gpul_exec_machine *m, struct gpul_exec_launch *l, gpul_error *err);
void gpul_machine_stop(struct gpul_exec_machine *m);  /* wake somebody to end stopped launches */
void *gpul_worker_main(void *worker);

#endif
