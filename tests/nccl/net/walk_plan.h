/* walk_plan.h — the messages that walk.c sends over one connection: groups of messages with tags, computed from a seed.
 *
 * Messages with the same tag are sent in the order of the groups, as by one rank of NCCL; those with different tags in any order.  The
 * contents are parts of one array of random bytes, which both processes compute. */
#ifndef GPULOAD_TESTS_NCCL_NET_WALK_PLAN_H
#define GPULOAD_TESTS_NCCL_NET_WALK_PLAN_H

#include <stddef.h>
#include <stdint.h>

enum {
	MAX_GROUP = 8,
	N_TAGS = 11,
	BIG_BYTES = 64 << 20,
	SMALL_BYTES = 256 << 10,
	GUARD_BYTES = 64,                                                     /* bytes after each message, which a receive must not write */
	SLOT_BYTES = BIG_BYTES + MAX_GROUP * (SMALL_BYTES + 2 * GUARD_BYTES), /* bytes of receive memory for one group */
	NOISE_BYTES = BIG_BYTES + SMALL_BYTES + (1 << 16),
	UNTOUCHED = 0xee,
};

struct message {
	int tag;
	size_t bytes, room;       /* size of the message, size of its buffer */
	size_t noise_at, slot_at; /* offset of its content in the random bytes; offset of its buffer in the receive memory */
};

struct group {
	int n;
	struct message at[MAX_GROUP];
};

struct rng {
	uint64_t state;
};
uint32_t random_below(struct rng *r, uint32_t n);

/* Make the groups of a connection; most_bytes limits the size of a message. */
struct group *make_plan(uint64_t seed, int n_groups, size_t most_bytes);
unsigned char *make_noise(void);

#endif
