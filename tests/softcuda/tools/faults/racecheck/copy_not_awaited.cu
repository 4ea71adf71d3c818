// The wait for cp.async is missing before the barrier.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[64]=iota out:u32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void copy_not_awaited_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void copy_not_awaited
#define FIX(...)
#endif

__shared__ unsigned s[64];
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(&s[t]);

	asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(in + t) : "memory");
	asm volatile("cp.async.commit_group;" ::: "memory");
	FIX(asm volatile("cp.async.wait_group 0;" ::: "memory");)
	__syncthreads();
	out[t] = s[63 - t];
}
