// A stencil is applied in place.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: f32[128]=iota out:f32[128] --grid 1 --block 128
#ifdef RIGHT
#define ENTRY extern "C" __global__ void stencil_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void stencil
#define FIX(...)
#endif

__shared__ float s[130];
ENTRY(const float *in, float *out)
{
	unsigned t = threadIdx.x;
	float x;

	s[t + 1] = in[t];
	if (t < 2)
		s[t * 129] = 0;
	__syncthreads();
	x = (s[t] + s[t + 1] + s[t + 2]) / 3;
	FIX(__syncthreads();)
	s[t + 1] = x;
	out[t] = s[t + 1];
}
