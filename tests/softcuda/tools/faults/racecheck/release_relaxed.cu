// The flag is read with acquire, but written without release.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[2]=zeros out:u32[1] --grid 2 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void release_relaxed_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void release_relaxed
#define FIX(...)
#endif

ENTRY(unsigned *data, unsigned *out)
{
	unsigned seen;

	if (blockIdx.x == 0) {
		data[0] = 42;
#ifdef RIGHT
		asm volatile("st.release.gpu.u32 [%0], 1;" :: "l"(data + 1) : "memory");
#else
		asm volatile("st.relaxed.gpu.u32 [%0], 1;" :: "l"(data + 1) : "memory");
#endif
	} else {
		do
			asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(data + 1) : "memory");
		while (!seen);
		*out = data[0];
	}
}
