/* small_float_internal.h — any binary format of at most 32 bits, from and to double.
 *
 * One routine rounds to all of them in all roundings: on the bits of a double, by integer arithmetic.
 * It is the careful way, for conversions that are not hot; run_half.c and run_convert.c have
 * vector code for the hot ones. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_SMALL_FLOAT_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_SMALL_FLOAT_INTERNAL_H

#include "softcuda/exec/run/float_internal.h"

struct small_format {
	uint8_t fraction_bits, exponent_bits, pad_bits;  /* pad_bits: zeros below the fraction (tf32) */
	bool has_infinity;             /* e4m3: no; its one NaN is all ones, its greatest value 448 */
	uint32_t nan;
};

/* Source: PTX ISA 5.2.3 and 5.2.4, alternate floating-point data formats. */
static const struct small_format format_f16 = { 10, 5, 0, true, 0x7fff };
static const struct small_format format_bf16 = { 7, 8, 0, true, 0x7fff };
static const struct small_format format_tf32 = { 10, 8, 13, true, 0x7fffe000 };
static const struct small_format format_f32 = { 23, 8, 0, true, 0x7fffffff };
static const struct small_format format_e4m3 = { 3, 4, 0, false, 0x7f };
static const struct small_format format_e5m2 = { 2, 5, 0, true, 0x7f };

/* Round u >> drop by the discarded bits; 1 <= drop <= 63. */
static inline uint64_t round_shift(uint64_t u, unsigned drop, bool negative, unsigned round)
{
	const uint64_t kept = u >> drop, rest = u & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
	bool up = false;
	switch (round) {
	case CONVERT_RN: up = rest > half || (rest == half && (kept & 1)); break;
	case CONVERT_RNA: up = rest >= half; break;
	case CONVERT_RM: up = negative && rest; break;
	case CONVERT_RP: up = !negative && rest; break;
	default: break;
	}
	return kept + up;
}

/* The greatest finite value's bits, without sign and padding. */
static inline uint32_t greatest(const struct small_format *f)
{
	const uint32_t all = ((uint32_t)1 << (f->fraction_bits + f->exponent_bits)) - 1;
	return f->has_infinity ? all - ((uint32_t)1 << f->fraction_bits) : all - 1;
}

/* x in format f, by round; a result too large becomes infinity (e4m3: NaN), or with satfinite or a
 * rounding towards zero the greatest value.  NaN is f->nan. */
static inline uint32_t small_from_double(double x, const struct small_format *f, unsigned round, bool satfinite)
{
	const uint64_t u = bits_of64(x), magnitude = u & INT64_MAX;
	const bool negative = u >> 63;
	const unsigned width = 1u + f->exponent_bits + f->fraction_bits;
	const uint32_t sign = (uint32_t)negative << (width - 1), top = greatest(f);
	const int bias = (1 << (f->exponent_bits - 1)) - 1;
	if (magnitude > 0x7ff0000000000000)
		return f->nan;
	/* Exponent and fraction as one integer; those below the format's least normal are shifted further. */
	const int exponent = (int)(magnitude >> 52) - 1023;
	uint64_t significand = (magnitude & 0x000fffffffffffff) | (uint64_t)(magnitude >> 52 != 0) << 52;
	int drop = 52 - f->fraction_bits, biased = exponent + bias;
	if (biased < 1) {
		drop += 1 - biased;
		biased = 1;
	}
	uint64_t r;
	if (magnitude == 0)
		r = 0;
	else if (magnitude == 0x7ff0000000000000 || biased > 2 * bias + 2)
		r = UINT32_MAX;
	else  /* a shift of 63 leaves only sticky bits, however far it should have gone */
		r = ((uint64_t)(biased - 1) << f->fraction_bits) +
		    round_shift(significand, drop > 63 ? 63 : (unsigned)drop, negative, round);
	if (r > top) {
		const bool infinite = magnitude == 0x7ff0000000000000;
		const bool towards_zero = round == CONVERT_RZ || (round == CONVERT_RM && !negative) ||
					  (round == CONVERT_RP && negative);
		if (satfinite || (towards_zero && !infinite))
			r = top;
		else if (!f->has_infinity)
			return f->nan | sign;
		else
			r = top + 1;
	}
	return (sign | (uint32_t)r) << f->pad_bits;
}

/* A NaN keeps its sign and the bits of its fraction. */
static inline double double_from_small(uint32_t bits, const struct small_format *f)
{
	const unsigned width = 1u + f->exponent_bits + f->fraction_bits;
	bits >>= f->pad_bits;
	const bool negative = bits >> (width - 1) & 1;
	const uint32_t magnitude = bits & (((uint32_t)1 << (width - 1)) - 1);
	const int bias = (1 << (f->exponent_bits - 1)) - 1;
	const uint32_t exponent = magnitude >> f->fraction_bits;
	const uint32_t fraction = magnitude & (((uint32_t)1 << f->fraction_bits) - 1);
	double x;
	if (magnitude > greatest(f)) {
		const uint64_t payload = (uint64_t)fraction << (52 - f->fraction_bits);
		x = f->has_infinity && fraction == 0 ? INFINITY : quiet(double_of(0x7ff0000000000000 | payload));
	} else {  /* an integer times a power of two: exact */
		const uint32_t integer = exponent ? fraction | (uint32_t)1 << f->fraction_bits : fraction;
		const int scale = (exponent ? (int)exponent : 1) - bias - f->fraction_bits;
		x = (double)integer * double_of((uint64_t)(scale + 1023) << 52);
	}
	return negative ? -x : x;
}

#endif
