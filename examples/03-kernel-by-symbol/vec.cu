/* vec.cu — what libvec.a is made of: two kernels, and a function that launches one of them.
 *
 * nvcc makes of each kernel a host function of the same name, the stub: <<<>>> calls it, and its
 * address is how the CUDA runtime knows the kernel.  extern "C" keeps a stub's name as it is written;
 * the other's is _Z8VecScalePffi. */
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

/* For callers that want a plain function: the arrays are the host's. */
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
