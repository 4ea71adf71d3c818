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
	const uint64_t number = gpul_desk_number(comm), began = gpul_trace_now(comm), n_bytes = work->count * work->element_bytes;
	const uint32_t n = comm->sizes.n_ranks;
	bool unaligned = false;

	gpul_desk_greet(comm, work, number, true);
	const gpul_desk_outcome outcome = gpul_desk_meet(comm, work, number, false, true, &buffers);

	if (outcome == GPUL_DESK_LEAVE)
		return true;
	if (outcome == GPUL_DESK_FALLBACK)
		return gpul_desk_end(comm, work, number, began, gpul_ring_allgather<GPUL_COMM_SIMPLE>(comm, work));
	/* each rank starts with the next rank's buffer, so that the ranks write to different targets, and ends with its own */
	if (threadIdx.x < n) {
		job.to[threadIdx.x] = buffers.recv[(comm->rank + 1 + threadIdx.x) % n] + comm->rank * n_bytes;
		unaligned = ((uintptr_t)job.to[threadIdx.x] | work->send) % GPUL_PACK_BYTES != 0;
	}
	if (threadIdx.x == 0) {
		job.n_bytes = n_bytes;
		job.from[0] = (const unsigned char *)work->send;
		job.n_from = 1;
		job.n_to = work->send == work->recv + comm->rank * n_bytes ? n - 1 : n;
		job.begin = 0;
		job.end = (n_bytes + GPUL_PACK_BYTES - 1) / GPUL_PACK_BYTES;
	}
	unaligned = gpul_comm_any_leaves(unaligned);
	gpul_direct_combine<false>(comm, &job, work, number, !unaligned);
	return gpul_desk_end(comm, work, number, began, gpul_desk_part(comm, number));
}

#endif
