/* cu_memory.c — allocations: host memory, which is entered into the table of memory that kernels may access. A device
 * pointer is the host address, so unified addressing needs no translation. */
#include "softcuda/api/memory/cu_memory_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory_left.h"
#include "softcuda/exec/exec_arena_internal.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"

enum { DEVICE_ALIGN = 512, PITCH_ALIGN = 512, HUGE_PAGE = 2 << 20 };

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static const char *call_name(enum allocation_kind kind)
{
	static const char *const labels[] = {
		[ALLOC_DEVICE] = "cuMemAlloc",
		[ALLOC_HOST] = "cuMemHostAlloc",
		[ALLOC_REGISTERED] = "cuMemHostRegister",
		[ALLOC_ASYNC] = "cuMemAllocAsync",
		[ALLOC_IPC] = "cuIpcOpenMemHandle",
		[ALLOC_MANAGED] = "cuMemAllocManaged",
		[ALLOC_GRAPH] = "cuGraphAddMemAllocNode",
		[ALLOC_VARIABLE] = "a __managed__ variable",
	};

	return labels[kind];
}

/* Returns true if the allocation counts in the device's allocated bytes.  Memory of another process counts only in that process. */
static bool is_counted(const struct allocation *a)
{
	return a->kind == ALLOC_DEVICE || (a->pool && a->pool->device);
}

bool soft_is_on_host(const struct allocation *a)
{
	if (a->pool)
		return !a->pool->device && !a->managed;
	return a->kind == ALLOC_HOST || a->kind == ALLOC_REGISTERED;
}

/* Return the devices that may access memory of cuMemAlloc in this context, as a mask (bit d: device d): the context's device, and
 * the devices of contexts that called cuCtxEnablePeerAccess for this context. */
static uint32_t peer_devices(const struct context *owner)
{
	uint32_t devices = UINT32_C(1) << owner->device->ordinal;

	for (struct link *i = soft.contexts.next; i != &soft.contexts; i = i->next) {
		const struct context *user = CONTAINER(i, struct context, link);

		for (unsigned p = 0; p < user->n_peers; p++)
			if (user->peer[p] == owner)
				devices |= UINT32_C(1) << user->device->ordinal;
	}
	return devices;
}

/* Return the devices that must not access the allocation, as a mask: bit d is device d. */
static uint32_t denied_devices(const struct allocation *a)
{
	uint32_t own = UINT32_C(1) << a->device->ordinal;

	switch (a->kind) {
	case ALLOC_DEVICE:
		return ~peer_devices(a->ctx);
	case ALLOC_ASYNC:
		return a->managed ? 0 : ~((a->pool->device ? own : 0) | a->pool->readers);
	case ALLOC_IPC:
		return ~(own | UINT32_C(1) << a->ctx->device->ordinal);
	case ALLOC_GRAPH:
		return soft_graph_memory_denied(a->graph);
	default:
		return 0;
	}
}

/* Return the devices that may only read the allocation, as a mask: bit d is device d. */
static uint32_t read_only_devices(const struct allocation *a)
{
	if (a->kind == ALLOC_GRAPH)
		return soft_graph_memory_unwritable(a->graph);
	return a->pool ? a->pool->readers & ~a->pool->writers : 0;
}

static const char *remedy(enum allocation_kind kind)
{
	if (kind == ALLOC_GRAPH)
		return "a launch of its graph";
	return kind == ALLOC_ASYNC ? "cuMemPoolSetAccess" : "cuCtxEnablePeerAccess";
}

void soft_update_peers(struct context *owner)
{
	for (struct link *i = owner->allocations.next; i != &owner->allocations; i = i->next) {
		const struct allocation *a = CONTAINER(i, struct allocation, link);

		gpul_exec_memory_set_rights(soft.memory, a->base, denied_devices(a), read_only_devices(a));
	}
}

void soft_update_pool_rights(const struct pool *p)
{
	for (struct link *c = soft.contexts.next; c != &soft.contexts; c = c->next) {
		struct context *ctx = CONTAINER(c, struct context, link);

		for (struct link *i = ctx->allocations.next; i != &ctx->allocations; i = i->next) {
			const struct allocation *a = CONTAINER(i, struct allocation, link);

			if (a->pool == p)
				gpul_exec_memory_set_rights(soft.memory, a->base, denied_devices(a), read_only_devices(a));
		}
	}
}

/* Returns true for large allocations of cuMemAlloc, which share no GPU page with other allocations. */
static bool has_own_pages(const struct allocation *a)
{
	return a->kind == ALLOC_DEVICE && a->bytes >= 2 * HUGE_PAGE;
}

/* Return the number of bytes after an allocation that kernels may access, because a GPU allocates blocks of DEVICE_ALIGN bytes, of
 * HUGE_PAGE bytes for large allocations, and whole CPU pages for host memory; 0 if memcheck must find such accesses. */
static uint64_t padding_of(const struct allocation *a)
{
	const bool is_host_page = a->kind == ALLOC_HOST || a->kind == ALLOC_MANAGED || a->kind == ALLOC_GRAPH || a->kind == ALLOC_VARIABLE;
	size_t block = is_host_page ? (size_t)sysconf(_SC_PAGESIZE) : DEVICE_ALIGN;

	if (a->kind == ALLOC_REGISTERED || gpul_memcheck_red_zone(a->bytes))
		return 0;
	if (has_own_pages(a))
		block = HUGE_PAGE;
	return round_up(a->bytes, block) - a->bytes;
}

CUresult soft_allocation_enter(struct context *ctx, struct allocation *a, unsigned flags)
{
	gpul_exec_range range = { .base = a->base, .bytes = a->bytes, .padding = padding_of(a), .flags = flags };
	gpul_error err = { 0 };
	gpul_status st;

	a->handle = soft_handle_new(HANDLE_ALLOCATION, a);
	if (!a->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->ctx = ctx;
	if (!a->device)
		a->device = ctx->device;
	if (a->block)
		range.spare = a->block_bytes - a->bytes;
	range.owner = a->handle;
	range.denied = denied_devices(a);
	range.unwritable = read_only_devices(a);
	range.remedy = remedy(a->kind);
	snprintf(range.label, sizeof range.label, "%s", call_name(a->kind));
	st = gpul_exec_memory_add(soft.memory, &range, &err);
	if (st) {
		soft_handle_free(a->handle);
		return st == GPUL_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
					 : soft_refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "%s", err.text);
	}
	a->id = ++soft.next_id;
	list_append(&ctx->allocations, &a->link);
	if (is_counted(a))
		a->device->allocated_bytes += a->bytes;
	if (a->pool)
		soft_pool_add(a->pool, a->bytes);
	return CUDA_SUCCESS;
}

/* Allocate the pages of a.  Allocations of cuMemAlloc share no pages, because cuIpcGetMemHandle moves the pages of one allocation
 * to a file.  Large allocations get huge pages: with them, the first access to 64 MiB took 15 ms instead of 128 ms. */
static bool allocate_pages(struct allocation *a)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), align = page, zone = gpul_memcheck_red_zone(a->bytes);
	size_t bytes = round_up(a->bytes, has_own_pages(a) ? HUGE_PAGE : page) +
		       zone; /* no overflow: a->bytes is at most the memory of the device */
	uint64_t base;

	if (bytes >= 2 * HUGE_PAGE)
		align = HUGE_PAGE;
	zone = round_up(zone, align);
	a->block = gpul_arena_take(zone + bytes, align, &base);
	if (!a->block)
		return false;
	a->base = base + zone;
	a->block_bytes = bytes;
	if (align == HUGE_PAGE)
		madvise((void *)(uintptr_t)a->base, bytes, MADV_HUGEPAGE); /* a hint: its failure does not matter */
	return true;
}

/* Replace the shared pages by private ones, so that the addresses can be used for another allocation.  Returns false if out of memory. */
static bool unshare_pages(struct allocation *a)
{
	bool restored = mmap((void *)(uintptr_t)a->base, a->shared->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			     -1, 0) != MAP_FAILED;

	soft_ipc_close(a->shared);
	free(a->shared);
	return restored;
}

/* Free the pages of a.  If unshare_pages() fails, the block is leaked, because its pages are still shared. */
static void free_pages(struct allocation *a)
{
	void *memory = (void *)(uintptr_t)a->base;

	if (a->kind == ALLOC_GRAPH) {
		soft_graph_memory_unmap(a);
	} else if (a->in_file.next) {
		soft_pool_file_unmap(a);
	} else if (a->kind == ALLOC_IPC) {
		gpul_exec_machine_settle(soft.machine); /* wait for running accesses of kernels, which would otherwise crash */
		munmap(memory, a->bytes);
	} else if (a->kind != ALLOC_REGISTERED && (!a->shared || unshare_pages(a)) && !gpul_memcheck_keep(a->base, a->block)) {
		gpul_arena_give(a->block);
	}
}

static CUresult check_room(const struct device *d, enum allocation_kind kind, size_t bytes)
{
	gpul_error err = { 0 };

	if (soft.in_group && gpul_memory_check(call_name(kind), bytes, &err))
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s", err.text);
	if (bytes > soft.memory_bytes || d->allocated_bytes > soft.memory_bytes - bytes)
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s: %zu bytes were requested, but only %llu of %llu bytes are free",
				   call_name(kind), bytes, (unsigned long long)(soft.memory_bytes - d->allocated_bytes),
				   (unsigned long long)soft.memory_bytes);
	return CUDA_SUCCESS;
}

/* Allocate memory with the properties of `wanted`. */
static CUresult allocate(struct context *ctx, const struct allocation *wanted, struct allocation **out)
{
	bool of_file = wanted->pool && wanted->pool->file;
	struct allocation *a;
	CUresult r = check_room(wanted->device, wanted->kind, wanted->bytes);

	if (r)
		return r;
	a = malloc(sizeof *a);
	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*a = *wanted;
	if (a->kind == ALLOC_MANAGED || (a->pool && a->pool->type == MEMORY_TYPE_MANAGED))
		r = soft_managed_create(a);
	if (!r)
		r = of_file ? soft_pool_file_map(a->pool, a) : allocate_pages(a) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		goto free_a;
	r = soft_allocation_enter(ctx, a, 0);
	if (r)
		goto free_memory;
	*out = a;
	return CUDA_SUCCESS;
free_memory:
	if (of_file)
		soft_pool_file_unmap(a);
	else
		gpul_arena_give(a->block);
free_a:
	soft_managed_free(a->managed);
	free(a);
	return r;
}

CUresult soft_allocate(struct context *ctx, enum allocation_kind kind, size_t bytes, unsigned flags, struct allocation **out)
{
	struct pool *p;

	if (kind != ALLOC_ASYNC)
		return allocate(ctx, &(struct allocation){ .kind = kind, .flags = flags, .bytes = bytes, .device = ctx->device }, out);
	p = soft_current_pool(ctx->device);
	return p ? soft_pool_allocate(p, ctx, bytes, out) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult soft_pool_allocate(struct pool *p, struct context *ctx, size_t bytes, struct allocation **out)
{
	struct allocation wanted = { .kind = ALLOC_ASYNC, .bytes = bytes, .device = p->device ? p->device : ctx->device, .pool = p };

	if (p->max_bytes && (bytes > p->max_bytes || p->bytes > p->max_bytes - bytes))
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY,
				   "cuMemAllocFromPoolAsync: %zu bytes were requested, but only %llu of %llu bytes of the pool are "
				   "free",
				   bytes, (unsigned long long)(p->max_bytes - p->bytes), (unsigned long long)p->max_bytes);
	return allocate(ctx, &wanted, out);
}

CUresult soft_variable_enter(struct context *ctx, uint64_t base, size_t bytes, struct link *list)
{
	struct allocation *a = malloc(sizeof *a);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!a)
		return r;
	*a = (struct allocation){ .kind = ALLOC_VARIABLE, .base = base, .bytes = bytes, .ctx = ctx, .device = ctx->device };
	a->handle = soft_handle_new(HANDLE_ALLOCATION, a);
	if (!a->handle)
		goto free_a;
	r = soft_managed_create(a);
	if (r)
		goto free_handle;
	a->id = ++soft.next_id;
	gpul_exec_memory_set_owner(soft.memory, base, a->handle);
	list_append(list, &a->link);
	return CUDA_SUCCESS;
free_handle:
	soft_handle_free(a->handle);
free_a:
	free(a);
	return r;
}

void soft_variable_free(struct allocation *a)
{
	gpul_exec_memory_set_owner(soft.memory, a->base, NULL);
	soft_handle_free(a->handle);
	soft_managed_free(a->managed);
	list_remove(&a->link);
	free(a);
}

void soft_allocation_free(struct allocation *a)
{
	gpul_exec_memory_remove(soft.memory, a->base);
	soft_handle_free(a->handle);
	list_remove(&a->link);
	if (is_counted(a))
		a->device->allocated_bytes -= a->bytes;
	free_pages(a);
	soft_managed_free(a->managed);
	if (a->pool)
		soft_pool_subtract(a->pool, a->bytes);
	free(a);
}

void soft_graph_memory_unref(struct graph_memory *m)
{
	if (--m->refs)
		return;
	if (m->allocation)
		soft_allocation_free(m->allocation);
	free(m->descs);
	free(m);
}

struct allocation *soft_allocation_at(uint64_t address)
{
	gpul_exec_range range;

	if (!gpul_exec_memory_find(soft.memory, address, &range))
		return NULL;
	return soft_handle_find(HANDLE_ALLOCATION, range.owner);
}

/* ---- device memory ---------------------------------------------------------------------- */

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
	struct context *ctx;
	struct allocation *a;
	CUresult r;

	r = soft_enter(&ctx);
	if (r)
		return r;
	r = out && bytes ? soft_capture_check_unsafe("cuMemAlloc")
			 : soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc: %s",
				       out ? "0 bytes were requested" : "the pointer for the address is NULL");
	if (!r)
		r = soft_allocate(ctx, ALLOC_DEVICE, bytes, 0, &a);
	if (!r)
		*out = a->base;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width_bytes, size_t height, unsigned int element_bytes)
{
	size_t row, bytes;
	CUresult r;

	if (!out || !pitch || !width_bytes || !height || width_bytes > INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
		return CUDA_ERROR_INVALID_VALUE;
	row = (width_bytes + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN;
	if (__builtin_mul_overflow(row, height, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = cuMemAlloc_v2(out, bytes);
	if (!r)
		*pitch = row;
	return r;
}

CUresult soft_refuse_free(const char *call, uint64_t address, unsigned kinds)
{
	static const char *const callers[] = { [ALLOC_DEVICE] = "cudaFree",
					       [ALLOC_HOST] = "cudaFreeHost",
					       [ALLOC_REGISTERED] = "cudaHostUnregister",
					       [ALLOC_ASYNC] = "cudaFree or cudaFreeAsync",
					       [ALLOC_IPC] = "cudaIpcCloseMemHandle",
					       [ALLOC_MANAGED] = "cudaFree",
					       [ALLOC_GRAPH] = "cudaFree or a node of its graph",
					       [ALLOC_VARIABLE] = NULL };
	const CUresult r = CUDA_ERROR_INVALID_VALUE;
	const struct allocation *a = soft_allocation_at(address);
	gpul_exec_range range;

	gpul_memcheck_bad_free(call, address);
	if (a && a->base != address)
		return soft_refuse(r, "%s: %#llx is %llu bytes past the start of a %zu-byte allocation of %s; pass its start, %#llx", call,
				   (unsigned long long)address, (unsigned long long)(address - a->base), a->bytes, call_name(a->kind),
				   (unsigned long long)a->base);
	if (a && a->kind == ALLOC_VARIABLE)
		return soft_refuse(r, "%s: %#llx is %s, which the program cannot free", call, (unsigned long long)address,
				   call_name(a->kind));
	if (a && !a->free_is_queued && !(kinds & FREED_BY(a->kind)) && callers[a->kind])
		return soft_refuse(r, "%s: the %zu bytes at %#llx are memory of %s, which %s frees", call, a->bytes,
				   (unsigned long long)address, call_name(a->kind), callers[a->kind]);
	if (a)
		return soft_refuse(r, "%s: the %zu bytes of %s at %#llx were already freed, by cudaFreeAsync or by their graph", call,
				   a->bytes, call_name(a->kind), (unsigned long long)address);
	if (gpul_exec_memory_find(soft.memory, address, &range))
		return soft_refuse(r, "%s: %#llx is in %s, which cannot be freed by a call", call, (unsigned long long)address,
				   range.label);
	if (gpul_exec_memory_freed(soft.memory, address, &range) && range.base == address)
		return soft_refuse(r, "%s: the %llu bytes of %s at %#llx were freed before (double free)", call,
				   (unsigned long long)range.bytes, range.label, (unsigned long long)address);
	return soft_refuse(r, "%s: no CUDA allocation starts at or contains %#llx", call, (unsigned long long)address);
}

/* As on a GPU, first wait for the work of the allocation's context, because kernels that use the memory would fault. */
CUresult soft_free_at(uint64_t address, unsigned kinds)
{
	struct context *ctx;
	struct allocation *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = soft_capture_check_unsafe("cuMemFree");
	if (r)
		goto unlock;
	a = soft_allocation_at(address);
	if (a)
		soft_context_wait(a->ctx);
	a = soft_allocation_at(address); /* search again: another thread may have freed the memory while the lock was released */
	if (a && a->base == address && a->graph && kinds & FREED_BY(ALLOC_DEVICE) && a->graph->will_be_live && a->graph->is_live) {
		a->graph->will_be_live = false;
		soft_graph_memory_set_live(a->graph, false);
		soft_graph_memory_unref(a->graph);
	} else if (!a || a->base != address || a->free_is_queued || !(kinds & FREED_BY(a->kind))) {
		r = soft_refuse_free(kinds & FREED_BY(ALLOC_HOST)         ? "cuMemFreeHost"
				     : kinds & FREED_BY(ALLOC_REGISTERED) ? "cuMemHostUnregister"
									  : "cuMemFree",
				     address, kinds);
	} else if (a->ctx->fault)
		r = a->ctx->fault;
	else
		soft_allocation_free(a);
unlock:
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct context *ctx;
	CUresult r;

	if (address)
		return soft_free_at(address, FREED_BY(ALLOC_DEVICE) | FREED_BY(ALLOC_ASYNC) | FREED_BY(ALLOC_MANAGED));
	r = soft_enter(&ctx); /* address 0: there is nothing to free, but the context must be valid */
	if (!r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	struct context *ctx;
	gpul_memory_left left;
	CUresult r;

	if (!free_bytes || !total_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_enter(&ctx);
	if (r)
		return r;
	*total_bytes = (size_t)soft.memory_bytes;
	*free_bytes = (size_t)(soft.memory_bytes - ctx->device->allocated_bytes);
	soft_unlock();
	/* In a control group (a container), the memory of all its processes counts, so less memory may be free. */
	if (soft.in_group && gpul_memory_find_left("", &left) && left.left_bytes < *free_bytes)
		*free_bytes = (size_t)left.left_bytes;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	struct context *ctx;
	gpul_exec_range range;
	CUresult r;

	if (soft_is_in_callback())
		return soft_answer(CUDA_ERROR_NOT_PERMITTED, "cuMemGetAddressRange in a callback: libgomp makes this call to find out "
							     "whether it is in a callback");
	r = soft_enter(&ctx);
	if (r)
		return r;
	if (!gpul_exec_memory_find(soft.memory, address, &range) || range.denied >> ctx->device->ordinal & 1)
		r = CUDA_ERROR_NOT_FOUND;
	if (!r && base)
		*base = range.base;
	if (!r && bytes)
		*bytes = (size_t)range.bytes;
	soft_unlock();
	return r;
}
