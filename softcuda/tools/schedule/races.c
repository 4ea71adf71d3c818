/* races.c — computes happens-before between steps, and finds conflicting pairs of steps whose order can be reversed.
 *
 * Dynamic partial-order reduction (C. Flanagan, P. Godefroid, POPL 2005): if two steps conflict and the earlier one does not happen
 * before the later one, the later step could also have come first. So the split that made the later step (a group of lanes of a warp
 * that run together) is recorded at the earlier step as another choice that the search must try there. Happens-before follows from
 * each lane's program order, from conflicts, from barriers and from *.sync. */
#include "softcuda/tools/schedule/schedule_internal.h"

#include <stdlib.h>

uint64_t *gpul_known_of(struct explorer *x, uint32_t block, uint32_t warp, unsigned lane)
{
	const uint64_t warps = (x->launch->block[0] * (uint64_t)x->launch->block[1] * x->launch->block[2] + LANES - 1) / LANES;

	return x->known + ((block * warps + warp) * LANES + lane) * KNOWN_WORDS;
}

static void join(uint64_t *to, const uint64_t *from, unsigned n_steps)
{
	for (unsigned k = 0; k <= n_steps / 64; k++)
		to[k] |= from[k];
}

static bool contains(const uint64_t *set, unsigned step)
{
	return set[step / 64] >> step % 64 & 1;
}

static void add(uint64_t *set, unsigned step)
{
	set[step / 64] |= UINT64_C(1) << step % 64;
}

static bool same_lanes(const struct entity *a, const struct entity *b)
{
	return a->block == b->block && a->warp == b->warp && a->lanes & b->lanes;
}

static void want(struct choice *c, const struct entity *early, const struct entity *late)
{
	if (c->done || c->wanted)
		return;
	c->wanted = true;
	c->pair = malloc(2 * sizeof *c->pair);
	if (!c->pair)
		return;
	c->pair[0] = *early;
	c->pair[1] = *late;
	c->pair[0].footprint = c->pair[1].footprint = (struct footprint){ 0 };
}

/* Mark a split (group of lanes) as a choice to try at step `early`, so that the access of step `late` can come before it. */
static void want_earlier(struct explorer *x, unsigned early, unsigned late, const uint64_t *before_late)
{
	struct step *at = &x->step[early];
	const struct entity *early_one = &at->choice[at->chosen].who, *late_one = &x->step[late].choice[x->step[late].chosen].who;

	for (unsigned c = 0; c < at->n_choices; c++)
		if (!at->choice[c].waits && same_lanes(&at->choice[c].who, late_one)) {
			want(&at->choice[c], early_one, late_one);
			return;
		}
	for (unsigned k = early + 1; k < late; k++) {
		const struct step *between = &x->step[k];

		if (!contains(before_late, k))
			continue;
		for (unsigned c = 0; c < at->n_choices; c++)
			if (!at->choice[c].waits && c != at->chosen &&
			    same_lanes(&at->choice[c].who, &between->choice[between->chosen].who)) {
				want(&at->choice[c], early_one, late_one);
				return;
			}
	}
	for (unsigned c = 0; c < at->n_choices; c++)
		if (!at->choice[c].waits && c != at->chosen)
			want(&at->choice[c], early_one, late_one);
}

void gpul_races_find(struct explorer *x, unsigned step)
{
	struct step *s = &x->step[step];
	const struct entity *who = &s->choice[s->chosen].who;

	s->before = s->before ? s->before : malloc(KNOWN_WORDS * sizeof *s->before);
	if (!s->before) {
		x->why_not = "memory ran out";
		return;
	}
	memset(s->before, 0, (step / 64 + 1) * sizeof *s->before);
	EACH_LANE_OF(l, who->lanes)
	join(s->before, gpul_known_of(x, who->block, who->warp, l), step);
	for (unsigned k = step; k--;) {
		const struct step *earlier = &x->step[k];

		if (!gpul_footprints_conflict(&earlier->executed, &s->executed))
			continue;
		if (!contains(s->before, k) && !same_lanes(&earlier->choice[earlier->chosen].who, who))
			want_earlier(x, k, step, s->before);
		join(s->before, earlier->before, k);
		add(s->before, k);
	}
	EACH_LANE_OF(l, who->lanes)
	{
		uint64_t *known = gpul_known_of(x, who->block, who->warp, l);

		join(known, s->before, step);
		add(known, step);
	}
}

void gpul_known_join(struct explorer *x, const struct block *b, const uint32_t lanes[], unsigned n_warps)
{
	const uint32_t block = (uint32_t)gpul_block_number(b);
	uint64_t all[KNOWN_WORDS];

	memset(all, 0, (x->depth / 64 + 1) * sizeof *all);
	for (unsigned w = 0; w < n_warps; w++)
		EACH_LANE_OF(l, lanes[w])
	join(all, gpul_known_of(x, block, w, l), x->depth);
	for (unsigned w = 0; w < n_warps; w++)
		EACH_LANE_OF(l, lanes[w])
	memcpy(gpul_known_of(x, block, w, l), all, (x->depth / 64 + 1) * sizeof *all);
}
