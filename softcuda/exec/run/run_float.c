/* run_float.c — handlers of correctly rounded f32 and f64 arithmetic: PTX ISA 9.7.3.
 *
 * add, sub, mul, fma, div, rcp and sqrt use CPU instructions: IEEE 754 defines the result, and GPUs since sm_20 comply.  Handlers
 * whose name ends in ANY implement the other roundings, .ftz and .sat: for f32 they are vectorised, because the code of the often
 * used expf() contains fma.rm; for f64 they work lane by lane. */
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

/* A subnormal sum is always exact, so flush() of the result is correct, and the slower flush_result() is not needed. */
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

/* A compiler barrier: it keeps computations that read or write *x in the part of the code with the right rounding mode. */
#define KEEP_HERE(x) __asm__ volatile("" : : "r"(x) : "memory")

/* The operands x, y, z and the results r of all lanes (two per lane for f32x2); `scaled`: see flush_result(). */
struct f32_work {
	_Alignas(64) float x[2 * LANES], y[2 * LANES], z[2 * LANES], r[2 * LANES], scaled[2 * LANES];
};

INLINE void load_f32(float *x, const float *a, unsigned n, bool ftz)
{
	if (ftz)
		for (unsigned l = 0; l < n; l++)
			x[l] = flush(a[l]);
	else
		memcpy(x, a, n * sizeof(*x));
}

INLINE void finish_f32(struct f32_work *k, unsigned n, unsigned flags)
{
	if (flags & FLAG_FTZ)
		for (unsigned l = 0; l < n; l++)
			k->r[l] = flush_result(k->r[l], k->scaled[l]);
	if (flags & FLAG_SAT)
		for (unsigned l = 0; l < n; l++)
			k->r[l] = saturate(k->r[l]);
	else
		for (unsigned l = 0; l < n; l++)
			k->r[l] = canonical(k->r[l]);
}

/* Define a struct f32_work k, and compute k.r for n lanes; the expressions value and scaled_value use x, y, z and r of lane l. */
#define WORK_F32(n, sources, value, scaled_value) \
	struct f32_work k; \
	const bool ftz = i->flags & FLAG_FTZ; \
	load_f32(k.x, F32(w, i->a), n, ftz); \
	if ((sources) > 1) \
		load_f32(k.y, F32(w, i->b), n, ftz); \
	if ((sources) > 2) \
		load_f32(k.z, F32(w, i->c), n, ftz); \
	round_by(i->flags &ROUND_MASK); \
	KEEP_HERE(&k); \
	for (unsigned l = 0; l < (n); l++) \
		k.r[l] = (value); \
	if (ftz) \
		for (unsigned l = 0; l < (n); l++) \
			k.scaled[l] = (scaled_value); \
	KEEP_HERE(&k); \
	round_nearest_again(i->flags &ROUND_MASK); \
	finish_f32(&k, n, i->flags)

#define ANY_F32(name, sources, value, scaled_value) \
	OP(name) \
	{ \
		WORK_F32(LANES, sources, value, scaled_value); \
		merge32(w->mask, opptr(w, i->d), (const uint32_t *)(const void *)k.r); \
		return i + 1; \
	}
ANY_F32(ADD_F32_ANY, 2, k.x[l] + k.y[l], k.r[l] * SCALE)
ANY_F32(SUB_F32_ANY, 2, k.x[l] - k.y[l], k.r[l] * SCALE)
ANY_F32(MUL_F32_ANY, 2, k.x[l] * k.y[l], k.x[l] * SCALE * k.y[l])
ANY_F32(FMA_F32_ANY, 3, fmaf(k.x[l], k.y[l], k.z[l]), fmaf(k.x[l] * SCALE, k.y[l], k.z[l] * SCALE))
ANY_F32(DIV_F32_ANY, 2, k.x[l] / k.y[l], k.x[l] * SCALE / k.y[l])
ANY_F32(RCP_F32_ANY, 1, 1.0f / k.x[l], SCALE / k.x[l])
ANY_F32(SQRT_F32_ANY, 1, sqrtf(k.x[l]), k.r[l] * SCALE)

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
TERNARY(MIN3_F32, float, float, min_or_max(min_or_max(a[l], b[l], i->flags, false), c[l], i->flags, false))
TERNARY(MAX3_F32, float, float, min_or_max(min_or_max(a[l], b[l], i->flags, true), c[l], i->flags, true))

/* Observed on sm_90: neg and abs are additions of -0, so every NaN becomes the canonical NaN. */
UNARY(NEG_F32, float, float, canonical(float_of(bits_of(a[l]) ^ 0x80000000)))
UNARY(ABS_F32, float, float, canonical(fabsf(a[l])))
UNARY(NEG_F32_FTZ, float, float, canonical(-flush(a[l])))
UNARY(ABS_F32_FTZ, float, float, canonical(fabsf(flush(a[l]))))
/* copysign d, a, b: the sign of a and the magnitude of b. */
BINARY(COPYSIGN_F32, uint32_t, uint32_t, (a[l] & 0x80000000) | (b[l] & 0x7fffffff))

/* ---- f32x2: two floats in a 64-bit register ---------------------------------------------------------- */

#define PAIR_F32(name, sources, value, scaled_value) \
	OP(name) \
	{ \
		WORK_F32(2 * LANES, sources, value, scaled_value); \
		merge64(w->mask, opptr(w, i->d), (const uint64_t *)(const void *)k.r); \
		return i + 1; \
	}
PAIR_F32(ADD_F32X2, 2, k.x[l] + k.y[l], k.r[l] * SCALE)
PAIR_F32(SUB_F32X2, 2, k.x[l] - k.y[l], k.r[l] * SCALE)
PAIR_F32(MUL_F32X2, 2, k.x[l] * k.y[l], k.x[l] * SCALE * k.y[l])
PAIR_F32(FMA_F32X2, 3, fmaf(k.x[l], k.y[l], k.z[l]), fmaf(k.x[l] * SCALE, k.y[l], k.z[l] * SCALE))

/* ---- f64 ------------------------------------------------------------------------------------------ */

static inline bool any_nan(const double r[LANES])
{
#if defined(__AVX512F__)
	return _mm512_cmp_pd_mask(_mm512_load_pd(r), _mm512_load_pd(r + 8), _CMP_UNORD_Q) |
	       _mm512_cmp_pd_mask(_mm512_load_pd(r + 16), _mm512_load_pd(r + 24), _CMP_UNORD_Q);
#else
	uint32_t nan;

	TEST_LANES(64, nan, r[l] != r[l]);
	return nan;
#endif
}

/* Define a handler.  with_payload() is called only if a result is NaN, which is rare; first, second, third: the operands in the order
 * in which their payloads have priority. */
#define PLAIN_F64(name, sources, value, first, second, third) \
	OP(name) \
	{ \
		OPERAND(double, a); \
		const double *const b = (sources) > 1 ? F64(w, i->b) : a; \
		const double *const c = (sources) > 2 ? F64(w, i->c) : a; \
		_Alignas(64) double r[LANES]; \
		(void)b, (void)c; \
		for (unsigned l = 0; l < LANES; l++) \
			r[l] = (value); \
		if (any_nan(r)) \
			for (unsigned l = 0; l < LANES; l++) \
				r[l] = with_payload(r[l], first[l], second[l], third[l]); \
		MERGE_LANES(double, opptr(w, i->d), r[l]); \
		return i + 1; \
	}
PLAIN_F64(ADD_F64, 2, a[l] + b[l], b, a, a)
PLAIN_F64(SUB_F64, 2, a[l] - b[l], b, a, a)
PLAIN_F64(MUL_F64, 2, a[l] * b[l], b, a, a)
/* The compiler calls fma() of the C library if the CPU has no FMA instructions. */
PLAIN_F64(FMA_F64, 3, __builtin_fma(a[l], b[l], c[l]), b, c, a)
PLAIN_F64(DIV_F64, 2, a[l] / b[l], a, b, b)
PLAIN_F64(RCP_F64, 1, 1.0 / a[l], a, a, a)
PLAIN_F64(SQRT_F64, 1, __builtin_sqrt(a[l]), a, a, a)

#define ANY_F64(name, sources, value, first, second, third) \
	OP(name) \
	{ \
		OPERAND(double, a); \
		const double *b = (sources) > 1 ? F64(w, i->b) : a; \
		const double *c = (sources) > 2 ? F64(w, i->c) : a; \
		_Alignas(64) double t[LANES]; \
		round_by(i->flags &ROUND_MASK); \
		for (unsigned l = 0; l < LANES; l++) { \
			volatile double x = a[l], y = b[l], z = c[l], r = (value); \
			(void)y, (void)z; \
			t[l] = (i->flags & FLAG_SAT) ? saturate64(r) : with_payload(r, first[l], second[l], third[l]); \
		} \
		round_nearest_again(i->flags &ROUND_MASK); \
		merge64(w->mask, opptr(w, i->d), (const uint64_t *)(const void *)t); \
		return i + 1; \
	}
ANY_F64(ADD_F64_ANY, 2, x + y, b, a, a)
ANY_F64(SUB_F64_ANY, 2, x - y, b, a, a)
ANY_F64(MUL_F64_ANY, 2, x *y, b, a, a)
ANY_F64(FMA_F64_ANY, 3, fma(x, y, z), b, c, a)
ANY_F64(DIV_F64_ANY, 2, x / y, a, b, b)
ANY_F64(RCP_F64_ANY, 1, 1.0 / x, a, a, a)
ANY_F64(SQRT_F64_ANY, 1, sqrt(x), a, a, a)

BINARY(MIN_F64, double, double, min_f64(a[l], b[l]))
BINARY(MAX_F64, double, double, max_f64(a[l], b[l]))
/* Observed on sm_90: neg and abs are additions, as for f32; a NaN keeps its sign and becomes quiet. */
UNARY(NEG_F64, double, double, a[l] == a[l] ? double_of(bits_of64(a[l]) ^ (uint64_t)1 << 63) : quiet(a[l]))
UNARY(ABS_F64, double, double, a[l] == a[l] ? fabs(a[l]) : quiet(a[l]))
BINARY(COPYSIGN_F64, uint64_t, uint64_t, (a[l] & (uint64_t)1 << 63) | (b[l] & INT64_MAX))
