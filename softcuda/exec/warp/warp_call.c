/* warp_call.c — calls and returns.  Lanes that make the same call share one frame; arguments and results are copied between frames. */
#include "softcuda/exec/warp/warp_internal.h"

enum { MAX_DEPTH = 4096 };

/* Return the host address of one lane's argument in frame f, or of its element e if it is a vector register. */
static uint8_t *argument_address(const struct warp_state *s, const struct frame *f, const struct call_argument *a, unsigned e,
				 unsigned lane)
{
	const opref reg = a->regs.at[e], bank = reg & 3;

	if (!a->in_register)
		return s->local + lane * s->local_stride + f->local_offset + a->slot.offset;
	return (bank == BANK_REGS ? f->regs : s->w.bank[bank]) + (reg & ~3u) + lane * (a->slot.bytes > 8 ? 8 : a->slot.bytes);
}

/* Return the distance from the low to the high half of a 16-byte argument: a .b128 register has the low halves of all lanes first. */
static ptrdiff_t high_half(const struct call_argument *a)
{
	return a->in_register ? LANES * 8 : 8;
}

/* Copy a predicate argument, whose register is one word with a bit for each lane. */
static void copy_predicate(const struct warp_state *s, uint32_t mask, const struct frame *to_frame, const struct call_argument *to,
			   const struct frame *from_frame, const struct call_argument *from)
{
	uint32_t *t = (uint32_t *)(void *)argument_address(s, to_frame, to, 0, 0);
	const uint32_t *f = (const uint32_t *)(const void *)argument_address(s, from_frame, from, 0, 0);

	*t = (*t & ~mask) | (*f & mask);
}

static bool is_predicate(const struct call_argument *a)
{
	return a->in_register && !a->slot.bytes;
}

/* Copy element e of an argument for the lanes of mask; in both frames, consecutive lanes' elements have a constant distance. */
static void copy_element(const struct warp_state *s, uint32_t mask, const struct frame *to_frame, const struct call_argument *to,
			 const struct frame *from_frame, const struct call_argument *from, unsigned e)
{
	const uint32_t bytes = to->slot.bytes < from->slot.bytes ? to->slot.bytes : from->slot.bytes;
	uint8_t *t = argument_address(s, to_frame, to, e, 0);
	const uint8_t *f = argument_address(s, from_frame, from, e, 0);
	const ptrdiff_t t_step = argument_address(s, to_frame, to, e, 1) - t, f_step = argument_address(s, from_frame, from, e, 1) - f;

	const bool halves = bytes == 16 && (to->in_register || from->in_register);

	EACH_LANE_OF(l, mask)
	{
		if (halves)
			memcpy(t + l * t_step + high_half(to), f + l * f_step + high_half(from), 8);
		if (halves || bytes == 8)
			memcpy(t + l * t_step, f + l * f_step, 8);
		else if (bytes == 4)
			memcpy(t + l * t_step, f + l * f_step, 4);
		else
			memcpy(t + l * t_step, f + l * f_step, bytes);
	}
}

static void copy_argument(const struct warp_state *s, uint32_t mask, const struct frame *to_frame, const struct call_argument *to,
			  const struct frame *from_frame, const struct call_argument *from)
{
	unsigned e = 0;

	if (is_predicate(to) && is_predicate(from)) {
		copy_predicate(s, mask, to_frame, to, from_frame, from);
		return;
	}
	do
		copy_element(s, mask, to_frame, to, from_frame, from, e);
	while (++e < to->regs.n && e < from->regs.n);
}

static struct call_argument parameter_of(const struct local_slot *slots, const struct vector_regs *regs, uint32_t n)
{
	return (struct call_argument){ .in_register = slots[n].offset == UINT32_MAX, .slot = slots[n], .regs = regs[n] };
}

/* Return the frame in which other lanes already execute this call; NULL if there is none.  Lanes that make the call later join that
 * frame, so that they can reconverge with the others inside the function, as shuffles in it require. */
static struct frame *frame_of_same_call(const struct warp_state *s, const struct insn *i, const struct func_code *callee)
{
	for (unsigned k = 0; s->n_splits > 1 && k < s->n_splits; k++)
		for (struct frame *f = s->splits[k].frame; f; f = f->parent)
			if (f->parent == s->frame && f->return_to == i + 1 && f->code == callee)
				return f;
	return NULL;
}

static void pass_arguments(const struct warp_state *s, struct frame *f, uint32_t mask)
{
	for (uint32_t n = 0; n < f->site->n_args && n < f->code->ptx->n_params; n++) {
		struct call_argument to = parameter_of(f->code->params, f->code->param_regs, n);

		copy_argument(s, mask, f, &to, f->parent, &f->site->args[n]);
	}
}

/* Create a frame for the lanes of mask, or join an existing one, and copy the arguments.  Returns NULL after a fault. */
static struct frame *enter_function(struct warp_state *s, const struct insn *i, const struct func_code *callee, uint32_t mask)
{
	struct frame *parent = s->frame, *f = frame_of_same_call(s, i, callee);
	uint64_t offset = parent->local_offset + (uint64_t)parent->code->local_bytes + parent->alloca_bytes;

	if (f) {
		f->lanes |= mask;
		pass_arguments(s, f, mask);
		return f;
	}
	if (offset + callee->local_bytes > s->local_bytes || parent->depth >= MAX_DEPTH) {
		gpul_fault_text(s, i, GPUL_EXEC_STACK, first_lane(mask),
				"call stack too deep: %u calls use %llu of %u bytes of local memory", parent->depth,
				(unsigned long long)offset, s->local_bytes);
		return NULL;
	}
	f = gpul_frame_create(s->block->worker, callee);
	if (!f) {
		gpul_fault_text(s, i, GPUL_EXEC_NO_MEMORY, first_lane(mask), "no memory for a call's registers");
		return NULL;
	}
	f->parent = parent;
	f->site = i->object;
	f->return_to = i + 1;
	f->lanes = mask;
	f->local_offset = (uint32_t)offset;
	f->depth = parent->depth + 1;
	pass_arguments(s, f, mask);
	return f;
}

const struct insn *gpul_call(struct warp_state *s, const struct insn *i, const struct func_code *callee)
{
	struct frame *f = enter_function(s, i, callee, s->w.mask);

	if (!f)
		return s->limit;
	count_run(s, i, callee->insns);
	s->splits[s->current].frame = s->frame = f;
	s->splits[s->current].pc = callee->insns;
	s->w.bank[BANK_REGS] = f->regs;
	if (s->n_splits > 1)
		return raise_event(s, EVENT_SWITCH, callee->insns);
	return callee->insns;
}

/* Return the device function to which a pointer refers, after decoding it if necessary.  Returns NULL after a fault of instruction i. */
static const struct func_code *function_at(struct warp_state *s, const struct insn *i, uint64_t pointer, unsigned lane)
{
	const struct gpul_exec_program *p = s->frame->code->program;
	uint64_t offset = pointer - (uintptr_t)p->code;
	struct func_code *code = NULL;
	gpul_error err = { 0 };

	if (offset < p->n_code * sizeof *code && offset % sizeof *code == 0)
		code = &p->code[offset / sizeof *code];
	if (!code || !code->ptx->has_body || code->ptx->kind != GPUL_PTX_FUNC_DEVICE) {
		gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_INSTRUCTION, lane, "call of 0x%llx, which is not a function of this module",
				(unsigned long long)pointer);
		return NULL;
	}
	if (p->need && p->need(code, &err)) {
		gpul_fault_text(s, i, err.status == GPUL_ENOMEM ? GPUL_EXEC_NO_MEMORY : GPUL_EXEC_ILLEGAL_INSTRUCTION, lane,
				"call of a function that cannot be decoded: %.200s", err.text);
		return NULL;
	}
	if (p->need)
		gpul_specials_add(s->block);
	return code;
}

/* After a fault in a call, remove lanes from the frames that they have entered, and free the frames that have no lanes left. */
static const struct insn *abandon_frames(struct warp_state *s, struct frame *const frame[LANES], uint32_t entered)
{
	EACH_LANE_OF(l, entered)
	{
		struct frame *f = frame[l];

		f->lanes &= ~(1u << l);
		if (!f->lanes)
			gpul_frame_free(s->block->worker, f);
	}
	return s->limit;
}

const struct insn *gpul_call_pointer(struct warp_state *s, const struct insn *i)
{
	const uint64_t *pointer = U64(&s->w, i->a);
	const struct insn *target[LANES];
	struct frame *frame[LANES];
	uint32_t rest = s->w.mask;

	while (rest) {
		unsigned first = first_lane(rest);
		const struct func_code *callee = function_at(s, i, pointer[first], first);
		uint32_t group = 0;
		struct frame *f;

		if (!callee)
			return abandon_frames(s, frame, s->w.mask & ~rest);
		EACH_LANE_OF(l, rest)
		if (pointer[l] == pointer[first])
			group |= 1u << l;
		if (group == s->w.mask)
			return gpul_call(s, i, callee);
		f = enter_function(s, i, callee, group);
		if (!f)
			return abandon_frames(s, frame, s->w.mask & ~rest);
		EACH_LANE_OF(l, group)
		{
			frame[l] = f;
			target[l] = callee->insns;
		}
		rest &= ~group;
	}
	count_run(s, i, i + 1);
	return gpul_split_scatter(s, target, frame);
}

const struct insn *gpul_call_return(struct warp_state *s, const struct insn *i)
{
	struct frame *f = s->frame, *parent = f->parent;
	const struct insn *to = f->return_to;
	const struct call_site *site = f->site;

	if (!parent) {
		count_run(s, i, i + 1);
		return gpul_split_exit(s);
	}
	for (uint32_t n = 0; n < site->n_rets && n < f->code->ptx->n_rets; n++) {
		struct call_argument from = parameter_of(f->code->rets, f->code->ret_regs, n);

		copy_argument(s, s->w.mask, parent, &site->args[site->n_args + n], f, &from);
	}
	count_run(s, i, to);
	f->lanes &= ~s->w.mask;
	if (!f->lanes)
		gpul_frame_free(s->block->worker, f);
	s->frame = parent;
	s->w.bank[BANK_REGS] = parent->regs;
	if (s->n_splits > 1)
		return raise_event(s, EVENT_SWITCH, to);
	s->splits[0].frame = parent;
	return to;
}
