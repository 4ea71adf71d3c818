/* channel.cuh — the two ends of a channel (channel_layout.h), as one block of threads uses them.
 *
 *     sender                                   receiver
 *     waits for a credit: step - head < STEPS  waits for data: step < tail
 *     all threads write the slot               all threads read the slot
 *     posts: barrier, fence, tail = step + 1   frees: barrier, fence, head = step + 1
 *
 * This is the protocol Simple; in LL and LL128, flags in the data replace the tail (prims_ll.cuh). */
#ifndef GPULOAD_COMM_DEVICE_CHANNEL_CUH
#define GPULOAD_COMM_DEVICE_CHANNEL_CUH

#include "comm/device/pack.cuh"
#include "comm/device/wait.cuh"

struct gpul_comm_end {
	const gpul_comm_view *comm;
	gpul_comm_inbox *inbox;   /* inbox of the receiver */
	unsigned char *slots;     /* slots of the inbox */
	gpul_comm_outbox *outbox; /* outbox of the sender */
	uint64_t step;            /* number of the next step */
	gpul_comm_steps *saved;   /* the channel's numbers of steps, which are kept between kernels */
	int peer;
};

static __device__ __forceinline__ uint64_t gpul_channel_index(const gpul_comm_view *comm, int peer, uint32_t block)
{
	return (uint64_t)peer * comm->sizes.n_blocks + block;
}

/* Return a channel's entry of comm->steps; computes its address from that of the view, to avoid loading comm->steps. */
static __device__ __forceinline__ gpul_comm_steps *gpul_channel_steps(const gpul_comm_view *comm, int peer, uint32_t block)
{
	return (gpul_comm_steps *)((uint64_t *)(comm + 1) + GPUL_COMM_MAX_BLOCKS) + block * GPUL_COMM_MAX_PEERS + peer;
}

/* Return one end of the channel that block `block` uses with a rank. */
static __device__ __forceinline__ gpul_comm_end gpul_channel_to(const gpul_comm_view *comm, int peer, uint32_t block)
{
	const uint64_t mine = gpul_channel_index(comm, peer, block);
	const uint64_t theirs = gpul_channel_index(comm, comm->rank, block);
	gpul_comm_end end;

	end.comm = comm;
	end.inbox = (gpul_comm_inbox *)(comm->peers[peer].their_inboxes + theirs * sizeof(gpul_comm_inbox));
	end.slots = comm->peers[peer].their_slots + theirs * comm->sizes.slots_bytes;
	end.outbox = (gpul_comm_outbox *)(comm->peers[peer].outboxes + mine * sizeof(gpul_comm_outbox));
	end.saved = gpul_channel_steps(comm, peer, block);
	end.step = end.saved->sent;
	end.peer = peer;
	return end;
}

static __device__ __forceinline__ gpul_comm_end gpul_channel_from(const gpul_comm_view *comm, int peer, uint32_t block)
{
	const uint64_t mine = gpul_channel_index(comm, peer, block);
	const uint64_t theirs = gpul_channel_index(comm, comm->rank, block);
	gpul_comm_end end;

	end.comm = comm;
	end.inbox = (gpul_comm_inbox *)(comm->peers[peer].inboxes + mine * sizeof(gpul_comm_inbox));
	end.slots = comm->peers[peer].slots + mine * comm->sizes.slots_bytes;
	end.outbox = (gpul_comm_outbox *)(comm->peers[peer].their_outboxes + theirs * sizeof(gpul_comm_outbox));
	end.saved = gpul_channel_steps(comm, peer, block);
	end.step = end.saved->received;
	end.peer = peer;
	return end;
}

/* Return the address of a slot's data in the protocol Simple. */
static __device__ __forceinline__ unsigned char *gpul_channel_data(const gpul_comm_end *end)
{
	return end->slots + end->comm->sizes.data_at + end->step % GPUL_COMM_STEPS * (end->comm->sizes.slot_bytes + GPUL_COMM_LINE_BYTES);
}

/* Return the address of a slot's entry (size and mode), which lies before the data. */
static __device__ __forceinline__ gpul_comm_slot *gpul_channel_entry(const gpul_comm_end *end)
{
	return (gpul_comm_slot *)gpul_channel_data(end) - 1;
}

#endif
