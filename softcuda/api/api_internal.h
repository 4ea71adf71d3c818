/* api_internal.h — the objects behind CUDA's handles, and the rules every cu* call follows.
 *
 *     device ── context ─┬─ stream ── op, op, op ...   (queue.c runs them in order)
 *                        ├─ event
 *                        ├─ module ── function         (module.c)   ┐ share one `code`:
 *     library ── kernel ─┴─ allocation                 (library.c)  ┘ a decoded program
 *
 * A handle that a program holds is not a pointer but a row of a table (handle.c), so a stale or
 * made-up one is refused instead of followed.
 *
 * One lock (soft_lock) guards every object here.  It is never held while code runs that can
 * take long: parsing, copying, starting a kernel, a program's own callback.
 *
 * __CUDA_API_VERSION_INTERNAL makes <cuda.h> declare every version of every call under its own
 * name (cuMemAlloc_v2, cuLaunchKernel_ptsz), so that the compiler checks our definitions. */
#ifndef GPULOAD_SOFTCUDA_API_API_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_API_INTERNAL_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/file.h"
#include "loader/image/source.h"
#include "ptx/module.h"
#include "softcuda/api/older_cuda_internal.h"
#include "softcuda/exec/exec.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- intrusive list: a ring through its head -------------------------------------------- */

struct link { struct link *prev, *next; };

static inline void list_init(struct link *head)
{
	head->prev = head->next = head;
}
static inline bool list_empty(const struct link *head)
{
	return head->next == head;
}
static inline void list_append(struct link *head, struct link *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}
static inline void list_remove(struct link *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);  /* removing twice is harmless */
}
#define CONTAINER(node, type, member)                                          \
	((type *)(void *)((char *)(node) - offsetof(type, member)))

/* ---- the device this driver shows: numbers of the same kind as an H100's ---------------- */

enum {
	DRIVER_VERSION = 13000,
	COMPUTE_MAJOR = 9,
	COMPUTE_MINOR = 0,
	WARP_THREADS = 32,
	MAX_BLOCK_THREADS = 1024,
	MAX_BLOCK_Z = 64,
	MAX_GRID_YZ = 65535,
	SM_THREADS = 2048,
	SM_BLOCKS = 32,
	SM_REGISTERS = 65536,
	SM_SHARED_BYTES = 228 * 1024,
	RESERVED_SHARED_BYTES = 1024,          /* an SM keeps that of each block's share */
	DEFAULT_SHARED_BYTES = 48 * 1024,      /* without asking through an attribute */
	MAX_SHARED_BYTES = 227 * 1024,
	MAX_CONSTANT_BYTES = 64 * 1024,
	MAX_DEVICES = 16,
	N_LIMITS = 10,                         /* CU_LIMIT_MAX of CUDA 13.0 */
};
#define MAX_GRID_X 2147483647

/* ---- objects ---------------------------------------------------------------------------- */

enum handle_kind {
	HANDLE_NONE, HANDLE_CONTEXT, HANDLE_MODULE, HANDLE_FUNCTION, HANDLE_LIBRARY,
	HANDLE_KERNEL, HANDLE_STREAM, HANDLE_EVENT, HANDLE_POOL, HANDLE_ALLOCATION,
	HANDLE_LINKER, HANDLE_MEMORY, HANDLE_MAPPING,
};

struct stream;
struct op;

struct device {
	int ordinal;                 /* in this process */
	int physical;                /* in every process: see visible.c */
	struct context *primary;     /* made at the first retain, then kept */
	void *pool;                  /* handle of the default memory pool */
	uint32_t pool_readers, pool_writers;  /* bit d: other devices that may use its memory */
	uint64_t allocated_bytes;
};

struct context {
	struct link link;            /* in soft.contexts */
	void *handle;
	struct device *device;
	struct context *peer[MAX_DEVICES];  /* whose memory its kernels may use, too (peer.c) */
	unsigned n_peers;
	unsigned flags;
	bool is_primary, active;     /* active: usable; a primary context can be brought back */
	unsigned n_retained;         /* of a primary context */
	CUresult fault;              /* a kernel failed: every later call returns this */
	CUfunc_cache cache_config;
	size_t limit[N_LIMITS];
	struct stream *legacy;       /* stream 0 */
	struct stream *gate;         /* what all later work waits for (cuCtxWaitEvent); or NULL */
	struct link streams, events, modules, allocations;
	struct link pending;         /* ops that have not ended */
	uint64_t next_grid_id;
};

struct stream {
	struct link link;            /* in context->streams */
	void *handle;
	struct context *ctx;
	unsigned flags;
	int priority;
	bool blocking;               /* waits for the legacy stream and it for this one */
	bool destroyed;              /* no handle any more; freed when its last op ended */
	uint64_t id;
	uint64_t thread;             /* per-thread default stream: of this thread; else 0 */
	struct op *last;             /* the newest op that has not ended; NULL: idle */
	unsigned n_pending;
};

struct shared_event;

struct event {
	struct link link;            /* in context->events */
	void *handle;                /* NULL: destroyed, an op still refers to it */
	struct context *ctx;
	unsigned flags, refs;
	bool recorded;
	struct op *pending;          /* the record that has not ended */
	struct shared_event *shared; /* other processes may have it (ipc_event.c); or NULL */
	uint64_t time_ns;
};

/* A decoded program: a module's own, or a library's, lent to the first context that asks. */
struct code {
	unsigned refs;
	gpul_exec_program *program;
	int target_sm;               /* 90 of sm_90 */
};

struct function {
	void *handle;
	struct module *module;
	const gpul_exec_kernel *kernel;
	const gpul_exec_kernel_info *info;
	int max_dynamic_shared;      /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
	int carveout;
};

struct module {
	struct link link;            /* in context->modules */
	struct link of_library;      /* in library->instances */
	void *handle;
	struct context *ctx;
	struct library *library;     /* NULL: loaded by cuModuleLoad* */
	struct code *code;
	struct function *functions;
	size_t n_functions;
};

struct kernel {
	void *handle;
	struct library *library;
	size_t index;                /* of the kernel in the program */
	int max_dynamic_shared, carveout;  /* applied to the functions made of it */
};

struct library {
	struct link link;
	void *handle;
	char *text;                  /* the PTX, kept to decode it again for a second context */
	char name[128];              /* what faults and logs call it */
	size_t text_bytes;
	struct code *code;
	bool code_lent;              /* a context's module uses `code` */
	struct kernel *kernels;
	size_t n_kernels;
	struct link instances;       /* modules */
};

enum allocation_kind { ALLOC_DEVICE, ALLOC_HOST, ALLOC_REGISTERED, ALLOC_ASYNC, ALLOC_IPC };

struct ipc_file;

struct allocation {
	struct link link;            /* in context->allocations */
	void *handle;                /* owner of its range: tells it from a module's variable */
	struct context *ctx;
	struct device *device;       /* where it lies: of ctx, unless another process gave it */
	enum allocation_kind kind;
	unsigned flags;              /* CU_MEMHOSTALLOC_* or CU_MEMHOSTREGISTER_* */
	void *block;                 /* what free() takes; NULL: not from malloc */
	uint64_t base;
	size_t bytes;                /* as asked for */
	uint64_t id;
	bool sync_memops;
	bool is_leaving;             /* cuMemFreeAsync is queued */
	struct ipc_file *shared;     /* its pages are those of this file (ipc_memory.c); or NULL */
	unsigned char ipc_id[16];    /* ALLOC_IPC: of the other process' file */
	unsigned n_opened;           /* ALLOC_IPC: cuIpcOpenMemHandle without its close */
};

/* ---- state.c: what the process has, and how a call begins ------------------------------- */

struct soft_state {
	bool initialised;
	int n_devices, n_processors;
	uint64_t memory_bytes;       /* of a device: what the host has */
	struct device device[MAX_DEVICES];
	struct link libraries, contexts;
	gpul_exec_memory *memory;    /* one for all: a device address is a host address */
	gpul_exec_machine *machine;  /* made at the first launch */
	size_t heap_bytes;
	uint64_t next_id;            /* streams, allocations */
};
extern struct soft_state soft;

void soft_lock(void);
void soft_unlock(void);
void soft_wait_on(pthread_cond_t *condition);  /* under the lock, which is released meanwhile */
void soft_wait_change(void);     /* under the lock: sleep until soft_changed */
void soft_changed(void);         /* under the lock: something ended */
CUresult soft_check_initialised(void);
/* Begin a call that works in the current context: *out is it; the lock is held on success. */
CUresult soft_enter(struct context **out);
/* The same where a dead context is no hindrance (destroy, query of flags). */
CUresult soft_enter_even_dead(struct context **out);
CUresult soft_find_device(CUdevice dev, struct device **out);
CUresult soft_find_context(CUcontext handle, struct context **out);  /* under the lock */
uint64_t soft_thread_id(void);   /* from 1, of the calling thread */

/* The calling thread's stack of current contexts. */
void *soft_current(void);
void soft_set_current(void *handle);
bool soft_push_current(void *handle);
bool soft_pop_current(void **handle);

/* ---- visible.c -------------------------------------------------------------------------- */

CUresult soft_choose_devices(void);                /* fills soft.device; at cuInit */
void soft_device_uuid(const struct device *d, CUuuid *out);  /* the same in every process */
struct device *soft_device_of_uuid(const unsigned char uuid[16]);  /* NULL: not visible here */

/* ---- handle.c: all under the lock ------------------------------------------------------- */

void *soft_handle_new(enum handle_kind kind, void *object);  /* NULL: no memory */
void *soft_handle_find(enum handle_kind kind, const void *handle);
void soft_handle_free(const void *handle);                   /* NULL is fine */

/* ---- report.c: what the user is told ---------------------------------------------------- */

/* Return r; say why in the log, at level info. */
CUresult soft_refuse(CUresult r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Keep a kernel's fault for gpuloadSoftLastFault; print it, unless GPULOAD_SOFT_QUIET=1. */
void soft_report_fault(const char *text);
/* What this thread calls an image from memory: see gpuloadSoftNameImages. */
const char *soft_image_name(void);

/* ---- context.c, all under the lock ------------------------------------------------------ */

/* CU_CTX_* flags that have a meaning here: how to wait, and that host memory is mapped. */
enum {
	CONTEXT_FLAGS = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
			CU_CTX_SYNC_MEMOPS,
};

CUresult soft_context_create(struct device *dev, unsigned flags, struct context **out);
void soft_context_destroy(struct context *ctx);
/* The two halves of it: what a context owns comes and goes, its handle stays. */
CUresult soft_context_bring_up(struct context *ctx, unsigned flags);
void soft_context_tear_down(struct context *ctx);

/* ---- queue.c: operations in the order that streams and events impose -------------------- */

/* What the operations of one kind do.  Every function is called under the lock; NULL: nothing to do. */
struct op_kind {
	/* Do the work, then soft_op_end(); or start it, and soft_op_finish() follows from another thread.
	 * May release the lock.  Not called after a fault of the context, unless is_host_call. */
	void (*run)(struct op *op);
	void (*stop)(struct op *op);     /* the context has failed: work that runs shall end soon */
	void (*ended)(struct op *op);
	void (*release)(struct op *op);  /* free what the operation owns */
	bool is_host_call;               /* may block: runs in the callback thread */
	size_t bytes;                    /* of the struct whose first member is a struct op */
};

struct op {
	const struct op_kind *kind;
	struct context *ctx;
	struct stream *stream;
	struct link in_context;      /* context->pending */
	struct link in_ready;        /* the ready queue, when it is its turn */
	struct edge *dependents;     /* operations that wait for this one */
	unsigned n_waits;            /* operations that this one waits for */
	unsigned refs;
	bool ended, deferred;        /* deferred: it had to wait, so its call has returned */
	CUresult result;
};

extern const struct op_kind soft_marker;     /* does nothing: something to wait for */

/* A zeroed struct of kind->bytes; soft_op_release().  NULL: no memory. */
struct op *soft_op_new(struct stream *stream, const struct op_kind *kind);
/* Queue op behind its stream's work (and behind `after`, when not NULL), and run what is ready.
 * Under the lock, which is released and taken again.  The caller keeps its reference.
 * CUDA_ERROR_OUT_OF_MEMORY: nothing was queued. */
CUresult soft_op_submit(struct op *op, struct op *after);
/* All under the lock; the functions that wait release it meanwhile. */
void soft_op_release(struct op *op);
void soft_op_end(struct op *op, CUresult result);     /* from kind->run: drops the queue's reference */
void soft_op_finish(struct op *op, CUresult result);  /* from another thread: an error fails the context */
bool soft_stream_is_busy(struct stream *s);   /* its next operation would have to wait */
CUresult soft_op_wait(struct op *op);         /* its result */
void soft_stream_wait(struct stream *s);      /* until everything queued now has ended */
void soft_stream_free_if_done(struct stream *s);  /* when it is destroyed and has no work left */
void soft_context_wait(struct context *ctx);  /* until nothing is pending */
void soft_context_fail(struct context *ctx, CUresult fault);  /* every later call returns fault */
void soft_context_abort(struct context *ctx);  /* stop its kernels, drop what is queued, wait */

/* ---- settle.c, all under the lock -------------------------------------------------------- */

struct move {                /* a copy or fill that is running: the bytes from the first to the last */
	struct link link;
	uint64_t dst, src;
	size_t dst_bytes, src_bytes;
};

void soft_move_begin(struct move *m);
void soft_move_end(struct move *m);
/* Wait for running copies and for accesses that kernels have begun in [base, base + bytes), which the
 * engine's table no longer has; not for whole kernels.  May release the lock. */
void soft_settle(uint64_t base, size_t bytes);

/* ---- move.c: the operations of copies and fills ------------------------------------------ */

struct copy {                        /* up to three dimensions; pitches in bytes */
	char *dst;
	const char *src;
	size_t width_bytes, height, depth;
	size_t dst_pitch, src_pitch, dst_slice, src_slice;
	size_t dst_bytes, src_bytes; /* from the first to the last byte */
	bool dst_known, src_known;   /* memory of this driver: checked again when the copy had to wait */
	void *staged;                /* free() this afterwards; NULL: nothing */
};

struct copy_op {
	struct op op;
	struct copy copy;
};

struct fill {
	char *dst;
	size_t bytes;                /* from the first to the last byte */
	size_t width, height, pitch; /* width in elements */
	unsigned element_bytes;
	uint32_t value;
};

struct fill_op {
	struct op op;
	struct fill fill;
};

extern const struct op_kind soft_copy_kind, soft_fill_kind;

/* ---- stream.c --------------------------------------------------------------------------- */

/* The stream that a handle means in ctx: 0, legacy, per-thread or one made; under the lock. */
CUresult soft_find_stream(struct context *ctx, CUstream handle, struct stream **out);
CUresult soft_stream_create(struct context *ctx, unsigned flags, int priority,
			    struct stream **out);
void soft_stream_destroy(struct stream *s);
/* soft_enter and soft_find_stream in one. */
CUresult soft_enter_stream(CUstream handle, struct context **ctx, struct stream **out);

/* ---- event.c, all under the lock --------------------------------------------------------- */

CUresult soft_event_create(struct context *ctx, unsigned flags, struct event **out);
void soft_event_destroy(struct event *e);
CUresult soft_event_record(struct event *e, struct stream *s);
/* Make the later work of s wait for the newest record of e. */
CUresult soft_stream_wait_event(struct stream *s, struct event *e);
/* From now on the state of e is in a page that other processes map. */
void soft_event_share(struct event *e, struct shared_event *shared);

/* ---- memory.c --------------------------------------------------------------------------- */

bool soft_is_on_device(const struct allocation *a);
/* Free the allocation that starts at address, when it is of one of two kinds; lock not held. */
CUresult soft_free_at(uint64_t address, enum allocation_kind kind, enum allocation_kind or_kind);
void soft_allocation_free(struct allocation *a);   /* under the lock */
/* Enter a->base and the rest as an allocation of ctx; under the lock. */
CUresult soft_allocation_enter(struct context *ctx, struct allocation *a, unsigned range_flags);
CUresult soft_allocate(struct context *ctx, enum allocation_kind kind, size_t bytes,
		       unsigned flags, struct allocation **out);  /* under the lock */
/* True when [address, address + bytes) is memory that this driver knows. */
bool soft_is_known(uint64_t address, size_t bytes);
/* What of it this driver knows may be read (written) by some processor; under the lock. */
bool soft_may_copy(uint64_t address, size_t bytes, bool write);
/* The device may write all of it; under the lock. */
bool soft_may_fill(const struct device *d, uint64_t address, size_t bytes);
/* The devices that may use the context's allocations are others now; under the lock. */
void soft_share_again(struct context *owner);
/* The allocation that holds address, or NULL; under the lock. */
struct allocation *soft_allocation_at(uint64_t address);

/* ---- peer.c, all under the lock --------------------------------------------------------- */

void soft_peer_forget(struct context *ctx);   /* it has no peers and is none's any more */

/* ---- copy.c, fill.c: also behind the _ptds calls ---------------------------------------- */

enum side { SIDE_HOST, SIDE_DEVICE, SIDE_ANY };  /* what a call says an address is */
enum when { QUEUED, WAITED_FOR };

CUresult soft_copy(CUstream stream, uint64_t dst, enum side dst_side, uint64_t src,
		   enum side src_side, size_t bytes, enum when when);
CUresult soft_copy_2d(CUstream stream, const CUDA_MEMCPY2D_v2 *c, enum when when);
CUresult soft_copy_3d(CUstream stream, const CUDA_MEMCPY3D_v2 *c, enum when when);
CUresult soft_copy_peer(CUstream stream, CUdeviceptr dst, CUcontext dst_context,
			CUdeviceptr src, CUcontext src_context, size_t bytes);
CUresult soft_copy_3d_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *c);
CUresult soft_fill(CUstream stream, CUdeviceptr dst, size_t pitch, unsigned element_bytes,
		   uint32_t value, size_t width, size_t height);

/* ---- image.c, module.c, library.c, function.c ------------------------------------------- */

struct jit_log {                     /* where a load call's caller reads what went wrong */
	char *info, *error;
	size_t info_bytes, error_bytes;
	void **info_filled, **error_filled, **wall_time;
};

CUresult soft_jit_options(unsigned n, CUjit_option *options, void **values,
			  struct jit_log *out);
CUresult soft_jit_error(const struct jit_log *log, CUresult r, const char *text);
void soft_jit_done(const struct jit_log *log, const char *info);

struct soft_image { /* the PTX that is to be loaded, and what it was unpacked into */
	const char *text; /* text_bytes long, then NUL */
	size_t text_bytes;
	gpul_source *source; /* of a fatbin */
	gpul_unpacked unpacked;
	char *linked;
};

/* The PTX in data, which must outlive *out; n_bytes 0: data is as long as its own headers say.  Why
 * not, in why; *out is zeroed then. */
CUresult soft_image_open(const void *data, size_t n_bytes, struct soft_image *out, char *why,
			 size_t why_bytes);
void soft_image_close(struct soft_image *image);
/* Of images that are one program for several devices the PTX to run here; NULL: there is none. */
const gpul_image *soft_best_ptx(const gpul_image *all, size_t n);
CUresult soft_open_file(const char *path, gpul_file *out); /* gpul_file_close() */

CUresult soft_code_create(const char *text, size_t text_bytes, const char *name,
			  const struct jit_log *log, struct code **out);   /* lock not held */
void soft_code_unref(struct code *c);                                      /* under the lock */
CUresult soft_module_create(struct context *ctx, struct code *code, struct module **out);
void soft_module_destroy(struct module *m);                                /* under the lock */

/* The module a library is in ctx, decoded if need be; under the lock, which may be released. */
CUresult soft_library_instance(struct library *l, struct context *ctx, struct module **out);
/* The function a CUfunction, or a CUkernel cast to one, means in ctx. */
CUresult soft_find_function(struct context *ctx, CUfunction handle, struct function **out);
int soft_blocks_per_sm(const struct function *f, int block_threads,
		       size_t dynamic_shared_bytes);

#endif
