/* warp.c — follows synchronisation inside a warp: bar.warp.sync.
 *
 * Only bar.warp.sync orders memory accesses: it "guarantees memory ordering among participating threads" (PTX ISA 9.0, 9.7.13.4).
 * PTX promises nothing similar for shfl.sync, vote.sync, match.sync, redux.sync, elect.sync and activemask; the CUDA C++
 * Programming Guide says that these imply no memory barrier. Executing an instruction together does not order lanes. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdlib.h>

void race_warp_arrives(struct watched_warp *w, uint32_t on)
{
	const uint32_t come = on & ~w->waiting;

	if (!come)
		return;
	EACH_LANE_OF(l, come)
	w->arrived[l] = w->stamp;
	w->waiting |= come;
	race_next_stamp(w);
}

/* Merge the clocks of all lanes in `on`, which have arrived together: what happened before one lane happens before all of them. */
static void join_all(struct watched_warp *w, uint32_t on)
{
	struct clock *all = NULL;
	bool any = false;

	w->floor = w->stamp - 1;
	EACH_LANE_OF(l, on)
	any |= w->clock[l] != NULL;
	if (!any)
		return;
	EACH_LANE_OF(l, on)
	{
		all = race_clock_merged(all, w->clock[l], 0);
		race_clock_drop(w->clock[l]);
	}
	EACH_LANE_OF(l, on)
	w->clock[l] = race_clock_ref(all);
	race_clock_drop(all);
}

/* Order lane l after everything that happened before the arrivals of the lanes in `members`. */
static void join_some(struct watched_warp *w, unsigned l, uint32_t members)
{
	EACH_LANE_OF(k, members)
	{
		for (unsigned n = 0; n < LANES; n++)
			if (w->knows[l][n] < w->knows[k][n])
				w->knows[l][n] = w->knows[k][n];
		if (w->knows[l][k] < w->arrived[k])
			w->knows[l][k] = w->arrived[k];
		if (w->clock[k] && w->clock[k] != w->clock[l])
			w->clock[l] = race_clock_merged(w->clock[l], w->clock[k], 0);
	}
}

void race_warp_passes(struct watched_warp *w, const struct warp_state *s, const struct insn *i, uint32_t on)
{
	const uint32_t *members = U32(&s->w, i->a), live = s->w.live;
	uint32_t all = ALL_LANES;

	w->waiting &= ~on;
	w->block->version++;
	EACH_LANE_OF(l, on)
	all &= members[l];
	if (on == live && !(live & ~all)) {
		join_all(w, on);
		return;
	}
	if (!w->knows)
		w->knows = calloc(LANES, sizeof *w->knows);
	if (!w->knows)
		return;
	EACH_LANE_OF(l, on)
	join_some(w, l, members[l] & live);
}
