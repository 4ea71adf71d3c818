/* exercise.cu — the sum of each block's 256 elements.  The result is right, but the warps diverge: fix the loop. */
// gpuload run: --grid 16 --block 256 f32[4096]=iota out:f32[16] --expect 1=iota:32640:65536 --profile-most diverged=100,instructions=7000

extern "C" __global__ void block_sum(const float *in, float *out)
{
	__shared__ float part[256];
	int t = threadIdx.x;

	part[t] = in[blockIdx.x * 256 + t];
	__syncthreads();
	for (int step = 1; step < 256; step *= 2) {
		if (t % (2 * step) == 0)  /* every second thread works, then every fourth, and so on */
			part[t] += part[t + step];
		__syncthreads();
	}
	if (t == 0)
		out[blockIdx.x] = part[0];
}
