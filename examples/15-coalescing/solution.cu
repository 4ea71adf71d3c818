/* solution.cu — each thread doubles 8 elements, whose distance is the number of threads: in each
 * round, the lanes of a warp access 32 neighbouring elements. */
// gpuload run: --grid 16 --block 256 f32[32K]=iota out:f32[32K] --expect 1=iota:0:2 --profile-most excess-sectors=0

enum { EACH = 8 };

extern "C" __global__ void twice(const float *in, float *out)
{
	int thread = blockIdx.x * blockDim.x + threadIdx.x;
	int n_threads = gridDim.x * blockDim.x;

	for (int k = 0; k < EACH; k++)
		out[k * n_threads + thread] = 2 * in[k * n_threads + thread];
}
