// main.cu — a test of separate compilation: device code calls a function of plus.cu.
// nvcc: -gencode arch=compute_75,code=[sm_75,compute_75]
#include "tests/nvidia/cudart/check.h"

__device__ int plus(int a, int b); // in plus.cu
extern __device__ int calls;
void more(int *d);

static __device__ int scale(int a)
{
	return 10 * a;
}

__global__ void use_plus(int *x)
{
	x[threadIdx.x] = plus(scale(x[threadIdx.x]), (int)threadIdx.x);
}

int main(void)
{
	int h[32], *d, n = 0;

	for (int i = 0; i < 32; i++)
		h[i] = i;
	CUDA(cudaMalloc(&d, sizeof h));
	CUDA(cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice));
	use_plus<<<1, 32>>>(d);
	CUDA(cudaGetLastError());
	more(d);
	CUDA(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		CHECK(h[i] == 11 * i + 1000);
	CUDA(cudaMemcpyFromSymbol(&n, calls, sizeof n));
	CHECK(n == 64);
	CUDA(cudaFree(d));
	return 0;
}
