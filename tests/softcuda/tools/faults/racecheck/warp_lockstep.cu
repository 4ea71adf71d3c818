// The lanes of a warp add in shared memory without __syncwarp(), as if they ran in lockstep.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[32]=ones out:u32[1] --grid 1 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void warp_lockstep_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void warp_lockstep
#define FIX(...)
#endif

__shared__ unsigned s[64];
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x, x = in[t];

	s[t] = x;
	s[t + 32] = 0;
	for (unsigned n = 16; n; n /= 2) {
		FIX(__syncwarp();)
		x += s[t + n];
		FIX(__syncwarp();)
		s[t] = x;
	}
	if (!t)
		*out = x;
}
