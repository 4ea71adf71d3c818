/* persistent.cu — a kernel that stays on the GPU, and runs the calls that the CPU posts.
 *
 *     block 0: ┌─> take item from the queue ── one block? ── run it ─────────────────────────────┬─> done ─┐
 *              │                               └── relay ──── run its share ── await the others ──┘         │
 *              └───────────────────────────────────────────────────────────────────────────────────────────┘
 *     others:  ┌─> take item from the relay ── run the share ── finish ─┐
 *              └────────────────────────────────────────────────────────┘
 *
 * All blocks leave together: by the item STOP, which is relayed, or because the communicator has been aborted, which every wait
 * notices.  All threads of a block leave together, because they decide in a barrier that shows whether any of them wants to
 * leave (wait.cuh). */
#include "comm/device/queue.cuh"
#include "comm/kernels/direct_allgather.cuh"
#include "comm/kernels/direct_allreduce.cuh"
#include "comm/kernels/direct_broadcast.cuh"
#include "comm/kernels/direct_reducescatter.cuh"
#include "comm/kernels/oneshot_allgather.cuh"
#include "comm/kernels/oneshot_allreduce.cuh"
#include "comm/kernels/oneshot_broadcast.cuh"
#include "comm/kernels/oneshot_reducescatter.cuh"

/* Perform the call of an item.  Returns true if the kernel must end. */
static __device__ __noinline__ bool run_item(const gpul_comm_view *comm, const gpul_comm_item *item)
{
	switch (item->body) {
#define RESIDENT(name, file, function, ...) \
	case GPUL_COMM_BODY_##name:         \
		return function(comm, &item->work);
#include "comm/kernels/kernels.def"
	}
	return true;
}

static __device__ void lead(const gpul_comm_view *comm, gpul_comm_queue *queue, gpul_comm_relay *relay)
{
	__shared__ gpul_comm_item item;
	uint64_t n_items = 0, n_relayed = 0;

	for (;;) {
		n_items++;
		if (gpul_queue_take(comm, queue->slots[n_items % GPUL_COMM_ITEMS], (uint32_t)n_items, &item))
			return;
		const bool stops = item.body == GPUL_COMM_BODY_STOP, shared = gridDim.x > 1 && (stops || item.work.n_blocks > 1);

		if (shared)
			gpul_queue_relay(relay, &item, (uint32_t)++n_relayed);
		if (!stops && run_item(comm, &item))
			return;
		if (shared && gpul_queue_await(comm, relay, n_relayed * (gridDim.x - 1)))
			return;
		__syncthreads();
		if (threadIdx.x == 0)
			gpul_store_release(&queue->done, n_items);
		if (stops)
			return;
	}
}

static __device__ void follow(const gpul_comm_view *comm, gpul_comm_relay *relay)
{
	__shared__ gpul_comm_item item;

	for (uint32_t n_relayed = 1;; n_relayed++) {
		if (gpul_queue_take(comm, relay->item, n_relayed, &item))
			return;
		const bool stops = item.body == GPUL_COMM_BODY_STOP;

		if (!stops && blockIdx.x < item.work.n_blocks && run_item(comm, &item))
			return;
		gpul_queue_finish(relay);
		if (stops)
			return;
	}
}

extern "C" __global__ void __launch_bounds__(512) gpul_comm_persistent(const gpul_comm_view *comm, gpul_comm_queue *queue, gpul_comm_relay *relay)
{
	if (blockIdx.x == 0)
		lead(comm, queue, relay);
	else
		follow(comm, relay);
}
