// A block sends data to another one with a volatile flag and without fences.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[2]=zeros out:u32[1] --grid 2 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void flag_without_fence_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void flag_without_fence
#define FIX(...)
#endif

ENTRY(unsigned *data, unsigned *out)
{
	volatile unsigned *flag = data + 1;

	if (blockIdx.x == 0) {
		data[0] = 42;
		FIX(__threadfence();)
		*flag = 1;
	} else {
		while (!*flag)
			;
		FIX(__threadfence();)
		*out = data[0];
	}
}
