/* put_device.cuh — puts for kernels: push a put, wait for a step.  For nvcc and NVRTC, sm_70 and later.
 *
 *     __global__ void send(gpul_fifo_device fifo, float *span, ...)       span: at offset `from` of the route's region
 *     {
 *             ...                                                        all threads write their part of the span
 *             __syncthreads();                                           all writes come before the push
 *             if (threadIdx.x == 0) {
 *                     gpul_rdma_put_push(&port, from, to, bytes, route, step, timeout_ns);
 *                     gpul_fifo_sync(&port, port.next, timeout_ns);      the put has been acknowledged: the span may change
 *             }
 *     }
 *     __global__ void receive(const unsigned long long *step, ...)       in the peer
 *     {
 *             if (threadIdx.x == 0)
 *                     ok = gpul_rdma_step_wait(step, 1, timeout_ns, abort) == GPUL_RDMA_STEP_REACHED;
 *             __syncthreads();                                           all threads see the span
 *     }
 *
 * fifo_device.cuh opens the port.  Memory order: PTX ISA, Memory Consistency Model; a block barrier before a push, or after a
 * wait, extends it to the other threads of the block (causality order). */
#ifndef GPULOAD_RDMA_PUT_PUT_DEVICE_CUH
#define GPULOAD_RDMA_PUT_PUT_DEVICE_CUH

#include "proxy/fifo_device.cuh"
#include "rdma/put/put_layout.h"

enum gpul_rdma_step_result {
	GPUL_RDMA_STEP_REACHED = 0,
	GPUL_RDMA_STEP_TIMED_OUT = 1,
	GPUL_RDMA_STEP_ABORTED = 2,
};

/* The abort word and the clock are read only at every 32nd poll of the step, because reading either costs as much as a poll. */
enum { GPUL_RDMA_STEP_POLLS = 32 };

/* Request a put: write `bytes` from offset `from` of the route's region to offset `to` of the peer's memory, then raise the peer's
 * step word `step` by 1 (GPUL_RDMA_PUT_NO_STEP: none).  The NIC sees everything that this thread wrote before, or observed through
 * a barrier.  The source bytes must not change until gpul_fifo_sync() has returned OK for the trigger's position.
 *
 * from   a multiple of GPUL_RDMA_PUT_UNIT, less than GPUL_RDMA_PUT_FROM_END (64 GiB - 16)
 * to     a multiple of GPUL_RDMA_PUT_UNIT, less than GPUL_RDMA_PUT_TO_END (32 GiB - 16)
 * bytes  less than GPUL_RDMA_PUT_BYTES_END (2 GiB - 1)
 * route  less than GPUL_RDMA_PUT_ROUTES;  step: at most GPUL_RDMA_PUT_NO_STEP
 * kind   less than 16: the kind of trigger that the proxy handles as a put
 * Result  GPUL_FIFO_REFUSED if an argument is out of range: nothing is pushed; else as gpul_fifo_push_release() */
static __device__ __forceinline__ gpul_fifo_result gpul_rdma_put_push(gpul_fifo_port *port, unsigned long long from, unsigned long long to,
								      unsigned long long bytes, unsigned long long route,
								      unsigned long long step, unsigned long long timeout_ns,
								      unsigned long long kind = 0)
{
	if (!GPUL_RDMA_PUT_OFFSETS_FIT(from, to) || !GPUL_RDMA_PUT_FIELDS_FIT(kind, route, step, bytes))
		return GPUL_FIFO_REFUSED;
	return gpul_fifo_push_release(port, GPUL_RDMA_PUT_WORD0(from, to), GPUL_RDMA_PUT_WORD1(kind, route, step, bytes), timeout_ns);
}

/* Read a step with acquire semantics: the caller then sees the data of all puts that have raised the step to this value. */
static __device__ __forceinline__ unsigned long long gpul_rdma_step_read(const unsigned long long *step)
{
	unsigned long long value;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(step) : "memory");
	return value;
}

/* Wait until a step is at least value; called by one thread, or by all threads of a warp.  abort: a word that ends the wait
 * when it is not 0, even if the step has not been reached; NULL: no such word.  With &port.line->abort of this process' FIFO, the
 * wait ends when the proxy ends, for example because the connection has failed.  timeout_ns ~0ull: no time-out. */
static __device__ inline gpul_rdma_step_result gpul_rdma_step_wait(const unsigned long long *step, unsigned long long value,
								   unsigned long long timeout_ns, const unsigned long long *abort)
{
	unsigned long long start = 0, code = 0;

	for (unsigned polls = 1;; polls++) {
		if (gpul_rdma_step_read(step) >= value)
			return GPUL_RDMA_STEP_REACHED;
		if (polls % GPUL_RDMA_STEP_POLLS)
			continue;
		if (abort)
			asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(code) : "l"(abort) : "memory");
		if (code)
			return GPUL_RDMA_STEP_ABORTED;
		const unsigned long long now = gpul_fifo_globaltimer_ns();

		if (start == 0)
			start = now;
		if (now - start > timeout_ns)
			return GPUL_RDMA_STEP_TIMED_OUT;
	}
}

#endif
