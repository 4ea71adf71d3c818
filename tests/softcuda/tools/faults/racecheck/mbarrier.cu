// Values are read before the phase of the mbarrier is complete.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[64]=iota out:u32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void mbarrier_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void mbarrier
#define FIX(...)
#endif

__shared__ unsigned s[64];
__shared__ unsigned long long bar;
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x, m = (unsigned)__cvta_generic_to_shared(&bar), done = 0;

	if (!t)
		asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(m) : "memory");
	__syncthreads();
	s[t] = in[t];
	asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" :: "r"(m) : "memory");
#ifdef RIGHT
	while (!done)
		asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
			     : "=r"(done) : "r"(m) : "memory");
#endif
	out[t] = s[63 - t] + done;
}
