/* blocksum.cu: the sum of an array.  Threads of a warp exchange values through registers, warps of a
 * block through shared memory, and each block adds its sum to the result with one atomic.
 *
 *     gpuload run demo/blocksum.cu
 */
// gpuload run: i32[100000]=iota inout:u64[1]=0 i32=100000 --grid 40 --block 256 --expect 1=4999950000

/* Returns the sum of the warp's 32 values in lane 0.  Each lane adds the value of the lane 16 above it, then 8, 4, 2, 1. */
__device__ unsigned long long sum_of_warp(unsigned long long v)
{
	for (int distance = 16; distance > 0; distance /= 2)
		v += __shfl_down_sync(0xffffffffu, v, distance);
	return v;
}

extern "C" __global__ void blocksum(const int *x, unsigned long long *sum, int n)
{
	__shared__ unsigned long long of_warp[32];  /* a block has at most 32 warps */
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	unsigned long long mine = 0;

	/* A grid-stride loop: correct for any n; consecutive threads read consecutive elements. */
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		mine += x[i];

	mine = sum_of_warp(mine);
	if (lane == 0)
		of_warp[warp] = mine;
	__syncthreads();

	if (warp == 0) {
		mine = sum_of_warp(lane < blockDim.x / 32 ? of_warp[lane] : 0);
		if (lane == 0)
			atomicAdd(sum, mine);
	}
}
