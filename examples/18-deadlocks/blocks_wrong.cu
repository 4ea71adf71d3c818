// Each block adds to the sum of the next block, and waits for that block.  The next block may not have started.
//
// gpuload run: i32[5000]=ones out:i32[5000] inout:i32[5000]=zeros --grid 5000 --block 32
extern "C" __global__ void suffix_sums(const int *in, int *sums, int *ready)
{
	const unsigned b = blockIdx.x, n = gridDim.x;

	if (threadIdx.x)
		return;
	if (b + 1 < n)
		while (atomicAdd(&ready[b + 1], 0) == 0)
			;
	__threadfence();
	sums[b] = in[b] + (b + 1 < n ? *(volatile int *)&sums[b + 1] : 0);
	__threadfence();
	atomicExch(&ready[b], 1);
}
