// A spin lock is released by an ordinary store.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: inout:u32[2]=zeros --grid 8 --block 1
#ifdef RIGHT
#define ENTRY extern "C" __global__ void spin_lock_plain_unlock_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void spin_lock_plain_unlock
#define FIX(...)
#endif

ENTRY(unsigned *data)
{
	while (atomicCAS(data, 0, 1))
		;
	__threadfence();
	data[1]++;
	__threadfence();
#ifdef RIGHT
	atomicExch(data, 0);
#else
	*data = 0;
#endif
}
