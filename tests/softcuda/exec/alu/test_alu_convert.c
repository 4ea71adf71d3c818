/* test_alu_convert.c — cvt between every pair of types, in every rounding mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fenv.h>

#include "tests/softcuda/exec/alu/alu_rig.h"
#include "tests/softcuda/exec/alu/small_reference.h"

__extension__ typedef __int128 int128;

static struct conversion now;

static unsigned slot_bits(unsigned kind)
{
	switch (kind) {
	case KIND_U64:
	case KIND_S64:
	case KIND_F64:
		return 64;
	case KIND_U32:
	case KIND_S32:
	case KIND_F32:
	case KIND_TF32:
		return 32;
	default:
		return 16;
	}
}

static bool is_int(unsigned kind)
{
	return kind < KIND_F16;
}
static unsigned int_bits(unsigned kind)
{
	return 8u << kind / 2;
}
static bool int_signed(unsigned kind)
{
	return kind & 1;
}

static const struct small *small_of(unsigned kind)
{
	return kind == KIND_F16 ? &small_f16 : kind == KIND_BF16 ? &small_bf16 : kind == KIND_E4M3 ? &small_e4m3 : &small_e5m2;
}

static double float_source(uint64_t a)
{
	const float f = f32_of(a);

	switch (now.from) {
	case KIND_F64:
		return f64_of(a);
	case KIND_F32:
		return now.ftz && fpclassify(f) == FP_SUBNORMAL ? copysign(0, (double)f) : (double)f;
	default:
		return small_value(small_of(now.from), (uint32_t)a);
	}
}

static int128 int_source(uint64_t a)
{
	const unsigned bits = int_bits(now.from);
	a = cut(a, bits);
	return int_signed(now.from) && a >> (bits - 1) ? (int128)a - ((int128)1 << bits) : (int128)a;
}

static double integral(double x, unsigned round)
{
	switch (round) {
	case CONVERT_RNI:
		return rint(x);
	case CONVERT_RMI:
		return floor(x);
	case CONVERT_RPI:
		return ceil(x);
	default:
		return trunc(x);
	}
}

static uint64_t to_slot(int128 x)
{
	const unsigned bits = int_bits(now.to);
	const uint64_t u = cut((uint64_t)x, bits);
	if (bits == 8 && int_signed(now.to)) /* the register has 16 bits, so the sign is extended */
		return cut((uint64_t)(int64_t)(int8_t)u, 16);
	return u;
}

static uint64_t to_integer(uint64_t a)
{
	const unsigned bits = int_bits(now.to);
	const int128 most = ((int128)1 << (bits - int_signed(now.to))) - 1, least = int_signed(now.to) ? -most - 1 : 0;
	int128 x;
	if (is_int(now.from)) {
		x = int_source(a);
		if (!now.sat)
			return to_slot(x);
	} else {
		const double d = integral(float_source(a), now.round);
		if (isnan(d))
			return to_slot(now.from == KIND_F64 || bits == 64 ? (int128)1 << (bits - 1) : 0);
		x = d >= 0x1p100 ? (int128)1 << 100 : d <= -0x1p100 ? -((int128)1 << 100) : (int128)d;
	}
	return to_slot(x > most ? most : x < least ? least : x);
}

/* tf32: a float without its 13 low bits, treated as a format of 19 bits. */
static const struct small small_tf32 = { 10, 127, 0x3fbff, 0x3fc00, 0x3ffff, 0x40000 };

/* Observed on sm_90: .rna truncates a NaN's bits, without the rounding that it applies to numbers. */
static uint64_t nan_as_tf32(uint32_t u)
{
	if (now.round != CONVERT_RNA)
		return 0x7fffe000;
	return (u >> 13 << 13) - (now.satfinite ? 1u << 13 : 0);
}

/* Observed on sm_90: bf16 is converted to f32 by a shift; a NaN of f64 keeps its upper bits and becomes quiet. */
static uint64_t nan_as_float(uint64_t a)
{
	const uint32_t sign = a >> 63 ? 1 : 0;
	if (now.to == KIND_F32 && now.from == KIND_BF16)
		return a << 16;
	if (now.from != KIND_F64)
		return now.to == KIND_F32 ? 0x7fffffff : 0x7fff;
	if (now.to == KIND_F32)
		return sign << 31 | 0x7fc00000 | (uint32_t)(a >> 29 & 0x7fffff);
	return now.to == KIND_F16 ? sign << 15 | 0x7e00 | (uint32_t)(a >> 42 & 0x3ff) : sign << 15 | 0x7fc0 | (uint32_t)(a >> 45 & 0x7f);
}

/* True: .ftz replaces the result by zero, because it is below 2^-126 after rounding to 24 bits with an unlimited exponent. */
static bool is_tiny(long double exact)
{
	const long double m = fabsl(exact), high = 0x1p-126L, low = high - 0x1p-150L;
	const bool up = now.round == CONVERT_RN ? m >= (low + high) / 2
						: now.round != CONVERT_RZ && (now.round == CONVERT_RM) == (exact < 0) && m > low;
	return m < high && !up;
}

static uint64_t to_float(uint64_t a)
{
	static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
	volatile double x = is_int(now.from) ? 0 : float_source(a);
	volatile long double exact = is_int(now.from) ? (long double)int_source(a) : (long double)x;
	if (now.round >= CONVERT_RNI)
		exact = x = copysign(integral(x, now.round), x);
	if (now.relu && !isnan(exact) && exact <= 0)
		exact = 0;
	if (now.sat)
		exact = exact >= 1 ? 1 : exact > 0 ? exact : 0;
	const bool negative = signbit(exact);
	if (now.to == KIND_TF32) {
		const uint32_t t = small_round(&small_tf32, exact, negative, now.round, now.satfinite);
		return isnan(exact) ? nan_as_tf32((uint32_t)a) : (uint64_t)t << 13;
	}
	if (isnan(exact) && (now.to == KIND_F32 || now.to == KIND_F16 || now.to == KIND_BF16))
		return nan_as_float(a);
	if (now.to != KIND_F32 && now.to != KIND_F64) {
		const unsigned round = now.round >= CONVERT_RNI ? CONVERT_RN : now.round;
		if (now.round == CONVERT_RZ && isfinite(exact)) /* as with .satfinite, an overflow gives the greatest value */
			return small_round(small_of(now.to), exact, negative, round, true);
		return small_round(small_of(now.to), exact, negative, round, now.satfinite);
	}
	fesetround(now.round <= CONVERT_RP ? modes[now.round] : FE_TONEAREST);
	volatile float f = (float)exact;
	volatile double d = (double)exact;
	fesetround(FE_TONEAREST);
	uint64_t u;
	if (now.to == KIND_F64) {
		const double r = d;
		memcpy(&u, &r, sizeof(u));
		return u;
	}
	float r = f;
	if (now.ftz && is_tiny(exact))
		r = copysignf(0, r);
	uint32_t v;
	memcpy(&v, &r, sizeof(v));
	return v;
}

static uint64_t reference(uint64_t a, uint64_t b, uint64_t c, uint64_t e)
{
	(void)b, (void)c, (void)e;
	return is_int(now.to) ? to_integer(a) : to_float(a);
}

static int both_nan(uint64_t got, uint64_t want)
{
	double x, y;
	memcpy(&x, &got, sizeof(x));
	memcpy(&y, &want, sizeof(y));
	return now.to == KIND_F64 && isnan(x) && isnan(y);
}

static void check(unsigned op)
{
	struct op_case t = {
		.op = op, .d_bits = slot_bits(now.to), .bits = { slot_bits(now.from) }, .reference = reference, .accept = both_nan
	};
	memcpy(&t.imm, &now, sizeof(now));
	t.values[0] = is_int(now.from)       ? LIST(int_values)
		      : now.from == KIND_F64 ? LIST(f64_values)
		      : now.from == KIND_F32 ? LIST(f32_values)
					     : LIST(half_values);
	check_op(&t);
}

static void integers_are_truncated_extended_or_saturated(void **state)
{
	(void)state;
	for (uint8_t to = KIND_U8; to <= KIND_S64; to++)
		for (uint8_t from = KIND_U8; from <= KIND_S64; from++)
			for (unsigned sat = 0; sat < 2; sat++) {
				now = (struct conversion){ .to = to, .from = from, .sat = sat };
				check(OP_CVT_ANY);
			}
}

static const uint8_t float_kinds[] = { KIND_F16, KIND_BF16, KIND_F32, KIND_F64 };

static void floats_become_integers_in_four_roundings(void **state)
{
	(void)state;
	for (uint8_t to = KIND_U8; to <= KIND_S64; to++)
		for (unsigned k = 0; k < 4; k++)
			for (uint8_t round = CONVERT_RNI; round <= CONVERT_RPI; round++)
				for (unsigned ftz = 0; ftz < 2; ftz++) {
					now = (struct conversion){ .to = to, .from = float_kinds[k], .round = round, .ftz = ftz };
					check(OP_CVT_ANY);
				}
}

static void integers_become_floats_in_four_roundings(void **state)
{
	(void)state;
	for (uint8_t from = KIND_U8; from <= KIND_S64; from++)
		for (unsigned k = 0; k < 4; k++)
			for (uint8_t round = CONVERT_RN; round <= CONVERT_RP; round++) {
				/* The reference handles overflow only for rounding to nearest or to zero. */
				if (k < 2 && round > CONVERT_RZ)
					continue;
				now = (struct conversion){ .to = float_kinds[k], .from = from, .round = round };
				check(OP_CVT_ANY);
			}
}

static void floats_are_converted_between_formats(void **state)
{
	(void)state;
	static const uint8_t to_kinds[] = { KIND_F16, KIND_BF16, KIND_TF32, KIND_F32, KIND_F64, KIND_E4M3, KIND_E5M2 };
	for (unsigned t = 0; t < 7; t++)
		for (unsigned k = 0; k < 4; k++)
			for (uint8_t round = CONVERT_RN; round <= CONVERT_RNA; round++)
				for (unsigned extra = 0; extra < 16; extra++) {
					now = (struct conversion){ .to = to_kinds[t],
								   .from = float_kinds[k],
								   .round = round,
								   .sat = extra & 1,
								   .ftz = extra & 2,
								   .relu = extra & 4,
								   .satfinite = extra & 8 };
					if (now.to == KIND_TF32 && now.from != KIND_F32)
						continue; /* PTX does not have this combination */
					const bool wide = now.to == KIND_F32 || now.to == KIND_F64;
					if ((wide && (round == CONVERT_RNA || now.satfinite)) ||
					    (!wide && (round == CONVERT_RM || round == CONVERT_RP)))
						continue;
					check(OP_CVT_ANY);
				}
}

static void floats_are_rounded_to_integers_of_their_type(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++)
		for (uint8_t round = CONVERT_RNI; round <= CONVERT_RPI; round++)
			for (unsigned sat = 0; sat < 2; sat++) {
				now = (struct conversion){ .to = float_kinds[k], .from = float_kinds[k], .round = round, .sat = sat };
				check(OP_CVT_ANY);
			}
}

/* The operations that exist only for some types and modifiers. */
enum { FTZ = 1, SAT = 2 };
static const struct {
	unsigned op;
	uint8_t to, from, round;
	unsigned modifiers;
} fast_forms[] = {
	{ OP_CVT_S64_S32, KIND_S64, KIND_S32, 0, 0 },
	{ OP_CVT_U64_U32, KIND_U64, KIND_U32, 0, 0 },
	{ OP_CVT_32_64, KIND_U32, KIND_S64, 0, 0 },
	{ OP_CVT_U32_U16, KIND_U32, KIND_U16, 0, 0 },
	{ OP_CVT_S32_S16, KIND_S32, KIND_S16, 0, 0 },
	{ OP_CVT_16_32, KIND_U16, KIND_U32, 0, 0 },
	{ OP_CVT_S64_S16, KIND_S64, KIND_S16, 0, 0 },
	{ OP_CVT_U64_U16, KIND_U64, KIND_U16, 0, 0 },
	{ OP_CVT_16_64, KIND_U16, KIND_U64, 0, 0 },
	{ OP_CVT_S32_S8, KIND_S32, KIND_S8, 0, 0 },
	{ OP_CVT_U32_U8, KIND_U32, KIND_U8, 0, 0 },
	{ OP_CVT_S64_S8, KIND_S64, KIND_S8, 0, 0 },
	{ OP_CVT_U64_U8, KIND_U64, KIND_U8, 0, 0 },
	{ OP_CVT_S16_S8, KIND_S16, KIND_S8, 0, 0 },
	{ OP_CVT_U16_U8, KIND_U16, KIND_U8, 0, 0 },
	{ OP_CVT_F32_S32, KIND_F32, KIND_S32, 0, 0 },
	{ OP_CVT_F32_U32, KIND_F32, KIND_U32, 0, 0 },
	{ OP_CVT_F32_U16, KIND_F32, KIND_U16, 0, 0 },
	{ OP_CVT_F32_S16, KIND_F32, KIND_S16, 0, 0 },
	{ OP_CVT_F64_S32, KIND_F64, KIND_S32, 0, 0 },
	{ OP_CVT_F64_U32, KIND_F64, KIND_U32, 0, 0 },
	{ OP_CVT_F64_F32, KIND_F64, KIND_F32, 0, 0 },
	{ OP_CVT_F32_F64, KIND_F32, KIND_F64, 0, 0 },
	{ OP_CVT_RZI_S32_F32, KIND_S32, KIND_F32, CONVERT_RZI, 0 },
	{ OP_CVT_RZI_U32_F32, KIND_U32, KIND_F32, CONVERT_RZI, 0 },
	{ OP_CVT_F32_F16, KIND_F32, KIND_F16, 0, 0 },
	{ OP_CVT_F16_F32, KIND_F16, KIND_F32, 0, 0 },
	{ OP_CVT_F32_BF16, KIND_F32, KIND_BF16, 0, 0 },
	{ OP_CVT_BF16_F32, KIND_BF16, KIND_F32, 0, 0 },
	{ OP_CVT_F32_S64, KIND_F32, KIND_S64, 0, 0 },
	{ OP_CVT_F64_S64, KIND_F64, KIND_S64, 0, 0 },
	{ OP_CVT_F64_U64, KIND_F64, KIND_U64, 0, 0 },
	{ OP_CVT_F64_S16, KIND_F64, KIND_S16, 0, 0 },
	{ OP_CVT_F64_U16, KIND_F64, KIND_U16, 0, 0 },
	{ OP_CVT_RZI_S32_F32, KIND_S32, KIND_F32, CONVERT_RZI, FTZ },
	{ OP_CVT_RZI_U32_F32, KIND_U32, KIND_F32, CONVERT_RZI, FTZ },
	{ OP_CVT_F32_F16, KIND_F32, KIND_F16, 0, FTZ },
	{ OP_CVT_F16_F32, KIND_F16, KIND_F32, 0, FTZ },
	{ OP_CVT_RNI_S32_F32, KIND_S32, KIND_F32, CONVERT_RNI, 0 },
	{ OP_CVT_RNI_S32_F32, KIND_S32, KIND_F32, CONVERT_RNI, FTZ },
	{ OP_CVT_RMI_S32_F32, KIND_S32, KIND_F32, CONVERT_RMI, 0 },
	{ OP_CVT_RPI_S32_F32, KIND_S32, KIND_F32, CONVERT_RPI, 0 },
	{ OP_CVT_RNI_U32_F32, KIND_U32, KIND_F32, CONVERT_RNI, 0 },
	{ OP_CVT_RNI_U32_F32, KIND_U32, KIND_F32, CONVERT_RNI, FTZ },
	{ OP_CVT_RMI_U32_F32, KIND_U32, KIND_F32, CONVERT_RMI, 0 },
	{ OP_CVT_RPI_U32_F32, KIND_U32, KIND_F32, CONVERT_RPI, 0 },
	{ OP_CVT_RZI_S32_F64, KIND_S32, KIND_F64, CONVERT_RZI, 0 },
	{ OP_CVT_RNI_S32_F64, KIND_S32, KIND_F64, CONVERT_RNI, 0 },
	{ OP_CVT_RZI_U32_F64, KIND_U32, KIND_F64, CONVERT_RZI, 0 },
	{ OP_CVT_RZI_S64_F64, KIND_S64, KIND_F64, CONVERT_RZI, 0 },
	{ OP_CVT_RZI_S64_F32, KIND_S64, KIND_F32, CONVERT_RZI, 0 },
	{ OP_CVT_RNI_F32_F32, KIND_F32, KIND_F32, CONVERT_RNI, 0 },
	{ OP_CVT_RNI_F32_F32, KIND_F32, KIND_F32, CONVERT_RNI, FTZ },
	{ OP_CVT_RZI_F32_F32, KIND_F32, KIND_F32, CONVERT_RZI, 0 },
	{ OP_CVT_RZI_F32_F32, KIND_F32, KIND_F32, CONVERT_RZI, FTZ },
	{ OP_CVT_RMI_F32_F32, KIND_F32, KIND_F32, CONVERT_RMI, 0 },
	{ OP_CVT_RPI_F32_F32, KIND_F32, KIND_F32, CONVERT_RPI, 0 },
	{ OP_CVT_RMI_FTZ_F32_F32, KIND_F32, KIND_F32, CONVERT_RMI, FTZ },
	{ OP_CVT_RPI_FTZ_F32_F32, KIND_F32, KIND_F32, CONVERT_RPI, FTZ },
	{ OP_CVT_RNI_F64_F64, KIND_F64, KIND_F64, CONVERT_RNI, 0 },
	{ OP_CVT_RZI_F64_F64, KIND_F64, KIND_F64, CONVERT_RZI, 0 },
	{ OP_CVT_RMI_F64_F64, KIND_F64, KIND_F64, CONVERT_RMI, 0 },
	{ OP_CVT_RPI_F64_F64, KIND_F64, KIND_F64, CONVERT_RPI, 0 },
	{ OP_CVT_SAT_F32_F32, KIND_F32, KIND_F32, 0, SAT },
	{ OP_CVT_SAT_FTZ_F32_F32, KIND_F32, KIND_F32, 0, SAT | FTZ },
	{ OP_CVT_FTZ_F64_F32, KIND_F64, KIND_F32, 0, FTZ },
};

static void fast_paths_agree_with_the_general_handler(void **state)
{
	(void)state;
	for (unsigned k = 0; k < sizeof(fast_forms) / sizeof(fast_forms[0]); k++) {
		const unsigned modifiers = fast_forms[k].modifiers;
		now = (struct conversion){ fast_forms[k].to, fast_forms[k].from, fast_forms[k].round, .sat = modifiers & SAT,
					   .ftz = modifiers & FTZ };
		check(fast_forms[k].op);
	}
}

/* Run both operations with the sources of 32 lanes in slots A and B, and compare all lanes of the destination. */
static void check_same(const struct rig_build *b, unsigned fast, unsigned general, const struct conversion *cv, const uint32_t *a_of,
		       const uint32_t *b_of)
{
	static const uint32_t masks[] = { ALL_LANES, 0x5a5a0ff1 };
	const unsigned a_bits = general == OP_CVT_UNPAIR ? 16 : 32, d_bits = cv->to == KIND_E4M3 || cv->to == KIND_E5M2 ? 16 : 32;
	int64_t imm;

	memcpy(&imm, cv, sizeof(imm));
	for (unsigned m = 0; m < 2; m++) {
		uint64_t got[2][LANES];

		for (unsigned k = 0; k < 2; k++) {
			struct rig *r = rig_reset(masks[m]);
			for (unsigned l = 0; l < LANES; l++) {
				rig_set(r, SLOT_A, l, a_bits, a_of[l]);
				rig_set(r, SLOT_B, l, 32, b_of[l]);
				rig_set(r, SLOT_D, l, d_bits, 0x1234 + l);
			}
			rig_run(r, b, k ? general : fast, 0, 0, imm);
			for (unsigned l = 0; l < LANES; l++)
				got[k][l] = rig_get(r, SLOT_D, l, d_bits);
		}
		for (unsigned l = 0; l < LANES; l++)
			if (got[0][l] != got[1][l])
				fail_msg("%s in %s of 0x%x and 0x%x, mask 0x%x: 0x%llx, the general handler gives 0x%llx",
					 rig_op_name(fast), b->name, a_of[l], b_of[l], masks[m], (unsigned long long)got[0][l],
					 (unsigned long long)got[1][l]);
	}
}

/* Make source n of the conversions of pairs: first the edge values, then random values with exponents of f16 and f8. */
static uint32_t pair_source(unsigned n)
{
	const unsigned n_edges = sizeof(f32_values) / sizeof(f32_values[0]);

	return n < n_edges ? (uint32_t)f32_values[n] : (n * 0x9e3779b9u & 0x8fffffff) + 0x33000000;
}

static void pairs_in_vectors_agree_with_the_general_handler(void **state)
{
	(void)state;
	static const struct {
		unsigned op;
		struct conversion cv;
	} rows[] = {
		{ OP_CVT_F16X2_F32, { .to = KIND_F16, .from = KIND_F32 } },
		{ OP_CVT_BF16X2_F32, { .to = KIND_BF16, .from = KIND_F32 } },
		{ OP_CVT_F8X2, { .to = KIND_E4M3, .from = KIND_F32, .satfinite = true } },
		{ OP_CVT_F8X2, { .to = KIND_E5M2, .from = KIND_F32, .satfinite = true } },
		{ OP_CVT_F8X2, { .to = KIND_E4M3, .from = KIND_F32, .satfinite = true, .relu = true } },
		{ OP_CVT_F8X2, { .to = KIND_E5M2, .from = KIND_F32, .satfinite = true, .relu = true } },
	};
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
			for (unsigned n = 0; n < 4096; n += LANES) {
				uint32_t x[LANES], y[LANES];

				for (unsigned l = 0; l < LANES; l++) {
					x[l] = pair_source(n + l);
					y[l] = pair_source(4095 - n - l);
				}
				check_same(b, rows[k].op, OP_CVT_PAIR, &rows[k].cv, x, y);
			}
}

static void every_pair_of_halves_and_bytes_agrees_with_the_general_handler(void **state)
{
	(void)state;
	static const struct {
		unsigned op, general;
		struct conversion cv;
	} rows[] = {
		{ OP_CVT_F8X2, OP_CVT_PAIR, { .to = KIND_E4M3, .from = KIND_F16, .satfinite = true } },
		{ OP_CVT_F8X2, OP_CVT_PAIR, { .to = KIND_E5M2, .from = KIND_F16, .satfinite = true, .relu = true } },
		{ OP_CVT_F8X2, OP_CVT_PAIR, { .to = KIND_E4M3, .from = KIND_BF16, .satfinite = true } },
		{ OP_CVT_F16X2_E4M3X2, OP_CVT_UNPAIR, { .to = KIND_F16, .from = KIND_E4M3 } },
		{ OP_CVT_F16X2_E5M2X2, OP_CVT_UNPAIR, { .to = KIND_F16, .from = KIND_E5M2 } },
	};
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
			for (uint32_t n = 0; n < 65536; n += LANES) {
				uint32_t x[LANES];

				for (unsigned l = 0; l < LANES; l++)
					x[l] = (n + l) | (65535 - n - l) << 16;
				check_same(b, rows[k].op, rows[k].general, &rows[k].cv, x, x);
			}
}

static void every_half_is_unchanged_after_conversion_to_float_and_back(void **state)
{
	(void)state;
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (uint32_t h = 0; h < 65536; h += LANES) {
			struct rig *r = rig_reset(ALL_LANES);
			for (unsigned l = 0; l < LANES; l++)
				rig_set(r, SLOT_A, l, 16, h + l);
			rig_run(r, b, OP_CVT_F32_F16, 0, 0, 0);
			memcpy(r->slots + SLOT_A * SLOT_BYTES, r->slots, LANES * 4);
			rig_run(r, b, OP_CVT_F16_F32, 0, 0, 0);
			for (unsigned l = 0; l < LANES; l++) {
				const bool nan = ((h + l) & 0x7fff) > 0x7c00;
				assert_int_equal(rig_get(r, SLOT_D, l, 16), nan ? 0x7fff : h + l);
			}
		}
}

static void nans_are_converted_as_on_sm_90(void **state)
{
	(void)state;
	static const struct {
		struct conversion cv;
		uint64_t a, d;
	} rows[] = {
		{ { .to = KIND_F32, .from = KIND_F64 }, 0xfff7ffffffffffff, 0xffffffff },
		{ { .to = KIND_F16, .from = KIND_F64 }, 0xfff8000000000123, 0xfe00 },
		{ { .to = KIND_BF16, .from = KIND_F64 }, 0x7ff0000000000001, 0x7fc0 },
		{ { .to = KIND_F32, .from = KIND_BF16 }, 0xffbf, 0xffbf0000 },
		{ { .to = KIND_F64, .from = KIND_BF16 }, 0x7f81, 0x7ff8200000000000 },
		{ { .to = KIND_F64, .from = KIND_BF16 }, 0xffbf, 0xffffe00000000000 },
		{ { .to = KIND_F64, .from = KIND_F16 }, 0xfe12, 0xfff8480000000000 },
		{ { .to = KIND_F64, .from = KIND_F16 }, 0x7c01, 0x7ff8040000000000 },
		{ { .to = KIND_TF32, .from = KIND_F32, .round = CONVERT_RNA }, 0xffffffff, 0xffffe000 },
		{ { .to = KIND_TF32, .from = KIND_F32, .round = CONVERT_RNA }, 0x7f801000, 0x7f800000 },
		{ { .to = KIND_TF32, .from = KIND_F32, .round = CONVERT_RNA, .satfinite = true }, 0x7f801000, 0x7f7fe000 },
	};
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			struct rig *r = rig_reset(1);
			int64_t imm = 0;
			memcpy(&imm, &rows[k].cv, sizeof(rows[k].cv));
			rig_set(r, SLOT_A, 0, slot_bits(rows[k].cv.from), rows[k].a);
			rig_run(r, b, OP_CVT_ANY, 0, 0, imm);
			assert_int_equal(rig_get(r, SLOT_D, 0, slot_bits(rows[k].cv.to)), rows[k].d);
		}
}

static void pairs_store_the_first_source_in_the_upper_half(void **state)
{
	(void)state;
	static const struct {
		unsigned op;
		struct conversion cv;
		uint32_t a, b, d;
	} rows[] = {
		{ OP_CVT_PAIR, { .to = KIND_F16, .from = KIND_F32 }, 0x3f800000, 0xc0000000, 0x3c00c000 },
		{ OP_CVT_PAIR, { .to = KIND_BF16, .from = KIND_F32, .relu = true }, 0x3f800000, 0xc0000000, 0x3f800000 },
		{ OP_CVT_PAIR, { .to = KIND_E4M3, .from = KIND_F32, .satfinite = true }, 0x43e10000, 0xbf800000, 0x7eb8 },
		{ OP_CVT_PAIR, { .to = KIND_E5M2, .from = KIND_F16, .satfinite = true }, 0x7bff3c00, 0, 0x7b3c },
		{ OP_CVT_UNPAIR, { .to = KIND_F16, .from = KIND_E4M3 }, 0x7e38, 0, 0x5f003c00 },
		{ OP_CVT_UNPAIR, { .to = KIND_F16, .from = KIND_E5M2 }, 0x7c01, 0, 0x7c000100 },
	};
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			struct rig *r = rig_reset(2);
			const bool bytes = rows[k].cv.to == KIND_E4M3 || rows[k].cv.to == KIND_E5M2;
			int64_t imm;
			memcpy(&imm, &rows[k].cv, sizeof(imm));
			rig_set(r, SLOT_A, 1, rows[k].op == OP_CVT_UNPAIR ? 16 : 32, rows[k].a);
			rig_set(r, SLOT_B, 1, 32, rows[k].b);
			rig_run(r, b, rows[k].op, 0, 0, imm);
			assert_int_equal(rig_get(r, SLOT_D, 1, bytes ? 16 : 32), rows[k].d);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_truncated_extended_or_saturated),
		cmocka_unit_test(floats_become_integers_in_four_roundings),
		cmocka_unit_test(integers_become_floats_in_four_roundings),
		cmocka_unit_test(floats_are_converted_between_formats),
		cmocka_unit_test(floats_are_rounded_to_integers_of_their_type),
		cmocka_unit_test(fast_paths_agree_with_the_general_handler),
		cmocka_unit_test(pairs_in_vectors_agree_with_the_general_handler),
		cmocka_unit_test(every_pair_of_halves_and_bytes_agrees_with_the_general_handler),
		cmocka_unit_test(every_half_is_unchanged_after_conversion_to_float_and_back),
		cmocka_unit_test(nans_are_converted_as_on_sm_90),
		cmocka_unit_test(pairs_store_the_first_source_in_the_upper_half),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
