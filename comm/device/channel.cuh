/* channel.cuh — the two ends of a channel (layout.h), as one block of threads uses them.
 *
 *     sender                                   receiver
 *     wait_credit: step - head < STEPS          wait_data: step < tail
 *     all threads write the slot                all threads read the slot
 *     post: barrier, fence, tail = step + 1     free: barrier, fence, head = step + 1
 *
 * All functions are called by all threads of the block.  Those that return bool return the same to all: true, leave. */
#ifndef GPULOAD_COMM_DEVICE_CHANNEL_CUH
#define GPULOAD_COMM_DEVICE_CHANNEL_CUH

#include "comm/device/pack.cuh"
#include "comm/device/wait.cuh"

struct gpul_comm_end {
	const gpul_comm_view *comm;
	gpul_comm_inbox *inbox;   /* the receiver's */
	gpul_comm_outbox *outbox; /* the sender's */
	uint64_t step;            /* the next one */
	uint64_t *saved;          /* where the number of steps is kept between kernels */
	int peer;
};

static __device__ __forceinline__ uint64_t gpul_channel_index(const gpul_comm_view *comm, int peer, uint32_t block)
{
	return (uint64_t)peer * comm->sizes.n_blocks + block;
}

/* The end of the channel to a rank, for a block of that number. */
static __device__ __forceinline__ gpul_comm_end gpul_channel_to(const gpul_comm_view *comm, int peer, uint32_t block)
{
	const uint64_t mine = gpul_channel_index(comm, peer, block);
	const uint64_t theirs = gpul_channel_index(comm, comm->rank, block);
	gpul_comm_end end;

	end.comm = comm;
	end.inbox = (gpul_comm_inbox *)(comm->peers[peer].their_inboxes + theirs * comm->sizes.inbox_bytes);
	end.outbox = (gpul_comm_outbox *)(comm->peers[peer].outboxes + mine * sizeof(gpul_comm_outbox));
	end.saved = comm->sent + mine;
	end.step = *end.saved;
	end.peer = peer;
	return end;
}

static __device__ __forceinline__ gpul_comm_end gpul_channel_from(const gpul_comm_view *comm, int peer, uint32_t block)
{
	const uint64_t mine = gpul_channel_index(comm, peer, block);
	const uint64_t theirs = gpul_channel_index(comm, comm->rank, block);
	gpul_comm_end end;

	end.comm = comm;
	end.inbox = (gpul_comm_inbox *)(comm->peers[peer].inboxes + mine * comm->sizes.inbox_bytes);
	end.outbox = (gpul_comm_outbox *)(comm->peers[peer].their_outboxes + theirs * sizeof(gpul_comm_outbox));
	end.saved = comm->received + mine;
	end.step = *end.saved;
	end.peer = peer;
	return end;
}

/* Keep the number of steps for the next kernel; after the last step of this one. */
static __device__ __forceinline__ void gpul_channel_save(const gpul_comm_end *end)
{
	if (threadIdx.x == 0)
		*end->saved = end->step;
}

static __device__ __forceinline__ unsigned char *gpul_channel_data(const gpul_comm_end *end)
{
	return (unsigned char *)end->inbox + end->comm->sizes.data_at +
	       end->step % GPUL_COMM_STEPS * end->comm->sizes.slot_bytes;
}

static __device__ __forceinline__ bool gpul_channel_wait_credit(const gpul_comm_end *end)
{
	bool leave = false;

	if (threadIdx.x == 0) {
		gpul_comm_spin spin = gpul_comm_spin_for(end->comm, GPUL_COMM_WAITED_FOR_CREDIT, end->peer, end->step);

		while (end->step - gpul_load_acquire(&end->outbox->head) >= GPUL_COMM_STEPS &&
		       !(leave = gpul_comm_give_up(&spin)))
			;
	}
	return gpul_comm_any_leaves(leave);
}

static __device__ __forceinline__ bool gpul_channel_wait_data(const gpul_comm_end *end)
{
	bool leave = false;

	if (threadIdx.x == 0) {
		gpul_comm_spin spin = gpul_comm_spin_for(end->comm, GPUL_COMM_WAITED_FOR_DATA, end->peer, end->step);

		while (gpul_load_acquire(&end->inbox->tail) <= end->step && !(leave = gpul_comm_give_up(&spin)))
			;
	}
	return gpul_comm_any_leaves(leave);
}

/* The block has written the slot of this step: tell the receiver. */
static __device__ __forceinline__ void gpul_channel_post(gpul_comm_end *end, uint32_t size, uint64_t offset)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		gpul_comm_slot *entry = &end->inbox->entries[end->step % GPUL_COMM_STEPS];

		entry->mode = GPUL_COMM_SLOT_DATA;
		entry->size = size;
		entry->offset = offset;
		gpul_fence_sys();
		gpul_store_relaxed(&end->inbox->tail, end->step + 1);
	}
	end->step++;
}

/* The block has read the slot of this step: the sender may use it again. */
static __device__ __forceinline__ void gpul_channel_free(gpul_comm_end *end)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		gpul_fence_sys();
		gpul_store_relaxed(&end->outbox->head, end->step + 1);
	}
	end->step++;
}

#endif
