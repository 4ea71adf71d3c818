/* warp_internal.h — warps with their splits and frames; blocks, launches, workers.
 *
 * A warp's lanes usually share one program counter (pc).  When they diverge, each group of lanes with one pc is a split:
 *
 *     warp ── splits[0..n)   { frame, pc, mask, state }   disjoint masks, together `live`
 *               └─ frame ── parent frame ...               one for each call in progress
 *
 * One split runs at a time, inside a window of instructions (floor, limit) that contains no pc of another split of its frame; when it
 * reaches limit, the pc of another split, the two merge (reconvergence).  A warp with one split has an unlimited window, so converged
 * code has no overhead.  The scheduler selects the split with the deepest frame, and among these the one with the lowest pc, because
 * then diverged lanes reconverge soonest.  A split that has looped for long, or sleeps, waits until the other splits have run for a
 * time slice (turn), so that a lane can wait for another lane of its own warp.  Splits that waited at the same barrier instruction
 * merge when the barrier is complete.
 *
 * Handlers return the next instruction, or s->limit after setting s->event. */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_WARP_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_WARP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "softcuda/exec/exec_memory_internal.h"
#include "softcuda/exec/program_internal.h"

/* SHARED_UNIT_BYTES: the unit in which shared memory is allocated from sm_80 on (PTX ISA, %total_smem_size). */
enum { SHARED_UNIT_BYTES = 128, RESERVED_SMEM_BYTES = 1024, N_BARRIERS = CLUSTER_BARRIER + 1, BACK_EDGES = 1000, N_WATCHED = 8 };

struct frame {
	struct frame *parent; /* the caller's frame; NULL for the frame of the kernel itself */
	const struct func_code *code;
	const struct call_site *site; /* the call that created the frame */
	const struct insn *return_to; /* the instruction after the call, in the parent's code */
	uint32_t lanes;               /* lanes that execute this call, or calls made from it */
	uint32_t local_offset;        /* offset of the frame in each lane's local memory */
	uint32_t alloca_bytes;        /* local memory that alloca has allocated, after the function's variables */
	uint32_t depth;               /* number of parents */
	uint32_t size_class;          /* log2 of the size of regs */
	uint8_t *regs;
};

enum split_state {
	SPLIT_READY,
	SPLIT_PASSED,  /* the split has used up its time slice, or sleeps */
	SPLIT_SYNC,    /* the split waits for other lanes of its warp, at a *.sync instruction */
	SPLIT_BARRIER, /* the split waits at a barrier of the block */
};

struct split {
	const struct insn *pc;
	struct frame *frame;
	uint32_t mask;
	uint8_t state;   /* a value of enum split_state */
	uint8_t barrier; /* SPLIT_BARRIER: number of the barrier */
	bool released;   /* the *.sync instruction at pc may execute without the missing lanes */
	int back_edges;  /* number of backward branches left in the time slice; if it is below 0, the split must yield */
	uint32_t need;   /* SPLIT_SYNC: the union of the member masks of all its lanes */
};

enum event {                /* why the current split has stopped */
	     EVENT_NONE,    /* the split has reached s->limit, the pc of another split */
	     EVENT_SWITCH,  /* the split has left the window (floor, limit), so the scheduler must choose a split */
	     EVENT_YIELD,   /* the split has used up its time slice, or sleeps */
	     EVENT_SYNC,    /* the split waits for the lanes s->need of its warp */
	     EVENT_BARRIER, /* the split has executed the barrier instruction before pc */
	     EVENT_EXIT,    /* the lanes of the split have exited, or moved to other splits */
	     EVENT_FAULT,
};

struct warp_state {
	struct warp w; /* must be the first member, because state_of() casts its address */
	const struct insn *floor, *limit;
	const struct insn *pc;        /* after an event: the instruction at which the current split continues */
	const struct insn *run_start; /* the first instruction that n_instructions does not include yet */
	int back_edges;               /* back_edges of the current split, while it runs */
	uint64_t polled;              /* host address of the most recent ordered load by the first active lane */
	bool repolls;                 /* in its last time slice, the warp loaded an unchanged word again, so it waits for a change */
	bool stirs;                   /* in its last time slice, the warp did more than poll words that did not change */
	enum event event;
	unsigned current, n_splits;
	struct frame *frame; /* frame of the current split */
	uint64_t n_instructions;
	uint32_t need;         /* EVENT_SYNC: the union of the member masks */
	uint8_t *local;        /* local memory of lane 0 */
	uint64_t local_stride; /* distance to the next lane's local memory */
	uint32_t local_bytes;  /* size of each lane's local memory */
	uint8_t *shared;
	uint32_t shared_bytes;
	const uint8_t *params;
	uint32_t param_bytes;
	struct range_cache *cache;
	struct block *block;
	uint32_t index; /* number of the warp in its block */
	bool done;
	const struct insn *sleep_at; /* the nanosleep instruction that the lanes in sleep_lanes execute; NULL: none */
	uint32_t sleep_lanes;
	uint64_t sleep_end_ns;
	uint32_t arrived[N_BARRIERS]; /* lanes that have arrived at each barrier */
	struct split splits[LANES];
	uint64_t watched[N_WATCHED]; /* ring buffer of the host addresses of the most recent ordered accesses, without duplicates */
	uint8_t next_watched;
};

struct barrier {
	uint32_t expected;              /* number of threads that must arrive; 0: all threads of the block that have not exited */
	uint32_t arrived, arrived_live; /* number of arrived threads; `arrived` also counts lanes that do not exist or have exited */
	bool in_use;
	uint32_t popc; /* bar.red: number of true predicates */
	bool any, all; /* bar.red: the `or` and the `and` of the predicates */
};

/* Blocks that run at the same time, on one worker, and can access each other's shared memory.  A .shared::cluster address is an offset in
 * the block's own shared memory, or (rank + 1) << CLUSTER_RANK_AT + an offset in the shared memory of the block of that rank. */
struct cluster {
	unsigned n_blocks, n_running;
	uint32_t n_live, arrived; /* threads that have not exited, and how many of them executed barrier.cluster.arrive */
	struct block *block[GPUL_EXEC_CLUSTER_BLOCKS]; /* blocks, indexed by rank; NULL: the block has ended */
};
enum { CLUSTER_RANK_AT = 24 };

struct block_shape {
	uint64_t program_id; /* the program for whose kernel the block's memory is laid out; 0: it is not laid out yet */
	const gpul_exec_kernel *kernel;
	uint32_t block[3], dynamic_bytes;
};

struct block {
	struct block *next; /* next in a worker's list of free blocks */
	struct worker *worker;
	struct gpul_exec_launch *launch;
	bool polls;               /* in its last turn (time slice), the block polled memory or the clock, or slept */
	bool progressed;          /* in the block's last turn, a warp ended or reached a barrier */
	bool quiet;               /* in the block's last turn, each warp that ran only polled words that did not change */
	unsigned n_repolls;       /* how often, in the block's last turn, a warp stopped after loading the same word again */
	struct block_shape shape; /* the kernel and size for which the memory below is laid out */
	uint8_t *memory;
	size_t memory_bytes;
	struct warp_state *warps;
	unsigned n_warps, n_done;
	uint32_t n_specials; /* how many of the program's special registers the warps have; decoding may add others */
	uint32_t n_threads, n_live;
	uint32_t index[3];       /* %ctaid */
	struct cluster *cluster; /* NULL: the block is not in a cluster */
	struct block_nest *nest; /* state of the device runtime (../machine/nest_internal.h); NULL: never called */
	unsigned rank;           /* rank in the cluster */
	uint8_t *shared;
	uint32_t shared_bytes;
	struct barrier barriers[N_BARRIERS];
	void *note[MAX_OBSERVERS]; /* private data of the observers: see block_note() */
};

struct gpul_exec_launch {
	struct gpul_exec_launch *next; /* next in the machine's list of launches with blocks to start */
	struct gpul_exec_machine *machine;
	const gpul_exec_kernel *kernel;
	uint32_t grid[3], block[3], cluster[3];
	unsigned cluster_blocks; /* number of blocks in a cluster */
	uint32_t shared_bytes;   /* shared memory per block that kernels may access */
	uint32_t dynamic_base, dynamic_bytes;
	uint32_t reserved_base; /* offset of the reserved shared memory, the value of %reserved_smem_offset_begin */
	uint64_t grid_id;
	unsigned device; /* the device whose memory access rights the blocks have */
	bool cooperative, listed;
	unsigned depth;                 /* nesting depth: 0 if the host started the launch, 1 if a kernel of depth 0 did, and so on */
	struct nest *_Atomic nest;      /* the launches that this kernel has started; NULL: none */
	const struct nest_calls *nests; /* a copy of machine->nests, because the machine may be destroyed before the launch is released */
	const gpul_exec_order *order;   /* position in the order of all streams, for launch_begins(); NULL: after all earlier launches */
	uint8_t *params;
	uint8_t *workspace; /* cooperative launches: the barrier of grid.sync(), whose address is in %envreg1 and %envreg2 */
	uint64_t n_blocks, max_resident;
	_Atomic uint64_t next_block, n_ended, n_instructions;
	_Atomic bool again; /* an observer wants the launch to run again */
	_Atomic bool stop;  /* the launch has faulted or was aborted, so workers end its blocks */
	_Atomic int refs;
	_Atomic bool stuck_reported;
	pthread_mutex_t lock; /* protects the members below */
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
	_Atomic uint64_t turns; /* twice the number of turns; odd: the worker executes instructions (see gpul_exec_machine_settle) */
	struct range_cache cache[GPUL_EXEC_MAX_DEVICES];
	struct block *free_blocks;
	unsigned n_free_blocks;
	struct block **resident;
	unsigned n_resident, resident_capacity;
	struct gpul_exec_launch *current; /* the launch whose blocks the worker starts; counts as a reference */
	uint64_t tried;                   /* the value of machine->n_listed when the worker last found no block to start */
	_Atomic uint64_t n_active_rounds; /* number of rounds (a turn of each resident block) in which not all blocks waited */
	uint64_t pressure_ns, stalled_us; /* time and value of the last reading of the time that threads waited for CPUs (rest.c) */
	bool cpus_short;
	uint64_t quiet_ns;             /* when all resident blocks began to poll only unchanged words; 0: they do not */
	uint64_t seen_active, seen_ns; /* the last sum of all workers' n_active_rounds, and the time of its last change */
	struct frame *free_frames[33]; /* lists of free frames, by size class; the next frame is frame->parent */
	uint8_t *scratch;              /* memory of bank 3 */
};

/* ---- observers ----------------------------------------------------------------------------------- */

#define EACH_OBSERVER(o, machine, hook) \
	for (struct observer *o = gpul_exec_memory_observers((machine)->memory); o; o = o->next) \
		if (o->hook)

static inline uint32_t whole_shared_units(uint32_t bytes)
{
	return (bytes + SHARED_UNIT_BYTES - 1) & ~(uint32_t)(SHARED_UNIT_BYTES - 1);
}

/* Return the size of a block's static and dynamic shared memory. */
static inline uint32_t program_shared_bytes(const struct gpul_exec_launch *l)
{
	return l->dynamic_bytes ? l->dynamic_base + l->dynamic_bytes : l->kernel->info.shared_bytes;
}

/* Return the address of a pointer that observer o can set, for its own data about a block.  Set it in block_begins(): blocks are reused. */
static inline void **block_note(struct block *b, const struct observer *o)
{
	return &b->note[__builtin_ctz(o->bit)];
}

/* ---- functions for handlers ------------------------------------------------------------------ */

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
	return mask == ALL_LANES ? LANES : (unsigned)__builtin_popcount(mask); /* the first case is faster on CPUs without POPCNT */
}

/* Loops over the lanes of a mask, and over the active lanes of w; l is the lane. */
#define EACH_LANE_OF(l, lanes) for (uint32_t rest_ = (lanes), l = 0; rest_ && (l = first_lane(rest_), 1); rest_ &= rest_ - 1)
#define EACH_ACTIVE(l, w)      EACH_LANE_OF(l, (w)->mask)

/* Stop the current split; the handler must return this result.  The split continues at pc when the scheduler selects it again. */
static inline const struct insn *raise_event(struct warp_state *s, enum event event, const struct insn *pc)
{
	s->event = event;
	s->pc = pc;
	return s->limit;
}

/* Add the instructions from s->run_start to `last` to s->n_instructions, for each active lane; counting continues at `next`. */
static inline void count_run(struct warp_state *s, const struct insn *last, const struct insn *next)
{
	s->n_instructions += count_lanes(s->w.mask) * (uint64_t)(last - s->run_start + 1);
	s->run_start = next;
}

/* Record an ordered access.  If the word is not among those that the warp accessed most recently, the warp makes progress: a warp
 * that only waits accesses the few words that it polls, and perhaps one by which it signals that it waits. */
static inline void watch_word(struct warp_state *s, uint64_t at)
{
	bool known = false;

	for (unsigned k = 0; k < N_WATCHED; k++)
		known |= s->watched[k] == at;
	if (known)
		return;
	s->stirs = true;
	s->watched[s->next_watched] = at;
	s->next_watched = (uint8_t)((s->next_watched + 1) % N_WATCHED);
}

/* Returns true if lanes may join the split: it is not at a barrier, nor about to execute a *.sync without the missing lanes. */
static inline bool split_can_merge(const struct split *p)
{
	return p->state != SPLIT_BARRIER && !p->released;
}

/* Functions of split_list.c. */
void gpul_split_remove(struct warp_state *s, unsigned k);
void gpul_split_join(struct split *p, uint32_t mask);
void gpul_split_add(struct warp_state *s, struct frame *frame, const struct insn *pc, uint32_t mask);
void gpul_split_merge_current(struct warp_state *s);
void gpul_split_merge_released(struct warp_state *s);

/* Functions of split.c. */
const struct insn *gpul_split_diverge(struct warp_state *s, const struct insn *i, const struct insn *target, uint32_t taken);
const struct insn *gpul_split_scatter(struct warp_state *s, const struct insn *const target[LANES], struct frame *const frame[LANES]);
const struct insn *gpul_split_exit(struct warp_state *s);
void gpul_split_start(struct warp_state *s, const struct insn *entry, struct frame *frame, uint32_t mask);
/* Run a warp until it ends, all its splits wait, or all of them have used up their time slice. */
enum warp_result { WARP_DONE, WARP_WAITS, WARP_YIELDS, WARP_FAULT } gpul_warp_run(struct warp_state *s);

/* Functions of specials.c. */
/* Write the special registers of all warps; fresh: also those that are the same for all blocks of one shape (struct block_shape). */
void gpul_specials_write(struct block *b, bool fresh);
void gpul_specials_add(struct block *b);                       /* writes registers that decoding has added since the block started */
size_t gpul_specials_bytes(const struct gpul_exec_program *p); /* size for one warp, with room for later registers */

/* Functions of warp_call.c. */
const struct insn *gpul_call(struct warp_state *s, const struct insn *i, const struct func_code *callee);
const struct insn *gpul_call_pointer(struct warp_state *s, const struct insn *i);
const struct insn *gpul_call_return(struct warp_state *s, const struct insn *i);

/* Functions of frame.c. */
struct frame *gpul_frame_create(struct worker *k, const struct func_code *code);
void gpul_frame_free(struct worker *k, struct frame *f);
void gpul_frame_leave(struct worker *k, struct frame *f, uint32_t lanes); /* removes the lanes from f and all its parents */

/* Functions of builtins.c. */
const struct insn *gpul_call_builtin(struct warp_state *s, const struct insn *i);
enum builtin gpul_builtin_find(const char *name);
/* Return the value of argument n of a call; 0 if the call has fewer arguments. */
uint64_t gpul_builtin_argument(const struct warp_state *s, const struct call_site *site, uint32_t n, unsigned lane);
void gpul_builtin_set_result(const struct warp_state *s, const struct call_site *site, unsigned lane, uint64_t value);
unsigned gpul_builtin_written_bytes(enum builtin b); /* size of the result that a call writes through its first argument */
/* Copy argument n, of any size, to `out`. */
void gpul_builtin_bytes(const struct warp_state *s, const struct call_site *site, uint32_t n, unsigned lane, void *out, size_t bytes);
uint64_t gpul_builtin_result(const struct warp_state *s, const struct call_site *site, unsigned lane);

/* warp_print.c: vprintf for one lane.  Returns the number of printed arguments; *stop is set after a fault. */
int gpul_lane_printf(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t format_at, uint64_t args,
		     const struct insn **stop);

/* Functions of access.c.  The first two return true if the lane may write, or read, [at, at + bytes); `at` is a generic address. */
bool gpul_lane_may_write(struct warp_state *s, unsigned lane, uint64_t at, uint64_t bytes);
bool gpul_lane_may_read(struct warp_state *s, unsigned lane, uint64_t at, uint64_t bytes);
/* Copy the string at a generic address, truncated to fit into buf; false: the lane may not read it. */
bool gpul_lane_string(struct warp_state *s, unsigned lane, uint64_t at, char *buf, size_t bytes);

/* Functions of barrier.c. */
void gpul_barrier_arrive(struct warp_state *s);
void gpul_block_lanes_ended(struct warp_state *s, uint32_t lanes);

/* Functions of cluster.c. */
struct cluster *gpul_cluster_create(struct gpul_exec_launch *l); /* NULL: out of memory */
void gpul_cluster_add(struct cluster *c, struct block *b, unsigned rank);
void gpul_cluster_remove(struct block *b); /* called when a block ends; the last block frees the cluster */
void gpul_cluster_arrive(struct warp_state *s, uint32_t lanes);
void gpul_cluster_lanes_ended(struct warp_state *s, uint32_t lanes);
/* Find the block of the cluster whose shared memory contains a generic address; NULL: none.  *offset: offset in its shared memory. */
struct block *gpul_cluster_find(const struct block *b, uint64_t at, uint64_t *offset);

/* Find the block to whose shared memory a .shared::cluster address refers; NULL: it is an offset in the shared memory of block b. */
static inline struct block *cluster_block(const struct block *b, uint32_t at)
{
	const unsigned rank = at >> CLUSTER_RANK_AT;

	return b->cluster && rank && rank <= b->cluster->n_blocks ? b->cluster->block[rank - 1] : NULL;
}

/* Functions of block.c. */
enum block_result { BLOCK_DONE, BLOCK_YIELDS, BLOCK_FAULT } gpul_block_run(struct block *b);

/* Functions of block_memory.c. */
struct block *gpul_block_create(struct worker *k, struct gpul_exec_launch *l, uint64_t index); /* NULL: out of memory */
void gpul_block_release(struct block *b); /* adds its instruction count to the launch; keeps its memory for reuse */
void gpul_worker_free_memory(struct worker *k);

/* fault.c: report that a block has accessed an address that is in the memory table but not mapped; the instruction is unknown. */
void gpul_fault_pages(struct block *b, uint64_t address);
/* fault.c: report a fault: set EVENT_FAULT and return s->limit, which the handler must return.  A launch keeps its first fault. */
const struct insn *gpul_fault_access(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t address, unsigned bytes,
				     bool write);
/* Report a multimem instruction whose address has no copies; `why` comes from copies_at(). */
const struct insn *gpul_fault_multimem(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t address, unsigned bytes,
				       bool write, const char *why);
const struct insn *gpul_fault_text(struct warp_state *s, const struct insn *i, gpul_exec_fault_kind kind, unsigned lane, const char *fmt,
				   ...) __attribute__((format(printf, 5, 6)));
void gpul_launch_fault(struct gpul_exec_launch *l, const gpul_exec_fault *fault);

/* heap.c: device malloc and free; a machine has one heap. */
struct heap;
struct heap *gpul_heap_create(gpul_exec_memory *m, uint64_t bytes); /* NULL: out of memory */
void gpul_heap_destroy(struct heap *h);
uint64_t gpul_heap_alloc(struct heap *h, uint64_t bytes); /* 0: full */
bool gpul_heap_free(struct heap *h, uint64_t address);    /* returns false if h has no such allocation, or if it was freed before */
/* State of the heap that a tool saves in order to run a launch again; block headers are in device memory, which it saves as well. */
struct heap_marks {
	uint64_t used;
	void *free[48];
};
void gpul_heap_mark(struct heap *h, struct heap_marks *out);
void gpul_heap_rewind(struct heap *h, const struct heap_marks *marks);
struct heap *gpul_heap_of(struct gpul_exec_machine *m); /* created by the first call; NULL: out of memory */

/* Functions of ../machine/machine_launch.c. */
struct gpul_exec_launch *gpul_launch_create(struct gpul_exec_machine *m, const gpul_exec_launch_config *c);
void gpul_launch_destroy(struct gpul_exec_launch *l);
void gpul_launch_unref(struct gpul_exec_launch *l);
void gpul_launch_skip_rest(struct gpul_exec_launch *l); /* counts the blocks that have not started as ended */
/* Count n more blocks as ended.  The last block ends the launch, or, if the launch has children, nest.c ends it later. */
void gpul_launch_blocks_ended(struct gpul_exec_launch *l, uint64_t n);
void gpul_launch_end(struct gpul_exec_launch *l);
void gpul_launch_list(struct gpul_exec_launch *l);                        /* adds it to machine->first; the caller holds machine->lock */
void gpul_launch_begin_again(struct gpul_exec_launch *l, bool abandoned); /* abandoned: its blocks have not ended */

/* launch_start.c: check the configuration for gpul_exec_launch_start() */
gpul_status gpul_launch_check(const struct gpul_exec_machine *m, const gpul_exec_launch_config *config, gpul_error *err);

/* Functions of residency.c. */
bool gpul_launch_has_room(struct gpul_exec_launch *l); /* true if one more block may become resident, or if all blocks have started */
void gpul_worker_check_stuck(struct worker *k);        /* called while all blocks of the worker wait */

/* rest.c: yield the CPU, or sleep for a moment; quiet: the blocks only poll words that do not change. */
void gpul_worker_rest(struct worker *k, bool quiet);

/* Functions of ../machine/device_runtime.c and nest.c, for launches from kernels.  A table of pointers avoids a circular dependency. */
struct nest_calls {
	const struct insn *(*call_device_runtime)(struct warp_state *s, const struct insn *i);
	void (*stop_children)(struct gpul_exec_launch *l);
	void (*blocks_ended)(struct nest *n);
	void (*begins_again)(struct nest *n); /* called when the launch starts again */
	void (*block_ends)(struct block *b);
	void (*destroy)(struct nest *n);
};

/* The state of a machine; ../machine/machine.c and machine_worker.c create and use it. */
struct gpul_exec_machine {
	gpul_exec_memory *memory;
	gpul_exec_machine_options options;
	pthread_mutex_t lock;                  /* protects the members below, except atomic ones */
	pthread_cond_t work;                   /* signalled when a launch is added to the list, or `stops` or `quits` is set */
	struct gpul_exec_launch *first, *last; /* list of launches with blocks to start */
	struct worker *workers;
	unsigned n_workers, n_sleeping;
	bool started;
	_Atomic uint64_t n_listed;       /* number of launches that were added to the list so far */
	_Atomic uint64_t n_nested;       /* number of launches from kernels in the list */
	struct nesting *_Atomic nesting; /* created when a kernel first calls the device runtime */
	const struct nest_calls *nests;
	struct heap *heap;           /* created by the first device malloc */
	uint64_t globaltimer_offset; /* %globaltimer minus gpul_clock_ns() */
	_Atomic bool stops;          /* a launch in the list was stopped, so a worker must end it */
	_Atomic bool quits;          /* workers abort all launches and exit */
	_Atomic bool paused;         /* workers run no blocks (gpul_exec_machine_pause) */
};
gpul_status gpul_machine_list(struct gpul_exec_machine *m, struct gpul_exec_launch *l, gpul_error *err);
void gpul_machine_stop(struct gpul_exec_machine *m); /* wakes the workers, so that they end stopped launches */
void *gpul_worker_main(void *worker);

#endif
