// One block stores a volatile word, and another block exchanges it atomically.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:i32[1]=zeros --grid 2 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void volatile_store_and_atomic_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void volatile_store_and_atomic
#define FIX(...)
#endif

ENTRY(volatile int *word)
{
	if (blockIdx.x == 0)
		atomicExch((int *)word, 1);
	else
		FIX(atomicExch((int *)word, 2); if (0))
		*word = 2;
}
