/* abi.c — checks modules that ptxas compiles without the ABI, because they have registers or local variables of module scope.
 *
 * Without the ABI a thread has no stack: recursion and calls through pointers are refused, and each called function must have a
 * body. */
#include "ptx/strict/strict_internal.h"

#include <stdlib.h>

enum { NOT_VISITED, ON_THE_WAY, DONE, MAX_LEVELS = 4096 };

static bool has_no_abi(const gpul_ptx_module *m)
{
	bool found = m->n_regs;

	for (uint32_t i = 0; i < m->n_vars; i++)
		found |= m->vars[i].space == GPUL_PTX_MOD_LOCAL;
	return found;
}

static bool is_function(const gpul_ptx_operand *o)
{
	return o->kind == GPUL_PTX_OP_SYMBOL && o->ref_kind == GPUL_PTX_REF_FUNC;
}

/* Return the operand with the name of the called function; NULL: the instruction is not a call. */
static const gpul_ptx_operand *callee_of(const gpul_ptx_func *f, const gpul_ptx_inst *in)
{
	const gpul_ptx_operand *o = &f->operands[in->first_operand];

	if (in->opcode != GPUL_PTX_CALL || !in->n_operands)
		return NULL;
	return o->kind == GPUL_PTX_OP_LIST && in->n_operands > 1 ? o + 1 : o;
}

static gpul_status fail_without_abi(struct strict *s, const gpul_ptx_func *f, const gpul_ptx_inst *in, const char *what)
{
	s->f = f;
	return strict_fail_inst(s, in, "%s needs the ABI, which is not available to a module with a .reg or .local outside of functions",
				what);
}

static gpul_status check_call(struct strict *s, const gpul_ptx_func *f, const gpul_ptx_inst *in)
{
	const gpul_ptx_operand *callee = callee_of(f, in);

	if (callee && !is_function(callee))
		return fail_without_abi(s, f, in, "a call through a register");
	if (callee && s->m->funcs[callee->index].definition == GPUL_PTX_NONE)
		return fail_without_abi(s, f, in, "a call of a function without a body");
	return GPUL_OK;
}

static gpul_status check_addresses(struct strict *s, const gpul_ptx_func *f, const gpul_ptx_inst *in)
{
	for (unsigned k = 0; k < in->n_operands; k++)
		if (is_function(&f->operands[in->first_operand + k]))
			return fail_without_abi(s, f, in, "the address of a function");
	return GPUL_OK;
}

/* Check the functions that a kernel reaches, by a depth-first search.  A call of a function on the current path is recursion.
 * state: one element for each entry of module->funcs. */
static gpul_status check_reached(struct strict *s, unsigned char *state, uint32_t row, unsigned level)
{
	const gpul_ptx_func *f = &s->m->funcs[row];
	gpul_status st = GPUL_OK;

	if (state[row] == DONE || level > MAX_LEVELS)
		return GPUL_OK;
	state[row] = ON_THE_WAY;
	for (uint32_t i = 0; !st && i < f->n_insts; i++) {
		const gpul_ptx_operand *callee = callee_of(f, &f->insts[i]);
		const uint32_t to = callee ? s->m->funcs[callee->index].definition : GPUL_PTX_NONE;

		if (to == GPUL_PTX_NONE)
			st = callee ? GPUL_OK : check_addresses(s, f, &f->insts[i]);
		else
			st = state[to] == ON_THE_WAY ? fail_without_abi(s, f, &f->insts[i], "recursion")
						     : check_reached(s, state, to, level + 1);
	}
	state[row] = DONE;
	return st;
}

gpul_status strict_check_abi(struct strict *s)
{
	const gpul_ptx_module *m = s->m;
	gpul_status st = GPUL_OK;
	unsigned char *state;

	if (!has_no_abi(m))
		return GPUL_OK;
	for (uint32_t i = 0; i < m->n_funcs; i++)
		for (uint32_t k = 0; !st && k < m->funcs[i].n_insts; k++)
			st = check_call(s, &m->funcs[i], &m->funcs[i].insts[k]);
	if (st)
		return st;
	state = calloc(m->n_funcs + 1, 1);
	if (!state)
		return gpul_fail(s->err, GPUL_ENOMEM, 0, "no memory to check %.100s", s->file_name);
	for (uint32_t i = 0; !st && i < m->n_funcs; i++)
		/* check only functions that a kernel calls, because ptxas drops the other functions */
		if (m->funcs[i].kind == GPUL_PTX_FUNC_ENTRY)
			st = check_reached(s, state, i, 0);
	free(state);
	return st;
}
