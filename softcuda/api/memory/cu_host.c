/* cu_host.c — page-locked host memory, allocated or registered (cuMemHostRegister).  Kernels access it at the address that the CPU uses. */
#include "softcuda/api/memory/cu_memory_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	HOST_FLAGS = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED,
	REGISTER_FLAGS = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
			 CU_MEMHOSTREGISTER_READ_ONLY,
};

/* Map all pages now, which is faster than a page fault for each.  No lock is needed, because no other thread knows the address yet.
 * Before Linux 5.14 madvise() fails, and pages are mapped at their first access. */
static void populate_allocated(void *memory, size_t bytes)
{
	uintptr_t from = (uintptr_t)memory & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	(void)madvise((void *)from, (uintptr_t)memory + bytes - from, MADV_POPULATE_WRITE);
}

EXPORT CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
	struct context *ctx;
	struct allocation *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	if (!out || !bytes || flags & ~(unsigned)HOST_FLAGS)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = soft_allocate(ctx, ALLOC_HOST, bytes, flags | CU_MEMHOSTALLOC_DEVICEMAP, &a);
	if (!r)
		*out = (void *)(uintptr_t)a->base;
	soft_unlock();
	if (!r)
		populate_allocated(*out, bytes);
	return r;
}

EXPORT CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
	return cuMemHostAlloc(out, bytes, 0);
}

EXPORT CUresult cuMemFreeHost(void *memory)
{
	return soft_free_at((uintptr_t)memory, FREED_BY(ALLOC_HOST));
}

/* Returns true if host memory of cuMemCreate is mapped at an address. */
static bool is_mapped_host_memory(const void *address)
{
	const struct mapping *m = soft_mapping_at((uintptr_t)address);

	return m && is_host_memory(m->memory);
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *memory, unsigned int flags)
{
	struct context *ctx;
	struct allocation *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	a = soft_allocation_at((uintptr_t)memory);
	if (!out || flags || (a ? a->kind != ALLOC_HOST && a->kind != ALLOC_REGISTERED : !is_mapped_host_memory(memory)))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*out = (uintptr_t)memory;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemHostGetFlags(unsigned int *flags, void *memory)
{
	struct context *ctx;
	struct allocation *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	a = soft_allocation_at((uintptr_t)memory);
	if (!flags || (a ? a->kind != ALLOC_HOST : !is_mapped_host_memory(memory)))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*flags = a ? a->flags : CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
	soft_unlock();
	return r;
}

/* Map all pages now.  Fails if the memory is not mapped or not writable, or the system has no pages for it (a full /dev/shm). */
static CUresult populate_registered(void *memory, size_t bytes, unsigned flags)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end;
	uintptr_t from = (uintptr_t)memory / page * page;
	int advice = flags & CU_MEMHOSTREGISTER_READ_ONLY ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;

	if (__builtin_add_overflow((uintptr_t)memory, bytes, &end))
		return CUDA_ERROR_INVALID_VALUE;
	/* memory of an I/O device cannot be populated, and Linux before 5.14 has no call for it: only check that the memory is mapped */
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY || madvise((void *)from, 0, advice))
		return !msync((void *)from, end - from, MS_ASYNC)
			       ? CUDA_SUCCESS
			       : soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemHostRegister: %zu bytes at %p: not all pages are mapped",
					     bytes, memory);
	if (madvise((void *)from, end - from, advice) == 0)
		return CUDA_SUCCESS;
	if (errno == EFAULT)
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY,
				   "cuMemHostRegister: %zu bytes at %p: the system does not have enough memory "
				   "for them (is /dev/shm large enough?)",
				   bytes, memory);
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemHostRegister: %zu bytes at %p: not all pages are mapped and %s", bytes, memory,
			   advice == MADV_POPULATE_READ ? "readable" : "writable");
}

static bool touches_mapping(uint64_t address, size_t bytes)
{
	gpul_exec_range range;

	return gpul_exec_memory_next(soft.memory, address, &range) && range.base < address + bytes &&
	       soft_handle_find(HANDLE_MAPPING, range.owner);
}

EXPORT CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
	struct context *ctx;
	struct allocation *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	if (!memory || !bytes || flags & ~(unsigned)REGISTER_FLAGS || touches_mapping((uintptr_t)memory, bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	if (!r)
		r = populate_registered(memory, bytes, flags);
	if (!r)
		r = soft_enter(&ctx);
	if (r)
		return r;
	a = calloc(1, sizeof *a);
	r = CUDA_ERROR_OUT_OF_MEMORY;
	if (a) {
		unsigned range_flags = flags & CU_MEMHOSTREGISTER_READ_ONLY ? GPUL_EXEC_MEM_READ_ONLY : 0;

		*a = (struct allocation){
			.kind = ALLOC_REGISTERED,
			.flags = flags,
			.base = (uintptr_t)memory,
			.bytes = bytes,
		};
		r = soft_allocation_enter(ctx, a, range_flags);
		if (r)
			free(a);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned int flags)
{
	return cuMemHostRegister_v2(memory, bytes, flags);
}

EXPORT CUresult cuMemHostUnregister(void *memory)
{
	CUresult r = soft_free_at((uintptr_t)memory, FREED_BY(ALLOC_REGISTERED));
	bool known;

	if (!memory || r != CUDA_ERROR_INVALID_VALUE)
		return r;
	soft_lock();
	known = soft_allocation_at((uintptr_t)memory); /* true: the address is inside a registered range, but not its start */
	soft_unlock();
	return known ? r : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
