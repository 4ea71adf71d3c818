/* oneshot_alltoall.cuh — all-to-all of small parts in one round trip.
 *
 *     rank 0   part 1 of send ──> scratch of 1 ──> part 0 of recv
 *              part 2 of send ──> scratch of 2 ──> part 0 of recv
 *
 * The other ranks do the same at the same time. */
#ifndef GPULOAD_COMM_KERNELS_ONESHOT_ALLTOALL_CUH
#define GPULOAD_COMM_KERNELS_ONESHOT_ALLTOALL_CUH

#include "comm/device/oneshot.cuh"

static __device__ bool gpul_oneshot_alltoall_ll(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	gpul_oneshot o;
	const uint64_t part_bytes = work->count * work->element_bytes;
	const uint64_t n_pairs = (part_bytes + GPUL_ONESHOT_BYTES - 1) / GPUL_ONESHOT_BYTES;
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = work->n_blocks * blockDim.x;
	const unsigned char *send = (const unsigned char *)work->send;
	unsigned char *recv = (unsigned char *)work->recv;
	bool leave = false;

	gpul_oneshot_begin(&o, comm, work);
	const uint64_t puts = gpul_oneshot_now(&o);

	for (uint64_t i = thread; i < n_pairs; i += n_threads) {
		gpul_oneshot_put_parts(&o, i, send, part_bytes);
		gpul_oneshot_store(recv + comm->rank * part_bytes, i, part_bytes,
				   gpul_oneshot_load(send + comm->rank * part_bytes, i, part_bytes));
	}
	gpul_oneshot_event(&o, GPUL_COMM_EVENT_SEND, puts, -1);

	const uint64_t takes = gpul_oneshot_now(&o);

	for (uint64_t i = thread; i < n_pairs && !leave; i += n_threads)
		leave = gpul_oneshot_receive_all(&o, i, recv, part_bytes);
	gpul_oneshot_event(&o, GPUL_COMM_EVENT_RECV, takes, -1);
	return gpul_oneshot_end(&o, work, leave);
}

#endif
