/* 2_slot.cu — one GPU thread, or several, write into one slot with a lap bit in each word. */
#include "steps.cuh"

/* Slow motion: one thread writes one message after the other, and after each store waits until the CPU has polled. */
extern "C" __global__ void slow(struct one_slot *box, u64 n_messages)
{
	u64 polls = 0;

	for (u64 m = 0; m < n_messages; m++) {
		store(&box->slot.word[0], m | lap_of(m, 1));
		wait_until(&box->polls, ++polls);
		store(&box->slot.word[1], m | lap_of(m, 1));
		wait_until(&box->polls, ++polls);
	}
}

/* Slow motion: two threads write messages for the same lap, and their stores alternate. */
extern "C" __global__ void two(struct one_slot *box)
{
	const u64 me = blockIdx.x;

	wait_until(&box->polls, me);
	store(&box->slot.word[0], me | LAP);
	wait_until(&box->polls, me + 2);
	store(&box->slot.word[1], me | LAP);
}

/* Many threads at full speed, each with one message that contains the thread's number. */
extern "C" __global__ void crowd(struct one_slot *box)
{
	store_both(&box->slot, blockIdx.x | LAP, blockIdx.x | LAP);
}
