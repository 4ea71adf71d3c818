/* cu_vmm_access.c — the access rights of a mapping: cuMemSetAccess, cuMemGetAccess.
 *
 *                        kernels: the interpreter checks the rights of each device
 *     rights of m ──────┤
 *                        the CPU: the protection of the pages is the union of all rights
 *
 * So a CPU store succeeds if only a device may write the memory; with a GPU, such a store causes a SIGSEGV. */
#include "softcuda/api/vmm/cu_multicast_internal.h"

#include <sys/mman.h>

bool soft_mapping_allows(const struct mapping *m, bool write)
{
	return write ? m->writers || m->host == CU_MEM_ACCESS_FLAGS_PROT_READWRITE : m->readers || m->host != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static bool is_location_of_host(CUmemLocationType type)
{
	return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

static CUresult check_descriptor(const CUmemAccessDesc *d)
{
	if (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && d->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	    d->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemSetAccess: unknown access flags %d", (int)d->flags);
	if (is_location_of_host(d->location.type))
		return CUDA_SUCCESS; /* CUDA Driver API: location.id is ignored */
	if (d->location.type == CU_MEM_LOCATION_TYPE_DEVICE && d->location.id >= 0 && d->location.id < soft.n_devices)
		return CUDA_SUCCESS;
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemSetAccess: location type %d, id %d is neither the host nor one of %d devices",
			   (int)d->location.type, d->location.id, soft.n_devices);
}

/* Check that the range consists of whole mappings without gaps, and that each location can access their memory. */
static CUresult check_range(uint64_t address, size_t bytes, const CUmemAccessDesc *d, size_t n)
{
	uint64_t at = address, end = address + bytes;
	bool for_host = false;

	for (size_t i = 0; i < n; i++)
		for_host |= is_location_of_host(d[i].location.type);
	while (at < end) {
		struct mapping *m = soft_mapping_at(at);

		if (!m || m->base != at || m->bytes > end - at)
			return soft_refuse(CUDA_ERROR_INVALID_VALUE,
					   "cuMemSetAccess: the range at %#llx of %zu bytes does not consist of whole mappings",
					   (unsigned long long)address, bytes);
		if (for_host && !is_host_memory(m->memory))
			return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuMemSetAccess: the CPU cannot access device memory");
		at += m->bytes;
	}
	return CUDA_SUCCESS;
}

static void apply_descriptor(struct mapping *m, const CUmemAccessDesc *d)
{
	uint32_t bit;

	if (is_location_of_host(d->location.type)) {
		m->host = d->flags;
		return;
	}
	bit = 1u << d->location.id;
	m->readers &= ~bit;
	m->writers &= ~bit;
	if (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		m->readers |= bit;
	if (d->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		m->writers |= bit;
}

static int page_protection(const struct mapping *m)
{
	return (soft_mapping_allows(m, false) ? PROT_READ : 0) | (soft_mapping_allows(m, true) ? PROT_READ | PROT_WRITE : 0);
}

/* Change the rights of a mapping.  The CPU's pages get new rights before the kernels do, and lose old rights after the kernels. */
static CUresult set_rights(struct mapping *m, const CUmemAccessDesc *d, size_t n)
{
	struct mapping wanted = *m;
	void *pages = (void *)(uintptr_t)m->base;
	size_t bytes = m->bytes;
	int before = page_protection(m), after;
	const bool has_pages = !m->memory->multicast;
	char why[128];

	if (!has_pages && !soft_team_map(m->memory->multicast, why, sizeof why))
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMemSetAccess: a multicast object: %s", why);
	for (size_t i = 0; i < n; i++)
		apply_descriptor(&wanted, &d[i]);
	after = page_protection(&wanted);
	if (has_pages && after & ~before && mprotect(pages, bytes, before | after))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemSetAccess: mprotect failed: is the descriptor read-only?");
	*m = wanted;
	gpul_exec_memory_set_rights(soft.memory, m->base, ~m->readers, ~m->writers);
	if (before & ~after) {
		soft_settle((uintptr_t)pages, bytes); /* may release the lock, so that another thread can free m */
		if (has_pages)
			mprotect(pages, bytes, after);
	}
	return CUDA_SUCCESS;
}

/* Find the next mapping in [*at, end) whose pages must be populated; false: there is none. */
static bool next_to_populate(uint64_t *at, uint64_t end, size_t *bytes)
{
	struct mapping *m;

	while (*at < end && (m = soft_mapping_at(*at))) {
		*bytes = m->bytes;
		if (is_host_memory(m->memory) && !m->memory->imported && soft_mapping_allows(m, true))
			return true;
		*at += *bytes;
	}
	return false;
}

/* Populate the pages of host memory that this process created, which is three times as fast as a page fault for each; imports are not
 * populated, so that they are fast.  The lock is not held during madvise(): if the range is unmapped meanwhile, madvise() only fails. */
static void populate_range(uint64_t at, uint64_t end)
{
	size_t bytes;

	for (;;) {
		bool found;

		soft_lock();
		found = next_to_populate(&at, end, &bytes);
		soft_unlock();
		if (!found)
			return;
		madvise((void *)(uintptr_t)at, bytes, MADV_POPULATE_WRITE);
		at += bytes;
	}
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *d, size_t n)
{
	uint64_t end;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!d || !n || !bytes || __builtin_add_overflow(address, bytes, &end))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < n; i++)
		r = check_descriptor(&d[i]);
	if (r)
		return r;
	soft_lock();
	r = check_range(address, bytes, d, n);
	for (uint64_t at = address; !r && at < end;) {
		struct mapping *m = soft_mapping_at(at);

		if (!m) /* another thread has unmapped the range */
			break;
		at += m->bytes;
		r = set_rights(m, d, n);
	}
	soft_unlock();
	if (!r)
		populate_range(address, end);
	return r;
}

static CUmemAccess_flags rights_at(const struct mapping *m, const CUmemLocation *location)
{
	if (is_location_of_host(location->type))
		return m->host;
	if (m->writers >> location->id & 1)
		return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return m->readers >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
	struct mapping *m;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	m = soft_mapping_at(address);
	if (!m || check_descriptor(&(CUmemAccessDesc){ .location = *location }))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*flags = (unsigned long long)rights_at(m, location);
	soft_unlock();
	return r;
}
