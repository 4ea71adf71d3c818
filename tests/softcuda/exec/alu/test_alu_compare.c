/* test_alu_compare.c — setp, set, testp, selp, slct, moves, packing, predicate logic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tests/softcuda/exec/alu/alu_rig.h"

static struct {
	unsigned cmp, kind;
} now; /* kind: 0 unsigned, 1 signed, 2 float; width: now_bits */
static unsigned now_bits;

static double as_float(uint64_t x)
{
	return now_bits == 32 ? (double)f32_of(x) : f64_of(x);
}

/* Compare a with b: -1 less, 0 equal, 1 greater, 2 unordered. */
static int order(uint64_t a, uint64_t b)
{
	if (now.kind == 2) {
		const double x = as_float(a), y = as_float(b);
		return isnan(x) || isnan(y) ? 2 : x < y ? -1 : x > y;
	}
	const uint64_t flip = now.kind == 1 ? (uint64_t)1 << (now_bits - 1) : 0;
	return (a ^ flip)<(b ^ flip) ? -1 : (a ^ flip)>(b ^ flip);
}

static uint64_t holds(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)c, (void)e;
	const int o = order(a, b);
	switch (now.cmp) {
	case CMP_EQ:
		return o == 0;
	case CMP_NE:
		return o == -1 || o == 1;
	case CMP_LT:
		return o == -1;
	case CMP_LE:
		return o == -1 || o == 0;
	case CMP_GT:
		return o == 1;
	case CMP_GE:
		return o == 1 || o == 0;
	case CMP_EQU:
		return o == 0 || o == 2;
	case CMP_NEU:
		return o != 0;
	case CMP_LTU:
		return o == -1 || o == 2;
	case CMP_LEU:
		return o != 1;
	case CMP_GTU:
		return o == 1 || o == 2;
	case CMP_GEU:
		return o != -1;
	case CMP_NUM:
		return o != 2;
	default:
		return o == 2;
	}
}

static const struct {
	unsigned plain, setp, set, bits, kind;
} types[] = {
	{ OP_SETP_EQ_U16, OP_SETP_ANY_16, OP_SET_ANY_16, 16, 0 }, { OP_SETP_EQ_S16, OP_SETP_ANY_16, OP_SET_ANY_16, 16, 1 },
	{ OP_SETP_EQ_U32, OP_SETP_ANY_32, OP_SET_ANY_32, 32, 0 }, { OP_SETP_EQ_S32, OP_SETP_ANY_32, OP_SET_ANY_32, 32, 1 },
	{ OP_SETP_EQ_U64, OP_SETP_ANY_64, OP_SET_ANY_64, 64, 0 }, { OP_SETP_EQ_S64, OP_SETP_ANY_64, OP_SET_ANY_64, 64, 1 },
	{ OP_SETP_EQ_F32, OP_SETP_ANY_32, OP_SET_ANY_32, 32, 2 }, { OP_SETP_EQ_F64, OP_SETP_ANY_64, OP_SET_ANY_64, 64, 2 },
};
enum { N_TYPES = sizeof(types) / sizeof(types[0]) };

static struct op_case case_of(unsigned k)
{
	now.kind = types[k].kind;
	now_bits = types[k].bits;
	const struct operands list = now.kind < 2 ? LIST(int_values) : now_bits == 32 ? LIST(f32_values) : LIST(f64_values);
	return (struct op_case){
		.op = types[k].plain, .d_bits = 1, .bits = { now_bits, now_bits }, .values = { list, list }, .reference = holds
	};
}

static void plain_comparisons_handle_sign_and_nan(void **state)
{
	(void)state;
	for (unsigned k = 0; k < N_TYPES; k++)
		for (now.cmp = CMP_EQ; now.cmp <= CMP_GE; now.cmp++) {
			struct op_case t = case_of(k);
			t.op += now.cmp;
			check_op(&t);
		}
}

static unsigned kind_flags(void)
{
	return now.kind == 1 ? COMPARE_SIGNED : now.kind == 2 ? COMPARE_FLOAT : 0;
}

static uint64_t anded(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return holds(a, b, c, e) & c;
}
static uint64_t ored(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return holds(a, b, c, e) | c;
}
static uint64_t xored(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return holds(a, b, c, e) ^ c;
}

static void every_comparison_combines_with_a_predicate(void **state)
{
	(void)state;
	static reference_fn *const refs[] = { holds, anded, ored, xored };
	for (unsigned k = 0; k < N_TYPES; k++)
		for (now.cmp = CMP_EQ; now.cmp <= (types[k].kind == 2 ? CMP_NAN : CMP_GE); now.cmp++)
			for (unsigned combine = 0; combine < 4; combine++) {
				struct op_case t = case_of(k);
				t.op = types[k].setp;
				t.flags = kind_flags() | combine;
				t.n = now.cmp;
				t.reference = refs[combine];
				t.bits[2] = 1;
				t.values[2] = LIST(bool_values);
				check_op(&t);
			}
}

static uint64_t all_ones(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return holds(a, b, c, e) ? UINT32_MAX : 0;
}
static uint64_t one_point_zero(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	return holds(a, b, c, e) ? 0x3f800000 : 0;
}

static void set_writes_all_ones_or_1_0(void **state)
{
	(void)state;
	for (unsigned k = 0; k < N_TYPES; k++)
		for (unsigned is_float = 0; is_float < 2; is_float++) {
			now.cmp = CMP_LT;
			struct op_case t = case_of(k);
			t.op = types[k].set;
			t.d_bits = 32;
			t.n = now.cmp;
			t.flags = kind_flags() | (is_float ? SET_FLOAT : 0);
			t.reference = is_float ? one_point_zero : all_ones;
			check_op(&t);
		}
}

static void the_second_predicate_is_the_complement_before_combining(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		struct rig *r = rig_reset(ALL_LANES);
		for (unsigned l = 0; l < LANES; l++) {
			rig_set(r, SLOT_A, l, 32, l);
			rig_set(r, SLOT_B, l, 32, 10);
			rig_set(r, SLOT_C, l, 1, l & 1);
		}
		rig_run(r, b, OP_SETP_ANY_32, COMBINE_AND | COMPARE_HAS_Q, CMP_LT, 0);
		for (unsigned l = 0; l < LANES; l++) {
			assert_int_equal(rig_get(r, SLOT_D, l, 1), l < 10 && (l & 1));
			assert_int_equal(rig_get(r, SLOT_D2, l, 1), l >= 10 && (l & 1));
		}
	}
}

static void ftz_compares_subnormals_as_zero(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		struct rig *r = rig_reset(ALL_LANES);
		for (unsigned l = 0; l < LANES; l++) {
			rig_set(r, SLOT_A, l, 32, 1 + l);
			rig_set(r, SLOT_B, l, 32, 0x80000000);
		}
		rig_run(r, b, OP_SETP_ANY_32, COMPARE_FLOAT | 4, CMP_EQ, 0);
		assert_int_equal(*(uint32_t *)(void *)r->slots, ALL_LANES);
		rig_run(r, b, OP_SETP_ANY_32, COMPARE_FLOAT, CMP_EQ, 0);
		assert_int_equal(*(uint32_t *)(void *)r->slots, 0);
	}
}

static uint64_t property(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	const double x = as_float(a);
	const double least = now_bits == 32 ? 0x1p-126 : 0x1p-1022;
	switch (now.cmp) {
	case TEST_FINITE:
		return isfinite(x) ? 1u : 0u;
	case TEST_INFINITE:
		return isinf(x) ? 1u : 0u;
	case TEST_NUMBER:
		return isnan(x) ? 0u : 1u;
	case TEST_NOTANUMBER:
		return isnan(x) ? 1u : 0u;
	case TEST_NORMAL:
		return isfinite(x) && (x == 0 || fabs(x) >= least) ? 1u : 0u;
	default:
		return x != 0 && fabs(x) < least ? 1u : 0u;
	}
}

static void testp_treats_zero_as_normal(void **state)
{
	(void)state;
	for (now.cmp = TEST_FINITE; now.cmp <= TEST_SUBNORMAL; now.cmp++)
		for (now_bits = 32; now_bits <= 64; now_bits += 32) {
			const struct op_case t = { .op = now_bits == 32 ? OP_TESTP_F32 : OP_TESTP_F64,
						   .n = now.cmp,
						   .d_bits = 1,
						   .bits = { now_bits },
						   .reference = property,
						   .values = { now_bits == 32 ? LIST(f32_values) : LIST(f64_values) } };
			check_op(&t);
		}
}

/* ---- selection and moves ---------------------------------------------------------------------------------- */

static uint64_t by_predicate(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)e;
	return c ? a : b;
}
static uint64_t by_sign(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)e;
	return c >> 31 ? b : a;
}
static uint64_t same(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	return a;
}
static unsigned slct_ftz;
static uint64_t by_float(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)e;
	now_bits = 32;
	double x = as_float(c);
	if (slct_ftz && fabs(x) < 0x1p-126)
		x = 0;
	return x >= 0 ? a : b;
}

static void selp_and_slct_select_a_or_b(void **state)
{
	(void)state;
	static const uint64_t few[] = { 0x1122334455667788, 0xfedcba9876543210, 7 };
	for (unsigned k = 0; k < 3; k++) {
		const unsigned bits = 16u << k;
		struct op_case t = { .op = OP_SELP_16 + k,
				     .d_bits = bits,
				     .bits = { bits, bits, 1 },
				     .reference = by_predicate,
				     .values = { LIST(few), LIST(int_values), LIST(bool_values) } };
		check_op(&t);
		t.bits[2] = 32;
		t.op = OP_SLCT_S32_16 + k;
		t.reference = by_sign;
		t.values[2] = LIST(int_values);
		check_op(&t);
		t.op = OP_SLCT_F32_16 + k;
		t.reference = by_float;
		t.values[2] = LIST(f32_values);
		for (slct_ftz = 0; slct_ftz < 2; slct_ftz++) {
			t.flags = slct_ftz ? FLAG_FTZ : 0;
			check_op(&t);
		}
		const struct op_case move = {
			.op = OP_MOV_16 + k, .d_bits = bits, .bits = { bits }, .reference = same, .values = { LIST(int_values) }
		};
		check_op(&move);
	}
}

static uint64_t p_and(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)c, (void)e;
	return a & b;
}
static uint64_t p_or(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)c, (void)e;
	return a | b;
}
static uint64_t p_xor(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)c, (void)e;
	return a ^ b;
}
static uint64_t p_not(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	return !a;
}

static void logic_on_predicates_is_bitwise(void **state)
{
	(void)state;
	static const struct {
		unsigned op, sources;
		reference_fn *f;
	} ops[] = {
		{ OP_AND_PRED, 2, p_and }, { OP_OR_PRED, 2, p_or },  { OP_XOR_PRED, 2, p_xor },
		{ OP_NOT_PRED, 1, p_not }, { OP_MOV_PRED, 1, same },
	};
	for (unsigned k = 0; k < 5; k++) {
		const struct op_case t = { .op = ops[k].op,
					   .d_bits = 1,
					   .bits = { 1, ops[k].sources > 1 },
					   .reference = ops[k].f,
					   .values = { LIST(bool_values), LIST(bool_values) } };
		check_op(&t);
	}
}

/* The elements of the vector are in slots 1 to 4, the packed value is in slot 0, and the constants list the slots. */
static void vectors_pack_and_unpack(void **state)
{
	(void)state;
	static const struct {
		unsigned pack, unpack, parts, part_bits, whole_bits;
	} kinds[] = {
		{ OP_PACK_2X8, OP_UNPACK_2X8, 2, 8, 16 },    { OP_PACK_4X8, OP_UNPACK_4X8, 4, 8, 32 },
		{ OP_PACK_2X16, OP_UNPACK_2X16, 2, 16, 32 }, { OP_PACK_4X16, OP_UNPACK_4X16, 4, 16, 64 },
		{ OP_PACK_2X32, OP_UNPACK_2X32, 2, 32, 64 },
	};
	opref list[4] = { RIG_REF(1), RIG_REF(2), RIG_REF(3), RIG_REF(4) };
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < 5; k++) {
			const unsigned slot_bits = kinds[k].part_bits == 8 ? 16 : kinds[k].part_bits;
			struct rig *r = rig_reset(0xfffffff0);
			r->w.bank[BANK_CONSTS] = (uint8_t *)list;
			for (unsigned l = 0; l < LANES; l++)
				for (unsigned p = 0; p < kinds[k].parts; p++)
					rig_set(r, 1 + p, l, slot_bits, 0xfedcba9876543210 + 0x1111 * (l + 40 * p));
			const struct insn pack = { .d = RIG_REF(0), .a = OPREF(BANK_CONSTS, 0), .n = (uint8_t)kinds[k].parts };
			b->table[kinds[k].pack - OP_ALU_FIRST](&r->w, &pack);
			for (unsigned l = 0; l < LANES; l++) {
				uint64_t whole = 0;
				for (unsigned p = 0; p < kinds[k].parts; p++)
					whole |= cut(0xfedcba9876543210 + 0x1111 * (l + 40 * p), kinds[k].part_bits)
						 << p * kinds[k].part_bits;
				assert_true(rig_get(r, 0, l, kinds[k].whole_bits) ==
					    cut(l < 4 ? 0x5a5a5a5a5a5a5a5a : whole, kinds[k].whole_bits));
			}
			memset(r->slots + SLOT_BYTES, 0x77, 4 * SLOT_BYTES);
			const struct insn unpack = { .d = OPREF(BANK_CONSTS, 0), .a = RIG_REF(0), .n = (uint8_t)kinds[k].parts };
			b->table[kinds[k].unpack - OP_ALU_FIRST](&r->w, &unpack);
			for (unsigned l = 0; l < LANES; l++)
				for (unsigned p = 0; p < kinds[k].parts; p++)
					assert_true(rig_get(r, 1 + p, l, slot_bits) ==
						    (l < 4 ? cut(0x7777777777777777, slot_bits)
							   : cut(0xfedcba9876543210 + 0x1111 * (l + 40 * p), kinds[k].part_bits)));
		}
}

static void words_of_128_bits_move_pack_and_unpack(void **state)
{
	(void)state;
	opref list[2] = { RIG_REF(2), RIG_REF(3) };
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		struct rig *r = rig_reset(0x7fffffff);
		r->w.bank[BANK_CONSTS] = (uint8_t *)list;
		for (unsigned l = 0; l < LANES; l++) {
			rig_set(r, 2, l, 64, 0x1000 + l);
			rig_set(r, 3, l, 64, 0x2000 + l);
		}
		const struct insn pack = { .d = RIG_REF(0), .a = OPREF(BANK_CONSTS, 0), .n = 2 };
		const struct insn move = { .d = RIG_REF(4), .a = RIG_REF(0) };
		const struct insn unpack = { .d = OPREF(BANK_CONSTS, 0), .a = RIG_REF(4), .n = 2 };
		b->table[OP_PACK_2X64 - OP_ALU_FIRST](&r->w, &pack);
		b->table[OP_MOV_128 - OP_ALU_FIRST](&r->w, &move);
		memset(r->slots + 2 * SLOT_BYTES, 0, 2 * SLOT_BYTES);
		b->table[OP_UNPACK_2X64 - OP_ALU_FIRST](&r->w, &unpack);
		for (unsigned l = 0; l < LANES; l++) {
			assert_int_equal(rig_get(r, 2, l, 64), l < 31 ? 0x1000 + l : 0);
			assert_int_equal(rig_get(r, 3, l, 64), l < 31 ? 0x2000 + l : 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_comparisons_handle_sign_and_nan),
		cmocka_unit_test(every_comparison_combines_with_a_predicate),
		cmocka_unit_test(set_writes_all_ones_or_1_0),
		cmocka_unit_test(the_second_predicate_is_the_complement_before_combining),
		cmocka_unit_test(ftz_compares_subnormals_as_zero),
		cmocka_unit_test(testp_treats_zero_as_normal),
		cmocka_unit_test(selp_and_slct_select_a_or_b),
		cmocka_unit_test(logic_on_predicates_is_bitwise),
		cmocka_unit_test(vectors_pack_and_unpack),
		cmocka_unit_test(words_of_128_bits_move_pack_and_unpack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
