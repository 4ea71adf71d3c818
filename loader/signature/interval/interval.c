/* interval.c — implements intervals: of operands, their join, and the result of each instruction. */
#include "loader/signature/interval/signature_launch_internal.h"

static uint8_t smaller_zeros(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

gpul_interval gpul_interval_number(gpul_range r)
{
	gpul_interval n = { .kind = INTERVAL_NUMBER, .r = r };

	if (r.lo == r.hi)
		n.zeros = r.lo ? (uint8_t)__builtin_ctzll((uint64_t)r.lo) : 63;
	return n;
}

unsigned gpul_type_bits(uint16_t type)
{
	unsigned bits = 8 * gpul_ptx_type_bytes(type);

	return type == GPUL_PTX_MOD_PRED ? 1 : bits ? bits : 64;
}

bool gpul_type_is_unsigned(uint16_t type)
{
	return type == GPUL_PTX_MOD_U8 || type == GPUL_PTX_MOD_U16 || type == GPUL_PTX_MOD_U32 || type == GPUL_PTX_MOD_U64;
}

bool gpul_type_is_float(uint16_t type)
{
	return type >= GPUL_PTX_MOD_F16 && type <= GPUL_PTX_MOD_F32X2;
}

gpul_interval gpul_interval_join(gpul_interval a, gpul_interval b)
{
	if (a.kind == INTERVAL_NONE || b.kind == INTERVAL_NONE)
		return a.kind == INTERVAL_NONE ? b : a;
	if (a.kind != b.kind) { /* ignore a null pointer, because it is never accessed */
		const gpul_interval *n = a.kind == INTERVAL_NUMBER ? &a : &b;

		if (n->kind == INTERVAL_NUMBER && n->r.lo == 0 && n->r.hi == 0)
			return n == &a ? b : a;
		return gpul_interval_number(gpul_range_full(64));
	}
	a.base |= b.base;
	a.r = gpul_range_join(a.r, b.r);
	a.zeros = smaller_zeros(a.zeros, b.zeros);
	a.size = a.size < b.size ? a.size : b.size;
	return a;
}

/* ---- arithmetic ------------------------------------------------------------------ */

gpul_interval gpul_interval_add(gpul_interval a, gpul_interval b, bool subtract, unsigned bits)
{
	bool same = a.kind == INTERVAL_POINTER && b.kind == INTERVAL_POINTER && a.base == b.base && !(a.base & (a.base - 1));

	if (subtract) {
		if (b.kind != INTERVAL_NUMBER && !same)
			return gpul_interval_number(gpul_range_full(bits));
		b.r = gpul_range_negate(b.r);
	} else if (a.kind == INTERVAL_NUMBER) {
		gpul_interval t = a;

		a = b;
		b = t;
	}
	a.r = gpul_range_add(a.r, b.r);
	a.zeros = smaller_zeros(a.zeros, b.zeros);
	if (same && subtract)
		return gpul_interval_number(a.r);
	if (b.kind != INTERVAL_NUMBER)
		return gpul_interval_number(gpul_range_full(bits));
	if (a.kind == INTERVAL_NUMBER)
		a.r = gpul_range_wrap(a.r, bits);
	else if (bits < 64 && a.kind == INTERVAL_POINTER)
		return gpul_interval_number(gpul_range_full(bits));
	return a;
}

static gpul_range multiply(const gpul_ptx_inst *in, gpul_range a, gpul_range b, unsigned bits)
{
	bool is_unsigned = gpul_type_is_unsigned(gpul_inst_type(in, 0));

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

/* Return the interval of the result of a bitwise operation or shift.  The lowest bits of an aligned pointer equal those of its offset. */
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
		return gpul_interval_number(gpul_range_and(gpul_range_full(bits), b.r, bits));
	}
	if (a.kind != INTERVAL_NUMBER || b.kind != INTERVAL_NUMBER)
		return gpul_interval_number(gpul_range_full(bits));
	if (in->opcode == GPUL_PTX_AND)
		r.r = gpul_range_and(a.r, b.r, bits);
	else
		r.r = gpul_range_or(gpul_range_unsigned(a.r, bits), gpul_range_unsigned(b.r, bits), in->opcode == GPUL_PTX_XOR, bits);
	return r;
}

static gpul_interval convert(const gpul_ptx_inst *in, gpul_interval a)
{
	uint16_t to = gpul_inst_type(in, 0), from = gpul_inst_type(in, 1);
	unsigned bits = gpul_type_bits(to), from_bits = gpul_type_bits(from);
	gpul_range full = gpul_range_full(bits);

	if (gpul_type_is_float(to) || gpul_type_is_float(from) || a.kind != INTERVAL_NUMBER) {
		if (a.kind != INTERVAL_NUMBER && bits == 64 && from_bits == 64)
			return a;
		return gpul_interval_number(gpul_type_is_unsigned(to) ? gpul_range_unsigned(full, bits) : gpul_range_signed(full, bits));
	}
	a.r = gpul_type_is_unsigned(from) ? gpul_range_unsigned(a.r, from_bits) : gpul_range_signed(a.r, from_bits);
	a.r = gpul_range_wrap(a.r, bits);
	return a;
}

static gpul_interval compare(const gpul_ptx_inst *in, gpul_interval a, gpul_interval b)
{
	static const uint16_t ops[] = {
		GPUL_PTX_MOD_LT, GPUL_PTX_MOD_LE, GPUL_PTX_MOD_GT, GPUL_PTX_MOD_GE, GPUL_PTX_MOD_EQ, GPUL_PTX_MOD_NE
	};
	uint16_t type = gpul_inst_type(in, 0);
	unsigned bits = gpul_type_bits(type);
	int result = -1;

	if (gpul_type_is_float(type) || in->n_operands != 3)
		return gpul_interval_number(gpul_range_of(0, 1));
	if (a.kind == INTERVAL_POINTER && b.kind == INTERVAL_NUMBER && b.r.lo == 0 && b.r.hi == 0)
		result = gpul_ptx_has_mod(in, GPUL_PTX_MOD_EQ) ? 0 : gpul_ptx_has_mod(in, GPUL_PTX_MOD_NE) ? 1 : -1;
	if (a.kind == INTERVAL_NUMBER && b.kind == INTERVAL_NUMBER)
		for (unsigned k = 0; k < sizeof ops / sizeof *ops; k++)
			if (gpul_ptx_has_mod(in, ops[k]))
				result = gpul_type_is_unsigned(type)
						 ? gpul_range_compare(ops[k], gpul_range_unsigned(a.r, bits),
								      gpul_range_unsigned(b.r, bits))
						 : gpul_range_compare(ops[k], gpul_range_signed(a.r, bits), gpul_range_signed(b.r, bits));
	return gpul_interval_number(gpul_range_of(result == 1, result != 0));
}

static gpul_interval select_value(gpul_interval a, gpul_interval b, gpul_interval p)
{
	if (p.kind == INTERVAL_NUMBER && p.r.lo == p.r.hi)
		return p.r.lo ? a : b;
	return gpul_interval_join(a, b);
}

/* Evaluate an instruction whose operands are all numbers. */
static gpul_range evaluate_numbers(const gpul_ptx_inst *in, gpul_range a, gpul_range b, unsigned bits)
{
	bool is_unsigned = gpul_type_is_unsigned(gpul_inst_type(in, 0));
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
		x = gpul_ptx_type_bytes(gpul_inst_type(in, 0)) && !is_unsigned && gpul_inst_type(in, 0) >= GPUL_PTX_MOD_B8 &&
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

/* Return the number of low bits of the result that are 0. */
static uint8_t zeros_of(const gpul_ptx_inst *in, const gpul_interval s[3])
{
	uint8_t least = smaller_zeros(s[0].zeros, s[1].zeros);
	uint8_t product = smaller_zeros(63, (uint8_t)(s[0].zeros + s[1].zeros));

	switch (in->opcode) {
	case GPUL_PTX_AND:
		return s[0].zeros > s[1].zeros ? s[0].zeros : s[1].zeros;
	case GPUL_PTX_OR:
	case GPUL_PTX_XOR:
	case GPUL_PTX_MIN:
	case GPUL_PTX_MAX:
		return least;
	case GPUL_PTX_CVT:
	case GPUL_PTX_NEG:
		return s[0].zeros;
	case GPUL_PTX_MUL:
		return gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI) ? 0 : product;
	case GPUL_PTX_MAD:
		return gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI) ? 0 : smaller_zeros(product, s[2].zeros);
	case GPUL_PTX_SHL:
		return s[1].r.lo >= 0 && s[1].r.lo < 63 ? smaller_zeros(63, (uint8_t)(s[0].zeros + s[1].r.lo)) : 0;
	default:
		return 0;
	}
}

/* Return the result of an instruction with the sources s; .zeros is not set. */
static gpul_interval evaluate_range(const gpul_ptx_inst *in, const gpul_interval s[3])
{
	uint16_t type = gpul_inst_type(in, 0);
	unsigned bits = gpul_type_bits(type);
	gpul_interval r = s[0];

	switch (in->opcode) {
	case GPUL_PTX_MOV:
	case GPUL_PTX_CVTA:
	case GPUL_PTX_SHFL:
		return r;
	case GPUL_PTX_SELP:
		return select_value(s[0], s[1], s[2]);
	case GPUL_PTX_SLCT:
		return gpul_interval_join(s[0], s[1]);
	case GPUL_PTX_SETP:
		return compare(in, s[0], s[1]);
	case GPUL_PTX_CVT:
		return convert(in, r);
	default:
		break;
	}
	if (gpul_type_is_float(type))
		return gpul_interval_number(gpul_range_full(bits));
	switch (in->opcode) {
	case GPUL_PTX_ADD:
	case GPUL_PTX_SUB:
		return gpul_interval_add(s[0], s[1], in->opcode == GPUL_PTX_SUB, bits);
	case GPUL_PTX_AND:
	case GPUL_PTX_OR:
	case GPUL_PTX_XOR:
		return bitwise(in, s[0], s[1], bits);
	default:
		break;
	}
	if (s[0].kind != INTERVAL_NUMBER || (in->n_operands > 2 && s[1].kind != INTERVAL_NUMBER))
		return gpul_interval_number(gpul_range_full(bits == 1 ? 1 : 64));
	if (in->opcode == GPUL_PTX_MUL)
		return gpul_interval_number(multiply(in, s[0].r, s[1].r, bits));
	if (in->opcode == GPUL_PTX_MAD) {
		if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_HI) && gpul_ptx_has_mod(in, GPUL_PTX_MOD_WIDE))
			return gpul_interval_number(gpul_range_full(64));
		r = gpul_interval_number(multiply(in, s[0].r, s[1].r, bits));
		return gpul_interval_add(r, s[2], false, gpul_ptx_has_mod(in, GPUL_PTX_MOD_WIDE) ? 2 * bits : bits);
	}
	return gpul_interval_number(evaluate_numbers(in, s[0].r, s[1].r, bits));
}

gpul_interval gpul_interval_evaluate(const gpul_ptx_inst *in, const gpul_interval s[3])
{
	gpul_interval r = evaluate_range(in, s);

	if (gpul_type_is_float(gpul_inst_type(in, 0)) || gpul_type_is_float(gpul_inst_type(in, 1)))
		return r;
	if (r.kind == INTERVAL_NUMBER && r.r.lo == r.r.hi)
		r.zeros = gpul_interval_number(r.r).zeros;
	else if (r.kind == INTERVAL_NUMBER && s[0].kind == INTERVAL_NUMBER && s[1].kind == INTERVAL_NUMBER && zeros_of(in, s) > r.zeros)
		r.zeros = zeros_of(in, s);
	return r;
}

/* ---- operands -------------------------------------------------------------------- */

static gpul_interval special_register(const gpul_assumed_launch *l, uint32_t which)
{
	uint32_t x = GPUL_PTX_SREG_TID_X, threads = l->block[0] * l->block[1] * l->block[2];

	if (which >= x && which <= GPUL_PTX_SREG_TID_Z)
		return gpul_interval_number(gpul_range_of(0, l->block[which - x] - 1));
	x = GPUL_PTX_SREG_NTID_X;
	if (which >= x && which <= GPUL_PTX_SREG_NTID_Z)
		return gpul_interval_number(gpul_range_of(l->block[which - x], l->block[which - x]));
	x = GPUL_PTX_SREG_CTAID_X;
	if (which >= x && which <= GPUL_PTX_SREG_CTAID_Z)
		return gpul_interval_number(gpul_range_of(0, l->grid[which - x] - 1));
	x = GPUL_PTX_SREG_NCTAID_X;
	if (which >= x && which <= GPUL_PTX_SREG_NCTAID_Z)
		return gpul_interval_number(gpul_range_of(l->grid[which - x], l->grid[which - x]));
	if (which == GPUL_PTX_SREG_LANEID)
		return gpul_interval_number(gpul_range_of(0, 31));
	if (which == GPUL_PTX_SREG_WARPID)
		return gpul_interval_number(gpul_range_of(0, (threads + 31) / 32 - 1));
	return gpul_interval_number(gpul_range_full(64));
}

static int64_t bytes_of_symbol(const gpul_intervals *v, const gpul_ptx_operand *o)
{
	uint64_t bytes = 0;

	if (o->ref_kind == GPUL_PTX_REF_MODULE_VAR)
		bytes = v->i->p->m->vars[o->index].bytes;
	else if (o->ref_kind == GPUL_PTX_REF_FUNC_VAR)
		bytes = v->fn->f->vars[o->index].bytes;
	return bytes < (uint64_t)RANGE_END ? (int64_t)bytes : 0;
}

gpul_interval gpul_interval_anywhere(const gpul_intervals *v, const gpul_ptx_operand *o)
{
	gpul_interval r;

	switch (o->kind) {
	case GPUL_PTX_OP_REG:
		r = v->values[gpul_ssa_value(v->fn->f, &v->fn->ssa, o)];
		if (o->negated && r.kind == INTERVAL_NUMBER)
			r.r = gpul_range_of(1 - (r.r.hi != 0), 1 - (r.r.lo != 0)); /* the operand is !p */
		return r;
	case GPUL_PTX_OP_SPECIAL:
		return special_register(v->launch, o->index);
	case GPUL_PTX_OP_INT:
		return gpul_interval_number(gpul_range_wrap(gpul_range_of(o->value.i, o->value.i), 64));
	case GPUL_PTX_OP_SYMBOL:
		return (gpul_interval){ .kind = INTERVAL_VARIABLE, .size = bytes_of_symbol(v, o) };
	default:
		return gpul_interval_number(gpul_range_full(64));
	}
}
