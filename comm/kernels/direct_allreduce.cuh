/* direct_allreduce.cuh — all-reduce in two shots over the buffers of all ranks.
 *
 *              part 0   part 1   part 2                 part 0   part 1   part 2
 *     send 0 [   a    │    b   │   c    ]      recv 0 [ a+d+g  │ b+e+h  │ c+f+i  ]
 *     send 1 [   d    │    e   │   f    ]      recv 1 [ a+d+g  │ b+e+h  │ c+f+i  ]
 *     send 2 [   g    │    h   │   i    ]      recv 2 [ a+d+g  │ b+e+h  │ c+f+i  ]
 *                          │                                       ^
 *                          └────────────── rank 1 ─────────────────┘
 *
 * Rank r reads part r of all send buffers, reduces it in the order of the ranks, and writes it into all recv buffers.  Each
 * direction of a link carries (n - 1) / n of the data twice, which is the minimum.  In-place calls are safe: only rank r
 * reads part r, and it reads a pack of all ranks before it writes that pack.  If a buffer is in no window, the kernel falls
 * back to the ring, which needs no mapped buffers; because of the greetings, all ranks decide the same. */
#ifndef GPULOAD_COMM_KERNELS_DIRECT_ALLREDUCE_CUH
#define GPULOAD_COMM_KERNELS_DIRECT_ALLREDUCE_CUH

#include "comm/device/direct.cuh"
#include "comm/kernels/ring_allreduce.cuh"

static __device__ bool gpul_direct_allreduce(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	__shared__ gpul_desk_buffers buffers;
	__shared__ gpul_direct_job job;
	const uint64_t number = gpul_desk_number(comm), began = gpul_trace_now(comm);
	const uint32_t n = comm->sizes.n_ranks;
	bool unaligned = false;

	gpul_desk_greet(comm, work, number, true);
	const gpul_desk_outcome outcome = gpul_desk_meet(comm, work, number, true, true, &buffers);

	if (outcome == GPUL_DESK_LEAVE)
		return true;
	if (outcome == GPUL_DESK_FALLBACK)
		return gpul_desk_end(comm, work, number, began, gpul_ring_allreduce<GPUL_COMM_SIMPLE>(comm, work));
	if (threadIdx.x < n) {
		/* each rank starts with the next rank's buffer, so that the ranks write to different targets */
		const uint32_t turned = (comm->rank + 1 + threadIdx.x) % n;

		job.from[threadIdx.x] = buffers.send[threadIdx.x];
		job.to[threadIdx.x] = buffers.recv[turned];
		unaligned = ((uintptr_t)buffers.send[threadIdx.x] | (uintptr_t)buffers.recv[turned]) % GPUL_PACK_BYTES != 0;
	}
	if (threadIdx.x == 0) {
		job.n_from = job.n_to = n;
		job.n_bytes = work->count * work->element_bytes;
		job.begin = gpul_direct_part(job.n_bytes, comm->rank, n);
		job.end = gpul_direct_part(job.n_bytes, comm->rank + 1, n);
	}
	unaligned = gpul_comm_any_leaves(unaligned);
	gpul_direct_combine<true>(comm, &job, work, number, !unaligned);
	return gpul_desk_end(comm, work, number, began, gpul_desk_part(comm, number));
}

#endif
