// A barrier inside a branch that not all threads of a warp take.
//
// gpuload run: f32[1000]=iota out:f32[1000] i32=1000 --grid 4 --block 256
extern "C" __global__ void neighbours(const float *in, float *out, int n)
{
	__shared__ float part[256];
	const int t = threadIdx.x, i = blockIdx.x * 256 + t;
	float left = 0;

	if (i < n) {
		part[t] = in[i];
		__syncthreads();   // 24 threads of the last block never reach this
		left = t ? part[t - 1] : part[0];
	}
	if (__syncthreads_or(left < 0))   // another barrier, for all threads
		left = 0;
	if (i < n)
		out[i] = left;
}
