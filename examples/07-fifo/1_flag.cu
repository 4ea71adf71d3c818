/* 1_flag.cu — a message of two words and a flag, from the GPU to the CPU. */
#include "steps.cuh"

/* In slow motion: after each store the GPU waits until the CPU has looked. */
extern "C" __global__ void slow(struct mailbox *box, u64 n_messages, u64 flag_first)
{
	u64 looks = 0;

	for (u64 m = 1; m <= n_messages; m++) {
		if (flag_first) {  /* as the hardware may do it when nobody orders the stores */
			store(&box->flag, m);
			wait_until(&box->looks, ++looks);
		}
		store(&box->word[0], m);
		wait_until(&box->looks, ++looks);
		store(&box->word[1], m);
		wait_until(&box->looks, ++looks);
		if (!flag_first) {
			store_release(&box->flag, m);  /* who sees this flag sees the words, too */
			wait_until(&box->looks, ++looks);
		}
	}
}

/* The same, right order, at full speed. */
extern "C" __global__ void fast(struct mailbox *box, u64 n_messages)
{
	for (u64 m = 1; m <= n_messages; m++) {
		store(&box->word[0], m);
		store(&box->word[1], m);
		store_release(&box->flag, m);
	}
}
