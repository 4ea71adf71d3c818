/* small_reference.h — reference for rounding to a small format: finds the nearest value by binary search. */
#ifndef GPULOAD_TESTS_SOFTCUDA_EXEC_ALU_SMALL_REFERENCE_H
#define GPULOAD_TESTS_SOFTCUDA_EXEC_ALU_SMALL_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "softcuda/exec/exec_select_internal.h"

__extension__ typedef __float128 float128; /* 113 bits: represents a fused product of halves exactly */

/* The parameters of a format; patterns above `greatest` are infinity or NaN. */
struct small {
	int fraction_bits, bias;
	uint32_t greatest, infinity, nan, sign;
};

static const struct small small_f16 = { 10, 15, 0x7bff, 0x7c00, 0x7fff, 0x8000 };
static const struct small small_bf16 = { 7, 127, 0x7f7f, 0x7f80, 0x7fff, 0x8000 };
static const struct small small_e4m3 = { 3, 7, 0x7e, 0x7f, 0x7f, 0x80 };
static const struct small small_e5m2 = { 2, 15, 0x7b, 0x7c, 0x7f, 0x80 };

static inline double small_magnitude(const struct small *f, uint32_t pattern)
{
	const int exponent = (int)(pattern >> f->fraction_bits);
	const int fraction = (int)(pattern & ((1u << f->fraction_bits) - 1));
	return exponent ? ldexp((1 << f->fraction_bits) + fraction, exponent - f->bias - f->fraction_bits)
			: ldexp(fraction, 1 - f->bias - f->fraction_bits);
}

static inline double small_value(const struct small *f, uint32_t pattern)
{
	const uint32_t m = pattern & (f->sign - 1);
	double x;
	if (m <= f->greatest)
		x = small_magnitude(f, m);
	else
		x = m == f->infinity && f->infinity != f->nan ? (double)INFINITY : (double)NAN;
	return pattern & f->sign ? -x : x;
}

/* Round x to the format.  The sign is a separate argument, because x may be zero. */
static inline uint32_t small_round(const struct small *f, float128 x, bool negative, unsigned round, bool satfinite)
{
	if (x != x)
		return f->nan;
	const float128 m = x < 0 ? -x : x;
	const uint32_t sign = negative ? f->sign : 0;
	uint32_t low = 0, high = f->greatest + 1; /* value(low) <= m < value(high); high may be one above the greatest pattern */
	while (high - low > 1) {
		const uint32_t middle = (low + high) / 2;
		if ((float128)small_magnitude(f, middle) <= m)
			low = middle;
		else
			high = middle;
	}
	const float128 below = (float128)small_magnitude(f, low), above = (float128)small_magnitude(f, low + 1);
	bool up;
	switch (round) {
	case CONVERT_RN:
		up = m - below > above - m || (m - below == above - m && (low & 1));
		break;
	case CONVERT_RNA:
		up = m - below >= above - m;
		break;
	case CONVERT_RM:
		up = negative && m > below;
		break;
	case CONVERT_RP:
		up = !negative && m > below;
		break;
	default:
		up = false;
		break;
	}
	if (m > (float128)1e300 * (float128)1e300 && !satfinite) /* x is infinite, and not just too large for the format */
		return sign | f->infinity;
	if (low + up > f->greatest)
		return sign | (satfinite ? f->greatest : f->infinity);
	return sign | (low + up);
}

#endif
