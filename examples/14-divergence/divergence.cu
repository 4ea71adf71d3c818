/* divergence.cu — computes the square root of even elements and the exponential of odd ones: first with both in each warp, then with whole warps for each. */
// gpuload run: --kernel wrong --grid 64 --block 64 f32[4096]=iota:1 out:f32[4096]
// gpuload run: --kernel right --grid 64 --block 64 f32[4096]=iota:1 out:f32[4096]

/* Computes a square root by Newton's method, with the same number of iterations for each element. */
__device__ float root(float x)
{
	float y = x;

	for (int k = 0; k < 16; k++)
		y = 0.5f * (y + x / y);
	return y;
}

/* Computes the power series of exp(1 / x). */
__device__ float exponential(float x)
{
	float term = 1, sum = 1;

	for (int k = 1; k < 16; k++) {
		term = term / (k * x);
		sum += term;
	}
	return sum;
}

/* Thread i computes element i: in each warp, 16 lanes take one branch, and 16 the other. */
extern "C" __global__ void wrong(const float *in, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i % 2 == 0)
		out[i] = root(in[i]);
	else
		out[i] = exponential(in[i]);
}

/* Of a block's 64 elements, warp 0 computes the even ones, warp 1 the odd ones: all lanes of a warp take the same branch. */
extern "C" __global__ void right(const float *in, float *out)
{
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	int i = blockIdx.x * blockDim.x + 2 * lane + warp;

	if (warp == 0)
		out[i] = root(in[i]);
	else
		out[i] = exponential(in[i]);
}
