// Threads take their slots of a queue from a counter that is not atomic.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[1]=zeros inout:u32[64]=zeros --grid 2 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void queue_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void queue
#define FIX(...)
#endif

ENTRY(unsigned *n, unsigned *queue)
{
#ifdef RIGHT
	queue[atomicAdd(n, 1) % 64] = threadIdx.x;
#else
	queue[(*n)++ % 64] = threadIdx.x;
#endif
}
