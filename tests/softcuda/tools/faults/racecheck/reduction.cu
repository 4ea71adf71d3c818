// A sum is computed in shared memory without barriers.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: f32[512]=ones out:f32[2] --grid 2 --block 256
#ifdef RIGHT
#define ENTRY extern "C" __global__ void reduction_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void reduction
#define FIX(...)
#endif

__shared__ float s[256];
ENTRY(const float *in, float *out)
{
	unsigned t = threadIdx.x;

	s[t] = in[blockIdx.x * 256 + t];
	for (unsigned n = 128; n; n /= 2) {
		FIX(__syncthreads();)
		if (t < n)
			s[t] += s[t + n];
	}
	if (!t)
		out[blockIdx.x] = s[0];
}
