// The threads that started cp.async wait for it, but there is no barrier for the others.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[64]=iota out:u32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void copy_without_barrier_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void copy_without_barrier
#define FIX(...)
#endif

__shared__ unsigned s[64];
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);

	asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(in + t) : "memory");
	asm volatile("cp.async.wait_all;" ::: "memory");
	FIX(__syncthreads();)
	out[t] = s[63 - t];
}
