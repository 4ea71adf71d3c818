// gpuload run: --kernel apply fn:table[1] f32[8]=iota f32[8]=3 out:f32[8] i32=8 --expect 3=iota:0:3
/* ops.cu — four functions, of which a kernel calls one for each element.
 *
 *     table ─┬─ [0] add          The table is in the memory of the module and contains function
 *            ├─ [1] multiply     pointers.  In a program compiled as a whole, a pointer is not an
 *            ├─ [2] larger       address but a number that the compiler assigned: the same number in
 *            └─ [3] distance     another module is another function. */
typedef float (*operation)(float, float);

__device__ float add(float a, float b)
{
	return a + b;
}

__device__ float multiply(float a, float b)
{
	return a * b;
}

__device__ float larger(float a, float b)
{
	return a > b ? a : b;
}

__device__ float distance(float a, float b)
{
	return a > b ? a - b : b - a;
}

__device__ operation table[] = { add, multiply, larger, distance };
__device__ operation chosen;  /* 0 until the kernel choose() has run */

/* The kernel reads the table itself: which[i] selects the operation for a[i] and b[i]. */
extern "C" __global__ void apply_each(const int *which, const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = table[which[i]](a[i], b[i]);
}

/* The host reads the table and passes one of its pointers. */
extern "C" __global__ void apply(operation f, const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = f(a[i], b[i]);
}

/* Stores a pointer in chosen while the program runs. */
extern "C" __global__ void choose(int which)
{
	chosen = table[which];
}
