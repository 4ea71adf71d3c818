/* sum_blocks.cu — a sum whose order is the same on every GPU, since the grid is: 64 blocks of 256 threads.
 *
 * Thread t adds up elements t, t + 16384, ...; then each block folds its threads' sums, upper half onto lower half.
 *
 *     nvcc -ptx -arch=sm_75 sum_blocks.cu */
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
