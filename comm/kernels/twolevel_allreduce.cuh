/* twolevel_allreduce.cuh — all-reduce with two levels of rings: one inside each host, and one across the hosts for each local index.
 *
 * H hosts with G ranks each.  A round has G parts of H chunks; chunk (l, h) has number l H + h.  Two hosts with two ranks:
 *
 *     host A                                        host B
 *     A0 <────────── inside ──────────> A1          B0 <────────── inside ──────────> B1
 *     1. reduce-scatter inside: local rank l has the host's sum of part l
 *     A0: part 0         A1: part 1                 B0: part 0         B1: part 1
 *     2. all-reduce across, a ring of the ranks with the same l: it has the chunks (l, h) as the ring all-reduce has chunk h
 *     A0 <───────────────────── across ────────────> B0          A1 <───────── across ─────────> B1
 *     3. all-gather inside
 *
 * Inside a host, a message is a piece of a part, of at most GPUL_RING_SLOTS slots; phases 1 and 3 are repeated for each piece.
 *
 * Across hosts, each rank sends 2 (H - 1) / H of 1/G of the data: a host sends about as much as in one ring over all ranks, but all of its
 * ranks send at the same time, and in 2 (H - 1) steps instead of 2 (G H - 1).
 *
 * **No deadlock.**  All ranks do the same phases in the same order.  Each phase is a ring algorithm on channels of its own ring, in which a
 * rank sends one message before it receives one (ring.cuh).  One order of execution completes: all ranks do step s of a phase before any
 * of them does step s + 1.  A channel then holds at most two messages, which are at most 4 slots of the 5 (LL, LL128) or 8 (Simple) that
 * fit; and if one order completes, all do, as tree_allreduce.cuh explains.
 *
 * Chunk (l, h) is reduced in a fixed order, inside each host and then across; one rank computes the final sum, which is passed on, so all
 * ranks get the same bits.  The output buffer also holds the sums of the host. */
#ifndef GPULOAD_COMM_KERNELS_TWOLEVEL_ALLREDUCE_CUH
#define GPULOAD_COMM_KERNELS_TWOLEVEL_ALLREDUCE_CUH

#include "comm/kernels/ring.cuh"

struct gpul_twolevel {
	gpul_prims inside, across;
	uint32_t n_hosts, n_local; /* number of hosts, and of ranks on each host (H and G of the drawing above); both are at least 2 */
	uint32_t host, local;      /* host and local index of this rank */
	const unsigned char *send;
	unsigned char *recv;
};

static __device__ __forceinline__ int gpul_twolevel_rank(const gpul_twolevel *t, const gpul_comm_view *comm, uint32_t host, uint32_t local)
{
	return comm->order[host % t->n_hosts * t->n_local + local % t->n_local];
}

template <int PROTO>
static __device__ __forceinline__ void gpul_twolevel_open(gpul_twolevel *t, const gpul_comm_view *comm, const gpul_comm_work *work,
							  const gpul_ring_round *first)
{
	const uint64_t signature = gpul_desk_signature(work);
	gpul_part mine;

	t->n_local = comm->ranks_per_host;
	t->n_hosts = comm->sizes.n_ranks / t->n_local;
	t->host = comm->place / t->n_local;
	t->local = comm->place % t->n_local;
	t->send = (const unsigned char *)work->send;
	t->recv = (unsigned char *)work->recv;
	gpul_prims_open<PROTO>(&t->inside, comm, blockIdx.x, gpul_twolevel_rank(t, comm, t->host, t->local + t->n_local - 1),
			       gpul_twolevel_rank(t, comm, t->host, t->local + 1), signature);
	gpul_prims_open<PROTO>(&t->across, comm, blockIdx.x, gpul_twolevel_rank(t, comm, t->host + t->n_hosts - 1, t->local),
			       gpul_twolevel_rank(t, comm, t->host + 1, t->local), signature);
	t->inside.dtype = t->across.dtype = work->dtype;
	t->inside.op = t->across.op = work->op;
	t->across.lane = 1;
	gpul_prims_receive_at<PROTO>(&t->inside, work->recv_window, work->recv_offset);
	mine = gpul_ring_chunk(first, t->local * t->n_hosts);
	/* with an empty range nothing is transferred across hosts, so the offer would not be read, and would remain for a later call */
	if (mine.begin < mine.end)
		gpul_prims_receive_at<PROTO>(&t->across, work->recv_window, work->recv_offset);
}

/* Return the range of chunk h of part l; h is taken modulo the number of hosts. */
static __device__ __forceinline__ gpul_part gpul_twolevel_chunk(const gpul_twolevel *t, const gpul_ring_round *r, uint32_t l, uint32_t h)
{
	return gpul_ring_chunk(r, l * t->n_hosts + h % t->n_hosts);
}

/* Return the number of bytes in a piece of a part. */
template <int PROTO>
static __device__ __forceinline__ uint64_t gpul_twolevel_piece_bytes(const gpul_twolevel *t, const gpul_comm_view *comm,
								     const gpul_ring_round *r)
{
	return min(gpul_slot_capacity<PROTO>(comm) * GPUL_RING_SLOTS, t->n_hosts * r->chunk_bytes);
}

/* Return the piece that begins at offset `at` of part l; l is taken modulo the number of parts. */
static __device__ __forceinline__ gpul_part gpul_twolevel_piece(const gpul_twolevel *t, const gpul_ring_round *r, uint64_t at,
								uint64_t piece_bytes, uint32_t l)
{
	const uint64_t part_bytes = t->n_hosts * r->chunk_bytes, begin = r->begin + l % t->n_local * part_bytes;
	gpul_part piece;

	piece.begin = min(r->end, begin + at);
	piece.end = min(min(r->end, begin + part_bytes), piece.begin + piece_bytes);
	return piece;
}

/* Perform phase 1 for one round: the reduce-scatter inside the host.  Returns true if the kernel must end. */
template <int PROTO>
static __device__ __forceinline__ bool gpul_twolevel_scatter(gpul_twolevel *t, const gpul_ring_round *r, uint64_t piece_bytes)
{
	const uint32_t n = t->n_local;
	bool leave = false;

	for (uint64_t at = 0; at < t->n_hosts * r->chunk_bytes && !leave; at += piece_bytes) {
		gpul_part c = gpul_twolevel_piece(t, r, at, piece_bytes, t->local + n - 1);

		leave = gpul_send<PROTO>(&t->inside, t->send + c.begin, c.end - c.begin);
		for (uint32_t j = 2; j < n && !leave; j++) {
			c = gpul_twolevel_piece(t, r, at, piece_bytes, t->local + n - j);
			leave = gpul_recv_reduce_send<PROTO>(&t->inside, t->send + c.begin, c.end - c.begin);
		}
		c = gpul_twolevel_piece(t, r, at, piece_bytes, t->local);
		leave = leave || gpul_recv_reduce_keep<PROTO>(&t->inside, t->send + c.begin, t->recv + c.begin, c.end - c.begin);
	}
	return leave;
}

/* Perform phase 2, the all-reduce across hosts: the steps of ring_allreduce.cuh, in place.  Returns true if the kernel must end. */
template <int PROTO> static __device__ __forceinline__ bool gpul_twolevel_cross(gpul_twolevel *t, const gpul_ring_round *r)
{
	const uint32_t n = t->n_hosts;
	gpul_part c = gpul_twolevel_chunk(t, r, t->local, t->host + n - 1);
	bool leave = gpul_send<PROTO>(&t->across, t->recv + c.begin, c.end - c.begin);

	for (uint32_t j = 2; j < n && !leave; j++) {
		c = gpul_twolevel_chunk(t, r, t->local, t->host + n - j);
		leave = gpul_recv_reduce_send<PROTO>(&t->across, t->recv + c.begin, c.end - c.begin);
	}
	c = gpul_twolevel_chunk(t, r, t->local, t->host);
	leave = leave ||
		gpul_recv_reduce_copy_direct_send<PROTO>(&t->across, t->recv + c.begin, t->recv + c.begin, c.end - c.begin, c.begin);
	for (uint32_t j = 1; j + 1 < n && !leave; j++) {
		c = gpul_twolevel_chunk(t, r, t->local, t->host + n - j);
		leave = gpul_direct_recv_copy_send<PROTO>(&t->across, t->recv + c.begin, c.end - c.begin, c.begin);
	}
	c = gpul_twolevel_chunk(t, r, t->local, t->host + 1);
	return leave || gpul_direct_recv<PROTO>(&t->across, t->recv + c.begin, c.end - c.begin);
}

/* Perform phase 3, the all-gather inside the host.  Returns true if the kernel must end. */
template <int PROTO>
static __device__ __forceinline__ bool gpul_twolevel_gather(gpul_twolevel *t, const gpul_ring_round *r, uint64_t piece_bytes)
{
	const uint32_t n = t->n_local;
	bool leave = false;

	for (uint64_t at = 0; at < t->n_hosts * r->chunk_bytes && !leave; at += piece_bytes) {
		gpul_part c = gpul_twolevel_piece(t, r, at, piece_bytes, t->local);

		leave = gpul_direct_send<PROTO>(&t->inside, t->recv + c.begin, c.end - c.begin, c.begin);
		for (uint32_t j = 1; j + 1 < n && !leave; j++) {
			c = gpul_twolevel_piece(t, r, at, piece_bytes, t->local + n - j);
			leave = gpul_direct_recv_copy_send<PROTO>(&t->inside, t->recv + c.begin, c.end - c.begin, c.begin);
		}
		c = gpul_twolevel_piece(t, r, at, piece_bytes, t->local + 1);
		leave = leave || gpul_direct_recv<PROTO>(&t->inside, t->recv + c.begin, c.end - c.begin);
	}
	return leave;
}

/* A barrier for the block's threads between two phases: a thread may read bytes that another thread wrote in the phase before.  It is
 * not needed with the protocol Simple, whose steps contain barriers.  Returns true if the kernel must end. */
template <int PROTO> static __device__ __forceinline__ bool gpul_twolevel_turn(const gpul_twolevel *t)
{
	return PROTO != GPUL_COMM_SIMPLE && gpul_comm_any_leaves(t->inside.leave || t->across.leave);
}

/* All-reduce by the two-level algorithm, for one block.  Returns true if the kernel must end. */
template <int PROTO> static __device__ bool gpul_twolevel_allreduce(const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const uint64_t n_bytes = work->count * work->element_bytes;
	const gpul_part part = gpul_part_of(n_bytes, blockIdx.x, work->n_blocks, GPUL_COMM_LINE_BYTES);
	gpul_twolevel t;
	gpul_ring_round r;
	bool leave = false;

	if (part.begin == part.end)
		return false;
	gpul_ring_next_round<PROTO>(&r, comm, part.begin, part.end);
	gpul_twolevel_open<PROTO>(&t, comm, work, &r);
	for (uint64_t at = part.begin; at < part.end && !leave; at += comm->sizes.n_ranks * r.chunk_bytes) {
		gpul_ring_next_round<PROTO>(&r, comm, at, part.end);
		const uint64_t piece_bytes = gpul_twolevel_piece_bytes<PROTO>(&t, comm, &r);

		leave = gpul_twolevel_scatter<PROTO>(&t, &r, piece_bytes) || gpul_twolevel_turn<PROTO>(&t) ||
			gpul_twolevel_cross<PROTO>(&t, &r) || gpul_twolevel_turn<PROTO>(&t) ||
			gpul_twolevel_gather<PROTO>(&t, &r, piece_bytes) || gpul_twolevel_turn<PROTO>(&t);
	}
	if (leave || gpul_comm_any_leaves(t.inside.leave || t.across.leave))
		return true;
	gpul_prims_save(&t.across);
	return gpul_prims_close(&t.inside);
}

#endif
