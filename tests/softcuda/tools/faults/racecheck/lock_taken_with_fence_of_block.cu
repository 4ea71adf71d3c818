// Blocks share a lock, but acquire it with a fence of block scope.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:i32[2]=zeros --grid 2 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void lock_taken_with_fence_of_block_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void lock_taken_with_fence_of_block
#define FIX(...)
#endif

ENTRY(volatile int *data)
{
	while (atomicCAS((int *)data, 0, 1))
		;
	__threadfence_block();
	FIX(__threadfence();)
	data[1] += 1;
	__threadfence();
	atomicExch((int *)data, 0);
}
