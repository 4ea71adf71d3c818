/* vecadd.cu — a kernel, and a function that launches it with <<<>>>.
 *
 * nvcc compiles this file twice: to vecadd.ptx, which run_ptx.c loads through the driver, and to a
 * host object.  In the object, <<<>>> is a call to the runtime, which loads the same kernel from a
 * copy embedded in the program. */
#include "vecadd.h"

extern "C" __global__ void vecadd(double *a, double *b, double *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

static int launch_and_time(double *a, double *b, double *c, int n, int launches, float *ms)
{
	unsigned blocks = (n + VECADD_BLOCK - 1) / VECADD_BLOCK;
	cudaEvent_t start, stop;

	if (cudaEventCreate(&start) || cudaEventCreate(&stop))
		return 1;
	vecadd<<<blocks, VECADD_BLOCK>>>(a, b, c, n);  /* the first launch loads the kernel */
	cudaEventRecord(start);
	for (int i = 0; i < launches; i++)
		vecadd<<<blocks, VECADD_BLOCK>>>(a, b, c, n);
	cudaEventRecord(stop);
	cudaError_t e = cudaEventSynchronize(stop);
	cudaEventElapsedTime(ms, start, stop);
	cudaEventDestroy(start);
	cudaEventDestroy(stop);
	return e != cudaSuccess || cudaGetLastError() != cudaSuccess;
}

/* The runtime uses the device's primary context, as gpul_context_open() does, so addresses that the
 * driver API allocated are valid here. */
extern "C" int vecadd_by_runtime(uint64_t a, uint64_t b, uint64_t c, int n, int launches, float *ms)
{
	return launch_and_time((double *)a, (double *)b, (double *)c, n, launches, ms);
}
