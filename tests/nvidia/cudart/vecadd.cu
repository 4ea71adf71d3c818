// vecadd.cu — the smallest whole program: allocate, copy, launch, copy back, compare.
// nvcc: -gencode arch=compute_75,code=compute_75 --compress-mode=none
#include "tests/nvidia/cudart/check.h"

__global__ void vecadd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

int main(void)
{
	const int n = 1000;
	float a[n], b[n], c[n], *d_a, *d_b, *d_c;

	for (int i = 0; i < n; i++) {
		a[i] = (float)i;
		b[i] = (float)(3 * i);
	}
	CUDA(cudaMalloc(&d_a, sizeof a));
	CUDA(cudaMalloc(&d_b, sizeof b));
	CUDA(cudaMalloc(&d_c, sizeof c));
	CUDA(cudaMemcpy(d_a, a, sizeof a, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(d_b, b, sizeof b, cudaMemcpyHostToDevice));
	vecadd<<<(n + 127) / 128, 128>>>(d_a, d_b, d_c, n);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(c, d_c, sizeof c, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		CHECK(c[i] == 4.0f * i);
	CUDA(cudaFree(d_a));
	CUDA(cudaFree(d_b));
	CUDA(cudaFree(d_c));
	return 0;
}
