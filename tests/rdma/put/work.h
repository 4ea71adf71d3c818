/* work.h — the parameter of the kernels of whole_way, and the pattern of the data; for C and CUDA C++.
 *
 *     sender's block b, round r:    fill window slot r % window ─ push the put, step b
 *     receiver's block b, round r:  wait until step b is r + 1 ─ check the slot ─ every ack_every rounds: put a step back
 *
 * The sender's block reuses a slot after the receiver's block has checked it and has put a step back, and after the trigger of the
 * earlier put has been released. */
#ifndef GPULOAD_TESTS_RDMA_PUT_WORK_H
#define GPULOAD_TESTS_RDMA_PUT_WORK_H

#include "proxy/fifo_layout.h"

#ifdef __CUDACC__
#define WAY_FUNCTION static __host__ __device__ inline
#else
#define WAY_FUNCTION static inline
#endif

enum { WAY_THREADS = 8, WAY_BAD_DATA = 100, WAY_BAD_CODE = 0x7a7 };

/* The result of a block.  result: 0, an enum gpul_fifo_result, 10 + an enum gpul_rdma_step_result, or WAY_BAD_DATA. */
struct way_result {
	unsigned long long rounds; /* number of finished rounds */
	unsigned long long found, expected;
	unsigned int result, word;
};

/* The arguments of a put. */
struct way_push {
	unsigned long long from, to, bytes, route, step, kind;
};

struct way_work {
	struct gpul_fifo_device fifo;
	unsigned long long *data;   /* sender: source, receiver: destination; blocks * window spans of `stride` bytes */
	unsigned long long *steps;  /* one word per block, which the peer increases */
	struct way_result *results; /* one per block */
	unsigned long long rounds, timeout_ns, seed;
	unsigned int bytes, stride;
	unsigned int window, ack_every;
	unsigned long long bad_round; /* the sender's block 0 sends a wrong word in this round; ~0: never */
};

WAY_FUNCTION unsigned long long way_word(unsigned long long seed, unsigned int block, unsigned long long round, unsigned int word)
{
	unsigned long long x = (seed + block * 0x632be59bd9b4e019ull + round) * 0x9e3779b97f4a7c15ull + word * 0xd1b54a32d192ed03ull;

	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

#endif
