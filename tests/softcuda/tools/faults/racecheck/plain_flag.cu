// Blocks synchronise by a flag that is an ordinary variable, neither volatile nor atomic.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[2]=zeros out:u32[1] --grid 2 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void plain_flag_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void plain_flag
#define FIX(...)
#endif

ENTRY(unsigned *data, unsigned *out)
{
	if (blockIdx.x == 0) {
		data[0] = 42;
		__threadfence();
#ifdef RIGHT
		atomicExch(data + 1, 1);
#else
		data[1] = 1;
#endif
	} else {
		while (!atomicAdd(data + 1, 0))
			;
		__threadfence();
		*out = data[0];
	}
}
