/* sparse_scatter.cu — copies received blocks to their offsets in the output.
 *
 * The blocks have arrived in host memory; a warp copies each of them. */
#include "comm/device/pack.cuh"
#include "lab/sparse/sparse_layout.h"

enum { LANES = 32 };

extern "C" __global__ void __launch_bounds__(1024) gpul_sparse_scatter(unsigned char *buffer, uint64_t n_bytes, uint32_t block_bytes,
									const gpul_sparse_item *items, uint32_t n_items)
{
	const uint32_t lane = threadIdx.x % LANES, n_warps = gridDim.x * (blockDim.x / LANES), packs = block_bytes / GPUL_PACK_BYTES;

	for (uint32_t k = blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES; k < n_items; k += n_warps) {
		const uint4 *from = (const uint4 *)items[k].from;
		const uint64_t first = (uint64_t)items[k].block * packs;

		for (uint32_t i = lane; i < packs && (first + i) * GPUL_PACK_BYTES < n_bytes; i += LANES)
			gpul_store_pack(buffer, first + i, n_bytes, from[i]);
	}
}
