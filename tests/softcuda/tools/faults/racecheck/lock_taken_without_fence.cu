// Two blocks share a lock, and block 0 acquires it without a fence.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:i32[2]=zeros --grid 2 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void lock_taken_without_fence_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void lock_taken_without_fence
#define FIX(...)
#endif

ENTRY(int *data)
{
	while (atomicCAS(data, 0, 1))
		;
	FIX(__threadfence();)
	if (blockIdx.x == 1)
		__threadfence();
	data[1] = blockIdx.x;
	__threadfence();
	atomicExch(data, 0);
}
