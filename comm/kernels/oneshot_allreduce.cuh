/* oneshot_allreduce.cuh — all-reduce of a small message in one round trip.
 *
 *     rank 0   send ──> scratch of 1, 2, 3          1. put: every rank sends all of its data to every other rank
 *     rank 1   send ──> scratch of 0, 2, 3          2. take: every rank waits for the data of all others, and
 *     rank 2   send ──> scratch of 0, 1, 3             reduces it in the order of the ranks,
 *     rank 3   send ──> scratch of 0, 1, 2             so all ranks get the same bits
 *
 * Each rank sends n - 1 times the data, instead of 2 (n - 1) / n times in a ring, but the result is complete after one link
 * latency; no rank waits for the others before it sends. */
#ifndef GPULOAD_COMM_KERNELS_ONESHOT_ALLREDUCE_CUH
#define GPULOAD_COMM_KERNELS_ONESHOT_ALLREDUCE_CUH

#include "comm/device/oneshot.cuh"

static __device__ bool gpul_oneshot_allreduce_ll(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	gpul_oneshot o;
	const uint64_t n_bytes = work->count * work->element_bytes;
	const uint64_t n_pairs = (n_bytes + GPUL_ONESHOT_BYTES - 1) / GPUL_ONESHOT_BYTES;
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = work->n_blocks * blockDim.x;
	const unsigned char *send = (const unsigned char *)work->send;
	const uint64_t first = thread < n_pairs ? gpul_oneshot_load(send, thread, n_bytes) : 0;
	bool leave = false;

	gpul_oneshot_begin(&o, comm, work);
	const uint64_t puts = gpul_oneshot_now(&o);

	for (uint64_t i = thread; i < n_pairs; i += n_threads) {
		const uint64_t own = i == thread ? first : gpul_oneshot_load(send, i, n_bytes);

		gpul_oneshot_put_all(&o, i, own);
	}
	gpul_oneshot_event(&o, GPUL_COMM_EVENT_SEND, puts, -1);

	const uint64_t takes = gpul_oneshot_now(&o);

	for (uint64_t i = thread; i < n_pairs && !leave; i += n_threads) {
		const uint64_t own = i == thread ? first : gpul_oneshot_load(send, i, n_bytes);
		uint64_t sum;

		leave = gpul_oneshot_reduce_all(&o, work, i, own, &sum);
		if (!leave)
			gpul_oneshot_store((unsigned char *)work->recv, i, n_bytes, sum);
	}
	gpul_oneshot_event(&o, GPUL_COMM_EVENT_REDUCE, takes, -1);
	return gpul_oneshot_end(&o, work, leave);
}

#endif
