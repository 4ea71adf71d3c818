/* Histogram of bytes, with atomics in shared memory for the block and in global memory for the grid. */
extern "C" __global__ void hist(const unsigned char *d, unsigned *h, size_t n)
{
	__shared__ unsigned s[256];

	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		s[i] = 0;
	__syncthreads();
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		atomicAdd(&s[d[i]], 1u);
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		atomicAdd(&h[i], s[i]);
}
