/* sendrecv.cuh — the sends and receives of a group, all at the same time.
 *
 *     transfer 0: send to 1     blocks 0 to 3     ── channels 0 to 3 ──>  rank 1
 *     transfer 1: send to 1     blocks 0 and 1    ── channels 0, 1 ────>  rank 1, after transfer 0
 *     transfer 2: receive of 1  blocks 4 to 7     <── channels 0 to 3 ──  rank 1
 *     transfer 3: to itself     block 8           a copy
 *
 * Sends and receives, and the transfers of different ranks, have blocks of their own, so a send that waits for a credit does not
 * hold up a receive: two ranks that send to each other in one group cannot wait for each other forever.
 *
 * The receiver compares the size of the message with its own: in Simple, by the entry of the first slot; in LL and LL128, by a head,
 * a pack that is sent before the message; in LL in the same step if both fit into one slot. */
#ifndef GPULOAD_COMM_KERNELS_SENDRECV_CUH
#define GPULOAD_COMM_KERNELS_SENDRECV_CUH

#include "comm/device/prims.cuh"

static __device__ void gpul_copy(unsigned char *to, const unsigned char *from, uint64_t n_bytes)
{
	for (uint64_t i = threadIdx.x; i * GPUL_PACK_BYTES < n_bytes; i += blockDim.x)
		gpul_store_pack(to, i, n_bytes, gpul_load_pack(from, i, n_bytes));
}

/* Return the signature of a transfer.  It does not contain the element type, because a transfer is a number of bytes. */
static __device__ __forceinline__ uint64_t gpul_transfer_signature(const gpul_comm_transfer *t)
{
	return t->bytes << GPUL_COMM_SIGNATURE_COUNT | GPUL_COMM_SENDRECV;
}

template <int PROTO>
static __device__ bool gpul_send_part(const gpul_comm_view *comm, const gpul_comm_transfer *t, uint32_t block, gpul_part part)
{
	const unsigned char *from = (const unsigned char *)t->at + part.begin;
	const uint64_t n_bytes = part.end - part.begin;
	gpul_prims p;

	gpul_prims_open<PROTO>(&p, comm, block, -1, t->peer, gpul_transfer_signature(t));
	if (PROTO == GPUL_COMM_LL && gpul_ll_has_room_for_head(&p, n_bytes)) {
		gpul_ll_send_with_head(&p, from, n_bytes);
		return gpul_prims_close(&p);
	}

	const uint4 head = gpul_head(&p);

	if (PROTO != GPUL_COMM_SIMPLE)
		(void)gpul_send<PROTO>(&p, (const unsigned char *)&head, sizeof head); /* in LL and LL128 always false */
	return gpul_direct_send<PROTO>(&p, from, n_bytes, part.begin) || gpul_prims_close(&p);
}

template <int PROTO>
static __device__ bool gpul_receive_part(const gpul_comm_view *comm, const gpul_comm_transfer *t, uint32_t block, gpul_part part)
{
	unsigned char *to = (unsigned char *)t->at + part.begin;
	const uint64_t n_bytes = part.end - part.begin;
	gpul_prims p;

	gpul_prims_open<PROTO>(&p, comm, block, t->peer, -1, gpul_transfer_signature(t));
	gpul_prims_receive_at<PROTO>(&p, t->window, t->offset);
	if (PROTO == GPUL_COMM_LL && gpul_ll_has_room_for_head(&p, n_bytes))
		return gpul_ll_receive_with_head(&p, to, n_bytes) || gpul_prims_close(&p);

	uint4 head = gpul_head(&p); /* only thread 0 receives the sender's head; in other threads it stays the expected one */

	if (PROTO != GPUL_COMM_SIMPLE) {
		if (gpul_recv<PROTO>(&p, (unsigned char *)&head, sizeof head))
			return true;
		gpul_compare_head(&p, head);
		if (PROTO == GPUL_COMM_LL128)
			p.leave = __any_sync(~0u, p.leave);
	}
	return gpul_direct_recv<PROTO>(&p, to, n_bytes) || gpul_prims_close(&p);
}

template <int PROTO>
static __device__ bool gpul_transfer_part(const gpul_comm_view *comm, const gpul_comm_transfer *t, uint32_t block, gpul_part part)
{
	return t->kind == GPUL_COMM_TRANSFER_SEND ? gpul_send_part<PROTO>(comm, t, block, part)
						  : gpul_receive_part<PROTO>(comm, t, block, part);
}

/* Perform the transfers of this block one after another.  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_sendrecv_all(const gpul_comm_view *comm, const gpul_comm_transfer *transfers, uint32_t n)
{
	bool leave = false;

	for (uint32_t i = 0; i < n && !leave; i++) {
		const gpul_comm_transfer *t = &transfers[i];
		const uint32_t block = blockIdx.x - t->first_block;

		if (blockIdx.x < t->first_block || block >= t->n_blocks)
			continue;
		const gpul_part part = gpul_part_of(t->bytes, block, t->n_blocks, GPUL_COMM_LINE_BYTES);

		if (part.begin == part.end)
			continue;
		if (t->kind == GPUL_COMM_TRANSFER_COPY)
			gpul_copy((unsigned char *)t->offset + part.begin, (const unsigned char *)t->at + part.begin,
				  part.end - part.begin);
		else if (t->proto == GPUL_COMM_LL)
			leave = gpul_transfer_part<GPUL_COMM_LL>(comm, t, block, part);
		else if (t->proto == GPUL_COMM_LL128)
			leave = gpul_transfer_part<GPUL_COMM_LL128>(comm, t, block, part);
		else
			leave = gpul_transfer_part<GPUL_COMM_SIMPLE>(comm, t, block, part);
	}
	return leave;
}

/* T: gpul_comm_transfers or gpul_comm_few_transfers, the type of the kernel's argument. */
template <typename T> static __device__ __forceinline__ bool gpul_sendrecv(const gpul_comm_view *comm, const T *work)
{
	return gpul_sendrecv_all(comm, work->items, work->n);
}

#endif
