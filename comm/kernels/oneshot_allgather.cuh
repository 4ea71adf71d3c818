/* oneshot_allgather.cuh — all-gather of small parts in one round trip.
 *
 *     rank 0   send ──> scratch of 1, 2 ──> part 0 of their recv
 *     rank 1   send ──> scratch of 0, 2 ──> part 1
 *     rank 2   send ──> scratch of 0, 1 ──> part 2 */
#ifndef GPULOAD_COMM_KERNELS_ONESHOT_ALLGATHER_CUH
#define GPULOAD_COMM_KERNELS_ONESHOT_ALLGATHER_CUH

#include "comm/device/oneshot.cuh"

static __device__ bool gpul_oneshot_allgather_ll(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint64_t began = gpul_trace_now(comm), number = gpul_desk_number(comm);
	const int n_ranks = (int)comm->sizes.n_ranks;
	const uint64_t part_bytes = work->count * work->element_bytes;
	const uint64_t n_pairs = (part_bytes + GPUL_ONESHOT_BYTES - 1) / GPUL_ONESHOT_BYTES;
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = work->n_blocks * blockDim.x;
	unsigned char *recv = (unsigned char *)work->recv, *recv_own = recv + comm->rank * part_bytes;
	bool leave = false;

	gpul_desk_greet(comm, work, number, false);

	const uint64_t puts = gpul_trace_now(comm);

	for (uint64_t i = thread; i < n_pairs; i += n_threads) {
		const uint64_t own = gpul_oneshot_load((const unsigned char *)work->send, i, part_bytes);

		for (int hop = 1; hop < n_ranks; hop++)
			gpul_oneshot_put(comm, number, (comm->rank + hop) % n_ranks, i, own);
		if ((uint64_t)recv_own != work->send)
			gpul_oneshot_store(recv_own, i, part_bytes, own);
	}
	gpul_trace_add(comm, GPUL_COMM_EVENT_SEND, puts, -1, number, 0);

	const uint64_t takes = gpul_trace_now(comm);

	for (uint64_t i = thread; i < n_pairs && !leave; i += n_threads)
		leave = gpul_oneshot_receive_all(comm, number, i, recv, part_bytes);
	gpul_trace_add(comm, GPUL_COMM_EVENT_RECV, takes, -1, number, 0);
	return gpul_oneshot_end(comm, work, number, began, leave);
}

#endif
