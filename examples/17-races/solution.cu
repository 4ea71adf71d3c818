// The exercise's solution: two barriers, and two atomic additions.
//
// gpuload run: i32[10000]=iota inout:i32[10]=zeros --grid 10 --block 250 --expect 1=1000
extern "C" __global__ void count_digits(const int *numbers, int *counts)
{
	__shared__ int bins[10];
	const unsigned t = threadIdx.x;

	if (t < 10)
		bins[t] = 0;
	__syncthreads();
	for (unsigned i = blockIdx.x * 1000 + t; i < (blockIdx.x + 1) * 1000; i += 250)
		atomicAdd(&bins[numbers[i] % 10], 1);
	__syncthreads();
	if (t < 10)
		atomicAdd(&counts[t], bins[t]);
}
