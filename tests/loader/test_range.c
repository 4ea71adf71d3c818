/* test_range.c — ranges of integers contain every result of an instruction, for all values of 6-bit registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loader/signature/interval/range_internal.h"

enum { BITS = 6, VALUES = 1 << BITS };

/* True if r has a number that is equal to x modulo 2^BITS. */
static bool holds(gpul_range r, int64_t x)
{
	for (int64_t n = r.lo; n <= r.hi && n < r.lo + VALUES; n++)
		if (((n - x) & (VALUES - 1)) == 0)
			return true;
	return false;
}

/* Return x, a number of BITS bits, as a signed number. */
static int64_t as_signed(int64_t x)
{
	x &= VALUES - 1;
	return x >= VALUES / 2 ? x - VALUES : x;
}

static int64_t as_unsigned(int64_t x)
{
	return x & (VALUES - 1);
}

/* Check all operations for the values x of a and y of b. */
static void check_values(gpul_range a, gpul_range b, int64_t x, int64_t y)
{
	gpul_range sa = gpul_range_signed(a, BITS), ua = gpul_range_unsigned(a, BITS), sb = gpul_range_signed(b, BITS),
		   ub = gpul_range_unsigned(b, BITS);
	int64_t sx = as_signed(x), ux = as_unsigned(x), sy = as_signed(y), uy = as_unsigned(y);

	assert_true(sx >= sa.lo && sx <= sa.hi);
	assert_true(ux >= ua.lo && ux <= ua.hi);
	assert_true(holds(gpul_range_wrap(gpul_range_add(a, b), BITS), x + y));
	assert_true(holds(gpul_range_wrap(gpul_range_negate(a), BITS), -x));
	assert_true(holds(gpul_range_wrap(gpul_range_multiply(a, b), BITS), x * y));
	assert_true(holds(gpul_range_and(a, b, BITS), x & y));
	assert_true(holds(gpul_range_or(ua, ub, false, BITS), x | y));
	assert_true(holds(gpul_range_or(ua, ub, true, BITS), x ^ y));
	assert_true(holds(gpul_range_min_max(sa, sb, true), sx > sy ? sx : sy));
	assert_true(holds(gpul_range_min_max(ua, ub, false), ux < uy ? ux : uy));
	if (uy) {
		assert_true(holds(gpul_range_divide(ua, ub, BITS), ux / uy));
		assert_true(holds(gpul_range_remainder(ua, ub, BITS), ux % uy));
		assert_true(holds(gpul_range_divide(sa, sb, BITS), sx / sy));
		assert_true(holds(gpul_range_remainder(sa, sb, BITS), sx % sy));
	}
	assert_true(holds(gpul_range_wrap(gpul_range_shift_left(a, ub, BITS), BITS), uy < BITS ? x * ((int64_t)1 << uy) : 0));
	assert_true(holds(gpul_range_shift_right(sa, ub, BITS), sx >> uy));
	assert_true(holds(gpul_range_shift_right(ua, ub, BITS), ux >> uy));
}

static void check_comparisons(gpul_range a, gpul_range b, int64_t x, int64_t y)
{
	static const uint16_t ops[] = {
		GPUL_PTX_MOD_LT, GPUL_PTX_MOD_LE, GPUL_PTX_MOD_GT, GPUL_PTX_MOD_GE, GPUL_PTX_MOD_EQ, GPUL_PTX_MOD_NE
	};
	const bool results[] = { x<y, x <= y, x> y, x >= y, x == y, x != y };

	for (unsigned k = 0; k < 6; k++) {
		int says = gpul_range_compare(ops[k], a, b);
		gpul_range refined = gpul_range_refine(ops[k], a, b);

		assert_true(says < 0 || says == results[k]);
		assert_true(!results[k] || (x >= refined.lo && x <= refined.hi));
	}
}

static void ranges_contain_every_result(void **state)
{
	(void)state;
	for (int64_t a = -VALUES / 2; a < VALUES; a += 5)
		for (int64_t a_end = a; a_end < VALUES && a_end <= a + 40; a_end += 13)
			for (int64_t b = -VALUES / 2; b < VALUES; b += 3)
				for (int64_t b_end = b; b_end < VALUES && b_end <= b + 40; b_end += 19)
					for (int64_t x = a; x <= a_end; x++)
						for (int64_t y = b; y <= b_end; y++) {
							check_values(gpul_range_of(a, a_end), gpul_range_of(b, b_end), x, y);
							check_comparisons(gpul_range_of(a, a_end), gpul_range_of(b, b_end), x, y);
						}
}

static void sums_and_products_saturate(void **state)
{
	gpul_range big = gpul_range_of(1, RANGE_END - 1), full = gpul_range_full(64);

	(void)state;
	assert_int_equal(gpul_range_add(big, big).hi, RANGE_END);
	assert_int_equal(gpul_range_multiply(big, big).hi, RANGE_END);
	assert_int_equal(gpul_range_multiply(full, full).lo, -RANGE_END);
	assert_int_equal(gpul_range_add(full, gpul_range_of(1, 1)).hi, RANGE_END);
	assert_int_equal(gpul_range_negate(full).lo, -RANGE_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_contain_every_result),
		cmocka_unit_test(sums_and_products_saturate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
