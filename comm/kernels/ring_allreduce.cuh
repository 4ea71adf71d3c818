/* ring_allreduce.cuh — each rank passes data to the next one: partial sums the first time around the ring, results the second
 * time.
 *
 * Four ranks, chunks 0 to 3; a to d are the values of ranks 0 to 3, and + is the operation:
 *
 *     step     rank 0              rank 1              rank 2              rank 3
 *     1        send 3              send 0              send 1              send 2
 *     2        2: a+d, send        3: a+b, send        0: b+c, send        1: c+d, send         recv_reduce_send
 *     3        1: a+cd, send       2: b+ad, send       3: c+ab, send       0: d+bc, send        recv_reduce_send
 *     4        0: a+bcd = R0       1: b+acd = R1       2: c+abd = R2       3: d+abc = R3        recv_reduce_copy_direct_send
 *     5        R3, send            R0, send            R1, send            R2, send             direct_recv_copy_send
 *     6        R2, send            R3, send            R0, send            R1, send             direct_recv_copy_send
 *     7        R1                  R2                  R3                  R0                   direct_recv
 *
 * Each rank sends 2 (n - 1) chunks of 1/n of the data.  Chunk c is reduced in the order c + 1, c + 2 ... c, by one rank at each
 * step, and the final sum is passed on, so every rank gets the same bits.  Each block does this with a part of the data and
 * channels of its own. */
#ifndef GPULOAD_COMM_KERNELS_RING_ALLREDUCE_CUH
#define GPULOAD_COMM_KERNELS_RING_ALLREDUCE_CUH

#include "comm/kernels/ring.cuh"

/* All-reduce by the ring algorithm, for one block.  Returns true if the kernel must end. */
template <int PROTO> static __device__ bool gpul_ring_allreduce(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint64_t n_bytes = work->count * work->element_bytes;
	const gpul_part part = gpul_part_of(n_bytes, blockIdx.x, work->n_blocks, GPUL_COMM_LINE_BYTES);
	const uint32_t n = comm->sizes.n_ranks, rank = (uint32_t)comm->rank;
	const unsigned char *send = (const unsigned char *)work->send;
	unsigned char *recv = (unsigned char *)work->recv;
	gpul_prims p;
	gpul_ring_round r;
	bool leave = false;

	if (part.begin == part.end)
		return false;
	gpul_ring_open<PROTO>(&p, comm, work);
	gpul_prims_receive_at<PROTO>(&p, work->recv_window, work->recv_offset);
	for (uint64_t at = part.begin; at < part.end && !leave; at += n * r.chunk_bytes) {
		gpul_ring_next_round<PROTO>(&r, comm, at, part.end);
		gpul_part c = gpul_ring_chunk(&r, (rank + n - 1) % n);

		leave = gpul_send<PROTO>(&p, send + c.begin, c.end - c.begin);
		for (uint32_t j = 2; j < n && !leave; j++) {
			c = gpul_ring_chunk(&r, (rank + n - j) % n);
			leave = gpul_recv_reduce_send<PROTO>(&p, send + c.begin, c.end - c.begin);
		}
		c = gpul_ring_chunk(&r, rank);
		leave = leave || gpul_recv_reduce_copy_direct_send<PROTO>(&p, send + c.begin, recv + c.begin, c.end - c.begin, c.begin);
		for (uint32_t j = 1; j + 1 < n && !leave; j++) {
			c = gpul_ring_chunk(&r, (rank + n - j) % n);
			leave = gpul_direct_recv_copy_send<PROTO>(&p, recv + c.begin, c.end - c.begin, c.begin);
		}
		c = gpul_ring_chunk(&r, (rank + 1) % n);
		leave = leave || gpul_direct_recv<PROTO>(&p, recv + c.begin, c.end - c.begin);
	}
	return leave || gpul_prims_close(&p);
}

#endif
