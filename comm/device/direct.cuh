/* direct.cuh — sums and copies between the buffers of all ranks, as this rank maps them.
 *
 *     from[0] ─┐
 *     from[1] ─┼─ reduced in this order ──┬─> to[0]
 *     from[2] ─┘                          └─> to[1]
 *
 * A block has every n-th tile of GPUL_DIRECT_UNROLL packs for each thread.  All loads of a tile are under way before the first
 * one is used, because a load over NVLink takes more than a microsecond. */
#ifndef GPULOAD_COMM_DEVICE_DIRECT_CUH
#define GPULOAD_COMM_DEVICE_DIRECT_CUH

#include "comm/device/desk.cuh"
#include "comm/device/pack.cuh"
#include "comm/device/reduce.cuh"

enum { GPUL_DIRECT_UNROLL = 4 };

/* What the block combines; in shared memory. */
struct gpul_direct_job {
	const unsigned char *from[GPUL_COMM_MAX_PEERS];
	unsigned char *to[GPUL_COMM_MAX_PEERS];
	uint32_t n_from, n_to;
	uint64_t begin, end;      /* packs */
	uint64_t n_bytes;         /* of each buffer; the last pack may be short */
	bool aligned;             /* all addresses are multiples of 16 */
};

/* One thread fills the job; all threads call it after a barrier. */
static __device__ __forceinline__ bool gpul_direct_aligned(const gpul_direct_job *job)
{
	uintptr_t all = 0;

	for (uint32_t r = 0; r < job->n_from; r++)
		all |= (uintptr_t)job->from[r];
	for (uint32_t r = 0; r < job->n_to; r++)
		all |= (uintptr_t)job->to[r];
	return all % GPUL_PACK_BYTES == 0;
}

static __device__ __forceinline__ uint4 gpul_add_f32(uint4 a, uint4 b)
{
	return make_uint4(__float_as_uint(__fadd_rn(__uint_as_float(a.x), __uint_as_float(b.x))),
			  __float_as_uint(__fadd_rn(__uint_as_float(a.y), __uint_as_float(b.y))),
			  __float_as_uint(__fadd_rn(__uint_as_float(a.z), __uint_as_float(b.z))),
			  __float_as_uint(__fadd_rn(__uint_as_float(a.w), __uint_as_float(b.w))));
}

/* Packs i, i + stride ... of all buffers, whole and aligned.  SUMS: from[0] ... are reduced; else there is only from[0]. */
template <bool SUMS> static __device__ __forceinline__ void gpul_direct_tile(const gpul_direct_job *job, const gpul_comm_work *work, uint64_t i,
							uint32_t stride)
{
	const bool adds_f32 = work->dtype == GPUL_COMM_F32 && (work->op == GPUL_COMM_SUM || work->op == GPUL_COMM_AVG);
	uint4 sum[GPUL_DIRECT_UNROLL];

#pragma unroll
	for (int u = 0; u < GPUL_DIRECT_UNROLL; u++)
		sum[u] = ((const uint4 *)job->from[0])[i + u * stride];
	for (uint32_t r = 1; SUMS && r < job->n_from; r++) {
		uint4 term[GPUL_DIRECT_UNROLL];

#pragma unroll
		for (int u = 0; u < GPUL_DIRECT_UNROLL; u++)
			term[u] = ((const uint4 *)job->from[r])[i + u * stride];
#pragma unroll
		for (int u = 0; u < GPUL_DIRECT_UNROLL; u++)
			sum[u] = adds_f32 ? gpul_add_f32(sum[u], term[u]) : gpul_reduce(sum[u], term[u], work->dtype, work->op);
	}
	if (SUMS && work->op == GPUL_COMM_AVG)
#pragma unroll
		for (int u = 0; u < GPUL_DIRECT_UNROLL; u++)
			sum[u] = gpul_finish(sum[u], work->dtype, work->op, job->n_from);
	for (uint32_t r = 0; r < job->n_to; r++)
#pragma unroll
		for (int u = 0; u < GPUL_DIRECT_UNROLL; u++)
			((uint4 *)job->to[r])[i + u * stride] = sum[u];
}

/* Pack i, which may be short, or at any alignment. */
template <bool SUMS> static __device__ __noinline__ void gpul_direct_pack(const gpul_direct_job *job, const gpul_comm_work *work, uint64_t i)
{
	uint4 sum = gpul_load_pack(job->from[0], i, job->n_bytes);

	for (uint32_t r = 1; SUMS && r < job->n_from; r++)
		sum = gpul_reduce(sum, gpul_load_pack(job->from[r], i, job->n_bytes), work->dtype, work->op);
	if (SUMS)
		sum = gpul_finish(sum, work->dtype, work->op, job->n_from);
	for (uint32_t r = 0; r < job->n_to; r++)
		gpul_store_pack(job->to[r], i, job->n_bytes, sum);
}

/* The share of this block; number: of the call. */
template <bool SUMS>
static __device__ void gpul_direct_combine(const gpul_comm_view *comm, const gpul_direct_job *job, const gpul_comm_work *work,
					   uint64_t number)
{
	const uint64_t began = gpul_trace_now(comm);
	const uint64_t n_whole = job->aligned ? min(job->end, job->n_bytes / GPUL_PACK_BYTES) : job->begin;
	const uint32_t tile = blockDim.x * GPUL_DIRECT_UNROLL;
	uint64_t i = job->begin + (uint64_t)blockIdx.x * tile;

	for (; i + tile <= n_whole; i += (uint64_t)work->n_blocks * tile)
		gpul_direct_tile<SUMS>(job, work, i + threadIdx.x, blockDim.x);
	for (; i < job->end; i += (uint64_t)work->n_blocks * tile)
		for (uint64_t j = i + threadIdx.x; j < min(i + tile, job->end); j += blockDim.x)
			gpul_direct_pack<SUMS>(job, work, j);
	gpul_trace_add(comm, SUMS ? GPUL_COMM_EVENT_REDUCE : GPUL_COMM_EVENT_COPY, began, -1, number, 0);
}

/* Packs first ... of rank's part, if n_bytes are divided among n ranks in whole lines. */
static __device__ __forceinline__ uint64_t gpul_direct_part(uint64_t n_bytes, uint32_t rank, uint32_t n)
{
	const uint64_t packs_of_line = GPUL_COMM_LINE_BYTES / GPUL_PACK_BYTES;
	const uint64_t n_packs = (n_bytes + GPUL_PACK_BYTES - 1) / GPUL_PACK_BYTES;
	const uint64_t part = (n_packs + n - 1) / n;

	return min(n_packs, (part + packs_of_line - 1) / packs_of_line * packs_of_line * rank);
}

#endif
