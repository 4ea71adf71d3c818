/* fifo_trace.cu — the kernels of gpuload fifo trace: each block pushes triggers and records the times. */
#include "proxy/fifo_device.cuh"

typedef unsigned long long u64;

/* The same fields as struct fifo_trace_stamps in fifo_trace.h. */
struct stamps {
	u64 begun, pushed, synced;
};

/* Each block has one thread.  Word 0 of a trigger is its block and its number within the block; word 1 is the complement of the low
 * 32 bits of word 0, so that the CPU can check that both words belong together. */
template <bool OWN, bool SYNC>
static __device__ __forceinline__ void trace(const gpul_fifo_device &fifo, stamps *stamps, unsigned *results,
					     unsigned triggers, u64 timeout_ns)
{
	gpul_fifo_port port;
	gpul_fifo_result result = GPUL_FIFO_OK;

	if (OWN)
		result = gpul_fifo_own(&fifo, blockIdx.x, &port);
	else
		gpul_fifo_share(&fifo, blockIdx.x, &port);
	stamps += (u64)blockIdx.x * triggers;
	for (unsigned i = 0; i < triggers && result == GPUL_FIFO_OK; i++) {
		const u64 begun = gpul_fifo_globaltimer_ns();

		result = gpul_fifo_push_release(&port, (u64)blockIdx.x << 32 | i, (unsigned)~i, timeout_ns);
		stamps[i].begun = begun;
		stamps[i].pushed = gpul_fifo_globaltimer_ns();
		if (SYNC && result == GPUL_FIFO_OK) {
			result = gpul_fifo_sync(&port, port.next, timeout_ns);
			stamps[i].synced = gpul_fifo_globaltimer_ns();
		}
	}
	if (OWN && result != GPUL_FIFO_BUSY)
		gpul_fifo_disown(&port);
	if (result == GPUL_FIFO_TIMED_OUT)
		gpul_fifo_raise(&port, GPUL_FIFO_CODE_TIMED_OUT);
	results[blockIdx.x] = result;
}

/* Each mode has its own kernel, because a push takes 10 % longer if the mode is a parameter. */
#define KERNEL(name, own, sync)                                                                                  \
	extern "C" __global__ void name(gpul_fifo_device fifo, stamps *stamps, unsigned *results, unsigned triggers, \
					u64 timeout_ns)                                                          \
	{                                                                                                        \
		trace<own, sync>(fifo, stamps, results, triggers, timeout_ns);                                   \
	}
KERNEL(trace_own, true, false)
KERNEL(trace_own_sync, true, true)
KERNEL(trace_share, false, false)
KERNEL(trace_share_sync, false, true)
