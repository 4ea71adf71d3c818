// Block 0 stores the initial value of a maximum that all blocks update.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:i32[1]=zeros --grid 4 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void first_store_of_a_grid_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void first_store_of_a_grid
#define FIX(...)
#endif

ENTRY(int *most)
{
	if (blockIdx.x == 0)
		FIX(atomicExch(most, 3); if (0))
		*most = 3;
	atomicMax(most, (int)blockIdx.x);
}
