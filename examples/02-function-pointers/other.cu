/* other.cu — a second module, with another table; the pointers of the first module are not valid in it. */
typedef float (*operation)(float, float);

__device__ float subtract(float a, float b)
{
	return a - b;
}

__device__ operation table[] = { subtract };

extern "C" __global__ void apply(operation f, const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = f(a[i], b[i]);
}
