// A scan reads its neighbour's sum while the neighbour replaces it.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[128]=ones out:u32[128] --grid 1 --block 128
#ifdef RIGHT
#define ENTRY extern "C" __global__ void scan_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void scan
#define FIX(...)
#endif

__shared__ unsigned s[128];
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x;

	s[t] = in[t];
	__syncthreads();
	for (unsigned n = 1; n < 128; n *= 2) {
		unsigned x = t >= n ? s[t - n] : 0;
		FIX(__syncthreads();)
		s[t] += x;
		__syncthreads();
	}
	out[t] = s[t];
}
