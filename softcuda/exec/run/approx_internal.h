/* approx_internal.h — sin, cos, lg2, ex2 and tanh of a float, without branches, so that the compiler can vectorise loops over lanes.
 * Taylor polynomials in double have a relative error below 2^-33, so almost all of the error comes from the final rounding to float. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_APPROX_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_APPROX_INTERNAL_H

#include "softcuda/exec/run/float_internal.h"

/* Adding 1.5 * 2^52 to a double rounds it to an integer, which is then in the low bits of its fraction. */
#define ROUNDER 0x1.8p52

/* Return 2^x for |x| < 1000 as 2^n 2^f, n the nearest integer: 2^n is an exponent field, and 2^f = e^(f ln 2) a polynomial. */
static inline double exp2_double(double x)
{
	const double shifted = x + ROUNDER, f = (x - (shifted - ROUNDER)) * 0x1.62e42fefa39efp-1;
	double p = 1.0 / 3628800;
	p = p * f + 1.0 / 362880;
	p = p * f + 1.0 / 40320;
	p = p * f + 1.0 / 5040;
	p = p * f + 1.0 / 720;
	p = p * f + 1.0 / 120;
	p = p * f + 1.0 / 24;
	p = p * f + 1.0 / 6;
	p = p * f + 0.5;
	p = p * f + 1.0;
	p = p * f + 1.0;
	return p * double_of((bits_of64(shifted) + 1023) << 52);
}

static inline float approx_ex2(float x)
{
	const float limited = x > 200.0f ? 200.0f : x < -200.0f ? -200.0f : x; /* for |x| > 200, the result as a float is +inf or 0 */
	const float r = (float)exp2_double((double)limited);
	return x == x ? r : x;
}

/* Return tanh x = (y - 1) / (y + 1) with y = exp(2x); near 0, where this formula loses precision, x - x^3/3. */
static inline float approx_tanh(float x)
{
	const float limited = x > 20.0f ? 20.0f : x < -20.0f ? -20.0f : x;
	const double wide = (double)limited, e = exp2_double(wide * 0x1.71547652b82fep1);
	const double r = fabsf(x) < 0x1p-12f ? wide - wide * wide * wide / 3 : (e - 1) / (e + 1);
	const float f = (float)r;
	return x == x ? (f == 0 ? x : f) : x;
}

/* Return sin(x + quarter pi/2).  The sum is (q + f) pi/2 with an integer q and |f| <= 1/2; the low bits of q say whether the result
 * is sin or cos of f pi/2, and its sign.  The product of x and 2/pi has 53 bits, so for |x| > 2^29 no bit of the result is right, and
 * x is replaced by 0 if |x| > 2^50 (PTX has no error bound beyond 2 pi). */
static inline float sine_of(float x, unsigned quarter)
{
	const double turns = fabsf(x) < 0x1p50f ? (double)x * 0x1.45f306dc9c883p-1 : 0.0;
	const double shifted = turns + ROUNDER, f = (turns - (shifted - ROUNDER)) * 0x1.921fb54442d18p0;
	const uint64_t q = bits_of64(shifted) + quarter;
	const double s = f * f;
	double odd = -1.0 / 39916800, even = -1.0 / 3628800;
	odd = odd * s + 1.0 / 362880;
	even = even * s + 1.0 / 40320;
	odd = odd * s - 1.0 / 5040;
	even = even * s - 1.0 / 720;
	odd = odd * s + 1.0 / 120;
	even = even * s + 1.0 / 24;
	odd = odd * s - 1.0 / 6;
	even = even * s - 0.5;
	odd = odd * s * f + f;
	even = even * s + 1.0;
	const double r = (q & 1) ? even : odd;
	const double signed_r = double_of(bits_of64(r) ^ (q & 2) << 62);
	const float result = (float)signed_r;
	return fabsf(x) < INFINITY ? result : x - x;
}

static inline float approx_sin(float x)
{
	return x == 0 ? x : sine_of(x, 0);
}

static inline float approx_cos(float x)
{
	return sine_of(x, 1);
}

/* Return log2 x: with x = m 2^e and m in [sqrt(1/2), sqrt(2)), log2 x is e + 2/ln2 atanh((m - 1) / (m + 1)). */
static inline float approx_lg2(float x)
{
	const uint64_t u = bits_of64((double)x); /* a subnormal float becomes a normal double, so it needs no special case */
	const uint64_t half = 0x3fe6a09e00000000;
	const uint64_t shifted = u - half;
	const double e = (double)(int32_t)((int64_t)shifted >> 52);
	const double m = double_of((shifted & 0x000fffffffffffff) + half);
	const double s = (m - 1) / (m + 1), s2 = s * s;
	double p = 1.0 / 15;
	p = p * s2 + 1.0 / 13;
	p = p * s2 + 1.0 / 11;
	p = p * s2 + 1.0 / 9;
	p = p * s2 + 1.0 / 7;
	p = p * s2 + 1.0 / 5;
	p = p * s2 + 1.0 / 3;
	p = p * s2 + 1.0;
	const float r = (float)(e + s * p * 0x1.71547652b82fep1);
	const float special = x == 0 ? -INFINITY : x > 0 ? x : NAN; /* lg2(+inf) is +inf */
	return x > 0 && x < INFINITY ? r : special;
}

#endif
