/* barrier.c — barriers of a block: counts arrivals, completes barriers, computes the results of bar.red. */
#include <stdatomic.h>

#include "core/log.h"
#include "softcuda/exec/warp/warp_internal.h"

/* ---- barriers: PTX ISA 9.7.13.1 ------------------------------------------------------------------
 *
 * A barrier with a thread count is complete when that many threads have arrived.  When all other lanes of a warp have arrived, the
 * lanes that do not exist or have exited also count as arrived, because hardware counts whole warps.  A barrier without a count waits
 * for all threads of the block that have not exited. */

static bool barrier_is_complete(const struct block *b, const struct barrier *r)
{
	if (!r->in_use)
		return false;
	return r->expected ? r->arrived >= r->expected : r->arrived_live >= b->n_live;
}

/* Let the lanes of a waiting split continue; for bar.red, store the result in the lanes' registers. */
static void release_split(struct warp_state *s, struct split *p, const struct barrier *r)
{
	const struct insn *i = p->pc - 1;
	uint8_t *kept_bank = s->w.bank[BANK_REGS];
	uint32_t kept_mask = s->w.mask;

	s->w.bank[BANK_REGS] = p->frame->regs;
	s->w.mask = p->mask;
	if (i->op == OP_BAR_RED_POPC)
		SET_LANES(&s->w, U32(&s->w, i->d), r->popc);
	else if (i->op == OP_BAR_RED_AND || i->op == OP_BAR_RED_OR)
		*PRED(&s->w, i->d) = (*PRED(&s->w, i->d) & ~p->mask) | ((i->op == OP_BAR_RED_AND ? r->all : r->any) ? p->mask : 0);
	s->w.bank[BANK_REGS] = kept_bank;
	s->w.mask = kept_mask;
	p->state = SPLIT_READY;
}

static void complete_barrier(struct block *b, unsigned id)
{
	struct barrier *r = &b->barriers[id];

	EACH_OBSERVER(o, b->launch->machine, barrier_completes)
	o->barrier_completes(o, b, id);
	for (unsigned k = 0; k < b->n_warps; k++) {
		struct warp_state *s = &b->warps[k];

		if (!s->arrived[id])
			continue;
		s->arrived[id] = 0;
		for (unsigned n = 0; n < s->n_splits; n++)
			if (s->splits[n].state == SPLIT_BARRIER && s->splits[n].barrier == id)
				release_split(s, &s->splits[n], r);
		gpul_split_merge_released(s);
	}
	memset(r, 0, sizeof *r);
}

/* Return the lanes of mask whose operand differs from that of the first lane, in the bits that are set in `bits`. */
static uint32_t lanes_that_differ(const struct warp_state *s, opref operand, uint32_t bits, uint32_t mask)
{
	const uint32_t *value = U32(&s->w, operand), first = value[first_lane(mask)];
	uint32_t differ = 0;

	if ((operand & 3) == BANK_CONSTS) /* a constant is the same in all lanes, which is the usual case */
		return 0;
	for (unsigned l = 0; l < LANES; l++)
		differ |= (uint32_t)((value[l] & bits) != (first & bits)) << l;
	return differ & mask;
}

/* Move lanes whose barrier or thread count differs from that of the first lane to another split, which executes the instruction later. */
static void leave_other_lanes(struct warp_state *s, struct split *me, const struct insn *i)
{
	uint32_t others = lanes_that_differ(s, i->a, CLUSTER_BARRIER - 1, me->mask);

	others |= i->n ? lanes_that_differ(s, i->b, UINT32_MAX, me->mask) : 0;

	if (!others)
		return;
	me->mask &= ~others;
	s->n_instructions -= count_lanes(others); /* these lanes execute the instruction again, which counts it again */
	gpul_split_add(s, me->frame, i, others);
}

/* Return the number of the barrier that an instruction uses.  PTX ISA 9.7.13.1: the barriers of a block have the numbers 0 to 15.
 * ptxas rejects other constants; if the number is in a register, an H200 uses its lower four bits. */
static unsigned barrier_number(uint32_t number)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (number >= CLUSTER_BARRIER && !atomic_flag_test_and_set(&told))
		gpul_log(GPUL_LOG_NOTICE, "softcuda",
			 "a kernel uses barrier %u: the barriers of a block have the numbers 0 to %d, and a GPU uses "
			 "the lower four bits, barrier %u",
			 number, CLUSTER_BARRIER - 1, number % CLUSTER_BARRIER);
	return number % CLUSTER_BARRIER;
}

/* Count the lanes of the current split, which has executed a barrier instruction, as arrived; unless it is bar.arrive, they wait. */
void gpul_barrier_arrive(struct warp_state *s)
{
	struct split *me = &s->splits[s->current];
	const struct insn *i = me->pc - 1;
	unsigned lane = first_lane(me->mask), id;
	struct barrier *r;
	uint32_t yes;

	id = i->op == OP_BAR_CLUSTER ? CLUSTER_BARRIER : barrier_number(U32(&s->w, i->a)[lane]);
	leave_other_lanes(s, me, i);
	r = &s->block->barriers[id];
	if (!r->in_use)
		*r = (struct barrier){ .in_use = true, .all = true, .expected = i->n ? U32(&s->w, i->b)[lane] : 0 };
	if (i->op == OP_BAR_RED_POPC || i->op == OP_BAR_RED_AND || i->op == OP_BAR_RED_OR) {
		yes = *PRED(&s->w, i->c) & me->mask;
		r->popc += count_lanes(yes);
		r->any = r->any || yes;
		r->all = r->all && yes == me->mask;
	}
	r->arrived += count_lanes(me->mask);
	r->arrived_live += count_lanes(me->mask);
	s->arrived[id] |= me->mask;
	if (!(s->w.live & ~s->arrived[id]))
		r->arrived += LANES - count_lanes(s->arrived[id]);
	if (i->op != OP_BAR_ARRIVE) {
		me->state = SPLIT_BARRIER;
		me->barrier = (uint8_t)id;
	}
	if (barrier_is_complete(s->block, r))
		complete_barrier(s->block, id);
}

void gpul_block_lanes_ended(struct warp_state *s, uint32_t lanes)
{
	struct block *b = s->block;

	b->n_live -= count_lanes(lanes);
	if (b->cluster)
		gpul_cluster_lanes_ended(s, lanes);
	for (unsigned id = 0; id < N_BARRIERS; id++) {
		struct barrier *r = &b->barriers[id];

		if (!r->in_use)
			continue;
		if (s->arrived[id] && (lanes & ~s->arrived[id]) && !(s->w.live & ~s->arrived[id]))
			r->arrived += LANES - count_lanes(s->arrived[id]);
		if (barrier_is_complete(b, r))
			complete_barrier(b, id);
	}
}
