/* 1_flag.cu — a message of two words and a flag, from the GPU to the CPU. */
#include "steps.cuh"

/* Runs in slow motion: after each store the GPU waits until the CPU has polled. */
extern "C" __global__ void slow(struct mailbox *box, u64 n_messages, u64 flag_first)
{
	u64 polls = 0;

	for (u64 m = 1; m <= n_messages; m++) {
		if (flag_first) {  /* the hardware may use this order if the stores have no order */
			store(&box->flag, m);
			wait_until(&box->polls, ++polls);
		}
		store(&box->word[0], m);
		wait_until(&box->polls, ++polls);
		store(&box->word[1], m);
		wait_until(&box->polls, ++polls);
		if (!flag_first) {
			store_release(&box->flag, m);  /* a CPU thread that reads this flag also sees the words */
			wait_until(&box->polls, ++polls);
		}
	}
}

/* Runs at full speed, and stores in the correct order: the words, then the flag. */
extern "C" __global__ void fast(struct mailbox *box, u64 n_messages)
{
	for (u64 m = 1; m <= n_messages; m++) {
		store(&box->word[0], m);
		store(&box->word[1], m);
		store_release(&box->flag, m);
	}
}
