/* cu_copy.c — cuMemcpy and its variants: each call fills in a struct copy, which is queued on a stream.
 *
 * When an asynchronous call for pageable memory returns, the copy has ended, or its source is in a private buffer (staged). */
#include "softcuda/api/memory/cu_memory_internal.h"

#include <stdlib.h>
#include <string.h>

static size_t extent(const struct copy *c, size_t pitch, size_t slice)
{
	return (c->depth - 1) * slice + (c->height - 1) * pitch + c->width_bytes;
}

/* Copy the source to a private buffer, so that the application may change the source before the copy runs. */
static CUresult stage_source(struct copy *c)
{
	struct copy aside = *c;
	CUresult r;

	aside.dst_pitch = c->width_bytes;
	aside.dst_slice = c->width_bytes * c->height;
	aside.dst = malloc(aside.dst_slice * c->depth);
	if (!aside.dst)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = soft_move_rows(&aside);
	if (r) {
		free(aside.dst);
		return r;
	}
	c->staged = aside.dst;
	c->src_known = false;
	c->src = aside.dst;
	c->src_bytes = aside.dst_slice * c->depth;
	c->src_pitch = aside.dst_pitch;
	c->src_slice = aside.dst_slice;
	return CUDA_SUCCESS;
}

/* Hold references to the arrays of the source and the destination until the operation is released. */
static void keep_arrays(struct copy *c)
{
	if (c->dst_array)
		c->dst_array->refs++;
	if (c->src_array)
		c->src_array->refs++;
}

/* Queue *c on s; the caller holds the lock. */
static CUresult submit_copy(struct stream *s, const struct copy *c, enum when when)
{
	struct op *op = soft_op_new(s, &soft_copy_kind);
	bool stage = when == STAGED && !c->src_array;
	CUresult r = CUDA_SUCCESS;
	struct copy *copy;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy = &CONTAINER(op, struct copy_op, op)->copy;
	*copy = *c;
	copy->is_waited_for = !s->capture && (when == WAITED_FOR || !c->dst_known); /* no thread waits for a captured copy */
	keep_arrays(copy);
	if (s->capture) { /* the source is not staged, because the graph reads the source when it is launched */
		r = when == WAITED_FOR ? soft_capture_refuse(s, "a copy that the caller waits for") : soft_capture_or_submit(op);
		goto release;
	}
	if (when == WAITED_FOR && (r = soft_capture_check_unsafe("a copy that the caller waits for")))
		goto release;
	if (when != WAITED_FOR && (stage || !c->src_known) && soft_stream_is_busy(s))
		r = stage_source(copy);
	if (!r)
		r = soft_capture_or_submit(op);
	if (!r && copy->is_waited_for)
		r = soft_op_wait(op);
	else if (!r && op->ended)
		r = op->result;
release:
	soft_op_release(op);
	return r;
}

static CUresult check_end(const struct range_use *u, bool *known, bool *can_vanish)
{
	*can_vanish = false;
	*known = u->side == SIDE_ARRAY; /* locate_in_array() has already checked the range in an array */
	if (*known)
		return CUDA_SUCCESS;
	return u->address ? soft_check_range(u, known, can_vanish) : soft_refuse(CUDA_ERROR_INVALID_VALUE, "copy: the %s is NULL", u->what);
}

/* Compute the sizes of source and destination, and check that the copy may access both. */
static CUresult check_copy(struct copy *c, enum side dst_side, enum side src_side)
{
	struct range_use dst, src;
	bool dst_can_vanish = false;
	CUresult r;

	c->dst_bytes = extent(c, c->dst_pitch, c->dst_slice);
	c->src_bytes = extent(c, c->src_pitch, c->src_slice);
	c->dst_side = dst_side;
	c->src_side = src_side;
	soft_copy_ends(c, &dst, &src);
	r = check_end(&dst, &c->dst_known, &dst_can_vanish);
	if (!r)
		r = check_end(&src, &c->src_known, &c->can_vanish);
	c->can_vanish |= dst_can_vanish;
	return r;
}

CUresult soft_queue_copy(struct stream *s, struct copy *c, enum side dst_side, enum side src_side, enum when when)
{
	CUresult r;

	if (!c->width_bytes || !c->height || !c->depth)
		return CUDA_SUCCESS;
	r = check_copy(c, dst_side, src_side);
	return r ? r : submit_copy(s, c, when);
}

CUresult soft_copy(CUstream stream, uint64_t dst, enum side dst_side, uint64_t src, enum side src_side, size_t bytes, enum when when)
{
	struct copy c = {
		.dst = (char *)(uintptr_t)dst,
		.src = (const char *)(uintptr_t)src,
		.width_bytes = bytes,
		.height = 1,
		.depth = 1,
	};
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter_stream_not_in_callback(stream, &ctx, &s);

	if (r)
		return r;
	r = soft_queue_copy(s, &c, dst_side, src_side, when);
	soft_unlock();
	return r;
}

/* ---- copies in one dimension ------------------------------------------------------------- */

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
	return soft_copy(CU_STREAM_LEGACY, dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST, bytes, WAITED_FOR);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
	return soft_copy(CU_STREAM_LEGACY, (uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE, bytes, WAITED_FOR);
}

/* The host does not wait for a copy within the device, although the name of the call does not end in Async. */
EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return soft_copy(CU_STREAM_LEGACY, dst, SIDE_DEVICE, src, SIDE_DEVICE, bytes, QUEUED);
}

EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return soft_copy(CU_STREAM_LEGACY, dst, SIDE_ANY, src, SIDE_ANY, bytes, WAITED_FOR);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return soft_copy(stream, dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST, bytes, QUEUED);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return soft_copy(stream, (uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE, bytes, QUEUED);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return soft_copy(stream, dst, SIDE_DEVICE, src, SIDE_DEVICE, bytes, QUEUED);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return soft_copy(stream, dst, SIDE_ANY, src, SIDE_ANY, bytes, QUEUED);
}

/* ---- copies in two and three dimensions ------------------------------------------------------------- */

/* The source or the destination of a CUDA_MEMCPY3D. */
struct box_end {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height, level;
};

static bool ends_within(size_t at, size_t n, size_t end)
{
	return at <= end && n <= end - at;
}

/* Like locate_box(), for an array.  The box must end inside the array. */
static CUresult locate_in_array(const struct box_end *e, const CUDA_MEMCPY3D_v2 *c, char **first, size_t *pitch, size_t *slice,
				struct array_memory **memory)
{
	struct array *a;
	CUresult r = e->array ? soft_array_find(e->array, &a) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return soft_refuse(r, "copy: the handle of the array is not valid");
	if (e->level)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "copy: the mipmap level (LOD) is %zu; it must be 0", e->level);
	if (!ends_within(e->x, c->WidthInBytes, a->row_bytes) || !ends_within(e->y, c->Height, a->height) ||
	    !ends_within(e->z, c->Depth, a->depth))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "copy: the box of %zu bytes x %zu x %zu at offset %zu, %zu, %zu is not within the array, which "
				   "has %zu bytes x %zu x %zu",
				   c->WidthInBytes, c->Height, c->Depth, e->x, e->y, e->z, a->row_bytes, a->height, a->depth);
	*pitch = a->row_bytes;
	*slice = a->slice_bytes;
	*first = a->at + e->z * *slice + e->y * *pitch + e->x;
	*memory = a->memory;
	return CUDA_SUCCESS;
}

/* Compute the address of the first byte of the box; check that rows and slices do not overlap. */
static CUresult locate_box(const struct box_end *e, const CUDA_MEMCPY3D_v2 *c, char **first, size_t *pitch, size_t *slice, enum side *side,
			   struct array_memory **array)
{
	size_t row_end, rows, last;

	if (e->type == CU_MEMORYTYPE_ARRAY) {
		*side = SIDE_ARRAY;
		return locate_in_array(e, c, first, pitch, slice, array);
	}
	if (e->type == CU_MEMORYTYPE_HOST)
		*side = SIDE_HOST;
	else if (e->type == CU_MEMORYTYPE_DEVICE)
		*side = SIDE_DEVICE;
	else if (e->type == CU_MEMORYTYPE_UNIFIED)
		*side = SIDE_ANY;
	else
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_add_overflow(e->x, c->WidthInBytes, &row_end) || __builtin_add_overflow(e->y, c->Height, &rows))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = e->pitch ? e->pitch : row_end;
	if (*pitch < row_end || (c->Depth > 1 && e->height < rows))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "copy: the pitch of %zu bytes is less than a row of %zu bytes, or the slice height is less "
				   "than the height of the copy",
				   *pitch, row_end);
	/* The address of the last byte must not overflow: later computations of addresses do not check for an overflow. */
	if (__builtin_mul_overflow(*pitch, e->height ? e->height : rows, slice) || __builtin_add_overflow(e->z, c->Depth, &last) ||
	    __builtin_mul_overflow(last, *slice, &last) || __builtin_mul_overflow(rows, *pitch, &row_end))
		return CUDA_ERROR_INVALID_VALUE;
	*first = e->type == CU_MEMORYTYPE_HOST ? (char *)(uintptr_t)e->host : (char *)(uintptr_t)e->device;
	if (!*first)
		return CUDA_SUCCESS;
	if (__builtin_add_overflow(e->z * *slice, e->y * *pitch, &last) || __builtin_add_overflow(last, e->x, &last) ||
	    __builtin_add_overflow((uintptr_t)*first, last, &last))
		return CUDA_ERROR_INVALID_VALUE;
	*first = (char *)(uintptr_t)last;
	return CUDA_SUCCESS;
}

/* Convert the parameters of cuMemcpy3D to a struct copy; the caller holds the lock. */
static CUresult read_box(const CUDA_MEMCPY3D_v2 *c, struct copy *copy, enum side *dst_side, enum side *src_side)
{
	char *src;
	CUresult r;

	*copy = (struct copy){ 0 };
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	struct box_end from = { c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray,  c->srcXInBytes,
				c->srcY,          c->srcZ,    c->srcPitch,  c->srcHeight, c->srcLOD };
	struct box_end to = { c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray,  c->dstXInBytes,
			      c->dstY,          c->dstZ,    c->dstPitch,  c->dstHeight, c->dstLOD };

	r = locate_box(&from, c, &src, &copy->src_pitch, &copy->src_slice, src_side, &copy->src_array);
	if (!r)
		r = locate_box(&to, c, &copy->dst, &copy->dst_pitch, &copy->dst_slice, dst_side, &copy->dst_array);
	if (r)
		return r;
	copy->src = src;
	copy->width_bytes = c->WidthInBytes;
	copy->height = c->Height;
	copy->depth = c->Depth;
	return CUDA_SUCCESS;
}

CUresult soft_copy_new(const CUDA_MEMCPY3D_v2 *c, struct op **out)
{
	struct copy copy;
	enum side dst_side, src_side;
	CUresult r = read_box(c, &copy, &dst_side, &src_side);
	struct op *op;

	if (!r && (!copy.width_bytes || !copy.height || !copy.depth))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_copy(&copy, dst_side, src_side);
	if (r)
		return r;
	op = soft_op_new(NULL, &soft_copy_kind);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	keep_arrays(&copy);
	CONTAINER(op, struct copy_op, op)->copy = copy;
	*out = op;
	return CUDA_SUCCESS;
}

CUresult soft_copy_3d(CUstream stream, const CUDA_MEMCPY3D_v2 *c, enum when when)
{
	struct copy copy;
	enum side dst_side, src_side;
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter_stream_not_in_callback(stream, &ctx, &s);

	if (r)
		return r;
	r = read_box(c, &copy, &dst_side, &src_side);
	if (when == WAITED_FOR && src_side != SIDE_HOST && src_side != SIDE_ANY && dst_side != SIDE_HOST && dst_side != SIDE_ANY)
		when = QUEUED;
	if (!r)
		r = soft_queue_copy(s, &copy, dst_side, src_side, when);
	soft_unlock();
	return r;
}

CUresult soft_copy_2d(CUstream stream, const CUDA_MEMCPY2D_v2 *c, enum when when)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D_v2 box = {
		.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcArray = c->srcArray,
		.srcPitch = c->srcPitch,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstArray = c->dstArray,
		.dstPitch = c->dstPitch,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = 1,
	};

	return soft_copy_3d(stream, &box, when);
}

EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D_v2 *c)
{
	return soft_copy_2d(CU_STREAM_LEGACY, c, WAITED_FOR);
}

EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D_v2 *c)
{
	return soft_copy_2d(CU_STREAM_LEGACY, c, WAITED_FOR);
}

EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D_v2 *c, CUstream stream)
{
	return soft_copy_2d(stream, c, QUEUED);
}

EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D_v2 *c)
{
	return soft_copy_3d(CU_STREAM_LEGACY, c, WAITED_FOR);
}

EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D_v2 *c, CUstream stream)
{
	return soft_copy_3d(stream, c, QUEUED);
}
