/* cuda_errors.h — lists the errors of CUDA 13.0: number, name in the driver API, name in the runtime API, text.
 *
 * Both APIs use the same number for the same error.  The texts are what cuGetErrorString() and cudaGetErrorString() return, because
 * programs compare and search for them.  The numbers are not enumerators, because the headers of older toolkits lack
 * some; a name is NULL if its API does not have the error. */
#ifndef GPULOAD_CORE_CUDA_ERRORS_H
#define GPULOAD_CORE_CUDA_ERRORS_H

/* clang-format off */
#define GPUL_CUDA_ERRORS(X) \
	X(0, "CUDA_SUCCESS", "cudaSuccess", "no error") \
	X(1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue", "invalid argument") \
	X(2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "out of memory") \
	X(3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError", \
	  "initialization error") \
	X(4, "CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading", "driver shutting down") \
	X(5, "CUDA_ERROR_PROFILER_DISABLED", "cudaErrorProfilerDisabled", \
	  "profiler disabled while using external profiling tool") \
	X(6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "cudaErrorProfilerNotInitialized", \
	  "profiler not initialized: call cudaProfilerInitialize()") \
	X(7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "cudaErrorProfilerAlreadyStarted", \
	  "profiler already started") \
	X(8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "cudaErrorProfilerAlreadyStopped", \
	  "profiler already stopped") \
	X(9, NULL, "cudaErrorInvalidConfiguration", "invalid configuration argument") \
	X(12, NULL, "cudaErrorInvalidPitchValue", "invalid pitch argument") \
	X(13, NULL, "cudaErrorInvalidSymbol", "invalid device symbol") \
	X(16, NULL, "cudaErrorInvalidHostPointer", "invalid host pointer") \
	X(17, NULL, "cudaErrorInvalidDevicePointer", "invalid device pointer") \
	X(18, NULL, "cudaErrorInvalidTexture", "invalid texture reference") \
	X(19, NULL, "cudaErrorInvalidTextureBinding", "texture is not bound to a pointer") \
	X(20, NULL, "cudaErrorInvalidChannelDescriptor", "invalid channel descriptor") \
	X(21, NULL, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy") \
	X(22, NULL, "cudaErrorAddressOfConstant", "invalid address of constant") \
	X(23, NULL, "cudaErrorTextureFetchFailed", "fetch from texture failed") \
	X(24, NULL, "cudaErrorTextureNotBound", \
	  "cannot fetch from a texture that is not bound") \
	X(25, NULL, "cudaErrorSynchronizationError", "incorrect use of __syncthreads()") \
	X(26, NULL, "cudaErrorInvalidFilterSetting", \
	  "linear filtering not supported for non-float type") \
	X(27, NULL, "cudaErrorInvalidNormSetting", \
	  "read as normalized float not supported for data type") \
	X(28, NULL, "cudaErrorMixedDeviceExecution", \
	  "device emulation mode and device execution mode cannot be mixed") \
	X(31, NULL, "cudaErrorNotYetImplemented", "feature not yet implemented") \
	X(32, NULL, "cudaErrorMemoryValueTooLarge", \
	  "memory size or pointer value too large to fit in 32 bit") \
	X(34, "CUDA_ERROR_STUB_LIBRARY", "cudaErrorStubLibrary", \
	  "CUDA driver is a stub library") \
	X(35, NULL, "cudaErrorInsufficientDriver", \
	  "CUDA driver version is insufficient for CUDA runtime version") \
	X(36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "cudaErrorCallRequiresNewerDriver", \
	  "API call is not supported in the installed CUDA driver") \
	X(37, NULL, "cudaErrorInvalidSurface", "invalid surface reference") \
	X(43, NULL, "cudaErrorDuplicateVariableName", \
	  "duplicate global variable looked up by string name") \
	X(44, NULL, "cudaErrorDuplicateTextureName", \
	  "duplicate texture looked up by string name") \
	X(45, NULL, "cudaErrorDuplicateSurfaceName", \
	  "duplicate surface looked up by string name") \
	X(46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "cudaErrorDevicesUnavailable", \
	  "CUDA-capable device(s) is/are busy or unavailable") \
	X(49, NULL, "cudaErrorIncompatibleDriverContext", "incompatible driver context") \
	X(52, NULL, "cudaErrorMissingConfiguration", \
	  "__global__ function call is not configured") \
	X(53, NULL, "cudaErrorPriorLaunchFailure", \
	  "unspecified launch failure in prior launch") \
	X(65, NULL, "cudaErrorLaunchMaxDepthExceeded", \
	  "launch would exceed maximum depth of nested launches") \
	X(66, NULL, "cudaErrorLaunchFileScopedTex", \
	  "launch failed because kernel uses unsupported, file-scoped textures " \
	  "(texture objects are supported)") \
	X(67, NULL, "cudaErrorLaunchFileScopedSurf", \
	  "launch failed because kernel uses unsupported, file-scoped surfaces " \
	  "(surface objects are supported)") \
	X(68, NULL, "cudaErrorSyncDepthExceeded", \
	  "cudaDeviceSynchronize failed because caller's grid depth exceeds " \
	  "cudaLimitDevRuntimeSyncDepth") \
	X(69, NULL, "cudaErrorLaunchPendingCountExceeded", \
	  "launch failed because launch would exceed " \
	  "cudaLimitDevRuntimePendingLaunchCount") \
	X(98, NULL, "cudaErrorInvalidDeviceFunction", "invalid device function") \
	X(100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice", \
	  "no CUDA-capable device is detected") \
	X(101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice", \
	  "invalid device ordinal") \
	X(102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "cudaErrorDeviceNotLicensed", \
	  "device doesn't have valid Grid license") \
	X(103, NULL, "cudaErrorSoftwareValidityNotEstablished", "integrity checks failed") \
	X(127, NULL, "cudaErrorStartupFailure", "startup failure in cuda runtime") \
	X(200, "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage", \
	  "device kernel image is invalid") \
	X(201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized", \
	  "invalid device context") \
	X(202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", NULL, "context already current") \
	X(205, "CUDA_ERROR_MAP_FAILED", "cudaErrorMapBufferObjectFailed", \
	  "mapping of buffer object failed") \
	X(206, "CUDA_ERROR_UNMAP_FAILED", "cudaErrorUnmapBufferObjectFailed", \
	  "unmapping of buffer object failed") \
	X(207, "CUDA_ERROR_ARRAY_IS_MAPPED", "cudaErrorArrayIsMapped", "array is mapped") \
	X(208, "CUDA_ERROR_ALREADY_MAPPED", "cudaErrorAlreadyMapped", \
	  "resource already mapped") \
	X(209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice", \
	  "no kernel image is available for execution on the device") \
	X(210, "CUDA_ERROR_ALREADY_ACQUIRED", "cudaErrorAlreadyAcquired", \
	  "resource already acquired") \
	X(211, "CUDA_ERROR_NOT_MAPPED", "cudaErrorNotMapped", "resource not mapped") \
	X(212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "cudaErrorNotMappedAsArray", \
	  "resource not mapped as array") \
	X(213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "cudaErrorNotMappedAsPointer", \
	  "resource not mapped as pointer") \
	X(214, "CUDA_ERROR_ECC_UNCORRECTABLE", "cudaErrorECCUncorrectable", \
	  "uncorrectable ECC error encountered") \
	X(215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "cudaErrorUnsupportedLimit", \
	  "limit is not supported on this architecture") \
	X(216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "cudaErrorDeviceAlreadyInUse", \
	  "exclusive-thread device already in use by a different thread") \
	X(217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "cudaErrorPeerAccessUnsupported", \
	  "peer access is not supported between these two devices") \
	X(218, "CUDA_ERROR_INVALID_PTX", "cudaErrorInvalidPtx", \
	  "a PTX JIT compilation failed") \
	X(219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "cudaErrorInvalidGraphicsContext", \
	  "invalid OpenGL or DirectX context") \
	X(220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "cudaErrorNvlinkUncorrectable", \
	  "uncorrectable NVLink error detected during the execution") \
	X(221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "cudaErrorJitCompilerNotFound", \
	  "PTX JIT compiler library not found") \
	X(222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "cudaErrorUnsupportedPtxVersion", \
	  "the provided PTX was compiled with an unsupported toolchain.") \
	X(223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "cudaErrorJitCompilationDisabled", \
	  "PTX JIT compilation was disabled") \
	X(224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "cudaErrorUnsupportedExecAffinity", \
	  "the provided execution affinity is not supported") \
	X(225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", "cudaErrorUnsupportedDevSideSync", \
	  "the provided PTX contains unsupported call to cudaDeviceSynchronize") \
	X(226, "CUDA_ERROR_CONTAINED", "cudaErrorContained", \
	  "Invalid access of peer GPU memory over nvlink or a hardware error") \
	X(300, "CUDA_ERROR_INVALID_SOURCE", "cudaErrorInvalidSource", \
	  "device kernel image is invalid") \
	X(301, "CUDA_ERROR_FILE_NOT_FOUND", "cudaErrorFileNotFound", "file not found") \
	X(302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "cudaErrorSharedObjectSymbolNotFound", \
	  "shared object symbol not found") \
	X(303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "cudaErrorSharedObjectInitFailed", \
	  "shared object initialization failed") \
	X(304, "CUDA_ERROR_OPERATING_SYSTEM", "cudaErrorOperatingSystem", \
	  "OS call failed or operation not supported on this OS") \
	X(400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle", \
	  "invalid resource handle") \
	X(401, "CUDA_ERROR_ILLEGAL_STATE", "cudaErrorIllegalState", \
	  "the operation cannot be performed in the present state") \
	X(402, "CUDA_ERROR_LOSSY_QUERY", "cudaErrorLossyQuery", \
	  "attempted introspection would be semantically lossy") \
	X(500, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound", "named symbol not found") \
	X(600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady", "device not ready") \
	X(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", \
	  "an illegal memory access was encountered") \
	X(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources", \
	  "too many resources requested for launch") \
	X(702, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout", \
	  "the launch timed out and was terminated") \
	X(703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "cudaErrorLaunchIncompatibleTexturing", \
	  "launch uses incompatible texturing mode") \
	X(704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "cudaErrorPeerAccessAlreadyEnabled", \
	  "peer access is already enabled") \
	X(705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "cudaErrorPeerAccessNotEnabled", \
	  "peer access has not been enabled") \
	X(708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cudaErrorSetOnActiveProcess", \
	  "cannot set while device is active in this process") \
	X(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "cudaErrorContextIsDestroyed", \
	  "context is destroyed") \
	X(710, "CUDA_ERROR_ASSERT", "cudaErrorAssert", "device-side assert triggered") \
	X(711, "CUDA_ERROR_TOO_MANY_PEERS", "cudaErrorTooManyPeers", \
	  "peer mapping resources exhausted") \
	X(712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "cudaErrorHostMemoryAlreadyRegistered", \
	  "part or all of the requested memory range is already mapped") \
	X(713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "cudaErrorHostMemoryNotRegistered", \
	  "pointer does not correspond to a registered memory region") \
	X(714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "cudaErrorHardwareStackError", \
	  "hardware stack error") \
	X(715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "cudaErrorIllegalInstruction", \
	  "an illegal instruction was encountered") \
	X(716, "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress", \
	  "misaligned address") \
	X(717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "cudaErrorInvalidAddressSpace", \
	  "operation not supported on global/shared address space") \
	X(718, "CUDA_ERROR_INVALID_PC", "cudaErrorInvalidPc", "invalid program counter") \
	X(719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", \
	  "unspecified launch failure") \
	X(720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cudaErrorCooperativeLaunchTooLarge", \
	  "too many blocks in cooperative launch") \
	X(721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "cudaErrorTensorMemoryLeak", \
	  "tensor memory not completely freed") \
	X(800, "CUDA_ERROR_NOT_PERMITTED", "cudaErrorNotPermitted", "operation not permitted") \
	X(801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported", "operation not supported") \
	X(802, "CUDA_ERROR_SYSTEM_NOT_READY", "cudaErrorSystemNotReady", \
	  "system not yet initialized") \
	X(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "cudaErrorSystemDriverMismatch", \
	  "system has unsupported display driver / cuda driver combination") \
	X(804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "cudaErrorCompatNotSupportedOnDevice", \
	  "forward compatibility was attempted on non supported HW") \
	X(805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "cudaErrorMpsConnectionFailed", \
	  "MPS client failed to connect to the MPS control daemon or the MPS " \
	  "server") \
	X(806, "CUDA_ERROR_MPS_RPC_FAILURE", "cudaErrorMpsRpcFailure", \
	  "the remote procedural call between the MPS server and the MPS client " \
	  "failed") \
	X(807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "cudaErrorMpsServerNotReady", \
	  "MPS server is not ready to accept new MPS client requests") \
	X(808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "cudaErrorMpsMaxClientsReached", \
	  "the hardware resources required to create MPS client have been " \
	  "exhausted") \
	X(809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "cudaErrorMpsMaxConnectionsReached", \
	  "the hardware resources required to support device connections have " \
	  "been exhausted") \
	X(810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "cudaErrorMpsClientTerminated", \
	  "the MPS client has been terminated by the server") \
	X(811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "cudaErrorCdpNotSupported", \
	  "is using CUDA Dynamic Parallelism, but the current configuration, " \
	  "like MPS, does not support it") \
	X(812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "cudaErrorCdpVersionMismatch", \
	  "unsupported interaction between different versions of CUDA Dynamic " \
	  "Parallelism") \
	X(900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported", \
	  "operation not permitted when stream is capturing") \
	X(901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "cudaErrorStreamCaptureInvalidated", \
	  "operation failed due to a previous error during capture") \
	X(902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "cudaErrorStreamCaptureMerge", \
	  "operation would result in a merge of separate capture sequences") \
	X(903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "cudaErrorStreamCaptureUnmatched", \
	  "capture was not ended in the same stream as it began") \
	X(904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "cudaErrorStreamCaptureUnjoined", \
	  "capturing stream has unjoined work") \
	X(905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "cudaErrorStreamCaptureIsolation", \
	  "dependency created on uncaptured work in another stream") \
	X(906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "cudaErrorStreamCaptureImplicit", \
	  "operation would make the legacy stream depend on a capturing blocking " \
	  "stream") \
	X(907, "CUDA_ERROR_CAPTURED_EVENT", "cudaErrorCapturedEvent", \
	  "operation not permitted on an event last recorded in a capturing " \
	  "stream") \
	X(908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "cudaErrorStreamCaptureWrongThread", \
	  "attempt to terminate a thread-local capture sequence from another " \
	  "thread") \
	X(909, "CUDA_ERROR_TIMEOUT", "cudaErrorTimeout", "wait operation timed out") \
	X(910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "cudaErrorGraphExecUpdateFailure", \
	  "the graph update was not performed because it included changes which " \
	  "violated constraints specific to instantiated graph update") \
	X(911, "CUDA_ERROR_EXTERNAL_DEVICE", "cudaErrorExternalDevice", \
	  "an async error has occured in external entity outside of CUDA") \
	X(912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cudaErrorInvalidClusterSize", \
	  "a kernel launch error has occurred due to cluster misconfiguration") \
	X(913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "cudaErrorFunctionNotLoaded", \
	  "the function handle is not loaded when calling an API that requires a " \
	  "loaded function") \
	X(914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "cudaErrorInvalidResourceType", \
	  "one or more resources passed in are not valid resource types for the " \
	  "operation") \
	X(915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "cudaErrorInvalidResourceConfiguration", \
	  "one or more resources are insufficient or non-applicable for the " \
	  "operation") \
	X(916, "CUDA_ERROR_KEY_ROTATION", NULL, \
	  "an operation failed because of a key rotation") \
	X(999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "unknown error") \
	X(10000, NULL, "cudaErrorApiFailureBase", "api failure base")
/* clang-format on */

#endif
