// Blocks exchange values by a volatile array in global memory, without a signal that orders the accesses.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:i32[4]=zeros out:i32[4] inout:u32[1]=zeros --grid 4 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void volatile_rounds_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void volatile_rounds
#define FIX(...)
#endif

ENTRY(volatile int *data, int *out, unsigned *count)
{
	data[blockIdx.x] = blockIdx.x + 1;
	FIX(__threadfence(); atomicAdd(count, 1);)
	FIX(while (atomicAdd(count, 0) < 4);)
	out[blockIdx.x] = data[(blockIdx.x + 1) % 4];
}
