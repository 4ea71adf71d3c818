/* run_stack.c — handlers of alloca, stacksave and stackrestore: local memory above a frame's variables, PTX ISA 9.7.15.
 *
 * All lanes of a frame have the same top of the stack, so an alloca allocates the largest size that any lane requests in every lane. */
#include "softcuda/exec/run/run_internal.h"

static uint64_t operand_of_lane(const struct warp *w, const struct insn *i, opref r, unsigned lane)
{
	return i->n == 8 ? U64(w, r)[lane] : U32(w, r)[lane];
}

static void set_all_lanes(struct warp *w, const struct insn *i, uint64_t value)
{
	if (i->n == 8)
		SET_LANES(w, U64(w, i->d), value);
	else
		SET_LANES(w, U32(w, i->d), (uint32_t)value);
}

static uint64_t stack_top(const struct frame *f)
{
	return (uint64_t)f->local_offset + f->code->local_bytes + f->alloca_bytes;
}

HANDLER(ALLOCA)
{
	struct warp_state *s = state_of(w);
	struct frame *f = s->frame;
	const uint64_t align = (uint64_t)i->imm, at = (stack_top(f) + align - 1) & ~(align - 1);
	uint64_t most = 0;
	unsigned lane = first_lane(w->mask);

	EACH_ACTIVE(l, w)
	if (operand_of_lane(w, i, i->a, l) > most) {
		most = operand_of_lane(w, i, i->a, l);
		lane = l;
	}
	if (most > s->local_bytes || at + most > s->local_bytes)
		return gpul_fault_text(s, i, GPUL_EXEC_STACK, lane,
				       "alloca of %llu bytes: %llu of %u bytes of local memory are used already", (unsigned long long)most,
				       (unsigned long long)at, s->local_bytes);
	f->alloca_bytes = (uint32_t)((at + most + 15) & ~UINT64_C(15)) - f->local_offset - f->code->local_bytes;
	set_all_lanes(w, i, at);
	return i + 1;
}

HANDLER(STACKSAVE)
{
	set_all_lanes(w, i, stack_top(state_of(w)->frame));
	return i + 1;
}

/* The memory is freed only if all lanes of the call execute stackrestore together, because the other lanes may still use their
 * memory; if the lanes have diverged, it is freed when the function returns. */
HANDLER(STACKRESTORE)
{
	struct frame *f = state_of(w)->frame;
	const uint64_t base = (uint64_t)f->local_offset + f->code->local_bytes;
	uint64_t top = 0;

	EACH_ACTIVE(l, w)
	if (operand_of_lane(w, i, i->a, l) > top)
		top = operand_of_lane(w, i, i->a, l);
	if ((f->lanes ? f->lanes : w->live) == w->mask && top >= base && top <= stack_top(f))
		f->alloca_bytes = (uint32_t)(top - base);
	return i + 1;
}
