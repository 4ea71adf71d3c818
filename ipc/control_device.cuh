/* control_device.cuh — the control page for kernels: wait, post, abort.  For nvcc and NVRTC, sm_70 and later.
 *
 *     __global__ void stage(gpul_ipc_control *control, float *data)      gpul_ipc_view.control_gpu, .gpu
 *     {
 *             if (threadIdx.x == 0)
 *                     ok = gpul_ipc_wait(control, 0, 1, 1000000000) == GPUL_IPC_REACHED;
 *             __syncthreads();                            all threads see what the poster wrote
 *             ...
 *             __syncthreads();                            all writes come before the post
 *             if (threadIdx.x == 0)
 *                     gpul_ipc_post(control, 1, 1);
 *     }
 *
 * control.h declares these functions for the CPU, and explains the words of the page.  Memory order: PTX ISA, Memory Consistency
 * Model; a block barrier before a release or after an acquire extends it to the other threads of the block (causality order). */
#ifndef GPULOAD_IPC_CONTROL_DEVICE_CUH
#define GPULOAD_IPC_CONTROL_DEVICE_CUH

#include "ipc/control_page.h"

enum gpul_ipc_waited {
	GPUL_IPC_REACHED = 0,
	GPUL_IPC_TIMED_OUT = 1,
	GPUL_IPC_ABORTED = 2,
};

/* The abort word and the clock are read only at every 32nd poll of the counter, because reading either costs as much as a poll. */
enum { GPUL_IPC_POLLS = 32 };

static __device__ __forceinline__ unsigned long long gpul_ipc_globaltimer_ns(void)
{
	unsigned long long ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Read the abort word; 0: not set. */
static __device__ __forceinline__ unsigned gpul_ipc_aborted(const struct gpul_ipc_control *control)
{
	unsigned code;

	asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(code) : "l"(&control->abort) : "memory");
	return code;
}

/* Set the abort word, which ends every wait; code must not be 0.  If a code is set already, it is kept. */
static __device__ __forceinline__ void gpul_ipc_abort(struct gpul_ipc_control *control, unsigned code)
{
	[[maybe_unused]] unsigned old;

	asm volatile("atom.acq_rel.sys.cas.b32 %0, [%1], 0, %2;" : "=r"(old) : "l"(&control->abort), "r"(code) : "memory");
}

/* Read a step counter with acquire semantics: the caller then sees everything that its writer wrote before the post.
 * Pairs with gpul_ipc_post() and the CPU's gpul_ipc_step_post(). */
static __device__ __forceinline__ unsigned long long gpul_ipc_read(const struct gpul_ipc_control *control, unsigned step)
{
	unsigned long long value;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(&control->step[step].value) : "memory");
	return value;
}

/* Set a step counter with release semantics: threads that wait for it see everything that this thread wrote before. */
static __device__ __forceinline__ void gpul_ipc_post(struct gpul_ipc_control *control, unsigned step, unsigned long long value)
{
	asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(&control->step[step].value), "l"(value) : "memory");
}

/* Wait until step counter `step` (less than GPUL_IPC_N_STEPS) is at least value.  Called by one thread, or by all threads of a
 * warp. Returns REACHED if the counter has reached the value, even if the abort word is set.  timeout_ns ~0ull: no time-out; only
 * the abort word ends the wait. */
static __device__ inline enum gpul_ipc_waited gpul_ipc_wait(const struct gpul_ipc_control *control, unsigned step, unsigned long long value,
							    unsigned long long timeout_ns)
{
	const unsigned long long start = gpul_ipc_globaltimer_ns();

	for (unsigned polls = 1;; polls++) {
		if (gpul_ipc_read(control, step) >= value)
			return GPUL_IPC_REACHED;
		if (polls % GPUL_IPC_POLLS)
			continue;
		if (gpul_ipc_aborted(control))
			return GPUL_IPC_ABORTED;
		if (gpul_ipc_globaltimer_ns() - start > timeout_ns)
			return GPUL_IPC_TIMED_OUT;
	}
}

#endif
