/* ring.h — the memory of the ring's processes; for C and for CUDA C++. */
#ifndef RING_H
#define RING_H

typedef unsigned long long u64;

enum {
	MAX_RANKS = 8,
	CHUNK = 32, /* elements of a chunk: one for each thread */
	LINE = 16,  /* 8-byte words in a cache line of 128 bytes */
};

/* The channel from the previous rank; in the memory of its receiver (lesson 9). */
struct channel {
	u64 tail; /* written by the sender: number of steps that it has written */
	u64 unused[LINE - 1];
	u64 slot[CHUNK]; /* written by the sender: the data of a step */
	u64 head;        /* written by the receiver: number of steps that it has read */
	u64 unused2[LINE - 1];
};

/* The data that a rank held after each step: the first element of each chunk. */
struct record {
	u64 chunk[MAX_RANKS];
};

/* The primitive that a step executes; the names are NCCL's. */
enum { START, SEND, RECV_REDUCE_SEND, RECV_REDUCE_COPY_SEND, RECV_COPY_SEND, RECV };

struct log {
	unsigned n_records, timed_out;
	unsigned primitive[2 * MAX_RANKS];
	struct record records[2 * MAX_RANKS];
};

#endif
