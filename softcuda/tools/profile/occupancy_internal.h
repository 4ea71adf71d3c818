/* occupancy_internal.h — the warps of a launch that a multiprocessor can hold at once, by the rules of an architecture. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_PROFILE_OCCUPANCY_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_PROFILE_OCCUPANCY_INTERNAL_H

#include <stdint.h>

struct architecture {
	unsigned sm;                 /* 90: compute capability 9.0 */
	unsigned max_warps, max_blocks;  /* of a multiprocessor */
	unsigned shared_kib;         /* of a multiprocessor; a block may use 1 KiB less */
};

/* NULL: unknown; gpul_architectures() is the list of those known, as text. */
const struct architecture *gpul_architecture(unsigned sm);
const char *gpul_architectures(void);

struct occupancy {
	unsigned warps_per_block;
	unsigned by_warps, by_registers, by_shared, by_blocks;  /* blocks that each resource allows; by_shared: UINT32_MAX if unlimited */
	unsigned blocks, warps;      /* resident at once */
	double percent;              /* of max_warps */
};

/** The theoretical occupancy of a launch.
 *
 * @threads       of a block
 * @registers     of a thread, as ptxas allocates them
 * @shared_bytes  of a block: static and dynamic
 * Errors  none: what does not fit gives 0 blocks
 * Source  cuda_occupancy.h of CUDA 13.0, cudaOccMaxActiveBlocksPerMultiprocessor() */
struct occupancy gpul_occupancy(const struct architecture *a, unsigned threads, unsigned registers, uint32_t shared_bytes);

#endif
