/* oneshot_alltoall.cuh — all-to-all of small parts in one round trip.
 *
 *     rank 0   part 1 of send ──> scratch of 1 ──> part 0 of recv
 *              part 2 of send ──> scratch of 2 ──> part 0 of recv
 *
 * and the same from the other ranks at the same time. */
#ifndef GPULOAD_COMM_KERNELS_ONESHOT_ALLTOALL_CUH
#define GPULOAD_COMM_KERNELS_ONESHOT_ALLTOALL_CUH

#include "comm/device/oneshot.cuh"

static __device__ bool gpul_oneshot_alltoall_ll(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint64_t began = gpul_trace_now(comm), number = gpul_desk_number(comm);
	const int n_ranks = (int)comm->sizes.n_ranks, rank = comm->rank;
	const uint64_t part_bytes = work->count * work->element_bytes;
	const uint64_t n_pairs = (part_bytes + GPUL_ONESHOT_BYTES - 1) / GPUL_ONESHOT_BYTES;
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = work->n_blocks * blockDim.x;
	const unsigned char *send = (const unsigned char *)work->send;
	unsigned char *recv = (unsigned char *)work->recv;
	bool leave = false;

	gpul_desk_greet(comm, work, number, false);

	const uint64_t puts = gpul_trace_now(comm);

	for (uint64_t i = thread; i < n_pairs; i += n_threads) {
		for (int hop = 1; hop < n_ranks; hop++) {
			const int peer = (rank + hop) % n_ranks;

			gpul_oneshot_put(comm, number, peer, i, gpul_oneshot_load(send + peer * part_bytes, i, part_bytes));
		}
		gpul_oneshot_store(recv + rank * part_bytes, i, part_bytes,
				   gpul_oneshot_load(send + rank * part_bytes, i, part_bytes));
	}
	gpul_trace_add(comm, GPUL_COMM_EVENT_SEND, puts, -1, number, 0);

	const uint64_t takes = gpul_trace_now(comm);

	for (uint64_t i = thread; i < n_pairs && !leave; i += n_threads)
		leave = gpul_oneshot_receive_all(comm, number, i, recv, part_bytes);
	gpul_trace_add(comm, GPUL_COMM_EVENT_RECV, takes, -1, number, 0);
	return gpul_oneshot_end(comm, work, number, began, leave);
}

#endif
