/* sparse_pack.cu — copies the non-zero blocks of a buffer into packed memory, one after another.
 *
 *     blocks   3   7   8 │ 40  41  90 │ ...       job 0: blocks 3, 7, 8, then flag 0     a CUDA block for each job
 *     to       0   1   2 │  3   4   5 │           job 1: blocks 40, 41, 90, then flag 1
 *
 * The CPU sends the blocks of a job when the flag is set, while later jobs are still running. */
#include "comm/device/pack.cuh"
#include "comm/device/word.cuh"
#include "lab/sparse/sparse_layout.h"

enum { LANES = 32 };

extern "C" __global__ void __launch_bounds__(1024) gpul_sparse_pack(const unsigned char *buffer, uint64_t n_bytes, uint32_t block_bytes,
								     const uint32_t *blocks, const gpul_sparse_job *jobs, uint64_t *flags,
								     uint64_t call)
{
	const gpul_sparse_job job = jobs[blockIdx.x];
	const uint32_t lane = threadIdx.x % LANES, n_warps = blockDim.x / LANES, packs = block_bytes / GPUL_PACK_BYTES;

	for (uint32_t k = threadIdx.x / LANES; k < job.n; k += n_warps) {
		const uint64_t first = (uint64_t)blocks[job.first + k] * packs;
		uint4 *to = (uint4 *)job.to + (uint64_t)k * packs;

		for (uint32_t i = lane; i < packs; i += LANES) {
			uint4 pack = make_uint4(0, 0, 0, 0);  /* write zeros for bytes after the end of the buffer */

			if ((first + i) * GPUL_PACK_BYTES < n_bytes)
				pack = gpul_load_pack(buffer, first + i, n_bytes);
			to[i] = pack;
		}
	}
	__syncthreads();
	if (threadIdx.x == 0)
		gpul_store_release(&flags[job.flag], call);
}
