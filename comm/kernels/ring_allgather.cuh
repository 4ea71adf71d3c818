/* ring_allgather.cuh — the second half of the ring all-reduce: each rank passes on what it receives.
 *
 * Four ranks; S0 to S3 are the ranks' send buffers, and the parts of each receive buffer:
 *
 *     step     rank 0              rank 1              rank 2              rank 3
 *     1        S0, send            S1, send            S2, send            S3, send             direct_(copy_)send
 *     2        S3, send            S0, send            S1, send            S2, send             direct_recv_copy_send
 *     3        S2, send            S3, send            S0, send            S1, send             direct_recv_copy_send
 *     4        S1                  S2                  S3                  S0                   direct_recv
 *
 * A block does this with the same range of each part, a few slots at a time. */
#ifndef GPULOAD_COMM_KERNELS_RING_ALLGATHER_CUH
#define GPULOAD_COMM_KERNELS_RING_ALLGATHER_CUH

#include "comm/kernels/ring.cuh"

/* All-gather by the ring algorithm, for one block.  Returns true if the kernel must end. */
template <int PROTO> static __device__ bool gpul_ring_allgather(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint64_t part_bytes = work->count * work->element_bytes, step_bytes = gpul_slot_capacity<PROTO>(comm) * GPUL_RING_SLOTS;
	const gpul_part range = gpul_part_of(part_bytes, blockIdx.x, work->n_blocks, GPUL_COMM_LINE_BYTES);
	const uint32_t n = comm->sizes.n_ranks, rank = (uint32_t)comm->rank;
	const unsigned char *send = (const unsigned char *)work->send;
	unsigned char *recv = (unsigned char *)work->recv;
	const bool in_place = send == recv + rank * part_bytes;
	gpul_prims p;
	bool leave = false;

	if (range.begin == range.end)
		return false;
	gpul_ring_open<PROTO>(&p, comm, work);
	gpul_prims_receive_at<PROTO>(&p, work->recv_window, work->recv_offset);
	for (uint64_t at = range.begin; at < range.end && !leave; at += step_bytes) {
		const uint64_t n_bytes = min(step_bytes, range.end - at);
		uint64_t to = rank * part_bytes + at;

		if (in_place)
			leave = gpul_direct_send<PROTO>(&p, send + at, n_bytes, to);
		else
			leave = gpul_direct_copy_send<PROTO>(&p, send + at, recv + to, n_bytes, to);
		for (uint32_t j = 1; j + 1 < n && !leave; j++) {
			to = (rank + n - j) % n * part_bytes + at;
			leave = gpul_direct_recv_copy_send<PROTO>(&p, recv + to, n_bytes, to);
		}
		to = (rank + 1) % n * part_bytes + at;
		leave = leave || gpul_direct_recv<PROTO>(&p, recv + to, n_bytes);
	}
	return leave || gpul_prims_close(&p);
}

#endif
