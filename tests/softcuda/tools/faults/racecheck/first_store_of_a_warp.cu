// Lane 0 sets a counter to zero, and all lanes add to it.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:i32[32] --grid 1 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void first_store_of_a_warp_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void first_store_of_a_warp
#define FIX(...)
#endif

__shared__ int n;
ENTRY(int *out)
{
	const int t = threadIdx.x;

	if (t == 0) {
		n = 0;
		FIX(} __syncwarp(); if (t == 0) {)
		atomicAdd(&n, 1);
	}
	if (t == 5)
		atomicAdd(&n, 1);
	__syncwarp();
	out[t] = n;
}
