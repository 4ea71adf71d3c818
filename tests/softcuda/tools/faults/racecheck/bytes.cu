// Each thread writes the byte of the thread after its neighbour; writes to neighbouring bytes of one word are not a race.
// expect: shared memory
// A pair of kernels: -DRIGHT compiles the right one.
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
