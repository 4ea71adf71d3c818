/* ring.cu — an all-reduce around a ring: one block of 32 threads in each rank.
 *
 *      rank 0 ──> rank 1 ──> rank 2 ──> rank 3 ──┐      each arrow is a channel of lesson 9
 *        ^                                        │
 *        └────────────────────────────────────────┘
 *
 * The data of each rank is N chunks.  Each chunk travels around the ring twice: first it
 * collects the sum, then it distributes the sum to all ranks.  In each step a rank receives a
 * chunk from the previous rank and sends one to the next rank:
 *
 *     step      1        2 ... N-1           N                      N+1 ... 2N-2      2N-1
 *               send     recvReduceSend      recvReduceCopySend     recvCopySend      recv
 *
 * The names are NCCL's. */
#include "ring.h"

static __device__ void store_release(u64 *p, u64 value)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

static __device__ u64 load(const u64 *p)
{
	u64 value;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
	return value;
}

static __device__ u64 now_ns()
{
	u64 ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* The ends of the two channels of a rank, and the element of the chunk that a thread holds. */
struct ring {
	struct channel *in, *out;
	u64 sent, received;
	struct log *log;
};

/* The block waits until *p >= at_least.  After 20 s without success all threads leave together. */
static __device__ bool wait_until(struct ring *r, const u64 *p, u64 at_least)
{
	const u64 start = now_ns();
	bool late = false;

	if (threadIdx.x == 0)
		while (load(p) < at_least && !(late = now_ns() - start > 20000000000ull))
			;
	if (!__syncthreads_or(late))
		return true;
	r->log->timed_out = 1;
	return false;
}

static __device__ bool send(struct ring *r, u64 value)
{
	if (!wait_until(r, &r->out->head, r->sent))   /* a credit: the slot is free */
		return false;
	r->out->slot[threadIdx.x] = value;
	__syncthreads();
	if (threadIdx.x == 0)
		store_release(&r->out->tail, r->sent + 1);
	r->sent++;
	return true;
}

static __device__ bool receive(struct ring *r, u64 *value)
{
	if (!wait_until(r, &r->in->tail, r->received + 1))
		return false;
	*value = r->in->slot[threadIdx.x];
	__syncthreads();
	if (threadIdx.x == 0)
		store_release(&r->in->head, r->received + 1);
	r->received++;
	return true;
}

/* Record the data that this rank holds after a step. */
static __device__ void keep(struct log *log, const u64 *data, unsigned n_ranks, unsigned primitive)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		log->primitive[log->n_records] = primitive;
		for (unsigned c = 0; c < n_ranks; c++)
			log->records[log->n_records].chunk[c] = data[c * CHUNK];
		log->n_records++;
	}
	__syncthreads();
}

extern "C" __global__ void ring_allreduce(struct channel *in, struct channel *out, u64 *data, struct log *log, unsigned rank,
					  unsigned n_ranks)
{
	struct ring r = { in, out, 0, 0, log };
	u64 value;

	keep(log, data, n_ranks, START);
	/* In step s this rank works on chunk (rank - s + 1) mod N: the one that the previous
	 * rank had in step s - 1. */
	for (unsigned step = 1; step < 2 * n_ranks; step++) {
		u64 *mine = data + (rank + 2 * n_ranks - step + 1) % n_ranks * CHUNK + threadIdx.x;
		unsigned primitive = SEND;

		value = *mine;
		if (step > 1) {
			if (!receive(&r, &value))
				return;
			if (step < n_ranks) {
				value += *mine;
				primitive = RECV_REDUCE_SEND;
			} else if (step == n_ranks) {
				*mine = value += *mine;   /* the sum is complete */
				primitive = RECV_REDUCE_COPY_SEND;
			} else {
				*mine = value;
				primitive = step < 2 * n_ranks - 1 ? RECV_COPY_SEND : RECV;
			}
		}
		if (step < 2 * n_ranks - 1 && !send(&r, value))
			return;
		if (step < n_ranks && step > 1)
			*mine = value;   /* stored for the picture only; the algorithm does not need this partial sum */
		keep(log, data, n_ranks, primitive);
	}
}
