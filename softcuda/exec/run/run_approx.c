/* run_approx.c — handlers of the .approx functions: PTX ISA 9.7.3.
 *
 * GPUs compute these functions by tables and interpolation.  This code computes in double, and rounds once, so its results differ from a
 * GPU's in the last bits, but they are equal in all builds of this file, and within PTX's error bounds:
 *
 *     instruction            PTX's bound                              here
 *     div.approx.f32         2 ulp for |b| in [2^-126, 2^126]         0.5 ulp
 *     div.full.f32           2 ulp                                    0.5 ulp
 *     rcp.approx.f32         1 ulp                                    0.5 ulp
 *     sqrt.approx.f32        relative 2^-23                           0.5 ulp
 *     rsqrt.approx.f32       relative 2^-22.9                         0.501 ulp
 *     sin, cos.approx.f32    absolute 2^-20.5 in [-2 pi, 2 pi]        2^-24
 *     lg2.approx.f32         absolute 2^-22 in [0.5, 2], else 2 ulp   0.51 ulp
 *     ex2.approx.f32         2 ulp                                    0.501 ulp
 *     tanh.approx.f32        relative 2^-11                           0.51 ulp
 *     rcp.approx.ftz.f64     relative 2^-20 (a coarse start value)    2^-20, by truncation
 *     rsqrt.approx.f64       relative 2^-20                           0.51 ulp; .ftz: 2^-20
 */
#include "softcuda/exec/run/approx_internal.h"
#include "softcuda/exec/run/lanes_internal.h"

/* Define a handler: d = value(a); with .ftz, a subnormal operand or result is replaced by zero. */
#define APPROX(name, value) \
	OP(name) \
	{ \
		OPERAND(float, a); \
		if (i->flags & FLAG_FTZ) \
			MERGE_LANES(float, opptr(w, i->d), canonical(flush(value(flush(a[l]))))); \
		else \
			MERGE_LANES(float, opptr(w, i->d), canonical(value(a[l]))); \
		return i + 1; \
	}

static inline float reciprocal(float x)
{
	return 1.0f / x;
}

static inline float square_root(float x)
{
	return __builtin_sqrtf(x);
}

static inline float reciprocal_root(float x)
{
	return (float)(1.0 / __builtin_sqrt((double)x));
}

#if defined(__AVX512F__)
/* Like reciprocal_root(), but without a division and a square root, which take 4 times as long.  The CPU's approximation y0 of 1 /
 * sqrt(x) has a relative error below 2^-14; with e = 1 - x y0^2, y0 (1 - e)^(-1/2) is computed as a series, with a relative error
 * below 2^-51. Rounded to float, the results are equal to those of reciprocal_root() for all floats, as
 * tests/softcuda/exec/alu/test_alu_approx.c checks. */
static inline void reciprocal_roots(float r[LANES], const float x[LANES])
{
	for (unsigned l = 0; l < LANES; l += 8) {
		const __m512d wide = _mm512_cvtps_pd(_mm256_load_ps(x + l)), y = _mm512_rsqrt14_pd(wide);
		const __m512d e = _mm512_fnmadd_pd(_mm512_mul_pd(wide, y), y, _mm512_set1_pd(1));
		__m512d p = _mm512_fmadd_pd(e, _mm512_set1_pd(0.3125), _mm512_set1_pd(0.375));

		p = _mm512_fmadd_pd(p, e, _mm512_set1_pd(0.5));
		p = _mm512_fmadd_pd(_mm512_mul_pd(p, e), y, y);
		/* if e is NaN, then x is 0, infinite, negative or NaN, and y is the result */
		p = _mm512_mask_mov_pd(p, _mm512_cmp_pd_mask(e, e, _CMP_UNORD_Q), y);
		_mm256_store_ps(r + l, _mm512_cvtpd_ps(p));
	}
}
#else
static inline void reciprocal_roots(float r[LANES], const float x[LANES])
{
	for (unsigned l = 0; l < LANES; l++)
		r[l] = reciprocal_root(x[l]);
}
#endif

OP(RSQRT_APPROX)
{
	OPERAND(float, a);
	_Alignas(64) float flushed[LANES], r[LANES];

	if (i->flags & FLAG_FTZ) {
		for (unsigned l = 0; l < LANES; l++)
			flushed[l] = flush(a[l]);
		reciprocal_roots(r, flushed);
		MERGE_LANES(float, opptr(w, i->d), canonical(flush(r[l])));
	} else {
		reciprocal_roots(r, a);
		MERGE_LANES(float, opptr(w, i->d), canonical(r[l]));
	}
	return i + 1;
}

APPROX(RCP_APPROX, reciprocal)
APPROX(SQRT_APPROX, square_root)
APPROX(SIN_APPROX, approx_sin)
APPROX(COS_APPROX, approx_cos)
APPROX(LG2_APPROX, approx_lg2)
APPROX(EX2_APPROX, approx_ex2)
APPROX(TANH_APPROX, approx_tanh)

/* Return x / y for div.approx.  PTX ISA: if |y| is beyond 2^126, the result is 0, or, for an infinite x, NaN. */
static inline float divide_fast(float x, float y)
{
	const float huge = fabsf(y) > 0x1p126f && fabsf(y) < INFINITY ? 1.0f : 0.0f;
	return huge != 0 ? x * copysignf(0.0f, y) : x / y;
}

#define DIVIDE(name, value) \
	OP(name) \
	{ \
		OPERAND(float, a); \
		OPERAND(float, b); \
		if (i->flags & FLAG_FTZ) \
			MERGE_LANES(float, opptr(w, i->d), canonical(flush(value(flush(a[l]), flush(b[l]))))); \
		else \
			MERGE_LANES(float, opptr(w, i->d), canonical(value(a[l], b[l]))); \
		return i + 1; \
	}
static inline float divide(float x, float y)
{
	return x / y;
}
DIVIDE(DIV_APPROX, divide_fast)
DIVIDE(DIV_FULL, divide)

/* Clear the lower 32 bits, because the approximate f64 instructions read and compute only the upper ones. */
static inline double upper_half(double x)
{
	return double_of(bits_of64(x) & 0xffffffff00000000);
}

static inline double flush_f64(double x)
{
	const uint64_t u = bits_of64(x);
	return double_of((u & 0x7ff0000000000000) ? u : u & (uint64_t)1 << 63);
}

static inline double canonical_f64(double x)
{
	return x == x ? x : double_of(0x7fffffff00000000);
}

UNARY(RCP_APPROX_F64, double, double, canonical_f64(upper_half(flush_f64(1.0 / flush_f64(upper_half(a[l]))))))
UNARY(RSQRT_APPROX_F64, double, double, canonical_f64(upper_half(1.0 / __builtin_sqrt(flush_f64(upper_half(a[l]))))))
UNARY(RSQRT_F64, double, double, 1.0 / __builtin_sqrt(a[l]))
