/* 4_tail.cu — the ring of step 3; a thread that finds the ring full polls the CPU's tail until a slot is free. */
#include "steps.cuh"

/* Each thread pushes n messages, and stores its number of polls into its word of polls, which the CPU reads. */
extern "C" __global__ void push(struct ring *ring, u64 *next, struct polls *polls, u64 n)
{
	u64 tail = 0, n_polls = 0;

	for (u64 i = 0; i < n; i++) {
		const u64 at = atomicAdd(next, 1ull), lap = lap_of(at, SLOTS), start = now_ns();

		while (at - tail >= SLOTS) {  /* true while, at the last poll, the CPU had not yet read this slot */
			tail = load(&ring->tail);
			store(&polls->of_thread[blockIdx.x][0], ++n_polls);
			if (now_ns() - start > 10000000000ull)
				return;  /* the slot of this ticket remains empty; step 5 handles this case */
		}
		store_both(&ring->slot[at % SLOTS], (u64)blockIdx.x << 32 | i | lap, at | lap);
	}
}
