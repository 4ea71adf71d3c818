// blocks_wrong.cu with tickets: a block takes the next piece of work when it starts, so the block that it waits for started earlier.
//
// gpuload run: i32[5000]=ones out:i32[5000] inout:i32[5000]=zeros inout:i32[1]=zeros --grid 5000 --block 32 --expect 1=iota:5000:-1
extern "C" __global__ void suffix_sums(const int *in, int *sums, int *ready, int *ticket)
{
	const unsigned n = gridDim.x;

	if (threadIdx.x)
		return;
	const unsigned b = n - 1 - atomicAdd(ticket, 1);   // the first ticket gets the last piece

	if (b + 1 < n)
		while (atomicAdd(&ready[b + 1], 0) == 0)
			;
	__threadfence();
	sums[b] = in[b] + (b + 1 < n ? *(volatile int *)&sums[b + 1] : 0);
	__threadfence();
	atomicExch(&ready[b], 1);
}
