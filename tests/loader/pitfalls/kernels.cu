/* kernels.cu — kernels of a library, compiled to code that is not relocatable. */
extern "C" __global__ void VecAdd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}
