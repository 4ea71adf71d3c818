/* direct_allgather.cuh — all-gather: every rank writes its part into all recv buffers.
 *
 *     send of rank 1 ──┬──> part 1 of recv of rank 2
 *                      ├──> part 1 of recv of rank 0
 *                      └──> part 1 of its own recv (not in place)
 *
 * A pack is loaded once, and stored n times. */
#ifndef GPULOAD_COMM_KERNELS_DIRECT_ALLGATHER_CUH
#define GPULOAD_COMM_KERNELS_DIRECT_ALLGATHER_CUH

#include "comm/device/direct.cuh"
#include "comm/kernels/ring_allgather.cuh"

static __device__ bool gpul_direct_allgather(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	__shared__ gpul_desk_buffers buffers;
	__shared__ gpul_direct_job job;
	const uint64_t began = gpul_trace_now(comm), number = gpul_desk_number(comm);
	const uint32_t n = comm->sizes.n_ranks;

	gpul_desk_greet(comm, work, number, true);
	const gpul_desk_outcome outcome = gpul_desk_meet(comm, work, number, false, true, &buffers);

	if (outcome == GPUL_DESK_LEAVE)
		return true;
	if (outcome == GPUL_DESK_FALLBACK)
		return gpul_desk_end(comm, work, number, began, gpul_ring_allgather<GPUL_COMM_SIMPLE>(comm, work));
	if (threadIdx.x == 0) {
		job.n_bytes = work->count * work->element_bytes;
		job.from[0] = (const unsigned char *)work->send;
		job.n_from = 1;
		job.n_to = 0;
		for (uint32_t hop = 1; hop <= n; hop++) {
			const uint32_t peer = (comm->rank + hop) % n;
			unsigned char *to = buffers.recv[peer] + comm->rank * job.n_bytes;

			if (to != job.from[0])
				job.to[job.n_to++] = to;
		}
		job.begin = 0;
		job.end = (job.n_bytes + GPUL_PACK_BYTES - 1) / GPUL_PACK_BYTES;
		job.aligned = gpul_direct_aligned(&job);
	}
	__syncthreads();
	gpul_direct_combine<false>(comm, &job, work, number);
	return gpul_desk_end(comm, work, number, began, gpul_desk_part(comm, number));
}

#endif
