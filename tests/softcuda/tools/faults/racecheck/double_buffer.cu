// Two buffers are filled by cp.async, but the loop waits for one group of copies too few.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[512]=iota out:u32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void double_buffer_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void double_buffer
#define FIX(...)
#endif

__shared__ unsigned s[2][64];
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x, sum = 0;

	asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(&s[0][t])), "l"(in + t) : "memory");
	asm volatile("cp.async.commit_group;" ::: "memory");
	for (unsigned k = 0; k < 8; k++) {
		if (k < 7)
			asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(&s[(k + 1) % 2][t])),
				     "l"(in + (k + 1) * 64 + t) : "memory");
		asm volatile("cp.async.commit_group;" ::: "memory");
#ifdef RIGHT
		asm volatile("cp.async.wait_group 1;" ::: "memory");
#else
		asm volatile("cp.async.wait_group 2;" ::: "memory");
#endif
		__syncthreads();
		sum += s[k % 2][63 - t];
		__syncthreads();
	}
	out[t] = sum;
}
