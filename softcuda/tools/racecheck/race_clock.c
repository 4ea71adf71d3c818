/* race_clock.c — vector clocks, stored as sorted arrays of entries ("facts").  A fact names a thread, warp or block, and the stamp
 * (logical time) up to which all its accesses happen before the next access of the clock's owner. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdlib.h>

static bool is_before(const struct fact *f, uint64_t block, uint32_t who)
{
	return f->block < block || (f->block == block && f->who < who);
}

/* Return the index of the entry for `who` in the block; if there is none, the index at which it must be inserted. */
static uint32_t find_place(const struct clock *c, uint64_t block, uint32_t who)
{
	uint32_t from = 0, to = c->n;

	if (c->n && is_before(&c->fact[c->n - 1], block, who)) /* usual case: the block started later than all blocks in the clock */
		return c->n;
	while (from < to) {
		const uint32_t middle = (from + to) / 2;

		if (is_before(&c->fact[middle], block, who))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool is_fact(const struct clock *c, uint32_t k, uint64_t block, uint32_t who)
{
	return k < c->n && c->fact[k].block == block && c->fact[k].who == who;
}

uint32_t race_clock_find(const struct clock *c, uint64_t block, uint32_t who)
{
	const uint32_t k = c ? find_place(c, block, who) : 0;

	return c && is_fact(c, k, block, who) ? c->fact[k].stamp : 0;
}

struct clock *race_clock_ref(struct clock *c)
{
	if (c)
		atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void race_clock_drop(struct clock *c)
{
	if (c && atomic_fetch_sub(&c->refs, 1) == 1)
		free(c);
}

/* Return an unshared copy of the clock with this capacity; NULL: out of memory. */
static struct clock *copy_clock(const struct clock *c, uint32_t room)
{
	struct clock *copy = malloc(sizeof *copy + room * sizeof copy->fact[0]);

	if (!copy)
		return NULL;
	atomic_init(&copy->refs, 1);
	copy->n = c ? c->n : 0;
	copy->room = room;
	if (c)
		memcpy(copy->fact, c->fact, c->n * sizeof c->fact[0]);
	return copy;
}

/* Make *c an unshared clock with room for n entries.  If memory runs out, *c is unchanged; a missing entry may cause a false report. */
static bool may_change(struct clock **c, uint32_t n)
{
	struct clock *copy;

	if (*c && n <= (*c)->room && atomic_load_explicit(&(*c)->refs, memory_order_acquire) == 1)
		return true;
	copy = copy_clock(*c, n < 8 ? 8 : n + n / 2);
	if (!copy)
		return false;
	race_clock_drop(*c);
	*c = copy;
	return true;
}

void race_clock_add(struct clock **c, uint64_t block, uint32_t who, uint32_t stamp)
{
	const uint32_t k = *c ? find_place(*c, block, who) : 0;

	if (!stamp)
		return;
	if (*c && is_fact(*c, k, block, who)) {
		if ((*c)->fact[k].stamp < stamp && may_change(c, (*c)->n))
			(*c)->fact[k].stamp = stamp;
		return;
	}
	if (!may_change(c, *c ? (*c)->n + 1 : 1))
		return;
	memmove(&(*c)->fact[k + 1], &(*c)->fact[k], ((*c)->n - k) * sizeof(*c)->fact[0]);
	(*c)->fact[k] = (struct fact){ block, who, stamp };
	(*c)->n++;
}

/* Merge the entries of a and b into `to`, in order; only_block: only the entries of this block from b (0: all).  Returns their number. */
static uint32_t merge_facts(const struct clock *a, const struct clock *b, uint64_t only_block, struct fact *to)
{
	uint32_t n = 0, i = 0, k = 0;

	while (i < a->n || k < b->n) {
		const struct fact *x = i < a->n ? &a->fact[i] : NULL, *y = k < b->n ? &b->fact[k] : NULL;

		if (y && only_block && y->block != only_block) {
			k++;
		} else if (!y || (x && is_before(x, y->block, y->who))) {
			to[n++] = *x;
			i++;
		} else if (!x || is_before(y, x->block, x->who)) {
			to[n++] = *y;
			k++;
		} else {
			to[n] = *x;
			to[n++].stamp = x->stamp > y->stamp ? x->stamp : y->stamp;
			i++, k++;
		}
	}
	return n;
}

/* True if a contains all entries of b (only_block: all entries of this block; 0: of all blocks). */
static bool knows_all_of(const struct clock *a, const struct clock *b, uint64_t only_block)
{
	uint32_t i = 0;

	for (uint32_t k = 0; k < b->n; k++) {
		const struct fact *y = &b->fact[k];

		if (only_block && y->block != only_block)
			continue;
		while (i < a->n && is_before(&a->fact[i], y->block, y->who))
			i++;
		if (!is_fact(a, i, y->block, y->who) || a->fact[i].stamp < y->stamp)
			return false;
	}
	return true;
}

struct clock *race_clock_merged(struct clock *a, struct clock *b, uint64_t only_block)
{
	static const struct clock none;
	const struct clock *from = a ? a : &none;
	struct clock *out = NULL;

	if (!b || !b->n || a == b || knows_all_of(from, b, only_block))
		return a;
	if (!only_block && knows_all_of(b, from, 0)) {
		race_clock_drop(a);
		return race_clock_ref(b);
	}
	if (!may_change(&out, from->n + b->n))
		return a;
	out->n = merge_facts(from, b, only_block, out->fact);
	race_clock_drop(a);
	return out;
}

void race_clock_join(struct clock **c, struct clock *from)
{
	if (!from || !from->n)
		return;
	if (*c && from->n <= 8) {
		for (uint32_t k = 0; k < from->n; k++)
			race_clock_add(c, from->fact[k].block, from->fact[k].who, from->fact[k].stamp);
		return;
	}
	*c = race_clock_merged(*c, from, 0);
}

/* Returns true if all accesses of the record's block or warp, up to its stamp, happen before the next access of the clock's owner. */
bool race_clock_knows_warp(const struct clock *c, const struct record *r)
{
	const uint64_t block = block_key(r->launch, r->block);

	return c && (race_clock_find(c, block, WHO_ALL) >= r->stamp || race_clock_find(c, block, WHO_WARP + r->warp) >= r->stamp);
}

bool race_clock_knows_lane(const struct clock *c, const struct record *r, unsigned lane)
{
	const uint32_t thread = r->warp * LANES + lane;

	if (!c)
		return false;
	if (r->how & HOW_ASYNC)
		return race_clock_find(c, block_key(r->launch, r->block), WHO_COPIES + thread) >= r->stamp;
	return race_clock_knows_warp(c, r) || race_clock_find(c, block_key(r->launch, r->block), WHO_THREAD + thread) >= r->stamp;
}

/* ---- launches ------------------------------------------------------------------------------------------------------- */

static uint32_t launch_of(const struct fact *f)
{
	return (uint32_t)(f->block >> 32);
}

void race_clock_prune(struct clock **at, uint32_t launch)
{
	struct clock *c = may_change(at, (*at)->n) ? *at : NULL;
	uint32_t n = 0, last = 0;
	bool earlier = false;

	if (!c)
		return;
	for (uint32_t k = 0; k < c->n; k++) {
		if (launch_of(&c->fact[k]) != last) {
			last = launch_of(&c->fact[k]);
			earlier = last != launch && race_launch_before(last, launch);
		}
		if (!earlier)
			c->fact[n++] = c->fact[k];
	}
	c->n = n;
}

bool race_clock_after(const struct clock *c, uint32_t launch)
{
	uint32_t last = 0;

	for (uint32_t k = 0; c && k < c->n; k++) {
		if (launch_of(&c->fact[k]) == last)
			continue;
		last = launch_of(&c->fact[k]);
		if (last != launch && race_launch_before(launch, last))
			return true;
	}
	return false;
}
