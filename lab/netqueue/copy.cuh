/* copy.cuh — copies bytes with one warp, by 16-byte loads and stores, whatever the alignment of source and destination.
 *
 *     source, 16-byte blocks      │ . . . a a a a a│b b b b b b b b│c c c c c . . .│      loads: whole blocks, one per lane
 *                                        └──────┐ ┌────┘    ↑ the word that a lane lacks comes from the next lane
 *     destination, 16-byte blocks     . .│a a a a a b b b│ ...                            stores: whole blocks, one per lane
 *                                     head, at most 15 bytes                tail, at most 15 bytes
 *
 * A store must not write bytes outside of the piece, so head and tail are stored byte by byte. A load may read bytes outside,
 * but only in 16-byte blocks that contain bytes of the piece.  The shift between source and destination is the same for all blocks of a
 * piece: shifts by whole words are selected at compile time, and shifts by bytes use funnel-shift instructions. */
#ifndef GPULOAD_LAB_NETQUEUE_COPY_CUH
#define GPULOAD_LAB_NETQUEUE_COPY_CUH

#include <stdint.h>

enum {
	GPUL_NETQUEUE_LANES = 32,
	GPUL_NETQUEUE_ROWS = 4,          /* number of 16-byte loads that a lane keeps in flight */
	GPUL_NETQUEUE_UNIT_BYTES = 4096, /* size of a unit: a warp copies one unit of a piece at a time */
	/* a remainder shorter than this belongs to the last unit; as a unit of its own, it would cost a warp the time of a full unit */
	GPUL_NETQUEUE_REST_BYTES = 512,
};

/* Load 16 bytes of the bounce buffer.  They are read only once, so .cs lets the cache evict them first. ld.global.nc is not
 * possible, because the CPU writes the slot again while the kernel runs. */
static __device__ __forceinline__ uint4 gpul_netqueue_load(const uint4 *from)
{
	uint4 v;

	asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from) : "memory");
	return v;
}

static __device__ __forceinline__ void gpul_netqueue_store(uint4 *to, uint4 v)
{
	asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

static __device__ __forceinline__ uint32_t gpul_netqueue_load_byte(const unsigned char *from)
{
	uint32_t byte;

	asm volatile("ld.global.cs.u8 %0, [%1];" : "=r"(byte) : "l"(from) : "memory");
	return byte;
}

static __device__ __forceinline__ void gpul_netqueue_store_byte(unsigned char *to, uint32_t byte)
{
	asm volatile("st.global.u8 [%0], %1;" ::"l"(to), "r"(byte) : "memory");
}

/* Get words 0 to N of the 16-byte block that follows this lane's block.  For all lanes but the last, that is the
 * next lane's block; for the last lane, it is the next_row of lane 0. */
template <int N> static __device__ __forceinline__ void gpul_netqueue_next(uint4 row, uint4 next_row, uint32_t lane, uint32_t next[4])
{
	const uint32_t of_row[4] = { row.x, row.y, row.z, row.w }, of_next[4] = { next_row.x, next_row.y, next_row.z, next_row.w };

#pragma unroll
	for (int i = 0; i <= N; i++)
		next[i] = __shfl_sync(~0u, lane == 0 ? of_next[i] : of_row[i], (int)(lane + 1) % GPUL_NETQUEUE_LANES);
}

/* Store n 16-byte blocks, whose source begins WORDS words and n_bits bits after `from`. n_bits: 0, 8, 16 or 24, not 0 if WORDS is 0. */
template <int WORDS>
static __device__ __forceinline__ void gpul_netqueue_copy_shifted(const uint4 *from, uint4 *to, uint32_t n, uint32_t n_bits, uint32_t lane)
{
#pragma unroll 1
	for (uint32_t base = 0; base < n; base += GPUL_NETQUEUE_ROWS * GPUL_NETQUEUE_LANES) {
		uint4 rows[GPUL_NETQUEUE_ROWS + 1];

#pragma unroll
		for (int r = 0; r <= GPUL_NETQUEUE_ROWS; r++) {
			const uint32_t i = base + (uint32_t)r * GPUL_NETQUEUE_LANES + lane;

			rows[r] = make_uint4(0, 0, 0, 0);
			/* block n is loaded too, because the last bytes of the unaligned source lie in it */
			if (i <= n && (r < GPUL_NETQUEUE_ROWS || lane == 0))
				rows[r] = gpul_netqueue_load(from + i);
		}
#pragma unroll
		for (int r = 0; r < GPUL_NETQUEUE_ROWS; r++) {
			const uint32_t i = base + (uint32_t)r * GPUL_NETQUEUE_LANES + lane;
			uint32_t w[8] = { rows[r].x, rows[r].y, rows[r].z, rows[r].w };

			gpul_netqueue_next<WORDS>(rows[r], rows[r + 1], lane, w + 4);
			if (i < n)
				gpul_netqueue_store(to + i, make_uint4(__funnelshift_r(w[WORDS], w[WORDS + 1], n_bits),
								       __funnelshift_r(w[WORDS + 1], w[WORDS + 2], n_bits),
								       __funnelshift_r(w[WORDS + 2], w[WORDS + 3], n_bits),
								       __funnelshift_r(w[WORDS + 3], w[WORDS + 4], n_bits)));
		}
	}
}

static __device__ __forceinline__ void gpul_netqueue_copy_aligned(const uint4 *from, uint4 *to, uint32_t n, uint32_t lane)
{
#pragma unroll 1
	for (uint32_t base = 0; base < n; base += GPUL_NETQUEUE_ROWS * GPUL_NETQUEUE_LANES) {
		uint4 rows[GPUL_NETQUEUE_ROWS];

#pragma unroll
		for (int r = 0; r < GPUL_NETQUEUE_ROWS; r++) {
			const uint32_t i = base + (uint32_t)r * GPUL_NETQUEUE_LANES + lane;

			if (i < n)
				rows[r] = gpul_netqueue_load(from + i);
		}
#pragma unroll
		for (int r = 0; r < GPUL_NETQUEUE_ROWS; r++) {
			const uint32_t i = base + (uint32_t)r * GPUL_NETQUEUE_LANES + lane;

			if (i < n)
				gpul_netqueue_store(to + i, rows[r]);
		}
	}
}

/* Copy n bytes with all lanes of a warp. */
static __device__ __forceinline__ void gpul_netqueue_copy(unsigned char *to, const unsigned char *from, uint32_t n, uint32_t lane)
{
	const uint32_t to_boundary = (0u - (uint32_t)(uintptr_t)to) % 16, head = to_boundary < n ? to_boundary : n;
	const uint32_t n_blocks = (n - head) / 16, tail = (n - head) % 16;
	const uint32_t at = lane < 16 ? lane : head + n_blocks * 16 + lane - 16; /* lanes 0 to 15 store the head, lanes 16 to 31 the tail */
	const bool has_byte = lane < 16 ? lane < head : lane - 16 < tail;
	const uint32_t shift = (uint32_t)((uintptr_t)from + head) % 16;
	const uint4 *blocks = (const uint4 *)(from + head - shift);
	uint4 *out = (uint4 *)(to + head);
	uint32_t byte = 0;

	if (has_byte)
		byte = gpul_netqueue_load_byte(from + at);
	if (shift == 0)
		gpul_netqueue_copy_aligned(blocks, out, n_blocks, lane);
	else if (shift < 4)
		gpul_netqueue_copy_shifted<0>(blocks, out, n_blocks, shift % 4 * 8, lane);
	else if (shift < 8)
		gpul_netqueue_copy_shifted<1>(blocks, out, n_blocks, shift % 4 * 8, lane);
	else if (shift < 12)
		gpul_netqueue_copy_shifted<2>(blocks, out, n_blocks, shift % 4 * 8, lane);
	else
		gpul_netqueue_copy_shifted<3>(blocks, out, n_blocks, shift % 4 * 8, lane);
	if (has_byte)
		gpul_netqueue_store_byte(to + at, byte);
}

#endif
