/* transactions_internal.h — counts what a warp's access costs on a GPU: sectors, lines, and wavefronts of shared memory.
 *
 *     global memory    a warp's instruction is one request; it transfers every 32-byte sector that a lane accesses; four
 *                      sectors are a 128-byte cache line
 *     local memory     the same, but the words of the 32 lanes are interleaved: word w of lane l lies at (32 w + l) x 4
 *     shared memory    32 banks of 4 bytes, word w in bank w mod 32.  Lanes that access one word share it.  Different words of
 *                      one bank take a wavefront each.  Half a warp at a time makes accesses of 8 bytes, a quarter accesses of
 *                      16 bytes, so without conflicts these take 2 and 4 wavefronts
 *
 * A GPU merges two parts of a wide access if all lanes l and l xor 1 (or l xor 2) have the same address, which saves wavefronts.
 * This is not modelled.
 *
 * Source: CUDA C++ Programming Guide, "Device Memory Accesses" (global and local memory), and "Compute Capability 5.x: Shared
 * Memory"; Nsight Compute, Kernel Profiling Guide (sector, request, wavefront); wide accesses: NVIDIA's answers in "Unexpected
 * shared memory bank conflict", forums.developer.nvidia.com/t/77228. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_PROFILE_TRANSACTIONS_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_PROFILE_TRANSACTIONS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

enum { SECTOR_BYTES = 32, LINE_BYTES = 128, N_BANKS_SHARED = 32, WARP_LANES = 32 };

/* The cost of one request, in sectors, or in wavefronts of shared memory. */
struct cost {
	uint32_t actual; /* number of sectors, or, for shared memory, of wavefronts */
	uint32_t ideal;  /* cost if the same bytes were contiguous and aligned; for shared memory, if there were no bank conflicts */
	uint32_t lines;  /* number of 128-byte lines; 0 for shared memory */
};

/* Return the cost if all 32 lanes access contiguous memory: lane l accesses `bytes` bytes at at + l * bytes. */
static inline struct cost gpul_sectors_of_row(uint64_t at, uint32_t bytes)
{
	const uint64_t last = at + (uint64_t)WARP_LANES * bytes - 1;

	return (struct cost){ .actual = (uint32_t)(last / SECTOR_BYTES - at / SECTOR_BYTES + 1),
			      .ideal = bytes,
			      .lines = (uint32_t)(last / LINE_BYTES - at / LINE_BYTES + 1) };
}

/* Return the cost of n (1 to 32) accesses of `bytes` bytes each, at most SECTOR_BYTES, all aligned to their size. */
struct cost gpul_sectors(const uint64_t *at, unsigned n, uint32_t bytes);
/* Return the cost of one access of any length, as by cp.async.bulk. */
struct cost gpul_sectors_of_span(uint64_t at, uint64_t bytes);
/* Return the cost if each lane l in `lanes` accesses `bytes` bytes at offset at[l] of its local memory. */
struct cost gpul_sectors_local(const uint64_t at[WARP_LANES], uint32_t lanes, uint32_t bytes);
/* Return the cost if each lane l in `lanes` accesses `bytes` bytes at at[l] in shared memory.  atomic: updates of one word are
 * serialised. */
struct cost gpul_wavefronts(const uint32_t at[WARP_LANES], uint32_t lanes, uint32_t bytes, bool atomic);

#endif
