/* rt_runtime_internal.h — declares functions that the files of the mini runtime share.
 *
 *     a runtime call ─ gpul_rt_enter: open the driver, make this thread's device current ─ one driver call
 *                    ─ gpul_rt_record: convert CUresult to cudaError_t, keep it for cudaGetLastError
 *
 * All calls are declared by <cuda_runtime_api.h>, so the compiler checks their signatures.  A program built with --default-stream
 * per-thread calls names that end in _ptds (without a stream argument) and _ptsz (with one): the files that define these are
 * compiled a second time with GPUL_RT_PER_THREAD, for which the header renames them. */
#ifndef GPULOAD_NVIDIA_CUDART_RT_RUNTIME_INTERNAL_H
#define GPULOAD_NVIDIA_CUDART_RT_RUNTIME_INTERNAL_H

#include <stdint.h>

#include "driver/driver.h"

#ifdef GPUL_RT_PER_THREAD
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#endif
#include <cuda_runtime_api.h>

/* The version of the interface that the library implements, CUDA 12 or 13: libgpuload-rt.a has that of the installed header,
 * libcudart.so.12 always that of CUDA 12.  Files whose code differs are compiled for both (rt_abi_internal.h). */
#ifndef GPUL_RT_ABI
#define GPUL_RT_ABI (CUDART_VERSION / 1000)
#endif

/* ---- rt_start.c: the driver, and the device of each thread ------------------------------------ */

/* Called first by each runtime call that uses a device: open the driver (once in a process), and make the primary
 * context of the thread's device current, unless the program has made another context current. */
cudaError_t gpul_rt_enter(const gpul_driver **drv);

/* Open the driver without making a context current.  Errors: cudaErrorInsufficientDriver, cudaErrorNoDevice. */
cudaError_t gpul_rt_driver(const gpul_driver **drv);

/* Return the driver, or NULL without an error if there is none: for cudaDriverGetVersion and error texts. */
const gpul_driver *gpul_rt_driver_if_any(void);

/* Get or set the thread's device; setting it makes its primary context current. */
cudaError_t gpul_rt_device(const gpul_driver *drv, int *ordinal);
cudaError_t gpul_rt_set_device(const gpul_driver *drv, int ordinal);

/* Get the primary context of a device, which is retained once in the process; it is not made current. */
cudaError_t gpul_rt_context(const gpul_driver *drv, int ordinal, CUcontext *out);

/* Reset the primary context of a device; the next call of each thread creates it again. */
cudaError_t gpul_rt_reset_device(const gpul_driver *drv, int ordinal);

/* True while exit() runs.  Resources are then not released here, because the system releases them when the process ends. */
_Bool gpul_rt_exiting(void);

/* For tests: use this driver from now on (NULL: the one of gpul_driver_open()); no context is current. */
void gpul_rt_use(const gpul_driver *drv);

/* ---- rt_error.c ----------------------------------------------------------------------------- */

/* Call a driver function; an error becomes the thread's last error. */
#define gpul_rt_cu(drv, call) gpul_rt_record((drv), (drv)->call, #call)
cudaError_t gpul_rt_record(const gpul_driver *drv, CUresult r, const char *call);

/* Set the thread's last error to e and return it.  The text is logged if e is a mistake of the program (gpul_log_mistake()); with
 * GPULOAD_LOG=info, it is always logged. */
cudaError_t gpul_rt_fail(cudaError_t e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Define a runtime call that makes one driver call.  `call` may use the parameters, and the driver `drv`.  The prototype is for
 * headers that do not declare the call. */
#define GPUL_RT_FORWARD(name, parameters, call) \
	cudaError_t name parameters; \
	cudaError_t name parameters \
	{ \
		const gpul_driver *drv; \
		cudaError_t e = gpul_rt_enter(&drv); \
\
		return e ? e : gpul_rt_cu(drv, call); \
	}

/* Clear a sticky last error, after the device was reset. */
void gpul_rt_forget_fault(void);

/* ---- rt_registry.c, rt_load.c: from host addresses to device code --------------------------------- */

typedef struct gpul_rt_image gpul_rt_image;

typedef enum gpul_rt_kind { GPUL_RT_KERNEL, GPUL_RT_VARIABLE, GPUL_RT_MANAGED } gpul_rt_kind;

typedef struct gpul_rt_symbol {
	const void *host;     /* the stub, or the host variable that represents the device variable */
	const char *name;     /* name in the device code; borrowed from the program */
	gpul_rt_image *image; /* the image that contains the symbol */
	size_t bytes;         /* size of a variable; unused for kernels */
	gpul_rt_kind kind;
	CUkernel kernel; /* NULL: not looked up yet */
	struct gpul_rt_symbol *next_in_bucket;
} gpul_rt_symbol;

gpul_rt_image *gpul_rt_add_image(const void *wrapper);
void gpul_rt_add_symbol(gpul_rt_image *image, gpul_rt_kind kind, const void *host, const char *name, size_t bytes);
void gpul_rt_remove_image(gpul_rt_image *image); /* unloads the image and removes its symbols */

/* Find the kernel of a stub, or of a CUkernel that this function returned before.  Loads the fatbin when it is
 * first needed.  Errors: `none` if the stub is not registered (each runtime call has its own error for this
 * case), cudaErrorInvalidDeviceFunction when the image lacks the kernel, or the error of loading the image. */
cudaError_t gpul_rt_kernel(const gpul_driver *drv, const void *stub, cudaError_t none, CUkernel *out);

/* Enter a CUkernel of the driver into the table, so that gpul_rt_kernel() accepts it in place of a stub. */
cudaError_t gpul_rt_add_handle(CUkernel kernel);

/* Return the stub of a kernel, or of its function in the current context; NULL: not registered. */
const void *gpul_rt_stub(const gpul_driver *drv, CUkernel kernel, CUfunction f);

/* Load the image of a managed variable and set the host's pointers to the managed variables of all loaded images. */
cudaError_t gpul_rt_place_managed(const gpul_driver *drv, gpul_rt_image *image);

/* Find the kernel of a stub as a function of the current context. */
cudaError_t gpul_rt_function(const gpul_driver *drv, const void *stub, CUfunction *out);

/* Find the address and size of a registered variable in the current context.  Errors: cudaErrorInvalidSymbol. */
cudaError_t gpul_rt_variable(const gpul_driver *drv, const void *host, CUdeviceptr *address, size_t *bytes);

/* Load a gpul_rt_wrapper as a library, and link its relocatable parts if needed; in rt_load.c. */
cudaError_t gpul_rt_load(const gpul_driver *drv, const void *wrapper, CUlibrary *out);

/* ---- arguments of driver calls --------------------------------------------------------------- */

static inline CUdeviceptr gpul_rt_address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/* Convert a launch configuration for the driver, without its stream; launch attributes have the same number and layout in both APIs. */
static inline CUlaunchConfig gpul_rt_config(const cudaLaunchConfig_t *config)
{
	CUlaunchConfig c = {
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes,
		.numAttrs = config->numAttrs,
	};

	__builtin_memcpy(&c.attrs, &config->attrs, sizeof c.attrs);
	return c;
}

/* Return the driver's stream for a stream argument; for stream 0, it depends on --default-stream. */
static inline CUstream gpul_rt_stream(cudaStream_t stream)
{
#ifdef GPUL_RT_PER_THREAD
	return stream ? stream : CU_STREAM_PER_THREAD;
#else
	return stream;
#endif
}

#endif
