/* member.c — checks the member masks of *.sync instructions and the source lanes of shuffles.
 *
 * PTX ISA 9.0, 9.7.9.6 (shfl.sync) and the sections after it: a lane's mask must contain the lane itself; all lanes in the mask
 * that have not exited must execute the same instruction with the same mask; reading from a lane that does not
 * execute it gives an undefined value. */
#include "softcuda/tools/synccheck/synccheck_internal.h"

static bool is_shuffle(const struct insn *i)
{
	return i->op >= OP_SHFL_UP && i->op <= OP_SHFL_IDX;
}

bool gpul_sync_has_members(const struct insn *i, opref *mask)
{
	opref unused;

	mask = mask ? mask : &unused;
	if (is_shuffle(i))
		return *mask = i->e, i->n;
	if (i->op >= OP_VOTE_ALL && i->op <= OP_VOTE_BALLOT)
		return *mask = i->b, i->n;
	if (i->op >= OP_MATCH_ANY_32 && i->op <= OP_REDUX_F32)
		return *mask = i->b, true;
	return *mask = i->a, i->op == OP_ELECT || i->op == OP_BAR_WARP;
}

/* Return the lane from which lane l reads in a shuffle; l itself if the source is out of range. */
static unsigned lane_read(const struct warp_state *s, const struct insn *i, unsigned l)
{
	const uint32_t b = U32(&s->w, i->b)[l], c = U32(&s->w, i->c)[l], segment = c >> 8 & 31, move = b & 31;
	const unsigned low = l & segment, high = low | (c & 31 & ~segment);

	switch (i->op) {
	case OP_SHFL_UP:
		return (int)(l - move) >= (int)high ? l - move : l;
	case OP_SHFL_DOWN:
		return l + move <= high ? l + move : l;
	case OP_SHFL_BFLY:
		return (l ^ move) <= high ? l ^ move : l;
	default:
		return (low | (move & ~segment)) <= high ? low | (move & ~segment) : l;
	}
}

static void check_lanes_read(struct synccheck *c, struct warp_state *s, const struct insn *i, uint32_t on, const uint32_t *mask)
{
	const uint32_t exist = gpul_sync_existing(s);

	EACH_LANE_OF(l, on)
	{
		const unsigned from = lane_read(s, i, l);

		if (on >> from & mask[l] >> from & 1)
			continue;
		gpul_sync_report(c, "reads a lane that takes no part", s, i, 1u << l, "lane %u reads lane %u, which %s", l, from,
				 !(exist >> from & 1)       ? "does not exist: the block has too few threads"
				 : !(s->w.live >> from & 1) ? "has exited"
				 : !(mask[l] >> from & 1)   ? "is not in its member mask"
							    : "does not execute this instruction at the same time");
		return;
	}
}

/* Returns true if the instruction will be executed now, without waiting for more lanes. */
static bool all_have_arrived(const struct warp_state *s, uint32_t named, uint32_t on)
{
	return !(named & s->w.live & ~on) || s->splits[s->current].released;
}

/* Return the member mask of lane l, which waits in another split (group of lanes that execute together). */
static uint32_t mask_of_waiting(const struct warp_state *s, const struct split *p, unsigned l)
{
	opref operand;

	if (!gpul_sync_has_members(p->pc, &operand))
		return 0;
	if ((operand & 3) == BANK_REGS)
		return ((const uint32_t *)(const void *)(p->frame->regs + (operand & ~3u)))[l];
	return U32(&s->w, operand)[l];
}

/* The warp has let lanes of a *.sync continue because no lane could continue.  Report lanes that are in the mask of the current lanes
 * (named), but wait with another mask. */
static void check_released(struct synccheck *c, struct warp_state *s, const struct insn *i, uint32_t on, uint32_t named)
{
	const uint32_t elsewhere = named & s->w.live & ~on;
	char place[160], who[100];

	for (unsigned k = 0; k < s->n_splits; k++) {
		const struct split *p = &s->splits[k];
		const uint32_t others = p->mask & elsewhere;

		if (k == s->current || !others || !(p->state == SPLIT_SYNC || p->released) ||
		    mask_of_waiting(s, p, first_lane(others)) == named)
			continue;
		gpul_insn_place(p->frame->code, p->pc, NULL, place, sizeof place);
		gpul_sync_report(c, "different member masks", s, i, on,
				 "mask 0x%08x names %s, which wait at %s with mask 0x%08x: on a GPU, the lanes wait forever", named,
				 gpul_tool_lanes(others, who, sizeof who), place, mask_of_waiting(s, p, first_lane(others)));
		return;
	}
}

static unsigned last_lane(uint32_t mask)
{
	return 31 - (unsigned)__builtin_clz(mask);
}

/* Return the lanes that are in the member mask of another lane, but whose own mask differs from it. */
static uint32_t lanes_that_disagree(const uint32_t *mask, uint32_t on)
{
	uint32_t differ = 0;

	EACH_LANE_OF(l, on)
	for (unsigned k = 0; k < LANES; k++)
		differ |= (mask[l] & on) >> k & (uint32_t)(mask[k] != mask[l]) ? 1u << k : 0;
	return differ;
}

/* Return the lanes in `on` whose mask contains one of `members`.  The tiles of a warp (cooperative groups) have different masks. */
static uint32_t lanes_that_name(uint32_t members, const uint32_t *mask, uint32_t on)
{
	uint32_t found = 0;

	EACH_LANE_OF(l, on)
	found |= (uint32_t)((mask[l] & members) != 0) << l;
	return found;
}

void gpul_sync_before_members(struct synccheck *c, struct warp_state *s, const struct insn *i, uint32_t on)
{
	const uint32_t exist = gpul_sync_existing(s), *mask;
	uint32_t named = 0, outside = 0, differ, exited;
	bool same = true;
	char who[100];
	opref operand;

	gpul_sync_has_members(i, &operand);
	mask = U32(&s->w, operand);
	EACH_LANE_OF(l, on)
	{
		named |= mask[l];
		outside |= (uint32_t)!(mask[l] >> l & 1) << l;
		same &= mask[l] == mask[first_lane(on)];
	}
	differ = same ? 0 : lanes_that_disagree(mask, on);
	if (outside)
		gpul_sync_report(c, "lane outside of its own mask", s, i, outside, "%s %s not in the member mask 0x%08x",
				 gpul_tool_lanes(outside, who, sizeof who), outside & (outside - 1) ? "are" : "is",
				 mask[first_lane(outside)]);
	if (differ)
		gpul_sync_report(c, "different member masks", s, i, on,
				 "%s: lanes that name each other need the same mask, but lane %u has 0x%08x, lane %u 0x%08x",
				 gpul_tool_lanes(differ, who, sizeof who), first_lane(differ), mask[first_lane(differ)], last_lane(differ),
				 mask[last_lane(differ)]);
	/* If this split (group of lanes) was released early, lanes that waited with it may have exited since; that is not an error. */
	exited = named & exist & ~s->w.live;
	if (exited && !s->splits[s->current].released)
		gpul_sync_report(c, "names lanes that have exited", s, i, lanes_that_name(exited, mask, on),
				 "member mask 0x%08x: %s %s exited", mask[first_lane(lanes_that_name(exited, mask, on))],
				 gpul_tool_lanes(exited, who, sizeof who), exited & (exited - 1) ? "have" : "has");
	if (named & ~exist && named != ALL_LANES) /* __syncwarp() uses a full mask, even if some lanes do not exist */
		gpul_sync_report(c, "names lanes that do not exist", s, i, on,
				 "member mask 0x%08x: the block has %u threads, so %s do not exist", named, s->block->n_threads,
				 gpul_tool_lanes(named & ~exist, who, sizeof who));
	if (!all_have_arrived(s, named, on))
		return;
	check_released(c, s, i, on, named);
	if (is_shuffle(i) && !outside)
		check_lanes_read(c, s, i, on, mask);
}
