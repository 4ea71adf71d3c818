/* split_list.c — the splits of a warp: adds, removes and merges them.  split.c runs them. */
#include "softcuda/exec/warp/warp_internal.h"

/* Remove split k; the last split of the array moves to index k. */
void gpul_split_remove(struct warp_state *s, unsigned k)
{
	s->splits[k] = s->splits[--s->n_splits];
}

/* Add lanes to split p.  If p waits for lanes at a *.sync, it executes the *.sync again, because the new lanes may be the missing ones. */
void gpul_split_join(struct split *p, uint32_t mask)
{
	p->mask |= mask;
	if (p->state == SPLIT_SYNC)
		p->state = SPLIT_READY;
}

/* Add lanes that have left the current split to the split at this pc and frame, or, if there is none, to a new split. */
void gpul_split_add(struct warp_state *s, struct frame *frame, const struct insn *pc, uint32_t mask)
{
	for (unsigned k = 0; k < s->n_splits; k++) {
		struct split *p = &s->splits[k];

		if (k != s->current && p->pc == pc && p->frame == frame && split_can_merge(p)) {
			gpul_split_join(p, mask);
			return;
		}
	}
	s->splits[s->n_splits++] = (struct split){ .pc = pc,
						   .frame = frame,
						   .mask = mask,
						   .back_edges = s->back_edges,
						   .state = (uint8_t)(s->back_edges < 0 ? SPLIT_PASSED : SPLIT_READY) };
}

static bool have_met(const struct split *a, const struct split *b)
{
	return a->pc == b->pc && a->frame == b->frame && split_can_merge(a) && split_can_merge(b);
}

/* Move the lanes of split k to `me`. */
static void merge_split(struct warp_state *s, struct split *me, unsigned k)
{
	const struct split *p = &s->splits[k];

	if (p->state == SPLIT_SYNC || me->state == SPLIT_SYNC)
		me->state = SPLIT_READY; /* the merged split executes its *.sync again, with more lanes */
	me->mask |= p->mask;
	me->back_edges = p->back_edges < me->back_edges ? p->back_edges : me->back_edges;
	gpul_split_remove(s, k);
}

/* Merge the current split, which stopped at pc, with another split at the same pc and frame. */
void gpul_split_merge_current(struct warp_state *s)
{
	struct split *me = &s->splits[s->current];

	for (unsigned k = 0; k < s->n_splits; k++)
		if (k != s->current && have_met(me, &s->splits[k])) {
			merge_split(s, me, k);
			return;
		}
}

/* Merge the splits that waited at the same instruction for a barrier that is now complete. */
void gpul_split_merge_released(struct warp_state *s)
{
	for (unsigned k = 0; k < s->n_splits; k++)
		for (unsigned n = s->n_splits - 1; n > k; n--)
			if (have_met(&s->splits[k], &s->splits[n]))
				merge_split(s, &s->splits[k], n);
}
