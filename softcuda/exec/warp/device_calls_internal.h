/* device_calls_internal.h — the functions of CUDA's device runtime that kernels can call: X(name, function of device_runtime.c, true if its
 * result is an error).  builtins.c finds them by name, and machine/device_runtime.c defines them.
 *
 * Source: cuda_device_runtime_api.h */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_DEVICE_CALLS_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_DEVICE_CALLS_INTERNAL_H

#define GPUL_DEVICE_CALLS(X) \
	X(GetParameterBufferV2, get_parameter_buffer_v2, false) \
	X(LaunchDeviceV2, launch_device_v2, true) \
	X(LaunchDeviceV2_ptsz, launch_device_v2, true) \
	X(GetParameterBuffer, get_parameter_buffer, false) \
	X(LaunchDevice, launch_device, true) \
	X(LaunchDevice_ptsz, launch_device, true) \
	X(StreamCreateWithFlags, stream_create, true) \
	X(StreamDestroy, stream_destroy, true) \
	X(StreamWaitEvent, stream_wait_event, true) \
	X(StreamWaitEvent_ptsz, stream_wait_event, true) \
	X(EventCreateWithFlags, event_create, true) \
	X(EventRecord, event_record, true) \
	X(EventRecord_ptsz, event_record, true) \
	X(EventRecordWithFlags, event_record, true) \
	X(EventRecordWithFlags_ptsz, event_record, true) \
	X(EventDestroy, event_destroy, true) \
	X(MemcpyAsync, memcpy_async, true) \
	X(MemcpyAsync_ptsz, memcpy_async, true) \
	X(Memcpy2DAsync, memcpy_2d_async, true) \
	X(Memcpy2DAsync_ptsz, memcpy_2d_async, true) \
	X(MemsetAsync, memset_async, true) \
	X(MemsetAsync_ptsz, memset_async, true) \
	X(Memset2DAsync, memset_2d_async, true) \
	X(Memset2DAsync_ptsz, memset_2d_async, true) \
	X(FuncGetAttributes, get_function_attributes, true) \
	X(DeviceGetLimit, get_limit, true) \
	X(GetLastError, get_last_error, false) \
	X(PeekAtLastError, peek_at_last_error, false) \
	X(GetErrorName, get_error_name, false) \
	X(GetErrorString, get_error_string, false) \
	X(Malloc, device_malloc, true) \
	X(Free, device_free, true) \
	X(GetDevice, get_device, true) \
	X(GetDeviceCount, get_device_count, true) \
	X(DeviceGetAttribute, get_attribute, true) \
	X(OccupancyMaxActiveBlocksPerMultiprocessor, max_active_blocks, true) \
	X(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, max_active_blocks, true)

#endif
