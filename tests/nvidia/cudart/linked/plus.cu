// plus.cu — a device function, a variable and a kernel, which main.cu uses.
// nvcc: -gencode arch=compute_75,code=[sm_75,compute_75]
#include "tests/nvidia/cudart/check.h"

__device__ int calls;

static __device__ int scale(int a) // main.cu has a function of this name too
{
	return a;
}

__device__ int plus(int a, int b)
{
	atomicAdd(&calls, 1);
	return scale(a) + b;
}

__global__ void add_thousand(int *x)
{
	x[threadIdx.x] = plus(x[threadIdx.x], 1000);
}

void more(int *d)
{
	add_thousand<<<1, 32>>>(d);
	CUDA(cudaGetLastError());
}
