/* control_device.cuh — the control page for kernels: wait, post, abort.  For nvcc and NVRTC, sm_70 and later.
 *
 *     __global__ void stage(gpul_ipc_control *control, float *data)      gpul_ipc_view.control_gpu, .gpu
 *     {
 *             if (threadIdx.x == 0)
 *                     ok = gpul_ipc_wait(control, 0, 1, 1000000000) == GPUL_IPC_REACHED;
 *             __syncthreads();                            the others see what the poster wrote, too
 *             ...
 *             __syncthreads();                            what they wrote is in the post
 *             if (threadIdx.x == 0)
 *                     gpul_ipc_post(control, 1, 1);
 *     }
 *
 * The CPU's half, and what the words mean: control.h.  Order: PTX ISA, Memory Consistency Model; a barrier of the
 * block before a release, or behind an acquire, extends it to the block's other threads (causality order). */
#ifndef GPULOAD_IPC_CONTROL_DEVICE_CUH
#define GPULOAD_IPC_CONTROL_DEVICE_CUH

#include "ipc/control_page.h"

enum gpul_ipc_waited {
	GPUL_IPC_REACHED = 0,
	GPUL_IPC_TIMED_OUT = 1,
	GPUL_IPC_ABORTED = 2,
};

/* Looking at the abort word and at the time costs as much as looking at the counter: every so many looks. */
enum { GPUL_IPC_LOOKS = 32 };

static __device__ __forceinline__ unsigned long long gpul_ipc_globaltimer_ns(void)
{
	unsigned long long ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* The abort word; 0: not raised. */
static __device__ __forceinline__ unsigned gpul_ipc_aborted(const struct gpul_ipc_control *control)
{
	unsigned code;

	asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(code) : "l"(&control->abort) : "memory");
	return code;
}

/* Raise the abort word, which ends every wait; code is not 0.  The first code stays. */
static __device__ __forceinline__ void gpul_ipc_abort(struct gpul_ipc_control *control, unsigned code)
{
	[[maybe_unused]] unsigned old;

	asm volatile("atom.acq_rel.sys.cas.b32 %0, [%1], 0, %2;"
		     : "=r"(old)
		     : "l"(&control->abort), "r"(code)
		     : "memory");
}

/* A step counter; what its writer wrote before is then seen.  Pairs with gpul_ipc_post() here and
 * gpul_ipc_step_post() of the CPU. */
static __device__ __forceinline__ unsigned long long gpul_ipc_read(const struct gpul_ipc_control *control,
								   unsigned step)
{
	unsigned long long value;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(&control->step[step].value) : "memory");
	return value;
}

/* Set a step counter, after everything that this thread wrote before. */
static __device__ __forceinline__ void gpul_ipc_post(struct gpul_ipc_control *control, unsigned step,
						     unsigned long long value)
{
	asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(&control->step[step].value), "l"(value) : "memory");
}

/* Wait until a step counter (less than GPUL_IPC_N_STEPS) is at least value; of one thread, or a warp's threads
 * together.  A counter that is there already is REACHED also when the abort word is raised.  timeout_ns ~0ull: for
 * ever, or until the abort word. */
static __device__ inline enum gpul_ipc_waited gpul_ipc_wait(const struct gpul_ipc_control *control, unsigned step,
							    unsigned long long value,
							    unsigned long long timeout_ns)
{
	const unsigned long long start = gpul_ipc_globaltimer_ns();

	for (unsigned looks = 1;; looks++) {
		if (gpul_ipc_read(control, step) >= value)
			return GPUL_IPC_REACHED;
		if (looks % GPUL_IPC_LOOKS)
			continue;
		if (gpul_ipc_aborted(control))
			return GPUL_IPC_ABORTED;
		if (gpul_ipc_globaltimer_ns() - start > timeout_ns)
			return GPUL_IPC_TIMED_OUT;
	}
}

#endif
