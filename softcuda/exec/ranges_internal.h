/* ranges_internal.h — a sorted set of address ranges that do not overlap: leaves of up to LEAF_RANGES ranges.
 *
 *     first[]   0x1000   0x9000   0xf000      the base of each leaf's first range, for the binary search
 *     leaf[]      │        │        │
 *               ranges   ranges   ranges      sorted
 *
 * A change moves at most one leaf and, when a leaf is added or removed, the two arrays of pointers and bases.  The caller locks. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RANGES_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RANGES_INTERNAL_H

#include "softcuda/exec/exec.h"

enum { LEAF_RANGES = 64 };

struct range_leaf {
	size_t n_ranges;          /* at least 1 */
	gpul_exec_range range[LEAF_RANGES];
};

struct range_table {          /* all zero: empty */
	uint64_t *first;
	struct range_leaf **leaf;
	size_t n_leaves, capacity;
};

struct range_place { size_t leaf, n_before; };  /* between two ranges of a leaf: n_before ranges are before it */

void gpul_ranges_free(struct range_table *t);
/* Find the last range that starts at or before address; NULL: none.  *at is the place after it, or the very first place. */
gpul_exec_range *gpul_ranges_find(const struct range_table *t, uint64_t address, struct range_place *at);
/* Return the range after the place, and move the place past it.  NULL: there is none. */
gpul_exec_range *gpul_ranges_next(const struct range_table *t, struct range_place *at);
/* Add a range at its place: gpul_ranges_find(range->base).  False: out of memory. */
bool gpul_ranges_insert(struct range_table *t, struct range_place at, const gpul_exec_range *range);
/* Remove the range before the place. */
void gpul_ranges_remove(struct range_table *t, struct range_place at);

#endif
