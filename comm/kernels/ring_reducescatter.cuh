/* ring_reducescatter.cuh — the first half of the ring all-reduce: rank r gets part r of the result.
 *
 * Four ranks, parts 0 to 3 of each send buffer; a to d are the values of ranks 0 to 3, and + is the operation:
 *
 *     step     rank 0              rank 1              rank 2              rank 3
 *     1        send 3              send 0              send 1              send 2               send
 *     2        2: a+d, send        3: a+b, send        0: b+c, send        1: c+d, send         recv_reduce_send
 *     3        1: a+cd, send       2: b+ad, send       3: c+ab, send       0: d+bc, send        recv_reduce_send
 *     4        0: a+bcd = R0       1: b+acd = R1       2: c+abd = R2       3: d+abc = R3        recv_reduce_copy
 *
 * A block does this with the same range of each part, a few slots at a time. */
#ifndef GPULOAD_COMM_KERNELS_RING_REDUCESCATTER_CUH
#define GPULOAD_COMM_KERNELS_RING_REDUCESCATTER_CUH

#include "comm/kernels/ring.cuh"

/* Reduce-scatter by the ring algorithm, for one block.  Returns true if the kernel must end. */
template <int PROTO> static __device__ bool gpul_ring_reducescatter(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint64_t part_bytes = work->count * work->element_bytes, step_bytes = gpul_slot_capacity<PROTO>(comm) * GPUL_RING_SLOTS;
	const gpul_part range = gpul_part_of(part_bytes, blockIdx.x, work->n_blocks, GPUL_COMM_LINE_BYTES);
	const uint32_t n = comm->sizes.n_ranks, rank = (uint32_t)comm->rank;
	const unsigned char *send = (const unsigned char *)work->send;
	unsigned char *recv = (unsigned char *)work->recv;
	gpul_prims p;
	bool leave = false;

	if (range.begin == range.end)
		return false;
	gpul_ring_open<PROTO>(&p, comm, work);
	for (uint64_t at = range.begin; at < range.end && !leave; at += step_bytes) {
		const uint64_t n_bytes = min(step_bytes, range.end - at);

		leave = gpul_send<PROTO>(&p, send + (rank + n - 1) % n * part_bytes + at, n_bytes);
		for (uint32_t j = 2; j < n && !leave; j++)
			leave = gpul_recv_reduce_send<PROTO>(&p, send + (rank + n - j) % n * part_bytes + at, n_bytes);
		leave = leave || gpul_recv_reduce_copy<PROTO>(&p, send + rank * part_bytes + at, recv + at, n_bytes);
	}
	return leave || gpul_prims_close(&p);
}

#endif
