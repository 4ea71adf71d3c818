/* exec_memory_internal.h — the check whether a kernel may access an address, made for each memory access.
 *
 * All workers share one sorted table of ranges (exec_memory.c).  Each worker has a cache per device, with the ranges that its instructions
 * accessed last; an instruction's index in its function selects the slot of the cache.  Every change of the table increments its
 * generation, which invalidates the slots of all workers. */
#ifndef GPULOAD_SOFTCUDA_EXEC_EXEC_MEMORY_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_EXEC_MEMORY_INTERNAL_H

#include <stdatomic.h>

#include "softcuda/exec/exec.h"

/* RANGE_SLOTS: a power of two, larger than the number of instructions of most loops: instructions whose indices differ by a multiple of it
 * share a slot, and evict each other's range if they access different buffers. */
enum { RANGE_SLOTS = 512, COPIES_SLOTS = 4 };

struct range_slot {
	uint64_t base, end; /* the range [base, end); both 0: the slot is empty */
	bool read_only;
};

struct copies_slot {
	uint64_t base, end; /* the multicast addresses [base, end); their copies are at copies.at[]; end 0: the slot is empty */
	bool read_only;
	gpul_exec_copies copies;
};

struct range_cache {
	const gpul_exec_memory *memory;
	unsigned device; /* the slots contain ranges that this device may access */
	const _Atomic uint64_t *generation;
	uint64_t seen; /* the table's generation when the slots were filled */
	struct range_slot slot[RANGE_SLOTS];
	struct copies_slot copies[COPIES_SLOTS];
};

void gpul_range_cache_init(struct range_cache *c, const gpul_exec_memory *m, unsigned device);
/* Empty the slots if the table has changed since they were filled. */
void gpul_range_cache_refresh(struct range_cache *c);
/* Search the table for [at, at + bytes), and fill the slot.  Returns false if neither one range nor several adjacent ranges contain
 * these bytes, or if the device may not access them. */
bool gpul_range_lookup(struct range_cache *c, unsigned slot, uint64_t at, uint64_t bytes, bool write);

/* Returns true if the slot's range is up to date and permits this kind of access. */
static inline bool slot_is_valid(const struct range_cache *c, const struct range_slot *k, bool write)
{
	return !(write && k->read_only) && c->seen == atomic_load_explicit(c->generation, memory_order_relaxed);
}

static inline bool range_covers(struct range_cache *c, unsigned slot, uint64_t at, uint64_t bytes, bool write)
{
	const struct range_slot *k = &c->slot[slot % RANGE_SLOTS];

	if (at >= k->base && at < k->end && bytes <= k->end - at && slot_is_valid(c, k, write))
		return true;
	return gpul_range_lookup(c, slot, at, bytes, write);
}

/* Search the table for a multicast address, and fill the slot.  NULL: it is not a multicast address, the device may not access it, or a
 * device of the team has no memory there; `why` receives the reason, a sentence without a subject. */
const struct copies_slot *gpul_copies_lookup(struct range_cache *c, unsigned slot, uint64_t at, unsigned bytes, bool write, char *why,
					     size_t why_bytes);

/* Return the devices' copies of the multicast range [at, at + bytes), from the cache if possible; NULL: see gpul_copies_lookup(). */
static inline const struct copies_slot *copies_at(struct range_cache *c, unsigned slot, uint64_t at, unsigned bytes, bool write, char *why,
						  size_t why_bytes)
{
	const struct copies_slot *k = &c->copies[slot % COPIES_SLOTS];

	if (at >= k->base && at < k->end && bytes <= k->end - at && !(write && k->read_only) &&
	    c->seen == atomic_load_explicit(c->generation, memory_order_relaxed) &&
	    k->copies.seen == atomic_load_explicit(k->copies.changes, memory_order_acquire))
		return k;
	return gpul_copies_lookup(c, slot, at, bytes, write, why, why_bytes);
}

/* Copy the last range that begins at or before address to *out; false: no range begins at or before it. */
bool gpul_memory_nearest(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);

/* A sorted set of address ranges that do not overlap, in leaves (arrays) of up to LEAF_RANGES ranges.
 *
 *     first[]   0x1000   0x9000   0xf000      the base of each leaf's first range, for the binary search
 *     leaf[]      │        │        │
 *               ranges   ranges   ranges      sorted
 *
 * A change moves the ranges of at most one leaf and, when a leaf is added or removed, elements of first[] and leaf[].  The caller must hold
 * the lock of the table. */
enum { LEAF_RANGES = 64 };

struct range_leaf {
	size_t n_ranges; /* at least 1 */
	gpul_exec_range range[LEAF_RANGES];
};

struct range_table { /* all zero: empty */
	uint64_t *first;
	struct range_leaf **leaf;
	size_t n_leaves, capacity;
};

/* a position in the table, between two ranges of a leaf: n_before ranges of the leaf are before it */
struct range_place {
	size_t leaf, n_before;
};

void gpul_ranges_free(struct range_table *t);
/* Return the last range that starts at or before address, and set *at to the position after it.  NULL: none; *at is then the first one. */
gpul_exec_range *gpul_ranges_find(const struct range_table *t, uint64_t address, struct range_place *at);
/* Return the range after the position, and move the position after that range; NULL: there are no more ranges. */
gpul_exec_range *gpul_ranges_next(const struct range_table *t, struct range_place *at);
/* Insert a range at the position that gpul_ranges_find(range->base) has set.  Returns false if out of memory. */
bool gpul_ranges_insert(struct range_table *t, struct range_place at, const gpul_exec_range *range);
/* Remove the range before the position. */
void gpul_ranges_remove(struct range_table *t, struct range_place at);

#endif
