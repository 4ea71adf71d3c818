/* fifo_put.cu — the kernels of gpuload fifo trace --put: each block of the sender puts one message after the other; each block of the
 * receiver waits for its step counter, which counts the arrived messages. Both record the times. */
#include "rdma/put/put_device.cuh"

typedef unsigned long long u64;

/* The same fields as struct fifo_put_stamps in fifo_put.h. */
struct stamps {
	u64 begun, pushed, synced;
};

enum { WAIT_FAILED = 10, WRONG_DATA = 100 };  /* results in addition to those of gpul_fifo_result: WAIT_FAILED + gpul_rdma_step_result */

static __device__ u64 word_of(u64 message, unsigned i)
{
	return (message + 1) * 0x9e3779b97f4a7c15ull + i;
}

/* Each block has one thread, which owns a lane.  Message n of block b has its own memory, at (b * puts + n) * stride. */
extern "C" __global__ void put_send(gpul_fifo_device fifo, u64 *data, stamps *stamps, unsigned *results, unsigned puts,
				    unsigned bytes, unsigned stride, u64 timeout_ns)
{
	gpul_fifo_port port;
	unsigned result = gpul_fifo_own(&fifo, blockIdx.x, &port);

	for (unsigned n = 0; n < puts && result == GPUL_FIFO_OK; n++) {
		const u64 message = (u64)blockIdx.x * puts + n;

		for (unsigned i = 0; i < bytes / 8; i++)
			data[message * (stride / 8) + i] = word_of(message, i);
		const u64 begun = gpul_fifo_globaltimer_ns();

		result = gpul_rdma_put_push(&port, message * stride, message * stride, bytes, 0, blockIdx.x, timeout_ns);
		stamps[message].begun = begun;
		stamps[message].pushed = gpul_fifo_globaltimer_ns();
		if (result == GPUL_FIFO_OK)
			result = gpul_fifo_sync(&port, port.next, timeout_ns);
		stamps[message].synced = gpul_fifo_globaltimer_ns();
	}
	if (result != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
	if (result == GPUL_FIFO_TIMED_OUT)
		gpul_fifo_raise(&port, GPUL_FIFO_CODE_TIMED_OUT);
	results[blockIdx.x] = result;
}

extern "C" __global__ void put_receive(const volatile u64 *data, const u64 *steps, const u64 *abort, u64 *seen, unsigned *results,
				       unsigned puts, unsigned bytes, unsigned stride, u64 timeout_ns)
{
	unsigned result = 0;

	for (unsigned n = 0; n < puts && !result; n++) {
		const u64 message = (u64)blockIdx.x * puts + n;
		const unsigned waited = gpul_rdma_step_wait(&steps[blockIdx.x], n + 1, timeout_ns, abort);

		seen[message] = gpul_fifo_globaltimer_ns();
		if (waited != GPUL_RDMA_STEP_REACHED)
			result = WAIT_FAILED + waited;
		for (unsigned i = 0; i < bytes / 8 && !result; i++)
			if (data[message * (stride / 8) + i] != word_of(message, i))
				result = WRONG_DATA;
	}
	results[blockIdx.x] = result;
}
