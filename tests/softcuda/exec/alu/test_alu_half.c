/* test_alu_half.c — f16 and bf16 arithmetic; the reference finds the nearest of all values of the format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/softcuda/exec/alu/alu_rig.h"
#include "tests/softcuda/exec/alu/small_reference.h"

enum { ADD, SUB, MUL, FMA, MIN, MAX };
static struct {
	unsigned kind, flags;
	const struct small *format;
} now;

static uint64_t flushed(uint64_t h)
{
	return now.flags & FLAG_FTZ && !(h & 0x7c00) ? h & 0x8000 : h;
}

static bool sign_of_zero(float128 x, float128 y)
{
	return signbit((double)x) && signbit((double)y);
}

/* A zero sum is -0 only if both terms are -0; computing in double keeps these signs. */
static uint64_t arithmetic(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)e;
	const float128 x = small_value(now.format, (uint32_t)flushed(a)), z = small_value(now.format, (uint32_t)flushed(c));
	float128 y = small_value(now.format, (uint32_t)flushed(b)), r;
	bool negative;
	if (now.kind == MUL || now.kind == FMA) {
		const bool product_negative = !signbit((double)x) != !signbit((double)y);
		r = x * y;
		negative = r < 0 || (r == 0 && product_negative);
		if (now.kind == FMA) {
			const bool z_negative = signbit((double)z);
			negative = r == 0 && z == 0 ? product_negative && z_negative : r + z < 0;
			/* lost: z is too small for the 113 bits of the sum, but can break a tie. */
			const bool lost = r + z == r && z != 0 && isfinite((double)r);
			r = lost ? r + (r < 0 ? -r : r) * (z > 0 ? 0x1p-100 : -0x1p-100) : r + z;
		}
	} else {
		if (now.kind == SUB)
			y = -y;
		r = x + y;
		negative = r < 0 || (r == 0 && sign_of_zero(x, y));
	}
	uint64_t h;
	const float128 m = r < 0 ? -r : r; /* .ftz: zero if below the least normal number when rounded to 11 bits with unlimited exponent */
	if (now.flags & FLAG_FTZ && m < (float128)0x1p-14 - (float128)0x1p-26)
		r = 0;
	if (now.flags & FLAG_SAT)
		h = r > 1   ? small_round(now.format, 1, false, CONVERT_RN, false)
		    : r > 0 ? small_round(now.format, r, false, CONVERT_RN, false)
			    : 0;
	else if (now.flags & FLAG_RELU && r <= 0)
		h = 0;
	else
		h = small_round(now.format, r, negative, CONVERT_RN, false);
	return h;
}

static uint64_t extreme(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)c, (void)e;
	a = flushed(a);
	b = flushed(b);
	const uint64_t sign = (a ^ b) & 0x8000;
	const bool nan_a = (a & 0x7fff) > now.format->infinity, nan_b = (b & 0x7fff) > now.format->infinity;
	if ((nan_a && nan_b) || ((now.flags & FLAG_NAN) && (nan_a || nan_b)))
		return 0x7fff;
	if (now.flags & FLAG_XORSIGN) {
		a &= 0x7fff;
		b &= 0x7fff;
	}
	/* map sign and magnitude to one ordered integer */
	const int64_t x = a & 0x8000 ? -(int64_t)(a & 0x7fff) - 1 : (int64_t)a;
	const int64_t y = b & 0x8000 ? -(int64_t)(b & 0x7fff) - 1 : (int64_t)b;
	const uint64_t m = nan_a ? b : nan_b ? a : (x < y) == (now.kind == MIN) ? a : b;
	return now.flags & FLAG_XORSIGN ? (m & 0x7fff) | sign : m;
}

static uint64_t pair_of(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	reference_fn *f = now.kind >= MIN ? extreme : arithmetic;
	return (f(a >> 16, b >> 16, c >> 16, e) & 0xffff) << 16 | f(a & 0xffff, b & 0xffff, c & 0xffff, e);
}

static const uint64_t half_addends[] = { 0, 0x8000, 1, 0x3c00, 0xbf80, 0x7bff, 0xfc00, 0x7e00, 0x1400, 0x83ff };
static const uint64_t half_pairs[] = { 0x3c003f80, 0x00018001, 0x7bffff7f, 0x7e003c01, 0x80000000, 0x03ff0080, 0xfc007f80, 0x42484049 };

/* Check four operations, first_op for F16 and the next ones for F16X2, BF16 and BF16X2. */
static void check(unsigned first_op, unsigned kind, unsigned flags, unsigned flags_bf16, unsigned sources)
{
	now.kind = kind;
	for (unsigned k = 0; k < 4; k++) {
		now.format = k < 2 ? &small_f16 : &small_bf16;
		now.flags = k < 2 ? flags : flags_bf16;
		const unsigned bits = k & 1 ? 32 : 16;
		struct op_case t = { .op = first_op + k,
				     .flags = now.flags,
				     .d_bits = bits,
				     .reference = k & 1         ? pair_of
						  : kind >= MIN ? extreme
								: arithmetic };
		for (unsigned s = 0; s < sources; s++) {
			t.bits[s] = bits;
			t.values[s] = k & 1 ? LIST(half_pairs) : s < 2 ? LIST(half_values) : LIST(half_addends);
		}
		check_op(&t);
	}
}

static void halves_are_rounded_once(void **state)
{
	(void)state;
	static const unsigned ops[] = { OP_ADD_F16, OP_SUB_F16, OP_MUL_F16, OP_FMA_F16 };
	for (unsigned kind = ADD; kind <= FMA; kind++)
		for (unsigned flags = 0; flags <= (FLAG_FTZ | FLAG_SAT); flags += FLAG_FTZ)
			check(ops[kind], kind, flags, 0, kind == FMA ? 3 : 2);
	check(OP_FMA_F16, FMA, FLAG_RELU, FLAG_RELU, 3);
}

static void fused_halves_are_correct_on_random_operands(void **state)
{
	(void)state;
	static uint64_t random[3][64]; /* includes bf16 products at a tie that a tiny addend breaks */
	uint64_t seed = 7;
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned k = 0; k < 3; k++)
			for (unsigned n = 0; n < 64; n++) {
				seed = seed * 6364136223846793005 + 1442695040888963407;
				random[k][n] = seed >> 48;
			}
		for (unsigned k = 0; k < 2; k++) {
			now.kind = FMA;
			now.flags = 0;
			now.format = k ? &small_bf16 : &small_f16;
			const struct op_case t = { .op = k ? OP_FMA_BF16 : OP_FMA_F16,
						   .d_bits = 16,
						   .bits = { 16, 16, 16 },
						   .values = { { random[0], 64 }, { random[1], 61 }, { random[2], 5 } },
						   .reference = arithmetic };
			check_op(&t);
		}
	}
}

static void min_and_max_of_halves_prefer_numbers_and_order_zeros(void **state)
{
	(void)state;
	for (unsigned flags = 0; flags < 128; flags += 4)
		if (!(flags & (FLAG_SAT | FLAG_RELU))) {
			check(OP_MIN_F16, MIN, flags, flags & ~(unsigned)FLAG_FTZ, 2);
			check(OP_MAX_F16, MAX, flags, flags & ~(unsigned)FLAG_FTZ, 2);
		}
}

/* Every NaN becomes 0x7fff, as observed on sm_90. */
static bool is_nan(uint64_t a)
{
	return (a & 0x7fff) > now.format->infinity;
}
static uint64_t negated(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	return is_nan(a) ? 0x7fff : flushed(a) ^ 0x8000;
}
static uint64_t magnitude(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	return is_nan(a) ? 0x7fff : flushed(a) & 0x7fff;
}

static void neg_and_abs_change_every_sign_except_that_of_nan(void **state)
{
	(void)state;
	static const unsigned ops[] = { OP_NEG_F16, OP_ABS_F16, OP_NEG_BF16, OP_ABS_BF16 };
	for (now.flags = 0; now.flags <= FLAG_FTZ; now.flags += FLAG_FTZ)
		for (unsigned k = 0; k < (now.flags ? 2 : 4); k++) { /* .ftz is for f16 only */
			now.format = k < 2 ? &small_f16 : &small_bf16;
			const struct op_case t = { .op = ops[k],
						   .flags = now.flags,
						   .d_bits = 16,
						   .bits = { 16 },
						   .values = { LIST(half_values) },
						   .reference = k & 1 ? magnitude : negated };
			check_op(&t);
		}
}

/* Return true if the results differ by at most one unit of the last place.  PTX permits relative errors of 2^-9.9 (f16) and 2^-7 (bf16). */
static int within_one(uint64_t got, uint64_t want)
{
	return ((got ^ want) & 0x8000) == 0 && got - want + 1 <= 2;
}

static uint64_t ex2_of(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	return small_round(now.format, exp2(small_value(now.format, (uint32_t)a)), false, CONVERT_RN, false);
}
static uint64_t tanh_of(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	const double x = small_value(now.format, (uint32_t)a);
	return small_round(now.format, tanh(x), signbit(x), CONVERT_RN, false);
}

static void ex2_and_tanh_are_accurate_for_every_half(void **state)
{
	(void)state;
	static uint64_t all[65536];
	for (unsigned k = 0; k < 65536; k++)
		all[k] = k;
	for (unsigned k = 0; k < 4; k++) {
		now.format = k & 1 ? &small_bf16 : &small_f16;
		now.flags = 0;
		const struct op_case t = { .op = (unsigned[]){ OP_EX2_F16, OP_EX2_BF16, OP_TANH_F16, OP_TANH_BF16 }[k],
					   .d_bits = 16,
					   .bits = { 16 },
					   .values = { { all, 65536 } },
					   .reference = k < 2 ? ex2_of : tanh_of,
					   .accept = within_one };
		check_op(&t);
	}
}

/* ---- comparisons ------------------------------------------------------------------------------------------------ */

static uint64_t less(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)c, (void)e;
	return small_value(now.format, (uint32_t)a) < small_value(now.format, (uint32_t)b);
}
static uint64_t not_less(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return !less(a, b, c, e);
}
static uint64_t one_if_less(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return less(a, b, c, e) ? (now.format == &small_f16 ? 0x3c00u : 0x3f80u) : 0;
}
static uint64_t ones_if_less(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return less(a, b, c, e) ? UINT32_MAX : 0;
}

static void comparisons_set_predicates_and_words(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		now.format = k ? &small_bf16 : &small_f16;
		struct op_case t = { .op = k ? OP_SETP_BF16 : OP_SETP_F16,
				     .n = CMP_LT,
				     .d_bits = 1,
				     .bits = { 16, 16 },
				     .values = { LIST(half_values), LIST(half_values) },
				     .reference = less };
		check_op(&t);
		t.n = CMP_GEU;
		t.reference = not_less;
		check_op(&t);
		t.op = k ? OP_SET_BF16 : OP_SET_F16;
		t.n = CMP_LT;
		t.imm = 2;
		t.d_bits = 16;
		t.flags = SET_FLOAT | (k ? SET_BF16 : 0);
		t.reference = one_if_less;
		check_op(&t);
		t.imm = 4;
		t.d_bits = 32;
		t.flags = 0;
		t.reference = ones_if_less;
		check_op(&t);
	}
}

static void packed_comparisons_write_one_predicate_per_half(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		struct rig *r = rig_reset(ALL_LANES);
		for (unsigned l = 0; l < LANES; l++) {
			rig_set(r, SLOT_A, l, 32, l & 1 ? 0x3c004000 : 0x40003c00);
			rig_set(r, SLOT_B, l, 32, 0x3e003e00);
		}
		rig_run(r, b, OP_SETP_F16X2, COMPARE_HAS_Q, CMP_LT, 0);
		assert_int_equal(rig_get(r, SLOT_D, 0, 1), 1);
		assert_int_equal(*(uint32_t *)(void *)r->slots, 0x55555555);
		assert_int_equal(*(uint32_t *)(void *)(r->slots + SLOT_BYTES), 0xaaaaaaaa);
		rig_run(r, b, OP_SET_F16X2, SET_FLOAT, CMP_LT, 4);
		assert_int_equal(rig_get(r, SLOT_D, 0, 32), 0x00003c00);
		assert_int_equal(rig_get(r, SLOT_D, 1, 32), 0x3c000000);
	}
}

static void mixed_precision_adds_in_f32(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		struct rig *r = rig_reset(1);
		rig_set(r, SLOT_A, 0, 16, 0x3c01);     /* 1 + 2^-10 */
		rig_set(r, SLOT_B, 0, 32, 0x33800000); /* 2^-24 */
		rig_run(r, b, OP_ADD_MIXED, ROUND_RP, 0, 0);
		assert_int_equal(rig_get(r, SLOT_D, 0, 32), 0x3f802001);
		rig_run(r, b, OP_SUB_MIXED, ROUND_RN, 0, 0);
		assert_int_equal(rig_get(r, SLOT_D, 0, 32), 0x3f802000);
		rig_set(r, SLOT_A, 0, 16, 0x3f81); /* bf16 1 + 2^-7 */
		rig_set(r, SLOT_B, 0, 16, 0x3f81);
		rig_set(r, SLOT_C, 0, 32, 0xbf800000);
		rig_run(r, b, OP_FMA_MIXED, 128, 0, 0);
		assert_int_equal(rig_get(r, SLOT_D, 0, 32), 0x3c808000);
	}
}

/* Test every NaN in one operand, with 1 in the others; on an H200, out-of-bounds NaNs have an effect only in operands a and b. */
static void oob_nan_makes_a_product_zero(void **state)
{
	static const struct {
		unsigned op, one, least_nan;
	} rows[] = { { OP_FMA_OOB_F16, 0x3c00, 0x7c01 }, { OP_FMA_OOB_BF16, 0x3f80, 0x7f81 } };

	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < 2; k++)
			for (unsigned h = rows[k].least_nan; h < 0x10000; h++) {
				struct rig *r = rig_reset(1);

				if ((h & 0x7fff) < rows[k].least_nan)
					continue;
				for (unsigned slot = SLOT_A; slot <= SLOT_C; slot++) {
					for (unsigned s = SLOT_A; s <= SLOT_C; s++)
						rig_set(r, s, 0, 16, s == slot ? h : rows[k].one);
					rig_run(r, b, rows[k].op, 0, 0, 0);
					assert_int_equal(rig_get(r, SLOT_D, 0, 16), (h & 0x7fff) == 0x7ff7 && slot != SLOT_C ? 0 : 0x7fff);
				}
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves_are_rounded_once),
		cmocka_unit_test(fused_halves_are_correct_on_random_operands),
		cmocka_unit_test(min_and_max_of_halves_prefer_numbers_and_order_zeros),
		cmocka_unit_test(neg_and_abs_change_every_sign_except_that_of_nan),
		cmocka_unit_test(ex2_and_tanh_are_accurate_for_every_half),
		cmocka_unit_test(comparisons_set_predicates_and_words),
		cmocka_unit_test(packed_comparisons_write_one_predicate_per_half),
		cmocka_unit_test(mixed_precision_adds_in_f32),
		cmocka_unit_test(oob_nan_makes_a_product_zero),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
