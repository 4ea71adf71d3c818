/* vec.cu — the contents of libvec.a: two kernels, and a function that launches one of them.
 *
 * For each kernel, nvcc generates a host function with the same name, the host stub.  <<<>>> calls
 * the stub, and the CUDA runtime identifies the kernel by the stub's address.  With extern "C" the
 * stub is named VecAdd; the other stub has the mangled name _Z8VecScalePffi. */
#include "vec.h"

extern "C" __global__ void VecAdd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

__global__ void VecScale(float *x, float by, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] *= by;
}

/* A plain function for host arrays: copies them to the GPU, launches VecAdd, copies the result back. */
extern "C" int invoke_VecAdd(const float *a, const float *b, float *c, int n)
{
	size_t bytes = n * sizeof(float);
	float *all;
	cudaError_t e = cudaMalloc(&all, 3 * bytes);

	if (e)
		return e;
	cudaMemcpy(all, a, bytes, cudaMemcpyHostToDevice);
	cudaMemcpy(all + n, b, bytes, cudaMemcpyHostToDevice);
	VecAdd<<<(n + 255) / 256, 256>>>(all, all + n, all + 2 * n, n);
	e = cudaGetLastError();
	if (!e)
		e = cudaMemcpy(c, all + 2 * n, bytes, cudaMemcpyDeviceToHost);
	cudaFree(all);
	return e;
}
