// gpuload run: --kernel apply fn:table[1] f32[8]=iota f32[8]=3 out:f32[8] i32=8 --expect 3=iota:0:3
/* ops.cu — four functions that one kernel chooses from, element by element.
 *
 *     table ─┬─ [0] add          The table lives in the module's own memory and holds what device
 *            ├─ [1] multiply     code calls a function by.  In a program compiled as a whole that is
 *            ├─ [2] larger       no address but a number that the compiler gave out: [1] of another
 *            └─ [3] distance     module may be the same number and mean another function. */
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
__device__ operation chosen;  /* 0 until choose() has run */

/* The kernel reads the table itself: which[i] says what to do with a[i] and b[i]. */
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

/* A pointer that is made while the program runs. */
extern "C" __global__ void choose(int which)
{
	chosen = table[which];
}
