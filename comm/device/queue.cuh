/* queue.cuh — the queue through which a persistent kernel gets its work (layout.h, gpul_comm_queue).
 *
 *     CPU ── item n, LL words, flag n ──> queue (host memory) ──> block 0
 *                                                                 block 0 ── same words ──> relay (device memory) ──> other blocks
 *     CPU <── done = n ────────────────── queue <─────────────── block 0 <── finished ──── other blocks
 *
 * One warp polls all words of an item, one for each lane: the item arrives with the first poll that finds all flags.  Items that
 * only one block runs are not relayed.  Block 0 takes the next item when all blocks have finished the previous one, so that, as
 * with kernels on a stream, an item starts after all items before it have ended. */
#ifndef GPULOAD_COMM_DEVICE_QUEUE_CUH
#define GPULOAD_COMM_DEVICE_QUEUE_CUH

#include "comm/device/wait.cuh"

/* True if the communicator has been aborted; the abort word is read only at every 256th poll. */
static __device__ __forceinline__ bool gpul_queue_aborted(const gpul_comm_view *comm, uint32_t *polls)
{
	return ++*polls % 256 == 0 && gpul_load_relaxed32(&comm->control->abort) != 0;
}

/* Wait for item `number` in a slot.  All threads call this; the first warp copies the item to shared memory.  Returns true if the
 * kernel must end. */
static __device__ __forceinline__ bool gpul_queue_take(const gpul_comm_view *comm, const gpul_comm_ll *slot, uint32_t number,
						       gpul_comm_item *item)
{
	bool leave = false;

	if (threadIdx.x < 32) {
		const bool has_word = threadIdx.x < sizeof *item / 4;
		uint64_t word = 0;
		uint32_t polls = 0;

		/* Each lane polls one word of the item.  The load is an acquire, so that what the CPU wrote before the item is visible. */
		while (has_word && !leave) {
			word = gpul_load_acquire((const uint64_t *)&slot[threadIdx.x]);
			if ((uint32_t)(word >> 32) == number)
				break;
			leave = gpul_queue_aborted(comm, &polls);
		}
		if (has_word)
			((uint32_t *)item)[threadIdx.x] = (uint32_t)word;
	}
	return gpul_comm_any_leaves(leave);
}

/* Copy an item to the relay, from which the other blocks read it; called by block 0. */
static __device__ __forceinline__ void gpul_queue_relay(gpul_comm_relay *relay, const gpul_comm_item *item, uint32_t number)
{
	if (threadIdx.x < sizeof *item / 4)
		gpul_store_release((uint64_t *)&relay->item[threadIdx.x], (uint64_t)number << 32 | ((const uint32_t *)item)[threadIdx.x]);
}

/* Report that this block has finished a relayed item. */
static __device__ __forceinline__ void gpul_queue_finish(gpul_comm_relay *relay)
{
	__syncthreads();
	if (threadIdx.x == 0)
		asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(&relay->finished) : "memory");
}

/* Block 0 waits until the other blocks have finished n items in total.  Returns true if the kernel must end. */
static __device__ __forceinline__ bool gpul_queue_await(const gpul_comm_view *comm, const gpul_comm_relay *relay, uint64_t n)
{
	bool leave = false;

	if (threadIdx.x == 0) {
		uint32_t polls = 0;

		while (!leave && gpul_load_acquire(&relay->finished) < n)
			leave = gpul_queue_aborted(comm, &polls);
	}
	return gpul_comm_any_leaves(leave);
}

#endif
