/* 4_tail.cu — the ring of step 3; who finds it full looks at the CPU's tail until it is not. */
#include "steps.cuh"

/* Each thread pushes n messages.  looks: each thread's count in a word of its own, for the CPU to see at once. */
extern "C" __global__ void push(struct ring *ring, u64 *next, struct looks *looks, u64 n)
{
	u64 tail = 0, n_looks = 0;

	for (u64 i = 0; i < n; i++) {
		const u64 at = atomicAdd(next, 1ull), lap = lap_of(at, SLOTS), start = now_ns();

		while (at - tail >= SLOTS) {  /* the slot's last message has not been taken, for all we know */
			tail = load(&ring->tail);
			store(&looks->of_thread[blockIdx.x][0], ++n_looks);
			if (now_ns() - start > 10000000000ull)
				return;  /* its slot stays empty for ever: step 5 does better */
		}
		store_both(&ring->slot[at % SLOTS], (u64)blockIdx.x << 32 | i | lap, at | lap);
	}
}
