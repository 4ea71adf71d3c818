/* cu_ipc_memory.c — cuIpcGetMemHandle and cuIpcOpenMemHandle: memory of cuMemAlloc in another process.
 *
 *     owner                                              another process
 *     cuMemAlloc          private pages
 *     cuIpcGetMemHandle   the pages move into a memfd  ──64 bytes──>  cuIpcOpenMemHandle: mmap
 *     cuMemFree           the file is closed; its pages are freed when no process maps them
 *
 * The first cuIpcGetMemHandle moves the pages, while kernels and copies are paused. So memory that is not shared needs no descriptor and
 * no extra time: creating a memfd of 1 MiB takes 3.7 us instead of 0.04 us, and the first access to it takes 1.3 times as long. */
#include "softcuda/api/memory/cu_memory_internal.h"

#include "softcuda/exec/observer_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/file/io.h"

static void *address_of(const struct allocation *a)
{
	return (void *)(uintptr_t)a->base;
}

/* Copy to the file only pages that the application has written; the other pages of a new file are 0 and use no memory yet.
 * /proc/self/pagemap has 8 bytes for each page; if it cannot be read, all pages are copied. */
static bool write_touched(int fd, const char *bytes, size_t n)
{
	enum { AT_ONCE = 512 };
	const uint64_t touched = UINT64_C(3) << 62; /* the page is in memory or swapped out: proc_pid_pagemap(5) */
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n_pages = (n + page - 1) / page, skipped = 0;
	uint64_t entries[AT_ONCE];
	bool written = true;
	int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; written && i < n_pages; i++) {
		size_t k = i % AT_ONCE, at = i * page;
		off_t where = (off_t)(((uintptr_t)bytes / page + i) * 8);

		if (!k && pread(map, entries, sizeof entries, where) != sizeof entries)
			memset(entries, 0xff, sizeof entries);
		if (!(entries[k] & touched)) {
			skipped += page;
			continue;
		}
		written = (!skipped || lseek(fd, (off_t)skipped, SEEK_CUR) >= 0) &&
			  gpul_write_all(fd, bytes + at, n - at < page ? n - at : page);
		skipped = 0;
	}
	if (map >= 0)
		close(map);
	return written;
}

/* Copy the allocation to the file f, and map f in its place.  The caller holds the lock, and no copy is running in the allocation. */
static CUresult move_pages(const struct allocation *a, const struct ipc_file *f)
{
	bool moved;

	gpul_exec_machine_pause(soft.machine);
	moved = write_touched(f->fd, address_of(a), f->bytes) &&
		mmap(address_of(a), f->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, f->fd, 0) != MAP_FAILED;
	gpul_exec_machine_resume(soft.machine);
	return moved ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult share_allocation(struct allocation *a)
{
	struct ipc_file *f;
	CUresult r;

	if (a->shared)
		return CUDA_SUCCESS;
	f = malloc(sizeof *f);
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = soft_ipc_create(IPC_MEMORY, a->bytes, f);
	if (r)
		goto free_f;
	r = move_pages(a, f);
	if (r)
		goto close_file;
	a->shared = f;
	gpul_exec_memory_written(soft.memory, a->base, 0, a->bytes); /* for memcheck: other processes can write the memory from now on */
	return CUDA_SUCCESS;
close_file:
	soft_ipc_close(f);
free_f:
	free(f);
	return r;
}

static struct allocation *find_own(CUdeviceptr address)
{
	struct allocation *a = soft_allocation_at(address);

	return a && a->kind == ALLOC_DEVICE && !a->free_is_queued ? a : NULL;
}

/* Find the allocation and wait until no copy is running in it; new copies cannot start while the caller holds the lock. */
static struct allocation *find_settled(CUdeviceptr address)
{
	struct allocation *a = find_own(address);

	if (a && !a->shared) {
		soft_settle(a->base, a->bytes); /* can release the lock, so another thread can free a */
		a = find_own(address);
	}
	return a;
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
	struct context *ctx;
	struct allocation *a;
	struct ipc_handle h;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	a = find_settled(address);
	if (!out || !a)
		r = soft_answer(CUDA_ERROR_INVALID_VALUE, "cuIpcGetMemHandle: the address is not memory of cuMemAlloc in this process");
	if (!r)
		r = share_allocation(a);
	if (!r)
		r = soft_ipc_describe(IPC_MEMORY, a->shared, a->device, &h);
	if (!r)
		memcpy(out, &h, sizeof h);
	soft_unlock();
	return r;
}

/* ---- opening memory of another process -------------------------------------------------- */

static struct allocation *find_opened(struct context *ctx, const struct ipc_handle *h)
{
	for (struct link *i = ctx->allocations.next; i != &ctx->allocations; i = i->next) {
		struct allocation *a = CONTAINER(i, struct allocation, link);

		if (a->kind == ALLOC_IPC && !memcmp(a->ipc_id, h->id, sizeof h->id))
			return a;
	}
	return NULL;
}

/* Map the memory of h; the caller holds the lock. */
static CUresult map_handle(struct context *ctx, const struct ipc_handle *h, struct allocation **out)
{
	struct device *device = soft_device_of_uuid(h->uuid);
	struct allocation *a;
	void *memory;
	int fd;
	CUresult r;

	if (!device)
		return soft_refuse(CUDA_ERROR_INVALID_DEVICE, "cuIpcOpenMemHandle: the memory is on a device that this process does "
							      "not see: check CUDA_VISIBLE_DEVICES and GPULOAD_SOFT_DEVICES");
	fd = soft_ipc_open(IPC_MEMORY, h);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	memory = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a = calloc(1, sizeof *a);
	r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!a)
		goto unmap;
	*a = (struct allocation){ .kind = ALLOC_IPC, .base = (uintptr_t)memory, .bytes = h->bytes, .device = device, .n_opened = 1 };
	memcpy(a->ipc_id, h->id, sizeof a->ipc_id);
	r = soft_allocation_enter(ctx, a, 0);
	if (r)
		goto free_a;
	*out = a;
	return CUDA_SUCCESS;
free_a:
	free(a);
unmap:
	munmap(memory, h->bytes);
	return r;
}

static CUresult open_memory_handle(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags)
{
	struct context *ctx;
	struct allocation *a;
	struct ipc_handle h;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	memcpy(&h, handle, sizeof h);
	if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !soft_ipc_is_handle(IPC_MEMORY, &h))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (soft_ipc_is_own(&h))
		r = soft_refuse(CUDA_ERROR_INVALID_CONTEXT, "cuIpcOpenMemHandle: this process allocated the memory: use its pointer");
	else if ((a = find_opened(ctx, &h)))
		a->n_opened++;
	else
		r = map_handle(ctx, &h, &a);
	if (!r)
		*out = a->base;
	soft_unlock();
	return r;
}

EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
	return open_memory_handle(out, &handle, flags);
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
	return open_memory_handle(out, &handle, flags);
}

static struct allocation *find_opened_at(CUdeviceptr address)
{
	struct allocation *a = soft_allocation_at(address);

	return a && a->kind == ALLOC_IPC && a->base == address ? a : NULL;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	struct context *ctx;
	struct allocation *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	a = find_opened_at(address);
	if (a && a->n_opened == 1) {
		soft_context_wait(a->ctx);   /* wait, because kernels of the context that accessed the memory later would fault */
		a = find_opened_at(address); /* search again: another thread may have closed the memory meanwhile */
	}
	if (!a)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (--a->n_opened == 0)
		soft_allocation_free(a);
	soft_unlock();
	return r;
}
