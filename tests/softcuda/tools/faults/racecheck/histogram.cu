// A histogram counts without atomic operations.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[256]=rand out:u32[16] --grid 1 --block 256
#ifdef RIGHT
#define ENTRY extern "C" __global__ void histogram_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void histogram
#define FIX(...)
#endif

__shared__ unsigned bin[16];
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x;

	if (t < 16)
		bin[t] = 0;
	__syncthreads();
#ifdef RIGHT
	atomicAdd(&bin[in[t] & 15], 1);
#else
	bin[in[t] & 15]++;
#endif
	__syncthreads();
	if (t < 16)
		out[t] = bin[t];
}
