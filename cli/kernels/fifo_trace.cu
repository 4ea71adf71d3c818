/* fifo_trace.cu — the kernel of gpuload fifo trace: each block pushes triggers and writes down when.
 *
 * fifo_trace.ptx, which the command carries, is made of this:
 *
 *     nvcc -ptx -arch=sm_75 -std=c++17 -I. cli/kernels/fifo_trace.cu -o - |
 *             sed 's|^.version .*|.version 6.4|; s|^.target .*|.target sm_70|' > cli/kernels/fifo_trace.ptx */
#include "proxy/fifo_device.cuh"

typedef unsigned long long u64;

/* struct fifo_trace_stamps of fifo_trace.h. */
struct stamps {
	u64 begun, pushed, synced;
};

/* One thread a block.  Word 0 of a trigger: its block, and its number within it; word 1: the complement of word 0's
 * 32 low bits, so that the CPU can tell that both belong together. */
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

/* A kernel for each mode: what the compiler does not know costs a tenth of a push. */
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
