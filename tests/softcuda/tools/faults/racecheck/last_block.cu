// The last block adds the sums of all blocks, but the blocks have no fence after their sums.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: f32[256]=ones out:f32[4] inout:u32[1]=zeros out:f32[1] --grid 4 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void last_block_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void last_block
#define FIX(...)
#endif

__shared__ float s[64];
__shared__ bool last;
ENTRY(const float *in, float *sums, unsigned *n_done, float *out)
{
	unsigned t = threadIdx.x;

	s[t] = in[blockIdx.x * 64 + t];
	for (unsigned n = 32; n; n /= 2) {
		__syncthreads();
		if (t < n)
			s[t] += s[t + n];
	}
	if (!t) {
		sums[blockIdx.x] = s[0];
		FIX(__threadfence();)
		last = atomicAdd(n_done, 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && !t) {
		float sum = 0;
		for (unsigned k = 0; k < gridDim.x; k++)
			sum += sums[k];
		*out = sum;
	}
}
