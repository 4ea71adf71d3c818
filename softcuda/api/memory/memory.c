/* memory.c — allocations: host memory that is added to the engine's table of the memory that kernels may access.
 * A device pointer is the host address, so unified addressing needs no translation. */
#include "softcuda/api/memory/memory_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory_left.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"

enum { HOST_ALIGN = 512, PITCH_ALIGN = 512 };

static const char *call_name(enum allocation_kind kind)
{
	static const char *const labels[] = {
		[ALLOC_DEVICE] = "cuMemAlloc",
		[ALLOC_HOST] = "cuMemHostAlloc",
		[ALLOC_REGISTERED] = "cuMemHostRegister",
		[ALLOC_ASYNC] = "cuMemAllocAsync",
		[ALLOC_IPC] = "cuIpcOpenMemHandle",
	};

	return labels[kind];
}

/* Is a counted in the device's allocated bytes?  Memory of another process is counted in that process. */
static bool is_counted(const struct allocation *a)
{
	return a->kind == ALLOC_DEVICE || a->kind == ALLOC_ASYNC;
}

/* Bit d: device d may access the memory that cuMemAlloc allocated in the context.  These are the device of the context,
 * and the devices of contexts that called cuCtxEnablePeerAccess for it. */
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

/* The devices that must not access the allocation; bit d: device d. */
static uint32_t denied_devices(const struct allocation *a)
{
	uint32_t own = UINT32_C(1) << a->device->ordinal;

	switch (a->kind) {
	case ALLOC_DEVICE:
		return ~peer_devices(a->ctx);
	case ALLOC_ASYNC:
		return ~(own | a->device->pool_readers);
	case ALLOC_IPC:
		return ~(own | UINT32_C(1) << a->ctx->device->ordinal);
	default:
		return 0;
	}
}

/* The devices that may only read the allocation; bit d: device d. */
static uint32_t read_only_devices(const struct allocation *a)
{
	const struct device *d = a->device;

	return a->kind == ALLOC_ASYNC ? d->pool_readers & ~d->pool_writers : 0;
}

static const char *remedy(enum allocation_kind kind)
{
	return kind == ALLOC_ASYNC ? "cuMemPoolSetAccess" : "cuCtxEnablePeerAccess";
}

void soft_update_peers(struct context *owner)
{
	for (struct link *i = owner->allocations.next; i != &owner->allocations; i = i->next) {
		const struct allocation *a = CONTAINER(i, struct allocation, link);

		gpul_exec_memory_set_rights(soft.memory, a->base, denied_devices(a),
					    read_only_devices(a));
	}
}

CUresult soft_allocation_enter(struct context *ctx, struct allocation *a, unsigned flags)
{
	gpul_exec_range range = { .base = a->base, .bytes = a->bytes, .flags = flags };
	gpul_error err = { 0 };
	gpul_status st;

	a->handle = soft_handle_new(HANDLE_ALLOCATION, a);
	if (!a->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->ctx = ctx;
	if (!a->device)
		a->device = ctx->device;
	range.owner = a->handle;
	range.denied = denied_devices(a);
	range.unwritable = read_only_devices(a);
	range.remedy = remedy(a->kind);
	snprintf(range.label, sizeof range.label, "%s", call_name(a->kind));
	st = gpul_exec_memory_add(soft.memory, &range, &err);
	if (st) {
		soft_handle_free(a->handle);
		return st == GPUL_ENOMEM
			       ? CUDA_ERROR_OUT_OF_MEMORY
			       : soft_refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "%s",
					     err.text);
	}
	a->id = ++soft.next_id;
	list_append(&ctx->allocations, &a->link);
	if (is_counted(a))
		ctx->device->allocated_bytes += a->bytes;
	if (a->kind == ALLOC_ASYNC)
		soft_pool_count(a->device, a->bytes);
	return CUDA_SUCCESS;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* An allocation of cuMemAlloc shares no page with another, because cuIpcGetMemHandle replaces its pages by those
 * of a file.  Large allocations request huge pages: the first access to 64 MiB took 15 ms instead of 128 ms.
 *
 * The address is aligned here and not by posix_memalign, which maps and unmaps 1 MiB in each call (23 us). */
static bool allocate_pages(struct allocation *a)
{
	enum { HUGE_PAGE = 2 << 20 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), align = HOST_ALIGN;
	size_t zone = gpul_memcheck_red_zone(a->bytes);
	size_t bytes = round_up(a->bytes, page) + zone;  /* no overflow: a->bytes is at most the memory of the device */

	if (bytes >= 2 * HUGE_PAGE)
		align = HUGE_PAGE;
	else if (a->kind == ALLOC_DEVICE)
		align = page;
	a->block = malloc(zone + bytes + align);
	if (!a->block)
		return false;
	a->base = round_up((uintptr_t)a->block + zone, align);
	if (align == HUGE_PAGE)
		madvise((void *)(uintptr_t)a->base, bytes, MADV_HUGEPAGE);  /* only a hint */
	return true;
}

/* Replace the pages of a->shared by private pages, so that free(a->block) is valid.  False: out of memory. */
static bool unshare_pages(struct allocation *a)
{
	bool restored = mmap((void *)(uintptr_t)a->base, a->shared->bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;

	soft_ipc_close(a->shared);
	free(a->shared);
	return restored;
}

/* Free the pages of a.  When unshare_pages() fails, the block is leaked, because malloc() must not reuse it. */
static void free_pages(struct allocation *a)
{
	void *memory = (void *)(uintptr_t)a->base;

	if (a->kind == ALLOC_IPC) {
		gpul_exec_machine_settle(soft.machine);  /* otherwise a kernel of another context could crash */
		munmap(memory, a->bytes);
	} else if (a->kind != ALLOC_REGISTERED && (!a->shared || unshare_pages(a)) && !gpul_memcheck_keep(a->base, a->block)) {
		free(a->block);
	}
}

CUresult soft_allocate(struct context *ctx, enum allocation_kind kind, size_t bytes,
		       unsigned flags, struct allocation **out)
{
	struct allocation *a;
	gpul_error err = { 0 };
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (soft.in_group && gpul_memory_check(call_name(kind), bytes, &err))
		return soft_refuse(r, "%s", err.text);
	if (bytes > soft.memory_bytes ||
	    ctx->device->allocated_bytes > soft.memory_bytes - bytes)
		return soft_refuse(
			r, "%s: %zu bytes requested, %llu of %llu bytes are free", call_name(kind),
			bytes,
			(unsigned long long)(soft.memory_bytes - ctx->device->allocated_bytes),
			(unsigned long long)soft.memory_bytes);
	a = calloc(1, sizeof *a);
	if (!a)
		return r;
	*a = (struct allocation){ .kind = kind, .flags = flags, .bytes = bytes };
	if (!allocate_pages(a))
		goto free_a;
	r = soft_allocation_enter(ctx, a, 0);
	if (r)
		goto free_block;
	*out = a;
	return CUDA_SUCCESS;
free_block:
	free(a->block);
free_a:
	free(a);
	return r;
}

void soft_allocation_free(struct allocation *a)
{
	gpul_exec_memory_remove(soft.memory, a->base);
	soft_handle_free(a->handle);
	list_remove(&a->link);
	if (is_counted(a))
		a->ctx->device->allocated_bytes -= a->bytes;
	if (a->kind == ALLOC_ASYNC)
		a->device->pool_bytes -= a->bytes;
	free_pages(a);
	free(a);
}

struct allocation *soft_allocation_at(uint64_t address)
{
	gpul_exec_range range;

	if (!gpul_exec_memory_find(soft.memory, address, &range))
		return NULL;
	return soft_handle_find(HANDLE_ALLOCATION, range.owner);
}

/* Adjacent ranges are treated as one range, because mappings can be adjacent. */
bool soft_is_known(uint64_t address, size_t bytes)
{
	gpul_exec_range range;
	uint64_t end = address + bytes;

	if (end < address)
		return false;
	while (address < end) {
		if (!gpul_exec_memory_find(soft.memory, address, &range))
			return false;
		address = range.base + range.bytes;
	}
	return true;
}

static bool range_allows(const gpul_exec_range *range, bool write)
{
	const struct mapping *m = soft_handle_find(HANDLE_MAPPING, range->owner);

	/* The constants of modules have no owner.  They are read-only for kernels, but a copy may write to them. */
	if (write && range->owner && range->flags & GPUL_EXEC_MEM_READ_ONLY)
		return false;
	return !m || soft_mapping_allows(m, write);
}

bool soft_may_copy(uint64_t address, size_t bytes, bool write)
{
	gpul_exec_range range;
	uint64_t end = address + bytes;

	while (address < end && gpul_exec_memory_next(soft.memory, address, &range) &&
	       range.base < end) {
		if (!range_allows(&range, write))
			return false;
		address = range.base + range.bytes;
	}
	return true;
}

bool soft_may_fill(const struct device *d, uint64_t address, size_t bytes)
{
	gpul_exec_range range;
	uint64_t end = address + bytes;

	if (!soft_is_known(address, bytes) || !soft_may_copy(address, bytes, true))
		return false;
	while (address < end && gpul_exec_memory_find(soft.memory, address, &range)) {
		if ((range.denied | range.unwritable) >> d->ordinal & 1)
			return false;
		address = range.base + range.bytes;
	}
	return true;
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
	r = out && bytes ? soft_capture_check_unsafe("cuMemAlloc") : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = soft_allocate(ctx, ALLOC_DEVICE, bytes, 0, &a);
	if (!r)
		*out = a->base;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width_bytes,
				   size_t height, unsigned int element_bytes)
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

/* Waits for the work of the allocation's context, as on a GPU, because kernels that use the memory would fault. */
CUresult soft_free_at(uint64_t address, enum allocation_kind kind,
			enum allocation_kind or_kind)
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
	a = soft_allocation_at(address);  /* again: another thread may have freed it meanwhile */
	if (!a || a->base != address || a->free_is_queued ||
	    (a->kind != kind && a->kind != or_kind)) {
		gpul_memcheck_bad_free(kind == ALLOC_HOST ? "cuMemFreeHost" : kind == ALLOC_REGISTERED ? "cuMemHostUnregister" : "cuMemFree",
				       address);
		r = CUDA_ERROR_INVALID_VALUE;
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
		return soft_free_at(address, ALLOC_DEVICE, ALLOC_ASYNC);
	r = soft_enter(&ctx);  /* nothing to free, but the context must be valid */
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
	/* The program's own memory counts in a control group, too. */
	if (soft.in_group && gpul_memory_find_left("", &left) && left.left_bytes < *free_bytes)
		*free_bytes = (size_t)left.left_bytes;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	struct context *ctx;
	gpul_exec_range range;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	if (!gpul_exec_memory_find(soft.memory, address, &range) ||
	    range.denied >> ctx->device->ordinal & 1)
		r = CUDA_ERROR_NOT_FOUND;
	if (!r && base)
		*base = range.base;
	if (!r && bytes)
		*bytes = (size_t)range.bytes;
	soft_unlock();
	return r;
}
