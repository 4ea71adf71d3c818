/* run_half.c — handlers of f16, f16x2, bf16, bf16x2: PTX ISA 9.7.4, 9.7.6 (comparisons), 9.7.3 (mixed precision).
 *
 * An f16x2 register of 32 lanes is an array of 64 halves, so the packed forms are the scalar forms with n = 64.  Sums of two halves,
 * and products of f16, are computed in float and rounded again: float has more than twice as many bits, so the second rounding gives
 * the same result as a single rounding (Figueroa, When is double rounding innocuous?, 1995).  Products of f16 are exact in float, and
 * a fused sum is rounded to odd.  Products of bf16 may be too small for float; these are computed in double, and rounded to odd when
 * they are converted to float. */
#include "softcuda/exec/run/approx_internal.h"
#include "softcuda/exec/run/half_internal.h"
#include "softcuda/exec/run/lanes_internal.h"

enum { WIDEST = 2 * LANES };

INLINE void flush_below(float least, float *x, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		x[k] = fabsf(x[k]) < least ? copysignf(0.0f, x[k]) : x[k];
}

/* Apply .ftz to operands.  Of the bf16 instructions, only ex2 supports .ftz. */
INLINE void flush_halves(float *x, unsigned n, bool bf16)
{
	flush_below(bf16 ? 0x1p-126f : 0x1p-14f, x, n);
}

/* Apply .ftz to results before the final rounding: as in flush_result(), a result becomes zero if it is subnormal after rounding with
 * an unlimited exponent range.  For f16, these are the results below 2^-14 - 2^-26, the tie that rounds up to 2^-14. */
INLINE void flush_results(float *x, unsigned n, bool bf16)
{
	flush_below(bf16 ? 0x1p-126f : 0x1.ffep-15f, x, n);
}

INLINE void load_halves(float *x, const struct warp *w, const struct insn *i, opref r, unsigned n, bool bf16)
{
	widen_half(x, U16(w, r), n, bf16);
	if (i->flags & FLAG_FTZ)
		flush_halves(x, n, bf16);
}

INLINE void store_halves(struct warp *w, opref d, const uint16_t *h, unsigned n)
{
	if (n == LANES)
		merge16(w->mask, opptr(w, d), h);
	else
		merge32(w->mask, opptr(w, d), (const uint32_t *)(const void *)h);
}

/* Apply .ftz, .relu, .sat and the rounding to the results x, and store them in d. */
INLINE void finish_halves(struct warp *w, const struct insn *i, float *x, unsigned n, bool bf16)
{
	_Alignas(64) uint16_t h[WIDEST];
	if (i->flags & FLAG_FTZ)
		flush_results(x, n, bf16);
	if (i->flags & FLAG_RELU)
		for (unsigned k = 0; k < n; k++)
			x[k] = x[k] < 0 ? 0.0f : x[k];
	if (i->flags & FLAG_SAT)
		for (unsigned k = 0; k < n; k++)
			x[k] = saturate(x[k]);
	narrow_half(h, x, n, bf16);
	if (i->flags & FLAG_RELU) /* .relu also replaces -0 by +0 */
		for (unsigned k = 0; k < n; k++)
			h[k] = h[k] == 0x8000 ? 0 : h[k];
	store_halves(w, i->d, h, n);
}

#define BY_HALF(M, op) M(op, F16, LANES, false) M(op, F16X2, WIDEST, false) M(op, BF16, LANES, true) M(op, BF16X2, WIDEST, true)

/* p[k] = x[k] * y[k].  Returns true if each product is exact in float, infinite or NaN, and, if `finite` is set, none overflows.  A
 * product of bf16 has 16 bits, so it is exact unless it underflows. */
INLINE bool multiply_exactly(float *p, const float *x, const float *y, unsigned n, bool finite)
{
	_Alignas(64) uint32_t rare[WIDEST];
	uint32_t any = 0;

	for (unsigned k = 0; k < n; k++) {
		p[k] = x[k] * y[k];
		rare[k] = (uint32_t)((fabsf(p[k]) < 0x1p-126f) & (x[k] != 0) & (y[k] != 0)) |
			  (uint32_t)(finite & !(fabsf(p[k]) < INFINITY));
	}
	for (unsigned k = 0; k < n; k++)
		any |= rare[k];
	return !any;
}

/* x = x * y, rounded to odd if the product is not exact in float. */
INLINE void multiply_halves(float *x, const float *y, unsigned n, bool bf16)
{
	_Alignas(64) float p[WIDEST];

	if (!multiply_exactly(p, x, y, n, false) && bf16)
		for (unsigned k = 0; k < n; k++)
			p[k] = odd_float((double)x[k] * (double)y[k]);
	memcpy(x, p, n * sizeof *p);
}

/* x = x * y + z, rounded to odd. */
INLINE void fuse_halves(float *x, const float *y, const float *z, unsigned n, bool bf16)
{
	_Alignas(64) float p[WIDEST];

	if (!multiply_exactly(p, x, y, n, true) && bf16)
		for (unsigned k = 0; k < n; k++)
			x[k] = odd_float(odd_sum((double)x[k] * (double)y[k], (double)z[k]));
	else
		for (unsigned k = 0; k < n; k++)
			x[k] = odd_sum_f32(p[k], z[k]);
}

#define ARITHMETIC(op, type, n, bf16, sources, value) \
	OP(op##_##type) \
	{ \
		_Alignas(64) float x[WIDEST], y[WIDEST], z[WIDEST]; \
		load_halves(x, w, i, i->a, n, bf16); \
		load_halves(y, w, i, i->b, n, bf16); \
		if ((sources) > 2) \
			load_halves(z, w, i, i->c, n, bf16); \
		for (unsigned k = 0; k < (n); k++) \
			x[k] = (value); \
		finish_halves(w, i, x, n, bf16); \
		return i + 1; \
	}
#define M(op, type, n, bf16) ARITHMETIC(op, type, n, bf16, 2, x[k] + y[k])
BY_HALF(M, ADD)
#undef M
#define M(op, type, n, bf16) ARITHMETIC(op, type, n, bf16, 2, x[k] - y[k])
BY_HALF(M, SUB)
#undef M

#define PRODUCT(op, type, n, bf16, sources) \
	OP(op##_##type) \
	{ \
		_Alignas(64) float x[WIDEST], y[WIDEST], z[WIDEST]; \
		load_halves(x, w, i, i->a, n, bf16); \
		load_halves(y, w, i, i->b, n, bf16); \
		if ((sources) > 2) { \
			load_halves(z, w, i, i->c, n, bf16); \
			fuse_halves(x, y, z, n, bf16); \
		} else { \
			multiply_halves(x, y, n, bf16); \
		} \
		finish_halves(w, i, x, n, bf16); \
		return i + 1; \
	}
#define M(op, type, n, bf16) PRODUCT(op, type, n, bf16, 2)
BY_HALF(M, MUL)
#undef M
#define M(op, type, n, bf16) PRODUCT(op, type, n, bf16, 3)
BY_HALF(M, FMA)
#undef M

/* Returns true if h is the NaN with which tensor copies fill elements outside of the tensor.  As operand a or b of fma.oob, it makes
 * the result 0.  An H200 treats two values like this, 0x7ff7 and 0xfff7, for f16 and bf16 (observed; PTX does not specify the bits). */
INLINE bool is_oob_nan(uint16_t h)
{
	return (h & 0x7fff) == 0x7ff7;
}

#define FMA_OOB(op, type, n, bf16) \
	OP(op##_##type) \
	{ \
		const uint16_t *a = U16(w, i->a), *b = U16(w, i->b); \
		_Alignas(64) float x[WIDEST], y[WIDEST], z[WIDEST]; \
		load_halves(x, w, i, i->a, n, bf16); \
		load_halves(y, w, i, i->b, n, bf16); \
		load_halves(z, w, i, i->c, n, bf16); \
		fuse_halves(x, y, z, n, bf16); \
		for (unsigned k = 0; k < (n); k++) \
			x[k] = is_oob_nan(a[k]) || is_oob_nan(b[k]) ? 0 : x[k]; \
		finish_halves(w, i, x, n, bf16); \
		return i + 1; \
	}
BY_HALF(FMA_OOB, FMA_OOB)

/* ---- min, max, neg, abs ------------------------------------------------------------------------------- */

#define CHOOSE(op, type, n, bf16, want_max) \
	OP(op##_##type) \
	{ \
		_Alignas(64) float x[WIDEST], y[WIDEST]; \
		_Alignas(64) uint16_t h[WIDEST]; \
		load_halves(x, w, i, i->a, n, bf16); \
		load_halves(y, w, i, i->b, n, bf16); \
		for (unsigned k = 0; k < (n); k++) \
			x[k] = choose_f32(x[k], y[k], i->flags, want_max); \
		narrow_half(h, x, n, bf16); \
		store_halves(w, i->d, h, n); \
		return i + 1; \
	}
#define M(op, type, n, bf16) CHOOSE(op, type, n, bf16, false)
BY_HALF(M, MIN)
#undef M
#define M(op, type, n, bf16) CHOOSE(op, type, n, bf16, true)
BY_HALF(M, MAX)
#undef M

/* neg and abs only change the sign bit; a NaN (bits above infinity's) becomes the canonical NaN, as observed on sm_90. */
INLINE uint16_t signed_half(uint16_t h, uint16_t flip, uint16_t keep, bool bf16)
{
	const uint16_t infinity = bf16 ? 0x7f80 : 0x7c00;
	return (h & 0x7fff) > infinity ? 0x7fff : (uint16_t)((h ^ flip) & keep);
}

INLINE uint16_t flush_half(uint16_t h, unsigned flags)
{
	return (uint16_t)((flags & FLAG_FTZ) && !(h & 0x7c00) ? h & 0x8000 : h);
}

#define SIGN(op, type, n, bf16, flip, keep) \
	OP(op##_##type) \
	{ \
		OPERAND(uint16_t, a); \
		_Alignas(64) uint16_t h[WIDEST]; \
		for (unsigned k = 0; k < (n); k++) \
			h[k] = signed_half(flush_half(a[k], i->flags), flip, keep, bf16); \
		store_halves(w, i->d, h, n); \
		return i + 1; \
	}
#define M(op, type, n, bf16) SIGN(op, type, n, bf16, 0x8000, 0xffff)
BY_HALF(M, NEG)
#undef M
#define M(op, type, n, bf16) SIGN(op, type, n, bf16, 0, 0x7fff)
BY_HALF(M, ABS)
#undef M

/* ---- ex2, tanh: approximations with a relative error of 2^-23, rounded once --------------------------------- */

#define FUNCTION(op, type, n, bf16, value) \
	OP(op##_##type) \
	{ \
		_Alignas(64) float x[WIDEST]; \
		load_halves(x, w, i, i->a, n, bf16); \
		for (unsigned k = 0; k < (n); k++) \
			x[k] = value(x[k]); \
		finish_halves(w, i, x, n, bf16); \
		return i + 1; \
	}
#define M(op, type, n, bf16) FUNCTION(op, type, n, bf16, approx_ex2)
BY_HALF(M, EX2)
#undef M
#define M(op, type, n, bf16) FUNCTION(op, type, n, bf16, approx_tanh)
BY_HALF(M, TANH)
#undef M

/* ---- comparisons: flags and n as in run_compare.c ----------------------------------------------------------- */

COMPARE(compare_floats, float, 32)

/* results of a comparison, one bit per lane; `high`: those of the upper halves of packed operands */
struct half_bits {
	uint32_t low, high;
};

static struct half_bits compare_halves(struct warp *w, const struct insn *i, unsigned n, bool bf16)
{
	_Alignas(64) float x[WIDEST], y[WIDEST], part[4][LANES];

	load_halves(x, w, i, i->a, n, bf16);
	load_halves(y, w, i, i->b, n, bf16);
	if (n == LANES)
		return (struct half_bits){ .low = compare_floats(x, y, i->n) };
	for (unsigned l = 0; l < LANES; l++) {
		part[0][l] = x[2 * l];
		part[1][l] = y[2 * l];
		part[2][l] = x[2 * l + 1];
		part[3][l] = y[2 * l + 1];
	}
	return (struct half_bits){ compare_floats(part[0], part[1], i->n), compare_floats(part[2], part[3], i->n) };
}

/* Store the results of setp.  setp.f16 p|q: q is the complement of p.  setp.f16x2 p|q: p is for the lower halves, q for the upper. */
static const struct insn *setp_half(struct warp *w, const struct insn *i, unsigned n, bool bf16)
{
	const struct half_bits bits = compare_halves(w, i, n, bf16);
	const uint32_t p = combine(w, i, bits.low), q = combine(w, i, n == LANES ? ~bits.low : bits.high);
	set_predicate(w, i->d, p);
	if (i->flags & COMPARE_HAS_Q)
		set_predicate(w, i->d2, q);
	return i + 1;
}

OP(SETP_F16)
{
	return setp_half(w, i, LANES, false);
}
OP(SETP_F16X2)
{
	return setp_half(w, i, WIDEST, false);
}
OP(SETP_BF16)
{
	return setp_half(w, i, LANES, true);
}
OP(SETP_BF16X2)
{
	return setp_half(w, i, WIDEST, true);
}

/* Execute PTX `set`: true is 1.0 if the destination type is floating-point, and all ones if it is an integer; false is 0.  Packed sources
 * give one result for each half; scalar sources give one result, of i->imm bytes. */
static const struct insn *set_half(struct warp *w, const struct insn *i, unsigned n, bool bf16)
{
	const struct half_bits bits = compare_halves(w, i, n, bf16);
	const uint32_t low = combine(w, i, bits.low), high = combine(w, i, bits.high);
	const uint16_t one = (i->flags & SET_BF16) ? 0x3f80 : 0x3c00;
	const bool is_float = i->flags & SET_FLOAT;
	if (n == WIDEST) {
		const uint32_t yes = is_float ? one : 0xffff;
		MERGE_LANES(uint32_t, opptr(w, i->d), ((high >> l & 1) ? yes << 16 : 0) | ((low >> l & 1) ? yes : 0));
	} else if (i->imm == 2) {
		const uint16_t yes = is_float ? one : 0xffff;
		MERGE_LANES(uint16_t, opptr(w, i->d), (low >> l & 1) ? yes : 0);
	} else {
		MERGE_LANES(uint32_t, opptr(w, i->d), (low >> l & 1) ? UINT32_MAX : 0);
	}
	return i + 1;
}

OP(SET_F16)
{
	return set_half(w, i, LANES, false);
}
OP(SET_F16X2)
{
	return set_half(w, i, WIDEST, false);
}
OP(SET_BF16)
{
	return set_half(w, i, LANES, true);
}
OP(SET_BF16X2)
{
	return set_half(w, i, WIDEST, true);
}

/* ---- mixed precision: add.f32.f16 d, a, c and fma.f32.f16 d, a, b, c; the last source is f32 ------------------ */

enum { MIXED_BF16 = 128 };

static const struct insn *mixed_precision(struct warp *w, const struct insn *i, opref last, int kind)
{
	_Alignas(64) float x[LANES], y[LANES], t[LANES];
	widen_half(x, U16(w, i->a), LANES, i->flags & MIXED_BF16);
	if (kind == OP_FMA_MIXED)
		widen_half(y, U16(w, i->b), LANES, i->flags & MIXED_BF16);
	const float *z = F32(w, last);
	round_by(i->flags & ROUND_MASK);
	for (unsigned l = 0; l < LANES; l++) {
		volatile float p = x[l], q = kind == OP_FMA_MIXED ? y[l] : 0, s = z[l];
		volatile float r = kind == OP_FMA_MIXED ? fmaf(p, q, s) : kind == OP_ADD_MIXED ? p + s : p - s;
		t[l] = (i->flags & FLAG_SAT) ? saturate(r) : canonical(r);
	}
	round_nearest_again(i->flags & ROUND_MASK);
	merge32(w->mask, opptr(w, i->d), (const uint32_t *)(const void *)t);
	return i + 1;
}

OP(ADD_MIXED)
{
	return mixed_precision(w, i, i->b, OP_ADD_MIXED);
}
OP(SUB_MIXED)
{
	return mixed_precision(w, i, i->b, OP_SUB_MIXED);
}
OP(FMA_MIXED)
{
	return mixed_precision(w, i, i->c, OP_FMA_MIXED);
}
