/* observe.c — calls the observers of an instruction (observer_internal.h), and defines functions with which they examine it. */
#include "softcuda/exec/warp/observe_internal.h"

uint32_t gpul_insn_lanes(const struct warp_state *s, const struct insn *i, uint32_t mask)
{
	if (!i->inner) /* no guard, or the branch that decoding inserts before a guarded instruction: all lanes execute it */
		return mask;
	return mask & (s->frame->code->ptx->insts[i->src].guard_negated ? ~*PRED(&s->w, i->guard) : *PRED(&s->w, i->guard));
}

/* The handler of all instructions that an observer wants: call the observers, and the instruction's own handler. */
const struct insn *gpul_observed(struct warp *w, const struct insn *i)
{
	struct warp_state *s = state_of(w);
	const struct func_code *code = s->frame->code;
	const struct observed_insn *row = &code->observed[i - code->insns];
	struct observer *first = gpul_exec_memory_observers(s->block->launch->machine->memory);
	const uint32_t on = gpul_insn_lanes(s, i, w->mask);
	enum observed wish = OBSERVED_RUN;
	const struct insn *next;
	bool waits;

	for (struct observer *o = first; o; o = o->next) {
		if (row->observers & o->bit && o->before) {
			const enum observed mine = o->before(o, s, i, on);

			wish = mine > wish ? mine : wish;
			if (mine == OBSERVED_YIELD && o->yields)
				break;
		}
	}
	if (wish == OBSERVED_SKIP)
		return i + 1;
	if (wish == OBSERVED_YIELD)
		return raise_event(s, EVENT_YIELD, i);
	if (wish == OBSERVED_FAULT)
		return s->limit;
	next = row->run(w, i);
	waits = s->event == EVENT_SYNC && s->pc == i;
	for (struct observer *o = first; o; o = o->next)
		if (row->observers & o->bit && o->after)
			o->after(o, s, i, on, waits);
	return next;
}

const void *gpul_warp_register(const struct warp_state *s, const struct frame *f, uint32_t flat, unsigned *bytes)
{
	const bool of_module = flat < f->code->ptx->n_module_regs;
	const uint32_t offset = of_module ? f->code->program->module_reg_offset[flat] : f->code->reg_offset[flat];
	const unsigned size = gpul_ptx_type_bytes(gpul_ptx_reg_row(f->code->ptx, flat)->type);

	*bytes = size == 1 ? 2 : size; /* an 8-bit type is in a 16-bit register */
	return offset == UINT32_MAX ? NULL : (of_module ? s->w.bank[BANK_SPECIALS] : f->regs) + offset;
}

const gpul_ptx_inst *gpul_insn_ptx(const struct func_code *code, const struct insn *i)
{
	return i->src < code->ptx->n_insts ? &code->ptx->insts[i->src] : NULL;
}

bool gpul_insn_begins(const struct func_code *code, const struct insn *i)
{
	return i == code->insns || i[-1].src != i->src;
}

bool gpul_insn_ends(const struct func_code *code, const struct insn *i)
{
	return i + 1 == code->insns + code->n_insns || i[1].src != i->src;
}
