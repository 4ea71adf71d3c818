// kernels.cu — the sender's and the receiver's kernel of whole_way; work.h describes them.
#include "rdma/put/put_device.cuh"
#include "tests/rdma/put/work.h"

typedef unsigned long long u64;

static __device__ u64 *slot_of(const way_work &w, u64 round)
{
	return w.data + ((u64)blockIdx.x * w.window + round % w.window) * (w.stride / 8);
}

// Return the offset of a round's slot in the region, which is the same on both sides.
static __device__ u64 offset_of(const way_work &w, u64 round)
{
	return ((u64)blockIdx.x * w.window + round % w.window) * w.stride;
}

static __device__ unsigned wait_step(const way_work &w, const gpul_fifo_port &port, u64 value)
{
	const unsigned result = gpul_rdma_step_wait(&w.steps[blockIdx.x], value, w.timeout_ns, &port.line->abort);

	return result == GPUL_RDMA_STEP_REACHED ? 0 : 10 + result;
}

// Wait until the slot of a round may be filled again; only thread 0 calls this.
static __device__ unsigned wait_for_slot(const way_work &w, gpul_fifo_port &port, u64 first, u64 round)
{
	if (round < w.window)
		return 0;
	const u64 checked = round - w.window + 1;
	const unsigned result = wait_step(w, port, (checked + w.ack_every - 1) / w.ack_every);

	return result ? result : (unsigned)gpul_fifo_sync(&port, first + checked, w.timeout_ns);
}

extern "C" __global__ void way_send(way_work w)
{
	__shared__ unsigned result;
	gpul_fifo_port port;
	u64 first = 0, round = 0;

	if (threadIdx.x == 0) {
		result = gpul_fifo_own(&w.fifo, blockIdx.x, &port);
		first = port.next;
	}
	for (; round < w.rounds; round++) {
		if (threadIdx.x == 0 && result == 0)
			result = wait_for_slot(w, port, first, round);
		__syncthreads();
		if (result)
			break;
		for (unsigned i = threadIdx.x; i < w.bytes / 8; i += blockDim.x)
			slot_of(w, round)[i] = way_word(w.seed, blockIdx.x, round, i) + (round == w.bad_round && blockIdx.x == 0);
		__syncthreads();
		if (threadIdx.x == 0)
			result = gpul_rdma_put_push(&port, offset_of(w, round), offset_of(w, round), w.bytes, 0, blockIdx.x,
						    w.timeout_ns);
	}
	if (threadIdx.x)
		return;
	if (!result)
		result = gpul_fifo_sync(&port, port.next, w.timeout_ns);
	if (!result)
		result = wait_step(w, port, (w.rounds + w.ack_every - 1) / w.ack_every);
	if (result != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
	w.results[blockIdx.x].rounds = round;
	w.results[blockIdx.x].result = result;
}

// Compare a slot with the pattern; false: a word is wrong, and recorded.
static __device__ bool check_slot(const way_work &w, u64 round)
{
	const volatile u64 *slot = slot_of(w, round);
	bool good = true;

	for (unsigned i = threadIdx.x; i < w.bytes / 8; i += blockDim.x) {
		const u64 expected = way_word(w.seed, blockIdx.x, round, i), found = slot[i];

		if (found != expected) {
			w.results[blockIdx.x].found = found;
			w.results[blockIdx.x].expected = expected;
			w.results[blockIdx.x].word = i;
			good = false;
		}
	}
	return good;
}

extern "C" __global__ void way_receive(way_work w)
{
	__shared__ unsigned result;
	gpul_fifo_port port;
	u64 round = 0;

	if (threadIdx.x == 0)
		result = gpul_fifo_own(&w.fifo, blockIdx.x, &port);
	for (; round < w.rounds; round++) {
		if (threadIdx.x == 0 && result == 0)
			result = wait_step(w, port, round + 1);
		__syncthreads();
		if (result)
			break;
		if (__syncthreads_or(!check_slot(w, round))) {
			if (threadIdx.x == 0) {
				result = WAY_BAD_DATA;
				gpul_fifo_raise(&port, WAY_BAD_CODE);  // ends the other blocks, the proxy, and the connection
			}
			break;
		}
		if (threadIdx.x == 0 && ((round + 1) % w.ack_every == 0 || round + 1 == w.rounds))
			result = gpul_rdma_put_push(&port, 0, 0, 0, 0, blockIdx.x, w.timeout_ns);
	}
	if (threadIdx.x)
		return;
	if (!result)
		result = gpul_fifo_sync(&port, port.next, w.timeout_ns);
	if (result != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
	w.results[blockIdx.x].rounds = round;
	w.results[blockIdx.x].result = result;
}

// Push one trigger for each element of the array, from one thread to one lane.
extern "C" __global__ void push_all(gpul_fifo_device fifo, const struct way_push *pushes, unsigned n, unsigned *results)
{
	gpul_fifo_port port;

	if (gpul_fifo_own(&fifo, 0, &port) != GPUL_FIFO_OK)
		return;
	for (unsigned i = 0; i < n; i++)
		results[i] = gpul_rdma_put_push(&port, pushes[i].from, pushes[i].to, pushes[i].bytes, pushes[i].route, pushes[i].step,
						1000000000ull, pushes[i].kind);
	gpul_fifo_disown(&port);
}
