/* branches.c — computes what branches imply about values: dominators, guards, and the ranges of values after a branch.
 *
 * Source: Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm, 2001. */
#include <stdlib.h>

#include "loader/signature/interval/signature_launch_internal.h"

#define MAX_DEPTH 200 /* maximum number of dominating branches that are examined for one value */

/* ---- dominators ------------------------------------------------------------------ */

static uint32_t last_inst(const gpul_intervals *v, uint32_t block)
{
	return block + 1 < v->cfg.n_blocks ? v->cfg.first[block + 1] - 1 : v->fn->f->n_insts - 1;
}

static uint32_t intersect(const gpul_intervals *v, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (v->order[a] > v->order[b])
			a = v->idom[a];
		while (v->order[b] > v->order[a])
			b = v->idom[b];
	}
	return a;
}

/* List the successors of all blocks, block by block, from their predecessors. */
static bool list_successors(const gpul_cfg *cfg, uint32_t **first, uint32_t **rows)
{
	uint32_t n = cfg->n_blocks, n_edges = cfg->first_pred[n];

	*first = calloc((size_t)n + 2, sizeof **first);
	*rows = calloc((size_t)n_edges + 1, sizeof **rows);
	if (!*first || !*rows)
		return false;
	for (uint32_t e = 0; e < n_edges; e++)
		(*first)[cfg->preds[e] + 2]++;
	for (uint32_t b = 2; b <= n; b++)
		(*first)[b] += (*first)[b - 1];
	for (uint32_t b = 0; b < n; b++)
		for (uint32_t e = cfg->first_pred[b]; e < cfg->first_pred[b + 1]; e++)
			(*rows)[(*first)[cfg->preds[e] + 1]++] = b;
	return true;
}

/* List the reachable blocks in reverse postorder and number them in v->order; false: out of memory. */
static bool number_blocks(gpul_intervals *v, uint32_t *rpo, uint32_t *n_rpo)
{
	uint32_t n = v->cfg.n_blocks, *first = NULL, *rows = NULL, depth = 0, at = n;
	uint32_t *stack = calloc(n, sizeof *stack), *next = calloc(n, sizeof *next);
	bool ok = list_successors(&v->cfg, &first, &rows) && stack && next;

	for (uint32_t b = 0; ok && b < n; b++)
		next[b] = first[b];
	if (ok && n) {
		stack[depth++] = 0;
		v->order[0] = 0; /* marks it as visited */
	}
	while (depth) {
		uint32_t b = stack[depth - 1];

		if (next[b] < first[b + 1]) {
			uint32_t to = rows[next[b]++];

			if (v->order[to] == GPUL_PTX_NONE) {
				v->order[to] = 0;
				stack[depth++] = to;
			}
		} else {
			rpo[--at] = b;
			depth--;
		}
	}
	*n_rpo = n - at;
	for (uint32_t k = 0; k < *n_rpo; k++) {
		rpo[k] = rpo[at + k];
		v->order[rpo[k]] = k;
	}
	free(first);
	free(rows);
	free(stack);
	free(next);
	return ok;
}

static bool find_idom(gpul_intervals *v, uint32_t block)
{
	uint32_t idom = GPUL_PTX_NONE;
	bool changed;

	for (uint32_t e = v->cfg.first_pred[block]; e < v->cfg.first_pred[block + 1]; e++) {
		uint32_t pred = v->cfg.preds[e];

		if (v->order[pred] == GPUL_PTX_NONE || v->idom[pred] == GPUL_PTX_NONE)
			continue;
		idom = idom == GPUL_PTX_NONE ? pred : intersect(v, idom, pred);
	}
	changed = v->idom[block] != idom;
	v->idom[block] = idom;
	return changed;
}

bool gpul_branches_open(gpul_intervals *v)
{
	uint32_t *rpo = calloc((size_t)v->cfg.n_blocks + 1, sizeof *rpo), n = 0;
	bool changed = true;

	if (!rpo || !number_blocks(v, rpo, &n)) {
		free(rpo);
		return false;
	}
	v->idom[0] = 0;
	while (changed) {
		changed = false;
		for (uint32_t k = 1; k < n; k++)
			changed |= find_idom(v, rpo[k]);
	}
	free(rpo);
	return true;
}

/* ---- conditions ------------------------------------------------------------------ */

static const gpul_ptx_inst *definition(const gpul_intervals *v, uint32_t value)
{
	return v->def[value] == GPUL_PTX_NONE ? NULL : &v->fn->f->insts[v->def[value]];
}

/* Return the number of the SSA value of an operand; NONE: the operand is not a register. */
static uint32_t value_of(const gpul_intervals *v, const gpul_ptx_operand *o)
{
	return o->kind == GPUL_PTX_OP_REG ? gpul_ssa_value(v->fn->f, &v->fn->ssa, o) : GPUL_PTX_NONE;
}

/* Return the comparison of a setp as one of LT, LE, GT, GE, EQ, NE; NONE: it has no such equivalent. */
static uint16_t comparison_of(const gpul_ptx_inst *in, bool *is_unsigned)
{
	static const struct {
		uint16_t mod, op;
		bool is_unsigned;
	} rows[] = {
		{ GPUL_PTX_MOD_LT, GPUL_PTX_MOD_LT, false }, { GPUL_PTX_MOD_LE, GPUL_PTX_MOD_LE, false },
		{ GPUL_PTX_MOD_GT, GPUL_PTX_MOD_GT, false }, { GPUL_PTX_MOD_GE, GPUL_PTX_MOD_GE, false },
		{ GPUL_PTX_MOD_EQ, GPUL_PTX_MOD_EQ, false }, { GPUL_PTX_MOD_NE, GPUL_PTX_MOD_NE, false },
		{ GPUL_PTX_MOD_LO, GPUL_PTX_MOD_LT, true },  { GPUL_PTX_MOD_LS, GPUL_PTX_MOD_LE, true },
		{ GPUL_PTX_MOD_HI, GPUL_PTX_MOD_GT, true },  { GPUL_PTX_MOD_HS, GPUL_PTX_MOD_GE, true },
	};
	uint16_t type = gpul_inst_type(in, 0);

	*is_unsigned = type == GPUL_PTX_MOD_U16 || type == GPUL_PTX_MOD_U32 || type == GPUL_PTX_MOD_U64;
	if (type >= GPUL_PTX_MOD_F16 && type <= GPUL_PTX_MOD_F32X2)
		return GPUL_PTX_MOD_NONE;
	for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++)
		if (gpul_ptx_has_mod(in, rows[k].mod)) {
			*is_unsigned |= rows[k].is_unsigned;
			return rows[k].op;
		}
	return GPUL_PTX_MOD_NONE;
}

static uint16_t inverse(uint16_t op)
{
	switch (op) {
	case GPUL_PTX_MOD_LT:
		return GPUL_PTX_MOD_GE;
	case GPUL_PTX_MOD_GE:
		return GPUL_PTX_MOD_LT;
	case GPUL_PTX_MOD_GT:
		return GPUL_PTX_MOD_LE;
	case GPUL_PTX_MOD_LE:
		return GPUL_PTX_MOD_GT;
	case GPUL_PTX_MOD_EQ:
		return GPUL_PTX_MOD_NE;
	case GPUL_PTX_MOD_NE:
		return GPUL_PTX_MOD_EQ;
	default:
		return GPUL_PTX_MOD_NONE;
	}
}

/* Return the comparison that gives the same result with swapped operands: GT for LT. */
static uint16_t swapped(uint16_t op)
{
	switch (op) {
	case GPUL_PTX_MOD_LT:
		return GPUL_PTX_MOD_GT;
	case GPUL_PTX_MOD_GT:
		return GPUL_PTX_MOD_LT;
	case GPUL_PTX_MOD_LE:
		return GPUL_PTX_MOD_GE;
	case GPUL_PTX_MOD_GE:
		return GPUL_PTX_MOD_LE;
	default:
		return op;
	}
}

/* True if value `wide` is `value`, or a copy or widening conversion of it. */
static bool is_copy_of(const gpul_intervals *v, uint32_t wide, uint32_t value)
{
	const gpul_ptx_inst *in;

	if (wide == value)
		return true;
	in = wide == GPUL_PTX_NONE ? NULL : definition(v, wide);
	return in && (in->opcode == GPUL_PTX_CVT || in->opcode == GPUL_PTX_MOV) && in->n_operands == 2 &&
	       (in->opcode == GPUL_PTX_MOV || gpul_ptx_type_bytes(gpul_inst_type(in, 0)) >= gpul_ptx_type_bytes(gpul_inst_type(in, 1))) &&
	       value_of(v, gpul_inst_operand(v->fn->f, in, 1)) == value;
}

static gpul_range refine_by_setp(const gpul_intervals *v, uint32_t value, const gpul_ptx_inst *in, bool holds, gpul_range r)
{
	bool is_unsigned;
	uint16_t op = comparison_of(in, &is_unsigned);
	unsigned bits = 8 * gpul_ptx_type_bytes(gpul_inst_type(in, 0));
	const gpul_ptx_operand *a, *b;
	gpul_interval other;

	if (!op || in->n_operands != 3 || !bits)
		return r;
	a = gpul_inst_operand(v->fn->f, in, 1);
	b = gpul_inst_operand(v->fn->f, in, 2);
	if (!holds)
		op = inverse(op);
	if (!is_copy_of(v, value_of(v, a), value)) {
		const gpul_ptx_operand *t = a;

		if (!is_copy_of(v, value_of(v, b), value))
			return r;
		a = b;
		b = t;
		op = swapped(op);
	}
	other = gpul_interval_anywhere(v, b); /* not refined, so that the recursion ends */
	if (other.kind != INTERVAL_NUMBER &&
	    (other.kind != INTERVAL_POINTER || other.base & (other.base - 1) || v->values[value].base != other.base))
		return r;
	if (other.kind == INTERVAL_NUMBER && v->values[value].kind != INTERVAL_NUMBER)
		return r;
	if (is_unsigned)
		return gpul_range_refine(op, gpul_range_unsigned(r, bits), gpul_range_unsigned(other.r, bits));
	return gpul_range_refine(op, gpul_range_signed(r, bits), gpul_range_signed(other.r, bits));
}

/* Return the range of a value that follows from a predicate being true or false. */
static gpul_range refine_by_predicate(const gpul_intervals *v, uint32_t value, uint32_t predicate, bool holds, gpul_range r, int depth)
{
	const gpul_ptx_inst *in = predicate == GPUL_PTX_NONE ? NULL : definition(v, predicate);
	const gpul_ptx_operand *to;

	if (!in || depth > 8)
		return r;
	to = gpul_inst_operand(v->fn->f, in, 0);
	if (in->opcode == GPUL_PTX_SETP) {
		if (to->kind == GPUL_PTX_OP_PAIR && value_of(v, &v->fn->f->operands[to->first_child]) != predicate)
			holds = !holds; /* in p|q, q is the opposite of p */
		return refine_by_setp(v, value, in, holds, r);
	}
	if ((in->opcode == GPUL_PTX_AND && holds) || (in->opcode == GPUL_PTX_OR && !holds)) {
		for (unsigned k = 1; k < in->n_operands; k++) {
			const gpul_ptx_operand *o = gpul_inst_operand(v->fn->f, in, k);

			r = refine_by_predicate(v, value, value_of(v, o), holds != o->negated, r, depth + 1);
		}
		return r;
	}
	if ((in->opcode == GPUL_PTX_NOT || in->opcode == GPUL_PTX_MOV) && in->n_operands == 2)
		return refine_by_predicate(v, value, value_of(v, gpul_inst_operand(v->fn->f, in, 1)), holds != (in->opcode == GPUL_PTX_NOT),
					   r, depth + 1);
	return r;
}

/* ---- branches -------------------------------------------------------------------- */

/* Return the guard as an SSA value.  NONE: there is no guard, or its register has several values. */
static uint32_t guard_value(const gpul_intervals *v, const gpul_ptx_inst *in)
{
	if (in->guard == GPUL_PTX_NONE || v->def[in->guard] == GPUL_PTX_NONE)
		return GPUL_PTX_NONE;
	return in->guard;
}

int gpul_guard_holds(const gpul_intervals *v, uint32_t inst)
{
	const gpul_ptx_inst *in = &v->fn->f->insts[inst];
	uint32_t guard = guard_value(v, in);
	const gpul_interval *g;

	if (in->guard == GPUL_PTX_NONE)
		return 1;
	if (guard == GPUL_PTX_NONE)
		return -1;
	g = &v->values[guard];
	if (g->kind != INTERVAL_NUMBER || g->r.lo != g->r.hi)
		return g->kind == INTERVAL_NONE && !v->descending ? 0 : -1;
	return (g->r.lo != 0) != in->guard_negated;
}

static bool branches_to(const gpul_intervals *v, const gpul_ptx_inst *in, uint32_t block)
{
	const gpul_ptx_func *f = v->fn->f;

	for (unsigned k = 0; k < in->n_operands; k++) {
		const gpul_ptx_operand *o = gpul_inst_operand(f, in, k);

		if (o->kind == GPUL_PTX_OP_LABEL && f->labels[o->index].kind != GPUL_PTX_LABEL_CODE)
			return true; /* the operand of brx.idx is a table of targets */
		if (o->kind == GPUL_PTX_OP_LABEL && f->labels[o->index].inst < f->n_insts && v->cfg.of[f->labels[o->index].inst] == block)
			return true;
	}
	return false;
}

/* Return the value that the guard of a block's last instruction has if control takes an edge: 1: true, 0: false, -1: either. */
static int guard_on_edge(const gpul_intervals *v, uint32_t from, uint32_t to)
{
	const gpul_ptx_inst *in = &v->fn->f->insts[last_inst(v, from)];
	bool jumps, falls = to == from + 1;

	if (in->guard == GPUL_PTX_NONE)
		return -1;
	switch (in->opcode) {
	case GPUL_PTX_BRA:
	case GPUL_PTX_BRX:
		jumps = branches_to(v, in, to);
		return jumps && falls ? -1 : jumps;
	case GPUL_PTX_RET:
	case GPUL_PTX_EXIT:
	case GPUL_PTX_TRAP:
		return 0;
	default:
		return -1;
	}
}

bool gpul_edge_is_taken(const gpul_intervals *v, uint32_t from, uint32_t to)
{
	int needed = guard_on_edge(v, from, to), holds;

	if (!v->executed[from])
		return false;
	if (needed < 0)
		return true;
	holds = gpul_guard_holds(v, last_inst(v, from));
	if (holds == 0 && v->fn->f->insts[last_inst(v, from)].guard != GPUL_PTX_NONE &&
	    v->values[v->fn->f->insts[last_inst(v, from)].guard].kind == INTERVAL_NONE)
		return false; /* the guard is not computed yet */
	return holds < 0 || holds == needed;
}

static gpul_range refine_by_guard(const gpul_intervals *v, uint32_t value, uint32_t inst, bool holds, gpul_range r)
{
	const gpul_ptx_inst *in = &v->fn->f->insts[inst];

	return refine_by_predicate(v, value, guard_value(v, in), holds != in->guard_negated, r, 0);
}

/* Return the range of a value that follows from the branches that dominate a block. */
static gpul_range refine_by_dominators(const gpul_intervals *v, uint32_t value, uint32_t block, gpul_range r)
{
	for (int depth = 0; depth < MAX_DEPTH && block && v->idom[block] != GPUL_PTX_NONE; depth++) {
		uint32_t begin = v->cfg.first_pred[block];

		if (v->cfg.first_pred[block + 1] == begin + 1) {
			uint32_t pred = v->cfg.preds[begin];
			int holds = guard_on_edge(v, pred, block);

			if (holds >= 0)
				r = refine_by_guard(v, value, last_inst(v, pred), holds, r);
		}
		block = v->idom[block];
	}
	return r;
}

gpul_range gpul_range_at(const gpul_intervals *v, uint32_t value, uint32_t inst)
{
	gpul_range r = v->values[value].r;

	if (!v->compared[value])
		return r;
	if (v->fn->f->insts[inst].guard != GPUL_PTX_NONE && v->fn->f->insts[inst].opcode != GPUL_PTX_SETP)
		r = refine_by_guard(v, value, inst, true, r);
	return refine_by_dominators(v, value, v->cfg.of[inst], r);
}

gpul_range gpul_range_on_edge(const gpul_intervals *v, uint32_t value, uint32_t from, uint32_t to)
{
	gpul_range r = v->values[value].r;
	int holds = guard_on_edge(v, from, to);

	if (!v->compared[value])
		return r;
	if (holds >= 0)
		r = refine_by_guard(v, value, last_inst(v, from), holds, r);
	return refine_by_dominators(v, value, from, r);
}
