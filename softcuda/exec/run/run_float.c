/* run_float.c — handlers of correctly rounded f32 and f64 arithmetic: PTX ISA 9.7.3.
 *
 * add, sub, mul, fma, div, rcp and sqrt, rounded to nearest, use CPU instructions: IEEE 754 defines
 * the result, and GPUs since sm_20 comply.  The ANY handlers implement the other roundings,
 * .ftz and .sat; these are rare and run lane by lane. */
#include "softcuda/exec/run/float_internal.h"
#include "softcuda/exec/run/lanes_internal.h"

/* ---- f32 ------------------------------------------------------------------------------------------ */

BINARY(ADD_F32, float, float, canonical(a[l] + b[l]))
BINARY(SUB_F32, float, float, canonical(a[l] - b[l]))
BINARY(MUL_F32, float, float, canonical(a[l] * b[l]))
TERNARY(FMA_F32, float, float, canonical(fma_f32(a[l], b[l], c[l])))
BINARY(DIV_F32, float, float, canonical(a[l] / b[l]))
UNARY(RCP_F32, float, float, canonical(1.0f / a[l]))
UNARY(SQRT_F32, float, float, canonical(__builtin_sqrtf(a[l])))

/* A tiny sum is exact, so flush_result() is not needed. */
BINARY(ADD_F32_FTZ, float, float, canonical(flush(flush(a[l]) + flush(b[l]))))
BINARY(SUB_F32_FTZ, float, float, canonical(flush(flush(a[l]) - flush(b[l]))))

static inline float mul_ftz(float x, float y)
{
	return flush_result(x * y, x * SCALE * y);
}

static inline float fma_ftz(float x, float y, float z)
{
	return flush_result(fma_f32(x, y, z), fma_f32(x * SCALE, y, z * SCALE));
}

BINARY(MUL_F32_FTZ, float, float, canonical(mul_ftz(flush(a[l]), flush(b[l]))))
TERNARY(FMA_F32_FTZ, float, float, canonical(fma_ftz(flush(a[l]), flush(b[l]), flush(c[l]))))

static inline float finish_f32(float r, float scaled, unsigned flags)
{
	if (flags & FLAG_FTZ)
		r = flush_result(r, scaled);
	return (flags & FLAG_SAT) ? saturate(r) : canonical(r);
}

/* x, y, z are the operands of a lane; they are volatile because of the rounding mode (round_by()).  `scaled`: see
 * flush_result(). */
#define ANY_F32(name, sources, value, scaled)                                 \
	OP(name)                                                              \
	{                                                                     \
		const bool ftz = i->flags & FLAG_FTZ;                         \
		OPERAND(float, a);                                            \
		const float *b = (sources) > 1 ? F32(w, i->b) : a;            \
		const float *c = (sources) > 2 ? F32(w, i->c) : a;            \
		_Alignas(64) float t[LANES];                                  \
		round_by(i->flags & ROUND_MASK);                              \
		for (unsigned l = 0; l < LANES; l++) {                        \
			volatile float x = ftz ? flush(a[l]) : a[l];          \
			volatile float y = ftz ? flush(b[l]) : b[l];          \
			volatile float z = ftz ? flush(c[l]) : c[l];          \
			volatile float r = (value), s = (scaled);             \
			(void)y, (void)z;                                     \
			t[l] = finish_f32(r, s, i->flags);                        \
		}                                                             \
		round_nearest_again(i->flags & ROUND_MASK);                   \
		merge32(w->mask, opptr(w, i->d), (const uint32_t *)(const void *)t); \
		return i + 1;                                                 \
	}
ANY_F32(ADD_F32_ANY, 2, x + y, r * SCALE)
ANY_F32(SUB_F32_ANY, 2, x - y, r * SCALE)
ANY_F32(MUL_F32_ANY, 2, x * y, x * SCALE * y)
ANY_F32(FMA_F32_ANY, 3, fmaf(x, y, z), fmaf(x * SCALE, y, z * SCALE))
ANY_F32(DIV_F32_ANY, 2, x / y, x * SCALE / y)
ANY_F32(RCP_F32_ANY, 1, 1.0f / x, SCALE / x)
ANY_F32(SQRT_F32_ANY, 1, sqrtf(x), r * SCALE)

BINARY(MIN_F32, float, float, min_f32(a[l], b[l]))
BINARY(MAX_F32, float, float, max_f32(a[l], b[l]))

static inline float min_or_max(float x, float y, unsigned flags, bool want_max)
{
	if (flags & FLAG_FTZ) {
		x = flush(x);
		y = flush(y);
	}
	return choose_f32(x, y, flags, want_max);
}

BINARY(MIN_F32_ANY, float, float, min_or_max(a[l], b[l], i->flags, false))
BINARY(MAX_F32_ANY, float, float, min_or_max(a[l], b[l], i->flags, true))
TERNARY(MIN3_F32, float, float,
	min_or_max(min_or_max(a[l], b[l], i->flags, false), c[l], i->flags, false))
TERNARY(MAX3_F32, float, float,
	min_or_max(min_or_max(a[l], b[l], i->flags, true), c[l], i->flags, true))

/* Observed on sm_90: neg and abs are additions of -0, so every NaN becomes the canonical NaN. */
UNARY(NEG_F32, float, float, canonical(float_of(bits_of(a[l]) ^ 0x80000000)))
UNARY(ABS_F32, float, float, canonical(fabsf(a[l])))
UNARY(NEG_F32_FTZ, float, float, canonical(-flush(a[l])))
UNARY(ABS_F32_FTZ, float, float, canonical(fabsf(flush(a[l]))))
/* copysign d, a, b: the sign of a and the magnitude of b. */
BINARY(COPYSIGN_F32, uint32_t, uint32_t, (a[l] & 0x80000000) | (b[l] & 0x7fffffff))

/* ---- f32x2: two floats in a 64-bit register ---------------------------------------------------------- */

#define PAIR_F32(name, sources, value, scaled)                                \
	OP(name)                                                              \
	{                                                                     \
		const bool ftz = i->flags & FLAG_FTZ;                         \
		OPERAND(float, a);                                            \
		const float *b = F32(w, i->b);                                \
		const float *c = (sources) > 2 ? F32(w, i->c) : a;            \
		_Alignas(64) float t[2 * LANES];                              \
		round_by(i->flags & ROUND_MASK);                              \
		for (unsigned l = 0; l < 2 * LANES; l++) {                    \
			volatile float x = ftz ? flush(a[l]) : a[l];          \
			volatile float y = ftz ? flush(b[l]) : b[l];          \
			volatile float z = ftz ? flush(c[l]) : c[l];          \
			volatile float r = (value), s = (scaled);             \
			(void)z;                                              \
			t[l] = finish_f32(r, s, i->flags);                        \
		}                                                             \
		round_nearest_again(i->flags & ROUND_MASK);                   \
		merge64(w->mask, opptr(w, i->d), (const uint64_t *)(const void *)t); \
		return i + 1;                                                 \
	}
PAIR_F32(ADD_F32X2, 2, x + y, r * SCALE)
PAIR_F32(SUB_F32X2, 2, x - y, r * SCALE)
PAIR_F32(MUL_F32X2, 2, x * y, x * SCALE * y)
PAIR_F32(FMA_F32X2, 3, fmaf(x, y, z), fmaf(x * SCALE, y, z * SCALE))

/* ---- f64 ------------------------------------------------------------------------------------------ */

BINARY(ADD_F64, double, double, with_payload(a[l] + b[l], b[l], a[l], a[l]))
BINARY(SUB_F64, double, double, with_payload(a[l] - b[l], b[l], a[l], a[l]))
BINARY(MUL_F64, double, double, with_payload(a[l] * b[l], b[l], a[l], a[l]))
/* Calls the C library's fma if the instruction set has none. */
TERNARY(FMA_F64, double, double,
	with_payload(__builtin_fma(a[l], b[l], c[l]), b[l], c[l], a[l]))
BINARY(DIV_F64, double, double, with_payload(a[l] / b[l], a[l], b[l], b[l]))
UNARY(RCP_F64, double, double, with_payload(1.0 / a[l], a[l], a[l], a[l]))
UNARY(SQRT_F64, double, double, with_payload(__builtin_sqrt(a[l]), a[l], a[l], a[l]))

/* first, second, third: the operands in the order in which their NaN has priority (with_payload()). */
#define ANY_F64(name, sources, value, first, second, third)                                      \
	OP(name)                                                              \
	{                                                                     \
		OPERAND(double, a);                                           \
		const double *b = (sources) > 1 ? F64(w, i->b) : a;           \
		const double *c = (sources) > 2 ? F64(w, i->c) : a;           \
		_Alignas(64) double t[LANES];                                 \
		round_by(i->flags & ROUND_MASK);                              \
		for (unsigned l = 0; l < LANES; l++) {                        \
			volatile double x = a[l], y = b[l], z = c[l], r = (value); \
			(void)y, (void)z;                                     \
			t[l] = (i->flags & FLAG_SAT) ? saturate64(r) : with_payload(r, first[l], second[l], third[l]); \
		}                                                             \
		round_nearest_again(i->flags & ROUND_MASK);                   \
		merge64(w->mask, opptr(w, i->d), (const uint64_t *)(const void *)t); \
		return i + 1;                                                 \
	}
ANY_F64(ADD_F64_ANY, 2, x + y, b, a, a)
ANY_F64(SUB_F64_ANY, 2, x - y, b, a, a)
ANY_F64(MUL_F64_ANY, 2, x * y, b, a, a)
ANY_F64(FMA_F64_ANY, 3, fma(x, y, z), b, c, a)
ANY_F64(DIV_F64_ANY, 2, x / y, a, b, b)
ANY_F64(RCP_F64_ANY, 1, 1.0 / x, a, a, a)
ANY_F64(SQRT_F64_ANY, 1, sqrt(x), a, a, a)

BINARY(MIN_F64, double, double, min_f64(a[l], b[l]))
BINARY(MAX_F64, double, double, max_f64(a[l], b[l]))
/* Observed on sm_90: additions, as for f32; a NaN keeps its sign and becomes quiet. */
UNARY(NEG_F64, double, double,
      a[l] == a[l] ? double_of(bits_of64(a[l]) ^ (uint64_t)1 << 63) : quiet(a[l]))
UNARY(ABS_F64, double, double, a[l] == a[l] ? fabs(a[l]) : quiet(a[l]))
BINARY(COPYSIGN_F64, uint64_t, uint64_t, (a[l] & (uint64_t)1 << 63) | (b[l] & INT64_MAX))
