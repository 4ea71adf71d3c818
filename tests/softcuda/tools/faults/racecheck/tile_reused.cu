// A loop fills a tile again before all threads have read it.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: f32[256]=iota out:f32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void tile_reused_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void tile_reused
#define FIX(...)
#endif

__shared__ float s[64];
ENTRY(const float *in, float *out)
{
	unsigned t = threadIdx.x;
	float sum = 0;

	for (unsigned k = 0; k < 4; k++) {
		s[t] = in[k * 64 + t];
		__syncthreads();
		sum += s[63 - t];
		FIX(__syncthreads();)
	}
	out[t] = sum;
}
