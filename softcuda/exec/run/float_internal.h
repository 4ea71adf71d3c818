/* float_internal.h — what GPU floating point does that the CPU's does not: flush, saturate, one NaN,
 * directed rounding, and the small formats.
 *
 * NaN: a single-precision (and half) result that is NaN is 0x7fffffff (0x7fff); PTX ISA 9.7.3 leaves
 * the pattern open and promises a payload for f64 only, GPUs give this one.  For doubles see
 * with_payload(). */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_FLOAT_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_FLOAT_INTERNAL_H

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "softcuda/exec/select_internal.h"

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

/* .ftz of an operand: a subnormal becomes a zero of its sign. */
static inline float flush(float x)
{
	const uint32_t u = bits_of(x);
	return float_of((u & 0x7f800000) ? u : u & 0x80000000);
}

/* .ftz of a result.  Seen on sm_90: what counts is the result rounded to 24 bits whatever its exponent.
 * 0x3f7fffff * 0x00800000 is (1 - 2^-24) * 2^-126: a subnormal would have to round it up to the least
 * normal, but it has 24 bits as it is, so it is tiny and becomes zero.  `scaled` is the same operation with
 * a result SCALE times as large, which is rounded that way (large operands may make it anything). */
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

/* A double result r: a NaN is the first of a, b and c that is one, made quiet, or what the CPUs make of 0 / 0.
 * PTX says that payloads live on, not whose; CPUs and compilers choose by operand order, which would differ
 * between builds.  Seen on sm_90: the second operand comes first, then the third, then the first; division is
 * a subroutine that takes its operands as they stand.  Callers give them in that order. */
static inline double with_payload(double r, double a, double b, double c)
{
	const uint64_t quiet = 0x0008000000000000;
	const uint64_t u = a != a ? bits_of64(a) : b != b ? bits_of64(b) : c != c ? bits_of64(c) : 0xfff8000000000000;
	return r == r ? r : double_of(u | quiet);
}

/* .sat: [0, 1], NaN to +0, -0 to +0. */
static inline float saturate(float x)
{
	return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

static inline double saturate64(double x)
{
	return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
}

/* The number, if one is; -0 below +0; both NaN: NaN. */
static inline float min_f32(float x, float y)
{
	const float m = x < y ? x : y < x ? y : float_of(bits_of(x) | bits_of(y));  /* equal: same, or +-0 */
	return x != x ? canonical(y) : y != y ? x : m;
}

static inline float max_f32(float x, float y)
{
	const float m = x > y ? x : y > x ? y : float_of(bits_of(x) & bits_of(y));
	return x != x ? canonical(y) : y != y ? x : m;
}

/* min or max by flags.  .xorsign.abs: the magnitude of min(|x|, |y|) with the sign x xor y. */
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

/* As for floats; of two NaN the second, made quiet: seen on sm_90. */
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

/* x as a float, but inexact results have their last bit set ("round to odd"): what is then rounded
 * to fewer bits, by two or more, is rounded right.  Boldo, Melquiond: Emulation of FMA and correctly
 * rounded sums, 2008. */
static inline float odd_float(double x)
{
	const float f = (float)x;
	const double back = (double)f;
	uint32_t u = bits_of(f);
	const bool up = (back < x) == !(u >> 31);  /* the truth is further from zero than f */
	if (back != x && back == back && !(u & 1))
		u = up ? u | 1 : u - 1;
	return float_of(u);
}

/* p + c rounded to odd in double: Knuth's two-sum gives the error of the rounded sum exactly. */
static inline double odd_sum(double p, double c)
{
	const double s = p + c, t = s - p, error = (p - (s - t)) + (c - t);
	uint64_t u = bits_of64(s);
	const bool up = (error > 0) == !(u >> 63);  /* the truth is further from zero than s */
	if (error != 0 && error == error && !(u & 1))
		u = up ? u | 1 : u - 1;
	return double_of(u);
}

/* a * b + c, rounded once.  Without FMA hardware: the product is exact in double. */
static inline float fma_f32(float a, float b, float c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
	return __builtin_fmaf(a, b, c);
#else
	return (float)odd_sum((double)a * b, (double)c);
#endif
}

/* ---- directed rounding --------------------------------------------------------------------------- */

/* Only the ANY handlers change the rounding mode, around operations on volatile variables: the
 * compiler may move an operation on them neither before the first call nor behind the second. */
static inline void round_by(unsigned round)
{
	static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
	if (round != ROUND_RN)
		fesetround(modes[round]);
}

static inline void round_nearest_again(unsigned round)
{
	if (round != ROUND_RN)
		fesetround(FE_TONEAREST);
}

#endif
