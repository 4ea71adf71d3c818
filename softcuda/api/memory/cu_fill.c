/* cu_fill.c — cuMemset and its variants.  As on a GPU, no call waits for the fill. */
#include "softcuda/api/memory/cu_memory_internal.h"

CUresult soft_fill_new(struct context *ctx, struct stream *s, const struct fill *f, struct op **out)
{
	const uint64_t dst = (uintptr_t)f->dst;
	size_t row = 0, bytes = 0;
	struct op *op;
	bool can_vanish;
	CUresult r;

	*out = NULL;
	if (dst % f->element_bytes || (f->height > 1 && f->pitch % f->element_bytes) ||
	    __builtin_mul_overflow(f->width, (size_t)f->element_bytes, &row) || (f->height > 1 && f->pitch < row) ||
	    (f->height && __builtin_mul_overflow(f->height - 1, f->pitch, &bytes)) || __builtin_add_overflow(bytes, row, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!f->width || !f->height)
		return CUDA_SUCCESS;
	r = soft_check_range(&(struct range_use){ "cuMemset", "memory", dst, bytes, SIDE_DEVICE, true }, NULL, &can_vanish);
	if (r)
		return r;
	if (!soft_may_fill(ctx->device, dst, bytes))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemset: device %d may not write to the %zu bytes at %#llx",
				   ctx->device->ordinal, bytes, (unsigned long long)dst);
	op = soft_op_new(s, &soft_fill_kind);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CONTAINER(op, struct fill_op, op)->fill = *f;
	CONTAINER(op, struct fill_op, op)->fill.bytes = bytes;
	CONTAINER(op, struct fill_op, op)->fill.can_vanish = can_vanish;
	*out = op;
	return CUDA_SUCCESS;
}

/* Fill `height` rows of `width` elements; the rows begin `pitch` bytes apart. */
CUresult soft_fill(CUstream stream, CUdeviceptr dst, size_t pitch, unsigned element_bytes, uint32_t value, size_t width, size_t height)
{
	const struct fill f = { (char *)(uintptr_t)dst, 0, width, height, pitch, element_bytes, value, false };
	struct context *ctx;
	struct stream *s;
	struct op *op;
	CUresult r = soft_enter_stream(stream, &ctx, &s);

	if (r)
		return r;
	r = soft_fill_new(ctx, s, &f, &op);
	if (!r && op) {
		r = soft_capture_or_submit(op);
		if (!r && op->ended)
			r = op->result;
		soft_op_release(op);
	}
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

EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height)
{
	return soft_fill(CU_STREAM_LEGACY, dst, pitch, 1, value, width, height);
}

EXPORT CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height)
{
	return soft_fill(CU_STREAM_LEGACY, dst, pitch, 2, value, width, height);
}

EXPORT CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height)
{
	return soft_fill(CU_STREAM_LEGACY, dst, pitch, 4, value, width, height);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	return soft_fill(stream, dst, n, 1, value, n, 1);
}

EXPORT CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)
{
	return soft_fill(stream, dst, n, 2, value, n, 1);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
	return soft_fill(stream, dst, n, 4, value, n, 1);
}

EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream)
{
	return soft_fill(stream, dst, pitch, 1, value, width, height);
}

EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream)
{
	return soft_fill(stream, dst, pitch, 2, value, width, height);
}

EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream)
{
	return soft_fill(stream, dst, pitch, 4, value, width, height);
}
