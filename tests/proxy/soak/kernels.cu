// kernels.cu — the kernels of the soak test: they push as struct soak_work requests, and write their results.
#include "proxy/fifo_device.cuh"
#include "tests/proxy/soak/work.h"

typedef unsigned long long u64;

// Return a pseudo-random number for a trigger of a thread.
static __device__ u64 roll(const soak_work *w, unsigned thread, u64 number)
{
	return soak_mix(w->seed + thread * 0x632be59bd9b4e019ull + number);
}

static __device__ unsigned choose(unsigned dice)
{
	return dice < 8 ? SOAK_PUSH : dice < 14 ? SOAK_RELEASE : dice == 14 ? SOAK_SYNC : SOAK_POLL;
}

static __device__ void think(const soak_work *w, u64 dice)
{
	if (dice >> 60 < 2)
		__nanosleep((unsigned)(dice >> 8) % w->think_ns);
}

static __device__ bool again(const soak_work *w, unsigned result)
{
	return w->tries_again && result == GPUL_FIFO_TIMED_OUT;
}

// Push a trigger; if `how` is SYNC or POLL, wait until it has been handled.
static __device__ unsigned push_one(const soak_work *w, gpul_fifo_port *port, unsigned how, unsigned thread, u64 number,
				    u64 a, u64 b)
{
	unsigned result;

	if (how != SOAK_PUSH)
		*(volatile u64 *)&w->payload[(u64)thread * (w->payload_mask + 1) + (number & w->payload_mask)] = number + 1;
	do
		result = how == SOAK_PUSH ? gpul_fifo_push(port, a, b, w->timeout_ns)
					  : gpul_fifo_push_release(port, a, b, w->timeout_ns);
	while (again(w, result));
	if (result != GPUL_FIFO_OK || how == SOAK_PUSH || how == SOAK_RELEASE)
		return result;
	do
		result = how == SOAK_SYNC ? gpul_fifo_sync(port, port->next, w->timeout_ns)
					  : gpul_fifo_poll(port, port->next);
	while (again(w, result) || (how == SOAK_POLL && result == GPUL_FIFO_TIMED_OUT));
	if (result == GPUL_FIFO_OK && *(volatile u64 *)&w->answers[thread] != number + 1)
		result = SOAK_MISSED;
	return result;
}

extern "C" __global__ void soak_push(soak_work w)
{
	const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned result = GPUL_FIFO_OK;
	u64 before = SOAK_NONE, pushed = 0;
	gpul_fifo_port port;

	if (w.shared)
		gpul_fifo_share(&w.fifo, blockIdx.x, &port);
	else
		result = gpul_fifo_own(&w.fifo, thread, &port);
	for (; result == GPUL_FIFO_OK && pushed < w.count; pushed++) {
		const u64 number = w.first + pushed;
		const u64 dice = w.think_ns || w.how == SOAK_MIXED ? roll(&w, thread, number) : 0;
		const unsigned how = w.how == SOAK_MIXED ? choose(dice & 15) : w.how;
		const u64 a = soak_word0(thread, number, how);

		if (w.think_ns)
			think(&w, dice);
		result = push_one(&w, &port, how, thread, number, a, soak_word1(a, before, w.seed));
		if (result != GPUL_FIFO_OK)
			break;
		before = (port.next - 1) & SOAK_NONE;
	}
	if (!w.shared && result != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
	w.results[2 * thread] = result;
	w.results[2 * thread + 1] = pushed;
}

// Each warp pushes 32 triggers together.
extern "C" __global__ void soak_warp(soak_work w)
{
	const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned result = GPUL_FIFO_OK;
	u64 before = SOAK_NONE, pushed = 0;
	gpul_fifo_port port;

	if (w.shared)
		gpul_fifo_share(&w.fifo, blockIdx.x, &port);
	else
		result = gpul_fifo_warp_own(&w.fifo, thread / 32, &port);
	for (; result == GPUL_FIFO_OK && pushed < w.count; pushed++) {
		const u64 number = w.first + pushed, a = soak_word0(thread, number, SOAK_WARP);

		if (w.think_ns)
			think(&w, roll(&w, thread / 32, number));
		do
			result = gpul_fifo_warp_push(&port, a, soak_word1(a, before, w.seed), w.timeout_ns);
		while (again(&w, result));
		if (result != GPUL_FIFO_OK)
			break;
		before = (port.next - 32 + threadIdx.x % 32) & SOAK_NONE;
	}
	if (!w.shared && result != GPUL_FIFO_BUSY)
		gpul_fifo_warp_disown(&port);
	w.results[2 * thread] = result;
	w.results[2 * thread + 1] = pushed;
}
