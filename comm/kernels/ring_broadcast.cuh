/* ring_broadcast.cuh — broadcast along a chain of ranks that begins at the root; all links are busy as soon as the first
 * slice has reached the end.
 *
 *     rank      root            root + 1        root + 2        root + 3
 *     time 1    slice 0 ──────>
 *     time 2    slice 1 ──────> slice 0 ──────>
 *     time 3    slice 2 ──────> slice 1 ──────> slice 0 ──────>
 *     time 4    slice 3 ──────> slice 2 ──────> slice 1 ──────> slice 0
 *               direct_send     direct_recv_copy_send           direct_recv
 *
 * Each block does this with a part of the data. */
#ifndef GPULOAD_COMM_KERNELS_RING_BROADCAST_CUH
#define GPULOAD_COMM_KERNELS_RING_BROADCAST_CUH

#include "comm/kernels/ring.cuh"

/* Broadcast by the ring algorithm, for one block.  Returns true if the kernel must end. */
template <int PROTO> static __device__ bool gpul_ring_broadcast(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint64_t n_bytes = work->count * work->element_bytes;
	const gpul_part part = gpul_part_of(n_bytes, blockIdx.x, work->n_blocks, GPUL_COMM_LINE_BYTES);
	const int n = (int)comm->sizes.n_ranks, place = (comm->rank - work->root + n) % n;
	const uint64_t at = part.begin, part_bytes = part.end - part.begin;
	const unsigned char *send = (const unsigned char *)work->send;
	unsigned char *recv = (unsigned char *)work->recv;
	gpul_prims p;
	bool leave;

	if (part_bytes == 0)
		return false;
	gpul_prims_open<PROTO>(&p, comm, blockIdx.x, place == 0 ? -1 : (comm->rank + n - 1) % n, place == n - 1 ? -1 : (comm->rank + 1) % n,
			       gpul_desk_signature(work));
	gpul_prims_receive_at<PROTO>(&p, work->recv_window, work->recv_offset);
	if (place == 0)
		leave = send == recv ? gpul_direct_send<PROTO>(&p, send + at, part_bytes, at)
				     : gpul_direct_copy_send<PROTO>(&p, send + at, recv + at, part_bytes, at);
	else if (place == n - 1)
		leave = gpul_direct_recv<PROTO>(&p, recv + at, part_bytes);
	else
		leave = gpul_direct_recv_copy_send<PROTO>(&p, recv + at, part_bytes, at);
	return leave || gpul_prims_close(&p);
}

#endif
