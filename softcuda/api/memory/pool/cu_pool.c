/* cu_pool.c — memory that is allocated and freed in stream order, from a pool; and which devices may use a pool.
 *
 * Memory is allocated before the call returns, which is earlier than CUDA requires, and is freed in stream order. A pool caches
 * nothing: freed memory is returned to the system. */
#include "softcuda/api/memory/cu_memory_internal.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
	struct pool *p;
	CUresult r = soft_check_initialised();

	(void)bytes; /* nothing to trim: the pool caches nothing */
	if (r)
		return r;
	soft_lock();
	r = soft_pool_find(pool, &p);
	soft_unlock();
	return r;
}

/* ---- access by other devices ------------------------------------------------------------- */

static bool is_location_of_host(CUmemLocationType type)
{
	return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* Check that the location exists, and that a call does not deny access to the pool's own location. */
static CUresult check_pool_access(const struct pool *p, const CUmemAccessDesc *d)
{
	const struct device *user;
	unsigned flags = d->flags;

	if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_location_of_host(d->location.type)) /* the CPU always has access to a pool in host memory, and never to other pools */
		return !p->device && flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (d->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->location.id < 0 || d->location.id >= soft.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	user = &soft.device[d->location.id];
	if (user == p->device && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return soft_refuse(CUDA_ERROR_INVALID_DEVICE,
				   "cuMemPoolSetAccess: device %d must keep read and write access to its own pool", user->ordinal);
	return CUDA_SUCCESS;
}

static void set_pool_access(struct pool *p, const CUmemAccessDesc *d)
{
	uint32_t bit = UINT32_C(1) << d->location.id;

	if (d->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return;
	p->readers &= ~bit;
	p->writers &= ~bit;
	if (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		p->readers |= bit;
	if (d->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		p->writers |= bit;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count)
{
	struct pool *p;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (count && !list)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	r = soft_pool_find(pool, &p);
	for (size_t i = 0; !r && i < count; i++)
		r = check_pool_access(p, &list[i]);
	if (r)
		goto unlock;
	for (size_t i = 0; i < count; i++)
		set_pool_access(p, &list[i]);
	soft_update_pool_rights(p);
unlock:
	soft_unlock();
	return r;
}

static CUmemAccess_flags pool_access(const struct pool *p, const struct device *user)
{
	uint32_t bit = UINT32_C(1) << user->ordinal;

	if (p->writers & bit || user == p->device || p->type == MEMORY_TYPE_MANAGED)
		return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return p->readers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
	struct pool *p;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = soft_pool_find(pool, &p);
	if (r)
		goto unlock;
	r = CUDA_ERROR_INVALID_VALUE;
	if (!flags || !location)
		goto unlock;
	if (is_location_of_host(location->type)) {
		*flags = p->device ? CU_MEM_ACCESS_FLAGS_PROT_NONE : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		r = CUDA_SUCCESS;
	} else if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
		r = location->id >= 0 && location->id < soft.n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
		if (!r)
			*flags = pool_access(p, &soft.device[location->id]);
	}
unlock:
	soft_unlock();
	return r;
}

/* ---- allocations ------------------------------------------------------------------------ */

/* Allocate in a stream; pool NULL: from the current pool of the stream's device. */
static CUresult allocate_in_stream(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	struct context *ctx;
	struct stream *s;
	struct allocation *a;
	struct pool *p = NULL;
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_enter_stream_not_in_callback(stream, &ctx, &s);
	if (r)
		return r;
	if (pool)
		r = soft_pool_find(pool, &p);
	if (!r && p && soft_pool_is_imported(p))
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemAllocFromPoolAsync: the pool is imported: only its owner can allocate");
	if (!r && !bytes)
		*out = 0; /* an allocation of 0 bytes has the address 0, which can be freed; in a capture it adds no node */
	else if (!r && s->capture)
		r = soft_graph_memory_capture(s, bytes, out);
	else if (!r && !(r = p ? soft_pool_allocate(p, ctx, bytes, &a) : soft_allocate(ctx, ALLOC_ASYNC, bytes, 0, &a)))
		*out = a->base;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	return allocate_in_stream(out, bytes, NULL, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return pool ? allocate_in_stream(out, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

struct free_op {
	struct op op;
	struct allocation *allocation;
};

static void free_allocation(struct op *op)
{
	soft_allocation_free(CONTAINER(op, struct free_op, op)->allocation);
}

static const struct op_kind free_kind = { .ended = free_allocation, .bytes = sizeof(struct free_op) };

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	struct context *ctx;
	struct stream *s;
	struct allocation *a;
	struct op *op = NULL;
	CUresult r = soft_enter_stream_not_in_callback(stream, &ctx, &s);

	if (r)
		return r;
	if (!address)
		goto unlock;
	a = soft_allocation_at(address);
	if (a && a->base == address && a->graph) {
		r = soft_graph_memory_free_async(s, a->graph);
		soft_unlock();
		return r;
	}
	if (!a || a->base != address || (a->kind != ALLOC_ASYNC && a->kind != ALLOC_DEVICE && a->kind != ALLOC_MANAGED) ||
	    a->free_is_queued) {
		r = soft_refuse_free("cuMemFreeAsync", address, FREED_BY(ALLOC_ASYNC) | FREED_BY(ALLOC_DEVICE) | FREED_BY(ALLOC_MANAGED));
	} else if (!(op = soft_op_new(s, &free_kind)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		CONTAINER(op, struct free_op, op)->allocation = a;
		r = soft_capture_or_submit(op);
		if (!r && !op->ended)
			a->free_is_queued = true;
		soft_op_release(op);
	}
unlock:
	soft_unlock();
	return r;
}
