// vec.cu — the kernels of most inputs: C and C++ names, templates, a struct passed by value,
// a static kernel, shared memory.

/* c = a + b, with a C name */
extern "C" __global__ void vecadd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

/* y = a x + y, for two types */
template <class T> __global__ void axpy(T a, const T *x, T *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = a * x[i] + y[i];
}
template __global__ void axpy<float>(float, const float *, float *, int);
template __global__ void axpy<double>(double, const double *, double *, int);

namespace shapes {
struct box {
	float low[3];
	double high;
	char tag;
};

/* out[i]: whether x[i] is in the range of the box */
__global__ void inside(box b, const float *x, unsigned *out, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = x[i] >= b.low[0] && x[i] <= b.high && b.tag;
}
} // namespace shapes

/* sums[block]: the sum of the block's 128 elements, in static shared memory */
extern "C" __global__ void __launch_bounds__(128) block_sum(const int *x, int *sums)
{
	__shared__ int part[128];
	int t = threadIdx.x;

	part[t] = x[blockIdx.x * 128 + t];
	for (int half = 64; half; half /= 2) {
		__syncthreads();
		if (t < half)
			part[t] += part[t + half];
	}
	if (t == 0)
		sums[blockIdx.x] = part[0];
}

/* other files cannot name this kernel */
static __global__ void hidden(int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = 3 * i;
}

#ifndef __CUDACC_RTC__ /* host code: nvcc drops a static kernel that is not launched */
void launch_hidden(int *out, int n)
{
	hidden<<<(n + 127) / 128, 128>>>(out, n);
}
#endif
