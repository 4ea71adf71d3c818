// Each lane counts itself, and then reads the counter of the warp.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:i32[32] --grid 1 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void read_after_atomics_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void read_after_atomics
#define FIX(...)
#endif

__shared__ int n;
ENTRY(int *out)
{
	const int t = threadIdx.x;

	if (t == 0)
		n = 0;
	__syncthreads();
	atomicAdd(&n, 1);
	FIX(__syncwarp();)
	if (t == 31)
		*out = n;
}
