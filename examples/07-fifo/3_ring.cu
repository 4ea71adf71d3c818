/* 3_ring.cu — a ring: each message draws a ticket, which determines its slot. */
#include "steps.cuh"

/* Each thread pushes n messages.  next: the ticket counter, in device memory, where atomics are fast.  Word 0 contains
 * the thread and the number of the message, word 1 its position; the lesson checks both. */
extern "C" __global__ void push(struct ring *ring, u64 *next, u64 n)
{
	for (u64 i = 0; i < n; i++) {
		const u64 at = atomicAdd(next, 1ull), lap = lap_of(at, SLOTS);

		store_both(&ring->slot[at % SLOTS], (u64)blockIdx.x << 32 | i | lap, at | lap);
	}
}
