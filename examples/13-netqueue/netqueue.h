/* netqueue.h — the memory of the lesson; for C and for CUDA C++. */
#ifndef NETQUEUE_H
#define NETQUEUE_H

typedef unsigned long long u64;

enum {
	SLOTS = 4,
	SLOT_BYTES = 64, /* size of a slot of the bounce memory: each packet has its own slot */
	ENTRIES = 4,     /* entries of the ring: entry n is at index n % ENTRIES, in lap n / ENTRIES + 1 */
	BOUNCE_BYTES = SLOTS * SLOT_BYTES,
	MOST_REFUSALS = 8,
};

/* The position of a piece in the bounce memory, and its destination.  Both words carry the lap,
 * because a load of 16 bytes may see one of them before the other.
 *
 *            63     56 55          36 35                  0
 *     word 0 │ lap     │ length       │ source              │
 *     word 1 │ lap     │ destination                        │ */
struct entry {
	u64 word[2];
};

struct queue {
	unsigned char bounce[BOUNCE_BYTES]; /* written by the CPU: the packets */
	struct entry ring[ENTRIES];         /* written by the CPU: the entries */
	u64 unused[8];
	u64 done;                 /* written by the kernel: number of entries whose slots are free again */
	u64 n_refused, timed_out; /* written by the kernel */
	struct {
		u64 entry, end, limit;
	} refusals[MOST_REFUSALS];
};

#endif
