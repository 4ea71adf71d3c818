/* oneshot_broadcast.cuh — broadcast of a small message in one link latency.
 *
 *     root   send ──> scratch of 1, 2, 3 ──> their recv
 *
 * The other ranks send nothing but their greeting, for which the root waits: calls n and n + 2 use the same half of the scratch, so
 * the root must not begin call n + 2 before the other ranks have read the data of call n. */
#ifndef GPULOAD_COMM_KERNELS_ONESHOT_BROADCAST_CUH
#define GPULOAD_COMM_KERNELS_ONESHOT_BROADCAST_CUH

#include "comm/device/oneshot.cuh"

static __device__ bool gpul_oneshot_broadcast_ll(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	gpul_oneshot o;
	const uint64_t n_bytes = work->count * work->element_bytes;
	const uint64_t n_pairs = (n_bytes + GPUL_ONESHOT_BYTES - 1) / GPUL_ONESHOT_BYTES;
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = work->n_blocks * blockDim.x;
	bool leave = false;

	gpul_oneshot_begin(&o, comm, work);
	for (uint64_t i = thread; i < n_pairs && !leave; i += n_threads) {
		uint64_t data;

		if (comm->rank == work->root) {
			data = gpul_oneshot_load((const unsigned char *)work->send, i, n_bytes);
			gpul_oneshot_put_all(&o, i, data);
		} else {
			leave = gpul_oneshot_take_one(&o, work->root, i, &data);
		}
		if (!leave && (comm->rank != work->root || work->send != work->recv))
			gpul_oneshot_store((unsigned char *)work->recv, i, n_bytes, data);
	}
	return gpul_oneshot_end(&o, work, leave);
}

#endif
