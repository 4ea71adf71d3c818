/* cu_managed.c — managed memory: host memory that the CPU and all devices may access at any time. */
#include "softcuda/api/memory/cu_managed_internal.h"

#include <sched.h>

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
	struct context *ctx;
	struct allocation *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	if (!out || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = soft_capture_check_unsafe("cuMemAllocManaged");
	if (!r)
		r = soft_allocate(ctx, ALLOC_MANAGED, bytes, flags, &a);
	if (!r)
		*out = a->base;
	soft_unlock();
	return r;
}

static CUresult find_range(CUdeviceptr address, size_t bytes, bool split, struct managed_range *out)
{
	return soft_managed_find(soft_allocation_at(address), address, bytes, split, out);
}

/* ---- locations -------------------------------------------------------------------------------- */

/* Check a location, and store it in *out; the id is set to 0 if locations of this type ignore it. */
static CUresult check_location(CUmemLocation l, bool nodes_too, CUmemLocation *out)
{
	int kind = (int)l.type;
	unsigned node = 0;

	*out = l;
	if (kind == CU_MEM_LOCATION_TYPE_DEVICE)
		return l.id >= 0 && l.id < soft.n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	if (kind == CU_MEM_LOCATION_TYPE_HOST) {
		out->id = 0;
		return CUDA_SUCCESS;
	}
	if (!nodes_too)
		return CUDA_ERROR_INVALID_VALUE;
	if (kind == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return soft_numa_node_exists(l.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (kind != CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT || getcpu(NULL, &node))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = (int)node };
	return CUDA_SUCCESS;
}

/* Return the location for a device ordinal, which the older calls have as a parameter. */
static CUmemLocation location_of(CUdevice device)
{
	return device == CU_DEVICE_CPU ? (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST }
				       : (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device };
}

/* ---- advice ------------------------------------------------------------------------------------- */

static CUresult check_advice(CUmem_advise advice, CUmemLocation l, CUmemLocation *out)
{
	*out = (CUmemLocation){ 0 };
	switch ((int)advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		return CUDA_SUCCESS; /* advice of this kind ignores the location */
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		return check_location(l, true, out);
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		return check_location(l, false, out);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static void set_accessed_by(struct managed_span *s, CUmemLocation l, bool on)
{
	uint32_t bit = UINT32_C(1) << l.id;

	if (l.type == CU_MEM_LOCATION_TYPE_HOST)
		s->accessed_by_cpu = on;
	else
		s->accessed_by = on ? s->accessed_by | bit : s->accessed_by & ~bit;
}

static void advise_span(struct managed_span *s, CUmem_advise advice, CUmemLocation l)
{
	if (advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY)
		s->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
	else if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
		s->preferred = l;
	else
		set_accessed_by(s, l, advice == CU_MEM_ADVISE_SET_ACCESSED_BY);
}

EXPORT CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
	struct context *ctx;
	struct managed_range range;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = check_advice(advice, location, &location);
	if (!r)
		r = find_range(address, bytes, true, &range);
	for (struct managed_span *s = r ? NULL : range.first; !r && s < range.end; s++)
		advise_span(s, advice, location);
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
	return cuMemAdvise_v2(address, bytes, advice, location_of(device));
}

EXPORT CUresult cuMemRangeGetAttributes(void **data, size_t *data_bytes, CUmem_range_attribute *attributes, size_t n, CUdeviceptr address,
					size_t bytes)
{
	struct context *ctx;
	struct managed_range range;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = data && data_bytes && attributes && n ? find_range(address, bytes, false, &range) : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < n; i++)
		r = soft_managed_attribute(&range, attributes[i], data[i], data_bytes[i]);
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemRangeGetAttribute(void *data, size_t data_bytes, CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes)
{
	return cuMemRangeGetAttributes(&data, &data_bytes, &attribute, 1, address, bytes);
}

/* ---- calls in stream order, which move no pages --------------------------------------------------- */

/* Queue an operation without work, which orders the call with the other work of the stream.  The caller holds the lock. */
static CUresult queue_nothing(struct stream *s, const char *call)
{
	struct op *op;
	CUresult r;

	if (s->capture)
		return soft_capture_refuse(s, call);
	op = soft_op_new(s, &soft_marker);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = soft_op_submit(op, NULL);
	soft_op_release(op);
	return r;
}

static CUresult prefetch_range(CUdeviceptr address, size_t bytes, CUmemLocation location)
{
	struct managed_range range;
	CUresult r = check_location(location, true, &location);

	if (!r)
		r = find_range(address, bytes, true, &range);
	for (struct managed_span *s = r ? NULL : range.first; !r && s < range.end; s++)
		s->prefetched = location;
	return r;
}

EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags, CUstream stream)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter_stream_not_in_callback(stream, &ctx, &s);

	if (r)
		return r;
	r = flags ? CUDA_ERROR_INVALID_VALUE : prefetch_range(address, bytes, location);
	if (!r)
		r = queue_nothing(s, "cuMemPrefetchAsync");
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
	return cuMemPrefetchAsync_v2(address, bytes, location_of(device), 0, stream);
}

/* Ranges of managed memory; location k is for the ranges [index[k], index[k + 1]).  n_locations 0: no locations were given. */
struct batch {
	const CUdeviceptr *address;
	const size_t *bytes;
	size_t n;
	const CUmemLocation *location;
	const size_t *index;
	size_t n_locations;
};

static CUresult check_batch(const struct batch *b, unsigned long long flags)
{
	struct managed_range range;
	CUresult r = CUDA_SUCCESS;

	if (!b->address || !b->bytes || !b->n || flags || b->n_locations > b->n ||
	    (b->n_locations && (!b->location || !b->index || b->index[0])))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 1; k < b->n_locations; k++)
		if (b->index[k] <= b->index[k - 1] || b->index[k] >= b->n)
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < b->n; i++)
		r = find_range(b->address[i], b->bytes[i], false, &range);
	return r;
}

static CUresult queue_batch(const struct batch *b, unsigned long long flags, CUstream stream, const char *call)
{
	struct context *ctx;
	struct stream *s;
	size_t k = 0;
	CUresult r = soft_enter_stream_not_in_callback(stream, &ctx, &s);

	if (r)
		return r;
	r = s == ctx->legacy ? CUDA_ERROR_INVALID_VALUE : check_batch(b, flags); /* CUDA Driver API: the legacy stream is refused */
	for (size_t i = 0; !r && i < b->n && b->n_locations; i++) {
		if (k + 1 < b->n_locations && b->index[k + 1] == i)
			k++;
		r = prefetch_range(b->address[i], b->bytes[i], b->location[k]);
	}
	if (!r)
		r = queue_nothing(s, call);
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr *address, size_t *bytes, size_t n, CUmemLocation *location, size_t *index,
					size_t n_locations, unsigned long long flags, CUstream stream)
{
	if (!n_locations)
		return CUDA_ERROR_INVALID_VALUE;
	return queue_batch(&(struct batch){ address, bytes, n, location, index, n_locations }, flags, stream, "cuMemPrefetchBatchAsync");
}

/* Leaves the bytes unchanged, which is allowed because the contents of discarded memory are unspecified. */
EXPORT CUresult cuMemDiscardBatchAsync(CUdeviceptr *address, size_t *bytes, size_t n, unsigned long long flags, CUstream stream)
{
	return queue_batch(&(struct batch){ .address = address, .bytes = bytes, .n = n }, flags, stream, "cuMemDiscardBatchAsync");
}

EXPORT CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *address, size_t *bytes, size_t n, CUmemLocation *location, size_t *index,
						  size_t n_locations, unsigned long long flags, CUstream stream)
{
	return cuMemPrefetchBatchAsync(address, bytes, n, location, index, n_locations, flags, stream);
}

/* With concurrent managed access, which this device has, the attachment does not restrict accesses. */
EXPORT CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned int flags)
{
	struct context *ctx;
	struct stream *s;
	const struct allocation *a;
	CUresult r = soft_enter_stream(stream, &ctx, &s);

	if (r)
		return r;
	a = soft_allocation_at(address);
	if (!a || !a->managed || address != a->base || (bytes && bytes != a->bytes) ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE) ||
	    (flags == CU_MEM_ATTACH_SINGLE && s == ctx->legacy))
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuStreamAttachMemAsync: %zu bytes at %#llx, flags %u: expected the start of managed memory, "
				"with its size or 0; CU_MEM_ATTACH_SINGLE cannot be used with the legacy stream",
				bytes, address, flags);
	if (!r)
		r = queue_nothing(s, "cuStreamAttachMemAsync");
	soft_unlock();
	return r;
}
