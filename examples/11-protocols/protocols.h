/* protocols.h — the memory of the lesson; for C and for CUDA C++. */
#ifndef PROTOCOLS_H
#define PROTOCOLS_H

typedef unsigned long long u64;

enum {
	MAX_BYTES = 16 << 10, /* maximum size of a message */
	LINE_WORDS = 16,      /* number of 8-byte words in a line of 128 bytes */
	DATA_WORDS = 15,      /* number of words in a line that contain data, in LL128 */
};

enum { LL, LL128, SIMPLE, N_PROTOCOLS };

/* A wire carries one message at a time, in one direction. */
struct wire {
	u64 area[2 * MAX_BYTES / 8 + LINE_WORDS]; /* written by the sender: words with flags, or data */
	u64 step;                                 /* written by the sender in protocol Simple: number of messages so far */
	u64 unused[LINE_WORDS - 1];
	u64 polls; /* written by the receiver: how often it has polled (slow motion) */
	u64 unused2[LINE_WORDS - 1];
};

/* The message that the receiver has read in slow motion. */
struct record {
	u64 message;          /* number of the message, from 1 */
	u64 n_words, n_wrong; /* number of words of the message; of words from another message */
};

struct result {
	unsigned n_records, timed_out;
	struct record records[8];
	u64 n_wrong; /* number of wrong words, when it runs at full speed (not in slow motion) */
	u64 ns;      /* time of all round trips at full speed */
};

#endif
