/* Constant memory, module variables, dynamic shared memory, and a struct passed by value. */
__constant__ float coef[16];
__device__ int counter;
__device__ float gtab[4] = { 1, 2, 3, 4 };
extern __shared__ float dyn[];

extern "C" __global__ void poly(const float *x, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float v = x[i], s = 0;
	for (int k = 0; k < 16; k++)
		s = s * v + coef[k];
	dyn[threadIdx.x] = s;
	__syncthreads();
	y[i] = dyn[threadIdx.x ^ 1] + gtab[i & 3];
	atomicAdd(&counter, 1);
}

struct Big {
	int a[64];
};

extern "C" __global__ void bigparam(__grid_constant__ const Big p, int *o)
{
	o[threadIdx.x] = p.a[threadIdx.x & 63];
}
