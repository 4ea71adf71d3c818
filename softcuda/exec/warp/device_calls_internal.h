/* device_calls_internal.h — the functions of CUDA's device runtime that kernels can call: X(name, function in device_runtime.c, true
 * if its result is an error code, number of bytes that it writes through its first argument).  builtins.c finds them by name, and
 * machine/device_runtime.c defines them.
 *
 * Source: cuda_device_runtime_api.h */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_DEVICE_CALLS_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_DEVICE_CALLS_INTERNAL_H

#define GPUL_DEVICE_CALLS(X) \
	X(GetParameterBufferV2, get_parameter_buffer_v2, false, 0) \
	X(LaunchDeviceV2, launch_device_v2, true, 0) \
	X(LaunchDeviceV2_ptsz, launch_device_v2, true, 0) \
	X(GetParameterBuffer, get_parameter_buffer, false, 0) \
	X(LaunchDevice, launch_device, true, 0) \
	X(LaunchDevice_ptsz, launch_device, true, 0) \
	X(StreamCreateWithFlags, stream_create, true, 8) \
	X(StreamDestroy, stream_destroy, true, 0) \
	X(StreamWaitEvent, stream_wait_event, true, 0) \
	X(StreamWaitEvent_ptsz, stream_wait_event, true, 0) \
	X(EventCreateWithFlags, event_create, true, 8) \
	X(EventRecord, event_record, true, 0) \
	X(EventRecord_ptsz, event_record, true, 0) \
	X(EventRecordWithFlags, event_record, true, 0) \
	X(EventRecordWithFlags_ptsz, event_record, true, 0) \
	X(EventDestroy, event_destroy, true, 0) \
	X(MemcpyAsync, memcpy_async, true, 0) \
	X(MemcpyAsync_ptsz, memcpy_async, true, 0) \
	X(Memcpy2DAsync, memcpy_2d_async, true, 0) \
	X(Memcpy2DAsync_ptsz, memcpy_2d_async, true, 0) \
	X(MemsetAsync, memset_async, true, 0) \
	X(MemsetAsync_ptsz, memset_async, true, 0) \
	X(Memset2DAsync, memset_2d_async, true, 0) \
	X(Memset2DAsync_ptsz, memset_2d_async, true, 0) \
	X(FuncGetAttributes, get_function_attributes, true, 52) \
	X(DeviceGetLimit, get_limit, true, 8) \
	X(GetLastError, get_last_error, false, 0) \
	X(PeekAtLastError, peek_at_last_error, false, 0) \
	X(GetErrorName, get_error_name, false, 0) \
	X(GetErrorString, get_error_string, false, 0) \
	X(Malloc, device_malloc, true, 8) \
	X(Free, device_free, true, 0) \
	X(GetDevice, get_device, true, 4) \
	X(GetDeviceCount, get_device_count, true, 4) \
	X(DeviceGetAttribute, get_attribute, true, 4) \
	X(OccupancyMaxActiveBlocksPerMultiprocessor, max_active_blocks, true, 4) \
	X(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, max_active_blocks, true, 4)

#endif
