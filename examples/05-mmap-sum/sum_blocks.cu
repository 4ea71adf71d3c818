/* sum_blocks.cu — a sum with the same order of additions on every GPU: always 64 blocks of 256 threads.
 *
 * Thread t sums elements t, t + 16384, ...; then each block adds its threads' sums, upper half to lower half. */
#include "sum_blocks.h"

extern "C" __global__ void sum_blocks(const double *data, unsigned long long n, double *of_block)
{
	__shared__ double of_thread[SUM_THREADS];
	const unsigned me = threadIdx.x;
	double sum = 0;

	for (unsigned long long i = blockIdx.x * SUM_THREADS + me; i < n; i += SUM_BLOCKS * SUM_THREADS)
		sum += data[i];
	of_thread[me] = sum;
	for (unsigned half = SUM_THREADS / 2; half; half /= 2) {
		__syncthreads();
		if (me < half)
			of_thread[me] += of_thread[me + half];
	}
	if (me == 0)
		of_block[blockIdx.x] = of_thread[0];
}
