/* half_internal.h — conversions of floating-point formats of 16 bits and fewer, and tf32, to float or double, and back.
 *
 * Conversions of arrays of f16 and bf16 are vector code: n is a multiple of 8; conversions from float round to nearest even, and give
 * 0x7fff for every NaN.  small_from_double() performs the rare conversions: it supports all formats and roundings. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_HALF_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_HALF_INTERNAL_H

#include "softcuda/exec/run/float_internal.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

/* Convert an f16 to float: shift exponent and fraction to their positions in a float, and correct the exponent by an exact multiplication,
 * which also normalises subnormal numbers; infinity and NaN get the exponent 255. */
static inline float f16_to_float(uint16_t h)
{
	const uint32_t magnitude = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
	const float scaled = float_of(magnitude << 13) * 0x1p112f;
	const uint32_t special = (magnitude << 13) | 0x7f800000;
	return float_of(sign | (magnitude >= 0x7c00 ? special : bits_of(scaled)));
}

/* Convert a float to f16, rounded to nearest even.  To round a subnormal result, 0.5 is added: the last bit of the sum is 2^-24. */
static inline uint16_t f16_from_float(float x)
{
	const uint32_t u = bits_of(x), magnitude = u & 0x7fffffff, sign = u >> 16 & 0x8000;
	const uint32_t rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13;
	const uint32_t normal = rounded - (112u << 10);
	const uint32_t tiny = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000;
	uint32_t h = magnitude < 0x38800000 ? tiny : magnitude >= 0x477ff000 ? 0x7c00 : normal;
	h |= sign;
	return (uint16_t)(magnitude > 0x7f800000 ? 0x7fff : h);
}

static inline void widen_f16(float *x, const uint16_t *h, unsigned n)
{
#if defined(__F16C__)
	unsigned k = 0;
#if defined(__AVX512F__)
	for (; k + 16 <= n; k += 16)
		_mm512_storeu_ps(x + k, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(h + k))));
#endif
	for (; k < n; k += 8)
		_mm256_storeu_ps(x + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(h + k))));
#else
	for (unsigned k = 0; k < n; k++)
		x[k] = f16_to_float(h[k]);
#endif
}

static inline void narrow_f16(uint16_t *h, const float *x, unsigned n)
{
#if defined(__F16C__)
	unsigned k = 0;
#if defined(__AVX512F__)
	for (; k + 16 <= n; k += 16)
		_mm256_storeu_si256((__m256i *)(void *)(h + k), _mm512_cvtps_ph(_mm512_loadu_ps(x + k), _MM_FROUND_TO_NEAREST_INT));
#endif
	for (; k < n; k += 8) {
		const __m128i v = _mm256_cvtps_ph(_mm256_loadu_ps(x + k), _MM_FROUND_TO_NEAREST_INT);
		_mm_storeu_si128((__m128i *)(h + k), v);
	}
	for (k = 0; k < n; k++)
		h[k] = (uint16_t)((h[k] & 0x7fff) > 0x7c00 ? 0x7fff : h[k]);
#else
	for (unsigned k = 0; k < n; k++)
		h[k] = f16_from_float(x[k]);
#endif
}

static inline float bf16_to_float(uint16_t h)
{
	return float_of((uint32_t)h << 16);
}

static inline void widen_bf16(float *x, const uint16_t *h, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		x[k] = bf16_to_float(h[k]);
}

static inline uint16_t bf16_from_float(float x)
{
	const uint32_t u = bits_of(x);
	return (uint16_t)(x != x ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline void narrow_bf16(uint16_t *h, const float *x, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		h[k] = bf16_from_float(x[k]);
}

/* Convert halves to floats.  Every call passes a constant for bf16, so that the compiler removes one branch. */
static inline void widen_half(float *x, const uint16_t *h, unsigned n, bool bf16)
{
	if (bf16)
		widen_bf16(x, h, n);
	else
		widen_f16(x, h, n);
}

static inline void narrow_half(uint16_t *h, const float *x, unsigned n, bool bf16)
{
	if (bf16)
		narrow_bf16(h, x, n);
	else
		narrow_f16(h, x, n);
}

/* ---- any format of at most 32 bits ---------------------------------------------------------------- */

struct small_format {
	uint8_t fraction_bits, exponent_bits, pad_bits; /* pad_bits: unused bits below the fraction (tf32) */
	bool has_infinity;                              /* e4m3 has none: its only NaN has all bits set, and its greatest value is 448 */
	uint32_t nan;
};

/* Source: PTX ISA 5.2.3 and 5.2.4, alternate floating-point data formats. */
static const struct small_format format_f16 = { 10, 5, 0, true, 0x7fff };
static const struct small_format format_bf16 = { 7, 8, 0, true, 0x7fff };
static const struct small_format format_tf32 = { 10, 8, 13, true, 0x7fffe000 };
static const struct small_format format_f32 = { 23, 8, 0, true, 0x7fffffff };
static const struct small_format format_e4m3 = { 3, 4, 0, false, 0x7f };
static const struct small_format format_e5m2 = { 2, 5, 0, true, 0x7f };

/* Return u >> drop, rounded according to the dropped bits; 1 <= drop <= 63. */
static inline uint64_t round_shift(uint64_t u, unsigned drop, bool negative, unsigned round)
{
	const uint64_t kept = u >> drop, rest = u & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
	bool up = false;
	switch (round) {
	case CONVERT_RN:
		up = rest > half || (rest == half && (kept & 1));
		break;
	case CONVERT_RNA:
		up = rest >= half;
		break;
	case CONVERT_RM:
		up = negative && rest;
		break;
	case CONVERT_RP:
		up = !negative && rest;
		break;
	default:
		break;
	}
	return kept + up;
}

/* Return the bits of the greatest finite value, without sign and padding. */
static inline uint32_t greatest(const struct small_format *f)
{
	const uint32_t all = ((uint32_t)1 << (f->fraction_bits + f->exponent_bits)) - 1;
	return f->has_infinity ? all - ((uint32_t)1 << f->fraction_bits) : all - 1;
}

/* Convert x to format f, rounded as `round` says.  A result that is too large becomes infinity (e4m3: NaN), or, if satfinite is set
 * or the rounding is towards zero, the greatest finite value.  NaN becomes f->nan. */
static inline uint32_t small_from_double(double x, const struct small_format *f, unsigned round, bool satfinite)
{
	const uint64_t u = bits_of64(x), magnitude = u & INT64_MAX;
	const bool negative = u >> 63;
	const unsigned width = 1u + f->exponent_bits + f->fraction_bits;
	const uint32_t sign = (uint32_t)negative << (width - 1), top = greatest(f);
	const int bias = (1 << (f->exponent_bits - 1)) - 1;
	if (magnitude > 0x7ff0000000000000)
		return f->nan;
	/* below the least normal number of the format, the result is subnormal, so that more bits are dropped */
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
	else /* dropping more than 63 bits has the same result as dropping 63 */
		r = ((uint64_t)(biased - 1) << f->fraction_bits) +
		    round_shift(significand, drop > 63 ? 63 : (unsigned)drop, negative, round);
	if (r > top) {
		const bool infinite = magnitude == 0x7ff0000000000000;
		const bool towards_zero = round == CONVERT_RZ || (round == CONVERT_RM && !negative) || (round == CONVERT_RP && negative);
		if (satfinite || (towards_zero && !infinite))
			r = top;
		else if (!f->has_infinity)
			return f->nan | sign;
		else
			r = top + 1;
	}
	return (sign | (uint32_t)r) << f->pad_bits;
}

/* Convert a value in format f to double; a NaN keeps its sign and the bits of its fraction. */
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
	} else { /* the product of an integer and a power of two is exact */
		const uint32_t integer = exponent ? fraction | (uint32_t)1 << f->fraction_bits : fraction;
		const int scale = (exponent ? (int)exponent : 1) - bias - f->fraction_bits;
		x = (double)integer * double_of((uint64_t)(scale + 1023) << 52);
	}
	return negative ? -x : x;
}

#endif
