// part_kernel.cu — the first half of a program in relocatable device code: a kernel that
// calls a function of another file.
extern "C" __device__ float plus(float x, float y);

extern "C" __global__ void vecadd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = plus(a[i], b[i]);
}
