/* fill.c — cuMemset and its variants.  The host never waits for a fill, as on a GPU. */
#include "softcuda/api/memory/memory_internal.h"

/* Fill height rows of width elements, pitch bytes apart. */
CUresult soft_fill(CUstream stream, CUdeviceptr dst, size_t pitch, unsigned element_bytes,
		   uint32_t value, size_t width, size_t height)
{
	struct context *ctx;
	struct stream *s;
	struct op *op = NULL;
	size_t row = 0, bytes = 0;
	CUresult r = soft_enter_stream(stream, &ctx, &s);

	if (r)
		return r;
	if (dst % element_bytes || (height > 1 && pitch % element_bytes) ||
	    __builtin_mul_overflow(width, (size_t)element_bytes, &row) ||
	    (height > 1 && pitch < row) ||
	    (height && __builtin_mul_overflow(height - 1, pitch, &bytes)) ||
	    __builtin_add_overflow(bytes, row, &bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!width || !height)
		goto unlock;
	else if (!soft_may_fill(ctx->device, dst, bytes))
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuMemset: %zu bytes at %#llx are not within an allocation "
				"that device %d may write",
				bytes, dst, ctx->device->ordinal);
	else if (!(op = soft_op_new(s, &soft_fill_kind)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		CONTAINER(op, struct fill_op, op)->fill = (struct fill){
			(char *)(uintptr_t)dst, bytes, width, height, pitch, element_bytes, value
		};
		r = soft_capture_or_submit(op);
		soft_op_release(op);
	}
unlock:
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n)
{
	return soft_fill(CU_STREAM_LEGACY, dst, n, 1, value, n, 1);
}

EXPORT CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n)
{
	return soft_fill(CU_STREAM_LEGACY, dst, n, 2, value, n, 1);
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n)
{
	return soft_fill(CU_STREAM_LEGACY, dst, n, 4, value, n, 1);
}

EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value,
				size_t width, size_t height)
{
	return soft_fill(CU_STREAM_LEGACY, dst, pitch, 1, value, width, height);
}

EXPORT CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value,
				 size_t width, size_t height)
{
	return soft_fill(CU_STREAM_LEGACY, dst, pitch, 2, value, width, height);
}

EXPORT CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value,
				 size_t width, size_t height)
{
	return soft_fill(CU_STREAM_LEGACY, dst, pitch, 4, value, width, height);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	return soft_fill(stream, dst, n, 1, value, n, 1);
}

EXPORT CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n,
				 CUstream stream)
{
	return soft_fill(stream, dst, n, 2, value, n, 1);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
	return soft_fill(stream, dst, n, 4, value, n, 1);
}

EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value,
				  size_t width, size_t height, CUstream stream)
{
	return soft_fill(stream, dst, pitch, 1, value, width, height);
}

EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value,
				   size_t width, size_t height, CUstream stream)
{
	return soft_fill(stream, dst, pitch, 2, value, width, height);
}

EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value,
				   size_t width, size_t height, CUstream stream)
{
	return soft_fill(stream, dst, pitch, 4, value, width, height);
}
