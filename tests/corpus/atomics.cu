/* Atomic operations of every type; compare-and-swap loops; locks held by a thread and by a warp. */
#include <cuda/atomic>

struct cells {
	int sum, low, high, bits, toggled;
	unsigned up, down, top;
	unsigned long long wide_sum, wide_low, wide_high, wide_bits;
	long long low64, high64;
	float f;
	int padding;
	double d;
	float greatest;
	unsigned short small;
};

extern "C" __global__ void atomics(cells *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	atomicAdd(&c->sum, i);
	atomicMin(&c->low, -i);
	atomicMax(&c->high, i);
	atomicOr(&c->bits, 1 << i % 31);
	atomicXor(&c->toggled, i * 7);
	atomicInc(&c->up, 1000);
	atomicDec(&c->down, 77);
	atomicMax(&c->top, 0x80000000u + i);
	atomicAdd(&c->wide_sum, (unsigned long long)i << 33);
	atomicMin(&c->wide_low, (unsigned long long)(i + 1) << 40);
	atomicMax(&c->wide_high, (unsigned long long)i << 40);
	atomicAnd(&c->wide_bits, ~(1ull << i % 61));
	atomicMin(&c->low64, (long long)-i << 35);
	atomicMax(&c->high64, (long long)i << 35);
	atomicAdd_system(&c->f, 1.0f);
	atomicAdd(&c->d, 0.5);
	int old = __float_as_int(c->greatest), seen;
	do {
		seen = old;
		old = atomicCAS((int *)&c->greatest, seen, __float_as_int(fmaxf(__int_as_float(seen), i % 97)));
	} while (old != seen);
	unsigned short was = c->small, at;
	do {
		at = was;
		was = atomicCAS(&c->small, at, (unsigned short)(at + 1));
	} while (was != at);
}

/* A ticket lock: a thread waits until its number is served, so lanes of one warp wait for each other. */
extern "C" __global__ void ticket(int *next, int *serving, int *count)
{
	cuda::atomic_ref<int, cuda::thread_scope_device> tickets(*next), served(*serving);

	for (int k = 0; k < 2; k++) {
		int mine = tickets.fetch_add(1, cuda::memory_order_relaxed);
		while (served.load(cuda::memory_order_acquire) != mine)
			;
		*count += 1;
		served.fetch_add(1, cuda::memory_order_release);
	}
}

extern "C" __global__ void spinlock(int *lock, volatile int *count)
{
	while (atomicCAS(lock, 0, 1) != 0)
		;
	__threadfence();
	*count += 1;
	__threadfence();
	atomicExch(lock, 0);
}

extern "C" __global__ void warplock(int *lock, volatile int *count)
{
	int lane = threadIdx.x % 32;

	if (lane == 0)
		while (atomicExch(lock, 1))
			__nanosleep(20);
	__threadfence();
	__syncwarp();
	count[lane] += 1;
	__threadfence();
	__syncwarp();
	if (lane == 0)
		atomicExch(lock, 0);
}
