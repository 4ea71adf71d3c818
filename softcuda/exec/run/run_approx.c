/* run_approx.c — handlers of the .approx functions: PTX ISA 9.7.3.
 *
 * GPUs compute these by table and interpolation, so their results differ in the last bits.  Here the computation is
 * in double, rounded once: the results are equal in all builds of this file and within PTX's error bounds:
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

/* d = value(a); with .ftz a subnormal operand or result is replaced by zero. */
#define APPROX(name, value)                                                   \
	OP(name)                                                              \
	{                                                                     \
		OPERAND(float, a);                                            \
		if (i->flags & FLAG_FTZ)                                      \
			MERGE_LANES(float, opptr(w, i->d), canonical(flush(value(flush(a[l]))))); \
		else                                                          \
			MERGE_LANES(float, opptr(w, i->d), canonical(value(a[l]))); \
		return i + 1;                                                 \
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

APPROX(RCP_APPROX, reciprocal)
APPROX(SQRT_APPROX, square_root)
APPROX(RSQRT_APPROX, reciprocal_root)
APPROX(SIN_APPROX, approx_sin)
APPROX(COS_APPROX, approx_cos)
APPROX(LG2_APPROX, approx_lg2)
APPROX(EX2_APPROX, approx_ex2)
APPROX(TANH_APPROX, approx_tanh)

/* PTX ISA, div.approx with a divisor beyond 2^126: the reciprocal underflows to 0, and inf * 0
 * is NaN. */
static inline float divide_fast(float x, float y)
{
	const float huge = fabsf(y) > 0x1p126f && fabsf(y) < INFINITY ? 1.0f : 0.0f;
	return huge != 0 ? x * copysignf(0.0f, y) : x / y;
}

#define DIVIDE(name, value)                                                   \
	OP(name)                                                              \
	{                                                                     \
		OPERAND(float, a);                                            \
		OPERAND(float, b);                                            \
		if (i->flags & FLAG_FTZ)                                      \
			MERGE_LANES(float, opptr(w, i->d),                    \
				    canonical(flush(value(flush(a[l]), flush(b[l]))))); \
		else                                                          \
			MERGE_LANES(float, opptr(w, i->d), canonical(value(a[l], b[l]))); \
		return i + 1;                                                 \
	}
static inline float divide(float x, float y)
{
	return x / y;
}
DIVIDE(DIV_APPROX, divide_fast)
DIVIDE(DIV_FULL, divide)

/* The approximate f64 forms use the upper 32 bits of the operand and compute the upper 32 bits of the result. */
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

UNARY(RCP_APPROX_F64, double, double,
      canonical_f64(upper_half(flush_f64(1.0 / flush_f64(upper_half(a[l]))))))
UNARY(RSQRT_APPROX_F64, double, double,
      canonical_f64(upper_half(1.0 / __builtin_sqrt(flush_f64(upper_half(a[l]))))))
UNARY(RSQRT_F64, double, double, 1.0 / __builtin_sqrt(a[l]))
