/* trace_predict.c — computes the results of instructions with the same rules as the HTML page (page/rules.js).
 *
 * A rule may be wrong for some values, so trace_record.c compares its result with the interpreter's, and stores the values if the
 * results differ. */
#include "softcuda/tools/trace/trace_record_internal.h"

#include <math.h>

#include "softcuda/exec/program_internal.h"

static float f32(uint64_t bits)
{
	const uint32_t low = (uint32_t)bits;
	float f;

	memcpy(&f, &low, sizeof f);
	return f;
}

static uint64_t of_f32(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return bits;
}

static double f64(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof d);
	return d;
}

static uint64_t of_f64(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof bits);
	return bits;
}

/* Returns a + b and sets *error to the rounding error (Knuth). */
static double sum_f64(double a, double b, double *error)
{
	const double sum = a + b, part = sum - a;

	*error = a - (sum - part) + (b - part);
	return sum;
}

/* Returns a * b and sets *error to the rounding error (Veltkamp, Dekker). */
static double product_f64(double a, double b, double *error)
{
	const double split = 134217729, product = a * b, a1 = split * a, b1 = split * b;
	const double a_high = a1 - (a1 - a), b_high = b1 - (b1 - b), a_low = a - a_high, b_low = b - b_high;

	*error = a_low * b_low - (product - a_high * b_high - a_low * b_high - a_high * b_low);
	return product;
}

/* Returns a + b, rounded to odd. */
static double odd_f64(double a, double b)
{
	double error;
	const double sum = sum_f64(a, b, &error);
	const uint64_t bits = of_f64(sum);

	if (error == 0 || bits & 1 || !isfinite(sum))
		return sum;
	return f64((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/* Compute fma() with the same steps as page/rules.js, so that both have the same errors near overflow and underflow. Source: Boldo
 * and Melquiond, Emulation of FMA and correctly rounded sums, 2008. */
static double fma_f64(double a, double b, double c)
{
	double product_error, low, lower;
	const double product = product_f64(a, b, &product_error);
	const double high = sum_f64(c, product_error, &low), sum = sum_f64(product, high, &lower);

	return sum + odd_f64(lower, low);
}

static uint64_t reversed(uint64_t a)
{
	uint64_t out = 0;

	for (unsigned k = 0; k < 32; k++)
		out |= (a >> k & 1) << (31 - k);
	return out;
}

static uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, uint64_t table)
{
	uint64_t out = 0;

	for (unsigned k = 0; k < 8; k++)
		if (table >> k & 1)
			out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
	return out;
}

#define SIGNED(x) ((int64_t)(int32_t)(x))

/* Each rule is X(operation, bytes per source, number of sources, result). a, b and c are the sources as unsigned numbers; the result
 * is truncated to the register's width. The last source of selp is a predicate, 0 or 1. */
/* clang-format off */
#define RULES(X) \
	X(MOV_16, 2, 1, a) X(MOV_32, 4, 1, a) X(MOV_64, 8, 1, a) \
	X(ADD_32, 4, 2, a + b) X(SUB_32, 4, 2, a - b) X(MUL_32, 4, 2, a * b) X(MAD_32, 4, 3, a * b + c) X(NEG_32, 4, 1, 0 - a) \
	X(ADD_64, 8, 2, a + b) X(SUB_64, 8, 2, a - b) X(MUL_64, 8, 2, a * b) X(MAD_64, 8, 3, a * b + c) X(NEG_64, 8, 1, 0 - a) \
	X(MUL_WIDE_U32, 4, 2, a * b) X(MUL_WIDE_S32, 4, 2, (uint64_t)(SIGNED(a) * SIGNED(b))) \
	X(AND_32, 4, 2, a & b) X(OR_32, 4, 2, a | b) X(XOR_32, 4, 2, a ^ b) X(NOT_32, 4, 1, ~a) \
	X(AND_64, 8, 2, a & b) X(OR_64, 8, 2, a | b) X(XOR_64, 8, 2, a ^ b) X(NOT_64, 8, 1, ~a) \
	X(SHL_64, 8, 2, (uint32_t)b < 64 ? a << (b & 63) : 0) X(SHR_U64, 8, 2, (uint32_t)b < 64 ? a >> (b & 63) : 0) \
	X(POPC_32, 4, 1, (uint64_t)__builtin_popcount((uint32_t)a)) X(CLZ_32, 4, 1, (uint32_t)a ? (uint64_t)__builtin_clz((uint32_t)a) : 32) \
	X(MUL_HI_U32, 4, 2, a * b >> 32) X(CVT_U32_U16, 2, 1, a) X(CVT_16_32, 4, 1, a) \
	X(SHL_32, 4, 2, b < 32 ? a << b : 0) X(SHR_U32, 4, 2, b < 32 ? a >> b : 0) X(SHR_S32, 4, 2, (uint64_t)(SIGNED(a) >> (b < 31 ? b : 31))) \
	X(MIN_U32, 4, 2, a < b ? a : b) X(MAX_U32, 4, 2, a > b ? a : b) \
	X(MIN_S32, 4, 2, SIGNED(a) < SIGNED(b) ? a : b) X(MAX_S32, 4, 2, SIGNED(a) > SIGNED(b) ? a : b) \
	X(LOP3, 4, 3, lop3(a, b, c, imm)) \
	X(SHF_L_WRAP, 4, 3, (b << 32 | a) << (c & 31) >> 32) X(SHF_R_WRAP, 4, 3, (b << 32 | a) >> (c & 31)) \
	X(SELP_32, 4, 3, c ? a : b) X(SELP_64, 8, 3, c ? a : b) X(BREV_32, 4, 1, reversed(a)) \
	X(CVT_S64_S32, 4, 1, (uint64_t)SIGNED(a)) X(CVT_U64_U32, 4, 1, a) X(CVT_32_64, 8, 1, a) \
	X(ADD_F32, 4, 2, of_f32(f32(a) + f32(b))) X(SUB_F32, 4, 2, of_f32(f32(a) - f32(b))) X(MUL_F32, 4, 2, of_f32(f32(a) * f32(b))) \
	X(FMA_F32, 4, 3, of_f32(fmaf(f32(a), f32(b), f32(c)))) X(DIV_F32, 4, 2, of_f32(f32(a) / f32(b))) X(SQRT_F32, 4, 1, of_f32(sqrtf(f32(a)))) \
	X(NEG_F32, 4, 1, a ^ 0x80000000) X(ABS_F32, 4, 1, a & 0x7fffffff) \
	X(MIN_F32, 4, 2, f32(a) < f32(b) ? a : b) X(MAX_F32, 4, 2, f32(a) > f32(b) ? a : b) \
	X(CVT_F32_S32, 4, 1, of_f32((float)SIGNED(a))) X(CVT_F32_U32, 4, 1, of_f32((float)a)) \
	X(ADD_F64, 8, 2, of_f64(f64(a) + f64(b))) X(SUB_F64, 8, 2, of_f64(f64(a) - f64(b))) X(MUL_F64, 8, 2, of_f64(f64(a) * f64(b))) \
	X(FMA_F64, 8, 3, of_f64(fma_f64(f64(a), f64(b), f64(c)))) X(NEG_F64, 8, 1, a ^ UINT64_C(1) << 63) \
	X(ABS_F64, 8, 1, a & INT64_MAX) X(DIV_F64, 8, 2, of_f64(f64(a) / f64(b))) X(SQRT_F64, 8, 1, of_f64(sqrt(f64(a)))) \
	X(CVT_F64_S32, 4, 1, of_f64((double)SIGNED(a))) X(CVT_F64_U32, 4, 1, of_f64((double)a)) X(CVT_F64_F32, 4, 1, of_f64((double)f32(a))) \
	X(CVT_F32_F64, 8, 1, of_f32((float)f64(a)))
/* clang-format on */

/* The rules by operation; `name` is the name of the rule in page/rules.js. */
static const struct {
	const char *name;
	uint8_t bytes, n;
} known[N_OPS] = {
#define X(op, bytes, n, result) [OP_##op] = { #op, bytes, n },
	RULES(X)
#undef X
};

/* Return the size of source k in bytes: the size of the operation, except that shift amounts have 32 bits. */
static unsigned source_bytes(unsigned op, unsigned k)
{
	return k == 1 && (op == OP_SHL_64 || op == OP_SHR_U64) ? 4 : known[op].bytes;
}

/* Return the number of the register at this offset in the frame; UINT32_MAX if it holds temporary values. */
static uint32_t flat_register(const struct func_code *code, uint32_t offset)
{
	for (uint32_t k = 0; k < code->ptx->n_flat_regs; k++)
		if (code->reg_offset[k] == offset)
			return k;
	return UINT32_MAX;
}

void gpul_trace_rule_of(const struct func_code *code, const struct insn *i, struct trace_rule *out)
{
	const opref source[MAX_RULE_SOURCES] = { i->a, i->b, i->c, i->e };

	*out = (struct trace_rule){ 0 };
	if (!known[i->op].name)
		return;
	for (unsigned k = 0; k < known[i->op].n; k++) {
		const opref r = source[k];
		const uint32_t offset = r & ~3u;
		struct trace_source *to = &out->source[k];

		to->is_register = (r & 3) == BANK_REGS;
		if (to->is_register) {
			to->flat = flat_register(code, offset);
			if (to->flat == UINT32_MAX)
				return;
		} else if ((r & 3) == BANK_CONSTS) {
			memcpy(&to->value, code->program->consts.bytes + offset, source_bytes(i->op, k));
		} else {
			return;
		}
	}
	out->n = known[i->op].n;
	out->imm = (unsigned)i->imm & 255;
	out->name = known[i->op].name;
}

static void widen_source(const struct warp_state *s, const struct insn *i, unsigned k, uint64_t out[LANES])
{
	const opref source[MAX_RULE_SOURCES] = { i->a, i->b, i->c, i->e };

	if ((i->op == OP_SELP_32 || i->op == OP_SELP_64) && k == 2)
		for (unsigned l = 0; l < LANES; l++)
			out[l] = *PRED(&s->w, source[k]) >> l & 1;
	else
		gpul_trace_widen(opptr(&s->w, source[k]), source_bytes(i->op, k), out);
}

void gpul_trace_predict(const struct warp_state *s, const struct insn *i, uint64_t out[LANES])
{
	static const uint64_t none[LANES];
	uint64_t v[3][LANES];
	const uint64_t *source[3] = { none, none, none }, imm = (uint64_t)i->imm;

	for (unsigned k = 0; k < known[i->op].n; k++) {
		widen_source(s, i, k, v[k]);
		source[k] = v[k];
	}
	switch (i->op) {
#define X(op, bytes, n, result) \
	case OP_##op: \
		for (unsigned l = 0; l < LANES; l++) { \
			const uint64_t a = source[0][l], b = source[1][l], c = source[2][l]; \
			(void)a, (void)b, (void)c, (void)imm; \
			out[l] = (result); \
		} \
		break;
		RULES(X)
#undef X
	default:
		break;
	}
}
