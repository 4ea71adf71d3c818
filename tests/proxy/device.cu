// device.cu — kernels of test_device.c that push with fifo_device.cuh.  proxy/fifo.ptx contains the same kernels.
//
// Thread g pushes `count` triggers with words g << 32 | i and its complement; i begins at `first`.  It writes the
// result to results[2 g] (a gpul_fifo_result, or MISSED) and the number of pushes to results[2 g + 1].  notes are
// host memory: the kernel writes notes[2 g], the CPU's handler writes notes[2 g + 1].  The threads of a block share
// one lane, or each thread owns a lane.
#include "proxy/fifo_device.cuh"

typedef unsigned long long u64;

enum how { PUSH, RELEASE, SYNC, POLL };
enum { MISSED = 100 };  // a sync ended, but the CPU's earlier note is not visible

static __device__ u64 value(u64 thread, u64 i)
{
	return thread << 32 | i;
}

static __device__ unsigned push_one(enum how how, gpul_fifo_port *port, u64 thread, u64 i, u64 timeout_ns,
				    volatile u64 *notes)
{
	const u64 a = value(thread, i), b = a ^ ~0ull >> 1;
	unsigned result;

	if (how == PUSH || how == POLL) {
		result = gpul_fifo_push(port, a, b, timeout_ns);
	} else {
		notes[2 * thread] = i + 1;
		result = gpul_fifo_push_release(port, a, b, timeout_ns);
	}
	if (result == GPUL_FIFO_OK && how == SYNC)
		result = gpul_fifo_sync(port, port->next, timeout_ns);
	if (result == GPUL_FIFO_OK && how == POLL)
		while ((result = gpul_fifo_poll(port, port->next)) == GPUL_FIFO_TIMED_OUT)
			;
	if (result == GPUL_FIFO_OK && (how == SYNC || how == POLL) && notes[2 * thread + 1] != i + 1)
		result = MISSED;
	return result;
}

static __device__ void push_all(enum how how, const gpul_fifo_device *fifo, unsigned shared, unsigned count, u64 first,
				u64 timeout_ns, u64 *results, volatile u64 *notes)
{
	const u64 thread = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned result = GPUL_FIFO_OK, pushed = 0;
	gpul_fifo_port port;

	if (shared)
		gpul_fifo_share(fifo, blockIdx.x, &port);
	else
		result = gpul_fifo_own(fifo, (unsigned)thread, &port);
	if (result == GPUL_FIFO_OK) {
		for (; pushed < count; pushed++) {
			result = push_one(how, &port, thread, first + pushed, timeout_ns, notes);
			if (result != GPUL_FIFO_OK)
				break;
		}
		if (!shared)
			gpul_fifo_disown(&port);
	}
	results[2 * thread] = result;
	results[2 * thread + 1] = pushed;
}

#define PUSHES(name, how)                                                                                     \
	extern "C" __global__ void name(gpul_fifo_device fifo, unsigned shared, unsigned count, u64 first,     \
					u64 timeout_ns, u64 *results, u64 *notes)                              \
	{                                                                                                      \
		push_all(how, &fifo, shared, count, first, timeout_ns, results, notes);                        \
	}
PUSHES(fifo_push, PUSH)
PUSHES(fifo_push_release, RELEASE)
PUSHES(fifo_push_sync, SYNC)
PUSHES(fifo_push_poll, POLL)

// Each warp makes `count` pushes of 32 triggers.
extern "C" __global__ void fifo_warp_push(gpul_fifo_device fifo, unsigned shared, unsigned count, u64 first,
					  u64 timeout_ns, u64 *results, u64 *notes)
{
	const u64 thread = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned result = GPUL_FIFO_OK, pushed = 0;
	gpul_fifo_port port;

	if (shared)
		gpul_fifo_share(&fifo, blockIdx.x, &port);
	else
		result = gpul_fifo_warp_own(&fifo, (unsigned)(thread / 32), &port);
	if (result == GPUL_FIFO_OK) {
		for (; pushed < count; pushed++) {
			const u64 a = value(thread, first + pushed);

			result = gpul_fifo_warp_push(&port, a, a ^ ~0ull >> 1, timeout_ns);
			if (result != GPUL_FIFO_OK)
				break;
		}
		if (!shared)
			gpul_fifo_warp_disown(&port);
	}
	results[2 * thread] = result;
	results[2 * thread + 1] = pushed;
}

// All threads of one block try to own lane `first`.  One thread succeeds; it frees the lane when all threads have tried.
extern "C" __global__ void fifo_own(gpul_fifo_device fifo, unsigned shared, unsigned count, u64 first, u64 timeout_ns,
				    u64 *results, u64 *notes)
{
	gpul_fifo_port port;
	const unsigned result = gpul_fifo_own(&fifo, (unsigned)first, &port);

	__syncthreads();
	if (result == GPUL_FIFO_OK)
		gpul_fifo_disown(&port);
	results[2 * threadIdx.x] = result;
	results[2 * threadIdx.x + 1] = 0;
}
