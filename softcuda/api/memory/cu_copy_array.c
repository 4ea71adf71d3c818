/* cu_copy_array.c — copies bytes from and to the first row of an array.  These calls are for arrays of one dimension, and NVIDIA's
 * driver refuses other rows.  cuMemcpy2D and cuMemcpy3D (cu_copy.c) copy boxes of arrays. */
#include "softcuda/api/memory/cu_memory_internal.h"

/* Compute the address of the source or destination; the caller holds the lock. */
static CUresult locate_end(const struct copy_end *e, size_t bytes, char **at, struct array_memory **memory)
{
	struct array *a;
	CUresult r;

	*memory = NULL;
	*at = (char *)(uintptr_t)e->address;
	if (e->side != SIDE_ARRAY)
		return CUDA_SUCCESS;
	r = soft_array_find(e->array, &a);
	if (r)
		return soft_refuse(r, "copy: the handle of the array is not valid");
	if (e->offset > a->row_bytes || bytes > a->row_bytes - e->offset)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "copy: %zu bytes at offset %zu are not within the first row of the array, which has %zu bytes", bytes,
				   e->offset, a->row_bytes);
	*at = a->at + e->offset;
	*memory = a->memory;
	return CUDA_SUCCESS;
}

CUresult soft_copy_array(CUstream stream, struct copy_end dst, struct copy_end src, size_t bytes, enum when when)
{
	struct copy c = { .width_bytes = bytes, .height = 1, .depth = 1 };
	struct context *ctx;
	struct stream *s;
	char *from;
	CUresult r = soft_enter_stream_not_in_callback(stream, &ctx, &s);

	if (r)
		return r;
	r = locate_end(&dst, bytes, &c.dst, &c.dst_array);
	if (!r)
		r = locate_end(&src, bytes, &from, &c.src_array);
	if (!r) {
		c.src = from;
		r = soft_queue_copy(s, &c, dst.side, src.side, when);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes)
{
	return soft_copy_array(CU_STREAM_LEGACY, end_in_array(dst, offset), end_in_memory(src, SIDE_DEVICE), bytes, QUEUED);
}

EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes)
{
	return soft_copy_array(CU_STREAM_LEGACY, end_in_memory(dst, SIDE_DEVICE), end_in_array(src, offset), bytes, QUEUED);
}

EXPORT CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t bytes)
{
	return soft_copy_array(CU_STREAM_LEGACY, end_in_array(dst, offset), end_on_host(src), bytes, WAITED_FOR);
}

EXPORT CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t bytes)
{
	return soft_copy_array(CU_STREAM_LEGACY, end_on_host(dst), end_in_array(src, offset), bytes, WAITED_FOR);
}

EXPORT CUresult cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes)
{
	return soft_copy_array(CU_STREAM_LEGACY, end_in_array(dst, dst_offset), end_in_array(src, src_offset), bytes, QUEUED);
}

EXPORT CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t bytes, CUstream stream)
{
	return soft_copy_array(stream, end_in_array(dst, offset), end_on_host(src), bytes, QUEUED);
}

EXPORT CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t bytes, CUstream stream)
{
	return soft_copy_array(stream, end_on_host(dst), end_in_array(src, offset), bytes, QUEUED);
}
