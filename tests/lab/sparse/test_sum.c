/* test_sum.c — sums of blocks: every f16 and bf16, the order of the ranks, zeros with a sign, integers that wrap. */
#include <string.h>

#include "tests/support/cmocka.h"

#include <math.h>

#include "lab/sparse/sum.h"

static uint64_t random_bits(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* The value of an f16 or bf16, from its definition. */
static double value_of(uint16_t x, int mantissa_bits)
{
	const int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
	const int exponent = (x & 0x7fff) >> mantissa_bits, mantissa = x & ((1 << mantissa_bits) - 1);
	double magnitude;

	if (exponent == (1 << exponent_bits) - 1)
		magnitude = mantissa ? (double)NAN : (double)INFINITY;
	else if (exponent == 0)
		magnitude = ldexp(mantissa, 1 - bias - mantissa_bits);
	else
		magnitude = ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
	return x >> 15 ? -magnitude : magnitude;
}

/* True if x is the representable number nearest to an exact value (of two equally near numbers, the even one).  Computed from the
 * neighbours of x, without the code under test. */
static bool is_rounded(uint16_t x, double exact, int mantissa_bits)
{
	const double most = value_of((uint16_t)((0x7fff & ~((1 << mantissa_bits) - 1)) - 1), mantissa_bits);
	const double step = most - value_of((uint16_t)((0x7fff & ~((1 << mantissa_bits) - 1)) - 2), mantissa_bits);
	const double got = value_of(x, mantissa_bits);
	double above, below;

	if (isnan(exact))
		return isnan(got);
	if (fabs(exact) >= most + step / 2)
		return isinf(got) && (got > 0) == (exact > 0);
	if (isnan(got) || isinf(got))
		return false;
	if (got == 0 || exact == 0)
		return fabs(exact) <= value_of(1, mantissa_bits) / 2 && got == 0;
	above = (x & 0x7fff) == 0x7fff - (1 << mantissa_bits) ? most + step : fabs(value_of((uint16_t)(x + 1), mantissa_bits));
	above = isinf(above) ? most + step : above;
	below = fabs(value_of((uint16_t)(x - 1), mantissa_bits));
	if ((got > 0) != (exact > 0))
		return false;
	if (x & 1)
		return fabs(exact) > (below + fabs(got)) / 2 && fabs(exact) < (above + fabs(got)) / 2;
	return fabs(exact) >= (below + fabs(got)) / 2 && fabs(exact) <= (above + fabs(got)) / 2;
}

static void sums_of_two_halves_are_rounded_once(void **state)
{
	static const struct {
		gpul_comm_dtype dtype;
		int mantissa_bits;
	} types[] = { { GPUL_COMM_F16, 10 }, { GPUL_COMM_BF16, 7 } };
	uint64_t seed = 1;

	(void)state;
	for (int t = 0; t < 2; t++)
		for (uint32_t i = 0; i < 1 << 20; i++) {
			const uint64_t bits = random_bits(&seed);
			/* b is random, half of the time with the exponent of a */
			const uint16_t a = (uint16_t)i, b = (uint16_t)(i >> 16 & 1 ? bits : (bits & 0x83ff) | (a & 0x7c00));
			const void *blocks[2] = { &a, &b };
			uint16_t sum, mean;

			gpul_sparse_sum(&sum, blocks, 2, 1, types[t].dtype, GPUL_COMM_SUM);
			assert_true(is_rounded(sum, value_of(a, types[t].mantissa_bits) + value_of(b, types[t].mantissa_bits),
					       types[t].mantissa_bits));
			gpul_sparse_sum(&mean, blocks, 2, 1, types[t].dtype, GPUL_COMM_AVG);
			assert_true(is_rounded(mean, value_of(sum, types[t].mantissa_bits) / 2, types[t].mantissa_bits));
		}
}

/* 1e8 - 1e8 + 1 is 1; in another order it is 0. */
static void floats_are_added_in_the_order_of_the_ranks(void **state)
{
	const float x[3] = { 1e8f, -1e8f, 1 };
	const double y[3] = { 1e17, -1e17, 1 };
	float sum;
	double sum64;

	(void)state;
	gpul_sparse_sum(&sum, (const void *[]){ &x[0], &x[1], &x[2] }, 3, 1, GPUL_COMM_F32, GPUL_COMM_SUM);
	assert_true(sum == 1);
	gpul_sparse_sum(&sum, (const void *[]){ &x[0], &x[2], &x[1] }, 3, 1, GPUL_COMM_F32, GPUL_COMM_SUM);
	assert_true(sum == 0);
	gpul_sparse_sum(&sum64, (const void *[]){ &y[0], &y[1], &y[2] }, 3, 1, GPUL_COMM_F64, GPUL_COMM_SUM);
	assert_true(sum64 == 1);
}

static void a_block_of_zeros_counts_as_if_it_were_sent(void **state)
{
	static const unsigned char zeros[16];
	static const struct {
		gpul_comm_dtype dtype;
		uint64_t minus_zero;
	} types[] = {
		{ GPUL_COMM_F16, 0x8000 },
		{ GPUL_COMM_BF16, 0x8000 },
		{ GPUL_COMM_F32, 0x80000000 },
		{ GPUL_COMM_F64, 1ull << 63 },
	};

	(void)state;
	for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
		const void *sent[3] = { &types[t].minus_zero, zeros, &types[t].minus_zero };
		const void *skipped[3] = { &types[t].minus_zero, NULL, &types[t].minus_zero };
		const void *all_minus[3] = { sent[0], sent[0], sent[0] };
		uint64_t a = 1, b = 1, c = 0;

		gpul_sparse_sum(&a, sent, 3, 1, types[t].dtype, GPUL_COMM_SUM);
		gpul_sparse_sum(&b, skipped, 3, 1, types[t].dtype, GPUL_COMM_SUM);
		gpul_sparse_sum(&c, all_minus, 3, 1, types[t].dtype, GPUL_COMM_SUM);
		assert_memory_equal(&a, &b, gpul_comm_dtype_bytes(types[t].dtype));
		assert_memory_equal(&b, zeros, gpul_comm_dtype_bytes(types[t].dtype));
		assert_memory_equal(&c, &types[t].minus_zero, gpul_comm_dtype_bytes(types[t].dtype));
	}
}

static void integers_wrap_and_divide_towards_zero(void **state)
{
	const int32_t big = INT32_MAX, one = 1, minus = -7;
	const uint8_t x = 200, y = 100;
	int32_t sum;
	uint8_t byte;

	(void)state;
	gpul_sparse_sum(&sum, (const void *[]){ &big, &one }, 2, 1, GPUL_COMM_I32, GPUL_COMM_SUM);
	assert_int_equal(sum, INT32_MIN);
	gpul_sparse_sum(&sum, (const void *[]){ &minus, NULL }, 2, 1, GPUL_COMM_I32, GPUL_COMM_AVG);
	assert_int_equal(sum, -3);
	gpul_sparse_sum(&byte, (const void *[]){ &x, &y }, 2, 1, GPUL_COMM_U8, GPUL_COMM_SUM);
	assert_int_equal(byte, 44);
	gpul_sparse_sum(&byte, (const void *[]){ &x, &y }, 2, 1, GPUL_COMM_U8, GPUL_COMM_AVG);
	assert_int_equal(byte, 22);
}

static void infinities_and_nans_stay(void **state)
{
	const float x[4] = { 1, INFINITY, -INFINITY, NAN };
	const uint16_t h[4] = { 0x3c00, 0x7c00, 0xfc00, 0x7e01 };
	float sum;
	uint16_t half;

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++) {
			gpul_sparse_sum(&sum, (const void *[]){ &x[i], NULL, &x[k] }, 3, 1, GPUL_COMM_F32, GPUL_COMM_SUM);
			assert_true(isnan(x[i] + x[k]) ? isnan(sum) : sum == x[i] + x[k]);
			gpul_sparse_sum(&half, (const void *[]){ &h[i], NULL, &h[k] }, 3, 1, GPUL_COMM_F16, GPUL_COMM_SUM);
			assert_true(is_rounded(half, (double)(x[i] + x[k]), 10));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_two_halves_are_rounded_once),
		cmocka_unit_test(floats_are_added_in_the_order_of_the_ranks),
		cmocka_unit_test(a_block_of_zeros_counts_as_if_it_were_sent),
		cmocka_unit_test(integers_wrap_and_divide_towards_zero),
		cmocka_unit_test(infinities_and_nans_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
