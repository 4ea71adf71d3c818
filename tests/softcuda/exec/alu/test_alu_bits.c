/* test_alu_bits.c — logic, shifts, bit fields, carry, moves and predicates, bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/softcuda/exec/alu/alu_rig.h"

/* ---- references: one bit at a time, as in the ISA's pseudocode ----------------------------------------------- */

static struct {
	unsigned bits, lut, flags, mode;
	bool is_signed;
} now;

static uint64_t bit(uint64_t x, unsigned k)
{
	return k < 64 ? x >> k & 1 : 0;
}

#define REF(name) static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
#define UNUSED(x) (void)(x)

REF(r_and)
{
	UNUSED(c), UNUSED(e);
	return a & b;
}
REF(r_or)
{
	UNUSED(c), UNUSED(e);
	return a | b;
}
REF(r_xor)
{
	UNUSED(c), UNUSED(e);
	return a ^ b;
}
REF(r_not)
{
	UNUSED(b), UNUSED(c), UNUSED(e);
	return ~a;
}
REF(r_cnot)
{
	UNUSED(b), UNUSED(c), UNUSED(e);
	return a == 0;
}

REF(r_shl)
{
	UNUSED(c), UNUSED(e);
	uint64_t d = 0;
	for (uint64_t k = b; k < now.bits; k++)
		d |= bit(a, (unsigned)(k - b)) << k;
	return d;
}

REF(r_shr)
{
	UNUSED(c), UNUSED(e);
	uint64_t d = 0;
	for (unsigned k = 0; k < now.bits; k++) {
		const uint64_t from = k + b;
		d |= (from < now.bits ? bit(a, (unsigned)from) : now.is_signed ? bit(a, now.bits - 1) : 0) << k;
	}
	return d;
}

REF(r_shf) /* flags: bit 0 shifts left, bit 1 wraps the shift amount */
{
	UNUSED(e);
	const unsigned by = now.flags & 2 ? c & 31 : c < 32 ? (unsigned)c : 32;
	uint64_t d = 0;
	for (unsigned k = 0; k < 32; k++) {
		const unsigned from = now.flags & 1 ? k + 32 - by : k + by;
		d |= (from < 32 ? bit(a, from) : bit(b, from - 32)) << k;
	}
	return d;
}

REF(r_lop3)
{
	UNUSED(e);
	uint64_t d = 0;
	for (unsigned k = 0; k < 32; k++)
		d |= bit(now.lut, (unsigned)(bit(a, k) << 2 | bit(b, k) << 1 | bit(c, k))) << k;
	return d;
}

REF(r_prmt)
{
	UNUSED(e);
	uint64_t d = 0;
	for (unsigned k = 0; k < 32; k++) {
		const unsigned nibble = c >> k / 8 * 4 & 15, byte = nibble & 7;
		const unsigned from = byte * 8 + (nibble & 8 ? 7 : k % 8);
		d |= (from < 32 ? bit(a, from) : bit(b, from - 32)) << k;
	}
	return d;
}

REF(r_prmt_mode) /* the table of each mode in the PTX ISA: the byte selected for bytes b3, b2, b1 and b0 */
{
	static const char *const tables[][4] = {
		[PRMT_F4E] = { "3210", "4321", "5432", "6543" }, [PRMT_B4E] = { "5670", "6701", "7012", "0123" },
		[PRMT_RC8] = { "0000", "1111", "2222", "3333" }, [PRMT_ECL] = { "3210", "3211", "3222", "3333" },
		[PRMT_ECR] = { "0000", "1110", "2210", "3210" }, [PRMT_RC16] = { "1010", "3232", "1010", "3232" },
	};
	uint64_t selector = 0;
	for (unsigned k = 0; k < 4; k++)
		selector = selector << 4 | (uint64_t)(tables[now.mode][c & 3][k] - '0');
	return r_prmt(a, b, selector, e);
}

REF(r_popc)
{
	UNUSED(b), UNUSED(c), UNUSED(e);
	uint64_t n = 0;
	for (; a; a >>= 1)
		n += a & 1;
	return n;
}
REF(r_clz)
{
	UNUSED(b), UNUSED(c), UNUSED(e);
	uint64_t n = 0;
	while (n < now.bits && !bit(a, now.bits - 1 - (unsigned)n))
		n++;
	return n;
}
REF(r_brev)
{
	UNUSED(b), UNUSED(c), UNUSED(e);
	uint64_t d = 0;
	for (unsigned k = 0; k < now.bits; k++)
		d |= bit(a, k) << (now.bits - 1 - k);
	return d;
}
REF(r_bfind) /* like the pseudocode of the PTX ISA */
{
	UNUSED(b), UNUSED(c), UNUSED(e);
	const unsigned msb = now.bits - 1;
	if (now.is_signed && bit(a, msb))
		a = ~a;
	for (int k = (int)msb; k >= 0; k--)
		if (bit(a, (unsigned)k))
			return now.flags & BFIND_SHIFTAMT ? msb - (unsigned)k : (unsigned)k;
	return UINT64_MAX;
}
REF(r_fns)
{
	UNUSED(e);
	if (b > 31)
		return UINT64_MAX;
	const int32_t offset = (int32_t)c;
	if (offset == 0)
		return bit(a, (unsigned)b) ? b : UINT64_MAX;
	int64_t pos = (int64_t)b, count = offset > 0 ? offset : -(int64_t)offset;
	for (; pos >= 0 && pos < 32; pos += offset > 0 ? 1 : -1)
		if (bit(a, (unsigned)pos) && --count == 0)
			return (uint64_t)pos;
	return UINT64_MAX;
}
REF(r_bfe) /* as the loop in the PTX ISA; positions and lengths above 255 as observed on sm_90 */
{
	UNUSED(e);
	const uint64_t cap = now.bits == 64 ? UINT32_MAX : 0xff, pos = b & cap, len = c & cap;
	const unsigned msb = now.bits - 1;
	const uint64_t sbit = !now.is_signed || len == 0 ? 0 : bit(a, pos + len - 1 < msb ? (unsigned)(pos + len - 1) : msb);
	uint64_t d = 0;
	for (unsigned k = 0; k <= msb; k++)
		d |= (k < len && pos + k <= msb ? bit(a, (unsigned)pos + k) : sbit) << k;
	return d;
}
REF(r_bfi)
{
	const uint64_t cap = now.bits == 64 ? UINT32_MAX : 0xff, pos = c & cap, len = e & cap;
	const unsigned msb = now.bits - 1;
	uint64_t d = b;
	for (unsigned k = 0; k < len && pos + k <= msb; k++)
		d = (d & ~((uint64_t)1 << (pos + k))) | bit(a, k) << (pos + k);
	return d;
}
REF(r_bmsk)
{
	UNUSED(c), UNUSED(e);
	if (now.flags)
		a &= 31, b &= 31;
	uint64_t d = 0;
	for (uint64_t k = 0; k < b && k < 32 && a + k < 32; k++)
		d |= (uint64_t)1 << (a + k);
	return d;
}
REF(r_szext)
{
	UNUSED(c), UNUSED(e);
	const uint64_t n = now.flags ? b & 31 : b;
	uint64_t d = 0;
	for (unsigned k = 0; k < 32; k++)
		d |= (k < n ? bit(a, k) : now.is_signed && n ? bit(a, (unsigned)n - 1) : 0) << k;
	return d;
}

static int64_t part(uint64_t x, unsigned k, unsigned bits, bool is_signed)
{
	const int64_t v = (int64_t)(x >> k * bits & (((uint64_t)1 << bits) - 1));
	return is_signed && v >> (bits - 1) ? v - ((int64_t)1 << bits) : v;
}
REF(r_dp4a)
{
	UNUSED(e);
	for (unsigned k = 0; k < 4; k++)
		c += (uint64_t)(part(a, k, 8, now.flags & DP_A_SIGNED) * part(b, k, 8, now.flags & DP_B_SIGNED));
	return c;
}
REF(r_dp2a)
{
	UNUSED(e);
	for (unsigned k = 0; k < 2; k++)
		c += (uint64_t)(part(a, k, 16, now.flags & DP_A_SIGNED) *
				part(b, k + (now.flags & DP_HI ? 2 : 0), 8, now.flags & DP_B_SIGNED));
	return c;
}

/* ---- checks of the handlers --------------------------------------------------------------------------- */

static const uint64_t amounts[] = { 0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256, 0x80000000, 0xffffffff };
static const uint64_t words[] = { 0, 1, 0x80000000, 0xffffffff, 0x12345678, 0xdeadbeef, 0x0000ffff, 0x80ff7f01 };

static void check(unsigned op, unsigned d_bits, unsigned bits, unsigned sources, reference_fn *reference)
{
	struct op_case t = {
		.op = op, .flags = now.flags, .n = now.mode, .imm = (int64_t)now.lut, .d_bits = d_bits, .reference = reference
	};
	for (unsigned k = 0; k < sources; k++) {
		t.bits[k] = bits;
		t.values[k] = k < 2 && sources < 3 ? LIST(int_values) : LIST(words);
	}
	check_op(&t);
}

static void with_amounts(unsigned op, unsigned bits, unsigned wide, unsigned narrow, reference_fn *reference)
{
	struct op_case t = { .op = op, .flags = now.flags, .d_bits = bits, .reference = reference };
	for (unsigned k = 0; k < wide + narrow; k++) {
		t.bits[k] = k < wide ? bits : 32;
		t.values[k] = k < wide ? (wide == 1 ? LIST(int_values) : LIST(words)) : LIST(amounts);
	}
	check_op(&t);
}

static void logic_is_bitwise_in_every_width(void **state)
{
	(void)state;
#define WIDTH(n) \
	check(OP_AND_##n, n, n, 2, r_and); \
	check(OP_OR_##n, n, n, 2, r_or); \
	check(OP_XOR_##n, n, n, 2, r_xor); \
	check(OP_NOT_##n, n, n, 1, r_not); \
	check(OP_CNOT_##n, n, n, 1, r_cnot);
	WIDTH(16) WIDTH(32) WIDTH(64)
}

static void shifts_beyond_the_width_clamp(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		now.bits = 16u << k;
		now.is_signed = false;
		with_amounts((unsigned[]){ OP_SHL_16, OP_SHL_32, OP_SHL_64 }[k], now.bits, 1, 1, r_shl);
		with_amounts((unsigned[]){ OP_SHR_U16, OP_SHR_U32, OP_SHR_U64 }[k], now.bits, 1, 1, r_shr);
		now.is_signed = true;
		with_amounts((unsigned[]){ OP_SHR_S16, OP_SHR_S32, OP_SHR_S64 }[k], now.bits, 1, 1, r_shr);
	}
}

static void funnel_shifts_use_both_words(void **state)
{
	(void)state;
	static const unsigned ops[] = { OP_SHF_R_CLAMP, OP_SHF_L_CLAMP, OP_SHF_R_WRAP, OP_SHF_L_WRAP };
	for (now.flags = 0; now.flags < 4; now.flags++)
		with_amounts(ops[now.flags], 32, 2, 1, r_shf);
	now.flags = 0;
}

static void lop3_computes_all_256_tables(void **state)
{
	(void)state;
	for (now.lut = 0; now.lut < 256; now.lut++)
		check(OP_LOP3, 32, 32, 3, r_lop3);
	now.lut = 0;
}

static void lop3_combines_with_a_predicate(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		struct rig *r = rig_reset(0x0000ffff);
		for (unsigned l = 0; l < LANES; l++) {
			rig_set(r, SLOT_A, l, 32, l & 1 ? 5 : 0);
			rig_set(r, SLOT_B, l, 32, 4);
			rig_set(r, SLOT_C, l, 32, 1);
			rig_set(r, SLOT_E, l, 1, l >> 1 & 1);
			rig_set(r, SLOT_D2, l, 1, 0);
		}
		rig_run(r, b, OP_LOP3_OR, 0, 0, 0x80); /* a & b & c is 0 where a, b, c are 5, 4 and 1 */
		for (unsigned l = 0; l < LANES; l++)
			assert_int_equal(rig_get(r, SLOT_D2, l, 1), l < 16 && (l >> 1 & 1));
		rig_run(r, b, OP_LOP3_AND, 0, 0, 0xfe); /* a | b | c is never 0 */
		for (unsigned l = 0; l < LANES; l++)
			assert_int_equal(rig_get(r, SLOT_D2, l, 1), l < 16 && (l >> 1 & 1));
	}
}

static void prmt_selects_bytes_and_signs(void **state)
{
	(void)state;
	static const uint64_t selectors[] = { 0x3210, 0x7654, 0x0123, 0xfedc, 0x8080, 0x1b8d, 0xffff1234 };
	struct op_case t = { .op = OP_PRMT,
			     .d_bits = 32,
			     .bits = { 32, 32, 32 },
			     .reference = r_prmt,
			     .values = { LIST(words), LIST(words), LIST(selectors) } };
	check_op(&t);
	t.op = OP_PRMT_MODE;
	t.reference = r_prmt_mode;
	for (now.mode = PRMT_F4E; now.mode <= PRMT_RC16; now.mode++) {
		t.n = now.mode;
		t.values[2] = LIST(amounts);
		check_op(&t);
	}
	now.mode = 0;
}

static void bits_are_counted_and_found(void **state)
{
	(void)state;
	now.bits = 32;
	check(OP_POPC_32, 32, 32, 1, r_popc);
	check(OP_CLZ_32, 32, 32, 1, r_clz);
	check(OP_BREV_32, 32, 32, 1, r_brev);
	now.bits = 64;
	check(OP_POPC_64, 32, 64, 1, r_popc);
	check(OP_CLZ_64, 32, 64, 1, r_clz);
	check(OP_BREV_64, 64, 64, 1, r_brev);
	for (now.flags = 0; now.flags < 2; now.flags++)
		for (unsigned k = 0; k < 4; k++) {
			now.bits = k < 2 ? 32 : 64;
			now.is_signed = k & 1;
			check((unsigned[]){ OP_BFIND_U32, OP_BFIND_S32, OP_BFIND_U64, OP_BFIND_S64 }[k], 32, now.bits, 1, r_bfind);
		}
	now.flags = 0;
	static const uint64_t offsets[] = { 0, 1, 2, 5, 31, 32, 0xffffffff, 0xfffffffe, 0xfffffff0, 0x80000000 };
	const struct op_case t = { .op = OP_FNS,
				   .d_bits = 32,
				   .bits = { 32, 32, 32 },
				   .reference = r_fns,
				   .values = { LIST(words), LIST(amounts), LIST(offsets) } };
	check_op(&t);
}

static void bit_fields_follow_the_isa_beyond_the_top(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		now.bits = k < 2 ? 32 : 64;
		now.is_signed = k & 1;
		with_amounts((unsigned[]){ OP_BFE_U32, OP_BFE_S32, OP_BFE_U64, OP_BFE_S64 }[k], now.bits, 1, 2, r_bfe);
	}
	now.bits = 32;
	with_amounts(OP_BFI_32, 32, 2, 2, r_bfi);
	now.bits = 64;
	with_amounts(OP_BFI_64, 64, 2, 2, r_bfi);
	now.flags = 0;
	with_amounts(OP_BMSK_CLAMP, 32, 0, 2, r_bmsk);
	now.flags = BMSK_WRAPS;
	with_amounts(OP_BMSK_WRAP, 32, 0, 2, r_bmsk);
	for (unsigned k = 0; k < 4; k++) {
		now.is_signed = k & 1;
		now.flags = k & 2 ? BMSK_WRAPS : 0;
		with_amounts(now.is_signed ? OP_SZEXT_S32 : OP_SZEXT_U32, 32, 1, 1, r_szext);
	}
	now.flags = 0;
}

static void dot_products_mix_signs(void **state)
{
	(void)state;
	for (now.flags = 0; now.flags < 4; now.flags++)
		check(OP_DP4A, 32, 32, 3, r_dp4a);
	for (now.flags = 0; now.flags < 8; now.flags++)
		check(OP_DP2A, 32, 32, 3, r_dp2a);
	now.flags = 0;
}

/* ---- instructions with carry ---------------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 uint128;

/* 128-bit sums and differences in four 32-bit (or two 64-bit) steps, connected by the carry. */
static void the_carry_propagates_through_a_chain(void **state)
{
	(void)state;
	const uint128 ones = ~(uint128)0;
	const uint128 values[] = { 0, 1, ones, ones - 1, ones >> 1, (uint128)1 << 64, ((uint128)1 << 96) - 1, (uint128)0xdeadbeef << 40 };
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < 64; k++)
			for (unsigned bits = 32; bits <= 64; bits += 32)
				for (unsigned sub = 0; sub < 2; sub++) {
					const uint128 x = values[k & 7], y = values[k >> 3], want = sub ? x - y : x + y;
					const unsigned op = bits == 32 ? (sub ? OP_SUBC_32 : OP_ADDC_32) : (sub ? OP_SUBC_64 : OP_ADDC_64);
					struct rig *r = rig_reset(0x00010000);
					r->w.cc = 0xfffeffff;
					for (unsigned at = 0; at < 128; at += bits) {
						rig_set(r, SLOT_A, 16, bits, (uint64_t)(x >> at));
						rig_set(r, SLOT_B, 16, bits, (uint64_t)(y >> at));
						rig_run(r, b, op, at ? CARRY_IN | CARRY_OUT : CARRY_OUT, 0, 0);
						assert_int_equal(rig_get(r, SLOT_D, 16, bits), cut((uint64_t)(want >> at), bits));
					}
					assert_int_equal(r->w.cc & ~0x10000u, 0xfffeffff); /* the other lanes keep their value */
				}
}

/* Subtraction adds the complement, so no borrow means that the carry is 1.  An addc may follow sub.cc, and a subc add.cc.  An H200
 * gives the results below for operands in memory and for constants. */
static void sums_and_differences_share_one_carry(void **state)
{
	static const struct {
		unsigned first, second;
		uint32_t a, b, c, d, want; /* a op b sets the carry, and c op d uses it */
	} rows[] = {
		{ OP_SUBC_32, OP_ADDC_32, 0, 0, 5, 9, 15 }, /* a - b has no borrow, so the carry is 1 */
		{ OP_SUBC_32, OP_ADDC_32, 0, 1, 5, 9, 14 },         { OP_SUBC_32, OP_SUBC_32, 5, 1, 9, 5, 4 },
		{ OP_SUBC_32, OP_SUBC_32, 1, 5, 9, 5, 3 },          { OP_ADDC_32, OP_SUBC_32, 0, 0, 9, 5, 3 },
		{ OP_ADDC_32, OP_SUBC_32, UINT32_MAX, 1, 9, 5, 4 }, { OP_ADDC_32, OP_ADDC_32, UINT32_MAX, 1, 9, 5, 15 },
		{ OP_SUBC_32, OP_MADC_LO_32, 7, 7, 9, 5, 46 },      { OP_SUBC_32, OP_MADC_LO_32, 7, 8, 9, 5, 45 },
	};

	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
			struct rig *r = rig_reset(1);

			rig_set(r, SLOT_C, 0, 32, 0);
			rig_set(r, SLOT_A, 0, 32, rows[k].a);
			rig_set(r, SLOT_B, 0, 32, rows[k].b);
			rig_run(r, b, rows[k].first, CARRY_OUT, 0, 0);
			rig_set(r, SLOT_A, 0, 32, rows[k].c);
			rig_set(r, SLOT_B, 0, 32, rows[k].d);
			rig_run(r, b, rows[k].second, CARRY_IN, 0, 0);
			assert_int_equal(rig_get(r, SLOT_D, 0, 32), rows[k].want);
		}
}

/* Compute 128-bit products of 64-bit numbers from their 32-bit halves, with the instructions that nvcc uses: mad.lo.cc, madc.hi. */
static void madc_multiplies_wide_numbers(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++) {
		struct rig *r = rig_reset(1);
		r->w.cc = 0;
		const uint64_t x = 0xfedcba9876543210, y = 0xffffffff00000001, z = 0x8000000180000001;
		rig_set(r, SLOT_A, 0, 64, x);
		rig_set(r, SLOT_B, 0, 64, y);
		rig_set(r, SLOT_C, 0, 64, z);
		rig_run(r, b, OP_MADC_LO_64, CARRY_OUT, 0, 0);
		const uint64_t low = rig_get(r, SLOT_D, 0, 64);
		rig_run(r, b, OP_MADC_HI_U64, CARRY_IN, 0, 0);
		const uint128 want = (uint128)x * y + ((uint128)z << 64 | z);
		assert_true(low == (uint64_t)want);
		assert_true(rig_get(r, SLOT_D, 0, 64) == (uint64_t)(want >> 64));
		rig_set(r, SLOT_A, 0, 32, 0x80000000);
		rig_set(r, SLOT_B, 0, 32, 3);
		rig_set(r, SLOT_C, 0, 32, 7);
		r->w.cc = 1;
		rig_run(r, b, OP_MADC_HI_S32, CARRY_IN, 0, 0);
		assert_int_equal(rig_get(r, SLOT_D, 0, 32), (uint32_t)(-2 + 7 + 1));
		rig_run(r, b, OP_MADC_HI_U32, CARRY_IN, 0, 0);
		assert_int_equal(rig_get(r, SLOT_D, 0, 32), 1 + 7 + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logic_is_bitwise_in_every_width),
		cmocka_unit_test(shifts_beyond_the_width_clamp),
		cmocka_unit_test(funnel_shifts_use_both_words),
		cmocka_unit_test(lop3_computes_all_256_tables),
		cmocka_unit_test(lop3_combines_with_a_predicate),
		cmocka_unit_test(prmt_selects_bytes_and_signs),
		cmocka_unit_test(bits_are_counted_and_found),
		cmocka_unit_test(bit_fields_follow_the_isa_beyond_the_top),
		cmocka_unit_test(dot_products_mix_signs),
		cmocka_unit_test(the_carry_propagates_through_a_chain),
		cmocka_unit_test(sums_and_differences_share_one_carry),
		cmocka_unit_test(madc_multiplies_wide_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
