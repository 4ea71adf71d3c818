/* occupancy_internal.h — how many warps of a launch can be resident on a multiprocessor of an architecture. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_PROFILE_OCCUPANCY_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_PROFILE_OCCUPANCY_INTERNAL_H

#include <stdint.h>

struct architecture {
	unsigned sm;                 /* 90: compute capability 9.0 */
	unsigned max_warps, max_blocks;  /* of a multiprocessor */
	unsigned shared_kib;         /* per multiprocessor; a block may use 1 KiB less */
};

/* NULL: unknown.  gpul_architectures() lists the known ones as text. */
const struct architecture *gpul_architecture(unsigned sm);
const char *gpul_architectures(void);

struct occupancy {
	unsigned warps_per_block;
	unsigned by_warps, by_registers, by_shared, by_blocks;  /* the number of blocks that each resource allows; by_shared: UINT32_MAX if unlimited */
	unsigned blocks, warps;      /* resident at once */
	double percent;              /* of max_warps */
};

/** The theoretical occupancy of a launch.
 *
 * @threads       of a block
 * @registers     of a thread, as ptxas allocates them
 * @shared_bytes  of a block: static and dynamic
 * Errors none: 0 blocks if the launch does not fit
 * Source  cuda_occupancy.h of CUDA 13.0, cudaOccMaxActiveBlocksPerMultiprocessor() */
struct occupancy gpul_occupancy(const struct architecture *a, unsigned threads, unsigned registers, uint32_t shared_bytes);

#endif
