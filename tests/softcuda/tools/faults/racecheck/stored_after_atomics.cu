// Block 0 stores to a counter to which all blocks have added, because it assumes that it is the last block.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:i32[1]=zeros --grid 4 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void stored_after_atomics_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void stored_after_atomics
#define FIX(...)
#endif

ENTRY(int *n)
{
	atomicAdd(n, 1);
	atomicAdd(n, 1);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		FIX(atomicExch(n, 0); if (0))
		*n = 0;
}
