/* test_alu_int.c — integer handlers against references in 128-bit arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/softcuda/exec/alu/alu_rig.h"

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

static int128 widened(uint64_t x, unsigned bits, bool is_signed)
{
	if (!is_signed)
		return (int128)x;
	const uint64_t sign = (uint64_t)1 << (bits - 1);
	return (int128)(x & (sign - 1)) - (int128)(x & sign);
}

/* The operation that the reference functions compute; set before each check. */
static struct {
	unsigned bits;
	bool is_signed;
	int128 (*f)(int128 a, int128 b, int128 c);
} under_test;

static uint64_t by_128(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)e;
	const unsigned n = under_test.bits;
	const bool s = under_test.is_signed;
	return (uint64_t)under_test.f(widened(a, n, s), widened(b, n, s), widened(c, n, s));
}

static int128 f_add(int128 a, int128 b, int128 c)
{
	(void)c;
	return a + b;
}
static int128 f_sub(int128 a, int128 b, int128 c)
{
	(void)c;
	return a - b;
}
static int128 f_mul(int128 a, int128 b, int128 c)
{
	(void)c;
	return (int128)((uint128)a * (uint128)b);
}
static int128 f_mad(int128 a, int128 b, int128 c)
{
	return (int128)((uint128)a * (uint128)b + (uint128)c);
}
static int128 f_neg(int128 a, int128 b, int128 c)
{
	(void)b, (void)c;
	return -a;
}
static int128 f_abs(int128 a, int128 b, int128 c)
{
	(void)b, (void)c;
	return a < 0 ? -a : a;
}
static int128 f_min(int128 a, int128 b, int128 c)
{
	(void)c;
	return a < b ? a : b;
}
static int128 f_max(int128 a, int128 b, int128 c)
{
	(void)c;
	return a > b ? a : b;
}
static int128 f_div(int128 a, int128 b, int128 c)
{
	(void)c;
	return b ? a / b : -1;
}
static int128 f_rem(int128 a, int128 b, int128 c)
{
	(void)c;
	return b ? a % b : a;
}
static int128 f_sad(int128 a, int128 b, int128 c)
{
	return (a < b ? b - a : a - b) + c;
}

static int128 high(int128 product)
{
	return under_test.is_signed ? product >> under_test.bits : (int128)((uint128)product >> under_test.bits);
}
static int128 f_mul_hi(int128 a, int128 b, int128 c)
{
	(void)c;
	return high((int128)((uint128)a * (uint128)b));
}
static int128 f_mad_hi(int128 a, int128 b, int128 c)
{
	return f_mul_hi(a, b, 0) + c;
}

static int128 clamp_s32(int128 x)
{
	return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x;
}
static int128 f_add_sat(int128 a, int128 b, int128 c)
{
	(void)c;
	return clamp_s32(a + b);
}
static int128 f_sub_sat(int128 a, int128 b, int128 c)
{
	(void)c;
	return clamp_s32(a - b);
}
static int128 f_mad_hi_sat(int128 a, int128 b, int128 c)
{
	return clamp_s32((a * b >> 32) + c);
}

static void check(unsigned op, unsigned bits, bool is_signed, unsigned sources, int128 (*f)(int128, int128, int128))
{
	static const uint64_t few[] = { 0, 1, 0x7fff, 0x80000000, 0xffffffffffffffff, 0x8000000000000000, 0x12345678 };
	under_test.bits = bits;
	under_test.is_signed = is_signed;
	under_test.f = f;
	struct op_case t = { .op = op, .d_bits = bits, .reference = by_128 };
	for (unsigned k = 0; k < sources; k++) {
		t.bits[k] = bits;
		t.values[k] = k < 2 ? LIST(int_values) : LIST(few);
	}
	check_op(&t);
}

#define BY_SIZE(op, sources, f) \
	do { \
		check(OP_##op##_16, 16, true, sources, f); \
		check(OP_##op##_32, 32, true, sources, f); \
		check(OP_##op##_64, 64, true, sources, f); \
	} while (0)
#define BY_INT(op, sources, f) \
	do { \
		check(OP_##op##_U16, 16, false, sources, f); \
		check(OP_##op##_S16, 16, true, sources, f); \
		check(OP_##op##_U32, 32, false, sources, f); \
		check(OP_##op##_S32, 32, true, sources, f); \
		check(OP_##op##_U64, 64, false, sources, f); \
		check(OP_##op##_S64, 64, true, sources, f); \
	} while (0)

static void sums_and_products_wrap(void **state)
{
	(void)state;
	BY_SIZE(ADD, 2, f_add);
	BY_SIZE(SUB, 2, f_sub);
	BY_SIZE(MUL, 2, f_mul);
	BY_SIZE(MAD, 3, f_mad);
	BY_SIZE(NEG, 1, f_neg);
	BY_SIZE(ABS, 1, f_abs);
}

static void upper_halves_of_products_are_exact(void **state)
{
	(void)state;
	BY_INT(MUL_HI, 2, f_mul_hi);
	BY_INT(MAD_HI, 3, f_mad_hi);
}

static void min_max_and_sad_handle_signs(void **state)
{
	(void)state;
	BY_INT(MIN, 2, f_min);
	BY_INT(MAX, 2, f_max);
	BY_INT(SAD, 3, f_sad);
}

static void division_by_zero_gives_all_ones_and_the_dividend(void **state)
{
	(void)state;
	BY_INT(DIV, 2, f_div);
	BY_INT(REM, 2, f_rem);
}

static void saturation_stops_at_the_ends_of_s32(void **state)
{
	(void)state;
	check(OP_ADD_SAT_S32, 32, true, 2, f_add_sat);
	check(OP_SUB_SAT_S32, 32, true, 2, f_sub_sat);
	check(OP_MAD_HI_SAT_S32, 32, true, 3, f_mad_hi_sat);
}

static void a_destination_may_be_a_source(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		struct rig *r = rig_reset(0xffff0fff);
		for (unsigned l = 0; l < LANES; l++)
			rig_set(r, SLOT_D, l, 32, l + 1);
		const struct insn i = { .d = RIG_REF(SLOT_D), .a = RIG_REF(SLOT_D), .b = RIG_REF(SLOT_D) };
		b->table[OP_MUL_32 - OP_ALU_FIRST](&r->w, &i);
		for (unsigned l = 0; l < LANES; l++)
			assert_int_equal(rig_get(r, SLOT_D, l, 32), l < 12 || l > 15 ? (l + 1) * (l + 1) : l + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_and_products_wrap),
		cmocka_unit_test(upper_halves_of_products_are_exact),
		cmocka_unit_test(min_max_and_sad_handle_signs),
		cmocka_unit_test(division_by_zero_gives_all_ones_and_the_dividend),
		cmocka_unit_test(saturation_stops_at_the_ends_of_s32),
		cmocka_unit_test(a_destination_may_be_a_source),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
