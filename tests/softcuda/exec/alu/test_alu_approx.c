/* test_alu_approx.c — approximate functions: their error in ulp, and the ISA's tables of special values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "tests/softcuda/exec/alu/alu_rig.h"

/* Return the result of one build's handler for one operand. */
static float run_one(const struct rig_build *b, unsigned op, unsigned flags, float x, float y)
{
	struct rig *r = rig_reset(1);
	rig_set(r, SLOT_A, 0, 32, bits32(x));
	rig_set(r, SLOT_B, 0, 32, bits32(y));
	rig_run(r, b, op, flags, 0, 0);
	return f32_of(rig_get(r, SLOT_D, 0, 32));
}

static double error_in_ulp(float got, double exact)
{
	int exponent;
	frexp(exact, &exponent);
	return fabs((double)got - exact) / ldexp(1, exponent - 24 > -149 ? exponent - 24 : -149);
}

static double f_rcp(double x)
{
	return 1 / x;
}
static double f_rsqrt(double x)
{
	return 1 / sqrt(x);
}

static void errors_are_close_to_half_an_ulp(void **state)
{
	(void)state;
	static const struct {
		unsigned op;
		double (*exact)(double);
		float from, to;
		double ulp;
	} rows[] = {
		{ OP_RCP_APPROX, f_rcp, 1e-30f, 1e30f, 0.51 },     { OP_SQRT_APPROX, sqrt, 1e-40f, 1e38f, 0.51 },
		{ OP_RSQRT_APPROX, f_rsqrt, 1e-38f, 1e38f, 0.51 }, { OP_EX2_APPROX, exp2, -148, 127.99f, 0.51 },
		{ OP_LG2_APPROX, log2, 1e-44f, 0.99f, 0.51 },      { OP_LG2_APPROX, log2, 1.01f, 3e38f, 0.51 },
		{ OP_TANH_APPROX, tanh, 1e-20f, 30, 0.51 },        { OP_TANH_APPROX, tanh, -30, -1e-20f, 0.51 },
	};
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
			for (unsigned n = 0; n <= 2000; n++) {
				/* positive ranges in logarithmic steps, others in linear steps */
				const double t = n / 2000.0, lo = (double)rows[k].from, hi = (double)rows[k].to;
				const float x = (float)(lo > 0 ? lo * pow(hi / lo, t) : lo + (hi - lo) * t);
				const double error = error_in_ulp(run_one(b, rows[k].op, 0, x, 0), rows[k].exact((double)x));
				if (error > rows[k].ulp)
					fail_msg("%s.%s(%a): %g ulp", rig_op_name(rows[k].op), b->name, (double)x, error);
			}
}

static void sine_and_cosine_errors_are_below_the_ulp_of_one(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (int n = -4000; n <= 4000; n++) {
			const float x = (float)n * 0.00785398f; /* from 0 to 10 pi */
			assert_true(fabs((double)run_one(b, OP_SIN_APPROX, 0, x, 0) - sin((double)x)) < 0x1p-24);
			assert_true(fabs((double)run_one(b, OP_COS_APPROX, 0, x, 0) - cos((double)x)) < 0x1p-24);
		}
}

#define INF      0x7f800000
#define NEG_INF  0xff800000
#define QNAN     0x7fffffff
#define NEG_ZERO 0x80000000
#define ONE      0x3f800000

static void special_values_follow_the_isa(void **state)
{
	(void)state;
	static const struct {
		unsigned op, flags;
		uint32_t x, y, d;
	} rows[] = {
		{ OP_RCP_APPROX, 0, 0, 0, INF },
		{ OP_RCP_APPROX, 0, NEG_ZERO, 0, NEG_INF },
		{ OP_RCP_APPROX, 0, INF, 0, 0 },
		{ OP_RCP_APPROX, 0, NEG_INF, 0, NEG_ZERO },
		{ OP_RCP_APPROX, FLAG_FTZ, 0x80000001, 0, NEG_INF },
		{ OP_RCP_APPROX, FLAG_FTZ, 0x7f000000, 0, 0 },
		{ OP_RCP_APPROX, 0, 0x7f000000, 0, 0x00400000 },
		{ OP_SQRT_APPROX, 0, NEG_INF, 0, QNAN },
		{ OP_SQRT_APPROX, 0, 0xbf800000, 0, QNAN },
		{ OP_SQRT_APPROX, 0, NEG_ZERO, 0, NEG_ZERO },
		{ OP_SQRT_APPROX, FLAG_FTZ, 0x80000001, 0, NEG_ZERO },
		{ OP_SQRT_APPROX, 0, INF, 0, INF },
		{ OP_RSQRT_APPROX, 0, 0, 0, INF },
		{ OP_RSQRT_APPROX, 0, NEG_ZERO, 0, NEG_INF },
		{ OP_RSQRT_APPROX, 0, INF, 0, 0 },
		{ OP_RSQRT_APPROX, 0, 0xc0000000, 0, QNAN },
		{ OP_SIN_APPROX, 0, INF, 0, QNAN },
		{ OP_SIN_APPROX, 0, NEG_ZERO, 0, NEG_ZERO },
		{ OP_SIN_APPROX, FLAG_FTZ, 0x80000001, 0, NEG_ZERO },
		{ OP_COS_APPROX, 0, 0, 0, ONE },
		{ OP_COS_APPROX, 0, NEG_ZERO, 0, ONE },
		{ OP_COS_APPROX, 0, NEG_INF, 0, QNAN },
		{ OP_COS_APPROX, 0, 1, 0, ONE },
		{ OP_LG2_APPROX, 0, 0, 0, NEG_INF },
		{ OP_LG2_APPROX, 0, NEG_ZERO, 0, NEG_INF },
		{ OP_LG2_APPROX, 0, 0xbf800000, 0, QNAN },
		{ OP_LG2_APPROX, 0, INF, 0, INF },
		{ OP_LG2_APPROX, 0, ONE, 0, 0 },
		{ OP_LG2_APPROX, 0, 1, 0, 0xc3150000 },
		{ OP_LG2_APPROX, FLAG_FTZ, 1, 0, NEG_INF },
		{ OP_EX2_APPROX, 0, 0, 0, ONE },
		{ OP_EX2_APPROX, 0, NEG_INF, 0, 0 },
		{ OP_EX2_APPROX, 0, INF, 0, INF },
		{ OP_EX2_APPROX, 0, 0x80000001, 0, ONE },
		{ OP_EX2_APPROX, 0, 0x43000000, 0, INF },
		{ OP_EX2_APPROX, 0, 0xc3150000, 0, 1 },
		{ OP_EX2_APPROX, FLAG_FTZ, 0xc3150000, 0, 0 },
		{ OP_EX2_APPROX, 0, 0x7fc00000, 0, QNAN },
		{ OP_TANH_APPROX, 0, INF, 0, ONE },
		{ OP_TANH_APPROX, 0, NEG_INF, 0, 0xbf800000 },
		{ OP_TANH_APPROX, 0, NEG_ZERO, 0, NEG_ZERO },
		{ OP_TANH_APPROX, 0, 1, 0, 1 },
		{ OP_TANH_APPROX, 0, 0x7fc00000, 0, QNAN },
		{ OP_DIV_APPROX, 0, ONE, 0x7f000000, 0 },
		{ OP_DIV_APPROX, 0, NEG_INF, 0x7f000000, QNAN },
		{ OP_DIV_APPROX, 0, 0xbf800000, 0x7f000000, NEG_ZERO },
		{ OP_DIV_APPROX, 0, ONE, 0, INF },
		{ OP_DIV_FULL, 0, ONE, 0x7f000000, 0x00400000 },
		{ OP_DIV_FULL, FLAG_FTZ, ONE, 0x7f000000, 0 },
		{ OP_DIV_FULL, 0, 0x40c00000, 0x40000000, 0x40400000 },
	};
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			const uint64_t d = bits32(run_one(b, rows[k].op, rows[k].flags, f32_of(rows[k].x), f32_of(rows[k].y)));
			if (d != rows[k].d)
				fail_msg("%s.%s(%#x, %#x) is %#llx, not %#x", rig_op_name(rows[k].op), b->name, rows[k].x, rows[k].y,
					 (unsigned long long)d, rows[k].d);
		}
}

static void approximate_f64_forms_compute_the_upper_32_bits_and_flush_subnormals(void **state)
{
	(void)state;
	static const struct {
		unsigned op;
		uint64_t x, d;
	} rows[] = {
		{ OP_RCP_APPROX_F64, 0x4000000000000000, 0x3fe0000000000000 },
		{ OP_RCP_APPROX_F64, 0x00000000ffffffff, 0x7ff0000000000000 },
		{ OP_RCP_APPROX_F64, 0xfff0000000000000, 0x8000000000000000 },
		{ OP_RCP_APPROX_F64, 0x7ff8000000000001, 0x7fffffff00000000 },
		{ OP_RSQRT_APPROX_F64, 0x4010000000000000, 0x3fe0000000000000 },
		{ OP_RSQRT_APPROX_F64, 0x8000000000000000, 0xfff0000000000000 },
		{ OP_RSQRT_APPROX_F64, 0xbff0000000000000, 0x7fffffff00000000 },
	};
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			struct rig *r = rig_reset(1);
			rig_set(r, SLOT_A, 0, 64, rows[k].x);
			rig_run(r, b, rows[k].op, FLAG_FTZ, 0, 0);
			assert_true(rig_get(r, SLOT_D, 0, 64) == rows[k].d);
		}
}

/* Test all fractions of two adjacent exponents; other exponents differ by powers of 4, which do not change the fraction of a result. */
static void rsqrt_is_the_same_in_every_build(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (uint32_t u = 0x3f800000; u < 0x40800000; u += LANES) {
			struct rig *r = rig_reset(ALL_LANES);
			for (unsigned l = 0; l < LANES; l++)
				rig_set(r, SLOT_A, l, 32, u + l);
			rig_run(r, b, OP_RSQRT_APPROX, 0, 0, 0);
			for (unsigned l = 0; l < LANES; l++) {
				const float want = (float)(1 / sqrt((double)f32_of(u + l)));
				if (rig_get(r, SLOT_D, l, 32) != bits32(want))
					fail_msg("rsqrt.%s(%#x) is %#llx, not %a", b->name, u + l,
						 (unsigned long long)rig_get(r, SLOT_D, l, 32), (double)want);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_close_to_half_an_ulp),
		cmocka_unit_test(sine_and_cosine_errors_are_below_the_ulp_of_one),
		cmocka_unit_test(rsqrt_is_the_same_in_every_build),
		cmocka_unit_test(special_values_follow_the_isa),
		cmocka_unit_test(approximate_f64_forms_compute_the_upper_32_bits_and_flush_subnormals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
