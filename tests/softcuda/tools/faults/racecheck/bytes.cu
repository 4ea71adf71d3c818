// Each thread reads a byte that another thread writes, without a barrier.  Writes to different bytes of a word are not a race.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:u8[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void bytes_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void bytes
#define FIX(...)
#endif

__shared__ unsigned char s[64];
ENTRY(unsigned char *out)
{
	unsigned t = threadIdx.x;

	s[t] = t;
#ifdef RIGHT
	out[t] = s[t];
#else
	out[t] = s[t ^ 2];
#endif
}
