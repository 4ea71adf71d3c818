/* ring.cu — the kernels of bench_ring: each block passes a token around a ring of ranks, and waits for it as the kernels of
 * a communication library do.  In ring_ll every thread polls; in the three other kernels, which differ in how they poll, the
 * first thread polls and the others wait at the barrier. */
typedef unsigned long long u64;

enum { WORDS = 16, POLLS_PER_CHECK = 1000 };    /* WORDS: a flag's line of 128 bytes; POLLS_PER_CHECK: polls per read of the abort word */

static __device__ u64 load_acquire(const u64 *p)
{
	u64 v;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

static __device__ u64 load_volatile(const u64 *p)
{
	return *(volatile const u64 *)p;
}

static __device__ void store_release(u64 *p, u64 v)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory");
}

static __device__ u64 now_ns(void)
{
	u64 t;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
	return t;
}

template <typename Poll>
static __device__ void pass_token(u64 *flags, unsigned rank, unsigned n, unsigned steps, Poll poll)
{
	u64 *mine = flags + (blockIdx.x * n + rank) * WORDS, *next = flags + (blockIdx.x * n + (rank + 1) % n) * WORDS;

	for (u64 step = 1; step <= steps; step++) {
		const u64 awaited = rank ? step : step - 1;

		if (threadIdx.x == 0)
			poll(mine, awaited);
		__syncthreads();
		if (threadIdx.x == 0)
			store_release(next, step);
	}
}

/* Poll in a loop that does nothing else: while (*flag < awaited) ; */
extern "C" __global__ void ring_bare(u64 *flags, unsigned rank, unsigned n, unsigned steps)
{
	pass_token(flags, rank, n, steps, [](const u64 *flag, u64 awaited) {
		while (load_volatile(flag) < awaited)
			;
	});
}

/* As NCCL does: also read the abort word at intervals. */
extern "C" __global__ void ring_abort(u64 *flags, unsigned rank, unsigned n, unsigned steps)
{
	const u64 *abort = flags + gridDim.x * n * WORDS;

	pass_token(flags, rank, n, steps, [abort](const u64 *flag, u64 awaited) {
		for (unsigned polls = 0; load_acquire(flag) < awaited; polls++)
			if (polls % POLLS_PER_CHECK == POLLS_PER_CHECK - 1 && load_volatile(abort))
				return;
	});
}

/* Poll with a time-out: also read the clock at intervals. */
extern "C" __global__ void ring_timed(u64 *flags, unsigned rank, unsigned n, unsigned steps)
{
	pass_token(flags, rank, n, steps, [](const u64 *flag, u64 awaited) {
		const u64 begin = now_ns();

		for (unsigned polls = 0; load_acquire(flag) < awaited; polls++)
			if (polls % 64 == 63 && now_ns() - begin > 60000000000ull)
				return;
	});
}

/* NCCL's protocol LL: each thread polls the 16 bytes that are sent to it, 8 bytes of data and two flags. */
extern "C" __global__ void ring_ll(u64 *flags, unsigned rank, unsigned n, unsigned steps)
{
	uint4 *lines = (uint4 *)(flags + (gridDim.x * n + 1) * WORDS);
	volatile uint4 *mine = lines + (blockIdx.x * n + rank) * blockDim.x + threadIdx.x;
	volatile uint4 *next = lines + (blockIdx.x * n + (rank + 1) % n) * blockDim.x + threadIdx.x;

	for (unsigned step = 1; step <= steps; step++) {
		const unsigned awaited = rank ? step : step - 1;
		unsigned a, b, c, d;

		do
			asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
				     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(mine) : "memory");
		while (b < awaited || d < awaited);
		asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};"
			     :: "l"(next), "r"(a), "r"(step), "r"(c), "r"(step) : "memory");
	}
}
