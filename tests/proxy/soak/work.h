/* work.h — the parameter of the soak test's kernels, and the format of their triggers; for C and CUDA C++.
 *
 *          63   62        61     60      44 43                 0
 *        ┌────┬─────────┬──────┬───────────┬────────────────────┐  Each of a thread's triggers has the next number.
 * word 0 │lap │ release │ sync │ thread    │ number             │  before: position of the thread's previous trigger in
 *        ├────┼─────────┴──────┴───────────┼────────────────────┤  this launch, or NONE.  sum: checksum of other bits,
 * word 1 │lap │ before (31 bits)           │ sum (32 bits)      │  which shows whether both words belong to the same
 *        └────┴────────────────────────────┴────────────────────┘  trigger. */
#ifndef GPULOAD_TESTS_PROXY_SOAK_WORK_H
#define GPULOAD_TESTS_PROXY_SOAK_WORK_H

#include "proxy/fifo_layout.h"

#ifdef __CUDACC__
#define SOAK_FUNCTION static __host__ __device__ inline
#else
#define SOAK_FUNCTION static inline
#endif

enum {
	SOAK_SYNC_SHIFT = 61,
	SOAK_RELEASE_SHIFT = 62,
	SOAK_THREAD_SHIFT = 44,
	SOAK_MAX_THREADS = 1 << 17,
	SOAK_NONE = 0x7fffffff, /* means "no position"; also the mask for positions in `before` */
	SOAK_MISSED = 100,      /* a result: sync returned, but the handler's answer is not visible */
};

/* Kinds of push.  From RELEASE on, the payload is written before the push; from SYNC on, the answer is read. */
enum soak_how { SOAK_PUSH, SOAK_RELEASE, SOAK_SYNC, SOAK_POLL, SOAK_MIXED, SOAK_WARP, SOAK_N_HOWS };

struct soak_work {
	struct gpul_fifo_device fifo;
	unsigned long long *payload;     /* payload_mask + 1 words per thread; word n & payload_mask has n + 1 */
	unsigned long long *answers;     /* one word per thread: n + 1 after number n has been handled */
	unsigned long long *results;     /* two words per thread: gpul_fifo_result or SOAK_MISSED, number of pushes */
	unsigned long long first, count; /* the first number of each thread; how many numbers it pushes */
	unsigned long long timeout_ns, seed;
	unsigned int payload_mask;
	unsigned int shared;      /* 1: threads share the lane of their block; 0: each thread (or warp) owns a lane */
	unsigned int how;         /* enum soak_how */
	unsigned int tries_again; /* push again after a time-out */
	unsigned int think_ns;    /* longest sleep before one push in eight; 0: no sleeps */
};

SOAK_FUNCTION unsigned long long soak_mix(unsigned long long x)
{
	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

SOAK_FUNCTION unsigned int soak_sum(unsigned long long word0, unsigned long long before, unsigned long long seed)
{
	return (unsigned int)(((word0 ^ seed) * 0x9e3779b97f4a7c15ull + before * 0xd1b54a32d192ed03ull) >> 32);
}

SOAK_FUNCTION unsigned long long soak_word0(unsigned int thread, unsigned long long number, unsigned int how)
{
	return (unsigned long long)(how == SOAK_RELEASE || how == SOAK_SYNC || how == SOAK_POLL) << SOAK_RELEASE_SHIFT |
	       (unsigned long long)(how == SOAK_SYNC || how == SOAK_POLL) << SOAK_SYNC_SHIFT |
	       (unsigned long long)thread << SOAK_THREAD_SHIFT | number;
}

SOAK_FUNCTION unsigned long long soak_word1(unsigned long long word0, unsigned long long before, unsigned long long seed)
{
	return before << 32 | soak_sum(word0, before, seed);
}

#endif
