/* intervals.c — the transfer function of each instruction on intervals, and the fixpoint. */
#include <stdlib.h>
#include <string.h>

#include "loader/signature/launch_internal.h"

#define MAX_ROUNDS    80
#define NARROW_ROUNDS 4
#define MAX_GROWTHS   4 /* an end of a range that moved more often moves in a loop: it is taken as unbounded */

static gpul_interval number(gpul_range r)
{
	return (gpul_interval){ .kind = INTERVAL_NUMBER, .r = r };
}

static unsigned bits_of(uint16_t type)
{
	unsigned bits = 8 * gpul_ptx_type_bytes(type);

	return type == GPUL_PTX_MOD_PRED ? 1 : bits ? bits : 64;
}

static bool is_unsigned_type(uint16_t type)
{
	return type == GPUL_PTX_MOD_U8 || type == GPUL_PTX_MOD_U16 || type == GPUL_PTX_MOD_U32 ||
	       type == GPUL_PTX_MOD_U64;
}

static bool is_float_type(uint16_t type)
{
	return type >= GPUL_PTX_MOD_F16 && type <= GPUL_PTX_MOD_F32X2;
}

static gpul_interval join(gpul_interval a, gpul_interval b)
{
	if (a.kind == INTERVAL_NONE || b.kind == INTERVAL_NONE)
		return a.kind == INTERVAL_NONE ? b : a;
	if (a.kind != b.kind) { /* a null pointer is never accessed */
		const gpul_interval *n = a.kind == INTERVAL_NUMBER ? &a : &b;

		if (n->kind == INTERVAL_NUMBER && n->r.lo == 0 && n->r.hi == 0)
			return n == &a ? b : a;
		return number(gpul_range_full(64));
	}
	a.base |= b.base;
	a.r = gpul_range_join(a.r, b.r);
	return a;
}

/* ---- operands -------------------------------------------------------------------- */

static gpul_interval special_register(const gpul_assumed_launch *l, uint32_t which)
{
	uint32_t x = GPUL_PTX_SREG_TID_X, threads = l->block[0] * l->block[1] * l->block[2];

	if (which >= x && which <= GPUL_PTX_SREG_TID_Z)
		return number(gpul_range_of(0, l->block[which - x] - 1));
	x = GPUL_PTX_SREG_NTID_X;
	if (which >= x && which <= GPUL_PTX_SREG_NTID_Z)
		return number(gpul_range_of(l->block[which - x], l->block[which - x]));
	x = GPUL_PTX_SREG_CTAID_X;
	if (which >= x && which <= GPUL_PTX_SREG_CTAID_Z)
		return number(gpul_range_of(0, l->grid[which - x] - 1));
	x = GPUL_PTX_SREG_NCTAID_X;
	if (which >= x && which <= GPUL_PTX_SREG_NCTAID_Z)
		return number(gpul_range_of(l->grid[which - x], l->grid[which - x]));
	if (which == GPUL_PTX_SREG_LANEID)
		return number(gpul_range_of(0, 31));
	if (which == GPUL_PTX_SREG_WARPID)
		return number(gpul_range_of(0, (threads + 31) / 32 - 1));
	return number(gpul_range_full(64));
}

gpul_interval gpul_interval_of(const gpul_intervals *v, const gpul_ptx_operand *o, uint32_t inst)
{
	const gpul_ptx_operand *child = &v->fn->f->operands[o->first_child];
	gpul_interval r;
	uint32_t value;

	switch (o->kind) {
	case GPUL_PTX_OP_REG:
		value = gpul_ssa_value(v->fn->f, &v->fn->ssa, o);
		r = v->values[value];
		if (inst != GPUL_PTX_NONE && r.kind != INTERVAL_NONE)
			r.r = gpul_range_at(v, value, inst);
		if (o->negated && r.kind == INTERVAL_NUMBER)
			r.r = gpul_range_of(1 - (r.r.hi != 0), 1 - (r.r.lo != 0)); /* !p */
		return r;
	case GPUL_PTX_OP_SPECIAL:
		return special_register(v->launch, o->index);
	case GPUL_PTX_OP_INT:
		return number(gpul_range_wrap(gpul_range_of(o->value.i, o->value.i), 64));
	case GPUL_PTX_OP_SYMBOL:
		return (gpul_interval){ .kind = INTERVAL_VARIABLE };
	case GPUL_PTX_OP_ADDRESS:
		if (!o->n_children)
			return number(gpul_range_of(o->value.i, o->value.i));
		r = gpul_interval_of(v, child, inst);
		r.r = gpul_range_add(r.r, gpul_range_of(o->value.i, o->value.i));
		return r;
	default:
		return number(gpul_range_full(64));
	}
}

/* ---- arithmetic ------------------------------------------------------------------ */

static gpul_interval add(gpul_interval a, gpul_interval b, bool subtract, unsigned bits)
{
	bool same = a.kind == INTERVAL_POINTER && b.kind == INTERVAL_POINTER && a.base == b.base &&
		    !(a.base & (a.base - 1));

	if (subtract) {
		if (b.kind != INTERVAL_NUMBER && !same)
			return number(gpul_range_full(bits));
		b.r = gpul_range_negate(b.r);
	} else if (a.kind == INTERVAL_NUMBER) {
		gpul_interval t = a;

		a = b;
		b = t;
	}
	a.r = gpul_range_add(a.r, b.r);
	if (same && subtract)
		return number(a.r);
	if (b.kind != INTERVAL_NUMBER)
		return number(gpul_range_full(bits));
	if (a.kind == INTERVAL_NUMBER)
		a.r = gpul_range_wrap(a.r, bits);
	else if (bits < 64 && a.kind == INTERVAL_POINTER)
		return number(gpul_range_full(bits));
	return a;
}

static gpul_range multiply(const gpul_ptx_inst *in, gpul_range a, gpul_range b, unsigned bits)
{
	bool is_unsigned = is_unsigned_type(gpul_inst_type(in, 0));

	if (!gpul_ptx_has_mod(in, GPUL_PTX_MOD_WIDE) && !gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI)) {
		gpul_range r = gpul_range_wrap(gpul_range_multiply(a, b), bits);
		gpul_range full = gpul_range_full(bits);

		if (r.lo != full.lo || r.hi != full.hi)
			return r;
		a = gpul_range_unsigned(a, bits);
		b = gpul_range_unsigned(b, bits);
		return gpul_range_wrap(gpul_range_multiply(a, b), bits);
	}
	a = is_unsigned ? gpul_range_unsigned(a, bits) : gpul_range_signed(a, bits);
	b = is_unsigned ? gpul_range_unsigned(b, bits) : gpul_range_signed(b, bits);
	if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_WIDE))
		return gpul_range_multiply(a, b);
	if (bits == 32) {
		gpul_range r = gpul_range_multiply(a, b);

		if (r.lo > -RANGE_END && r.hi < RANGE_END)
			return gpul_range_of(r.lo >> 32, r.hi >> 32);
	}
	return gpul_range_full(bits);
}

/* The interval of a compared, combined or shifted value: an aligned pointer behaves as its offset in the lowest bits. */
static gpul_interval bitwise(const gpul_ptx_inst *in, gpul_interval a, gpul_interval b, unsigned bits)
{
	gpul_interval r = { .kind = INTERVAL_NUMBER };

	if (in->opcode == GPUL_PTX_AND && a.kind == INTERVAL_NUMBER && b.kind != INTERVAL_NUMBER)
		return bitwise(in, b, a, bits);
	if (in->opcode == GPUL_PTX_AND && a.kind == INTERVAL_POINTER && b.kind == INTERVAL_NUMBER) {
		if (b.r.lo == b.r.hi && b.r.lo < 0 && b.r.lo >= -256) { /* buffers are aligned to 256 bytes */
			a.r = gpul_range_and(a.r, b.r, bits);
			return a;
		}
		return number(gpul_range_and(gpul_range_full(bits), b.r, bits));
	}
	if (a.kind != INTERVAL_NUMBER || b.kind != INTERVAL_NUMBER)
		return number(gpul_range_full(bits));
	if (in->opcode == GPUL_PTX_AND)
		r.r = gpul_range_and(a.r, b.r, bits);
	else
		r.r = gpul_range_or(gpul_range_unsigned(a.r, bits), gpul_range_unsigned(b.r, bits),
				    in->opcode == GPUL_PTX_XOR, bits);
	return r;
}

static gpul_interval convert(const gpul_ptx_inst *in, gpul_interval a)
{
	uint16_t to = gpul_inst_type(in, 0), from = gpul_inst_type(in, 1);
	unsigned bits = bits_of(to), from_bits = bits_of(from);
	gpul_range full = gpul_range_full(bits);

	if (is_float_type(to) || is_float_type(from) || a.kind != INTERVAL_NUMBER) {
		if (a.kind != INTERVAL_NUMBER && bits == 64 && from_bits == 64)
			return a;
		return number(is_unsigned_type(to) ? gpul_range_unsigned(full, bits) : gpul_range_signed(full, bits));
	}
	a.r = is_unsigned_type(from) ? gpul_range_unsigned(a.r, from_bits) : gpul_range_signed(a.r, from_bits);
	a.r = gpul_range_wrap(a.r, bits);
	return a;
}

static gpul_interval compare(const gpul_ptx_inst *in, gpul_interval a, gpul_interval b)
{
	static const uint16_t ops[] = { GPUL_PTX_MOD_LT, GPUL_PTX_MOD_LE, GPUL_PTX_MOD_GT, GPUL_PTX_MOD_GE,
					GPUL_PTX_MOD_EQ, GPUL_PTX_MOD_NE };
	uint16_t type = gpul_inst_type(in, 0);
	unsigned bits = bits_of(type);
	int result = -1;

	if (is_float_type(type) || in->n_operands != 3)
		return number(gpul_range_of(0, 1));
	if (a.kind == INTERVAL_POINTER && b.kind == INTERVAL_NUMBER && b.r.lo == 0 && b.r.hi == 0)
		result = gpul_ptx_has_mod(in, GPUL_PTX_MOD_EQ)   ? 0
			 : gpul_ptx_has_mod(in, GPUL_PTX_MOD_NE) ? 1
								 : -1;
	if (a.kind == INTERVAL_NUMBER && b.kind == INTERVAL_NUMBER)
		for (unsigned k = 0; k < sizeof ops / sizeof *ops; k++)
			if (gpul_ptx_has_mod(in, ops[k]))
				result = is_unsigned_type(type)
						 ? gpul_range_compare(ops[k], gpul_range_unsigned(a.r, bits),
								      gpul_range_unsigned(b.r, bits))
						 : gpul_range_compare(ops[k], gpul_range_signed(a.r, bits),
								      gpul_range_signed(b.r, bits));
	return number(gpul_range_of(result == 1, result != 0));
}

static gpul_interval select_value(gpul_interval a, gpul_interval b, gpul_interval p)
{
	if (p.kind == INTERVAL_NUMBER && p.r.lo == p.r.hi)
		return p.r.lo ? a : b;
	return join(a, b);
}

/* Instructions whose operands are all numbers. */
static gpul_range evaluate_numbers(const gpul_ptx_inst *in, gpul_range a, gpul_range b, unsigned bits)
{
	bool is_unsigned = is_unsigned_type(gpul_inst_type(in, 0));
	gpul_range x = is_unsigned ? gpul_range_unsigned(a, bits) : gpul_range_signed(a, bits),
		   y = is_unsigned ? gpul_range_unsigned(b, bits) : gpul_range_signed(b, bits);

	switch (in->opcode) {
	case GPUL_PTX_DIV:
		return gpul_range_divide(x, y, bits);
	case GPUL_PTX_REM:
		return gpul_range_remainder(x, y, bits);
	case GPUL_PTX_SHL:
		return gpul_range_wrap(gpul_range_shift_left(a, gpul_range_unsigned(b, 32), bits), bits);
	case GPUL_PTX_SHR:
		x = gpul_ptx_type_bytes(gpul_inst_type(in, 0)) && !is_unsigned &&
				    gpul_inst_type(in, 0) >= GPUL_PTX_MOD_B8 &&
				    gpul_inst_type(in, 0) <= GPUL_PTX_MOD_B64
			    ? gpul_range_unsigned(a, bits)
			    : x;
		return gpul_range_shift_right(x, gpul_range_unsigned(b, 32), bits);
	case GPUL_PTX_MIN:
	case GPUL_PTX_MAX:
		return gpul_range_min_max(x, y, in->opcode == GPUL_PTX_MAX);
	case GPUL_PTX_NEG:
		return gpul_range_wrap(gpul_range_negate(a), bits);
	case GPUL_PTX_NOT:
		return bits == 1 ? gpul_range_of(1 - a.hi, 1 - a.lo)
				 : gpul_range_wrap(gpul_range_add(gpul_range_negate(a), gpul_range_of(-1, -1)), bits);
	case GPUL_PTX_ABS:
		x = gpul_range_signed(a, bits);
		return gpul_range_of(x.lo > 0 ? x.lo : 0, -x.lo > x.hi ? -x.lo : x.hi);
	case GPUL_PTX_POPC:
	case GPUL_PTX_CLZ:
		return gpul_range_of(0, 64);
	case GPUL_PTX_BFIND:
		return gpul_range_of(-1, 63);
	default:
		return gpul_range_full(bits);
	}
}

/* The result of an instruction with the sources s. */
static gpul_interval evaluate(const gpul_ptx_inst *in, const gpul_interval s[3])
{
	uint16_t type = gpul_inst_type(in, 0);
	unsigned bits = bits_of(type);
	gpul_interval r = s[0];

	switch (in->opcode) {
	case GPUL_PTX_MOV:
	case GPUL_PTX_CVTA:
	case GPUL_PTX_SHFL:
		return r;
	case GPUL_PTX_SELP:
		return select_value(s[0], s[1], s[2]);
	case GPUL_PTX_SLCT:
		return join(s[0], s[1]);
	case GPUL_PTX_SETP:
		return compare(in, s[0], s[1]);
	case GPUL_PTX_CVT:
		return convert(in, r);
	default:
		break;
	}
	if (is_float_type(type))
		return number(gpul_range_full(bits));
	switch (in->opcode) {
	case GPUL_PTX_ADD:
	case GPUL_PTX_SUB:
		return add(s[0], s[1], in->opcode == GPUL_PTX_SUB, bits);
	case GPUL_PTX_AND:
	case GPUL_PTX_OR:
	case GPUL_PTX_XOR:
		return bitwise(in, s[0], s[1], bits);
	default:
		break;
	}
	if (s[0].kind != INTERVAL_NUMBER || (in->n_operands > 2 && s[1].kind != INTERVAL_NUMBER))
		return number(gpul_range_full(bits == 1 ? 1 : 64));
	if (in->opcode == GPUL_PTX_MUL)
		return number(multiply(in, s[0].r, s[1].r, bits));
	if (in->opcode == GPUL_PTX_MAD) {
		if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI) && gpul_ptx_has_mod(in, GPUL_PTX_MOD_WIDE))
			return number(gpul_range_full(64));
		r = number(multiply(in, s[0].r, s[1].r, bits));
		return add(r, s[2], false, gpul_ptx_has_mod(in, GPUL_PTX_MOD_WIDE) ? 2 * bits : bits);
	}
	return number(evaluate_numbers(in, s[0].r, s[1].r, bits));
}

/* ---- memory ---------------------------------------------------------------------- */

static gpul_interval of_leaf(const gpul_intervals *v, const gpul_leaf *leaf)
{
	uint32_t k = (uint32_t)(leaf - v->i->p->leaves);

	if (v->i->facts[k].accessed)
		return (gpul_interval){ .kind = INTERVAL_POINTER, .base = (uint64_t)1 << k };
	if (is_float_type(leaf->type) || v->i->floats >> k & 1)
		return number(gpul_range_full(8 * leaf->bytes));
	return number(gpul_range_of(v->launch->value[k], v->launch->value[k]));
}

static gpul_interval loaded_value(const gpul_intervals *v, const gpul_inst_access *a, uint32_t inst,
				  uint32_t element)
{
	gpul_interval address = gpul_interval_of(v, a->address, inst);
	unsigned bits = bits_of(a->type);
	gpul_range full = gpul_range_full(bits);

	if (a->space == GPUL_PTX_MOD_PARAM) {
		const gpul_ptx_operand *symbol = &v->fn->f->operands[a->address->first_child];
		const gpul_leaf *leaf = gpul_leaf_of_access(v->i->p, v->fn, a, element);

		if (!leaf && symbol->kind == GPUL_PTX_OP_SYMBOL && symbol->ref_kind == GPUL_PTX_REF_PARAM &&
		    a->address->value.i == 0)
			leaf = gpul_dataflow_leaf(v->i->p, symbol->index, 0,
						  gpul_ptx_type_bytes(a->type));
		return leaf ? of_leaf(v, leaf) : number(full);
	}
	if (!a->atomic && address.kind == INTERVAL_POINTER && (address.base & ~v->launch->zeros) == 0)
		return number(gpul_range_of(0, 0));
	return number(is_unsigned_type(a->type) ? gpul_range_unsigned(full, bits) : full);
}

/* ---- the fixpoint ---------------------------------------------------------------- */

/* Set a value; ascending, its range only grows, and fast if it grows in a loop. */
static void set_value(gpul_intervals *v, uint32_t value, gpul_interval to, bool joins)
{
	gpul_interval *at = &v->values[value], was = *at;

	if (to.kind == INTERVAL_NONE)
		return;
	if (joins)
		to = join(was, to);
	to.n_growths = was.n_growths;
	if (!v->descending && joins && was.kind != INTERVAL_NONE && was.kind == to.kind &&
	    (to.r.lo < was.r.lo || to.r.hi > was.r.hi) && ++to.n_growths > MAX_GROWTHS) {
		if (to.r.lo < was.r.lo)
			to.r.lo = to.r.lo >= -((int64_t)1 << 31) && was.kind == INTERVAL_NUMBER ? -((int64_t)1 << 31) : -RANGE_END;
		if (to.r.hi > was.r.hi)
			to.r.hi = to.r.hi < (int64_t)1 << 31 && was.kind == INTERVAL_NUMBER ? ((int64_t)1 << 31) - 1 : RANGE_END;
	}
	v->changed |= to.kind != was.kind || to.base != was.base || to.r.lo != was.r.lo ||
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
			to.r = gpul_range_wrap(to.r, bits_of(type));
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
		s[k] = number(gpul_range_of(0, 0));
	for (unsigned k = 0; k < 3 && k + 1 < in->n_operands; k++) {
		s[k] = gpul_interval_of(v, gpul_inst_operand(v->fn->f, in, k + 1), inst);
		if (s[k].kind == INTERVAL_NONE)
			return; /* not computed yet */
	}
	r = evaluate(in, s);
	if (to->kind == GPUL_PTX_OP_PAIR && in->opcode == GPUL_PTX_SETP && to->n_children == 2) {
		set_operand(v, &v->fn->f->operands[to->first_child], r);
		r.r = gpul_range_of(1 - r.r.hi, 1 - r.r.lo);
		set_operand(v, &v->fn->f->operands[to->first_child + 1], r);
		return;
	}
	if (to->kind != GPUL_PTX_OP_REG)
		r = number(gpul_range_full(64));
	set_operand(v, to, r);
}

/* A block is executed if control enters it from an executed block. */
static bool is_executed(const gpul_intervals *v, uint32_t block)
{
	for (uint32_t e = v->cfg.first_pred[block]; e < v->cfg.first_pred[block + 1]; e++)
		if (gpul_edge_is_taken(v, v->cfg.preds[e], block))
			return true;
	return block == 0;
}

static void transfer_phis(gpul_intervals *v, const gpul_phi **at, const gpul_phi *end, uint32_t inst)
{
	if (v->descending) /* compute each phi anew: its first row replaces the old value */
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

/* A phi's value, and the value of a guarded instruction that keeps the old value, have several sources. */
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

/* Mark the values about which a comparison says something. */
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
			if (x->kind == GPUL_PTX_OP_REG) /* the source of a conversion */
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
	memset(v->def, 0xff, n * sizeof *v->def); /* GPUL_PTX_NONE */
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
	v.descending = true; /* a fixpoint is reached: each further round keeps it right, and makes it smaller */
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
