/* direct.cuh — sums and copies between the buffers of all ranks, as this rank maps them.
 *
 *     from[0] ─┐
 *     from[1] ─┼─ reduced in this order ──┬─> to[0]
 *     from[2] ─┘                          └─> to[1]
 *
 * Block b of n processes the tiles b, b + n ...; a tile has GPUL_DIRECT_UNROLL packs (of 16 bytes: pack.cuh) for each
 * thread.  The remainder is divided among all threads.  All loads of a tile are in flight before the first one is used, because a
 * load over NVLink takes more than a microsecond. */
#ifndef GPULOAD_COMM_DEVICE_DIRECT_CUH
#define GPULOAD_COMM_DEVICE_DIRECT_CUH

#include "comm/device/desk.cuh"
#include "comm/device/pack.cuh"
#include "comm/device/reduce.cuh"

enum { GPUL_DIRECT_UNROLL = 4 };

/* The buffers that the block reads and writes; in shared memory. */
struct gpul_direct_job {
	const unsigned char *from[GPUL_COMM_MAX_PEERS];
	unsigned char *to[GPUL_COMM_MAX_PEERS];
	uint32_t n_from, n_to;
	uint64_t begin, end; /* range of packs that the block processes */
	uint64_t n_bytes;    /* size of each buffer; the last pack may be short */
};

/* True if all addresses are multiples of 16. */
static __device__ __forceinline__ bool gpul_direct_aligned(const gpul_direct_job *job)
{
	uintptr_t all = 0;

	for (uint32_t r = 0; r < job->n_from; r++)
		all |= (uintptr_t)job->from[r];
	for (uint32_t r = 0; r < job->n_to; r++)
		all |= (uintptr_t)job->to[r];
	return all % GPUL_PACK_BYTES == 0;
}

/* Process N whole and aligned packs i, i + stride ... of all buffers.  SUMS: reduce from[0], from[1] ...; otherwise copy from[0]. */
template <bool SUMS, int N>
static __device__ __forceinline__ void gpul_direct_tile(const gpul_direct_job *job, const gpul_comm_work *work, uint64_t i, uint32_t stride)
{
	const bool adds_f32 = gpul_adds_f32(work);
	uint4 sum[N];

#pragma unroll
	for (int u = 0; u < N; u++)
		sum[u] = ((const uint4 *)job->from[0])[i + u * stride];
	for (uint32_t r = 1; SUMS && r < job->n_from; r++) {
		uint4 term[N];

#pragma unroll
		for (int u = 0; u < N; u++)
			term[u] = ((const uint4 *)job->from[r])[i + u * stride];
#pragma unroll
		for (int u = 0; u < N; u++)
			sum[u] = adds_f32 ? gpul_add_f32(sum[u], term[u]) : gpul_reduce(sum[u], term[u], work->dtype, work->op);
	}
	if (SUMS && work->op == GPUL_COMM_AVG)
#pragma unroll
		for (int u = 0; u < N; u++)
			sum[u] = gpul_finish(sum[u], work->dtype, work->op, job->n_from);
	for (uint32_t r = 0; r < job->n_to; r++)
#pragma unroll
		for (int u = 0; u < N; u++)
			((uint4 *)job->to[r])[i + u * stride] = sum[u];
}

/* Process pack i, which may be short and need not be aligned. */
template <bool SUMS>
static __device__ __noinline__ void gpul_direct_pack(const gpul_direct_job *job, const gpul_comm_work *work, uint64_t i)
{
	uint4 sum = gpul_load_pack(job->from[0], i, job->n_bytes);

	for (uint32_t r = 1; SUMS && r < job->n_from; r++)
		sum = gpul_reduce(sum, gpul_load_pack(job->from[r], i, job->n_bytes), work->dtype, work->op);
	if (SUMS)
		sum = gpul_finish(sum, work->dtype, work->op, job->n_from);
	for (uint32_t r = 0; r < job->n_to; r++)
		gpul_store_pack(job->to[r], i, job->n_bytes, sum);
}

/* Process this block's packs in call `number`.  Which packs these are does not depend on the alignment, which may differ between ranks. */
template <bool SUMS>
static __device__ __forceinline__ void gpul_direct_combine(const gpul_comm_view *comm, const gpul_direct_job *job,
							   const gpul_comm_work *work, uint64_t number, bool aligned)
{
	const uint64_t began = gpul_trace_now(comm);
	const uint64_t n_whole = min(job->end, job->n_bytes / GPUL_PACK_BYTES), n_threads = (uint64_t)work->n_blocks * blockDim.x;
	const uint32_t tile = blockDim.x * GPUL_DIRECT_UNROLL;
	uint64_t i = job->begin;

	for (; i + n_threads * GPUL_DIRECT_UNROLL <= n_whole; i += n_threads * GPUL_DIRECT_UNROLL) {
		const uint64_t first = i + (uint64_t)blockIdx.x * tile + threadIdx.x;

		if (aligned)
			gpul_direct_tile<SUMS, GPUL_DIRECT_UNROLL>(job, work, first, blockDim.x);
		for (uint32_t u = 0; !aligned && u < GPUL_DIRECT_UNROLL; u++)
			gpul_direct_pack<SUMS>(job, work, first + u * blockDim.x);
	}
	for (i += (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job->end; i += n_threads)
		if (aligned && i < n_whole)
			gpul_direct_tile<SUMS, 1>(job, work, i, 0);
		else
			gpul_direct_pack<SUMS>(job, work, i);
	gpul_trace_add(comm, SUMS ? GPUL_COMM_EVENT_REDUCE : GPUL_COMM_EVENT_COPY, began, -1, number, 0);
}

/* Find the packs of one rank's part, when n_bytes are divided among n ranks in whole cache lines. */
static __device__ __forceinline__ uint64_t gpul_direct_part(uint64_t n_bytes, uint32_t rank, uint32_t n)
{
	const uint64_t packs_of_line = GPUL_COMM_LINE_BYTES / GPUL_PACK_BYTES;
	const uint64_t n_packs = (n_bytes + GPUL_PACK_BYTES - 1) / GPUL_PACK_BYTES;
	const uint64_t part = (n_packs + n - 1) / n;

	return min(n_packs, (part + packs_of_line - 1) / packs_of_line * packs_of_line * rank);
}

#endif
