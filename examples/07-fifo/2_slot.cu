/* 2_slot.cu — one slot, its lap in each word, from one GPU thread or from several. */
#include "steps.cuh"

/* One thread, message after message.  In slow motion: after each store it waits until the CPU has looked. */
extern "C" __global__ void slow(struct one_slot *box, u64 n_messages)
{
	u64 looks = 0;

	for (u64 m = 0; m < n_messages; m++) {
		store(&box->slot.word[0], m | lap_of(m, 1));
		wait_until(&box->looks, ++looks);
		store(&box->slot.word[1], m | lap_of(m, 1));
		wait_until(&box->looks, ++looks);
	}
}

/* Two threads, both with a message for the same lap; in slow motion their stores take turns. */
extern "C" __global__ void two(struct one_slot *box)
{
	const u64 me = blockIdx.x;

	wait_until(&box->looks, me);
	store(&box->slot.word[0], me | LAP);
	wait_until(&box->looks, me + 2);
	store(&box->slot.word[1], me | LAP);
}

/* Many threads at full speed, each with one message, its own number. */
extern "C" __global__ void crowd(struct one_slot *box)
{
	store_both(&box->slot, blockIdx.x | LAP, blockIdx.x | LAP);
}
