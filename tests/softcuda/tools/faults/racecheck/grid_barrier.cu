// A barrier of all blocks is built from an atomic counter, without fences.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[64]=zeros out:u32[64] inout:u32[1]=zeros --grid 2 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void grid_barrier_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void grid_barrier
#define FIX(...)
#endif

ENTRY(unsigned *data, unsigned *out, unsigned *arrived)
{
	unsigned t = blockIdx.x * 32 + threadIdx.x;

	data[t] = t;
	__syncthreads();
	if (!threadIdx.x) {
		FIX(__threadfence();)
		atomicAdd(arrived, 1);
		while (atomicAdd(arrived, 0) < gridDim.x)
			;
		FIX(__threadfence();)
	}
	__syncthreads();
	out[t] = data[63 - t];
}
