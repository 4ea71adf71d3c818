/* Three sums: float by shuffles and shared memory, 64-bit integers by a butterfly of shuffles, and int by
 * redux.sync if the GPU has this instruction. */
extern "C" __global__ void reduce(const float *x, float *out, int n)
{
	__shared__ float ws[32];  /* one partial sum per warp */
	float s = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		s += x[i];
	for (int o = 16; o; o >>= 1)
		s += __shfl_down_sync(0xffffffffu, s, o);

	int l = threadIdx.x & 31, w = threadIdx.x >> 5;
	if (!l)
		ws[w] = s;
	__syncthreads();
	if (w == 0) {
		s = l < (blockDim.x >> 5) ? ws[l] : 0.f;
		for (int o = 16; o; o >>= 1)
			s += __shfl_down_sync(0xffffffffu, s, o);
		if (!l)
			atomicAdd(out, s);
	}
}

extern "C" __global__ void reduce_i64(const long long *x, unsigned long long *out, int n)
{
	long long s = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		s += x[i];
	for (int o = 16; o; o >>= 1)
		s += __shfl_xor_sync(0xffffffffu, s, o);
	if (!(threadIdx.x & 31))
		atomicAdd(out, (unsigned long long)s);
}

extern "C" __global__ void reduce_int(const int *x, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int v = i < n ? x[i] : 0;

#if __CUDA_ARCH__ >= 800
	v = __reduce_add_sync(0xffffffffu, v);
#else
	for (int o = 16; o; o >>= 1)
		v += __shfl_down_sync(0xffffffffu, v, o);
#endif
	if (!(threadIdx.x & 31))
		atomicAdd(out, v);
}
