/* driver.h — opens a CUDA driver, NVIDIA's or the software driver, as a table of functions. */
#ifndef GPULOAD_DRIVER_DRIVER_H
#define GPULOAD_DRIVER_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every entry point that gpuload uses, by its name in the CUDA Driver API manual.  <cuda.h> maps a name to its current
 * version (cuMemAlloc to cuMemAlloc_v2); the table has that version. */
/* clang-format off */
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
	X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuStreamIsCapturing)                    \
	X(cuThreadExchangeStreamCaptureMode) X(cuGraphInstantiate) X(cuGraphLaunch)             \
	X(cuGraphGetNodes) X(cuGraphDestroy) X(cuGraphExecDestroy)                              \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                          \
	GPUL_DRIVER_MEMORY_CALLS(X)                                                             \
	GPUL_DRIVER_RUNTIME_CALLS(X)
/* clang-format on */

/* Entry points for memory that processes share (memalloc, ipc). */
/* clang-format off */
#define GPUL_DRIVER_MEMORY_CALLS(X)                                                             \
	X(cuMemGetAllocationGranularity) X(cuMemCreate) X(cuMemRelease)                         \
	X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemMap) X(cuMemUnmap)                    \
	X(cuMemSetAccess) X(cuMemGetAccess) X(cuMemRetainAllocationHandle)                      \
	X(cuMemGetAllocationPropertiesFromHandle)                                               \
	X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle)                       \
	X(cuMemGetAddressRange) X(cuMemGetHandleForAddressRange)                                \
	X(cuPointerGetAttribute) X(cuDeviceGetP2PAttribute)                                     \
	X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle)                       \
	X(cuIpcGetEventHandle) X(cuIpcOpenEventHandle) X(cuCtxRecordEvent)                       \
	X(cuFlushGPUDirectRDMAWrites)
/* clang-format on */

/* Further entry points that the mini runtime (nvidia/cudart) calls. */
/* clang-format off */
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
	X(cuLinkCreate) X(cuLinkAddData) X(cuLinkComplete) X(cuLinkDestroy) X(cuGetProcAddress) \
	X(cuDeviceGetByPCIBusId) X(cuDeviceGetTexture1DLinearMaxWidth) X(cuCtxGetCacheConfig)   \
	X(cuCtxSetCacheConfig) X(cuCtxResetPersistingL2Cache) X(cuGetExportTable)               \
	X(cuOccupancyMaxPotentialClusterSize) X(cuOccupancyMaxActiveClusters)                   \
	X(cuLibraryLoadFromFile) X(cuLibraryGetManaged) X(cuLibraryGetUnifiedFunction)          \
	X(cuKernelSetAttribute) X(cuKernelGetAttribute)                                         \
	X(cuStreamGetId) X(cuStreamGetCtx) X(cuStreamCopyAttributes) X(cuStreamGetAttribute)    \
	X(cuStreamSetAttribute) X(cuStreamAttachMemAsync) X(cuStreamBeginCaptureToGraph)        \
	X(cuStreamGetCaptureInfo_v3) X(cuStreamUpdateCaptureDependencies_v2)                    \
	X(cuMemAllocManaged) X(cuMemAdvise_v2) X(cuMemPrefetchAsync_v2) X(cuMemRangeGetAttribute) \
	X(cuMemRangeGetAttributes) X(cuMemcpy3D) X(cuMemcpy3DAsync) X(cuMemcpy3DPeer)           \
	X(cuMemcpy3DPeerAsync)                                                                  \
	GPUL_DRIVER_POOL_CALLS(X) GPUL_DRIVER_ARRAY_CALLS(X) GPUL_DRIVER_GRAPH_CALLS(X)         \
	GPUL_DRIVER_CALLS_OF_12080(X) GPUL_DRIVER_CALLS_OF_13000(X)
/* clang-format on */

/* Memory pools. */
/* clang-format off */
#define GPUL_DRIVER_POOL_CALLS(X)                                                               \
	X(cuDeviceGetDefaultMemPool) X(cuDeviceGetMemPool) X(cuDeviceSetMemPool)                \
	X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolSetAttribute) X(cuMemPoolGetAttribute) \
	X(cuMemPoolSetAccess) X(cuMemPoolGetAccess) X(cuMemPoolTrimTo)                          \
	X(cuMemPoolExportToShareableHandle) X(cuMemPoolImportFromShareableHandle)               \
	X(cuMemPoolExportPointer) X(cuMemPoolImportPointer) X(cuMemAllocFromPoolAsync)          \
	X(cuDeviceGraphMemTrim) X(cuDeviceGetGraphMemAttribute) X(cuDeviceSetGraphMemAttribute)
/* clang-format on */

/* Arrays, textures and surfaces. */
/* clang-format off */
#define GPUL_DRIVER_ARRAY_CALLS(X)                                                              \
	X(cuArray3DCreate) X(cuArrayDestroy) X(cuArray3DGetDescriptor) X(cuArrayGetPlane)       \
	X(cuArrayGetSparseProperties) X(cuArrayGetMemoryRequirements)                           \
	X(cuMipmappedArrayCreate) X(cuMipmappedArrayDestroy) X(cuMipmappedArrayGetLevel)        \
	X(cuMipmappedArrayGetSparseProperties) X(cuMipmappedArrayGetMemoryRequirements)         \
	X(cuTexObjectCreate) X(cuTexObjectDestroy) X(cuTexObjectGetResourceDesc)                \
	X(cuTexObjectGetTextureDesc) X(cuTexObjectGetResourceViewDesc)                          \
	X(cuSurfObjectCreate) X(cuSurfObjectDestroy) X(cuSurfObjectGetResourceDesc)
/* clang-format on */

/* Graphs.  A name has its version (_v2) where the plain name has another interface in older headers. */
/* clang-format off */
#define GPUL_DRIVER_GRAPH_CALLS(X)                                                              \
	X(cuGraphCreate) X(cuGraphClone) X(cuGraphGetRootNodes) X(cuGraphGetEdges_v2)           \
	X(cuGraphNodeGetType) X(cuGraphNodeFindInClone) X(cuGraphNodeGetDependencies_v2)        \
	X(cuGraphNodeGetDependentNodes_v2) X(cuGraphAddDependencies_v2)                         \
	X(cuGraphRemoveDependencies_v2) X(cuGraphDestroyNode) X(cuGraphAddNode_v2)              \
	X(cuGraphNodeSetParams) X(cuGraphDebugDotPrint) X(cuGraphConditionalHandleCreate)       \
	X(cuGraphAddKernelNode) X(cuGraphKernelNodeGetParams) X(cuGraphKernelNodeSetParams)     \
	X(cuGraphKernelNodeCopyAttributes) X(cuGraphKernelNodeGetAttribute)                     \
	X(cuGraphKernelNodeSetAttribute) X(cuGraphAddMemcpyNode) X(cuGraphMemcpyNodeGetParams)  \
	X(cuGraphMemcpyNodeSetParams) X(cuGraphAddMemsetNode) X(cuGraphMemsetNodeGetParams)     \
	X(cuGraphMemsetNodeSetParams) X(cuGraphAddHostNode) X(cuGraphHostNodeGetParams)         \
	X(cuGraphHostNodeSetParams) X(cuGraphAddChildGraphNode) X(cuGraphChildGraphNodeGetGraph) \
	X(cuGraphAddEmptyNode) X(cuGraphAddEventRecordNode) X(cuGraphEventRecordNodeGetEvent)   \
	X(cuGraphEventRecordNodeSetEvent) X(cuGraphAddEventWaitNode)                            \
	X(cuGraphEventWaitNodeGetEvent) X(cuGraphEventWaitNodeSetEvent) X(cuGraphAddMemAllocNode) \
	X(cuGraphMemAllocNodeGetParams) X(cuGraphAddMemFreeNode) X(cuGraphMemFreeNodeGetParams) \
	X(cuGraphInstantiateWithParams) X(cuGraphExecGetFlags) X(cuGraphUpload)                 \
	X(cuGraphExecUpdate) X(cuGraphExecKernelNodeSetParams) X(cuGraphExecMemcpyNodeSetParams) \
	X(cuGraphExecMemsetNodeSetParams) X(cuGraphExecHostNodeSetParams)                       \
	X(cuGraphExecChildGraphNodeSetParams) X(cuGraphExecEventRecordNodeSetEvent)             \
	X(cuGraphExecEventWaitNodeSetEvent) X(cuGraphExecNodeSetParams) X(cuGraphNodeSetEnabled) \
	X(cuGraphNodeGetEnabled) X(cuUserObjectCreate) X(cuUserObjectRetain)                    \
	X(cuUserObjectRelease) X(cuGraphRetainUserObject) X(cuGraphReleaseUserObject)
/* clang-format on */

/* Entry points that older headers lack. */
#if CUDA_VERSION >= 12080
#define GPUL_DRIVER_CALLS_OF_12080(X) X(cuStreamGetDevice)
#else
#define GPUL_DRIVER_CALLS_OF_12080(X)
#endif
#if CUDA_VERSION >= 13000
/* clang-format off */
#define GPUL_DRIVER_CALLS_OF_13000(X)                                                           \
	X(cuMemGetDefaultMemPool) X(cuMemGetMemPool) X(cuMemSetMemPool)                         \
	X(cuMemPrefetchBatchAsync) X(cuMemDiscardBatchAsync) X(cuMemDiscardAndPrefetchBatchAsync) \
	X(cuMemcpyBatchAsync) X(cuMemcpy3DBatchAsync) X(cuDeviceGetHostAtomicCapabilities)      \
	X(cuDeviceGetP2PAtomicCapabilities)
/* clang-format on */
#else
#define GPUL_DRIVER_CALLS_OF_13000(X)
#endif

typedef struct gpul_driver {
	const char *name; /* "nvidia", "soft" or the name of a test driver: for messages */
	const char *path; /* the shared object; NULL: a test driver */
	int version;      /* result of cuDriverGetVersion: 1000 * major + 10 * minor */

	/* Capabilities.  Code outside of driver/ tests these, never the name. */
	bool runs_machine_code;      /* loads cubins; false: PTX only */
	bool interprets;             /* kernels are interpreted on the CPU, far slower than on a GPU */
	bool fds_are_files;          /* an exported descriptor is a sealed regular file */
	const char *const *open_env; /* list of "NAME=value", terminated by NULL: a process with these settings in its environment
				      * opens the same driver; NULL: no other process can open it */

	const char *(*last_fault)(void);              /* why the last kernel failed, or why the driver refused the last kernel; "": no
					       * failure; NULL: not supported */
	const char *(*last_fault_line)(void);         /* line of CUDA C++ that caused this failure; "": unknown; NULL: not supported */
	void (*print_faults)(int);                    /* 1: the driver prints faults of kernels on stderr; 0 (set by gpul_driver_open()):
	                                    * gpul_cu_status() reports them; NULL: not supported */
	int (*finish_tools)(int at_once);             /* software driver: finish the tools of GPULOAD_SOFT_TOOLS, immediately (1) or when no
					       * kernel runs any more (0); returns the number of errors that the tools have found;
					       * NULL: not supported */
	const char *(*check_tools)(const char *list); /* software driver: explains an invalid list of tools for GPULOAD_SOFT_TOOLS; "":
	                                    * valid; NULL: not supported */
	void (*forget_memory)(CUdeviceptr address, size_t bytes); /* software driver: tools treat this memory of cuMemAlloc as never
	                                    * written; no kernel may be using it; NULL: not supported */
	void (*name_images)(const char *);                        /* sets the name that fault messages use for the images that this
								   * thread loads next; NULL: not supported */
#ifdef __cplusplus                                                /* in C++ the member's name hides the function of that name, hence :: */
#define X(fn) __typeof__(::fn) *fn;
#else
	/* clang-format off */
#define X(fn) __typeof__(fn) *fn;          /* the type comes from <cuda.h> */
/* clang-format on */
#endif
	GPUL_DRIVER_CALLS(X)
#undef X
} gpul_driver;

/* The notice that gpul_driver_open(AUTO) logs when it opens the software driver begins with this text, or, if NVIDIA's driver is
 * installed, with the reason why it cannot be used. */
#define GPUL_NO_NVIDIA_DRIVER "no NVIDIA driver is installed"

typedef enum gpul_driver_choice { GPUL_DRIVER_AUTO, GPUL_DRIVER_NVIDIA, GPUL_DRIVER_SOFT } gpul_driver_choice;

/** Parse "auto", "nvidia" or "soft"; returns false for any other text. */
bool gpul_driver_choice_parse(const char *text, gpul_driver_choice *out);

/** Find, dlopen and initialise (cuInit) a driver.
 *
 * AUTO opens NVIDIA's driver if it reports a device, else the software driver, and then logs one notice on stderr
 * (core/log.h).  $GPULOAD_SOFT_DRIVER is the path of libcuda-soft.so; if it is not set, libcuda-soft.so is searched for
 * beside this library or program, in the lib folder of the install prefix, and by the rules of dlopen().
 *
 * @choice  which driver; AUTO also reads the environment variable GPULOAD_DRIVER
 * @out     the table; valid until the process ends, because drivers cannot be unloaded safely; must not be freed
 * Errors   GPUL_EUNSUPPORTED no such driver, or no device: the text lists the drivers that were tried, each with its
 *          problem; GPUL_EINVAL GPULOAD_DRIVER is not auto, nvidia or soft; GPUL_ECUDA cuInit failed
 * Threads  any thread may call; every call returns the same table
 * Source   CUDA Driver API, Initialization; Driver Entry Point Access */
gpul_status gpul_driver_open(gpul_driver_choice choice, const gpul_driver **out, gpul_error *err);

/* Call a function of the table; the text of a failure names the function.  For an entry point that the driver lacks, the table
 * has a function that returns CUDA_ERROR_NOT_SUPPORTED. */
#define gpul_cu(drv, err, call) gpul_cu_status((drv), (err), (drv)->call, #call)

/* Convert a CUresult: GPUL_OK for CUDA_SUCCESS, else GPUL_ECUDA with native = r; the text has the call, the error's name,
 * the driver's explanation, and advice if there is some.  GPUL_EUNSUPPORTED when the driver is too old to have the call. */
gpul_status gpul_cu_status(const gpul_driver *drv, gpul_error *err, CUresult r, const char *call);

/* Returns advice about a driver error, in one phrase; "" if there is none. */
const char *gpul_cu_advice(CUresult r);

/* True if this driver has the entry point; name: as in the manual (cuMemAlloc) or as exported (cuMemAlloc_v2). */
bool gpul_driver_has(const gpul_driver *drv, const char *entry_point);

#ifdef __cplusplus
}
#endif

#endif
