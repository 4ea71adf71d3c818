/* schedule_replay.c — converts a schedule to a string and back.  The string lists the steps that deviate from the default order.
 *
 *     LAUNCH/STEP-BLOCK.WARP.LANE/...     all numbers count from 0; LANE is the split's first lane */
#include "softcuda/tools/schedule/schedule_internal.h"

#include <stdio.h>

int gpul_default_choice(const struct step *step, const struct step *last, bool avoid_sleepers)
{
	const struct entity *previous = last ? &last->choice[last->chosen].who : NULL;
	int first = -1;

	for (unsigned c = 0; c < step->n_choices; c++) {
		const struct choice *k = &step->choice[c];

		if (k->waits || (avoid_sleepers && k->asleep))
			continue;
		if (previous && k->who.block == previous->block && k->who.warp == previous->warp && k->who.lanes & previous->lanes)
			return (int)c;
		first = first < 0 ? (int)c : first;
	}
	return first;
}

void gpul_schedule_print(const struct explorer *x, char *buf, size_t bytes)
{
	size_t used = 0;

	*buf = '\0';
	for (unsigned k = 0; k < x->n_steps && used < bytes; k++) {
		const struct step *s = &x->step[k];
		const struct entity *e = &s->choice[s->chosen].who;

		if ((int)s->chosen != gpul_default_choice(s, k ? s - 1 : NULL, false))
			used += (size_t)snprintf(buf + used, bytes - used, "/%u-%u.%u.%u", k, e->block, e->warp, first_lane(e->lanes));
	}
}

bool gpul_schedule_parse(const char *text, struct explorer *x)
{
	unsigned long long launch;
	int used;

	if (sscanf(text, "%llu%n", &launch, &used) != 1)
		return false;
	x->replayed_launch = launch;
	for (text += used; *text; text += used) {
		struct deviation *d = &x->deviation[x->n_deviations];

		if (x->n_deviations == MAX_DEVIATIONS ||
		    sscanf(text, "/%u-%u.%u.%u%n", &d->step, &d->block, &d->warp, &d->lane, &used) != 4 || d->lane >= LANES)
			return false;
		x->n_deviations++;
	}
	return true;
}
