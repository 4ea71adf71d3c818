/* solution.cu — each thread of a warp adds up 32 words of shared memory, and each lane starts at a
 * different one: in each round, the lanes access 32 different banks. */
// gpuload run: --grid 4 --block 32 f32[4096]=iota out:f32[128] --expect 1=iota:496:1024 --profile-most bank-conflicts=0,excess-sectors=0

extern "C" __global__ void sums(const float *in, float *out)
{
	__shared__ float words[32 * 32];
	int t = threadIdx.x;
	float sum = 0;

	for (int k = 0; k < 32; k++)
		words[k * 32 + t] = in[blockIdx.x * 1024 + k * 32 + t];
	__syncthreads();
	for (int k = 0; k < 32; k++)
		sum += words[t * 32 + (k + t) % 32];
	out[blockIdx.x * 32 + t] = sum;
}
