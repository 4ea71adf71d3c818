/* rt_copy.c — copies and fills memory.
 *
 *     cudaMemcpy ─────── wait ──┐        each kind of copy has its own driver call, which checks
 *     cudaMemcpyAsync ──────────┼─ copy  the address of the device
 *     cudaMemcpyToSymbol ───────┘
 *
 * Compiled a second time for per-thread default streams (rt_runtime_internal.h). */
#include "nvidia/cudart/rt_runtime_internal.h"

enum when { WAIT, DO_NOT_WAIT };

static cudaError_t check_kind(enum cudaMemcpyKind kind)
{
	if ((unsigned)kind <= cudaMemcpyDefault)
		return cudaSuccess;
	return gpul_rt_fail(cudaErrorInvalidMemcpyDirection,
			    "cudaMemcpy: %d is not a cudaMemcpyKind; the kinds are 0 (cudaMemcpyHostToHost) to 4 (cudaMemcpyDefault)",
			    (int)kind);
}

/* Explain a failed copy whose `kind` requires device memory, but gets another address.  Each driver knows only its own device memory. */
static cudaError_t explain_copy(const gpul_driver *drv, cudaError_t e, const void *to, const void *from, enum cudaMemcpyKind kind)
{
	static const char *const names[] = { "HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice" };
	const _Bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	const _Bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
	unsigned type = 0;

	if (e != cudaErrorInvalidValue)
		return e;
	if (to_device && drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, gpul_rt_address(to)))
		return gpul_rt_fail(
			e,
			"copy: the kind cudaMemcpy%s needs device memory as destination, but CUDA does not know the memory at %p: is it "
			"the "
			"right kind, and are the arguments in the order (destination, source)?",
			names[kind], to);
	if (from_device && drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, gpul_rt_address(from)))
		return gpul_rt_fail(
			e,
			"copy: the kind cudaMemcpy%s needs device memory as source, but CUDA does not know the memory at %p: is it the "
			"right "
			"kind, and are the arguments in the order (destination, source)?",
			names[kind], from);
	return e;
}

static cudaError_t copy_async(const gpul_driver *drv, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, CUstream stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return gpul_rt_cu(drv, cuMemcpyHtoDAsync(gpul_rt_address(to), from, bytes, stream));
	case cudaMemcpyDeviceToHost:
		return gpul_rt_cu(drv, cuMemcpyDtoHAsync(to, gpul_rt_address(from), bytes, stream));
	case cudaMemcpyDeviceToDevice:
		return gpul_rt_cu(drv, cuMemcpyDtoDAsync(gpul_rt_address(to), gpul_rt_address(from), bytes, stream));
	default:
		return gpul_rt_cu(drv, cuMemcpyAsync(gpul_rt_address(to), gpul_rt_address(from), bytes, stream));
	}
}

#ifdef GPUL_RT_PER_THREAD
static cudaError_t copy_now(const gpul_driver *drv, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	cudaError_t e = copy_async(drv, to, from, bytes, kind, CU_STREAM_PER_THREAD);

	/* A copy from device to device does not wait (CUDA Runtime API, API synchronization behavior). */
	if (e || kind == cudaMemcpyDeviceToDevice)
		return e;
	return gpul_rt_cu(drv, cuStreamSynchronize(CU_STREAM_PER_THREAD));
}
#else
static cudaError_t copy_now(const gpul_driver *drv, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return gpul_rt_cu(drv, cuMemcpyHtoD(gpul_rt_address(to), from, bytes));
	case cudaMemcpyDeviceToHost:
		return gpul_rt_cu(drv, cuMemcpyDtoH(to, gpul_rt_address(from), bytes));
	case cudaMemcpyDeviceToDevice:
		return gpul_rt_cu(drv, cuMemcpyDtoD(gpul_rt_address(to), gpul_rt_address(from), bytes));
	default:
		return gpul_rt_cu(drv, cuMemcpy(gpul_rt_address(to), gpul_rt_address(from), bytes));
	}
}
#endif

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = check_kind(kind)))
		return e;
	return bytes ? explain_copy(drv, copy_now(drv, to, from, bytes, kind), to, from, kind) : cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = check_kind(kind)))
		return e;
	return bytes ? explain_copy(drv, copy_async(drv, to, from, bytes, kind, gpul_rt_stream(stream)), to, from, kind) : cudaSuccess;
}

/* ---- to and from variables --------------------------------------------------------------- */

/* Find the address of a part of a device variable.  kind must be DeviceToDevice, Default or `other`. */
static cudaError_t find_part(const gpul_driver *drv, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
			     enum cudaMemcpyKind other, void **out)
{
	CUdeviceptr start = 0;
	size_t there = 0;
	cudaError_t e;

	if (kind != other && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		return gpul_rt_fail(cudaErrorInvalidMemcpyDirection, "invalid cudaMemcpyKind for a device variable: %d", (int)kind);
	e = gpul_rt_variable(drv, symbol, &start, &there);
	if (e)
		return e;
	if (offset > there || bytes > there - offset)
		return gpul_rt_fail(cudaErrorInvalidValue, "%zu bytes at offset %zu exceed a variable of %zu bytes", bytes, offset, there);
	*out = (void *)(uintptr_t)(start + offset);
	return cudaSuccess;
}

static cudaError_t to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind, enum when when,
			     CUstream stream)
{
	const gpul_driver *drv;
	void *to = NULL;
	cudaError_t e = gpul_rt_enter(&drv);

	if (!e)
		e = find_part(drv, symbol, bytes, offset, kind, cudaMemcpyHostToDevice, &to);
	if (e || !bytes)
		return e;
	return when == WAIT ? copy_now(drv, to, from, bytes, kind) : copy_async(drv, to, from, bytes, kind, stream);
}

static cudaError_t from_symbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind, enum when when,
			       CUstream stream)
{
	const gpul_driver *drv;
	void *from = NULL;
	cudaError_t e = gpul_rt_enter(&drv);

	if (!e)
		e = find_part(drv, symbol, bytes, offset, kind, cudaMemcpyDeviceToHost, &from);
	if (e || !bytes)
		return e;
	return when == WAIT ? copy_now(drv, to, from, bytes, kind) : copy_async(drv, to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	return to_symbol(symbol, from, bytes, offset, kind, WAIT, NULL);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
				    cudaStream_t stream)
{
	return to_symbol(symbol, from, bytes, offset, kind, DO_NOT_WAIT, gpul_rt_stream(stream));
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	return from_symbol(to, symbol, bytes, offset, kind, WAIT, NULL);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
				      cudaStream_t stream)
{
	return from_symbol(to, symbol, bytes, offset, kind, DO_NOT_WAIT, gpul_rt_stream(stream));
}

/* ---- rectangles -------------------------------------------------------------------------- */

/* For each kind of copy, the memory types of source and destination. */
static const CUmemorytype types_of[][2] = {
	[cudaMemcpyHostToHost] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST },
	[cudaMemcpyHostToDevice] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE },
	[cudaMemcpyDeviceToHost] = { CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST },
	[cudaMemcpyDeviceToDevice] = { CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE },
	[cudaMemcpyDefault] = { CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED },
};

static cudaError_t describe_rectangle(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
				      enum cudaMemcpyKind kind, CUDA_MEMCPY2D *out)
{
	if (width > to_pitch || width > from_pitch)
		return gpul_rt_fail(cudaErrorInvalidPitchValue, "rows of %zu bytes are longer than the pitches of %zu and %zu bytes", width,
				    to_pitch, from_pitch);
	cudaError_t e = check_kind(kind);
	if (e)
		return e;
	*out = (CUDA_MEMCPY2D){
		.srcMemoryType = types_of[kind][0],
		.srcHost = from,
		.srcDevice = gpul_rt_address(from),
		.srcPitch = from_pitch,
		.dstMemoryType = types_of[kind][1],
		.dstHost = to,
		.dstDevice = gpul_rt_address(to),
		.dstPitch = to_pitch,
		.WidthInBytes = width,
		.Height = height,
	};
	return cudaSuccess;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
			 enum cudaMemcpyKind kind)
{
	const gpul_driver *drv;
	CUDA_MEMCPY2D c;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = describe_rectangle(to, to_pitch, from, from_pitch, width, height, kind, &c)))
		return e;
	if (!width || !height)
		return cudaSuccess;
#ifdef GPUL_RT_PER_THREAD
	e = gpul_rt_cu(drv, cuMemcpy2DAsync(&c, CU_STREAM_PER_THREAD));
	return e ? e : gpul_rt_cu(drv, cuStreamSynchronize(CU_STREAM_PER_THREAD));
#else
	return gpul_rt_cu(drv, cuMemcpy2DUnaligned(&c)); /* unlike cuMemcpy2D, this call accepts every pitch */
#endif
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
			      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUDA_MEMCPY2D c;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = describe_rectangle(to, to_pitch, from, from_pitch, width, height, kind, &c)))
		return e;
	return width && height ? gpul_rt_cu(drv, cuMemcpy2DAsync(&c, gpul_rt_stream(stream))) : cudaSuccess;
}

/* ---- fills ------------------------------------------------------------------------------- */

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || !bytes)
		return e;
	return gpul_rt_cu(drv, cuMemsetD8Async(gpul_rt_address(to), (unsigned char)value, bytes, gpul_rt_stream(stream)));
}

/* Does not wait, because later operations are ordered after the fill by the stream (CUDA Runtime API, API synchronization behavior). */
cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
	return cudaMemsetAsync(to, value, bytes, NULL);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || !width || !height)
		return e;
	return gpul_rt_cu(drv, cuMemsetD2D8Async(gpul_rt_address(to), pitch, (unsigned char)value, width, height, gpul_rt_stream(stream)));
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
	return cudaMemset2DAsync(to, pitch, value, width, height, NULL);
}
