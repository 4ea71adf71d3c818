/* pool.c — memory that is allocated and freed in stream order, from the default pool of each device.
 *
 * An allocation is usable at once, earlier than the stream's order requires; it is freed in stream order.  The
 * pool caches nothing: freed memory is returned to the system. */
#include "softcuda/api/memory/memory_internal.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"

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

EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct device *d, *of_pool;
	CUresult r = soft_find_device(dev, &d);

	if (!r)
		r = soft_pool_find(pool, &of_pool);
	if (!r && of_pool != d)
		r = CUDA_ERROR_INVALID_VALUE;
	return r;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
	struct device *d;

	(void)bytes;  /* nothing to trim: the pool caches nothing */
	return soft_pool_find(pool, &d);
}

/* ---- pools by location (CUDA 13.0) ------------------------------------------------------- */

/* The device of a location; only memory of a device has a pool here. */
static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type, struct device **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!location || type == CU_MEM_ALLOCATION_TYPE_INVALID)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
				   "only devices have memory pools here, and only of pinned memory: location type %d, memory type %d",
				   (int)location->type, (int)type);
	return soft_find_device(location->id, out);
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
	struct device *d;
	CUresult r = check_location(location, type, &d);

	return r ? r : cuDeviceGetDefaultMemPool(out, d->ordinal);
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
	return cuMemGetDefaultMemPool(out, location, type);
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	struct device *d;
	CUresult r = check_location(location, type, &d);

	return r ? r : cuDeviceSetMemPool(d->ordinal, pool);
}

/* ---- other devices ---------------------------------------------------------------------- */

/* Check that the device of d exists, and that the pool's own device keeps its access. */
static CUresult check_pool_access(const struct device *owner, const CUmemAccessDesc *d)
{
	struct device *user;
	unsigned flags = d->flags;

	if (d->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	     flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
		return CUDA_ERROR_INVALID_VALUE;
	if (soft_find_device(d->location.id, &user))
		return CUDA_ERROR_INVALID_DEVICE;
	if (user == owner && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return soft_refuse(CUDA_ERROR_INVALID_DEVICE,
				   "cuMemPoolSetAccess: device %d must keep read and write access to its own pool", owner->ordinal);
	return CUDA_SUCCESS;
}

static void set_pool_access(struct device *owner, const CUmemAccessDesc *d)
{
	uint32_t bit = UINT32_C(1) << d->location.id;

	owner->pool_readers &= ~bit;
	owner->pool_writers &= ~bit;
	if (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		owner->pool_readers |= bit;
	if (d->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		owner->pool_writers |= bit;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count)
{
	struct device *owner;
	CUresult r = soft_pool_find(pool, &owner);

	if (r)
		return r;
	if (count && !list)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < count; i++)
		r = check_pool_access(owner, &list[i]);
	if (r)
		return r;
	soft_lock();
	for (size_t i = 0; i < count; i++)
		set_pool_access(owner, &list[i]);
	for (struct link *i = soft.contexts.next; i != &soft.contexts; i = i->next) {
		struct context *ctx = CONTAINER(i, struct context, link);

		if (ctx->device == owner && ctx->active)
			soft_update_peers(ctx);
	}
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
				   CUmemLocation *location)
{
	struct device *owner, *user;
	CUresult r = soft_pool_find(pool, &owner);
	uint32_t bit;

	if (r)
		return r;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (soft_find_device(location->id, &user))
		return CUDA_ERROR_INVALID_DEVICE;
	bit = UINT32_C(1) << user->ordinal;
	soft_lock();
	*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	if (owner->pool_readers & bit)
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	if (owner->pool_writers & bit || user == owner)
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	soft_unlock();
	return CUDA_SUCCESS;
}

/* ---- allocations ------------------------------------------------------------------------ */

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
	r = s->capture ? soft_capture_refuse(s, "cuMemAllocAsync") : soft_allocate(ctx, ALLOC_ASYNC, bytes, 0, &a);
	if (!r)
		*out = a->base;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
					CUstream stream)
{
	struct device *d;
	CUresult r = soft_pool_find(pool, &d);

	return r ? r : cuMemAllocAsync(out, bytes, stream);
}

struct free_op {
	struct op op;
	struct allocation *allocation;
};

static void free_allocation(struct op *op)
{
	soft_allocation_free(CONTAINER(op, struct free_op, op)->allocation);
}

static const struct op_kind free_kind = { .ended = free_allocation,
					  .bytes = sizeof(struct free_op) };

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
	    a->free_is_queued) {
		gpul_memcheck_bad_free("cuMemFreeAsync", address);
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (!(op = soft_op_new(s, &free_kind)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		CONTAINER(op, struct free_op, op)->allocation = a;
		r = soft_capture_or_submit(op);
		if (!r && !op->ended)
			a->free_is_queued = true;
		soft_op_release(op);
	}
	soft_unlock();
	return r;
}
