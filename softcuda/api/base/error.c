/* error.c — names and descriptions of every CUresult of CUDA 13.0.  The codes are numbers, because an
 * older <cuda.h> does not declare all the names. */
#include "softcuda/api/base/state_internal.h"

static const struct {
	CUresult code;
	const char *name, *text;
} errors[] = {
#define E(code, name, text) { (CUresult)code, "CUDA_" #name, text },
	E(0, SUCCESS, "no error")
	E(1, ERROR_INVALID_VALUE, "invalid argument")
	E(2, ERROR_OUT_OF_MEMORY, "out of memory")
	E(3, ERROR_NOT_INITIALIZED, "initialization error")
	E(4, ERROR_DEINITIALIZED, "driver shutting down")
	E(5, ERROR_PROFILER_DISABLED, "profiler disabled while using external profiling tool")
	E(6, ERROR_PROFILER_NOT_INITIALIZED,
	  "profiler not initialized: call cudaProfilerInitialize()")
	E(7, ERROR_PROFILER_ALREADY_STARTED, "profiler already started")
	E(8, ERROR_PROFILER_ALREADY_STOPPED, "profiler already stopped")
	E(34, ERROR_STUB_LIBRARY, "CUDA driver is a stub library")
	E(36, ERROR_CALL_REQUIRES_NEWER_DRIVER, "API call requires a newer CUDA driver")
	E(46, ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable")
	E(100, ERROR_NO_DEVICE, "no CUDA-capable device is detected")
	E(101, ERROR_INVALID_DEVICE, "invalid device ordinal")
	E(102, ERROR_DEVICE_NOT_LICENSED, "device doesn't have valid license")
	E(200, ERROR_INVALID_IMAGE, "device kernel image is invalid")
	E(201, ERROR_INVALID_CONTEXT, "invalid device context")
	E(202, ERROR_CONTEXT_ALREADY_CURRENT, "context already current")
	E(205, ERROR_MAP_FAILED, "mapping of buffer object failed")
	E(206, ERROR_UNMAP_FAILED, "unmapping of buffer object failed")
	E(207, ERROR_ARRAY_IS_MAPPED, "array is mapped")
	E(208, ERROR_ALREADY_MAPPED, "resource already mapped")
	E(209, ERROR_NO_BINARY_FOR_GPU,
	  "no kernel image is available for execution on the device")
	E(210, ERROR_ALREADY_ACQUIRED, "resource already acquired")
	E(211, ERROR_NOT_MAPPED, "resource not mapped")
	E(212, ERROR_NOT_MAPPED_AS_ARRAY, "resource not mapped as array")
	E(213, ERROR_NOT_MAPPED_AS_POINTER, "resource not mapped as pointer")
	E(214, ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered")
	E(215, ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture")
	E(216, ERROR_CONTEXT_ALREADY_IN_USE,
	  "exclusive-thread device already in use by a different thread")
	E(217, ERROR_PEER_ACCESS_UNSUPPORTED,
	  "peer access is not supported between these two devices")
	E(218, ERROR_INVALID_PTX, "a PTX JIT compilation failed")
	E(219, ERROR_INVALID_GRAPHICS_CONTEXT, "invalid OpenGL or DirectX context")
	E(220, ERROR_NVLINK_UNCORRECTABLE,
	  "uncorrectable NVLink error detected during the execution")
	E(221, ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found")
	E(222, ERROR_UNSUPPORTED_PTX_VERSION,
	  "the provided PTX was compiled with an unsupported toolchain")
	E(223, ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled")
	E(224, ERROR_UNSUPPORTED_EXEC_AFFINITY,
	  "the provided execution affinity is not supported")
	E(225, ERROR_UNSUPPORTED_DEVSIDE_SYNC,
	  "the provided PTX contains unsupported call to cudaDeviceSynchronize")
	E(226, ERROR_CONTAINED, "error contained: the application must be restarted")
	E(300, ERROR_INVALID_SOURCE, "device kernel image is invalid")
	E(301, ERROR_FILE_NOT_FOUND, "file not found")
	E(302, ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found")
	E(303, ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed")
	E(304, ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS")
	E(400, ERROR_INVALID_HANDLE, "invalid resource handle")
	E(401, ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")
	E(402, ERROR_LOSSY_QUERY, "attempted introspection would be semantically lossy")
	E(500, ERROR_NOT_FOUND, "named symbol not found")
	E(600, ERROR_NOT_READY, "device not ready")
	E(700, ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")
	E(701, ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")
	E(702, ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated")
	E(703, ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "launch uses incompatible texturing mode")
	E(704, ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")
	E(705, ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled")
	E(708, ERROR_PRIMARY_CONTEXT_ACTIVE,
	  "cannot set while device is active in this process")
	E(709, ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")
	E(710, ERROR_ASSERT, "device-side assert triggered")
	E(711, ERROR_TOO_MANY_PEERS, "peer mapping resources exhausted")
	E(712, ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	  "part or all of the requested memory range is already mapped")
	E(713, ERROR_HOST_MEMORY_NOT_REGISTERED,
	  "pointer does not correspond to a registered memory region")
	E(714, ERROR_HARDWARE_STACK_ERROR, "hardware stack error")
	E(715, ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered")
	E(716, ERROR_MISALIGNED_ADDRESS, "misaligned address")
	E(717, ERROR_INVALID_ADDRESS_SPACE,
	  "operation not supported on global/shared address space")
	E(718, ERROR_INVALID_PC, "invalid program counter")
	E(719, ERROR_LAUNCH_FAILED, "unspecified launch failure")
	E(720, ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch")
	E(721, ERROR_TENSOR_MEMORY_LEAK, "tensor memory was not freed before the kernel ended")
	E(800, ERROR_NOT_PERMITTED, "operation not permitted")
	E(801, ERROR_NOT_SUPPORTED, "operation not supported")
	E(802, ERROR_SYSTEM_NOT_READY, "system not yet initialized")
	E(803, ERROR_SYSTEM_DRIVER_MISMATCH,
	  "system has unsupported display driver / cuda driver combination")
	E(804, ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
	  "forward compatibility was attempted on non supported HW")
	E(805, ERROR_MPS_CONNECTION_FAILED,
	  "MPS client failed to connect to the MPS control daemon or the MPS server")
	E(806, ERROR_MPS_RPC_FAILURE, "MPS server failed to communicate with the MPS client")
	E(807, ERROR_MPS_SERVER_NOT_READY,
	  "MPS server is not ready to accept new MPS client requests")
	E(808, ERROR_MPS_MAX_CLIENTS_REACHED, "MPS server hit the limit of clients")
	E(809, ERROR_MPS_MAX_CONNECTIONS_REACHED,
	  "MPS server hit the limit of device connections")
	E(810, ERROR_MPS_CLIENT_TERMINATED, "the MPS client has been terminated by the server")
	E(811, ERROR_CDP_NOT_SUPPORTED, "dynamic parallelism is not supported by this program")
	E(812, ERROR_CDP_VERSION_MISMATCH, "dynamic parallelism version mismatch")
	E(900, ERROR_STREAM_CAPTURE_UNSUPPORTED,
	  "operation not permitted when stream is capturing")
	E(901, ERROR_STREAM_CAPTURE_INVALIDATED,
	  "operation failed due to a previous error during capture")
	E(902, ERROR_STREAM_CAPTURE_MERGE,
	  "operation would result in a merge of separate capture sequences")
	E(903, ERROR_STREAM_CAPTURE_UNMATCHED,
	  "capture was not ended in the same stream as it began")
	E(904, ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work")
	E(905, ERROR_STREAM_CAPTURE_ISOLATION,
	  "dependency created on uncaptured work in another stream")
	E(906, ERROR_STREAM_CAPTURE_IMPLICIT,
	  "operation would make the legacy stream depend on a capturing blocking stream")
	E(907, ERROR_CAPTURED_EVENT,
	  "operation not permitted on an event last recorded in a capturing stream")
	E(908, ERROR_STREAM_CAPTURE_WRONG_THREAD,
	  "attempt to terminate a thread-local capture sequence from another thread")
	E(909, ERROR_TIMEOUT, "wait operation timed out")
	E(910, ERROR_GRAPH_EXEC_UPDATE_FAILURE,
	  "the graph update was not performed because it included changes which violated "
	  "constraints specific to instantiated graph update")
	E(911, ERROR_EXTERNAL_DEVICE,
	  "an async error has occurred in external entity outside of CUDA")
	E(912, ERROR_INVALID_CLUSTER_SIZE,
	  "a kernel launch error has occurred due to cluster misconfiguration")
	E(913, ERROR_FUNCTION_NOT_LOADED, "the function handle is not loaded")
	E(914, ERROR_INVALID_RESOURCE_TYPE, "the resource type is not valid for this operation")
	E(915, ERROR_INVALID_RESOURCE_CONFIGURATION,
	  "the resource configuration is not valid for this operation")
	E(916, ERROR_KEY_ROTATION, "an operation failed because of a key rotation")
	E(999, ERROR_UNKNOWN, "unknown error")
#undef E
};

static int find_error(CUresult r)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == r)
			return (int)i;
	return -1;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **out)
{
	int row = find_error(error);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = row < 0 ? NULL : errors[row].name;
	return row < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **out)
{
	int row = find_error(error);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = row < 0 ? NULL : errors[row].text;
	return row < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
