/* fifo_bench.cu — the kernels of gpuload fifo bench, whose threads push triggers.
 *
 * Word 0 of a trigger is its number within its thread or warp, from 0; word 1 is the number of the thread or warp. */
#include "proxy/fifo_device.cuh"

typedef unsigned long long u64;

/* Record the result of a thread that failed.  After a time-out also abort the FIFO, so that the CPU stops waiting. */
static __device__ void fail(const gpul_fifo_port *port, gpul_fifo_result result, unsigned *failed)
{
	*failed = result;
	if (result == GPUL_FIFO_TIMED_OUT)
		gpul_fifo_raise(port, GPUL_FIFO_CODE_TIMED_OUT);
}

template <bool OWN> static __device__ gpul_fifo_result open(const gpul_fifo_device *fifo, gpul_fifo_port *port)
{
	if (OWN)
		return gpul_fifo_own(fifo, blockIdx.x, port);
	gpul_fifo_share(fifo, 0, port);
	return GPUL_FIFO_OK;
}

template <bool OWN, bool RELEASE, bool SYNC>
static __device__ __forceinline__ void push(const gpul_fifo_device &fifo, u64 n, u64 timeout_ns, unsigned *failed)
{
	gpul_fifo_port port;
	gpul_fifo_result result = open<OWN>(&fifo, &port);

	for (u64 i = 0; i < n && result == GPUL_FIFO_OK; i++) {
		result = RELEASE ? gpul_fifo_push_release(&port, i, blockIdx.x, timeout_ns)
				 : gpul_fifo_push(&port, i, blockIdx.x, timeout_ns);
		if (SYNC && result == GPUL_FIFO_OK)
			result = gpul_fifo_sync(&port, port.next, timeout_ns);
	}
	if (result != GPUL_FIFO_OK)
		fail(&port, result, failed);
	if (OWN && result != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
}

/* Push and sync n times; write the times before push i and after sync i to stamps[2 * (thread * n + i)] and the element after it. */
template <bool OWN>
static __device__ __forceinline__ void latency(const gpul_fifo_device &fifo, u64 n, u64 timeout_ns, unsigned *failed,
					       u64 *stamps)
{
	gpul_fifo_port port;
	gpul_fifo_result result = open<OWN>(&fifo, &port);

	stamps += 2 * n * blockIdx.x;
	for (u64 i = 0; i < n && result == GPUL_FIFO_OK; i++) {
		const u64 before = gpul_fifo_globaltimer_ns();

		result = gpul_fifo_push_release(&port, i, blockIdx.x, timeout_ns);
		if (result == GPUL_FIFO_OK)
			result = gpul_fifo_sync(&port, port.next, timeout_ns);
		stamps[2 * i + 1] = gpul_fifo_globaltimer_ns();
		stamps[2 * i] = before;
	}
	if (result != GPUL_FIFO_OK)
		fail(&port, result, failed);
	if (OWN && result != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
}

/* Each block is one warp; each thread pushes n triggers. */
template <bool OWN>
static __device__ __forceinline__ void warp(const gpul_fifo_device &fifo, u64 n, u64 timeout_ns, unsigned *failed)
{
	gpul_fifo_port port;
	gpul_fifo_result result = GPUL_FIFO_OK;

	if (OWN)
		result = gpul_fifo_warp_own(&fifo, blockIdx.x, &port);
	else
		gpul_fifo_share(&fifo, 0, &port);
	for (u64 i = 0; i < n && result == GPUL_FIFO_OK; i++)
		result = gpul_fifo_warp_push(&port, 32 * i + threadIdx.x, blockIdx.x, timeout_ns);
	if (result != GPUL_FIFO_OK && threadIdx.x == 0)
		fail(&port, result, failed);
	if (OWN && result != GPUL_FIFO_BUSY)
		gpul_fifo_warp_disown(&port);
}

#define KERNEL(name, call)                                                                                    \
	extern "C" __global__ void name(gpul_fifo_device fifo, u64 n, u64 timeout_ns, unsigned *failed,       \
					u64 *stamps)                                                          \
	{                                                                                                     \
		call;                                                                                         \
	}
KERNEL(shared_push, (push<false, false, false>(fifo, n, timeout_ns, failed)))
KERNEL(shared_push_sync, (push<false, false, true>(fifo, n, timeout_ns, failed)))
KERNEL(shared_push_release, (push<false, true, false>(fifo, n, timeout_ns, failed)))
KERNEL(shared_push_release_sync, (push<false, true, true>(fifo, n, timeout_ns, failed)))
KERNEL(shared_latency, latency<false>(fifo, n, timeout_ns, failed, stamps))
KERNEL(shared_warp, warp<false>(fifo, n, timeout_ns, failed))
KERNEL(lanes_push, (push<true, false, false>(fifo, n, timeout_ns, failed)))
KERNEL(lanes_push_sync, (push<true, false, true>(fifo, n, timeout_ns, failed)))
KERNEL(lanes_push_release, (push<true, true, false>(fifo, n, timeout_ns, failed)))
KERNEL(lanes_push_release_sync, (push<true, true, true>(fifo, n, timeout_ns, failed)))
KERNEL(lanes_latency, latency<true>(fifo, n, timeout_ns, failed, stamps))
KERNEL(lanes_warp, warp<true>(fifo, n, timeout_ns, failed))
