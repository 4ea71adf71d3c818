/* fifo_push.cu — the kernel of gpuload fifo push: each block has one thread, which pushes count triggers and waits until
 * the proxy has handled them. */
#include "cli/fifo/fifo_push.h"
#include "proxy/fifo_device.cuh"

static __device__ gpul_fifo_result push_all(const gpul_fifo_device *fifo, unsigned long long first, unsigned long long count,
					    unsigned long long timeout_ns, unsigned flags, unsigned long long *pushed)
{
	const unsigned long long where = (unsigned long long)FIFO_PUSH_KIND << GPUL_FIFO_KIND_SHIFT | blockIdx.x;
	gpul_fifo_port port;
	gpul_fifo_result r = GPUL_FIFO_OK;

	if (flags & FIFO_PUSH_SHARE)
		gpul_fifo_share(fifo, blockIdx.x, &port);
	else
		r = gpul_fifo_own(fifo, blockIdx.x, &port);
	for (unsigned long long i = 0; i < count && r == GPUL_FIFO_OK; i++) {
		r = flags & FIFO_PUSH_RELAXED ? gpul_fifo_push(&port, first + i, where, timeout_ns)
					      : gpul_fifo_push_release(&port, first + i, where, timeout_ns);
		*pushed += r == GPUL_FIFO_OK;
		if (r == GPUL_FIFO_OK && flags & FIFO_PUSH_SYNC_EACH)
			r = gpul_fifo_sync(&port, port.next, timeout_ns);
	}
	if (r == GPUL_FIFO_OK)
		r = gpul_fifo_sync(&port, port.next, timeout_ns);
	if (!(flags & FIFO_PUSH_SHARE) && r != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
	return r;
}

/* Block b pushes the triggers with the numbers first[b], first[b] + 1 and so on, and writes results[b]. */
extern "C" __global__ void fifo_push(gpul_fifo_device fifo, const unsigned long long *first, unsigned long long count,
				     unsigned long long timeout_ns, unsigned flags, fifo_push_result *results)
{
	unsigned long long pushed = 0;
	const gpul_fifo_result r = push_all(&fifo, first[blockIdx.x], count, timeout_ns, flags, &pushed);

	results[blockIdx.x].pushed = pushed;
	results[blockIdx.x].result = r;
}
