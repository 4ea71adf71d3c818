/* rt_volume.c — performs copies in three dimensions, copies from and to arrays, and fills in three dimensions.
 *
 *     cudaMemcpy3D ────────────────────┐
 *     cudaMemcpy2DToArray, FromArray ──┼─ CUDA_MEMCPY3D ── cuMemcpy3D or cuMemcpy3DAsync
 *     cudaMemcpy2DArrayToArray ────────┘
 *
 * Compiled a second time for per-thread default streams (rt_runtime_internal.h). */
#include "nvidia/cudart/memory/rt_memory_internal.h"

enum when { WAIT, DO_NOT_WAIT };

static cudaError_t copy_volume(const gpul_driver *drv, const CUDA_MEMCPY3D *c, enum when when, CUstream stream)
{
	cudaError_t e;

	if (!c->WidthInBytes || !c->Height || !c->Depth)
		return cudaSuccess;
	if (when == DO_NOT_WAIT)
		return gpul_rt_cu(drv, cuMemcpy3DAsync(c, stream));
#ifdef GPUL_RT_PER_THREAD
	e = gpul_rt_cu(drv, cuMemcpy3DAsync(c, CU_STREAM_PER_THREAD));
	return e ? e : gpul_rt_cu(drv, cuStreamSynchronize(CU_STREAM_PER_THREAD));
#else
	e = gpul_rt_cu(drv, cuMemcpy3D(c));
	return e;
#endif
}

static cudaError_t copy_described(const struct cudaMemcpy3DParms *p, enum when when, CUstream stream)
{
	const gpul_driver *drv;
	CUDA_MEMCPY3D c;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_describe_copy(drv, p, &c)))
		return e;
	return copy_volume(drv, &c, when, stream);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	return copy_described(p, WAIT, NULL);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	return copy_described(p, DO_NOT_WAIT, gpul_rt_stream(stream));
}

/* ---- between devices --------------------------------------------------------------------- */

static cudaError_t copy_between(const struct cudaMemcpy3DPeerParms *p, enum when when, CUstream stream)
{
	const gpul_driver *drv;
	CUDA_MEMCPY3D c;
	CUcontext from, to;
	struct cudaMemcpy3DParms plain;
	CUDA_MEMCPY3D_PEER peer;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!p)
		return gpul_rt_fail(cudaErrorInvalidValue, "the parameters of the copy are NULL");
	plain = (struct cudaMemcpy3DParms){ p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
					    p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDeviceToDevice };
	if ((e = gpul_rt_describe_copy(drv, &plain, &c)) || (e = gpul_rt_context(drv, p->srcDevice, &from)) ||
	    (e = gpul_rt_context(drv, p->dstDevice, &to)))
		return e;
	peer = (CUDA_MEMCPY3D_PEER){
		.srcXInBytes = c.srcXInBytes,
		.srcY = c.srcY,
		.srcZ = c.srcZ,
		.srcMemoryType = c.srcMemoryType,
		.srcDevice = c.srcDevice,
		.srcArray = c.srcArray,
		.srcContext = from,
		.srcPitch = c.srcPitch,
		.srcHeight = c.srcHeight,
		.dstXInBytes = c.dstXInBytes,
		.dstY = c.dstY,
		.dstZ = c.dstZ,
		.dstMemoryType = c.dstMemoryType,
		.dstDevice = c.dstDevice,
		.dstArray = c.dstArray,
		.dstContext = to,
		.dstPitch = c.dstPitch,
		.dstHeight = c.dstHeight,
		.WidthInBytes = c.WidthInBytes,
		.Height = c.Height,
		.Depth = c.Depth,
	};
	if (when == WAIT)
		return gpul_rt_cu(drv, cuMemcpy3DPeer(&peer));
	return gpul_rt_cu(drv, cuMemcpy3DPeerAsync(&peer, stream));
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
	return copy_between(p, WAIT, NULL);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	return copy_between(p, DO_NOT_WAIT, gpul_rt_stream(stream));
}

/* ---- rectangles of arrays: x and the width are in bytes -------------------------------------- */

/* The source or the destination of a copy: an array, or a pointer with a pitch. */
struct end {
	cudaArray_const_t array;
	const void *pointer;
	size_t pitch, x, y;
};

static cudaError_t copy_rectangle(struct end to, struct end from, size_t width, size_t height, enum cudaMemcpyKind kind, enum when when,
				  CUstream stream)
{
	const gpul_driver *drv;
	struct cudaMemcpy3DParms p = {
		.srcArray = (cudaArray_t)gpul_rt_array(from.array),
		.srcPtr = { (void *)(uintptr_t)from.pointer, from.pitch, width, height },
		.dstArray = (cudaArray_t)gpul_rt_array(to.array),
		.dstPtr = { (void *)(uintptr_t)to.pointer, to.pitch, width, height },
		.kind = kind,
	};
	CUDA_MEMCPY3D c;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_describe_copy(drv, &p, &c)))
		return e;
	if ((!from.array && height > 1 && width > from.pitch) || (!to.array && height > 1 && width > to.pitch))
		return gpul_rt_fail(cudaErrorInvalidPitchValue, "rows of %zu bytes are longer than the pitch", width);
	c.srcXInBytes = from.x;
	c.srcY = from.y;
	c.dstXInBytes = to.x;
	c.dstY = to.y;
	c.WidthInBytes = width;
	c.Height = height;
	c.Depth = 1;
	return copy_volume(drv, &c, when, stream);
}

#define ARRAY_END(a, x_bytes, row) ((struct end){ .array = (a), .x = (x_bytes), .y = (row) })
#define POINTER_END(p, p_pitch)    ((struct end){ .pointer = (p), .pitch = (p_pitch) })

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
				enum cudaMemcpyKind kind)
{
	return copy_rectangle(ARRAY_END(to, x, y), POINTER_END(from, pitch), width, height, kind, WAIT, NULL);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
				     enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_rectangle(ARRAY_END(to, x, y), POINTER_END(from, pitch), width, height, kind, DO_NOT_WAIT, gpul_rt_stream(stream));
}

cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
				  enum cudaMemcpyKind kind)
{
	return copy_rectangle(POINTER_END(to, pitch), ARRAY_END(from, x, y), width, height, kind, WAIT, NULL);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
				       enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_rectangle(POINTER_END(to, pitch), ARRAY_END(from, x, y), width, height, kind, DO_NOT_WAIT, gpul_rt_stream(stream));
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x, size_t from_y,
				     size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return copy_rectangle(ARRAY_END(to, to_x, to_y), ARRAY_END(from, from_x, from_y), width, height, kind, WAIT, NULL);
}

/* ---- contiguous bytes of arrays: a copy goes on at the start of the next row ------------------ */

static cudaError_t row_bytes(cudaArray_const_t array, size_t *bytes)
{
	const gpul_driver *drv;
	CUDA_ARRAY3D_DESCRIPTOR d;
	size_t element;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuArray3DGetDescriptor(&d, gpul_rt_array(array)))) ||
	    (e = gpul_rt_element_bytes(drv, array, &element)))
		return e;
	*bytes = d.Width * element;
	return cudaSuccess;
}

/* Copy `bytes` between memory and an array, from byte x of row y on: the rest of that row, then whole rows, then a part of the last row. */
static cudaError_t copy_rows(cudaArray_const_t array, size_t x, size_t y, char *memory, size_t bytes, _Bool to_array,
			     enum cudaMemcpyKind kind, enum when when, CUstream stream)
{
	size_t row = 0;
	cudaError_t e = row_bytes(array, &row);

	while (!e && bytes) {
		size_t width = bytes < row - x ? bytes : row - x;
		size_t height = width == row ? bytes / row : 1;
		struct end a = ARRAY_END(array, x, y), m = POINTER_END(memory, width);

		if (x >= row)
			return gpul_rt_fail(cudaErrorInvalidValue, "offset %zu exceeds a row of %zu bytes", x, row);
		e = copy_rectangle(to_array ? a : m, to_array ? m : a, width, height, kind, when, stream);
		memory += width * height;
		bytes -= width * height;
		y += height;
		x = 0;
	}
	return e;
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	return copy_rows(to, x, y, (char *)(uintptr_t)from, bytes, 1, kind, WAIT, NULL);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, enum cudaMemcpyKind kind,
				   cudaStream_t stream)
{
	return copy_rows(to, x, y, (char *)(uintptr_t)from, bytes, 1, kind, DO_NOT_WAIT, gpul_rt_stream(stream));
}

cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, enum cudaMemcpyKind kind)
{
	return copy_rows(from, x, y, to, bytes, 0, kind, WAIT, NULL);
}

cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, enum cudaMemcpyKind kind,
				     cudaStream_t stream)
{
	return copy_rows(from, x, y, to, bytes, 0, kind, DO_NOT_WAIT, gpul_rt_stream(stream));
}

/* Copy in steps, each up to the next end of a row in one of the two arrays, because their rows may differ in length. */
cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x, size_t from_y,
				   size_t bytes, enum cudaMemcpyKind kind)
{
	size_t to_row = 0, from_row = 0;
	cudaError_t e = row_bytes(to, &to_row);

	if (!e)
		e = row_bytes(from, &from_row);
	while (!e && bytes) {
		size_t width = bytes;

		if (to_x >= to_row || from_x >= from_row)
			return gpul_rt_fail(cudaErrorInvalidValue, "an offset exceeds the row of its array");
		width = width < to_row - to_x ? width : to_row - to_x;
		width = width < from_row - from_x ? width : from_row - from_x;
		e = copy_rectangle(ARRAY_END(to, to_x, to_y), ARRAY_END(from, from_x, from_y), width, 1, kind, WAIT, NULL);
		bytes -= width;
		to_x += width;
		from_x += width;
		if (to_x == to_row)
			to_x = 0, to_y++;
		if (from_x == from_row)
			from_x = 0, from_y++;
	}
	return e;
}

/* ---- fills ------------------------------------------------------------------------------- */

/* Memory of cudaMalloc3D has no gaps between slices, so the rows of all slices are filled by one call. */
cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);
	size_t rows = extent.height == p.ysize ? extent.height * extent.depth : extent.height;
	size_t n_fills = extent.height == p.ysize ? 1 : extent.depth;

	if (e || !extent.width || !extent.height || !extent.depth)
		return e;
	for (size_t z = 0; !e && z < n_fills; z++)
		e = gpul_rt_cu(drv, cuMemsetD2D8Async(gpul_rt_address(p.ptr) + z * p.pitch * p.ysize, p.pitch, (unsigned char)value,
						      extent.width, rows, gpul_rt_stream(stream)));
	return e;
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr p, int value, struct cudaExtent extent)
{
	return cudaMemset3DAsync(p, value, extent, NULL);
}
