// names.cu — a kernel with a mangled C++ name, a race, and a shuffle in a CUDA header with a wrong mask.
__device__ int first_of(int v)
{
	return __shfl_sync(~0u, v, 0);
}

template <typename T> __global__ void halves(T *out)
{
	__shared__ T s[64];
	const int t = threadIdx.x;

	s[t] = t;
	out[t] = s[t ^ 32];
	if (t < 16)
		out[t] = first_of(t);
}
template __global__ void halves<int>(int *out);
