/* ranges.c — a sorted set of address ranges (struct range_table): a binary search finds the leaf, and a second one the range in it. */
#include <stdlib.h>
#include <string.h>

#include "softcuda/exec/exec_memory_internal.h"

void gpul_ranges_free(struct range_table *t)
{
	for (size_t k = 0; k < t->n_leaves; k++)
		free(t->leaf[k]);
	free(t->leaf);
	free(t->first);
}

gpul_exec_range *gpul_ranges_find(const struct range_table *t, uint64_t address, struct range_place *at)
{
	size_t lo = 0, hi = t->n_leaves;
	struct range_leaf *leaf;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->first[mid] <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	*at = (struct range_place){ 0 };
	if (!lo)
		return NULL;
	at->leaf = lo - 1;
	leaf = t->leaf[at->leaf];
	for (lo = 1, hi = leaf->n_ranges; lo < hi;) { /* invariant: range[lo - 1] starts at or before address */
		size_t mid = lo + (hi - lo) / 2;

		if (leaf->range[mid].base <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	at->n_before = lo;
	return &leaf->range[lo - 1];
}

gpul_exec_range *gpul_ranges_next(const struct range_table *t, struct range_place *at)
{
	if (at->leaf < t->n_leaves && at->n_before == t->leaf[at->leaf]->n_ranges)
		*at = (struct range_place){ .leaf = at->leaf + 1 };
	return at->leaf < t->n_leaves ? &t->leaf[at->leaf]->range[at->n_before++] : NULL;
}

static bool grow_table(struct range_table *t)
{
	size_t capacity = t->capacity ? 2 * t->capacity : 16;
	struct range_leaf **leaf;
	uint64_t *first;

	if (t->n_leaves < t->capacity)
		return true;
	leaf = realloc(t->leaf, capacity * sizeof *leaf);
	if (leaf)
		t->leaf = leaf;
	first = realloc(t->first, capacity * sizeof *first);
	if (first)
		t->first = first;
	if (!leaf || !first)
		return false;
	t->capacity = capacity;
	return true;
}

/* Add an empty leaf at index k; NULL: out of memory. */
static struct range_leaf *add_leaf(struct range_table *t, size_t k)
{
	struct range_leaf *leaf = grow_table(t) ? malloc(sizeof *leaf) : NULL;

	if (!leaf)
		return NULL;
	leaf->n_ranges = 0;
	memmove(&t->leaf[k + 1], &t->leaf[k], (t->n_leaves - k) * sizeof *t->leaf);
	memmove(&t->first[k + 1], &t->first[k], (t->n_leaves - k) * sizeof *t->first);
	t->leaf[k] = leaf;
	t->n_leaves++;
	return leaf;
}

static void remove_leaf(struct range_table *t, size_t k)
{
	free(t->leaf[k]);
	t->n_leaves--;
	memmove(&t->leaf[k], &t->leaf[k + 1], (t->n_leaves - k) * sizeof *t->leaf);
	memmove(&t->first[k], &t->first[k + 1], (t->n_leaves - k) * sizeof *t->first);
}

/* Move the ranges of leaf k from index n_kept on to a new leaf.  For a range after all those of a full leaf, n_kept is LEAF_RANGES,
 * so that nothing moves, and ranges which are added in ascending order fill their leaves. */
static bool split_leaf(struct range_table *t, size_t k, size_t n_kept)
{
	struct range_leaf *to = add_leaf(t, k + 1), *from;

	if (!to)
		return false;
	from = t->leaf[k];
	to->n_ranges = from->n_ranges - n_kept;
	memcpy(to->range, &from->range[n_kept], to->n_ranges * sizeof *to->range);
	from->n_ranges = n_kept;
	if (to->n_ranges)
		t->first[k + 1] = to->range[0].base;
	return true;
}

bool gpul_ranges_insert(struct range_table *t, struct range_place at, const gpul_exec_range *range)
{
	struct range_leaf *leaf;

	if (!t->n_leaves && !add_leaf(t, 0))
		return false;
	if (t->leaf[at.leaf]->n_ranges == LEAF_RANGES) {
		size_t n_kept = at.n_before == LEAF_RANGES ? LEAF_RANGES : LEAF_RANGES / 2;

		if (!split_leaf(t, at.leaf, n_kept))
			return false;
		if (at.n_before > n_kept || n_kept == LEAF_RANGES)
			at = (struct range_place){ at.leaf + 1, at.n_before - n_kept };
	}
	leaf = t->leaf[at.leaf];
	memmove(&leaf->range[at.n_before + 1], &leaf->range[at.n_before], (leaf->n_ranges - at.n_before) * sizeof *leaf->range);
	leaf->range[at.n_before] = *range;
	leaf->n_ranges++;
	t->first[at.leaf] = leaf->range[0].base;
	return true;
}

/* Append the ranges of leaf k + 1 to leaf k when both are nearly empty, so that the table shrinks with the number of ranges. */
static void join_leaves(struct range_table *t, size_t k)
{
	struct range_leaf *to, *from;

	if (k + 1 >= t->n_leaves)
		return;
	to = t->leaf[k];
	from = t->leaf[k + 1];
	if (to->n_ranges + from->n_ranges > LEAF_RANGES / 2)
		return;
	memcpy(&to->range[to->n_ranges], from->range, from->n_ranges * sizeof *from->range);
	to->n_ranges += from->n_ranges;
	remove_leaf(t, k + 1);
}

void gpul_ranges_remove(struct range_table *t, struct range_place at)
{
	struct range_leaf *leaf = t->leaf[at.leaf];

	memmove(&leaf->range[at.n_before - 1], &leaf->range[at.n_before], (leaf->n_ranges - at.n_before) * sizeof *leaf->range);
	if (!--leaf->n_ranges) {
		remove_leaf(t, at.leaf);
		return;
	}
	t->first[at.leaf] = leaf->range[0].base;
	join_leaves(t, at.leaf);
	if (at.leaf)
		join_leaves(t, at.leaf - 1);
}
