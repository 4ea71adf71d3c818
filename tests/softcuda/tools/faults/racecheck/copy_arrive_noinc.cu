// The .noinc arrival, which the mbarrier's count includes, completes only copies started before it; this copy is started after it.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[128]=iota out:u32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void copy_arrive_noinc_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void copy_arrive_noinc
#define FIX(...)
#endif

__shared__ unsigned s[128];
__shared__ unsigned long long bar;

static __device__ void copy(unsigned *to, const unsigned *from)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x, m = (unsigned)__cvta_generic_to_shared(&bar), done = 0;

	if (!t)
		asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(m) : "memory");
	__syncthreads();
	copy(&s[t], &in[t]);
	FIX(copy(&s[64 + t], &in[64 + t]);)
	asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(m) : "memory");
#ifndef RIGHT
	copy(&s[64 + t], &in[64 + t]);
#endif
	while (!done)
		asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
			     : "=r"(done) : "r"(m) : "memory");
	out[t] = s[63 - t] + s[127 - t];
}
