// Blocks count in global memory without atomic operations.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[256]=rand inout:u32[16]=zeros --grid 4 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void histogram_of_blocks_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void histogram_of_blocks
#define FIX(...)
#endif

ENTRY(const unsigned *in, unsigned *bin)
{
	unsigned x = in[blockIdx.x * blockDim.x + threadIdx.x] & 15;

#ifdef RIGHT
	atomicAdd(&bin[x], 1);
#else
	bin[x] += 1;
#endif
}
