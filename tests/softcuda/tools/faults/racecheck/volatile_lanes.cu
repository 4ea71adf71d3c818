// Lanes of a warp read volatile words of each other without __syncwarp(), which was correct only before Volta.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: i32[64]=ones out:i32[1] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void volatile_lanes_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void volatile_lanes
#define FIX(...)
#endif

__shared__ volatile int s[64];
ENTRY(const int *in, int *out)
{
	const int t = threadIdx.x;

	s[t] = in[t];
	__syncthreads();
	if (t < 32) {
		int v = s[t];

		for (int k = 32; k > 0; k /= 2) {
			v += s[t + k];
			FIX(__syncwarp();)
			s[t] = v;
			FIX(__syncwarp();)
		}
	}
	if (t == 0)
		*out = s[0];
}
