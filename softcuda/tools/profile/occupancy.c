/* occupancy.c — computes how many blocks fit on a multiprocessor, from the limits of each architecture. */
#include "softcuda/tools/profile/profile_internal.h"

#include <stddef.h>

/* Source: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability". */
static const struct architecture architectures[] = {
	{ 80, 64, 32, 164 }, { 86, 48, 16, 100 }, { 89, 48, 24, 100 }, { 90, 64, 32, 228 }, { 100, 64, 32, 228 }, { 120, 48, 24, 100 },
};

/* Limits that all these architectures share. Source: cuda_occupancy.h of CUDA 13.0: cudaOccSMemAllocationGranularity(),
 * cudaOccRegAllocationGranularity(), cudaOccSubPartitionsPerMultiprocessor(); SHARED_RESERVED: Programming Guide, as above. */
enum {
	REGISTERS = 65536,      /* number of registers per multiprocessor, and the maximum number per block */
	MAX_REGISTERS = 255,    /* maximum number of registers of a thread */
	REGISTER_UNIT = 256,    /* allocation unit of a warp's registers, in registers */
	PARTITIONS = 4,         /* number of partitions per multiprocessor; each has its own registers */
	SHARED_UNIT = 128,      /* allocation unit of shared memory in bytes */
	SHARED_RESERVED = 1024, /* bytes per block reserved for the system */
	MAX_THREADS_OF_BLOCK = 1024,
};

const struct architecture *gpul_architecture(unsigned sm)
{
	for (size_t k = 0; k < sizeof architectures / sizeof *architectures; k++)
		if (architectures[k].sm == sm)
			return &architectures[k];
	return NULL;
}

const char *gpul_architectures(void)
{
	return "80, 86, 89, 90, 100, 120";
}

static unsigned round_up(unsigned n, unsigned unit)
{
	return (n + unit - 1) / unit * unit;
}

static unsigned blocks_by_registers(unsigned warps_per_block, unsigned registers)
{
	const unsigned of_warp = round_up(registers * 32, REGISTER_UNIT);

	if (registers > MAX_REGISTERS || of_warp * round_up(warps_per_block, PARTITIONS) > REGISTERS)
		return 0;
	return of_warp ? REGISTERS / PARTITIONS / of_warp * PARTITIONS / warps_per_block : UINT32_MAX;
}

static unsigned blocks_by_shared(const struct architecture *a, uint32_t shared_bytes)
{
	const uint32_t all = a->shared_kib * 1024;

	if (shared_bytes > all - SHARED_RESERVED)
		return 0;
	return all / round_up(shared_bytes + SHARED_RESERVED, SHARED_UNIT);
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

struct occupancy gpul_occupancy(const struct architecture *a, unsigned threads, unsigned registers, uint32_t shared_bytes)
{
	struct occupancy o = { .warps_per_block = (threads + 31) / 32, .by_blocks = a->max_blocks };

	if (!threads || threads > MAX_THREADS_OF_BLOCK)
		return o;
	o.by_warps = a->max_warps / o.warps_per_block;
	o.by_registers = blocks_by_registers(o.warps_per_block, registers);
	o.by_shared = blocks_by_shared(a, shared_bytes);
	o.blocks = least(least(o.by_warps, o.by_registers), least(o.by_shared, o.by_blocks));
	o.warps = o.blocks * o.warps_per_block;
	o.percent = 100.0 * o.warps / a->max_warps;
	return o;
}
