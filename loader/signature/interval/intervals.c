/* intervals.c — applies each instruction to intervals until the fixpoint. */
#include <stdlib.h>
#include <string.h>

#include "loader/signature/interval/signature_launch_internal.h"

#define MAX_ROUNDS    80
#define NARROW_ROUNDS 4
#define MAX_GROWTHS   4 /* if a bound changes more often than this, a loop changes it: the range becomes unbounded */

/* ---- operands -------------------------------------------------------------------- */

gpul_interval gpul_interval_of(const gpul_intervals *v, const gpul_ptx_operand *o, uint32_t inst)
{
	gpul_range offset = gpul_range_of(o->value.i, o->value.i);
	gpul_interval r;

	if (o->kind == GPUL_PTX_OP_ADDRESS) {
		if (!o->n_children)
			return gpul_interval_number(offset);
		r = gpul_interval_of(v, &v->fn->f->operands[o->first_child], inst);
		if (r.kind == INTERVAL_NONE)
			return r;
		return gpul_interval_add(r, gpul_interval_number(offset), false, 64);
	}
	r = gpul_interval_anywhere(v, o);
	if (o->kind == GPUL_PTX_OP_REG && !o->negated && r.kind != INTERVAL_NONE)
		r.r = gpul_range_at(v, gpul_ssa_value(v->fn->f, &v->fn->ssa, o), inst);
	return r;
}

/* ---- memory ---------------------------------------------------------------------- */

static gpul_interval of_leaf(const gpul_intervals *v, const gpul_leaf *leaf)
{
	uint32_t k = (uint32_t)(leaf - v->i->p->leaves);

	if (v->i->facts[k].accessed)
		return (gpul_interval){ .kind = INTERVAL_POINTER, .base = (uint64_t)1 << k, .zeros = 8 };
	if (gpul_type_is_float(leaf->type) || v->i->floats >> k & 1)
		return gpul_interval_number(gpul_range_full(8 * leaf->bytes));
	return gpul_interval_number(gpul_range_of(v->launch->value[k], v->launch->value[k]));
}

static gpul_interval loaded_value(const gpul_intervals *v, const gpul_inst_access *a, uint32_t inst, uint32_t element)
{
	gpul_interval address = gpul_interval_of(v, a->address, inst);
	unsigned bits = gpul_type_bits(a->type);
	gpul_range full = gpul_range_full(bits);

	if (a->space == GPUL_PTX_MOD_PARAM) {
		const gpul_ptx_operand *symbol = &v->fn->f->operands[a->address->first_child];
		const gpul_leaf *leaf = gpul_leaf_of_access(v->i->p, v->fn, a, element);

		if (!leaf && symbol->kind == GPUL_PTX_OP_SYMBOL && symbol->ref_kind == GPUL_PTX_REF_PARAM && a->address->value.i == 0)
			leaf = gpul_dataflow_leaf(v->i->p, symbol->index, 0, gpul_ptx_type_bytes(a->type));
		return leaf ? of_leaf(v, leaf) : gpul_interval_number(full);
	}
	if (!a->atomic && address.kind == INTERVAL_POINTER && (address.base & ~v->launch->zeros) == 0)
		return gpul_interval_number(gpul_range_of(0, 0));
	return gpul_interval_number(gpul_type_is_unsigned(a->type) ? gpul_range_unsigned(full, bits) : full);
}

/* ---- the fixpoint ---------------------------------------------------------------- */

/* Set a value.  In the ascending phase its range only grows, and is widened if it grows in a loop. */
static void set_value(gpul_intervals *v, uint32_t value, gpul_interval to, bool joins)
{
	gpul_interval *at = &v->values[value], was = *at;

	if (to.kind == INTERVAL_NONE)
		return;
	if (joins)
		to = gpul_interval_join(was, to);
	to.n_growths = was.n_growths;
	if (!v->descending && joins && was.kind != INTERVAL_NONE && was.kind == to.kind && (to.r.lo < was.r.lo || to.r.hi > was.r.hi) &&
	    ++to.n_growths > MAX_GROWTHS) {
		if (to.r.lo < was.r.lo)
			to.r.lo = to.r.lo >= -((int64_t)1 << 31) && was.kind == INTERVAL_NUMBER ? -((int64_t)1 << 31) : -RANGE_END;
		if (to.r.hi > was.r.hi)
			to.r.hi = to.r.hi < (int64_t)1 << 31 && was.kind == INTERVAL_NUMBER ? ((int64_t)1 << 31) - 1 : RANGE_END;
	}
	v->changed |= to.kind != was.kind || to.base != was.base || to.zeros != was.zeros || to.size != was.size || to.r.lo != was.r.lo ||
		      to.r.hi != was.r.hi;
	*at = to;
}

static void set_operand(gpul_intervals *v, const gpul_ptx_operand *o, gpul_interval to)
{
	if (o->kind == GPUL_PTX_OP_REG) {
		uint32_t value = gpul_ssa_value(v->fn->f, &v->fn->ssa, o);
		uint16_t type = gpul_ptx_reg_row(v->fn->f, o->index)->type;

		if (to.kind == INTERVAL_NUMBER && type == GPUL_PTX_MOD_PRED)
			to.r = gpul_range_of(to.r.lo == 1, to.r.hi != 0);
		else if (to.kind == INTERVAL_NUMBER)
			to.r = gpul_range_wrap(to.r, gpul_type_bits(type));
		set_value(v, value, to, v->def[value] == GPUL_PTX_NONE);
	} else if (o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR)
		for (uint32_t k = 0; k < o->n_children; k++)
			set_operand(v, &v->fn->f->operands[o->first_child + k], to);
}

static void transfer_load(gpul_intervals *v, const gpul_inst_access *a, uint32_t inst)
{
	const gpul_ptx_operand *to = a->result;

	if (!to)
		return;
	if (to->kind != GPUL_PTX_OP_VECTOR) {
		set_operand(v, to, loaded_value(v, a, inst, 0));
		return;
	}
	for (uint32_t k = 0; k < to->n_children; k++)
		set_operand(v, &v->fn->f->operands[to->first_child + k], loaded_value(v, a, inst, k));
}

static void transfer(gpul_intervals *v, uint32_t inst)
{
	const gpul_ptx_inst *in = &v->fn->f->insts[inst];
	gpul_inst_access a = gpul_inst_access_of(v->fn->f, in);
	gpul_interval s[3] = { { 0 } }, r;
	const gpul_ptx_operand *to;

	if (a.address) {
		transfer_load(v, &a, inst);
		return;
	}
	if (!gpul_inst_writes(in))
		return;
	to = gpul_inst_operand(v->fn->f, in, 0);
	for (unsigned k = 0; k < 3; k++)
		s[k] = gpul_interval_number(gpul_range_of(0, 0));
	for (unsigned k = 0; k < 3 && k + 1 < in->n_operands; k++) {
		s[k] = gpul_interval_of(v, gpul_inst_operand(v->fn->f, in, k + 1), inst);
		if (s[k].kind == INTERVAL_NONE)
			return; /* not computed yet */
	}
	r = gpul_interval_evaluate(in, s);
	if (to->kind == GPUL_PTX_OP_PAIR && in->opcode == GPUL_PTX_SETP && to->n_children == 2) {
		set_operand(v, &v->fn->f->operands[to->first_child], r);
		r.r = gpul_range_of(1 - r.r.hi, 1 - r.r.lo);
		set_operand(v, &v->fn->f->operands[to->first_child + 1], r);
		return;
	}
	if (to->kind != GPUL_PTX_OP_REG)
		r = gpul_interval_number(gpul_range_full(64));
	set_operand(v, to, r);
}

/* True if control can enter the block from a block that is itself executed. */
static bool is_executed(const gpul_intervals *v, uint32_t block)
{
	for (uint32_t e = v->cfg.first_pred[block]; e < v->cfg.first_pred[block + 1]; e++)
		if (gpul_edge_is_taken(v, v->cfg.preds[e], block))
			return true;
	return block == 0;
}

static void transfer_phis(gpul_intervals *v, const gpul_phi **at, const gpul_phi *end, uint32_t inst)
{
	if (v->descending) /* each phi is computed anew: its first source replaces the old value */
		for (const gpul_phi *p = *at; p < end && p->inst == inst; p++)
			if (p->pred != GPUL_PTX_NONE)
				v->values[p->to].n_growths = UINT8_MAX;
	for (; *at < end && (*at)->inst == inst; (*at)++) {
		const gpul_phi *p = *at;
		gpul_interval from = v->values[p->from];
		bool anew;

		if (p->pred != GPUL_PTX_NONE && !gpul_edge_is_taken(v, p->pred, v->cfg.of[inst]))
			continue;
		if (from.kind == INTERVAL_NONE)
			continue;
		if (p->pred != GPUL_PTX_NONE)
			from.r = gpul_range_on_edge(v, p->from, p->pred, v->cfg.of[inst]);
		anew = v->descending && v->values[p->to].n_growths == UINT8_MAX;
		if (anew)
			v->values[p->to].n_growths = 0;
		set_value(v, p->to, from, !anew);
	}
}

static void transfer_all(gpul_intervals *v)
{
	const gpul_phi *phi = v->fn->ssa.phis, *end = phi + v->fn->ssa.n_phis;

	for (uint32_t b = 0; b < v->cfg.n_blocks; b++) {
		uint32_t last = b + 1 < v->cfg.n_blocks ? v->cfg.first[b + 1] : v->fn->f->n_insts;
		bool executed = v->executed[b] || is_executed(v, b);

		v->changed |= executed != v->executed[b];
		v->executed[b] = executed;
		for (uint32_t k = v->cfg.first[b]; k < last; k++) {
			if (!executed) {
				while (phi < end && phi->inst == k)
					phi++;
				continue;
			}
			transfer_phis(v, &phi, end, k);
			transfer(v, k);
		}
	}
}

static void note_definition(gpul_intervals *v, const gpul_ptx_operand *o, uint32_t inst, uint8_t *n_defs)
{
	if (o->kind == GPUL_PTX_OP_REG) {
		uint32_t value = gpul_ssa_value(v->fn->f, &v->fn->ssa, o);

		n_defs[value] = n_defs[value] ? 2 : 1;
		v->def[value] = n_defs[value] == 1 ? inst : GPUL_PTX_NONE;
	} else if (o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR) {
		for (uint32_t k = 0; k < o->n_children; k++)
			note_definition(v, &v->fn->f->operands[o->first_child + k], inst, n_defs);
	}
}

/* Record the instruction that defines each value.  The value of a phi, or of a guarded instruction that may
 * keep the old value, has several sources. */
static bool note_definitions(gpul_intervals *v)
{
	uint8_t *n_defs = calloc((size_t)v->fn->ssa.n_values + 1, sizeof *n_defs);

	if (!n_defs)
		return false;
	for (uint32_t k = 0; k < v->fn->f->n_insts; k++) {
		const gpul_ptx_inst *in = &v->fn->f->insts[k];

		if (gpul_inst_writes(in))
			note_definition(v, gpul_inst_operand(v->fn->f, in, 0), k, n_defs);
	}
	for (uint32_t k = 0; k < v->fn->ssa.n_phis; k++)
		v->def[v->fn->ssa.phis[k].to] = GPUL_PTX_NONE;
	free(n_defs);
	return true;
}

/* Mark the values that a comparison can restrict. */
static void note_comparisons(gpul_intervals *v)
{
	for (uint32_t k = 0; k < v->fn->f->n_insts; k++) {
		const gpul_ptx_inst *in = &v->fn->f->insts[k];

		for (unsigned o = 1; in->opcode == GPUL_PTX_SETP && o < in->n_operands; o++) {
			const gpul_ptx_operand *x = gpul_inst_operand(v->fn->f, in, o);
			uint32_t value, def;

			if (x->kind != GPUL_PTX_OP_REG)
				continue;
			value = gpul_ssa_value(v->fn->f, &v->fn->ssa, x);
			v->compared[value] = true;
			def = v->def[value];
			if (def == GPUL_PTX_NONE || v->fn->f->insts[def].n_operands != 2)
				continue;
			x = gpul_inst_operand(v->fn->f, &v->fn->f->insts[def], 1);
			if (x->kind == GPUL_PTX_OP_REG) /* source of a conversion */
				v->compared[gpul_ssa_value(v->fn->f, &v->fn->ssa, x)] = true;
		}
	}
}

static bool allocate_tables(gpul_intervals *v)
{
	size_t n = (size_t)v->fn->ssa.n_values + 1, n_blocks;

	if (!gpul_cfg_open(v->fn->f, &v->cfg))
		return false;
	n_blocks = (size_t)v->cfg.n_blocks + 1;
	v->values = calloc(n, sizeof *v->values);
	v->def = malloc(n * sizeof *v->def);
	v->compared = calloc(n, sizeof *v->compared);
	v->idom = malloc(n_blocks * sizeof *v->idom);
	v->order = malloc(n_blocks * sizeof *v->order);
	v->executed = calloc(n_blocks, sizeof *v->executed);
	if (!v->values || !v->def || !v->compared || !v->idom || !v->order || !v->executed)
		return false;
	memset(v->def, 0xff, n * sizeof *v->def); /* all GPUL_PTX_NONE */
	memset(v->idom, 0xff, n_blocks * sizeof *v->idom);
	memset(v->order, 0xff, n_blocks * sizeof *v->order);
	return true;
}

bool gpul_intervals_open(const gpul_inference *i, const gpul_assumed_launch *launch, gpul_intervals *out)
{
	gpul_intervals v = { .i = i, .fn = i->p->funcs, .launch = launch };
	int round = 0;

	*out = (gpul_intervals){ 0 };
	if (!v.fn->f->n_insts || !allocate_tables(&v) || !note_definitions(&v) || !gpul_branches_open(&v)) {
		gpul_intervals_close(&v);
		return false;
	}
	note_comparisons(&v);
	do {
		v.changed = false;
		transfer_all(&v);
	} while (v.changed && ++round < MAX_ROUNDS);
	if (v.changed) {
		gpul_intervals_close(&v);
		return false;
	}
	v.descending = true; /* narrowing after the fixpoint: each further round makes the ranges smaller, and they stay correct */
	for (round = 0; round < NARROW_ROUNDS; round++)
		transfer_all(&v);
	*out = v;
	return true;
}

void gpul_intervals_close(gpul_intervals *v)
{
	gpul_cfg_close(&v->cfg);
	free(v->values);
	free(v->def);
	free(v->compared);
	free(v->idom);
	free(v->order);
	free(v->executed);
	*v = (gpul_intervals){ 0 };
}
