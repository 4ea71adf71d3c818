/* race_poll.c — recognises polling: a loop that repeats a read until another thread has written.
 *
 *     L: ld.volatile.global.u32 %r1, [%rd1];      the result of the read decides (through registers)
 *        setp.eq.s32 %p1, %r1, 0;                 whether a branch leaves the loop or starts it again
 *     @%p1 bra L;
 *
 * A load from shared memory polls only if its address stays the same: while (part[k] > 0) k++ does not poll. An atomic operation,
 * such as the atomicCAS of a lock, polls if any branch in the loop depends on it. A load of the same address before the loop also
 * counts as polling, because compilers peel the first iteration of some loops; so does a load whose result a function returns. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdlib.h>

/* A loop: the instructions from the target of a backward branch to the branch. */
struct loop {
	const gpul_ptx_func *f;
	uint32_t first, last;
	bool *marked;
};

enum seen { NOT_SEEN, READ_FIRST, WRITTEN_FIRST };

/* ---- registers ---------------------------------------------------------------------------------------------------- */

static const gpul_ptx_operand *operand(const gpul_ptx_func *f, const gpul_ptx_inst *in, unsigned k)
{
	return &f->operands[in->first_operand + k];
}

static bool is_marked(const gpul_ptx_func *f, const bool *marked, const gpul_ptx_operand *o)
{
	if (o->kind == GPUL_PTX_OP_REG)
		return marked[o->index];
	for (uint32_t k = 0; k < o->n_children; k++)
		if (is_marked(f, marked, &f->operands[o->first_child + k]))
			return true;
	return false;
}

/* Mark the registers that an instruction writes.  Registers in an address operand are read, not written. */
static void mark_result(const gpul_ptx_func *f, const gpul_ptx_inst *in, bool *marked)
{
	const gpul_ptx_operand *o = operand(f, in, 0);

	if (!in->n_operands || in->opcode == GPUL_PTX_BRA)
		return;
	if (o->kind == GPUL_PTX_OP_REG)
		marked[o->index] = true;
	for (uint32_t k = 0; o->kind != GPUL_PTX_OP_ADDRESS && k < o->n_children; k++)
		if (f->operands[o->first_child + k].kind == GPUL_PTX_OP_REG)
			marked[f->operands[o->first_child + k].index] = true;
}

static bool is_guard_marked(const gpul_ptx_inst *in, const bool *marked)
{
	return in->guard != GPUL_PTX_NONE && marked[in->guard];
}

/* Return the target instruction of a bra; GPUL_PTX_NONE for other instructions. */
static uint32_t target_of(const gpul_ptx_func *f, const gpul_ptx_inst *in)
{
	const gpul_ptx_operand *o = in->n_operands ? operand(f, in, 0) : NULL;

	return in->opcode == GPUL_PTX_BRA && o->kind == GPUL_PTX_OP_LABEL ? f->labels[o->index].inst : GPUL_PTX_NONE;
}

/* For a forward branch in the loop that depends on a marked register, mark the registers that either path writes (control dependence). */
static void mark_sides(const struct loop *l, uint32_t row)
{
	uint32_t end = target_of(l->f, &l->f->insts[row]);
	const uint32_t other = end > row + 1 && end <= l->last ? target_of(l->f, &l->f->insts[end - 1]) : GPUL_PTX_NONE;

	if (end <= row || end > l->last)
		return;
	if (other > end && other <= l->last)
		end = other;
	for (uint32_t k = row + 1; k < end; k++)
		mark_result(l->f, &l->f->insts[k], l->marked);
}

/* Mark every register that depends on a marked register. */
static void spread(const struct loop *l)
{
	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t row = l->first; row <= l->last; row++) {
			const gpul_ptx_inst *in = &l->f->insts[row];
			bool any = is_guard_marked(in, l->marked);

			if (any && in->opcode == GPUL_PTX_BRA)
				mark_sides(l, row);
			for (unsigned k = 1; k < in->n_operands; k++)
				any |= is_marked(l->f, l->marked, operand(l->f, in, k));
			if (any)
				mark_result(l->f, in, l->marked);
		}
	}
}

/* ---- loops ------------------------------------------------------------------------------------------------------------ */

/* Returns true if the branch to `target` leaves or restarts the loop, or if it skips an instruction that leaves the loop. */
static bool leaves(const struct loop *l, uint32_t row, uint32_t target)
{
	if (target <= row || target > l->last)
		return true;
	for (uint32_t k = row + 1; k < target; k++) {
		const gpul_ptx_inst *in = &l->f->insts[k];
		const uint32_t to = target_of(l->f, in);

		if (in->opcode == GPUL_PTX_RET || in->opcode == GPUL_PTX_EXIT || (to != GPUL_PTX_NONE && to > l->last))
			return true;
	}
	return false;
}

/* Returns true if the guard of a branch that leaves or restarts the loop is a marked register; any: the guard of any branch. */
static bool decides(const struct loop *l, bool any)
{
	for (uint32_t row = l->first; row <= l->last; row++) {
		const gpul_ptx_inst *in = &l->f->insts[row];
		const uint32_t target = target_of(l->f, in);

		if (!is_guard_marked(in, l->marked))
			continue;
		if (in->opcode == GPUL_PTX_RET || in->opcode == GPUL_PTX_EXIT)
			return true;
		if (target != GPUL_PTX_NONE && (any || leaves(l, row, target)))
			return true;
	}
	return false;
}

/* Record the registers that an operand reads before the loop writes them.  seen[] must be 0 at first. */
static void note_reads(const gpul_ptx_func *f, uint8_t *seen, const gpul_ptx_operand *o)
{
	if (o->kind == GPUL_PTX_OP_REG && seen[o->index] == NOT_SEEN)
		seen[o->index] = READ_FIRST;
	for (uint32_t k = 0; k < o->n_children; k++)
		note_reads(f, seen, &f->operands[o->first_child + k]);
}

/* Mark loop-carried registers: registers that an iteration reads before it writes them. */
static void mark_carried(const struct loop *l)
{
	const gpul_ptx_func *f = l->f;
	uint8_t *seen = calloc(f->n_flat_regs + 1, 1);

	for (uint32_t row = l->first; seen && row <= l->last; row++) {
		const gpul_ptx_inst *in = &f->insts[row];
		const gpul_ptx_operand *to = in->n_operands ? operand(f, in, 0) : NULL;

		for (unsigned k = to && to->kind == GPUL_PTX_OP_REG ? 1 : 0; k < in->n_operands; k++)
			note_reads(f, seen, operand(f, in, k));
		if (!to || to->kind != GPUL_PTX_OP_REG)
			continue;
		l->marked[to->index] |= seen[to->index] == READ_FIRST;
		seen[to->index] = seen[to->index] == READ_FIRST ? READ_FIRST : WRITTEN_FIRST;
	}
	free(seen);
}

/* True if the instruction's address changes from iteration to iteration. */
static bool address_varies(const struct loop *l, const gpul_ptx_inst *read)
{
	memset(l->marked, 0, l->f->n_flat_regs);
	mark_carried(l);
	spread(l);
	return is_marked(l->f, l->marked, operand(l->f, read, 1));
}

static bool polls_in(struct loop *l, const gpul_ptx_inst *read, bool shared)
{
	const bool atomic = read->opcode != GPUL_PTX_LD;

	if (shared && !atomic && address_varies(l, read))
		return false;
	memset(l->marked, 0, l->f->n_flat_regs);
	mark_result(l->f, read, l->marked);
	spread(l);
	return decides(l, atomic);
}

/* True if the instruction polls in one of the loops that contain it. */
static bool polls_in_some_loop(const gpul_ptx_func *f, bool *marked, const gpul_ptx_inst *read, bool shared)
{
	const uint32_t row = (uint32_t)(read - f->insts);

	for (uint32_t k = row; k < f->n_insts; k++) {
		struct loop l = { .f = f, .first = target_of(f, &f->insts[k]), .last = k, .marked = marked };

		if (l.first <= row && polls_in(&l, read, shared))
			return true;
	}
	return false;
}

/* ---- loads outside loops ----------------------------------------------------------------------------------------------- */

/* True for an atomic operation, or a load with a memory order. */
static bool may_poll(const gpul_ptx_inst *in)
{
	if (in->n_operands < 2 || (in->opcode != GPUL_PTX_LD && in->opcode != GPUL_PTX_ATOM))
		return false;
	return in->opcode == GPUL_PTX_ATOM || gpul_ptx_has_mod(in, GPUL_PTX_MOD_VOLATILE) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_RELAXED) ||
	       gpul_ptx_has_mod(in, GPUL_PTX_MOD_ACQUIRE);
}

static bool same_address(const gpul_ptx_func *f, const gpul_ptx_inst *a, const gpul_ptx_inst *b)
{
	const gpul_ptx_operand *x = operand(f, a, 1), *y = operand(f, b, 1), *p, *q;

	if (x->kind != GPUL_PTX_OP_ADDRESS || y->kind != GPUL_PTX_OP_ADDRESS || x->value.i != y->value.i)
		return false;
	p = &f->operands[x->first_child];
	q = &f->operands[y->first_child];
	return p->kind == q->kind && p->index == q->index && p->ref_kind == q->ref_kind && p->kind != GPUL_PTX_OP_INT;
}

/* True if a branch after the instruction depends on the value that the instruction reads. */
static bool decides_a_branch(const gpul_ptx_func *f, bool *marked, const gpul_ptx_inst *read)
{
	const struct loop rest = { .f = f, .first = (uint32_t)(read - f->insts), .last = f->n_insts - 1, .marked = marked };

	memset(marked, 0, f->n_flat_regs);
	mark_result(f, read, marked);
	spread(&rest);
	return decides(&rest, true);
}

/* Returns true if another read of the same word polls, or if branches depend on both results, as in an unrolled polling loop. */
static bool another_polls(const gpul_ptx_func *f, bool *marked, const gpul_ptx_inst *read, bool shared)
{
	const bool decides = !shared && decides_a_branch(f, marked, read);

	for (const gpul_ptx_inst *in = f->insts; in < f->insts + f->n_insts; in++)
		if (in != read && may_poll(in) && same_address(f, in, read) &&
		    (polls_in_some_loop(f, marked, in, shared) || (decides && decides_a_branch(f, marked, in))))
			return true;
	return false;
}

static bool is_returned(const gpul_ptx_func *f, bool *marked, const gpul_ptx_inst *read)
{
	const struct loop all = { .f = f, .first = (uint32_t)(read - f->insts), .last = f->n_insts - 1, .marked = marked };

	if (f->kind == GPUL_PTX_FUNC_ENTRY)
		return false;
	memset(marked, 0, f->n_flat_regs);
	mark_result(f, read, marked);
	spread(&all);
	for (uint32_t row = all.first; row < f->n_insts; row++) {
		const gpul_ptx_inst *in = &f->insts[row];

		if (in->opcode == GPUL_PTX_ST && gpul_ptx_has_mod(in, GPUL_PTX_MOD_PARAM) && is_marked(f, marked, operand(f, in, 1)))
			return true;
	}
	return false;
}

bool race_site_polls(const struct func_code *code, const gpul_ptx_inst *in, bool shared)
{
	const gpul_ptx_func *f = code->ptx;
	bool *marked, polls;

	if (!may_poll(in))
		return false;
	marked = calloc(f->n_flat_regs + 1, sizeof *marked);
	if (!marked)
		return false;
	polls = polls_in_some_loop(f, marked, in, shared) || another_polls(f, marked, in, shared) || is_returned(f, marked, in);
	free(marked);
	return polls;
}
