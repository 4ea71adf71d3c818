/* Calls: through a table of functions, through a pointer argument, recursive and virtual. */
typedef float (*op_t)(float, float);

__device__ __noinline__ float op_add(float a, float b) { return a + b; }
__device__ __noinline__ float op_mul(float a, float b) { return a * b; }
__device__ __noinline__ float op_max(float a, float b) { return fmaxf(a, b); }
__device__ op_t table[3] = { op_add, op_mul, op_max };

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

extern "C" __global__ void fnptr(const float *a, const float *b, float *c, const int *op, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = table[op[i]](a[i], b[i]);
}

extern "C" __global__ void fnptr2(op_t f, const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = f(a[i], b[i]);
}

extern "C" __global__ void recurse(int *o)
{
	o[threadIdx.x] = fib(threadIdx.x & 15);
}

struct Plus {
	virtual __device__ int f(int x) { return x + 1; }
};

struct Times : Plus {
	__device__ int f(int x) override { return x * 3; }
};

extern "C" __global__ void virt(int *o, int k)
{
	Plus plus;
	Times times;
	Plus *p = (threadIdx.x & 1) ? &plus : (Plus *)&times;

	o[threadIdx.x] = p->f(k);
}
