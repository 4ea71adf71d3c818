/* fifo_count.h — a hash map that counts how often each number occurs, which costs about as much time as the work of a real proxy.
 *
 * Open addressing with a power of two of slots, at most half full; a number and its count share a cache line.  An access
 * takes about 2 ns if the slot is in the L1 cache; gpuload fifo bench includes it in the measured time. */
#ifndef GPULOAD_CLI_FIFO_BENCH_FIFO_COUNT_H
#define GPULOAD_CLI_FIFO_BENCH_FIFO_COUNT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

struct fifo_count {
	struct fifo_count_slot {
		uint64_t key_1; /* key + 1; 0: free */
		uint64_t n;
	} *slot;
	unsigned shift; /* 64 - log2(slots) */
};

/* Fibonacci hashing: consecutive numbers get slots that are far apart, without collisions. */
static inline uint64_t fifo_count_at(const struct fifo_count *c, uint64_t key)
{
	return key * 0x9e3779b97f4a7c15u >> c->shift;
}

/* Count a key.  There may be at most n_keys different keys (fifo_count_clear()). */
static inline void fifo_count_add(struct fifo_count *c, uint64_t key)
{
	const uint64_t mask = ~0ull >> c->shift;
	uint64_t at = fifo_count_at(c, key);

	while (c->slot[at].key_1 != key + 1) {
		if (!c->slot[at].key_1)
			c->slot[at].key_1 = key + 1;
		else
			at = (at + 1) & mask;
	}
	c->slot[at].n++;
}

static inline uint64_t fifo_count_of(const struct fifo_count *c, uint64_t key)
{
	const uint64_t mask = ~0ull >> c->shift;
	uint64_t at = fifo_count_at(c, key);

	while (c->slot[at].key_1 && c->slot[at].key_1 != key + 1)
		at = (at + 1) & mask;
	return c->slot[at].key_1 ? c->slot[at].n : 0;
}

/** Empty the map and make room for n_keys different keys.
 *
 * @c       zeroed, or used before; release it with fifo_count_free()
 * @n_keys  at least 1
 * Errors  GPUL_ENOMEM
 * Threads one at a time */
static inline gpul_status fifo_count_clear(struct fifo_count *c, uint64_t n_keys, gpul_error *err)
{
	unsigned bits = 4;
	struct fifo_count_slot *slot;

	while (bits < 40 && 1ull << bits < 2 * n_keys)
		bits++;
	slot = realloc(c->slot, sizeof *slot << bits);
	if (!slot)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to count %llu triggers", (unsigned long long)n_keys);
	memset(slot, 0, sizeof *slot << bits);
	*c = (struct fifo_count){ .slot = slot, .shift = 64 - bits };
	return GPUL_OK;
}

static inline void fifo_count_free(struct fifo_count *c)
{
	free(c->slot);
	*c = (struct fifo_count){ 0 };
}

#endif
