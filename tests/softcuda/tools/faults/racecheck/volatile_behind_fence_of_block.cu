// Volatile data is published to another block by a fence of block scope.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:i32[1]=zeros inout:i32[1]=zeros out:i32[1] --grid 2 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void volatile_behind_fence_of_block_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void volatile_behind_fence_of_block
#define FIX(...)
#endif

ENTRY(volatile int *data, int *flag, int *out)
{
	if (blockIdx.x == 0) {
		*data = 42;
		__threadfence_block();
		FIX(__threadfence();)
		atomicExch(flag, 1);
	} else {
		while (atomicAdd(flag, 0) == 0)
			;
		*out = *data;
	}
}
