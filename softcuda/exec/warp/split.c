/* split.c — divergence and reconvergence: creates, schedules and merges the splits of a warp (warp_internal.h). */
#include "softcuda/exec/warp/warp_internal.h"

/* The limit of an unlimited window: not the address of any instruction. */
#define NO_LIMIT ((const struct insn *)(UINTPTR_MAX & ~(uintptr_t)63))

/* Lanes must not join a split that is already counted at a barrier, or whose *.sync was released. */
static bool can_merge(const struct split *p)
{
	return p->state != SPLIT_BARRIER && !p->released;
}

static void set_window(struct warp_state *s)
{
	const struct split *me = &s->splits[s->current];

	s->floor = NULL;
	s->limit = NO_LIMIT;
	for (unsigned k = 0; k < s->n_splits; k++) {
		const struct split *p = &s->splits[k];

		if (k == s->current || p->frame != me->frame || !can_merge(p))
			continue;
		if (p->pc > me->pc && p->pc < s->limit)
			s->limit = p->pc;
		else if (p->pc <= me->pc && p->pc > s->floor)
			s->floor = p->pc;
	}
}

void gpul_split_start(struct warp_state *s, const struct insn *entry, struct frame *frame,
		      uint32_t mask)
{
	frame->lanes = mask;
	s->n_splits = 1;
	s->current = 0;
	s->splits[0] = (struct split){ .pc = entry, .frame = frame, .mask = mask };
}

static void remove_split(struct warp_state *s, unsigned k)
{
	s->splits[k] = s->splits[--s->n_splits];
}

/* Add lanes to split p.  If p waits for lanes of its warp, it executes its instruction again: they may have arrived. */
static void join_split(struct split *p, uint32_t mask)
{
	p->mask |= mask;
	if (p->state == SPLIT_SYNC)
		p->state = SPLIT_READY;
}

/* Add the lanes of mask, which are no longer of the current split, to the split at pc, or make a split of them. */
void gpul_split_add(struct warp_state *s, struct frame *frame, const struct insn *pc, uint32_t mask)
{
	for (unsigned k = 0; k < s->n_splits; k++) {
		struct split *p = &s->splits[k];

		if (k != s->current && p->pc == pc && p->frame == frame && can_merge(p)) {
			join_split(p, mask);
			return;
		}
	}
	s->splits[s->n_splits++] = (struct split){
		.pc = pc,
		.frame = frame,
		.mask = mask,
		.back_edges = s->back_edges,
		.state = (uint8_t)(s->back_edges < 0 ? SPLIT_PASSED : SPLIT_READY)
	};
}

const struct insn *gpul_split_diverge(struct warp_state *s, const struct insn *i,
				      const struct insn *target, uint32_t taken)
{
	bool forward = target > i;
	const struct insn *low = forward ? i + 1 : target, *high = forward ? target : i + 1;
	uint32_t low_mask = forward ? s->w.mask & ~taken : taken,
		 high_mask = s->w.mask & ~low_mask;

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

/* Each lane of the current split continues at its own target, in its own frame. */
const struct insn *gpul_split_scatter(struct warp_state *s,
				      const struct insn *const target[LANES],
				      struct frame *const frame[LANES])
{
	remove_split(s, s->current);
	s->current = LANES;  /* no split is the current one */
	s->back_edges--;     /* a target may be a backward branch */
	EACH_ACTIVE(l, &s->w)
		gpul_split_add(s, frame[l], target[l], 1u << l);
	return raise_event(s, EVENT_EXIT, s->run_start);
}

const struct insn *gpul_split_exit(struct warp_state *s)
{
	uint32_t mask = s->w.mask;

	s->w.live &= ~mask;
	gpul_frame_leave(s->block->worker, s->frame, mask);
	remove_split(s, s->current);
	for (unsigned k = 0; k < s->n_splits; k++)
		join_split(&s->splits[k], 0);
	gpul_block_lanes_ended(s, mask);
	return raise_event(s, EVENT_EXIT, s->run_start);
}

/* Select the ready split with the deepest frame, then the lowest pc; false: no split is ready. */
static bool choose_split(struct warp_state *s)
{
	const struct split *best = NULL;

	for (unsigned k = 0; k < s->n_splits; k++) {
		const struct split *p = &s->splits[k];

		if (p->state != SPLIT_READY)
			continue;
		if (!best || p->frame->depth > best->frame->depth ||
		    (p->frame->depth == best->frame->depth && p->pc < best->pc)) {
			best = p;
			s->current = k;
		}
	}
	return best;
}

static bool have_met(const struct split *a, const struct split *b)
{
	return a->pc == b->pc && a->frame == b->frame && can_merge(a) && can_merge(b);
}

/* Move the lanes of split k to `me`. */
static void merge_split(struct warp_state *s, struct split *me, unsigned k)
{
	const struct split *p = &s->splits[k];

	if (p->state == SPLIT_SYNC || me->state == SPLIT_SYNC)
		me->state = SPLIT_READY;  /* executes its *.sync again, with more lanes */
	me->mask |= p->mask;
	me->back_edges = p->back_edges < me->back_edges ? p->back_edges : me->back_edges;
	remove_split(s, k);
}

/* The current split stopped at pc: merge it with another split at the same pc and frame. */
static void merge_current_split(struct warp_state *s)
{
	struct split *me = &s->splits[s->current];

	for (unsigned k = 0; k < s->n_splits; k++)
		if (k != s->current && have_met(me, &s->splits[k])) {
			merge_split(s, me, k);
			return;
		}
}

/* A barrier is complete: splits that waited at the same instruction continue as one split. */
void gpul_split_merge_released(struct warp_state *s)
{
	for (unsigned k = 0; k < s->n_splits; k++)
		for (unsigned n = s->n_splits - 1; n > k; n--)
			if (have_met(&s->splits[k], &s->splits[n]))
				merge_split(s, &s->splits[k], n);
}

static uint32_t parked_lanes(const struct warp_state *s, uint32_t need, bool any_need)
{
	uint32_t parked = 0;

	for (unsigned k = 0; k < s->n_splits; k++)
		if (s->splits[k].state == SPLIT_SYNC && (any_need || s->splits[k].need == need))
			parked |= s->splits[k].mask;
	return parked;
}

/* Release splits at a *.sync whose member lanes are all parked with the same member mask, at any *.sync instruction.
 *
 * Lanes with different member masks at one instruction form one split, which waits for the lanes of all masks.  When
 * no split can run for that reason, any_need releases splits whose lanes are parked with any mask.  False: none
 * released. */
static bool release_gathered(struct warp_state *s, bool any_need)
{
	uint32_t released = 0;

	for (unsigned k = 0; k < s->n_splits; k++) {
		const struct split *p = &s->splits[k];

		if (p->state == SPLIT_SYNC &&
		    !(p->need & s->w.live & ~parked_lanes(s, p->need, any_need)))
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
		i = i->run(&s->w, i);
	while (i != s->limit);
	if (s->event == EVENT_NONE)
		s->pc = i;
}

/* Handle the event with which the current split stopped.  False: a fault, the warp must stop. */
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
		merge_current_split(s);
		break;
	case EVENT_SYNC:
		me->state = SPLIT_SYNC;
		me->need = s->need;
		merge_current_split(s);
		release_gathered(s, false);
		break;
	case EVENT_BARRIER:
		gpul_barrier_arrive(s);
		break;
	default:
		merge_current_split(s);
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
