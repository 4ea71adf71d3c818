/* ring.cuh — what the ring algorithms share: neighbours, and how a block's part is divided into rounds of one chunk for each rank.
 *
 *     part of a block   │ round 0                      │ round 1                      │ last round  │
 *                       │ chunk 0 │ chunk 1 │ chunk 2  │ chunk 0 │ chunk 1 │ chunk 2  │ 0 │ 1 │ 2   │
 *
 * A chunk has GPUL_RING_SLOTS slots: while a rank writes the second slot, the next rank processes the first one.  The last round's
 * chunks are smaller; at the end of the data they may be empty. */
#ifndef GPULOAD_COMM_KERNELS_RING_CUH
#define GPULOAD_COMM_KERNELS_RING_CUH

#include "comm/device/prims.cuh"

/* Slots of a chunk: at most GPUL_COMM_STEPS - 3, because a rank sends a chunk before it receives one, and LL guarantees a sender
 * only 5 slots (prims_ll.cuh). */
enum { GPUL_RING_SLOTS = 2 };

struct gpul_ring_round {
	uint64_t begin, end, chunk_bytes;
};

/* Return the number of data bytes in a slot. */
template <int PROTO> static __device__ __forceinline__ uint64_t gpul_slot_capacity(const gpul_comm_view *comm)
{
	if (PROTO == GPUL_COMM_LL)
		return comm->sizes.ll_bytes / 2;
	if (PROTO == GPUL_COMM_LL128)
		return comm->sizes.ll128_bytes / GPUL_PAIR_BYTES * GPUL_PAIR_DATA;
	return comm->sizes.slot_bytes;
}

/* Return the unit of the chunk size: all chunks but the last one have a multiple of this number of bytes. */
template <int PROTO> static __device__ __forceinline__ uint64_t gpul_ring_unit(void)
{
	return PROTO == GPUL_COMM_LL128 ? GPUL_PAIR_DATA : PROTO == GPUL_COMM_LL ? GPUL_PACK_BYTES : GPUL_COMM_LINE_BYTES;
}

template <int PROTO>
static __device__ __forceinline__ void gpul_ring_next_round(gpul_ring_round *r, const gpul_comm_view *comm, uint64_t at, uint64_t end)
{
	const uint64_t n = comm->sizes.n_ranks, unit = gpul_ring_unit<PROTO>();
	const uint64_t even = ((end - at + n - 1) / n + unit - 1) / unit * unit;

	r->begin = at;
	r->end = end;
	r->chunk_bytes = min(gpul_slot_capacity<PROTO>(comm) * GPUL_RING_SLOTS, even);
}

static __device__ __forceinline__ gpul_part gpul_ring_chunk(const gpul_ring_round *r, uint32_t i)
{
	gpul_part chunk;

	chunk.begin = min(r->end, r->begin + i * r->chunk_bytes);
	chunk.end = min(r->end, chunk.begin + r->chunk_bytes);
	return chunk;
}

/* Begin a call in a ring: receive from the previous rank, send to the next one. */
template <int PROTO>
static __device__ __forceinline__ void gpul_ring_open(gpul_prims *p, const gpul_comm_view *comm, const gpul_comm_work *work)
{
	const int n = (int)comm->sizes.n_ranks;

	gpul_prims_open<PROTO>(p, comm, blockIdx.x, (comm->rank + n - 1) % n, (comm->rank + 1) % n, gpul_desk_signature(work));
	p->dtype = work->dtype;
	p->op = work->op;
}

#endif
