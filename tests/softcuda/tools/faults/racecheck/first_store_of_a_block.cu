// Thread 0 sets a counter to zero, and threads of two warps add to it, but the other warp may add before thread 0 has set it.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:i32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void first_store_of_a_block_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void first_store_of_a_block
#define FIX(...)
#endif

__shared__ int n;
ENTRY(int *out)
{
	const int t = threadIdx.x;

	if (t == 0)
		n = 0;
	FIX(__syncthreads();)
	if (t % 32 == 0)
		atomicAdd(&n, 1);
	__syncthreads();
	out[t] = n;
}
