// Threads read vectors of four words, some of which other threads have written.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: f32[256]=iota out:f32[256] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void vectors_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void vectors
#define FIX(...)
#endif

__shared__ float s[256];
ENTRY(const float *in, float *out)
{
	unsigned t = threadIdx.x;

	for (unsigned k = 0; k < 4; k++)
		s[k * 64 + t] = in[k * 64 + t];
	FIX(__syncthreads();)
	((float4 *)out)[t] = ((float4 *)s)[t];
}
