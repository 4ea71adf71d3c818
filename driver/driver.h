/* driver.h — the CUDA driver, real or software, behind one table. */
#ifndef GPULOAD_DRIVER_DRIVER_H
#define GPULOAD_DRIVER_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every entry point used, under NVIDIA's own name: search the manual for it.  <cuda.h> maps a name
 * to its current version (cuMemAlloc is cuMemAlloc_v2); the table's fields follow it. */
#define GPUL_DRIVER_CALLS(X)                                                                    \
	X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString)                   \
	X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute)           \
	X(cuDeviceTotalMem) X(cuDeviceGetUuid) X(cuDeviceGetPCIBusId)                           \
	X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease)                                \
	X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxSynchronize) X(cuCtxGetLimit) X(cuCtxSetLimit) \
	X(cuLibraryLoadData) X(cuLibraryUnload) X(cuLibraryGetKernel) X(cuLibraryGetGlobal)     \
	X(cuLibraryGetModule) X(cuKernelGetFunction) X(cuKernelGetName)                         \
	X(cuLibraryGetKernelCount) X(cuLibraryEnumerateKernels)                                 \
	X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuModuleGetGlobal)       \
	X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuFuncGetParamInfo)                       \
	X(cuFuncGetName) X(cuCtxGetDevice)                                                      \
	X(cuMemAlloc) X(cuMemFree) X(cuMemGetInfo) X(cuMemsetD8Async)                           \
	X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync)               \
	X(cuMemHostAlloc) X(cuMemFreeHost)                                                      \
	X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery)            \
	X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize)               \
	X(cuEventQuery) X(cuEventElapsedTime)                                                   \
	X(cuLaunchKernel) X(cuLaunchCooperativeKernel)                                          \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                          \
	GPUL_DRIVER_MEMORY_CALLS(X)                                                             \
	GPUL_DRIVER_RUNTIME_CALLS(X)

/* What memory that processes share needs (memalloc, ipc). */
#define GPUL_DRIVER_MEMORY_CALLS(X)                                                             \
	X(cuMemGetAllocationGranularity) X(cuMemCreate) X(cuMemRelease)                         \
	X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemMap) X(cuMemUnmap)                    \
	X(cuMemSetAccess) X(cuMemGetAccess) X(cuMemRetainAllocationHandle)                      \
	X(cuMemGetAllocationPropertiesFromHandle)                                               \
	X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle)                       \
	X(cuMemGetAddressRange) X(cuPointerGetAttribute) X(cuDeviceGetP2PAttribute)             \
	X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle)                       \
	X(cuIpcGetEventHandle) X(cuIpcOpenEventHandle) X(cuCtxRecordEvent)

/* What the mini runtime (loader/runtime) forwards to beside those. */
#define GPUL_DRIVER_RUNTIME_CALLS(X)                                                            \
	X(cuCtxGetStreamPriorityRange)                                                          \
	X(cuCtxEnablePeerAccess) X(cuCtxDisablePeerAccess) X(cuDeviceCanAccessPeer)             \
	X(cuDevicePrimaryCtxReset) X(cuDevicePrimaryCtxSetFlags) X(cuDevicePrimaryCtxGetState)  \
	X(cuMemcpyPeer) X(cuMemcpyPeerAsync) X(cuMemcpy) X(cuMemcpyAsync) X(cuMemcpyDtoD) X(cuMemcpyDtoDAsync)                       \
	X(cuMemcpy2DUnaligned) X(cuMemcpy2DAsync) X(cuMemsetD2D8Async)                          \
	X(cuMemAllocPitch) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuMemHostGetDevicePointer)    \
	X(cuMemHostGetFlags) X(cuMemHostRegister) X(cuMemHostUnregister) X(cuPointerGetAttributes) \
	X(cuStreamCreateWithPriority) X(cuStreamWaitEvent) X(cuStreamAddCallback)               \
	X(cuStreamGetFlags) X(cuStreamGetPriority) X(cuLaunchHostFunc) X(cuEventRecordWithFlags) \
	X(cuLaunchKernelEx) X(cuFuncSetCacheConfig)                                             \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)                                 \
	X(cuOccupancyAvailableDynamicSMemPerBlock)                                              \
	X(cuLinkCreate) X(cuLinkAddData) X(cuLinkComplete) X(cuLinkDestroy) X(cuGetProcAddress)

typedef struct gpul_driver {
	const char *name;            /* "nvidia", "soft", or a test driver's: for messages */
	const char *path;            /* the shared object; NULL: a test driver */
	int version;                 /* of cuDriverGetVersion: 1000 * major + 10 * minor */

	/* What the driver can do.  Code above driver/ decides by these, never by name. */
	bool runs_machine_code;      /* it loads cubins; false: PTX only */
	bool interprets;             /* kernels are interpreted on the CPU, far slower than on a GPU */
	bool fds_are_files;          /* an exported descriptor is a sealed regular file */
	const char *const *open_env; /* "NAME=value" strings, ended by NULL, that make another process
	                              * open this driver; NULL: no other process can */

	const char *(*last_fault)(void);   /* why a kernel faulted, "" if none did; NULL: not reported */
	void (*name_images)(const char *); /* sets what faults call images that this thread loads; or NULL */
#ifdef __cplusplus                         /* which has a member's name hide the function's */
#define X(fn) __typeof__(::fn) *fn;
#else
#define X(fn) __typeof__(fn) *fn;          /* type from <cuda.h>: cannot drift */
#endif
	GPUL_DRIVER_CALLS(X)
#undef X
} gpul_driver;

typedef enum gpul_driver_choice {
	GPUL_DRIVER_AUTO, GPUL_DRIVER_NVIDIA, GPUL_DRIVER_SOFT
} gpul_driver_choice;

/** Parse "auto", "nvidia" or "soft"; false: none of them. */
bool gpul_driver_choice_parse(const char *text, gpul_driver_choice *out);

/** Find, dlopen and initialise (cuInit) a driver.
 *
 * AUTO takes NVIDIA's when it reports a device, else the software one, and says so once on stderr (as
 * a notice: see core/log.h).  libcuda-soft.so is $GPULOAD_SOFT_DRIVER where that is set; else it is
 * looked for beside this library or program, then in the install prefix's lib folder, then by the
 * dynamic linker's own rules.
 *
 * @choice  which; AUTO also honours the environment variable GPULOAD_DRIVER
 * @out     the table; lives until the process ends (drivers cannot be unloaded safely); not to be
 *          freed
 * Errors   GPUL_EUNSUPPORTED no such driver here, or no device: says which were tried and why each
 *          was left; GPUL_EINVAL GPULOAD_DRIVER is not auto, nvidia or soft; GPUL_ECUDA cuInit refused
 * Threads  any thread may call; the same table each time
 * Source   CUDA Driver API, Initialization; Driver Entry Point Access */
gpul_status gpul_driver_open(gpul_driver_choice choice, const gpul_driver **out, gpul_error *err);

/* Call through the table; a failure's text names the call.  An entry point that the driver lacks is in
 * the table too, and answers CUDA_ERROR_NOT_SUPPORTED. */
#define gpul_cu(drv, err, call) gpul_cu_status((drv), (err), (drv)->call, #call)

/* GPUL_OK for CUDA_SUCCESS; else GPUL_ECUDA with native = r and, in the text, the call, the error's
 * name, its meaning in the driver's words and, where something can be done about it, what.
 * GPUL_EUNSUPPORTED when the driver is too old to have the call. */
gpul_status gpul_cu_status(const gpul_driver *drv, gpul_error *err, CUresult r, const char *call);

/* What to do about a driver error, in one phrase; "" where we know of nothing. */
const char *gpul_cu_advice(CUresult r);

/* True when this driver has the entry point, named as in the manual or as <cuda.h> maps it. */
bool gpul_driver_has(const gpul_driver *drv, const char *entry_point);

#ifdef __cplusplus
}
#endif

#endif
