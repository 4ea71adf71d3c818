/* run_control.c — handlers of control flow: guards, branches, calls, exit, barriers, fences, clocks. */
#include "softcuda/exec/run/run_internal.h"

#include "core/clock.h"
#include "softcuda/exec/shown_name_internal.h"

HANDLER(GUARD)
{
	uint32_t mask = w->mask, on = mask & *PRED(w, i->guard);
	const struct insn *next = i + 1;

	if (on) {
		w->mask = on;
		next = i->inner(w, i);
		w->mask = mask;
	}
	return next;
}

HANDLER(GUARD_NOT)
{
	uint32_t mask = w->mask, on = mask & ~*PRED(w, i->guard);
	const struct insn *next = i + 1;

	if (on) {
		w->mask = on;
		next = i->inner(w, i);
		w->mask = mask;
	}
	return next;
}

HANDLER(NOP)
{
	(void)w;
	return i + 1;
}

static inline const struct insn *jump_to(struct warp_state *s, const struct insn *i, const struct insn *target)
{
	count_run(s, i, target);
	if (target <= i && --s->back_edges < 0)
		return raise_event(s, EVENT_YIELD, target);
	if (target > s->limit || target <= s->floor)
		return raise_event(s, EVENT_SWITCH, target);
	return target;
}

HANDLER(BRA)
{
	return jump_to(state_of(w), i, i->target);
}

/* Let the lanes of mask `take` branch to the target, and the other active lanes continue after the branch. */
static inline const struct insn *branch_if(struct warp_state *s, const struct insn *i, uint32_t take)
{
	if (take == s->w.mask)
		return jump_to(s, i, i->target);
	if (!take || i->target == i + 1)
		return i + 1;
	return gpul_split_diverge(s, i, i->target, take);
}

HANDLER(BRA_IF)
{
	return branch_if(state_of(w), i, w->mask & *PRED(w, i->guard));
}

HANDLER(BRA_IFNOT)
{
	return branch_if(state_of(w), i, w->mask & ~*PRED(w, i->guard));
}

HANDLER(BRX)
{
	struct warp_state *s = state_of(w);
	const struct branch_table *t = i->object;
	const uint32_t *index = U32(w, i->a);
	const struct insn *target[LANES];
	struct frame *frame[LANES];
	const struct insn *first = NULL;
	bool same = true;

	EACH_ACTIVE(l, w)
	{
		if (index[l] >= t->n_targets)
			return gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_INSTRUCTION, l,
					       "brx.idx: the index is %u, but the table has only %u targets", index[l], t->n_targets);
		target[l] = t->targets[index[l]];
		frame[l] = s->frame;
		first = first ? first : target[l];
		same = same && target[l] == first;
	}
	if (same)
		return jump_to(s, i, first);
	count_run(s, i, i + 1);
	return gpul_split_scatter(s, target, frame);
}

HANDLER(EXIT)
{
	count_run(state_of(w), i, i + 1);
	return gpul_split_exit(state_of(w));
}

HANDLER(RET)
{
	return gpul_call_return(state_of(w), i);
}

HANDLER(CALL)
{
	const struct call_site *site = i->object;

	return gpul_call(state_of(w), i, site->callee);
}

HANDLER(CALL_POINTER)
{
	return gpul_call_pointer(state_of(w), i);
}

HANDLER(CALL_BUILTIN)
{
	return gpul_call_builtin(state_of(w), i);
}

HANDLER(TRAP)
{
	return gpul_fault_text(state_of(w), i, GPUL_EXEC_TRAP, first_lane(w->mask), "%s",
			       i->n ? "brkpt: no debugger is attached" : "trap executed");
}

/* The handler of an instruction that is not implemented, in a function that was called through a pointer (decode/decode_reach.c). */
HANDLER(REFUSED)
{
	struct warp_state *s = state_of(w);
	char name[64];

	return gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_INSTRUCTION, first_lane(w->mask),
			       "%s, in %s, which is called through a pointer; run this on a GPU, or avoid the call",
			       (const char *)i->object,
			       gpul_shown_name(gpul_ptx_name(s->frame->code->program->module, s->frame->code->ptx->name), name,
					       sizeof name));
}

/* A warp measures only one sleep at a time.  A second sleep, of diverged lanes, and a short sleep only let other warps run, which
 * takes about SHORT_SLEEP_NS.  PTX allows any duration from 0 to twice the operand. */
HANDLER(NANOSLEEP)
{
	enum { SHORT_SLEEP_NS = 1000, MOST_SLEEP_NS = 1000000 };
	struct warp_state *s = state_of(w);
	uint32_t ns = 0;
	uint64_t now;

	s->block->polls = true;
	EACH_ACTIVE(l, w)
	ns = U32(w, i->a)[l] > ns ? U32(w, i->a)[l] : ns;
	if (ns <= SHORT_SLEEP_NS)
		return raise_event(s, EVENT_YIELD, i + 1);
	now = gpul_clock_ns();
	if (s->sleep_at == i && s->sleep_lanes == w->mask) {
		if (now < s->sleep_end_ns)
			return raise_event(s, EVENT_YIELD, i);
		s->sleep_at = NULL;
		return i + 1;
	}
	if (s->sleep_at && now < s->sleep_end_ns)
		return raise_event(s, EVENT_YIELD, i + 1);
	s->sleep_at = i;
	s->sleep_lanes = w->mask;
	s->sleep_end_ns = now + (ns < MOST_SLEEP_NS ? ns : MOST_SLEEP_NS);
	return raise_event(s, EVENT_YIELD, i);
}

/* Stop the lanes at a barrier: gpul_barrier_arrive() then reads the operands of i, counts the arrival, and makes the lanes wait. */
static const struct insn *stop_at_barrier(struct warp *w, const struct insn *i)
{
	return raise_event(state_of(w), EVENT_BARRIER, i + 1);
}

HANDLER(BAR_SYNC)
{
	return stop_at_barrier(w, i);
}

/* barrier.cluster.wait: in a cluster of several blocks, the lanes poll until the barrier at which they have arrived is complete. */
HANDLER(BAR_CLUSTER)
{
	struct warp_state *s = state_of(w);

	if (!s->block->cluster)
		return stop_at_barrier(w, i);
	if (!(s->arrived[CLUSTER_BARRIER] & w->mask)) {
		THREAD_FENCE(memory_order_acq_rel);
		return i + 1;
	}
	s->block->polls = true;
	return raise_event(s, EVENT_YIELD, i);
}

HANDLER(CLUSTER_ARRIVE)
{
	THREAD_FENCE(memory_order_acq_rel);
	if (state_of(w)->block->cluster)
		gpul_cluster_arrive(state_of(w), w->mask);
	return i + 1;
}

HANDLER(BAR_RED_POPC)
{
	return stop_at_barrier(w, i);
}
HANDLER(BAR_RED_AND)
{
	return stop_at_barrier(w, i);
}
HANDLER(BAR_RED_OR)
{
	return stop_at_barrier(w, i);
}
HANDLER(BAR_ARRIVE)
{
	return stop_at_barrier(w, i);
}

HANDLER(FENCE)
{
	(void)w;
	THREAD_FENCE(memory_order_acq_rel);
	return i + 1;
}

HANDLER(FENCE_SC)
{
	(void)w;
	THREAD_FENCE(memory_order_seq_cst);
	return i + 1;
}

/* Update a clock register before an instruction reads it; e: the register, n: its width in bytes.  Reading a clock counts as polling,
 * because loops that read a clock usually wait. */
HANDLER(READ_CLOCK)
{
	struct warp_state *s = state_of(w);
	uint64_t now = gpul_clock_ns();

	s->block->polls = true;
	s->back_edges -= POLL_COST;
	switch (i->e) {
	case GPUL_PTX_SREG_GLOBALTIMER:
	case GPUL_PTX_SREG_GLOBALTIMER_LO:
		now += s->block->launch->machine->globaltimer_offset;
		break;
	case GPUL_PTX_SREG_GLOBALTIMER_HI:
		now = (now + s->block->launch->machine->globaltimer_offset) >> 32;
		break;
	case GPUL_PTX_SREG_CLOCK_HI:
		now >>= 32;
		break;
	default:
		break;
	}
	if (i->n == 8)
		for (unsigned l = 0; l < LANES; l++)
			U64(w, i->d)[l] = now;
	else if (i->n == 4)
		for (unsigned l = 0; l < LANES; l++)
			U32(w, i->d)[l] = (uint32_t)now;
	else
		for (unsigned l = 0; l < LANES; l++)
			U16(w, i->d)[l] = (uint16_t)now;
	return i + 1;
}
