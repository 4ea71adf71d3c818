/* exec_memory_internal.h — the check that handlers make on every access: may the kernel access this address?
 *
 * The table of ranges (exec_memory.c) is sorted and shared by all workers; each worker caches, per device, the ranges that
 * its instructions accessed last; an instruction's index in its function selects the slot.  Every change of the table
 * increments its generation, which invalidates the slots of all workers. */
#ifndef GPULOAD_SOFTCUDA_EXEC_EXEC_MEMORY_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_EXEC_MEMORY_INTERNAL_H

#include <stdatomic.h>

#include "softcuda/exec/exec.h"

/* A power of two.  Instructions whose rows differ by a multiple of it share a slot, and evict each other's range if they
 * access different buffers; so it is larger than the number of rows of most loops. */
enum { RANGE_SLOTS = 512, COPIES_SLOTS = 4 };

struct range_slot {
	uint64_t base, end; /* [base, end); both 0: empty */
	bool read_only;
};

struct copies_slot {
	uint64_t base, end; /* [base, end): multicast addresses whose copies begin at copies.at[]; end 0: empty */
	bool read_only;
	gpul_exec_copies copies;
};

struct range_cache {
	const gpul_exec_memory *memory;
	unsigned device; /* slots contain only ranges that this device may access */
	const _Atomic uint64_t *generation;
	uint64_t seen; /* the table's generation when the slots were filled */
	struct range_slot slot[RANGE_SLOTS];
	struct copies_slot copies[COPIES_SLOTS];
};

void gpul_range_cache_init(struct range_cache *c, const gpul_exec_memory *m, unsigned device);
/* Empty the slots if the table has changed since they were filled. */
void gpul_range_cache_refresh(struct range_cache *c);
/* Search the table and fill the slot; false: the span is not covered (adjacent ranges are joined), or the
 * device has no right to it. */
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

/* Search the table for a multicast address and fill the slot; NULL: the address is not a multicast address, the device has no
 * right to it, or a device of the team has no memory there; why has the reason, a sentence without its subject. */
const struct copies_slot *gpul_copies_lookup(struct range_cache *c, unsigned slot, uint64_t at, unsigned bytes, bool write, char *why,
					     size_t why_bytes);

/* Return the copies of [at, at + bytes). */
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

/* The last range that begins at or before address, for messages; false: no range begins there. */
bool gpul_memory_nearest(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);

/* A sorted set of address ranges that do not overlap: leaves of up to LEAF_RANGES rows.
 *
 *     first[]   0x1000   0x9000   0xf000      the base of each leaf's first range, for the binary search
 *     leaf[]      │        │        │
 *               ranges   ranges   ranges      sorted
 *
 * A change moves at most one leaf and, when a leaf is added or removed, the two arrays of pointers and bases.  The caller locks. */
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

/* a position between two rows of a leaf: n_before rows are before it */
struct range_place {
	size_t leaf, n_before;
};

void gpul_ranges_free(struct range_table *t);
/* Return the last range that starts at or before address; NULL: none.  *at is the place after it, or the very first place. */
gpul_exec_range *gpul_ranges_find(const struct range_table *t, uint64_t address, struct range_place *at);
/* Return the range after the place; moves the place past it.  NULL: no more. */
gpul_exec_range *gpul_ranges_next(const struct range_table *t, struct range_place *at);
/* Add a range at its place: gpul_ranges_find(range->base).  Returns false if out of memory. */
bool gpul_ranges_insert(struct range_table *t, struct range_place at, const gpul_exec_range *range);
/* Remove the range before the place. */
void gpul_ranges_remove(struct range_table *t, struct range_place at);

#endif
