// Blocks count with atomic operations of block scope.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[1]=zeros --grid 4 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void block_scope_atomic_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void block_scope_atomic
#define FIX(...)
#endif

ENTRY(unsigned *n)
{
#ifdef RIGHT
	atomicAdd(n, 1);
#else
	atomicAdd_block(n, 1);
#endif
}
