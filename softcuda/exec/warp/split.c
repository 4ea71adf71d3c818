/* split.c — divergence and reconvergence: creates and schedules splits, which are groups of lanes with one pc (warp_internal.h). */
#include "softcuda/exec/warp/warp_internal.h"

/* The value of s->limit if there is no limit; no instruction has this address. */
#define NO_LIMIT ((const struct insn *)(UINTPTR_MAX & ~(uintptr_t)63))

static void set_window(struct warp_state *s)
{
	const struct split *me = &s->splits[s->current];

	s->floor = NULL;
	s->limit = NO_LIMIT;
	for (unsigned k = 0; k < s->n_splits; k++) {
		const struct split *p = &s->splits[k];

		if (k == s->current || p->frame != me->frame || !split_can_merge(p))
			continue;
		if (p->pc > me->pc && p->pc < s->limit)
			s->limit = p->pc;
		else if (p->pc <= me->pc && p->pc > s->floor)
			s->floor = p->pc;
	}
}

void gpul_split_start(struct warp_state *s, const struct insn *entry, struct frame *frame, uint32_t mask)
{
	frame->lanes = mask;
	s->n_splits = 1;
	s->current = 0;
	s->splits[0] = (struct split){ .pc = entry, .frame = frame, .mask = mask };
}

const struct insn *gpul_split_diverge(struct warp_state *s, const struct insn *i, const struct insn *target, uint32_t taken)
{
	bool forward = target > i;
	const struct insn *low = forward ? i + 1 : target, *high = forward ? target : i + 1;
	uint32_t low_mask = forward ? s->w.mask & ~taken : taken, high_mask = s->w.mask & ~low_mask;

	count_run(s, i, low);
	gpul_split_add(s, s->frame, high, high_mask);
	s->w.mask = low_mask;
	s->splits[s->current].mask = low_mask;
	if (high < s->limit)
		s->limit = high;
	if (!forward && --s->back_edges < 0)
		return raise_event(s, EVENT_YIELD, low);
	if (low > s->limit || low <= s->floor)
		return raise_event(s, EVENT_SWITCH, low);
	return low;
}

/* Let each lane of the current split continue at its own target, in its own frame. */
const struct insn *gpul_split_scatter(struct warp_state *s, const struct insn *const target[LANES], struct frame *const frame[LANES])
{
	gpul_split_remove(s, s->current);
	s->current = LANES; /* no split is current */
	s->back_edges--;    /* take one from the allowed backward branches, because a target may be before the branch */
	EACH_ACTIVE(l, &s->w)
	gpul_split_add(s, frame[l], target[l], 1u << l);
	return raise_event(s, EVENT_EXIT, s->run_start);
}

const struct insn *gpul_split_exit(struct warp_state *s)
{
	uint32_t mask = s->w.mask;

	s->w.live &= ~mask;
	gpul_frame_leave(s->block->worker, s->frame, mask);
	gpul_split_remove(s, s->current);
	for (unsigned k = 0; k < s->n_splits; k++)
		gpul_split_join(&s->splits[k], 0);
	gpul_block_lanes_ended(s, mask);
	return raise_event(s, EVENT_EXIT, s->run_start);
}

/* Select the ready split with the deepest frame, then the lowest pc.  Returns false if no split is ready. */
static bool choose_split(struct warp_state *s)
{
	const struct split *best = NULL;

	for (unsigned k = 0; k < s->n_splits; k++) {
		const struct split *p = &s->splits[k];

		if (p->state != SPLIT_READY)
			continue;
		if (!best || p->frame->depth > best->frame->depth || (p->frame->depth == best->frame->depth && p->pc < best->pc)) {
			best = p;
			s->current = k;
		}
	}
	return best;
}

static uint32_t parked_lanes(const struct warp_state *s, uint32_t need, bool any_need)
{
	uint32_t parked = 0;

	for (unsigned k = 0; k < s->n_splits; k++)
		if (s->splits[k].state == SPLIT_SYNC && (any_need || s->splits[k].need == need))
			parked |= s->splits[k].mask;
	return parked;
}

/* Let splits that wait at a *.sync continue if all lanes of their member mask wait with the same member mask, even at different *.sync
 * instructions.
 *
 * Lanes with different member masks at one instruction form one split, which waits for the lanes of all masks.  If no split can run for
 * this reason, any_need is true: splits then continue if their missing lanes wait with any member mask.  Returns false if no split can
 * continue. */
static bool release_gathered(struct warp_state *s, bool any_need)
{
	uint32_t released = 0;

	for (unsigned k = 0; k < s->n_splits; k++) {
		const struct split *p = &s->splits[k];

		if (p->state == SPLIT_SYNC && !(p->need & s->w.live & ~parked_lanes(s, p->need, any_need)))
			released |= p->mask;
	}
	for (unsigned k = 0; k < s->n_splits; k++) {
		struct split *p = &s->splits[k];

		if (p->state == SPLIT_SYNC && (p->mask & released)) {
			p->state = SPLIT_READY;
			p->released = true;
		}
	}
	return released;
}

static void run_current_split(struct warp_state *s)
{
	struct split *me = &s->splits[s->current];
	const struct insn *i = me->pc;

	s->frame = me->frame;
	s->w.mask = me->mask;
	s->w.bank[BANK_REGS] = me->frame->regs;
	s->event = EVENT_NONE;
	s->run_start = i;
	s->back_edges = me->back_edges;
	set_window(s);
	do
		i = __atomic_load_n(&i->run, __ATOMIC_RELAXED)(&s->w, i); /* atomic, because native/ may replace the handler */
	while (i != s->limit);
	if (s->event == EVENT_NONE)
		s->pc = i;
}

/* Handle the event with which the current split stopped.  Returns false after a fault, when the warp must stop. */
static bool handle_event(struct warp_state *s)
{
	struct split *me = &s->splits[s->current];

	if (s->event == EVENT_FAULT)
		return false;
	if (s->event == EVENT_EXIT)
		return true;
	s->n_instructions += count_lanes(s->w.mask) * (uint64_t)(s->pc - s->run_start);
	me->pc = s->pc;
	me->back_edges = s->back_edges;
	me->frame = s->frame;
	me->state = SPLIT_READY;
	switch (s->event) {
	case EVENT_YIELD:
		me->state = SPLIT_PASSED;
		gpul_split_merge_current(s);
		break;
	case EVENT_SYNC:
		me->state = SPLIT_SYNC;
		me->need = s->need;
		gpul_split_merge_current(s);
		release_gathered(s, false);
		break;
	case EVENT_BARRIER:
		gpul_barrier_arrive(s);
		break;
	default:
		gpul_split_merge_current(s);
		break;
	}
	return true;
}

enum warp_result gpul_warp_run(struct warp_state *s)
{
	bool passed = false;

	for (unsigned k = 0; k < s->n_splits; k++)
		s->splits[k].back_edges = (int)s->block->launch->machine->options.turn;
	do {
		while (choose_split(s)) {
			run_current_split(s);
			if (!handle_event(s))
				return WARP_FAULT;
		}
		for (unsigned k = 0; k < s->n_splits; k++)
			passed = passed || s->splits[k].state == SPLIT_PASSED;
	} while (!passed && release_gathered(s, true));
	if (!s->n_splits)
		return WARP_DONE;
	for (unsigned k = 0; k < s->n_splits; k++)
		if (s->splits[k].state == SPLIT_PASSED)
			s->splits[k].state = SPLIT_READY;
	return passed ? WARP_YIELDS : WARP_WAITS;
}
