/* steps.h — the data in host memory that GPU and CPU both map; for C and for CUDA C++. */
#ifndef STEPS_H
#define STEPS_H

typedef unsigned long long u64;

#define LAP_BIT 63
#define LAP     (1ull << LAP_BIT) /* the lap bit: the top bit of each word of a message */
#define PAYLOAD (LAP - 1)
#define SLOTS   8 /* number of slots of a ring; a power of two */

/* Step 1: a message of two words, and a flag with the number of the message. */
struct mailbox {
	u64 word[2]; /* written by the GPU */
	u64 flag;    /* written by the GPU */
	u64 zero[5];
	u64 polls; /* written by the CPU: how often it has polled (slow motion) */
};

/* Step 2 and later: no flag; each word contains its lap bit. */
struct slot {
	u64 word[2];
};

struct one_slot {
	struct slot slot; /* written by the GPU */
	u64 zero[6];
	u64 polls; /* written by the CPU: how often it has polled */
};

/* Steps 3 and 4: position p uses slot p mod SLOTS, and its lap bit is 1 in even laps, 0 in odd laps. */
struct ring {
	struct slot slot[SLOTS]; /* written by the GPU */
	u64 tail, zero[7];       /* tail: written by the CPU (step 4), which has read all positions below the tail */
};

/* Steps 4 and 5: how often each thread has polled the tail; one cache line for each thread. */
#define THREADS 16
struct polls {
	u64 of_thread[THREADS][8]; /* written by the GPU: word 0 of each line is the number of polls */
};

/* Step 5: a question and its answer for each thread.  LETTER is the kind of the triggers. */
#define LETTER 1
struct letters {
	u64 question[THREADS]; /* written by the GPU */
	u64 answer[THREADS];   /* written by the CPU */
	u64 n_right[THREADS];  /* written by the GPU: the number of correct answers */
};

/* Step 5: how each thread's last push ended. */
struct ends {
	u64 pushed[THREADS]; /* written by the GPU: the number of positions filled */
	u64 result[THREADS]; /* written by the GPU: a value of enum gpul_fifo_result */
};

#endif
