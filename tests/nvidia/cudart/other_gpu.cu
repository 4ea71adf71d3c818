// other_gpu.cu — machine code for another GPU: the program starts, and the first launch reports the error.
// nvcc: -gencode arch=compute_75,code=sm_75
#include <cstring>

#include "tests/nvidia/cudart/check.h"

__device__ int variable;

__global__ void nothing(void)
{
}

int main(void)
{
	cudaDeviceProp p;
	cudaFuncAttributes a;
	int *d, h = 1;

	CUDA(cudaGetDeviceProperties(&p, 0));
	CHECK(p.major != 7);
	CUDA(cudaMalloc(&d, sizeof h)); // calls that need no device code succeed
	CUDA(cudaMemcpy(d, &h, sizeof h, cudaMemcpyHostToDevice));
	nothing<<<1, 1>>>();
	CHECK(cudaGetLastError() == cudaErrorNoKernelImageForDevice);
	FAILS(cudaErrorNoKernelImageForDevice, cudaFuncGetAttributes(&a, nothing));
	FAILS(cudaErrorNoKernelImageForDevice, cudaMemcpyToSymbol(variable, &h, sizeof h));
	CHECK(cudaGetLastError() == cudaErrorNoKernelImageForDevice);
	CUDA(cudaFree(d));
	return 0;
}
