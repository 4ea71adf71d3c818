/* race_barrier.c — follows the barriers of a block: bar.sync, bar.red and bar.arrive, with and without a number of threads.
 *
 * PTX ISA 9.0, 9.7.13.1: the accesses of a thread before its arrival happen before the later accesses of each thread that has waited.
 * Threads that have exited count as having arrived. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

static unsigned barrier_of(const struct warp_state *s, const struct insn *i, unsigned lane)
{
	return U32(&s->w, i->a)[lane] % CLUSTER_BARRIER;
}

void race_barrier_arrive(struct watched_warp *w, const struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct watched_block *b = w->block;

	race_sections_fenced(w, on, SCOPE_SYS);
	race_acquire_awaited(w, on, SCOPE_SYS);
	EACH_LANE_OF(l, on)
	{
		const unsigned id = barrier_of(s, i, l);

		race_lane_facts(w, l, &b->arrivals[id]);
		w->arrive_only[id] |= 1u << l;
	}
	race_next_stamp(w);
}

/* Merge the vector clocks of all threads of the block, which have waited at a barrier, into one clock that they share. */
static void join_block(struct watched_block *b)
{
	for (unsigned k = 0; b->any_clock && k < b->n_warps; k++) {
		for (unsigned l = 0; l < LANES; l++) {
			struct clock **c = &b->warps[k].clock[l];

			if (*c && (l == 0 || *c != b->warps[k].clock[l - 1]))
				b->shared_clock = race_clock_merged(b->shared_clock, *c, 0);
		}
		for (unsigned l = 0; l < LANES; l++) {
			race_clock_drop(b->warps[k].clock[l]);
			b->warps[k].clock[l] = NULL;
		}
	}
	b->any_clock = false;
	race_join_fences(b);
	b->proxy_floor = b->proxy_pending;
	b->floor = b->time++;
	for (unsigned k = 0; k < b->n_warps; k++)
		b->warps[k].stamp = b->time;
}

/* Add to the clock *c the accesses of the waiting lanes of a warp, and the accesses that happen before these. */
static void add_waiting(struct watched_warp *w, uint32_t waiting, uint32_t live, struct clock **c)
{
	const struct clock *last = NULL;

	if (waiting != live) {
		EACH_LANE_OF(l, waiting)
		race_lane_facts(w, l, c);
		return;
	}
	race_clock_add(c, w->block->key, WHO_WARP + w->index, w->stamp);
	EACH_LANE_OF(l, waiting)
	{
		if (w->clock[l] != last)
			race_clock_join(c, w->clock[l]);
		last = w->clock[l];
	}
}

/* Merge c into the vector clocks of the lanes.  Lanes that share a clock still share one afterwards. */
static void learn_together(struct watched_warp *w, uint32_t lanes, struct clock *c)
{
	const struct clock *old = NULL;
	struct clock *new = NULL;

	EACH_LANE_OF(l, lanes)
	{
		if (new && w->clock[l] == old) {
			race_clock_drop(w->clock[l]);
			w->clock[l] = race_clock_ref(new);
			continue;
		}
		old = w->clock[l];
		new = w->clock[l] = race_clock_merged(w->clock[l], c, 0);
	}
	race_next_stamp(w);
}

void race_barrier_completes(struct watched_block *b, unsigned id)
{
	uint32_t waiting[LANES] = { 0 }, n_waiting = 0, n_others = 0;
	struct clock *all = b->arrivals[id];

	for (unsigned k = 0; k < b->n_warps; k++) {
		struct watched_warp *w = &b->warps[k];

		waiting[k] = b->block->warps[k].arrived[id] & ~w->arrive_only[id];
		n_waiting += count_lanes(waiting[k]);
		n_others += count_lanes(w->arrive_only[id]);
		w->arrive_only[id] = 0;
		race_sections_fenced(w, waiting[k], SCOPE_SYS);
		race_acquire_awaited(w, waiting[k], SCOPE_SYS);
	}
	b->arrivals[id] = NULL;
	b->version++;
	if (n_waiting == b->block->n_live && !n_others) {
		join_block(b);
		race_clock_drop(all);
		return;
	}
	for (unsigned k = 0; k < b->n_warps; k++)
		if (waiting[k])
			add_waiting(&b->warps[k], waiting[k], b->block->warps[k].w.live, &all);
	for (unsigned k = 0; k < b->n_warps; k++)
		if (waiting[k])
			learn_together(&b->warps[k], waiting[k], all);
	b->any_clock = true;
	race_clock_drop(all);
}
