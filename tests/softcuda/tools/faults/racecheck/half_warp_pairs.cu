// Neighbouring lanes exchange values, but even lanes synchronise only with even lanes, and odd lanes with odd lanes.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:u32[32] --grid 1 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void half_warp_pairs_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void half_warp_pairs
#define FIX(...)
#endif

__shared__ unsigned s[32];
ENTRY(unsigned *out)
{
	unsigned t = threadIdx.x;

	s[t] = t;
#ifdef RIGHT
	__syncwarp(t < 16 ? 0xffff : 0xffff0000);
#else
	__syncwarp(t % 2 ? 0xaaaaaaaa : 0x55555555);
#endif
	out[t] = s[t ^ 1];
}
