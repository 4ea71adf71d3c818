/* direct_reducescatter.cuh — reduce-scatter: rank r reads part r of all send buffers.
 *
 *              part 0   part 1   part 2
 *     send 0 [   a    │    b   │   c    ]
 *     send 1 [   d    │    e   │   f    ]      recv of rank 1 = b + e + h, in the order of the ranks
 *     send 2 [   g    │    h   │   i    ]
 *
 * In-place calls (recv is part r of send) are safe: only rank r reads part r. */
#ifndef GPULOAD_COMM_KERNELS_DIRECT_REDUCESCATTER_CUH
#define GPULOAD_COMM_KERNELS_DIRECT_REDUCESCATTER_CUH

#include "comm/device/direct.cuh"
#include "comm/kernels/ring_reducescatter.cuh"

static __device__ bool gpul_direct_reducescatter(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	__shared__ gpul_desk_buffers buffers;
	__shared__ gpul_direct_job job;
	const uint64_t number = gpul_desk_number(comm), began = gpul_trace_now(comm), n_bytes = work->count * work->element_bytes;
	bool unaligned = false;

	gpul_desk_greet(comm, work, number, true);
	const gpul_desk_outcome outcome = gpul_desk_meet(comm, work, number, true, false, &buffers);

	if (outcome == GPUL_DESK_LEAVE)
		return true;
	if (outcome == GPUL_DESK_FALLBACK)
		return gpul_desk_end(comm, work, number, began, gpul_ring_reducescatter<GPUL_COMM_SIMPLE>(comm, work));
	if (threadIdx.x < comm->sizes.n_ranks) {
		job.from[threadIdx.x] = buffers.send[threadIdx.x] + comm->rank * n_bytes;
		unaligned = ((uintptr_t)job.from[threadIdx.x] | work->recv) % GPUL_PACK_BYTES != 0;
	}
	if (threadIdx.x == 0) {
		job.n_bytes = n_bytes;
		job.to[0] = (unsigned char *)work->recv;
		job.n_from = comm->sizes.n_ranks;
		job.n_to = 1;
		job.begin = 0;
		job.end = (n_bytes + GPUL_PACK_BYTES - 1) / GPUL_PACK_BYTES;
	}
	unaligned = gpul_comm_any_leaves(unaligned);
	gpul_direct_combine<true>(comm, &job, work, number, !unaligned);
	return gpul_desk_end(comm, work, number, began, gpul_desk_part(comm, number));
}

#endif
