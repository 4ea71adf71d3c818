/* memory_internal.h — how a handler asks, for every access, whether a kernel may touch an address.
 *
 * The table (memory.c) is sorted and shared by all; each worker remembers, for each device, the last
 * ranges that its instructions hit, one slot for a few instructions.  Any change of the table moves
 * its generation, which empties every worker's slots at their next access. */
#ifndef GPULOAD_SOFTCUDA_EXEC_MEMORY_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_MEMORY_INTERNAL_H

#include <stdatomic.h>

#include "softcuda/exec/exec.h"

enum { RANGE_SLOTS = 16 };  /* a power of two */

struct range_slot {
	uint64_t base, end;     /* [base, end); both 0: empty */
	bool read_only;
};

struct range_cache {
	const gpul_exec_memory *memory;
	unsigned device;        /* slots hold only what this one may touch */
	const _Atomic uint64_t *generation;
	uint64_t seen;          /* generation that the slots are of */
	struct range_slot slot[RANGE_SLOTS];
};

void gpul_range_cache_init(struct range_cache *c, const gpul_exec_memory *m, unsigned device);
/* Forget what the table said before it changed last. */
void gpul_range_cache_refresh(struct range_cache *c);
/* Look in the table and remember; false: no range covers all of it (ranges that touch count as one), or the
 * device has not the right. */
bool gpul_range_lookup(struct range_cache *c, unsigned slot, uint64_t at, uint64_t bytes, bool write);

static inline bool range_covers(struct range_cache *c, unsigned slot, uint64_t at, uint64_t bytes, bool write)
{
	const struct range_slot *k = &c->slot[slot % RANGE_SLOTS];

	if (at >= k->base && at < k->end && bytes <= k->end - at && !(write && k->read_only) &&
	    c->seen == atomic_load_explicit(c->generation, memory_order_relaxed))
		return true;
	return gpul_range_lookup(c, slot, at, bytes, write);
}

/* The range that begins last at or before address, for "how far past the end" in messages. */
bool gpul_memory_nearest(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);

#endif
