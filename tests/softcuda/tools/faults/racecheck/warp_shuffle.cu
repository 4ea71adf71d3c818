// A shuffle does not order accesses of shared memory.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[32]=iota out:u32[32] --grid 1 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void warp_shuffle_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void warp_shuffle
#define FIX(...)
#endif

__shared__ unsigned s[32];
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x, x;

	s[t] = in[t];
	x = __shfl_xor_sync(~0u, t, 1);
	FIX(__syncwarp();)
	out[t] = s[x];
}
