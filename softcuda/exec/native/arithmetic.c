/* arithmetic.c — generates the code of integer and floating-point arithmetic. */
#include "softcuda/exec/native/rules_internal.h"

static const struct vector_op move = PS(0x28), add_q = PD(0xd4), sub_d = D0F(0xfa), and_d = D0F(0xdb), or_d = D0F(0xeb), left_d = D38(0x47),
			      right_d = D38(0x45), shift_q = PD(0x73), zero_extend = D38(0x35), blend_d = D38(0x64);
/* ModRM.reg of shift_q (vpsrlq or vpsllq by a constant) when it shifts to the right */
enum { RIGHT_BY = 2 };

void gpul_native_one(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, r->op, d.part[k], 0, a[k]);
		if (r->has_immediate)
			gpul_code_byte(&c->code, r->immediate);
	}
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_two(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes), *b = gpul_values_source(c, i->b, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, r->op, d.part[k], a[k], b[k]);
		if (r->has_immediate)
			gpul_code_byte(&c->code, r->immediate);
	}
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_constant(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	gpul_native_set_all(c, TEMP, r->bits, r->bytes == 8);
	for (unsigned k = 0; k < d.n_parts; k++)
		gpul_native_vector(c, r->op, d.part[k], a[k], TEMP);
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_constant_first(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	gpul_native_set_all(c, TEMP, r->bits, r->bytes == 8);
	for (unsigned k = 0; k < d.n_parts; k++)
		gpul_native_vector(c, r->op, d.part[k], TEMP, a[k]);
	gpul_native_finish(c, r, i->d, &d);
}

/* Emit d = op(a, b, c), for an opcode whose first source is its destination.  table: op is vpternlogd, with the truth table i->imm. */
static void three_sources(struct run_compiler *c, const struct insn *i, const struct rule *r, bool table)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes), *b = gpul_values_source(c, i->b, r->bytes),
		      *e = gpul_values_source(c, i->c, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, move, d.part[k], 0, a[k]);
		gpul_native_vector(c, r->op, d.part[k], b[k], e[k]);
		if (table)
			gpul_code_byte(&c->code, (unsigned)i->imm & 0xff);
	}
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_fused(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	three_sources(c, i, r, false);
}

/* Compile lop3 to vpternlogd, which uses the same truth table. */
void gpul_native_lop3(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	three_sources(c, i, r, true);
}

/* Compile `not` to vpternlogd with a truth table that negates c and ignores a and b. */
void gpul_native_not(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++)
		gpul_native_vector_imm(c, r->op, d.part[k], a[k], a[k], 0x55);
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_multiply_add(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes), *b = gpul_values_source(c, i->b, r->bytes),
		      *e = gpul_values_source(c, i->c, r->bytes);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, r->op, d.part[k], a[k], b[k]);
		gpul_native_vector(c, r->op2, d.part[k], d.part[k], e[k]);
	}
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_rounded(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	static const uint8_t roundings[] = { [ROUND_RN] = 0, [ROUND_RZ] = 3, [ROUND_RM] = 1, [ROUND_RP] = 2 };
	const unsigned round = roundings[i->flags & ROUND_MASK];
	const uint8_t *a = gpul_values_source(c, i->a, 4), *b = gpul_values_source(c, i->b, 4);
	const uint8_t *e = i->op == OP_FMA_F32_ANY ? gpul_values_source(c, i->c, 4) : NULL;
	struct value d = gpul_values_result(c, 4);

	for (unsigned k = 0; k < d.n_parts; k++) {
		if (e)
			gpul_native_vector(c, move, d.part[k], 0, a[k]);
		gpul_code_rounded(&c->code, r->op, d.part[k], e ? b[k] : a[k], e ? e[k] : b[k], round);
	}
	gpul_native_finish(c, r, i->d, &d);
}

/* Emit code that clamps to [0, 1]; NaN and -0 become +0, because vmaxps returns its second operand, +0, for NaN and equal zeros. */
void gpul_native_saturate(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, 4);
	struct value d = gpul_values_result(c, 4);

	gpul_native_set_all(c, TEMP, 0, false);
	gpul_native_set_all(c, TEMP + 1, 0x3f800000, false);
	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, r->op, d.part[k], a[k], TEMP);
		gpul_native_vector(c, r->op2, d.part[k], d.part[k], TEMP + 1);
	}
	gpul_native_finish(c, r, i->d, &d);
}

/* Compile a shift.  The count has 32 bits, even for 64-bit values.  As in PTX, a count beyond the width gives 0 or the sign. */
void gpul_native_shift(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, r->bytes), *b = gpul_values_source(c, i->b, 4);
	struct value d = gpul_values_result(c, r->bytes);

	for (unsigned k = 0; k < d.n_parts; k++) {
		if (r->bytes == 8)
			gpul_native_vector(c, zero_extend, TEMP, 0, gpul_native_half(c, b, k, TEMP));
		gpul_native_vector(c, r->op, d.part[k], a[k], r->bytes == 8 ? TEMP : b[k]);
	}
	gpul_native_finish(c, r, i->d, &d);
}

/* Compile shf.l.wrap: b << n | a >> (32 - n), or shf.r.wrap: a >> n | b << (32 - n).  A shift by 32 gives 0. */
static void funnel(struct run_compiler *c, const struct insn *i, const struct rule *r, unsigned left_count, unsigned right_count)
{
	const uint8_t *a = gpul_values_source(c, i->a, 4), *b = gpul_values_source(c, i->b, 4), *n = gpul_values_source(c, i->c, 4);
	struct value d = gpul_values_result(c, 4);

	gpul_native_set_all(c, TEMP + 2, 31, false);
	gpul_native_set_all(c, TEMP + 3, 32, false);
	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, and_d, TEMP, n[k], TEMP + 2);
		gpul_native_vector(c, sub_d, TEMP + 1, TEMP + 3, TEMP);
		gpul_native_vector(c, left_d, d.part[k], b[k], left_count);
		gpul_native_vector(c, right_d, TEMP, a[k], right_count);
		gpul_native_vector(c, or_d, d.part[k], d.part[k], TEMP);
	}
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_funnel_left(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	funnel(c, i, r, TEMP, TEMP + 1);
}

void gpul_native_funnel_right(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	funnel(c, i, r, TEMP + 1, TEMP);
}

/* ---- mul.hi, mul.wide, mad.wide ------------------------------------------------------------------ */

/* Compile mul.hi: the code computes the products of the even lanes, then those of the odd lanes, and combines their upper halves. */
void gpul_native_upper_product(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	const uint8_t *a = gpul_values_source(c, i->a, 4), *b = gpul_values_source(c, i->b, 4);
	struct value d = gpul_values_result(c, 4);

	gpul_code_set64(&c->code, R9, 0xaaaa);
	gpul_code_mask_from(&c->code, K_TEMP, R9);
	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, r->op, d.part[k], a[k], b[k]);
		gpul_native_vector_imm(c, shift_q, RIGHT_BY, d.part[k], d.part[k], 32);
		gpul_native_vector_imm(c, shift_q, RIGHT_BY, TEMP, a[k], 32);
		gpul_native_vector_imm(c, shift_q, RIGHT_BY, TEMP + 1, b[k], 32);
		gpul_native_vector(c, r->op, TEMP, TEMP, TEMP + 1);
		gpul_code_vector(&c->code, blend_d, d.part[k], d.part[k], TEMP, K_TEMP);
	}
	gpul_native_finish(c, r, i->d, &d);
}

/* Compile mul.wide and mad.wide: r->op extends the factors to 64 bits, r->op2 multiplies them, reading only their lower halves. */
static void wide_product(struct run_compiler *c, const struct insn *i, const struct rule *r, const uint8_t *summand)
{
	const uint8_t *a = gpul_values_source(c, i->a, 4), *b = gpul_values_source(c, i->b, 4);
	struct value d = gpul_values_result(c, 8);

	for (unsigned k = 0; k < d.n_parts; k++) {
		gpul_native_vector(c, r->op, TEMP, 0, gpul_native_half(c, a, k, TEMP));
		gpul_native_vector(c, r->op, TEMP + 1, 0, gpul_native_half(c, b, k, TEMP + 1));
		gpul_native_vector(c, r->op2, d.part[k], TEMP, TEMP + 1);
		if (summand)
			gpul_native_vector(c, add_q, d.part[k], d.part[k], summand[k]);
	}
	gpul_native_finish(c, r, i->d, &d);
}

void gpul_native_wide_product(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	wide_product(c, i, r, NULL);
}

void gpul_native_wide_sum(struct run_compiler *c, const struct insn *i, const struct rule *r)
{
	wide_product(c, i, r, gpul_values_source(c, i->c, 8));
}
