/* runtime_internal.h — what the files of the mini runtime share.
 *
 *     a call ─ gpul_rt_enter: driver open? this thread's device current? ─ one driver call
 *            ─ gpul_rt_told: CUresult becomes cudaError_t, is kept for cudaGetLastError
 *
 * <cuda_runtime_api.h> declares every call defined here, so that no signature can drift.  A
 * program built with --default-stream per-thread calls names that end in _ptds (no stream
 * argument) and _ptsz (with one): the files that define those are compiled a second time with
 * GPUL_RT_PER_THREAD, and the header itself renames what they define. */
#ifndef GPULOAD_LOADER_RUNTIME_RUNTIME_INTERNAL_H
#define GPULOAD_LOADER_RUNTIME_RUNTIME_INTERNAL_H

#include "driver/driver.h"

#ifdef GPUL_RT_PER_THREAD
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#endif
#include <cuda_runtime_api.h>

/* ---- start.c: the driver, and which device a thread works on ----------------------------- */

/* What every call that works on a device begins with: open the driver once in a process, make
 * the primary context of the thread's device current unless the program made one current
 * itself. */
cudaError_t gpul_rt_enter(const gpul_driver **drv);

/* The driver alone; cudaErrorInsufficientDriver, or cudaErrorNoDevice, when there is none. */
cudaError_t gpul_rt_driver(const gpul_driver **drv);

/* The same for cudaDriverGetVersion and error texts: NULL when there is none, and that is no
 * error. */
const gpul_driver *gpul_rt_driver_if_any(void);

/* The thread's device, and how cudaSetDevice changes it: its context is made current. */
cudaError_t gpul_rt_device(const gpul_driver *drv, int *ordinal);
cudaError_t gpul_rt_set_device(const gpul_driver *drv, int ordinal);

/* A device's primary context, retained once in the process, and not made current. */
cudaError_t gpul_rt_context(const gpul_driver *drv, int ordinal, CUcontext *out);

/* Undo the device's primary context; every thread gets a new one by its next call. */
cudaError_t gpul_rt_reset_device(const gpul_driver *drv, int ordinal);

/* True once exit() runs: from then on nothing is given back, the system does that. */
_Bool gpul_rt_exiting(void);

/* For tests: this table from now on (NULL: the one that gpul_driver_open gives), no context. */
void gpul_rt_use(const gpul_driver *drv);

/* ---- error.c ----------------------------------------------------------------------------- */

/* Call through the table; the error, if any, becomes this thread's last one. */
#define gpul_rt_cu(drv, call) gpul_rt_told((drv), (drv)->call, #call)
cudaError_t gpul_rt_told(const gpul_driver *drv, CUresult r, const char *call);

/* The same for an error of our own.  The sentence goes to the log (GPULOAD_LOG=info). */
cudaError_t gpul_rt_fail(cudaError_t e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Forget a last error that would stay: the device was reset. */
void gpul_rt_forget_fault(void);

/* ---- registry.c, load.c: host addresses, and the device code behind them ----------------- */

typedef struct gpul_rt_image gpul_rt_image;

typedef enum gpul_rt_kind { GPUL_RT_KERNEL, GPUL_RT_VARIABLE } gpul_rt_kind;

typedef struct gpul_rt_symbol {
	const void *host;     /* the stub, or the variable that shadows the device's */
	const char *name;     /* in the device code; borrowed from the program */
	gpul_rt_image *image; /* where it is */
	size_t bytes;         /* of a variable */
	gpul_rt_kind kind;
	CUkernel kernel; /* NULL: not asked for yet */
	struct gpul_rt_symbol *next_in_bucket;
} gpul_rt_symbol;

gpul_rt_image *gpul_rt_add_image(const void *wrapper);
void gpul_rt_add_symbol(gpul_rt_image *image, gpul_rt_kind kind, const void *host,
			const char *name, size_t bytes);
void gpul_rt_remove_image(gpul_rt_image *image); /* and its symbols; unloads it */

/* The kernel of a stub.  Also takes a handle that gpul_rt_kernel gave out before.  Loads its
 * fat binary the first time.  Errors: `none` when it is no kernel at all (which error that is
 * differs from call to call), cudaErrorInvalidDeviceFunction when the image has no such kernel, or
 * why the image does not load. */
cudaError_t gpul_rt_kernel(const gpul_driver *drv, const void *stub, cudaError_t none,
			   CUkernel *out);

/* The same as a function of the current context. */
cudaError_t gpul_rt_function(const gpul_driver *drv, const void *stub, CUfunction *out);

/* Where a registered variable is in the current context.  Errors: cudaErrorInvalidSymbol. */
cudaError_t gpul_rt_variable(const gpul_driver *drv, const void *host, CUdeviceptr *address,
			     size_t *bytes);

/* Wrapper (gpul_rt_wrapper) to library; links what was left unlinked.  load.c */
cudaError_t gpul_rt_load(const gpul_driver *drv, const void *wrapper, CUlibrary *out);

/* ---- streams ----------------------------------------------------------------------------- */

/* What stream 0 means to the program that calls. */
static inline CUstream gpul_rt_stream(cudaStream_t stream)
{
#ifdef GPUL_RT_PER_THREAD
	return stream ? stream : CU_STREAM_PER_THREAD;
#else
	return stream;
#endif
}

#endif
