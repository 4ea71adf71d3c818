/* cu_state_internal.h — the state of the process, its devices and contexts, and the rules of every cu* call.
 *
 *     device ── context ─┬─ stream ── op, op, op ...   (stream/)
 *                        ├─ event                      (stream/)
 *                        ├─ module ── function         (code/)     ┐ share one `code`:
 *     library ── kernel ─┴─ allocation   (memory/)                 ┘ a decoded program
 *
 * A handle that an application holds is not a pointer but the index of a row in a table (cu_handle.c), so that a stale or
 * invented handle is refused.
 *
 * One lock (soft_lock) guards every object.  It is released during work that can take long: parsing,
 * copying, starting a kernel, calling a function of the application.
 *
 * __CUDA_API_VERSION_INTERNAL makes <cuda.h> declare every version of every call under its own name
 * (cuMemAlloc_v2, cuLaunchKernel_ptsz), so that the compiler checks the definitions here. */
#ifndef GPULOAD_SOFTCUDA_API_BASE_CU_STATE_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_BASE_CU_STATE_INTERNAL_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <pthread.h>
#include <stdint.h>

#include "softcuda/api/base/cu_list_internal.h"
#include "softcuda/api/base/cu_older_cuda_internal.h"
#include "softcuda/exec/exec.h"

#define EXPORT      __attribute__((visibility("default")))
#define DEVICE_NAME "gpuload software GPU"

/* ---- the limits of the device that this driver presents: mostly those of an H100 -------- */

enum {
	DRIVER_VERSION = 13000,
	DEFAULT_CC = 90,
	WARP_THREADS = 32,
	MAX_BLOCK_THREADS = 1024,
	MAX_BLOCK_Z = 64,
	MAX_GRID_YZ = 65535,
	SM_THREADS = GPUL_EXEC_SM_THREADS,
	SM_BLOCKS = GPUL_EXEC_SM_BLOCKS,
	SM_REGISTERS = 65536,
	SM_SHARED_BYTES = GPUL_EXEC_SM_SHARED_BYTES,
	RESERVED_SHARED_BYTES = GPUL_EXEC_RESERVED_SHARED_BYTES,
	DEFAULT_SHARED_BYTES = 48 * 1024, /* a kernel can use more only with CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
	MAX_SHARED_BYTES = 227 * 1024,
	MAX_CONSTANT_BYTES = 64 * 1024,
	MAX_DEVICES = 16,
	N_LIMITS = 10, /* CU_LIMIT_MAX of CUDA 13.0 */
};
#define MAX_GRID_X 2147483647

struct stream;

struct device {
	int ordinal;             /* number of the device in this process */
	int physical;            /* number of the device in every process: see cu_visible.c */
	struct context *primary; /* the primary context, which the first cuDevicePrimaryCtxRetain creates and which is never freed */
	uint64_t allocated_bytes;
	unsigned n_faults;         /* number of contexts that a fault made unusable */
	CUresult last_fault;       /* the error of the context that became unusable last */
	uint64_t graph_memory[4];  /* the four CU_GRAPH_MEM_ATTR_* attributes, in bytes */
	uint64_t graph_live_bytes; /* bytes that graphs have allocated and not freed, each allocation rounded up to pages */
};

struct context {
	struct link link; /* link in soft.contexts */
	void *handle;
	struct device *device;
	struct context *peer[MAX_DEVICES]; /* contexts whose memory this context's kernels may access (cuCtxEnablePeerAccess) */
	unsigned n_peers;
	unsigned flags;
	bool is_primary, active; /* active: the context can be used; an inactive primary context can be activated again */
	unsigned n_attached;     /* calls of cuCtxAttach that cuCtxDetach has not undone */
	unsigned n_retained;     /* for a primary context: number of calls of cuDevicePrimaryCtxRetain without a release */
	CUresult fault;          /* not 0: a kernel has failed, and every later call returns this error */
	CUfunc_cache cache_config;
	size_t limit[N_LIMITS];
	struct stream *legacy; /* the legacy default stream (handle 0) */
	struct stream *gate;   /* all later work of the context waits for the work of this stream (cuCtxWaitEvent); NULL: none */
	struct link streams, events, modules, allocations, arrays, textures;
	struct link pending; /* operations that have not ended */
	struct order *order; /* vector clock of all operations so far, for tools such as racecheck (stream/cu_order.c) */
	uint64_t next_grid_id;
};

/* ---- cu_state.c ---------------------------------------------------------------------------- */

struct soft_state {
	bool initialised;
	int n_devices, n_processors;
	int cuda;              /* the CUDA version that cuDriverGetVersion() returns */
	unsigned cc;           /* compute capability of the devices: 90 for 9.0 */
	uint64_t memory_bytes; /* memory size of each device: GPULOAD_SOFT_MEMORY, the host's memory, or the limit of a control group */
	bool in_group;         /* memory_bytes is the limit of a control group */
	struct device device[MAX_DEVICES];
	struct link libraries, contexts;
	gpul_exec_memory *memory;   /* table of the memory that kernels may access; one for all devices */
	gpul_exec_machine *machine; /* created at the first launch */
	size_t heap_bytes;
	uint32_t pending_launches; /* how many launches by kernels (dynamic parallelism) can be pending at the same time */
	bool (*device_attribute)(unsigned device, int attribute, int *value); /* called by kernels; see gpul_exec_machine_options */
	uint64_t next_id;                                                     /* the next id of a stream or an allocation */
	/* Called before an operation is queued, with the lock held; NULL: nothing to do.  Set by cu_multicast_copies.c. */
	void (*before_work)(void);
};
extern struct soft_state soft;

void soft_lock(void);
void soft_unlock(void);
void soft_wait_on(pthread_cond_t *condition); /* releases the lock while it waits */
void soft_wait_change(void);                  /* the caller holds the lock: sleep until soft_changed() */
void soft_changed(void);                      /* the caller holds the lock: wake soft_wait_change() */
/* Begin a call that needs no context.  Returns CUDA_ERROR_NOT_INITIALIZED before cuInit, and CUDA_ERROR_NOT_PERMITTED in a
 * callback of the application.  soft_lock_initialised(): the lock is held on success. */
CUresult soft_check_initialised(void);
CUresult soft_lock_initialised(void);
/* Like soft_lock_initialised(), for the few calls that callbacks may make: those for a stream that the application created, except
 * copies, kernel launches and allocations; those for an event; and those for some types of graph nodes. */
CUresult soft_lock_also_in_callback(void);
bool soft_is_in_callback(void);
/* Record that the calling thread is about to call a function of the application (`begins`), or has returned from it. */
void soft_in_callback(bool begins);
/* Begin a call that needs a current context, which *out receives; the lock is held on success. */
CUresult soft_enter(struct context **out);
/* Like soft_enter(), but succeeds even if the context has had a fault: for property queries. */
CUresult soft_enter_after_fault(struct context **out);
/* Get an attribute of a device; attribute 0 is the number of devices; false: no such attribute.  Takes no lock, because kernels call it. */
bool soft_device_attribute(unsigned device, int attribute, int *value);
CUresult soft_find_device(CUdevice dev, struct device **out);
CUresult soft_find_context(CUcontext handle, struct context **out); /* the caller holds the lock */
uint64_t soft_thread_id(void);                                      /* the number of the calling thread, from 1 */

/* Read or change the calling thread's stack of current contexts. */
void *soft_current(void);
void soft_set_current(void *handle);
bool soft_push_current(void *handle);
bool soft_pop_current(void **handle);

/* ---- cu_visible.c -------------------------------------------------------------------------- */

CUresult soft_choose_devices(void); /* fills in soft.device; called by cuInit */
/* cu_init.c: choose compute capability, CUDA version and memory size of devices.  *in_group: true if a control group limits the size. */
CUresult soft_choose_cc(unsigned *out);
CUresult soft_choose_version(int *out); /* the CUDA version that cuDriverGetVersion() returns */
CUresult soft_choose_memory(uint64_t *bytes, bool *in_group);
int soft_count_physical(void);                   /* counts the devices of the machine, including those that CUDA_VISIBLE_DEVICES hides */
void soft_uuid_text(int physical, char out[48]); /* write the UUID as nvidia-smi does, "GPU-..." */
void soft_device_uuid(const struct device *d, CUuuid *out);       /* the UUID is the same in every process */
struct device *soft_device_of_uuid(const unsigned char uuid[16]); /* returns NULL if this process does not see the device */

/* ---- cu_handle.c: the caller holds the lock ------------------------------------------------ */

/* clang-format off */
/* at most 31 kinds, because cu_handle.c has 5 bits for them */
enum handle_kind {
	HANDLE_NONE, HANDLE_CONTEXT, HANDLE_MODULE, HANDLE_FUNCTION, HANDLE_LIBRARY,
	HANDLE_KERNEL, HANDLE_STREAM, HANDLE_EVENT, HANDLE_POOL, HANDLE_ALLOCATION,
	HANDLE_LINKER, HANDLE_MEMORY, HANDLE_MAPPING, HANDLE_GRAPH, HANDLE_NODE, HANDLE_GRAPH_EXEC,
	HANDLE_ARRAY, HANDLE_MIPMAP, HANDLE_TEXTURE_REF, HANDLE_SURFACE_REF, HANDLE_USER_OBJECT,
};
/* clang-format on */

void *soft_handle_new(enum handle_kind kind, void *object); /* NULL: out of memory */
void *soft_handle_find(enum handle_kind kind, const void *handle);
void soft_handle_free(const void *handle);                       /* accepts NULL */
bool soft_handle_was(enum handle_kind kind, const void *handle); /* returns true if the handle was valid at an earlier time */

/* ---- cu_tools.c: start the tools that GPULOAD_SOFT_TOOLS names, before any code is loaded --------- */

CUresult soft_start_tools(void);
/* Call this before a context is destroyed.  If tools are loaded, it waits some seconds for the context's kernels to end, so that
 * the tools check them completely.  The caller holds the lock, which is released during the wait. */
void soft_tools_await(struct context *ctx);

/* ---- cu_report.c: messages to the user ----------------------------------------------------- */

/* Return r and log the reason.  A mistake of the application is logged as a notice by gpul_log_mistake(), unless GPULOAD_SOFT_QUIET=1.  A
 * result that applications also cause on purpose, such as CUDA_ERROR_NOT_SUPPORTED, is logged at level info. */
CUresult soft_refuse(CUresult r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Return r, which is an expected result in this case, and log the reason at level info. */
CUresult soft_answer(CUresult r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Return r, and explain why the handle is not valid.  The caller holds the lock. */
CUresult soft_refuse_handle(CUresult r, enum handle_kind kind, const void *handle);
/* Store the reason of a kernel's fault, or why a kernel cannot run, for gpuloadSoftLastFault; print it unless GPULOAD_SOFT_QUIET=1. */
void soft_report_fault(const char *text);
/* Like soft_report_fault(), for a kernel's fault; adds the line of CUDA C++ that caused the fault. */
void soft_report_kernel_fault(const gpul_exec_fault *fault);
/* cu_source_line.c: write the CUDA C++ line of a fault, without its newline; "" if it is unknown or the file has changed. loaded:
 * when images were first loaded, in seconds since 1970. */
void soft_source_line(const gpul_exec_fault *fault, int64_t loaded, char *buf, size_t buf_bytes);
/* Return the name that messages use for an image in memory: see gpuloadSoftNameImages. */
const char *soft_image_name(void);

/* ---- cu_thread.c ---------------------------------------------------------------------------- */

enum { SOURCE_LINE_BYTES = 200 };

struct thread_texts { /* the texts of the calling thread; all zeros at first */
	char fault[sizeof(((gpul_exec_fault *)NULL)->text)], line[SOURCE_LINE_BYTES];
	char image_name[128]; /* name of the images that the thread loads from memory; "": no name was set */
	gpul_error tools;
};

/* Return the texts of this thread.  NULL: out of memory, or create is false and the thread has none yet. */
struct thread_texts *soft_thread_texts(bool create);

/* ---- cu_readable.c -------------------------------------------------------------------------- */

/* Returns true if at least one byte of each page of this memory can be read.  Takes about 25 ns. */
bool soft_is_readable(const void *data, size_t bytes);

/* ---- cu_settle.c: the caller holds the lock ------------------------------------------------- */

struct move { /* a copy or fill that is running; the ranges include the gaps between the rows of a 2D copy */
	struct link link;
	uint64_t dst, src;
	size_t dst_bytes, src_bytes;
};

void soft_move_begin(struct move *m);
void soft_move_end(struct move *m);
/* Wait until running copies, and memory accesses that kernels have begun, no longer use [base, base + bytes); does not wait for whole
 * kernels. The caller has removed the range from the table of memory that kernels may access. May release the lock. */
void soft_settle(uint64_t base, size_t bytes);

#endif
