/* exercise.cu — each thread doubles 8 elements.  The result is right, but the loads and stores
 * transfer 8 times the necessary sectors: assign the elements to the threads in another way. */
// gpuload run: --grid 16 --block 256 f32[32K]=iota out:f32[32K] --expect 1=iota:0:2 --profile-most excess-sectors=0

enum { EACH = 8 };

extern "C" __global__ void twice(const float *in, float *out)
{
	int thread = blockIdx.x * blockDim.x + threadIdx.x;

	for (int k = 0; k < EACH; k++)
		out[thread * EACH + k] = 2 * in[thread * EACH + k];
}
