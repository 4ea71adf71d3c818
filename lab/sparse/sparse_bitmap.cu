/* sparse_bitmap.cu — finds the blocks of a buffer that are not zero.
 *
 *     block    0    1    2   ...   31  │ 32 ...          a warp makes the word of 32 blocks:
 *     bit      1    0    1   ...    0  │                 1. thread i looks at the first 16 bytes of block i
 *     word     ───────── 0 ─────────── │ 1               2. the warp reads the other blocks until it finds a set bit
 *
 * So dense data costs one read of 16 bytes for each block, and only sparse data is read completely. */
#include "comm/device/pack.cuh"

enum { LANES = 32, WORD_BLOCKS = 32, PACKS_PER_VOTE = 4, BLOCKS_AT_ONCE = 4 };

static __device__ __forceinline__ uint32_t bits_of(uint4 pack)
{
	return pack.x | pack.y | pack.z | pack.w;
}

/* Read n packs (16 bytes each) with one warp, from pack `first` of a buffer on.  The buffer may be misaligned, or end before
 * the last pack.  Returns true if a bit is set. */
static __device__ __noinline__ bool any_is_set(const unsigned char *buffer, uint64_t n_bytes, uint64_t first, uint32_t n)
{
	const uint32_t lane = threadIdx.x % LANES;

	for (uint32_t at = 0; at < n; at += PACKS_PER_VOTE * LANES) {
		uint32_t found = 0;

#pragma unroll
		for (uint32_t k = 0; k < PACKS_PER_VOTE; k++) {
			const uint32_t i = at + k * LANES + lane;

			if (i < n && (first + i) * GPUL_PACK_BYTES < n_bytes)
				found |= bits_of(gpul_load_pack(buffer, first + i, n_bytes));
		}
		if (__any_sync(~0u, found != 0))
			return true;
	}
	return false;
}

/* Make the word of 32 blocks in the most common case: the blocks are aligned and have PACKS packs, a multiple of 32, and the first 16
 * bytes of at most a quarter of them are not zero, so that a branch which skips those blocks would cost more than it saves. */
template <uint32_t PACKS> static __device__ __forceinline__ uint32_t scan(const uint4 *packs)
{
	uint32_t bits = 0;

	packs += threadIdx.x % LANES;
	for (uint32_t i = 0; i < WORD_BLOCKS; i += BLOCKS_AT_ONCE, packs += BLOCKS_AT_ONCE * PACKS)
#pragma unroll
		for (uint32_t k = 0; k < BLOCKS_AT_ONCE; k++) {
			uint32_t found = 0;

#pragma unroll
			for (uint32_t j = 0; j < PACKS; j += LANES)
				found |= bits_of(packs[k * PACKS + j]);
			if (__any_sync(~0u, found != 0))
				bits |= 1u << (i + k);
		}
	return bits;
}

extern "C" __global__ void __launch_bounds__(1024) gpul_sparse_bitmap(const unsigned char *buffer, uint64_t n_bytes, uint32_t block_bytes,
								       uint32_t n_blocks, uint32_t *bitmap)
{
	const uint32_t lane = threadIdx.x % LANES, n_warps = gridDim.x * (blockDim.x / LANES), packs = block_bytes / GPUL_PACK_BYTES;
	const bool aligned = gpul_alignment(buffer) == GPUL_PACK_BYTES;

	for (uint32_t word = blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES; (uint64_t)word * WORD_BLOCKS < n_blocks; word += n_warps) {
		const uint32_t first = word * WORD_BLOCKS, n = min(n_blocks - first, (uint32_t)WORD_BLOCKS);
		const bool whole = aligned && (uint64_t)(first + WORD_BLOCKS) * block_bytes <= n_bytes;
		const uint4 *at = (const uint4 *)buffer + (uint64_t)first * packs;
		uint32_t bits = __ballot_sync(~0u, lane < n && bits_of(gpul_load_pack(buffer, (uint64_t)(first + lane) * packs, n_bytes)) != 0);

		if (whole && packs == 64 && __popc(bits) <= WORD_BLOCKS / 4)
			bits = scan<64>(at);
		else if (whole && packs == 32 && __popc(bits) <= WORD_BLOCKS / 4)
			bits = scan<32>(at);
		else
			for (uint32_t left = ~bits & ~0u >> (WORD_BLOCKS - n); left; left &= left - 1)
				if (any_is_set(buffer, n_bytes, (uint64_t)(first + __ffs(left) - 1) * packs, packs))
					bits |= left & (0u - left);
		if (lane == 0)
			bitmap[word] = bits;
	}
}
