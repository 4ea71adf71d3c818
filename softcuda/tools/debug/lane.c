/* lane.c — splits a command into words and finds the lane that it refers to. */
#include "softcuda/tools/debug/command_internal.h"

#include <stdlib.h>

gpul_status gpul_debug_usage(const struct call *c, const char *usage)
{
	return gpul_fail(c->err, GPUL_EINVAL, 0, "%s needs: %s", c->word[0], usage);
}

uint64_t gpul_debug_number(const struct call *c, unsigned k)
{
	return k < c->n ? strtoull(c->word[k], NULL, 0) : 0;
}

void gpul_debug_print_text(FILE *out, const char *text)
{
	for (; *text; text++)
		putc(*text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text, out);
}

/* ---- finding the lane that a command names ------------------------------------------------------------------------- */

struct split *gpul_debug_split_of(struct warp_state *s, unsigned lane)
{
	for (unsigned k = 0; k < s->n_splits; k++)
		if (s->splits[k].mask >> lane & 1)
			return &s->splits[k];
	return NULL;
}

struct block *gpul_debug_find_block(const struct debug *d, uint64_t index)
{
	for (size_t k = d->resident.n; k-- > 0;)
		if (gpul_debug_block_index(d->resident.at[k]) == index &&
		    (!d->stop.warp || d->resident.at[k]->launch == d->stop.warp->block->launch))
			return d->resident.at[k];
	return NULL;
}

/* Get the frame and instruction of a lane.  In the stopped warp, the lanes that were executing are at the instruction where it stopped. */
const struct insn *gpul_debug_lane_at(const struct debug *d, struct warp_state *s, unsigned lane, struct frame **frame, uint32_t *mask)
{
	struct split *p = gpul_debug_split_of(s, lane);

	if (s == d->stop.warp && s->w.mask >> lane & 1) {
		*frame = s->frame;
		*mask = s->w.mask;
		return d->stop.insn;
	}
	*frame = p ? p->frame : NULL;
	*mask = p ? p->mask : 0;
	return p ? p->pc : NULL;
}

gpul_status gpul_debug_find_lane(const struct call *c, struct lane *out, const struct insn **insn)
{
	struct block *b;
	struct frame *frame;
	uint32_t mask;

	if (!c->d->stop.reason)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "no kernel is stopped: pause the running kernel first");
	if (c->n < 4)
		return gpul_debug_usage(c, "block, warp, lane");
	b = gpul_debug_find_block(c->d, gpul_debug_number(c, 1));
	if (!b || gpul_debug_number(c, 2) >= b->n_warps || gpul_debug_number(c, 3) >= LANES)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "block %s, warp %s, lane %s is not running", c->word[1], c->word[2], c->word[3]);
	*out = (struct lane){ .memory = c->d->memory,
			      .warp = &b->warps[gpul_debug_number(c, 2)],
			      .index = (unsigned)gpul_debug_number(c, 3) };
	*insn = gpul_debug_lane_at(c->d, out->warp, out->index, &frame, &mask);
	for (uint64_t k = gpul_debug_number(c, 4); frame && k; k--) {
		*insn = frame->return_to - 1;
		frame = frame->parent;
	}
	out->frame = frame;
	if (!frame)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "lane %u of warp %u has ended, or has no such frame", out->index,
				 out->warp->index);
	return GPUL_OK;
}
