// A block sends data to another one, but its fences have only block scope.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[2]=zeros out:u32[1] --grid 2 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void flag_fence_of_block_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void flag_fence_of_block
#define FIX(...)
#endif

ENTRY(unsigned *data, unsigned *out)
{
	volatile unsigned *flag = data + 1;

	if (blockIdx.x == 0) {
		data[0] = 42;
#ifdef RIGHT
		__threadfence();
#else
		__threadfence_block();
#endif
		*flag = 1;
	} else {
		while (!*flag)
			;
		__threadfence();
		*out = data[0];
	}
}
