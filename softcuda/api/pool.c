/* pool.c — memory that is allocated and freed in stream order, from each device's default pool.
 *
 * An allocation is usable at once, which is earlier than the stream's order asks for; freeing
 * waits for its turn in the stream.  The pool keeps nothing back: what is freed is the system's
 * again. */
#include "softcuda/api/api_internal.h"

#include <string.h>

static CUresult default_pool(struct device *d, CUmemoryPool *out)
{
	CUresult r = CUDA_SUCCESS;

	soft_lock();
	if (!d->pool)
		d->pool = soft_handle_new(HANDLE_POOL, d);
	if (!d->pool)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else
		*out = d->pool;
	soft_unlock();
	return r;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice dev)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	return out ? default_pool(d, out) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice dev)
{
	return cuDeviceGetDefaultMemPool(out, dev);
}

static CUresult find_pool(CUmemoryPool handle, struct device **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	*out = soft_handle_find(HANDLE_POOL, handle);
	soft_unlock();
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct device *d, *of_pool;
	CUresult r = soft_find_device(dev, &d);

	if (!r)
		r = find_pool(pool, &of_pool);
	if (!r && of_pool != d)
		r = CUDA_ERROR_INVALID_VALUE;
	return r;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
	struct device *d;

	(void)bytes;  /* nothing is kept back that could be trimmed */
	return find_pool(pool, &d);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	struct context *ctx;
	struct stream *s;
	struct allocation *a;
	CUresult r;

	if (!out || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_enter_stream(stream, &ctx, &s);
	if (r)
		return r;
	r = soft_allocate(ctx, ALLOC_ASYNC, bytes, 0, &a);
	if (!r)
		*out = a->base;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
					CUstream stream)
{
	struct device *d;
	CUresult r = find_pool(pool, &d);

	return r ? r : cuMemAllocAsync(out, bytes, stream);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	struct context *ctx;
	struct stream *s;
	struct allocation *a;
	struct op *op = NULL;
	CUresult r = soft_enter_stream(stream, &ctx, &s);

	if (r)
		return r;
	a = soft_allocation_at(address);
	if (!a || a->base != address || (a->kind != ALLOC_ASYNC && a->kind != ALLOC_DEVICE) ||
	    a->is_leaving)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!(op = soft_op_new(s, OP_FREE)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		op->allocation = a;
		r = soft_op_submit(op, NULL);
		if (!r && !op->ended)
			a->is_leaving = true;
		soft_op_release(op);
	}
	soft_unlock();
	return r;
}
