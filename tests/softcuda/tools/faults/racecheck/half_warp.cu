// The halves of a warp exchange values, but each half synchronises only its own lanes.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:u32[32] --grid 1 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void half_warp_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void half_warp
#define FIX(...)
#endif

__shared__ unsigned s[32];
ENTRY(unsigned *out)
{
	unsigned t = threadIdx.x;

	s[t] = t;
#ifdef RIGHT
	__syncwarp();
#else
	__syncwarp(t < 16 ? 0xffff : 0xffff0000);
#endif
	out[t] = s[t ^ 16];
}
