/* order.c — decides whether an earlier access happens before the current one. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

bool race_morally_strong(const struct watched_warp *w, unsigned how, const struct record *r)
{
	const unsigned mine = how >> HOW_SCOPE_AT & 3, other = r->how >> HOW_SCOPE_AT & 3;
	const bool same_block = r->launch == w->block->launch && r->block == (uint32_t)w->block->key;

	if (!(how & r->how & HOW_STRONG) || how & r->how & HOW_COPY)
		return false;
	return same_block || (mine >= SCOPE_GPU && other >= SCOPE_GPU);
}

static bool is_own_block(const struct watched_warp *w, const struct record *r)
{
	return r->launch == w->block->launch && r->block == (uint32_t)w->block->key;
}

/* Returns true if a volatile access is a signal, that is, an access by which threads synchronise. In PTX, volatile accesses have an
 * order and a scope, and do not race with each other. But they do not order other accesses or the lanes of a warp, although most
 * programs that use them rely on that. So a volatile access counts as strong only if it is a signal: if a loop polls the word, or, in
 * global memory, if the volatile access reads what an atomic operation writes, or takes part in a release or acquire. */
bool race_is_signal(const struct now *n, const struct record *r, uint64_t at)
{
	const bool mine = n->site->is_volatile, others = r->site->is_volatile;
	const unsigned strong = mine ? r->how : n->how, by_volatile = mine ? n->how : r->how;

	if (mine == others)
		return mine && (n->site->polls || r->site->polls || race_is_polled(n->w->block, n->shared, at));
	if (!(strong & HOW_STRONG) || ((strong >> HOW_SCOPE_AT & 3) < SCOPE_GPU && !is_own_block(n->w, r)))
		return false;
	if (n->site->polls || r->site->polls || strong & HOW_COPY)
		return true;
	if (!n->shared && !(by_volatile & HOW_WRITES && strong & HOW_WRITES))
		return true;
	return race_is_polled(n->w->block, n->shared, at);
}

bool race_knows_all(const struct watched_warp *w, const struct record *r)
{
	const struct watched_block *b = w->block;

	if (r->launch != b->launch && race_launch_before(r->launch, b->launch))
		return true;
	if (r->pending)
		return false;
	if (r->how & HOW_COPY && r->launch < b->knows_copies)
		return true;
	if (is_own_block(w, r) && (r->stamp <= b->floor || (r->warp == w->index && r->stamp <= w->floor)))
		return true;
	return b->shared_clock && race_clock_knows_warp(b->shared_clock, r);
}

bool race_knows(const struct watched_warp *w, unsigned lane, const struct record *r, unsigned of_lane)
{
	const struct watched_block *b = w->block;
	const bool waited = !(r->how & HOW_ASYNC) || r->done >> of_lane & 1;

	if (race_knows_all(w, r))
		return true;
	if (waited && is_own_block(w, r)) {
		if (r->stamp <= b->floor)
			return true;
		if (r->warp == w->index && (of_lane == lane || r->stamp <= w->floor || (w->knows && r->stamp <= w->knows[lane][of_lane])))
			return true;
	}
	return race_clock_knows_lane(w->clock[lane], r, of_lane) || race_clock_knows_lane(b->shared_clock, r, of_lane) ||
	       (r->launch != b->launch && (race_clock_after(w->clock[lane], r->launch) || race_clock_after(b->shared_clock, r->launch))) ||
	       (b->knows_cpu && race_cpu_knows(r, of_lane));
}
