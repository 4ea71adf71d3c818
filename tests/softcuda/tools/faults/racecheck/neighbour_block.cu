// A block reads what its neighbour writes in the same launch.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[128]=zeros out:u32[128] --grid 4 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void neighbour_block_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void neighbour_block
#define FIX(...)
#endif

ENTRY(unsigned *data, unsigned *out)
{
	unsigned t = blockIdx.x * 32 + threadIdx.x;

	data[t] = t;
#ifdef RIGHT
	out[t] = data[t];
#else
	out[t] = data[(t + 1) % 128];
#endif
}
