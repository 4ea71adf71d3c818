// The sum of each block's numbers, by a tree in shared memory, with a barrier in each step.
//
// gpuload run: f32[4096]=ones out:f32[16] --grid 16 --block 256 --expect 1=256
extern "C" __global__ void block_sums(const float *in, float *sums)
{
	__shared__ float part[256];
	const unsigned t = threadIdx.x;

	part[t] = in[blockIdx.x * 256 + t];
	__syncthreads();
	for (unsigned half = 128; half > 0; half /= 2) {
		if (t < half)
			part[t] += part[t + half];
		__syncthreads();
	}
	if (t == 0)
		sums[blockIdx.x] = part[0];
}
