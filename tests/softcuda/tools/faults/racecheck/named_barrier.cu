// A producer warp arrives at one barrier, but the consumer warp waits at another barrier.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:u32[64] --grid 1 --block 96
#ifdef RIGHT
#define ENTRY extern "C" __global__ void named_barrier_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void named_barrier
#define FIX(...)
#endif

__shared__ unsigned s[32];
ENTRY(unsigned *out)
{
	unsigned t = threadIdx.x;

	if (t < 32) {
		s[t] = t;
#ifdef RIGHT
		asm volatile("bar.arrive 1, 64;" ::: "memory");
		asm volatile("bar.arrive 2, 64;" ::: "memory");
#else
		asm volatile("bar.arrive 1, 64;" ::: "memory");
#endif
	} else if (t < 64) {
		asm volatile("bar.sync 1, 64;" ::: "memory");
		out[t - 32] = s[63 - t];
	} else {
		FIX(asm volatile("bar.sync 2, 64;" ::: "memory");)
		out[t - 32] = s[95 - t];
	}
}
