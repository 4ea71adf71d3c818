/* checks.c — the checks for several kinds of memory: of sizes, and of access between GPUs. */
#include "memalloc/mem_internal.h"

#include <unistd.h>

size_t gpul_mem_page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

gpul_status gpul_mem_round(gpul_mem *m, size_t grain, gpul_error *err)
{
	const size_t bytes = m->about.bytes, rest = grain ? bytes % grain : 1;

	if (grain == 0 || (rest && bytes > SIZE_MAX - (grain - rest)))
		return gpul_fail(err, GPUL_EINVAL, 0, "%s memory: %zu bytes, rounded up to a multiple of %zu, exceed the address space",
				 gpul_mem_kind_name(m->about.kind), bytes, grain);
	m->about.granularity_bytes = grain;
	m->about.mapped_bytes = rest ? bytes + (grain - rest) : bytes;
	return GPUL_OK;
}

gpul_status gpul_mem_accept_size(gpul_mem *m, const gpul_mem_offer *offer, size_t grain, gpul_error *err)
{
	const size_t mapped = offer->mapped_bytes;

	if (offer->bytes == 0 || offer->bytes > mapped || mapped > PTRDIFF_MAX || grain == 0 || mapped % grain)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the owner offered %s memory of %zu bytes in a mapping of %zu bytes: expected at least 1 byte, "
				 "and a mapping that is a multiple of %zu bytes",
				 gpul_mem_kind_name(m->about.kind), offer->bytes, mapped, grain);
	m->about.granularity_bytes = grain;
	m->about.mapped_bytes = mapped;
	return GPUL_OK;
}

gpul_status gpul_mem_check_peers(gpul_mem *m, CUdevice owner, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < m->about.n_devices; i++) {
		int can = 0;

		if (m->handles[i] == owner)
			continue;
		st = mem_cu(m, err, cuDeviceCanAccessPeer(&can, m->handles[i], owner));
		if (!st && !can)
			st = gpul_fail(err, GPUL_EUNSUPPORTED, m->about.devices[i],
				       "device %d cannot access the memory of device %d: no peer access "
				       "(see nvidia-smi topo -m)",
				       m->about.devices[i], (int)owner);
	}
	return st;
}
