/* test_alu_float.c — f32 and f64: every rounding, .ftz, .sat, NaN, min and max.
 *
 * The references use the C library's fmaf and fma and the CPU's rounding modes; a table of
 * results computed by hand checks both against IEEE 754. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fenv.h>
#include <math.h>

#include "tests/softcuda/exec/alu/alu_rig.h"

static struct {
	unsigned kind, flags;
} now;
enum { ADD, SUB, MUL, FMA, DIV, RCP, SQRT };

static float no_subnormal(float x)
{
	return now.flags & FLAG_FTZ && fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };

/* Apply .ftz to a result r as observed on sm_90: zero if the result is below the least normal number after rounding to 24 bits
 * with unlimited exponent.  long double represents a product exactly, and quotients and fused sums precisely enough. */
static float no_tiny(float r, float x, float y, float z)
{
	if (!(now.flags & FLAG_FTZ) || fabsf(r) != 0x1p-126f)
		return no_subnormal(r);
	const long double p = (long double)x * y;
	const long double exact = now.kind == MUL   ? p
				  : now.kind == FMA ? p + z
				  : now.kind == DIV ? (long double)x / y
				  : now.kind == RCP ? 1 / (long double)x
						    : r;
	const long double m = fabsl(exact), high = 0x1p-126L, low = high - 0x1p-150L;
	if (m >= high)
		return r;
	const unsigned round = now.flags & ROUND_MASK;
	/* away: rounding m to 24 bits gives 2^-126, the least normal number, which .ftz keeps */
	const bool away = round == ROUND_RN ? m >= (low + high) / 2 : round != ROUND_RZ && m > low;
	return away ? r : copysignf(0, r);
}

static uint64_t f32_reference(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)e;
	volatile float x = no_subnormal(f32_of(a)), y = no_subnormal(f32_of(b)), z = no_subnormal(f32_of(c)), r = 0;
	fesetround(modes[now.flags & ROUND_MASK]);
	switch (now.kind) {
	case ADD:
		r = x + y;
		break;
	case SUB:
		r = x - y;
		break;
	case MUL:
		r = x * y;
		break;
	case FMA:
		r = fmaf(x, y, z);
		break;
	case DIV:
		r = x / y;
		break;
	case RCP:
		r = 1 / x;
		break;
	default:
		r = sqrtf(x);
		break;
	}
	fesetround(FE_TONEAREST);
	const float s = no_tiny(r, x, y, z);
	if (now.flags & FLAG_SAT)
		return bits32(isnan(s) || s <= 0 ? 0 : s > 1 ? 1 : s);
	return isnan(s) ? 0x7fffffff : bits32(s);
}

/* Return the first argument that is a NaN, as a quiet NaN. */
static uint64_t f64_nan(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t nan = isnan(f64_of(a)) ? a : isnan(f64_of(b)) ? b : isnan(f64_of(c)) ? c : 0xfff8000000000000;
	return nan | 0x0008000000000000;
}

static uint64_t f64_reference(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)e;
	volatile double x = f64_of(a), y = f64_of(b), z = f64_of(c), r = 0;
	fesetround(modes[now.flags & ROUND_MASK]);
	switch (now.kind) {
	case ADD:
		r = x + y;
		break;
	case SUB:
		r = x - y;
		break;
	case MUL:
		r = x * y;
		break;
	case FMA:
		r = fma(x, y, z);
		break;
	case DIV:
		r = x / y;
		break;
	case RCP:
		r = 1 / x;
		break;
	default:
		r = sqrt(x);
		break;
	}
	fesetround(FE_TONEAREST);
	if (isnan(r)) /* this NaN is what sm_90 returns */
		return now.kind >= DIV ? f64_nan(a, b, c) : f64_nan(b, c, a);
	return bits64(r);
}

static const uint64_t f32_addends[] = { 0,          0x80000000, 0x00000001, 0x3f800000, 0xbf800001, 0x33800000,
					0xb3800001, 0x7f7fffff, 0xff800000, 0x7fc00000, 0x80800000, 0x4b800001 };
static const uint64_t f64_addends[] = { 0,
					0x8000000000000000,
					1,
					0x3ff0000000000000,
					0xbff0000000000001,
					0x3ca0000000000000,
					0x7fefffffffffffff,
					0xfff0000000000000,
					0x7ff8000000000001,
					0xfff0000000000123 };

static void check(unsigned op, unsigned kind, unsigned flags, unsigned bits, unsigned sources)
{
	now.kind = kind;
	now.flags = flags;
	struct op_case t = { .op = op, .flags = flags, .d_bits = bits, .reference = bits == 32 ? f32_reference : f64_reference };
	for (unsigned k = 0; k < sources; k++) {
		t.bits[k] = bits;
		t.values[k] = bits == 32 ? (k < 2 ? LIST(f32_values) : LIST(f32_addends)) : (k < 2 ? LIST(f64_values) : LIST(f64_addends));
	}
	check_op(&t);
}

static const unsigned sources[] = { 2, 2, 2, 3, 2, 1, 1 };

static void rounding_to_nearest_is_exact_in_every_bit(void **state)
{
	(void)state;
	static const unsigned f32_ops[] = { OP_ADD_F32, OP_SUB_F32, OP_MUL_F32, OP_FMA_F32, OP_DIV_F32, OP_RCP_F32, OP_SQRT_F32 };
	static const unsigned f64_ops[] = { OP_ADD_F64, OP_SUB_F64, OP_MUL_F64, OP_FMA_F64, OP_DIV_F64, OP_RCP_F64, OP_SQRT_F64 };
	static const unsigned ftz_ops[] = { OP_ADD_F32_FTZ, OP_SUB_F32_FTZ, OP_MUL_F32_FTZ, OP_FMA_F32_FTZ };
	for (unsigned kind = ADD; kind <= SQRT; kind++) {
		check(f32_ops[kind], kind, 0, 32, sources[kind]);
		check(f64_ops[kind], kind, 0, 64, sources[kind]);
	}
	for (unsigned kind = ADD; kind <= FMA; kind++)
		check(ftz_ops[kind], kind, FLAG_FTZ, 32, sources[kind]);
}

static void directed_roundings_are_exact_in_every_bit(void **state)
{
	(void)state;
	static const unsigned f32_ops[] = { OP_ADD_F32_ANY, OP_SUB_F32_ANY, OP_MUL_F32_ANY, OP_FMA_F32_ANY,
					    OP_DIV_F32_ANY, OP_RCP_F32_ANY, OP_SQRT_F32_ANY };
	static const unsigned f64_ops[] = { OP_ADD_F64_ANY, OP_SUB_F64_ANY, OP_MUL_F64_ANY, OP_FMA_F64_ANY,
					    OP_DIV_F64_ANY, OP_RCP_F64_ANY, OP_SQRT_F64_ANY };
	for (unsigned kind = ADD; kind <= SQRT; kind++)
		for (unsigned round = ROUND_RN; round <= ROUND_RP; round++) {
			for (unsigned extra = 0; extra <= (FLAG_FTZ | FLAG_SAT); extra += FLAG_FTZ)
				check(f32_ops[kind], kind, round | extra, 32, sources[kind]);
			check(f64_ops[kind], kind, round, 64, sources[kind]);
		}
}

static void rounding_agrees_with_results_computed_by_hand(void **state)
{
	(void)state;
	static const struct {
		unsigned op, flags;
		uint32_t a, b, c, d;
	} golden[] = {
		/* 1 + 2^-149, 1 - 2^-149 */
		{ OP_ADD_F32_ANY, ROUND_RP, 0x3f800000, 1, 0, 0x3f800001 },
		{ OP_ADD_F32_ANY, ROUND_RM, 0x3f800000, 1, 0, 0x3f800000 },
		{ OP_SUB_F32_ANY, ROUND_RZ, 0x3f800000, 1, 0, 0x3f7fffff },
		{ OP_SUB_F32_ANY, ROUND_RP, 0x3f800000, 1, 0, 0x3f800000 },
		/* x - x is -0 only if it is rounded towards minus infinity */
		{ OP_SUB_F32_ANY, ROUND_RM, 0x3f800000, 0x3f800000, 0, 0x80000000 },
		{ OP_SUB_F32_ANY, ROUND_RZ, 0x3f800000, 0x3f800000, 0, 0 },
		/* 1 / 3 = 0x3eaaaaaa.aaa */
		{ OP_DIV_F32_ANY, ROUND_RZ, 0x3f800000, 0x40400000, 0, 0x3eaaaaaa },
		{ OP_DIV_F32_ANY, ROUND_RP, 0x3f800000, 0x40400000, 0, 0x3eaaaaab },
		/* the greatest float, doubled */
		{ OP_MUL_F32_ANY, ROUND_RZ, 0x7f7fffff, 0x40000000, 0, 0x7f7fffff },
		{ OP_MUL_F32_ANY, ROUND_RM, 0xff7fffff, 0x40000000, 0, 0xff800000 },
		{ OP_MUL_F32, ROUND_RN, 0x7f7fffff, 0x40000000, 0, 0x7f800000 },
		/* (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46, lost without a fused product */
		{ OP_FMA_F32, ROUND_RN, 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000 },
		/* computed in double, a sum like 2^24 + 1 + 2^-60 loses the small term, which breaks the tie between two floats */
		{ OP_FMA_F32, ROUND_RN, 0x21800000, 0x3f800000, 0x4b800000, 0x4b800000 },
		{ OP_FMA_F32, ROUND_RN, 0x3f800001, 0x3f7fffff, 0x4b800000, 0x4b800001 },
		{ OP_SQRT_F32_ANY, ROUND_RZ, 0x40000000, 0, 0, 0x3fb504f3 },
		{ OP_SQRT_F32_ANY, ROUND_RP, 0x40000000, 0, 0, 0x3fb504f4 },
		{ OP_ADD_F32, ROUND_RN, 0x7f800000, 0xff800000, 0, 0x7fffffff },
		{ OP_SQRT_F32, ROUND_RN, 0xbf800000, 0, 0, 0x7fffffff },
	};
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(golden) / sizeof(golden[0]); k++) {
			struct rig *r = rig_reset(4);
			rig_set(r, SLOT_A, 2, 32, golden[k].a);
			rig_set(r, SLOT_B, 2, 32, golden[k].b);
			rig_set(r, SLOT_C, 2, 32, golden[k].c);
			rig_run(r, b, golden[k].op, golden[k].flags, 0, 0);
			assert_int_equal(rig_get(r, SLOT_D, 2, 32), golden[k].d);
		}
}

/* Compare the emulated fma of the baseline build with the C library's, for products that make the sum nearly a tie. */
static void fused_products_are_rounded_once_on_random_operands(void **state)
{
	(void)state;
	uint64_t seed = 1;
	now.kind = FMA;
	now.flags = 0;
	for (unsigned round = 0; round < 3000; round++)
		for (const struct rig_build *b = rig_builds(); b->name; b++) {
			struct rig *r = rig_reset(ALL_LANES);
			uint64_t x[LANES][3];
			for (unsigned l = 0; l < LANES; l++)
				for (unsigned k = 0; k < 3; k++) {
					seed = seed * 6364136223846793005 + 1442695040888963407;
					/* exponents near 1 in half of the iterations, any exponent in the others */
					const uint64_t u = seed >> 32;
					x[l][k] = round & 1 ? u : (u & 0x81ffffff) | 0x3e000000;
					rig_set(r, SLOT_A + k, l, 32, x[l][k]);
				}
			rig_run(r, b, OP_FMA_F32, 0, 0, 0);
			for (unsigned l = 0; l < LANES; l++)
				assert_int_equal(rig_get(r, SLOT_D, l, 32), f32_reference(x[l][0], x[l][1], x[l][2], 0));
		}
}

/* ---- min, max, signs ------------------------------------------------------------------------------------------- */

static unsigned want_max, now_bits;

static uint64_t extreme(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)c, (void)e;
	const uint64_t sign = now_bits == 32 ? 0x80000000 : (uint64_t)1 << 63;
	const uint64_t nan = now_bits == 32 ? 0x7fffffff : b | 0x0008000000000000; /* the NaN of f64 is what sm_90 returns */
	double x = now_bits == 32 ? (double)no_subnormal(f32_of(a)) : f64_of(a);
	double y = now_bits == 32 ? (double)no_subnormal(f32_of(b)) : f64_of(b);
	const bool sign_of_result = (signbit(x) != 0) != (signbit(y) != 0);
	if ((isnan(x) && isnan(y)) || ((now.flags & FLAG_NAN) && (isnan(x) || isnan(y))))
		return nan;
	if (now.flags & FLAG_XORSIGN) {
		x = fabs(x);
		y = fabs(y);
	}
	double m;
	if (isnan(x) || isnan(y))
		m = isnan(x) ? y : x;
	else if (x == y)
		m = (signbit(x) != 0) == !want_max ? x : y;
	else
		m = (x < y) == !want_max ? x : y;
	const uint64_t u = now_bits == 32 ? bits32((float)m) : bits64(m);
	return now.flags & FLAG_XORSIGN ? (u & ~sign) | (sign_of_result ? sign : 0) : u;
}

static void min_and_max_prefer_numbers_and_order_zeros(void **state)
{
	(void)state;
	static const unsigned ops[][2] = { { OP_MIN_F32, OP_MAX_F32 }, { OP_MIN_F64, OP_MAX_F64 }, { OP_MIN_F32_ANY, OP_MAX_F32_ANY } };
	for (want_max = 0; want_max < 2; want_max++) {
		for (unsigned k = 0; k < 2; k++) {
			now_bits = 32u << k;
			now.flags = 0;
			const struct operands list = k ? LIST(f64_values) : LIST(f32_values);
			const struct op_case t = { .op = ops[k][want_max],
						   .d_bits = now_bits,
						   .bits = { now_bits, now_bits },
						   .values = { list, list },
						   .reference = extreme };
			check_op(&t);
		}
		now_bits = 32;
		for (now.flags = 0; now.flags < 128; now.flags += 4) {
			if (now.flags & (FLAG_SAT | FLAG_RELU))
				continue;
			const struct op_case t = { .op = ops[2][want_max],
						   .flags = now.flags,
						   .d_bits = 32,
						   .bits = { 32, 32 },
						   .values = { LIST(f32_values), LIST(f32_values) },
						   .reference = extreme };
			check_op(&t);
		}
	}
}

static uint64_t negated(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	if (isnan(now_bits == 32 ? (double)f32_of(a) : f64_of(a))) /* sm_90 returns this NaN; magnitude() does, too */
		return now_bits == 32 ? 0x7fffffff : a | 0x0008000000000000;
	return now_bits == 32 ? bits32(no_subnormal(f32_of(a))) ^ 0x80000000 : a ^ (uint64_t)1 << 63;
}
static uint64_t magnitude(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	if (isnan(now_bits == 32 ? (double)f32_of(a) : f64_of(a)))
		return now_bits == 32 ? 0x7fffffff : a | 0x0008000000000000;
	return now_bits == 32 ? bits32(no_subnormal(f32_of(a))) & INT32_MAX : a & INT64_MAX;
}
static uint64_t with_sign_of_a(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)c, (void)e;
	return now_bits == 32 ? bits32(copysignf(f32_of(b), f32_of(a))) : bits64(copysign(f64_of(b), f64_of(a)));
}

static void neg_and_abs_change_every_sign_except_that_of_nan(void **state)
{
	(void)state;
	static const struct {
		unsigned op, flags, bits, sources;
		reference_fn *f;
	} ops[] = {
		{ OP_NEG_F32, 0, 32, 1, negated },
		{ OP_NEG_F64, 0, 64, 1, negated },
		{ OP_NEG_F32_FTZ, FLAG_FTZ, 32, 1, negated },
		{ OP_ABS_F32, 0, 32, 1, magnitude },
		{ OP_ABS_F64, 0, 64, 1, magnitude },
		{ OP_ABS_F32_FTZ, FLAG_FTZ, 32, 1, magnitude },
		{ OP_COPYSIGN_F32, 0, 32, 2, with_sign_of_a },
		{ OP_COPYSIGN_F64, 0, 64, 2, with_sign_of_a },
	};
	for (unsigned k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
		now_bits = ops[k].bits;
		now.flags = ops[k].flags;
		const struct operands list = now_bits == 32 ? LIST(f32_values) : LIST(f64_values);
		const struct op_case t = { .op = ops[k].op,
					   .flags = ops[k].flags,
					   .d_bits = now_bits,
					   .reference = ops[k].f,
					   .bits = { now_bits, ops[k].sources > 1 ? now_bits : 0 },
					   .values = { list, list } };
		check_op(&t);
	}
}

/* The reference for f32x2: applies the reference for one float to both halves. */
static uint64_t pair_reference(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return f32_reference(a >> 32, b >> 32, c >> 32, e) << 32 | f32_reference(a & UINT32_MAX, b & UINT32_MAX, c & UINT32_MAX, e);
}

static void f32x2_operations_compute_both_floats(void **state)
{
	(void)state;
	static const uint64_t pairs[] = { 0x3f80000000000000, 0x800000017f7fffff, 0x7fc000003f800001, 0xbf7fffff33800000,
					  0x007fffff00800000 };
	static const unsigned ops[] = { OP_ADD_F32X2, OP_SUB_F32X2, OP_MUL_F32X2, OP_FMA_F32X2 };
	for (now.kind = ADD; now.kind <= FMA; now.kind++)
		for (now.flags = 0; now.flags < 8; now.flags++) {
			const struct op_case t = { .op = ops[now.kind],
						   .flags = now.flags,
						   .d_bits = 64,
						   .bits = { 64, 64, 64 },
						   .values = { LIST(pairs), LIST(pairs), LIST(pairs) },
						   .reference = pair_reference };
			check_op(&t);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounding_to_nearest_is_exact_in_every_bit),
		cmocka_unit_test(directed_roundings_are_exact_in_every_bit),
		cmocka_unit_test(rounding_agrees_with_results_computed_by_hand),
		cmocka_unit_test(fused_products_are_rounded_once_on_random_operands),
		cmocka_unit_test(min_and_max_prefer_numbers_and_order_zeros),
		cmocka_unit_test(neg_and_abs_change_every_sign_except_that_of_nan),
		cmocka_unit_test(f32x2_operations_compute_both_floats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
