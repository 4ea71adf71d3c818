/* steps.h — what GPU and CPU both see, in host memory that both map; for C and for CUDA C++. */
#ifndef STEPS_H
#define STEPS_H

typedef unsigned long long u64;

#define LAP_BIT 63
#define LAP (1ull << LAP_BIT) /* the topmost bit of a word: which lap it was written in */
#define PAYLOAD (LAP - 1)
#define SLOTS 8               /* of a ring; a power of two */

/* Step 1: a message is two words, and its flag says which message they are. */
struct mailbox {
	u64 word[2];   /* the GPU writes */
	u64 flag;      /* the GPU writes */
	u64 zero[5];
	u64 looks;     /* the CPU writes: how often it has looked (slow motion) */
};

/* Step 2 and later: no flag; each word carries its lap. */
struct slot {
	u64 word[2];
};

struct one_slot {
	struct slot slot; /* the GPU writes */
	u64 zero[6];
	u64 looks;        /* the CPU writes */
};

/* Steps 3 and 4: position p lies in slot p mod SLOTS, and its lap bit is 1 in even laps, 0 in odd ones. */
struct ring {
	struct slot slot[SLOTS]; /* the GPU writes */
	u64 tail, zero[7];       /* the CPU writes (step 4): positions below it have been taken */
};

/* Steps 4 and 5: how often each thread has looked at the tail; a cache line for each. */
#define THREADS 16
struct looks {
	u64 of_thread[THREADS][8]; /* the GPU writes */
};

/* Step 5: a question and its answer for each thread; the kind of its trigger. */
#define LETTER 1
struct letters {
	u64 question[THREADS]; /* the GPU writes */
	u64 answer[THREADS];   /* the CPU writes */
	u64 n_right[THREADS];  /* the GPU writes: answers that were right */
};

/* Step 5: how waits end. */
struct ends {
	u64 pushed[THREADS]; /* the GPU writes: positions filled */
	u64 result[THREADS]; /* the GPU writes: enum gpul_fifo_result */
};

#endif
