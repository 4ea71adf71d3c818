// A tree in volatile shared memory computes a sum, but the first barrier is missing.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: i32[256]=ones out:i32[1] --grid 1 --block 256
#ifdef RIGHT
#define ENTRY extern "C" __global__ void volatile_tree_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void volatile_tree
#define FIX(...)
#endif

__shared__ volatile int s[256];
ENTRY(const int *in, int *out)
{
	const int t = threadIdx.x;

	s[t] = in[t];
	FIX(__syncthreads();)
	for (int k = 128; k > 0; k /= 2) {
		if (t < k)
			s[t] += s[t + k];
		__syncthreads();
	}
	if (t == 0)
		*out = s[0];
}
