// The sum of all numbers: each block stores its sum, and the block that ends last adds the sums.  With two fences.
//
// gpuload run: i32[4096]=ones out:i32[1] inout:i32[64]=zeros inout:u32[1]=zeros --grid 64 --block 64 --expect 1=4096
extern "C" __global__ void sum_all(const int *in, int *sum, int *sums, unsigned *n_done)
{
	__shared__ int part[64];
	__shared__ bool last;
	const unsigned t = threadIdx.x;

	part[t] = in[blockIdx.x * 64 + t];
	__syncthreads();
	if (t == 0) {
		int mine = 0;

		for (int i = 0; i < 64; i++)
			mine += part[i];
		sums[blockIdx.x] = mine;
		__threadfence();   // orders this block's sum before its count
		last = atomicAdd(n_done, 1) == gridDim.x - 1;
		__threadfence();   // orders the counts of all blocks before the loads of their sums
	}
	__syncthreads();
	if (!last)
		return;
	part[t] = sums[t];
	__syncthreads();
	if (t == 0) {
		*sum = 0;
		for (int i = 0; i < 64; i++)
			*sum += part[i];
	}
}
