// Two warps share a lock, and acquire it without a fence.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:i32[1] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void lock_of_warps_without_fence_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void lock_of_warps_without_fence
#define FIX(...)
#endif

__shared__ int lock, n;
ENTRY(int *out)
{
	const int t = threadIdx.x;

	if (t == 0)
		lock = n = 0;
	__syncthreads();
	if (t % 32 == 0) {
		while (atomicCAS_block(&lock, 0, 1))
			;
		FIX(__threadfence_block();)
		n++;
		__threadfence_block();
		atomicExch_block(&lock, 0);
	}
	__syncthreads();
	if (t == 0)
		*out = n;
}
