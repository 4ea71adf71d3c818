/* work.h — what the soak's kernels are told, and what a trigger of theirs says; for C and CUDA C++.
 *
 *          63   62        61     60      44 43                 0
 *        ┌────┬─────────┬──────┬───────────┬────────────────────┐  Each of a thread's triggers has the next number.
 * word 0 │lap │ release │ sync │ thread    │ number             │  before: the position at which this thread pushed
 *        ├────┼─────────┴──────┴───────────┼────────────────────┤  the one before in this launch, or NONE.  sum is
 * word 1 │lap │ before (31 bits)           │ sum (32 bits)      │  of all the other bits, so that words of two triggers
 *        └────┴────────────────────────────┴────────────────────┘  are seen not to belong together. */
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
	SOAK_NONE = 0x7fffffff,     /* also the mask of a position in `before` */
	SOAK_MISSED = 100,          /* a result: the sync was done, what the handler wrote before is not there */
};

/* How a kernel's threads push.  From RELEASE on, the payload is written before; from SYNC on, the answer is read. */
enum soak_how { SOAK_PUSH, SOAK_RELEASE, SOAK_SYNC, SOAK_POLL, SOAK_MIXED, SOAK_WARP, SOAK_N_HOWS };

struct soak_work {
	struct gpul_fifo_device fifo;
	unsigned long long *payload;     /* of each thread: payload_mask + 1 words; number n is in word n & payload_mask, */
	unsigned long long *answers;     /* as n + 1; of each thread: n + 1, when n was handled */
	unsigned long long *results;     /* of each thread: a gpul_fifo_result or SOAK_MISSED, how many it pushed */
	unsigned long long first, count; /* numbers */
	unsigned long long timeout_ns, seed;
	unsigned int payload_mask;
	unsigned int shared;             /* share the lane of the block; 0: own the lane of the thread (warp: of the warp) */
	unsigned int how;                /* enum soak_how */
	unsigned int tries_again;        /* after a time-out, which left nothing behind */
	unsigned int think_ns;           /* a thread sleeps up to so long before one push in eight; 0: never */
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
