/* race_async.c — follows asynchronous copies: cp.async and cp.async.bulk.
 *
 * A copy accesses memory at any time between its start and its completion, so its accesses can even race with later accesses of
 * its own thread. After wait_group or wait_all, the copy counts as accesses that the thread made at that moment. An mbarrier
 * completes a copy for the threads that wait for the mbarrier's phase: they get a WHO_COPIES entry in their clocks.
 *
 * Bulk copies access shared memory through the async proxy, ordinary stores through the generic proxy. A barrier does not order
 * accesses through different proxies: a store and a later bulk copy of its bytes also need a fence.proxy.async between them, in
 * the storing thread, in the copying thread, or in any thread between two barriers of all threads. The exact place of the fence
 * is not checked, nor are copies from global memory. A thread that waits for a copy sees its writes without a fence. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdlib.h>

void race_proxy_fence(struct watched_warp *w, uint32_t lanes)
{
	struct watched_block *b = w->block;

	EACH_LANE_OF(l, lanes)
	w->proxied[l] = w->stamp;
	if (b->proxy_pending < b->floor)
		b->proxy_pending = b->floor;
	race_next_stamp(w);
}

bool race_lacks_proxy_fence(const struct now *n, unsigned lane, const struct record *r, unsigned of_lane)
{
	const struct watched_block *b = n->w->block;
	const bool own_block = block_key(r->launch, r->block) == b->key;

	if (!n->shared || !n->site->bulk || r->site->bulk || !own_block || !(r->how & HOW_WRITES) || (n->how | r->how) & HOW_MBARRIER)
		return false;
	return r->stamp > b->proxy_floor && r->stamp > n->w->proxied[lane] && r->stamp > b->warps[r->warp].proxied[of_lane];
}

void race_copy_started(struct watched_warp *w, uint32_t record, uint32_t lanes)
{
	struct copy *grown;

	if (!record)
		return;
	for (uint32_t k = w->n_copies; k-- > 0;) {
		if (w->copies[k].record == record) {
			w->copies[k].lanes |= lanes;
			return;
		}
	}
	if (w->n_copies == w->copies_room) {
		grown = realloc(w->copies, (2 * w->copies_room + 8) * sizeof *grown);
		if (!grown)
			return;
		w->copies = grown;
		w->copies_room = 2 * w->copies_room + 8;
	}
	race_records[record].group = w->n_commits[first_lane(lanes)];
	w->copies[w->n_copies++] = (struct copy){ .record = record, .lanes = lanes, .stamp = w->stamp };
}

void race_copy_commit(struct watched_warp *w, uint32_t lanes)
{
	EACH_LANE_OF(l, lanes)
	w->n_commits[l]++;
	race_next_stamp(w);
}

/* Returns true if the record still belongs to the copy.  A record may have been freed and reused if no shadow memory refers to it. */
static bool is_current(const struct watched_warp *w, const struct copy *c)
{
	const struct record *r = &race_records[c->record];

	return r->pending && r->warp == w->index && block_key(r->launch, r->block) == w->block->key;
}

void race_copy_wait(struct watched_warp *w, const struct site *site, uint32_t lanes)
{
	uint32_t kept = 0;

	for (uint32_t k = 0; k < w->n_copies; k++) {
		struct copy *c = &w->copies[k];
		struct record *r = &race_records[c->record];
		uint32_t done = 0;

		if (!is_current(w, c))
			continue;
		EACH_LANE_OF(l, lanes & c->lanes & ~r->done)
		if (site->all_groups || r->group + site->n_groups < w->n_commits[l])
			done |= 1u << l;
		if (site->class == SITE_WAIT_READ && r->how & HOW_WRITES)
			done = 0;
		r->done |= done;
		if (done)
			r->stamp = w->stamp;
		if (c->lanes & ~r->done) {
			w->copies[kept++] = *c;
			continue;
		}
		r->pending = false;
		r->how &= (uint8_t)~HOW_ASYNC;
	}
	w->n_copies = kept;
	w->block->version++;
}
