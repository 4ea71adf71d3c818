// A spin lock is acquired and released without fences.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[2]=zeros --grid 8 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void spin_lock_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void spin_lock
#define FIX(...)
#endif

ENTRY(unsigned *data)
{
	while (atomicCAS(data, 0, 1))
		;
	FIX(__threadfence();)
	data[1]++;
	FIX(__threadfence();)
	atomicExch(data, 0);
}
