// barrier_wrong.cu with the barrier moved out of the branch: every thread of the block executes the barrier.
//
// gpuload run: f32[1000]=iota out:f32[1000] i32=1000 --grid 4 --block 256
extern "C" __global__ void neighbours(const float *in, float *out, int n)
{
	__shared__ float part[256];
	const int t = threadIdx.x, i = blockIdx.x * 256 + t;
	float left = 0;

	if (i < n)
		part[t] = in[i];
	__syncthreads();
	if (i < n)
		left = t ? part[t - 1] : part[0];
	if (__syncthreads_or(left < 0))
		left = 0;
	if (i < n)
		out[i] = left;
}
