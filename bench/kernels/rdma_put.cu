/* rdma_put.cu — the kernel of bench_rdma_put: each block has one thread, which pushes puts of the block's part of the region. */
#include "rdma/put/put_device.cuh"

typedef unsigned long long u64;

extern "C" __global__ void rdma_put(gpul_fifo_device fifo, u64 count, unsigned bytes, unsigned stride, u64 timeout_ns,
				    unsigned *results)
{
	const u64 at = (u64)blockIdx.x * stride;
	gpul_fifo_port port;
	unsigned result = gpul_fifo_own(&fifo, blockIdx.x, &port);

	for (u64 i = 0; i < count && result == GPUL_FIFO_OK; i++)
		result = gpul_rdma_put_push(&port, at, at, bytes, 0, blockIdx.x, timeout_ns);
	if (result == GPUL_FIFO_OK)
		result = gpul_fifo_sync(&port, port.next, timeout_ns);
	if (result != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
	results[blockIdx.x] = result;
}
