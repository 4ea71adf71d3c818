/* nest_internal.h — launches started by kernels: CUDA's dynamic parallelism, in its CUDA 12 version ("CDP2").
 *
 *     launch ── nest ─┬─ streams: each block's default stream, and those that kernels create
 *                     │    └─ operations in order: launch, record an event, wait for an event
 *                     ├─ running: children that have begun ── their own nests
 *                     └─ tail: launches that begin when the blocks and all children have ended
 *
 * A launch ends when its blocks, its children and its tail launches have ended. A child's fault is a fault of its parent, too,
 * so the whole tree ends. A launch without children has no nest. */
#ifndef GPULOAD_SOFTCUDA_EXEC_MACHINE_NEST_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_MACHINE_NEST_INTERNAL_H

#include "softcuda/exec/warp/warp_internal.h"

enum { MAX_NEST_DEPTH = 24, PARAMS_BYTES = 4096, PENDING_LAUNCHES = 2048 };

/* Values of cudaError_t (driver_types.h). */
enum device_error {
	DEVICE_OK = 0,
	DEVICE_INVALID_VALUE = 1,
	DEVICE_NO_MEMORY = 2,
	DEVICE_INVALID_CONFIGURATION = 9,
	DEVICE_INVALID_PITCH = 12,
	DEVICE_MAX_DEPTH = 65,
	DEVICE_INVALID_FUNCTION = 98,
	DEVICE_INVALID_DEVICE = 101,
	DEVICE_UNSUPPORTED_LIMIT = 215,
	DEVICE_INVALID_HANDLE = 400,
	DEVICE_OUT_OF_RESOURCES = 701,
};

enum nested_kind { NESTED_LAUNCH, NESTED_RECORD, NESTED_WAIT };

struct nested_op {
	struct nested_op *next, *before; /* links of the list of the stream's waiting operations, or of the nest's running children */
	enum nested_kind kind;
	struct nest *nest;
	struct nested_stream *stream;   /* NULL for cudaStreamFireAndForget, which is not a real stream */
	gpul_exec_launch_config config; /* for NESTED_LAUNCH; config.params points to a parameter buffer of struct nesting */
	gpul_exec_launch *running;
	struct nested_event *event; /* for NESTED_RECORD and NESTED_WAIT */
	uint64_t number;            /* which record of the event this operation makes or waits for; 1 is the first */
};

struct nested_stream {
	struct nested_stream *next, *before; /* links of the list of the nest's streams */
	struct nested_op *first, *last;      /* operations that have not begun */
	bool busy;                           /* a child in this stream is running */
	bool closed;                         /* destroyed by the kernel; freed when its operations have ended */
};

struct nested_event {
	struct nested_event *next;
	uint64_t n_recorded, n_reached; /* number of records requested so far, and of those performed so far */
};

struct nest {
	gpul_exec_launch *owner;
	uint64_t n_open; /* number of operations that have not ended; tail launches count only after they have begun */
	bool blocks_ended;
	struct nested_op *running;
	struct nested_stream *streams, *tail;
	struct nested_event *events;
};

/* What a block that has called the device runtime keeps between calls. */
struct block_nest {
	struct nested_stream *stream; /* the block's default stream; NULL: not used yet */
	uint16_t last_error[];        /* last error of each thread */
};

/* The data of a machine for launches from kernels, created when a kernel first calls the device runtime. */
struct nesting {
	pthread_mutex_t lock; /* protects all nests of the machine; locked before the locks of launches and of the machine */
	uint8_t *slots;       /* parameter buffers of PARAMS_BYTES bytes each */
	struct slot {
		gpul_exec_launch_config config;
		bool prepared; /* a kernel has allocated the buffer, but has not launched anything with it */
		uint32_t next_free;
	} *slot;
	uint32_t n_slots, n_fresh, first_free; /* slots from n_fresh on were never used; first_free: UINT32_MAX if no freed slot is left */
	uint64_t n_launches;
	uint8_t *texts;            /* names and texts of errors; NULL: not used yet */
	gpul_exec_program *copies; /* kernels for copies and fills; NULL: not used yet */
};

/* Functions of nest.c. */
struct nest *gpul_nest_of(gpul_exec_launch *l); /* created by the first call; NULL: out of memory */
void gpul_nest_destroy(struct nest *n);
void gpul_nest_blocks_ended(struct nest *n);
void gpul_nest_begins_again(struct nest *n);
void gpul_nest_stop(gpul_exec_launch *l); /* stops the children, after the launch itself was stopped */
/* Append an operation to a stream; stream NULL: start the operation now.  Takes ownership of op.  Returns a device_error. */
int gpul_nest_submit(struct nest *n, struct nested_stream *stream, struct nested_op *op);
struct nested_stream *gpul_nest_stream_new(struct nest *n);   /* NULL: out of memory */
bool gpul_nest_stream_close(struct nest *n, uint64_t handle); /* false: there is no such stream */
struct nested_stream *gpul_nest_stream_find(struct nest *n, uint64_t handle);
struct nested_stream *gpul_nest_tail(struct nest *n);     /* created by the first call; NULL: out of memory */
struct nested_event *gpul_nest_event_new(struct nest *n); /* NULL: out of memory */
struct nested_event *gpul_nest_event_find(struct nest *n, uint64_t handle);
void gpul_nest_block_ends(struct block *b);

/* Functions of nesting.c. */
struct nesting *gpul_nesting_of(gpul_exec_machine *m); /* created by the first call; NULL: out of memory */
void gpul_nesting_destroy(gpul_exec_machine *m);
void *gpul_nesting_take_slot(struct nesting *g, gpul_exec_memory *memory, const gpul_exec_launch_config *config); /* NULL: all are in use */
/* Get the launch configuration of a parameter buffer, which can be launched once; false: params is not a buffer, or was launched before. */
bool gpul_nesting_claim_slot(struct nesting *g, uint64_t params, gpul_exec_launch_config *config);
void gpul_nesting_free_slot(struct nesting *g, const void *params); /* the caller holds g->lock */

/* device_runtime.c: execute a call of the device runtime for the active lanes. */
const struct insn *gpul_call_device_runtime(struct warp_state *s, const struct insn *i);

/* A copy or fill that a kernel requests, executed as a launch. */
struct device_copy {       /* all members except `fill` are parameters of the kernel */
	uint64_t to, from; /* from: the source; for a fill, the byte to store */
	uint64_t to_pitch, from_pitch, width, height;
	bool fill;
};
enum { COPY_PARAMS_BYTES = 6 * 8 };
_Static_assert(offsetof(struct device_copy, fill) == COPY_PARAMS_BYTES, "as the kernels declare them");

/* Set kernel, grid and block of the launch for a copy or fill; false: out of memory. */
bool gpul_device_copy(struct nesting *g, gpul_exec_memory *memory, const struct device_copy *copy, gpul_exec_launch_config *config);

#endif
