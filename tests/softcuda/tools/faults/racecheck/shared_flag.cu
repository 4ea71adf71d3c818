// A warp polls a volatile flag of another warp in shared memory, without fences.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:u32[32] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void shared_flag_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void shared_flag
#define FIX(...)
#endif

__shared__ unsigned s[32];
__shared__ volatile unsigned flag;
ENTRY(unsigned *out)
{
	unsigned t = threadIdx.x;

	if (!t)
		flag = 0;
	__syncthreads();
	if (t < 32) {
		s[t] = t;
		__syncwarp();
		if (!t) {
			FIX(__threadfence_block();)
			flag = 1;
		}
	} else {
		while (!flag)
			;
		FIX(__threadfence_block();)
		out[t - 32] = s[63 - t];
	}
}
