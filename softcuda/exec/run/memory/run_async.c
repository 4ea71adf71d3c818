/* run_async.c — handlers of asynchronous copies, which copy immediately, and of mbarriers in shared memory.
 *
 * All warps of a block run on one thread, so an mbarrier needs no atomic instruction. */
#include "softcuda/exec/async_internal.h"
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/warp/access_internal.h"

/* ---- mbarrier ------------------------------------------------------------------------------ */

HANDLER(MBAR_INIT)
{
	const uint32_t *count = U32(w, i->b);
	struct access x;

	if (resolve_each(state_of(w), i, 8, true, &x))
		return x.stop;
	EACH_ACTIVE(l, w)
	{
		if (!count[l] || count[l] >= COUNT_MASK)
			return gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_INSTRUCTION, l,
					       "mbarrier.init: the number of arrivals is %u; expected 1 to %u", count[l], COUNT_MASK - 1);
		*(mbarrier_word *)(uintptr_t)x.each[l] = pack_mbarrier(0, 0, count[l], count[l]);
	}
	return i + 1;
}

HANDLER(MBAR_ARRIVE)
{
	const uint32_t *count = U32(w, i->b), *bytes = U32(w, i->c);
	uint64_t *d = U64(w, i->d);
	struct access x;

	if (resolve_each(state_of(w), i, 8, true, &x))
		return x.stop;
	state_of(w)->block->progressed = true;
	EACH_ACTIVE(l, w)
	{
		mbarrier_word *m = (mbarrier_word *)(uintptr_t)x.each[l];
		const uint64_t before = *m;

		if (!update_mbarrier(i, m, count[l], bytes[l]))
			return gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_INSTRUCTION, l,
					       "mbarrier: %u arrivals, but the phase waits for only %u of %u", count[l],
					       pending_arrivals(before), expected_arrivals(before));
		d[l] = before;
	}
	return i + 1;
}

/* test_wait, try_wait: predicate d = the phase that b names has ended; b is the result of an arrive, or the phase's parity. */
HANDLER(MBAR_TEST)
{
	struct warp_state *s = state_of(w);
	uint32_t ended = 0;
	struct access x;

	if (resolve_each(s, i, 8, false, &x))
		return x.stop;
	EACH_ACTIVE(l, w)
	{
		const uint64_t now = *(mbarrier_word *)(uintptr_t)x.each[l] >> PHASE_AT;
		const uint64_t phase = i->n & MBAR_PARITY ? U32(w, i->b)[l] & 1 : U64(w, i->b)[l] >> PHASE_AT;

		ended |= (uint32_t)(now != phase) << l;
	}
	set_predicate(w, i->d, ended);
	if (!(i->n & MBAR_YIELDS) || ended == w->mask)
		return i + 1;
	s->block->polls = true;
	return raise_event(s, EVENT_YIELD, i + 1);
}

HANDLER(MBAR_PENDING)
{
	EACH_ACTIVE(l, w)
	U32(w, i->d)[l] = pending_arrivals(U64(w, i->a)[l]);
	return i + 1;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* For the active lanes, copy `bytes` bytes; `offset` is added to both addresses.  Returns NULL, or, after a fault, the handler's result. */
static const struct insn *copy_piece(struct warp_state *s, const struct async_copy *c, unsigned bytes, uint32_t offset)
{
	struct insn to = c->to, from = c->from;
	struct access write, read;

	to.imm += offset;
	from.imm += offset;
	if (resolve_each(s, &from, bytes, false, &read))
		return read.stop;
	if (resolve_each(s, &to, bytes, true, &write))
		return write.stop;
	EACH_ACTIVE(l, &s->w)
	memcpy((void *)(uintptr_t)write.each[l], (const void *)(uintptr_t)read.each[l], bytes);
	return NULL;
}

static uint32_t source_bytes_of(const struct warp *w, const struct async_copy *c, unsigned bytes, unsigned lane)
{
	uint32_t n = bytes;

	if (c->ignores)
		n = *PRED(w, c->source_bytes) >> lane & 1 ? 0 : bytes;
	else if (c->has_source_bytes)
		n = U32(w, c->source_bytes)[lane];
	return n < bytes ? n : bytes;
}

/* For one lane, copy n bytes, and zero the rest of `bytes` bytes.  Bytes are copied singly, because the source may end after n bytes. */
static const struct insn *copy_part(struct warp_state *s, const struct async_copy *c, unsigned bytes, uint32_t n)
{
	static const uint8_t zeros[16];
	const struct insn *stop = NULL;
	struct access to;

	if (resolve_each(s, &c->to, bytes, true, &to))
		return to.stop;
	memcpy((void *)(uintptr_t)to.each[first_lane(s->w.mask)], zeros, bytes);
	for (uint32_t k = 0; k < n && !stop; k++)
		stop = copy_piece(s, c, 1, k);
	return stop;
}

HANDLER(CP_ASYNC)
{
	struct warp_state *s = state_of(w);
	const struct async_copy *c = i->object;
	const uint32_t mask = w->mask;
	const struct insn *stop = NULL;
	uint32_t whole = 0;

	EACH_ACTIVE(l, w)
	whole |= (uint32_t)(source_bytes_of(w, c, i->n, l) == i->n) << l;
	w->mask = whole;
	if (whole)
		stop = copy_piece(s, c, i->n, 0);
	for (uint32_t rest = mask & ~whole; rest && !stop; rest &= rest - 1) {
		w->mask = rest & -rest;
		stop = copy_part(s, c, i->n, source_bytes_of(w, c, i->n, first_lane(rest)));
	}
	w->mask = mask;
	return stop ? stop : i + 1;
}

/* Perform complete_tx of `bytes` bytes on the copy's mbarrier, if it has one. */
static const struct insn *complete_bytes(struct warp_state *s, const struct async_copy *c, uint32_t bytes)
{
	struct access x;

	if (!c->has_barrier)
		return NULL;
	if (resolve_each(s, &c->barrier, 8, true, &x))
		return x.stop;
	update_mbarrier(&c->barrier, (mbarrier_word *)(uintptr_t)x.each[first_lane(s->w.mask)], 0, bytes);
	s->block->progressed = true;
	return NULL;
}

static const struct insn *bulk_copy(struct warp_state *s, const struct async_copy *c, uint32_t bytes)
{
	for (uint32_t k = 0; k < bytes; k += 16) {
		const struct insn *stop = copy_piece(s, c, 16, k);

		if (stop)
			return stop;
	}
	return complete_bytes(s, c, bytes);
}

/* cp.reduce for one lane: apply the atomic operation to each element of the destination, with the element of the source as operand. */
static const struct insn *bulk_reduce(struct warp_state *s, const struct async_copy *c, uint32_t bytes)
{
	const unsigned lane = first_lane(s->w.mask), n = c->element_bytes;
	uint8_t *value = (uint8_t *)opptr(&s->w, c->step.b) + lane * n;
	struct access x;

	for (uint32_t k = 0; k < bytes; k += n) {
		struct insn from = c->from, step = c->step;

		from.imm += k;
		step.imm += k;
		if (resolve_each(s, &from, n, false, &x))
			return x.stop;
		memcpy(value, (const void *)(uintptr_t)x.each[lane], n);
		if (step.run(&s->w, &step) != &step + 1)
			return s->limit;
	}
	return complete_bytes(s, c, bytes);
}

static const struct insn *run_bulk(struct warp *w, const struct insn *i,
				   const struct insn *(*one_lane)(struct warp_state *, const struct async_copy *, uint32_t))
{
	const struct async_copy *c = i->object;
	const uint32_t mask = w->mask;
	const struct insn *stop = NULL;

	for (uint32_t rest = mask; rest && !stop; rest &= rest - 1) {
		unsigned lane = first_lane(rest);
		uint32_t bytes = U32(w, c->source_bytes)[lane];

		w->mask = rest & -rest;
		if (bytes % 16)
			stop = gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_INSTRUCTION, lane,
					       "cp.async.bulk: the size of %u bytes is not a multiple of 16", bytes);
		else
			stop = one_lane(state_of(w), c, bytes);
	}
	w->mask = mask;
	return stop ? stop : i + 1;
}

HANDLER(CP_BULK)
{
	return run_bulk(w, i, bulk_copy);
}

/* For one lane: copy the bytes to the same offset in the shared memory of each block of the mask, and perform complete_tx there. */
static const struct insn *bulk_multicast(struct warp_state *s, const struct async_copy *c, uint32_t bytes)
{
	const unsigned lane = first_lane(s->w.mask);
	const struct cluster *all = s->block->cluster;
	const uint32_t offset_bits = (1u << CLUSTER_RANK_AT) - 1, to = (uint32_t)lane_address(s, &c->to, lane) & offset_bits;
	const uint32_t barrier = (uint32_t)lane_address(s, &c->barrier, lane) & offset_bits;

	for (uint32_t ranks = U16(&s->w, c->ranks)[lane]; ranks; ranks &= ranks - 1) {
		const unsigned rank = first_lane(ranks);
		struct block *b = !all ? (rank ? NULL : s->block) : rank < all->n_blocks ? all->block[rank] : NULL;

		if (!b)
			continue;
		if (to % 16 || barrier % 8 || to > b->shared_bytes || bytes > b->shared_bytes - to || barrier + 8 > b->shared_bytes)
			return gpul_fault_text(
				s, &c->to, to % 16 || barrier % 8 ? GPUL_EXEC_MISALIGNED : GPUL_EXEC_ILLEGAL_ADDRESS, lane,
				"invalid bulk copy of %u bytes to 0x%x of shared memory, which has %u bytes, with an mbarrier "
				"at 0x%x: both must be in bounds, at multiples of 16 and 8",
				bytes, to, b->shared_bytes, barrier);
		for (uint32_t k = 0; k < bytes; k += 16) {
			struct insn from = c->from;
			struct access x;

			from.imm += k;
			if (resolve_each(s, &from, 16, false, &x))
				return x.stop;
			memcpy(b->shared + to + k, (const void *)(uintptr_t)x.each[lane], 16);
		}
		update_mbarrier(&c->barrier, (mbarrier_word *)(void *)(b->shared + barrier), 0, bytes);
	}
	s->block->progressed = true;
	return NULL;
}

HANDLER(CP_MULTICAST)
{
	return run_bulk(w, i, bulk_multicast);
}

HANDLER(CP_REDUCE)
{
	return run_bulk(w, i, bulk_reduce);
}
