/* cu_vmm.c — reserves addresses, maps memory at reserved addresses, and unmaps it.
 *
 * A reservation consists of PROT_NONE pages, so that mmap() does not use the addresses for other memory.  A mapping
 * replaces these pages by the pages of a memfd, at first without access (cu_vmm_access.c).
 *
 * Source: CUDA Driver API, Virtual Memory Management; errors of unusual calls are those of driver 580.159. */
#include "softcuda/api/vmm/cu_multicast_internal.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ---- reservations: a tree ordered by address ------------------------------ */

static void *reservations;

/* Order reservations by address.  Overlapping ones compare as equal, so a search finds the reservation that contains an address. */
static int compare_reservations(const void *left, const void *right)
{
	const struct reservation *a = left, *b = right;

	if (a->base + a->bytes <= b->base)
		return -1;
	return a->base >= b->base + b->bytes;
}

/* Return the reservation that contains an address; NULL: none.  The caller holds the lock. */
static struct reservation *find_reservation(uint64_t address)
{
	struct reservation key = { .base = address, .bytes = 1 };
	struct reservation *const *found = tfind(&key, &reservations, compare_reservations);

	return found ? *found : NULL;
}

bool soft_is_reserved(uint64_t address)
{
	return find_reservation(address);
}

static void *map_inaccessible(uint64_t address, size_t bytes, int more_flags)
{
	return mmap((void *)(uintptr_t)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | more_flags, -1, 0);
}

/* Reserve aligned addresses at any place.  If mmap() returns an unaligned address (older kernels), map more, and unmap both ends. */
static uint64_t choose_addresses(size_t bytes, size_t align)
{
	void *plain = map_inaccessible(0, bytes, 0);
	uint64_t from, first;

	if (plain == MAP_FAILED)
		return 0;
	if ((uintptr_t)plain % align == 0)
		return (uintptr_t)plain;
	munmap(plain, bytes);
	plain = map_inaccessible(0, bytes + align, 0);
	if (plain == MAP_FAILED)
		return 0;
	from = (uintptr_t)plain;
	first = (from + align - 1) / align * align;
	if (first > from)
		munmap(plain, first - from);
	if (first < from + align)
		munmap((void *)(uintptr_t)(first + bytes), from + align - first);
	return first;
}

static uint64_t reserve_addresses(size_t bytes, size_t align, uint64_t hint)
{
	if (hint && hint % align == 0) {
		void *there = map_inaccessible(hint, bytes, MAP_FIXED_NOREPLACE);

		if (there != MAP_FAILED && (uintptr_t)there == hint)
			return hint;
		if (there != MAP_FAILED) /* an old Linux kernel, which ignores MAP_FIXED_NOREPLACE, chose another address */
			munmap(there, bytes);
	}
	return choose_addresses(bytes, align);
}

static CUresult enter_reservation(uint64_t base, size_t bytes)
{
	struct reservation *r = calloc(1, sizeof *r);

	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*r = (struct reservation){ .base = base, .bytes = bytes };
	soft_lock();
	bool entered = tsearch(r, &reservations, compare_reservations) != NULL;
	soft_unlock();
	if (entered)
		return CUDA_SUCCESS;
	free(r);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr hint, unsigned long long flags)
{
	uint64_t base;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out || flags || !bytes || bytes % VMM_GRANULARITY || hint % VMM_GRANULARITY)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMemAddressReserve: %zu bytes, hint %#llx, flags %llu: size and hint must be multiples of 2 MiB, and "
				   "flags must be 0",
				   bytes, hint, flags);
	if (align & (align - 1))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemAddressReserve: alignment %zu is not a power of two", align);
	if (align < VMM_GRANULARITY)
		align = VMM_GRANULARITY;
	base = bytes + align > bytes ? reserve_addresses(bytes, align, hint) : 0;
	if (!base)
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMemAddressReserve: no free address range of %zu bytes", bytes);
	r = enter_reservation(base, bytes);
	if (r)
		munmap((void *)(uintptr_t)base, bytes);
	else
		*out = base;
	return r;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	struct reservation *v;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	v = find_reservation(address);
	if (!v || v->base != address || v->bytes != bytes) {
		r = soft_refuse(
			CUDA_ERROR_INVALID_VALUE,
			"cuMemAddressFree: the range at %#llx of %zu bytes is not a complete range that cuMemAddressReserve returned",
			address, bytes);
	} else if (v->n_mappings) {
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemAddressFree: %zu mappings are left at %#llx: call cuMemUnmap first",
				v->n_mappings, address);
	} else {
		tdelete(v, &reservations, compare_reservations);
		munmap((void *)(uintptr_t)v->base, v->bytes);
		free(v);
	}
	soft_unlock();
	return r;
}

/* ---- mappings --------------------------------------------------------------------------- */

struct mapping *soft_mapping_at(uint64_t address)
{
	gpul_exec_range range;

	if (!gpul_exec_memory_find(soft.memory, address, &range))
		return NULL;
	return soft_handle_find(HANDLE_MAPPING, range.owner);
}

/* Enter m into the table of memory that kernels may access, at first without access for any device. */
static CUresult enter_mapping(struct mapping *m)
{
	gpul_exec_range range = { .base = m->base, .bytes = m->bytes, .denied = ~0u, .remedy = "cuMemSetAccess" };
	gpul_error err = { 0 };
	struct stat file;
	gpul_status st;

	m->handle = soft_handle_new(HANDLE_MAPPING, m);
	if (!m->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range.owner = m->handle;
	snprintf(range.label, sizeof range.label, "cuMemMap");
	if (m->memory->multicast) {
		range.flags = GPUL_EXEC_MEM_MULTICAST;
		range.team = &m->memory->multicast->team;
	} else if (!fstat(m->memory->fd, &file)) {
		range.memory_id = file.st_ino;
	}
	st = gpul_exec_memory_add(soft.memory, &range, &err);
	if (!st)
		return CUDA_SUCCESS;
	soft_handle_free(m->handle);
	return st == GPUL_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemMap: %s", err.text);
}

static CUresult map_memory(struct reservation *in, uint64_t base, size_t bytes, struct memory *memory)
{
	struct mapping *m = calloc(1, sizeof *m);
	CUresult r;

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*m = (struct mapping){ .memory = memory, .in = in, .base = base, .bytes = bytes };
	r = enter_mapping(m);
	if (r)
		goto free_m;
	/* a multicast object needs no pages at its addresses, because instructions access the bound memory instead */
	if (!memory->multicast && mmap((void *)(uintptr_t)base, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->fd, 0) == MAP_FAILED) {
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMemMap: mmap failed: is vm.max_map_count reached?");
		goto leave_table;
	}
	m->id = ++soft.next_id;
	memory->refs++;
	in->n_mappings++;
	return CUDA_SUCCESS;
leave_table:
	gpul_exec_memory_remove(soft.memory, base);
	soft_handle_free(m->handle);
free_m:
	free(m);
	return r;
}

static CUresult check_and_map(uint64_t base, size_t bytes, struct memory *memory)
{
	struct reservation *in;

	if (bytes != memory->bytes && (!memory->multicast || bytes > memory->bytes || bytes % VMM_GRANULARITY))
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED,
				   "cuMemMap: the size is %zu of the handle's %zu bytes: only the whole memory can be mapped, or the "
				   "first multiples of 2 MiB of a multicast object",
				   bytes, memory->bytes);
	in = find_reservation(base);
	if (!in || bytes > in->bytes - (base - in->base))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemMap: %zu bytes at %#llx are not within one reservation", bytes,
				   (unsigned long long)base);
	return map_memory(in, base, bytes, memory);
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct memory *memory;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (flags || !bytes || address % VMM_GRANULARITY)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMemMap: %zu bytes at %#llx, flags %llu: the address must be a multiple of 2 MiB, and flags must be 0",
				   bytes, address, flags);
	soft_lock();
	memory = soft_memory_find(handle);
	if (memory)
		soft_multicast_wait(memory);
	memory = soft_memory_find(handle);
	if (!memory)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (offset)
		r = soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuMemMap: the offset must be 0");
	else
		r = check_and_map(address, bytes, memory);
	soft_unlock();
	return r;
}

/* Unmap m: remove the range from the table of memory that kernels may access, wait for running accesses, and then unmap the pages. */
static void unmap_mapping(struct mapping *m)
{
	gpul_exec_memory_remove(soft.memory, m->base);
	soft_settle(m->base, m->bytes);
	map_inaccessible(m->base, m->bytes, MAP_FIXED);
	soft_handle_free(m->handle);
	m->in->n_mappings--;
	soft_memory_unref(m->memory);
	free(m);
}

/* Return the first mapping that overlaps [address, end), or NULL. */
static struct mapping *next_mapping(uint64_t address, uint64_t end)
{
	gpul_exec_range range;

	while (gpul_exec_memory_next(soft.memory, address, &range) && range.base < end) {
		struct mapping *m = soft_handle_find(HANDLE_MAPPING, range.owner);

		if (m)
			return m;
		address = range.base + range.bytes;
	}
	return NULL;
}

/* Returns true if all addresses are reserved. */
static bool all_reserved(uint64_t address, uint64_t end)
{
	const struct reservation *v = find_reservation(address);

	while (v && v->base + v->bytes < end)
		v = find_reservation(v->base + v->bytes);
	return v;
}

/* Only whole mappings can be unmapped; reserved addresses between them are skipped. */
EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	struct mapping *m;
	uint64_t end;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!bytes || __builtin_add_overflow(address, bytes, &end))
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	if (!all_reserved(address, end))
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuMemUnmap: the range at %#llx of %zu bytes is not within a range that cuMemAddressReserve returned",
				address, bytes);
	for (uint64_t at = address; !r && (m = next_mapping(at, end)); at = m->base + m->bytes)
		if (m->base < address || m->bytes > end - m->base)
			r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
					"cuMemUnmap: the range at %#llx of %zu bytes contains only a part of a mapping: only whole "
					"mappings can be unmapped",
					address, bytes);
	while (!r && (m = next_mapping(address, end)))
		unmap_mapping(m);
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
	struct mapping *mapping;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	mapping = out ? soft_mapping_at((uintptr_t)address) : NULL;
	r = mapping ? soft_memory_adopt(mapping->memory, out) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		mapping->memory->refs++;
	soft_unlock();
	return r;
}
