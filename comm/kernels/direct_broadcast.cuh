/* direct_broadcast.cuh — broadcast: the root gives each other rank a part, which that rank forwards to the rest.
 *
 *     root ── part 0 ──> rank 1 ── part 0 ──> rank 2         rounds: while rank 1 forwards part 0 of round k,
 *        └─── part 1 ──> rank 2 ── part 1 ──> rank 1         the root sends the parts of round k + 1
 *
 * The data leaves the root once, and enters each other rank once, as in a ring, but in only two hops.  Blocks with the same
 * number on all ranks handle the same packs, so that a block waits for only one block. */
#ifndef GPULOAD_COMM_KERNELS_DIRECT_BROADCAST_CUH
#define GPULOAD_COMM_KERNELS_DIRECT_BROADCAST_CUH

#include "comm/device/direct.cuh"
#include "comm/kernels/ring_broadcast.cuh"

enum { GPUL_BROADCAST_TILES = 4, GPUL_BROADCAST_ROUND_BITS = 24 };

/* How n_packs packs are divided into rounds and parts. */
struct gpul_broadcast_cut {
	uint64_t n_packs, part_packs; /* number of packs of the message, and of one part of one round */
	uint32_t n_parts, n_rounds;
};

static __device__ __forceinline__ gpul_broadcast_cut gpul_broadcast_cut_of(const gpul_comm_work *work, uint32_t n_ranks)
{
	gpul_broadcast_cut cut;
	const uint64_t tiles = (uint64_t)work->n_blocks * blockDim.x * GPUL_DIRECT_UNROLL * GPUL_BROADCAST_TILES;

	cut.n_packs = (work->count * work->element_bytes + GPUL_PACK_BYTES - 1) / GPUL_PACK_BYTES;
	cut.n_parts = n_ranks > 2 ? n_ranks - 1 : 1;
	cut.part_packs = n_ranks > 2 ? tiles : max(cut.n_packs, (uint64_t)1); /* one round, because with two ranks nothing is forwarded */
	const uint64_t round = cut.part_packs * cut.n_parts;

	cut.n_rounds = (uint32_t)((cut.n_packs + round - 1) / round);
	return cut;
}

/* Set the packs that the block processes next; only thread 0 writes. */
static __device__ __forceinline__ void gpul_broadcast_range(gpul_direct_job *job, const gpul_broadcast_cut *cut, uint32_t round,
							    uint32_t part)
{
	job->begin = min(cut->n_packs, ((uint64_t)round * cut->n_parts + part) * cut->part_packs);
	job->end = min(cut->n_packs, job->begin + cut->part_packs);
}

static __device__ __forceinline__ uint64_t gpul_broadcast_step(uint64_t number, uint32_t round)
{
	return (number << GPUL_BROADCAST_ROUND_BITS) + round + 1;
}

static __device__ __forceinline__ void gpul_broadcast_send(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number,
							   const gpul_desk_buffers *buffers, gpul_direct_job *job)
{
	const gpul_broadcast_cut cut = gpul_broadcast_cut_of(work, comm->sizes.n_ranks);

	for (uint32_t round = 0; round < cut.n_rounds; round++)
		for (uint32_t part = 0; part < cut.n_parts; part++) {
			const uint32_t peer = part + (part >= (uint32_t)work->root);

			__syncthreads();
			if (threadIdx.x == 0) {
				job->from[0] = (const unsigned char *)work->send;
				job->n_to = 0;
				if (peer < comm->sizes.n_ranks)
					job->to[job->n_to++] = buffers->recv[peer];
				if (work->send != work->recv)
					job->to[job->n_to++] = (unsigned char *)work->recv;
				gpul_broadcast_range(job, &cut, round, part);
			}
			__syncthreads();
			gpul_direct_combine<false>(comm, job, work, number, gpul_direct_aligned(job));
			if (cut.n_parts > 1)
				gpul_desk_signal(comm, (int)peer, gpul_broadcast_step(number, round));
		}
}

static __device__ __forceinline__ bool gpul_broadcast_forward(const gpul_comm_view *comm, const gpul_comm_work *work, uint64_t number,
							      const gpul_desk_buffers *buffers, gpul_direct_job *job)
{
	const gpul_broadcast_cut cut = gpul_broadcast_cut_of(work, comm->sizes.n_ranks);
	const uint32_t part = (uint32_t)comm->rank - (comm->rank > work->root);

	if (cut.n_parts == 1)
		return false;
	for (uint32_t round = 0; round < cut.n_rounds; round++) {
		if (gpul_desk_await(comm, work->root, gpul_broadcast_step(number, round)))
			return true;
		if (threadIdx.x == 0) {
			job->from[0] = (const unsigned char *)work->recv;
			job->n_to = 0;
			for (uint32_t hop = 1; hop < comm->sizes.n_ranks; hop++) {
				const uint32_t peer = (comm->rank + hop) % comm->sizes.n_ranks;

				if ((int)peer != work->root)
					job->to[job->n_to++] = buffers->recv[peer];
			}
			gpul_broadcast_range(job, &cut, round, part);
		}
		__syncthreads();
		gpul_direct_combine<false>(comm, job, work, number, gpul_direct_aligned(job));
	}
	return false;
}

static __device__ bool gpul_direct_broadcast(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	__shared__ gpul_desk_buffers buffers;
	__shared__ gpul_direct_job job;
	const uint64_t number = gpul_desk_number(comm), began = gpul_trace_now(comm);

	gpul_desk_greet(comm, work, number, true);
	const gpul_desk_outcome outcome = gpul_desk_meet(comm, work, number, false, true, &buffers);

	if (outcome == GPUL_DESK_LEAVE)
		return true;
	if (outcome == GPUL_DESK_FALLBACK)
		return gpul_desk_end(comm, work, number, began, gpul_ring_broadcast<GPUL_COMM_SIMPLE>(comm, work));
	if (threadIdx.x == 0) {
		job.n_bytes = work->count * work->element_bytes;
		job.n_from = 1;
	}
	__syncthreads();
	if (comm->rank == work->root)
		gpul_broadcast_send(comm, work, number, &buffers, &job);
	else if (gpul_broadcast_forward(comm, work, number, &buffers, &job))
		return true;
	return gpul_desk_end(comm, work, number, began, gpul_desk_part(comm, number));
}

#endif
