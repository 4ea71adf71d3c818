/* The sum of two vectors, one element for each thread. */
extern "C" __global__ void vecadd(const double *a, const double *b, double *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}
