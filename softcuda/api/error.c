/* error.c — names and descriptions of every CUresult. */
#include "softcuda/api/api_internal.h"

static const struct {
	CUresult code;
	const char *name, *text;
} errors[] = {
#define E(name, text) { CUDA_##name, "CUDA_" #name, text },
	E(SUCCESS, "no error")
	E(ERROR_INVALID_VALUE, "invalid argument")
	E(ERROR_OUT_OF_MEMORY, "out of memory")
	E(ERROR_NOT_INITIALIZED, "initialization error")
	E(ERROR_DEINITIALIZED, "driver shutting down")
	E(ERROR_PROFILER_DISABLED, "profiler disabled while using external profiling tool")
	E(ERROR_PROFILER_NOT_INITIALIZED,
	  "profiler not initialized: call cudaProfilerInitialize()")
	E(ERROR_PROFILER_ALREADY_STARTED, "profiler already started")
	E(ERROR_PROFILER_ALREADY_STOPPED, "profiler already stopped")
	E(ERROR_STUB_LIBRARY, "CUDA driver is a stub library")
	E(ERROR_CALL_REQUIRES_NEWER_DRIVER, "API call requires a newer CUDA driver")
	E(ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable")
	E(ERROR_NO_DEVICE, "no CUDA-capable device is detected")
	E(ERROR_INVALID_DEVICE, "invalid device ordinal")
	E(ERROR_DEVICE_NOT_LICENSED, "device doesn't have valid license")
	E(ERROR_INVALID_IMAGE, "device kernel image is invalid")
	E(ERROR_INVALID_CONTEXT, "invalid device context")
	E(ERROR_CONTEXT_ALREADY_CURRENT, "context already current")
	E(ERROR_MAP_FAILED, "mapping of buffer object failed")
	E(ERROR_UNMAP_FAILED, "unmapping of buffer object failed")
	E(ERROR_ARRAY_IS_MAPPED, "array is mapped")
	E(ERROR_ALREADY_MAPPED, "resource already mapped")
	E(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")
	E(ERROR_ALREADY_ACQUIRED, "resource already acquired")
	E(ERROR_NOT_MAPPED, "resource not mapped")
	E(ERROR_NOT_MAPPED_AS_ARRAY, "resource not mapped as array")
	E(ERROR_NOT_MAPPED_AS_POINTER, "resource not mapped as pointer")
	E(ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered")
	E(ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture")
	E(ERROR_CONTEXT_ALREADY_IN_USE,
	  "exclusive-thread device already in use by a different thread")
	E(ERROR_PEER_ACCESS_UNSUPPORTED,
	  "peer access is not supported between these two devices")
	E(ERROR_INVALID_PTX, "a PTX JIT compilation failed")
	E(ERROR_INVALID_GRAPHICS_CONTEXT, "invalid OpenGL or DirectX context")
	E(ERROR_NVLINK_UNCORRECTABLE,
	  "uncorrectable NVLink error detected during the execution")
	E(ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found")
	E(ERROR_UNSUPPORTED_PTX_VERSION,
	  "the provided PTX was compiled with an unsupported toolchain")
	E(ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled")
	E(ERROR_UNSUPPORTED_EXEC_AFFINITY, "the provided execution affinity is not supported")
	E(ERROR_UNSUPPORTED_DEVSIDE_SYNC,
	  "the provided PTX contains unsupported call to cudaDeviceSynchronize")
	E(ERROR_CONTAINED, "error contained: the application must be restarted")
	E(ERROR_INVALID_SOURCE, "device kernel image is invalid")
	E(ERROR_FILE_NOT_FOUND, "file not found")
	E(ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found")
	E(ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed")
	E(ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS")
	E(ERROR_INVALID_HANDLE, "invalid resource handle")
	E(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")
	E(ERROR_LOSSY_QUERY, "attempted introspection would be semantically lossy")
	E(ERROR_NOT_FOUND, "named symbol not found")
	E(ERROR_NOT_READY, "device not ready")
	E(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")
	E(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")
	E(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated")
	E(ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "launch uses incompatible texturing mode")
	E(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")
	E(ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled")
	E(ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process")
	E(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")
	E(ERROR_ASSERT, "device-side assert triggered")
	E(ERROR_TOO_MANY_PEERS, "peer mapping resources exhausted")
	E(ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	  "part or all of the requested memory range is already mapped")
	E(ERROR_HOST_MEMORY_NOT_REGISTERED,
	  "pointer does not correspond to a registered memory region")
	E(ERROR_HARDWARE_STACK_ERROR, "hardware stack error")
	E(ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered")
	E(ERROR_MISALIGNED_ADDRESS, "misaligned address")
	E(ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space")
	E(ERROR_INVALID_PC, "invalid program counter")
	E(ERROR_LAUNCH_FAILED, "unspecified launch failure")
	E(ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch")
	E(ERROR_TENSOR_MEMORY_LEAK, "tensor memory was not freed before the kernel ended")
	E(ERROR_NOT_PERMITTED, "operation not permitted")
	E(ERROR_NOT_SUPPORTED, "operation not supported")
	E(ERROR_SYSTEM_NOT_READY, "system not yet initialized")
	E(ERROR_SYSTEM_DRIVER_MISMATCH,
	  "system has unsupported display driver / cuda driver combination")
	E(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
	  "forward compatibility was attempted on non supported HW")
	E(ERROR_MPS_CONNECTION_FAILED,
	  "MPS client failed to connect to the MPS control daemon or the MPS server")
	E(ERROR_MPS_RPC_FAILURE, "MPS server failed to communicate with the MPS client")
	E(ERROR_MPS_SERVER_NOT_READY,
	  "MPS server is not ready to accept new MPS client requests")
	E(ERROR_MPS_MAX_CLIENTS_REACHED, "MPS server hit the limit of clients")
	E(ERROR_MPS_MAX_CONNECTIONS_REACHED, "MPS server hit the limit of device connections")
	E(ERROR_MPS_CLIENT_TERMINATED, "the MPS client has been terminated by the server")
	E(ERROR_CDP_NOT_SUPPORTED, "dynamic parallelism is not supported by this program")
	E(ERROR_CDP_VERSION_MISMATCH, "dynamic parallelism version mismatch")
	E(ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing")
	E(ERROR_STREAM_CAPTURE_INVALIDATED,
	  "operation failed due to a previous error during capture")
	E(ERROR_STREAM_CAPTURE_MERGE,
	  "operation would result in a merge of separate capture sequences")
	E(ERROR_STREAM_CAPTURE_UNMATCHED,
	  "capture was not ended in the same stream as it began")
	E(ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work")
	E(ERROR_STREAM_CAPTURE_ISOLATION,
	  "dependency created on uncaptured work in another stream")
	E(ERROR_STREAM_CAPTURE_IMPLICIT,
	  "operation would make the legacy stream depend on a capturing blocking stream")
	E(ERROR_CAPTURED_EVENT,
	  "operation not permitted on an event last recorded in a capturing stream")
	E(ERROR_STREAM_CAPTURE_WRONG_THREAD,
	  "attempt to terminate a thread-local capture sequence from another thread")
	E(ERROR_TIMEOUT, "wait operation timed out")
	E(ERROR_GRAPH_EXEC_UPDATE_FAILURE,
	  "the graph update was not performed because it included changes which violated "
	  "constraints specific to instantiated graph update")
	E(ERROR_EXTERNAL_DEVICE,
	  "an async error has occurred in external entity outside of CUDA")
	E(ERROR_INVALID_CLUSTER_SIZE,
	  "a kernel launch error has occurred due to cluster misconfiguration")
	E(ERROR_FUNCTION_NOT_LOADED, "the function handle is not loaded")
	E(ERROR_INVALID_RESOURCE_TYPE, "the resource type is not valid for this operation")
	E(ERROR_INVALID_RESOURCE_CONFIGURATION,
	  "the resource configuration is not valid for this operation")
	E(ERROR_KEY_ROTATION, "an operation failed because of a key rotation")
	E(ERROR_UNKNOWN, "unknown error")
#undef E
};

static int find(CUresult r)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == r)
			return (int)i;
	return -1;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **out)
{
	int row = find(error);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = row < 0 ? NULL : errors[row].name;
	return row < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **out)
{
	int row = find(error);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = row < 0 ? NULL : errors[row].text;
	return row < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
