/* channel.h — the memory that the two processes share; for C and for CUDA C++. */
#ifndef CHANNEL_H
#define CHANNEL_H

typedef unsigned long long u64;

/* words per cache line of 128 bytes: words with different writers are in different lines */
enum { LINE = 16 };

/* A channel with one slot, in the receiver's memory. */
struct channel {
	u64 tail; /* written by the sender: number of messages that it has put into the slot */
	u64 unused[LINE - 1];
	u64 slot[2]; /* written by the sender: both words contain the number of their message, so that errors show */
	u64 unused2[LINE - 2];
	u64 head; /* written by the receiver: number of messages that it has read */
	u64 unused3[LINE - 1];
	u64 polls; /* written by the receiver: how often it has polled (slow motion) */
	u64 unused4[LINE - 1];
	u64 ended; /* written by the sender: 1 after its last message; until then the receiver polls */
	u64 unused5[LINE - 1];
};

/* One line of the receiver's log: the values that a poll has read; logged only if one of them
 * differs from the previous poll. */
struct record {
	u64 tail, slot[2];
	u64 taken; /* the message that the receiver has read; 0: none */
};

enum { MAX_RECORDS = 32 };

struct log {
	u64 n_records, n_whole, n_wrong;
	struct record records[MAX_RECORDS];
};

/* The three protocols. */
enum {
	TAIL_FIRST, /* wrong: the step counter is incremented before the data is written */
	NO_CREDIT,  /* wrong: the sender does not wait until the slot is free */
	RIGHT,
};

#endif
