/* cu_copy_batch.c — cuMemcpyBatchAsync and cuMemcpy3DBatchAsync.  A batch is copied in the order of its list; CUDA permits any order. */
#include "softcuda/api/array/cu_array_internal.h"
#include "softcuda/api/memory/cu_memory_internal.h"

static CUresult check_attributes(int order, unsigned flags)
{
	if (order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY ||
	    flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "batch of copies: access order %d or flags %u not supported", order, flags);
	return CUDA_SUCCESS;
}

static enum when when_of(int order)
{
	return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ? STAGED : QUEUED;
}

/* Returns true if the stream is the legacy stream, which a batch must not use (CUDA Driver API). */
static bool is_legacy(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY;
}

static bool is_list(const void *list, size_t n, size_t element_bytes)
{
	size_t bytes;

	return !__builtin_mul_overflow(n, element_bytes, &bytes) && soft_is_readable(list, bytes);
}

/* ---- batches of copies in one dimension ------------------------------------------------------------ */

static CUresult check_batch(size_t n, const CUmemcpyAttributes *attributes, const size_t *index, size_t n_attributes)
{
	CUresult r = CUDA_SUCCESS;

	if (!attributes || !index || !n_attributes || n_attributes > n || !is_list(index, n_attributes, sizeof *index) ||
	    !is_list(attributes, n_attributes, sizeof *attributes) || index[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; !r && k < n_attributes; k++) {
		if ((k && index[k] <= index[k - 1]) || index[k] >= n)
			return CUDA_ERROR_INVALID_VALUE;
		r = check_attributes((int)attributes[k].srcAccessOrder, attributes[k].flags);
	}
	return r;
}

/* Queue all copies.  *failed: the index of the copy that failed; SIZE_MAX: the error does not concern one copy. */
static CUresult copy_all(const CUdeviceptr *dst, const CUdeviceptr *src, const size_t *bytes, size_t n,
			 const CUmemcpyAttributes *attributes, const size_t *index, size_t n_attributes, size_t *failed, CUstream stream)
{
	size_t k = 0;
	CUresult r;

	*failed = SIZE_MAX;
	if (!dst || !src || !bytes || !n || is_legacy(stream) || !is_list(dst, n, sizeof *dst) || !is_list(src, n, sizeof *src) ||
	    !is_list(bytes, n, sizeof *bytes))
		return CUDA_ERROR_INVALID_VALUE;
	r = check_batch(n, attributes, index, n_attributes);
	for (size_t i = 0; !r && i < n; i++) {
		if (k + 1 < n_attributes && index[k + 1] == i)
			k++;
		r = bytes[i] ? soft_copy(stream, dst[i], SIDE_ANY, src[i], SIDE_ANY, bytes[i], when_of((int)attributes[k].srcAccessOrder))
			     : CUDA_ERROR_INVALID_VALUE;
		if (r)
			*failed = i;
	}
	return r;
}

EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t n, CUmemcpyAttributes *attributes,
				   size_t *index, size_t n_attributes, size_t *failed, CUstream stream)
{
	size_t at;
	CUresult r = copy_all(dst, src, bytes, n, attributes, index, n_attributes, &at, stream);

	if (r && failed)
		*failed = at;
	return r;
}

EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t n, CUmemcpyAttributes *attributes,
				      size_t *index, size_t n_attributes, CUstream stream)
{
	return cuMemcpyBatchAsync(dst, src, bytes, n, attributes, index, n_attributes, NULL, stream);
}

/* ---- batches of copies in three dimensions --------------------------------------------------------- */

/* The source or the destination of a copy; all sizes are in bytes. */
struct end {
	CUmemorytype type;
	CUarray array;
	CUdeviceptr address;
	size_t x, y, z, pitch, height;
};

/* Get the element size, which is the unit of an operand's extents; 1 if no operand is an array. */
static CUresult find_element(const CUmemcpy3DOperand *o, size_t *element_bytes)
{
	struct array *a;
	CUresult r;

	if (o->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_SUCCESS;
	soft_lock();
	r = soft_array_find(o->op.array.array, &a);
	if (!r)
		*element_bytes = a->element_bytes;
	soft_unlock();
	return r;
}

static bool convert_end(const CUmemcpy3DOperand *o, size_t element_bytes, size_t copy_height, struct end *out)
{
	if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		*out = (struct end){ .type = CU_MEMORYTYPE_ARRAY,
				     .array = o->op.array.array,
				     .x = o->op.array.offset.x * element_bytes,
				     .y = o->op.array.offset.y,
				     .z = o->op.array.offset.z };
	else if (o->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
		*out = (struct end){ .type = CU_MEMORYTYPE_UNIFIED,
				     .address = o->op.ptr.ptr,
				     .pitch = o->op.ptr.rowLength * element_bytes,
				     .height = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : copy_height };
	else
		return false;
	return true;
}

static CUresult convert(const CUDA_MEMCPY3D_BATCH_OP *b, CUDA_MEMCPY3D_v2 *c)
{
	size_t element_bytes = 1;
	struct end src, dst;
	CUresult r = check_attributes((int)b->srcAccessOrder, b->flags);

	if (!r)
		r = find_element(&b->src, &element_bytes);
	if (!r)
		r = find_element(&b->dst, &element_bytes);
	if (r)
		return r;
	if (!b->extent.width || !b->extent.height || !b->extent.depth || !convert_end(&b->src, element_bytes, b->extent.height, &src) ||
	    !convert_end(&b->dst, element_bytes, b->extent.height, &dst))
		return CUDA_ERROR_INVALID_VALUE;
	*c = (CUDA_MEMCPY3D_v2){
		.srcMemoryType = src.type,
		.srcArray = src.array,
		.srcDevice = src.address,
		.srcXInBytes = src.x,
		.srcY = src.y,
		.srcZ = src.z,
		.srcPitch = src.pitch,
		.srcHeight = src.height,
		.dstMemoryType = dst.type,
		.dstArray = dst.array,
		.dstDevice = dst.address,
		.dstXInBytes = dst.x,
		.dstY = dst.y,
		.dstZ = dst.z,
		.dstPitch = dst.pitch,
		.dstHeight = dst.height,
		.WidthInBytes = b->extent.width * element_bytes,
		.Height = b->extent.height,
		.Depth = b->extent.depth,
	};
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpy3DBatchAsync(size_t n, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags, CUstream stream)
{
	CUDA_MEMCPY3D_v2 c;
	CUresult r = CUDA_SUCCESS;

	if (failed)
		*failed = SIZE_MAX;
	if (!n || !list || flags || is_legacy(stream) || !is_list(list, n, sizeof *list))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < n; i++) {
		r = convert(&list[i], &c);
		if (!r)
			r = soft_copy_3d(stream, &c, when_of((int)list[i].srcAccessOrder));
		if (r && failed)
			*failed = i;
	}
	return r;
}

EXPORT CUresult cuMemcpy3DBatchAsync_v2(size_t n, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream)
{
	return cuMemcpy3DBatchAsync(n, list, NULL, flags, stream);
}
