// A warp that only arrives at a barrier reads what the waiting warp has written.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:u32[32] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void arrive_is_no_wait_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void arrive_is_no_wait
#define FIX(...)
#endif

__shared__ unsigned s[32];
ENTRY(unsigned *out)
{
	unsigned t = threadIdx.x;

	if (t < 32) {
#ifdef RIGHT
		asm volatile("bar.sync 1, 64;" ::: "memory");
#else
		asm volatile("bar.arrive 1, 64;" ::: "memory");
#endif
		out[t] = s[t];
	} else {
		s[t - 32] = t;
		asm volatile("bar.sync 1, 64;" ::: "memory");
	}
}
