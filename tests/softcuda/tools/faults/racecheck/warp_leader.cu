// The first lane of a warp writes what the other lanes read, without __syncwarp() in between.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:u32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void warp_leader_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void warp_leader
#define FIX(...)
#endif

__shared__ unsigned first[2];
ENTRY(unsigned *out)
{
	unsigned t = threadIdx.x;

	if (t % 32 == 0)
		first[t / 32] = t;
	FIX(__syncwarp();)
	out[t] = first[t / 32] + t;
}
