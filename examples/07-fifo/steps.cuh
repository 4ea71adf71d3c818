/* steps.cuh — the loads and stores that the kernels of the five steps use.
 *
 * C++ does not define when the CPU sees a GPU's stores; PTX does.  "relaxed": the 8 bytes arrive together, without an
 * order with other stores.  "release": a thread that reads the stored value with an acquire sees everything that this
 * thread stored before.  "sys": the order includes CPUs, not only this GPU. */
#ifndef STEPS_CUH
#define STEPS_CUH

#include "steps.h"

static __device__ void store(u64 *p, u64 value)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

static __device__ void store_release(u64 *p, u64 value)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

/* One instruction of 16 bytes.  PTX does not promise that both halves arrive together. */
static __device__ void store_both(struct slot *p, u64 a, u64 b)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}

static __device__ u64 load(const u64 *p)
{
	u64 value;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
	return value;
}

static __device__ u64 now_ns()
{
	u64 ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Wait until *p >= at_least.  Returns false after 10 s, because a kernel that waits forever blocks the GPU. */
static __device__ bool wait_until(const u64 *p, u64 at_least)
{
	const u64 start = now_ns();

	while (load(p) < at_least)
		if (now_ns() - start > 10000000000ull)
			return false;
	return true;
}

/* Return the lap bit: 1 in even laps, 0 in odd laps.  So memory that is all zeros does not contain a message of lap 0. */
static __device__ u64 lap_of(u64 position, unsigned n_slots)
{
	return position / n_slots % 2 ? 0 : LAP;
}

#endif
