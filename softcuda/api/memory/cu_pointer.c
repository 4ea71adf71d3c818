/* cu_pointer.c — the attributes of an address: cuPointerGetAttribute and its variants. */
#include "softcuda/api/memory/cu_memory_internal.h"

#include <string.h>

/* What an address belongs to: an allocation, or a mapping of cuMemMap; if both are NULL, a variable of a module. */
struct address_info {
	bool found;
	gpul_exec_range range;
	struct allocation *a;
	struct mapping *m;
	bool on_host;
};

static struct address_info look_up_address(CUdeviceptr address)
{
	struct address_info w = { .found = gpul_exec_memory_find(soft.memory, address, &w.range) };

	if (!w.found)
		return w;
	w.a = soft_handle_find(HANDLE_ALLOCATION, w.range.owner);
	w.m = soft_handle_find(HANDLE_MAPPING, w.range.owner);
	w.on_host = (w.a && soft_is_on_host(w.a)) || (w.m && is_host_memory(w.m->memory));
	return w;
}

#define PUT(type, value) memcpy(data, &(type){ value }, sizeof(type))

static unsigned access_flags(const struct address_info *w, const struct device *d)
{
	if (w->range.denied >> d->ordinal & 1)
		return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
	if (w->range.flags & GPUL_EXEC_MEM_READ_ONLY || w->range.unwritable >> d->ordinal & 1)
		return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ;
	return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

/* Store the pointer by which the device (or the CPU) accesses the memory; if it cannot access the memory, store 0 and return an error. */
static CUresult put_pointer(void *data, CUdeviceptr address, bool reachable)
{
	if (!reachable) {
		PUT(CUdeviceptr, 0);
		return CUDA_ERROR_INVALID_VALUE;
	}
	PUT(CUdeviceptr, address);
	return CUDA_SUCCESS;
}

static bool is_managed(const struct allocation *a)
{
	return a && a->managed;
}

/* Return the handle types by which the memory can be exported. */
static unsigned long long handle_types(const struct address_info *w)
{
	if (w->m)
		return (unsigned long long)w->m->memory->prop.requestedHandleTypes;
	return w->a && w->a->pool && w->a->pool->file ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
}

static bool cpu_may_access(const struct address_info *w)
{
	return is_managed(w->a) || (w->on_host && (!w->m || w->m->host != CU_MEM_ACCESS_FLAGS_PROT_NONE));
}

static int ordinal_of(const struct address_info *w, const struct context *ctx)
{
	if (w->m)
		return w->on_host ? 0 : w->m->memory->prop.location.id;
	return w->a ? w->a->device->ordinal : ctx->device->ordinal;
}

/* Begin a query.  If no context is current, *current is NULL, and only attributes that need a context are refused. */
static CUresult enter_query(struct context **current)
{
	CUresult r = soft_lock_initialised();

	*current = NULL;
	if (r)
		return r;
	if (soft_current())
		r = soft_find_context(soft_current(), current);
	if (!r && *current)
		r = (*current)->fault;
	if (r)
		soft_unlock();
	return r;
}

/* Returns true if the attribute needs a current context.  For a module's variable, this includes the attributes of its context. */
static bool needs_context(CUpointer_attribute attribute, const struct address_info *w)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return true;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return !w->a && !w->m;
	default:
		return false;
	}
}

/* Store an attribute of the whole allocation, mapping or variable that contains the address. */
static CUresult get_extent(void *data, CUpointer_attribute attribute, const struct address_info *w)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		PUT(CUdeviceptr, w->m ? w->m->in->base : w->range.base);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		PUT(size_t, w->m ? w->m->in->bytes : (size_t)w->range.bytes);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		PUT(CUdeviceptr, w->range.base);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		PUT(size_t, (size_t)w->range.bytes);
		return CUDA_SUCCESS;
	default:
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "pointer attribute %d is not supported", (int)attribute);
	}
}

static CUresult get_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr address, const struct address_info *w,
			      struct context *current)
{
	struct context *ctx = w->a ? w->a->ctx : current;

	if (!current && needs_context(attribute, w))
		return CUDA_ERROR_INVALID_CONTEXT;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		PUT(void *, w->m ? NULL : ctx->handle);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		PUT(unsigned, w->on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		return put_pointer(data, address, access_flags(w, current->device));
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return put_pointer(data, address, cpu_may_access(w));
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		PUT(int, w->m ? w->m->sync_memops : w->a && w->a->sync_memops);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		PUT(unsigned long long, w->m ? w->m->id : w->a ? w->a->id : 0);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		PUT(unsigned, w->a && w->a->kind == ALLOC_DEVICE);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		PUT(unsigned, is_managed(w->a));
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		PUT(unsigned, 0);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		PUT(unsigned long long, handle_types(w));
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		PUT(int, ordinal_of(w, current));
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		PUT(unsigned, 1);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		PUT(unsigned, access_flags(w, current->device));
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		PUT(void *, w->a && w->a->pool ? w->a->pool->handle : NULL);
		return CUDA_SUCCESS;
	default:
		return get_extent(data, attribute, w);
	}
}

EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct context *ctx;
	struct address_info w;
	CUresult r = data ? enter_query(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	w = look_up_address(address);
	r = w.found ? get_attribute(data, attribute, address, &w, ctx) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}

/* Return the size of an attribute's value, which cuPointerGetAttributes sets to 0 for an unknown address. */
static size_t value_bytes(CUpointer_attribute attribute)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return sizeof(unsigned);
	default:
		return sizeof(void *);
	}
}

/* If an address belongs to no allocation, the call stores zeros and succeeds. */
EXPORT CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
	struct context *ctx;
	struct address_info w;
	CUresult r;

	if (!n || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	r = enter_query(&ctx);
	if (r)
		return r;
	w = look_up_address(address);
	for (unsigned i = 0; !r && i < n; i++) {
		if (!data[i])
			r = CUDA_ERROR_INVALID_VALUE;
		else if (!w.found || get_attribute(data[i], attributes[i], address, &w, ctx))
			memset(data[i], 0, value_bytes(attributes[i]));
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct context *ctx;
	struct address_info w;
	CUresult r = value ? enter_query(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	w = look_up_address(address);
	if ((!w.a && !w.m) || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*(w.m ? &w.m->sync_memops : &w.a->sync_memops) = *(const int *)value != 0;
	soft_unlock();
	return r;
}
