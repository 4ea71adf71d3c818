/* float_internal.h — floating-point semantics of GPUs that CPUs do not have: flush to zero, saturation, one NaN pattern, rounding modes per
 * instruction.
 *
 * An f32 result that is NaN is 0x7fffffff, an f16 or bf16 result 0x7fff, as on GPUs; PTX ISA 9.7.3 does not specify the pattern. It
 * specifies NaN payloads only for f64: see with_payload(). */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_FLOAT_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_FLOAT_INTERNAL_H

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "softcuda/exec/exec_select_internal.h"

#define INLINE static inline __attribute__((always_inline))

static inline uint32_t bits_of(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof(u));
	return u;
}

static inline float float_of(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof(x));
	return x;
}

static inline uint64_t bits_of64(double x)
{
	uint64_t u;
	memcpy(&u, &x, sizeof(u));
	return u;
}

static inline double double_of(uint64_t u)
{
	double x;
	memcpy(&x, &u, sizeof(x));
	return x;
}

/* Apply .ftz to an operand: a subnormal number becomes zero with the same sign. */
static inline float flush(float x)
{
	const uint32_t u = bits_of(x);
	return float_of((u & 0x7f800000) ? u : u & 0x80000000);
}

/* Apply .ftz to a result.  Observed on sm_90: a result becomes zero if it is less than 2^-126 after rounding to 24 bits with an
 * unlimited exponent range.  For example, 0x3f7fffff * 0x00800000 is (1 - 2^-24) * 2^-126: an IEEE subnormal rounds up to 2^-126, but
 * the product fits in 24 bits, so it becomes zero.  `scaled` is the result of the same operation times SCALE, which is in the normal
 * range, so that it is rounded to 24 bits; for large operands, `scaled` is not used. */
#define SCALE 0x1p24f
static inline float flush_result(float r, float scaled)
{
	const bool tiny = fabsf(r) <= 0x1p-126f && fabsf(scaled) < 0x1p-126f * SCALE;
	return tiny ? float_of(bits_of(r) & 0x80000000) : r;
}

static inline float canonical(float x)
{
	return float_of(x == x ? bits_of(x) : 0x7fffffff);
}

static inline double quiet(double x)
{
	return x == x ? x : double_of(bits_of64(x) | 0x0008000000000000);
}

/* Return r, a result in double; if r is NaN, return the first NaN among a, b and c as a quiet NaN, or, if none of them is NaN, the
 * CPU's NaN for 0 / 0.  PTX specifies that the payload of a NaN operand is kept, but not of which operand; CPUs choose by the order
 * of the operands, which compilers may change. Observed on sm_90: the second operand has priority, then the third, then the first; in
 * a division, the first operand has priority. Callers pass the operands in this order of priority. */
static inline double with_payload(double r, double a, double b, double c)
{
	const uint64_t quiet = 0x0008000000000000;
	const uint64_t u = a != a ? bits_of64(a) : b != b ? bits_of64(b) : c != c ? bits_of64(c) : 0xfff8000000000000;
	return r == r ? r : double_of(u | quiet);
}

/* Apply .sat: clamp to [0, 1]; NaN and -0 become +0. */
static inline float saturate(float x)
{
	return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

static inline double saturate64(double x)
{
	return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
}

/* Return the lesser operand, where -0 is less than +0.  If one is NaN, return the other; if both are NaN, return NaN. */
static inline float min_f32(float x, float y)
{
	const float m = x < y ? x : y < x ? y : float_of(bits_of(x) | bits_of(y)); /* equal operands are identical, or +0 and -0 */
	return x != x ? canonical(y) : y != y ? x : m;
}

static inline float max_f32(float x, float y)
{
	const float m = x > y ? x : y > x ? y : float_of(bits_of(x) & bits_of(y));
	return x != x ? canonical(y) : y != y ? x : m;
}

/* Return min or max, with the modifiers in flags.  .xorsign.abs compares |x| and |y|; the sign of the result is the XOR of their signs. */
INLINE float choose_f32(float x, float y, unsigned flags, bool want_max)
{
	if ((flags & FLAG_NAN) && (x != x || y != y))
		return float_of(0x7fffffff);
	const uint32_t sign = (bits_of(x) ^ bits_of(y)) & 0x80000000;
	const bool xorsign = flags & FLAG_XORSIGN;
	const float p = xorsign ? fabsf(x) : x, q = xorsign ? fabsf(y) : y;
	const float m = want_max ? max_f32(p, q) : min_f32(p, q);
	return xorsign && m == m ? float_of(bits_of(m) | sign) : m;
}

/* Like min_f32; but if both operands are NaN, the result is the second one as a quiet NaN (observed on sm_90). */
static inline double min_f64(double x, double y)
{
	const double m = x < y ? x : y < x ? y : double_of(bits_of64(x) | bits_of64(y));
	return x != x ? quiet(y) : y != y ? x : m;
}

static inline double max_f64(double x, double y)
{
	const double m = x > y ? x : y > x ? y : double_of(bits_of64(x) & bits_of64(y));
	return x != x ? quiet(y) : y != y ? x : m;
}

/* Return x as a float, rounded to odd: the last bit of an inexact result is set.  Rounding this float again, to at least two bits
 * fewer, gives the same result as rounding x once.  Source: Boldo, Melquiond, Emulation of FMA and correctly rounded sums, 2008. */
static inline float odd_float(double x)
{
	const float f = (float)x;
	const double back = (double)f;
	uint32_t u = bits_of(f);
	const bool up = (back < x) == !(u >> 31); /* true: the exact value is further from zero than f */
	if (back != x && back == back && !(u & 1))
		u = up ? u | 1 : u - 1;
	return float_of(u);
}

/* Return p + c as a double, rounded to odd.  Knuth's two-sum computes the exact error of the rounded sum. */
static inline double odd_sum(double p, double c)
{
	const double s = p + c, t = s - p, error = (p - (s - t)) + (c - t);
	uint64_t u = bits_of64(s);
	const bool up = (error > 0) == !(u >> 63); /* true: the exact value is further from zero than s */
	if (error != 0 && error == error && !(u & 1))
		u = up ? u | 1 : u - 1;
	return double_of(u);
}

static inline float odd_sum_f32(float p, float c)
{
	const float s = p + c, t = s - p, error = (p - (s - t)) + (c - t);
	uint32_t u = bits_of(s);
	const bool up = (error > 0) == !(u >> 31);
	if (error != 0 && error == error && !(u & 1))
		u = up ? u | 1 : u - 1;
	return float_of(u);
}

/* Return a * b + c, rounded once.  Without FMA instructions, the product is exact in double, and the sum rounded to odd. */
static inline float fma_f32(float a, float b, float c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
	return __builtin_fmaf(a, b, c);
#else
	return (float)odd_sum((double)a * b, (double)c);
#endif
}

/* ---- directed rounding --------------------------------------------------------------------------- */

/* Set the rounding mode; only handlers whose name ends in ANY do this.  Their operands are volatile variables, or pass through KEEP_HERE(),
 * so that the compiler moves no operation before round_by() or after round_nearest_again(). */
static inline void set_rounding(unsigned round)
{
#if defined(__FMA__) /* fesetround() is slower, because it also sets the mode of the x87 unit, which this build does not use */
	static const uint8_t modes[] = { 0, 3, 1, 2 };
	_mm_setcsr((_mm_getcsr() & ~(uint32_t)_MM_ROUND_MASK) | (uint32_t)modes[round] << 13);
#else
	static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
	fesetround(modes[round]);
#endif
}

static inline void round_by(unsigned round)
{
	if (round != ROUND_RN)
		set_rounding(round);
}

static inline void round_nearest_again(unsigned round)
{
	if (round != ROUND_RN)
		set_rounding(ROUND_RN);
}

#endif
