/* run_video.c — handlers of the video instructions: PTX ISA 9.7.18 (scalar) and 9.7.19 (SIMD).
 *
 * These instructions are rare, and GPUs since sm_50 only emulate them, so two slow handlers execute all of them, lane by lane; struct
 * video holds the operation.  A part (byte or half) of an operand is first extended to 34 bits, as the ISA specifies. */
#include "softcuda/exec/run/lanes_internal.h"

/* Return the byte or half of x that the selector specifies, sign- or zero-extended. */
static int64_t part_of(uint32_t x, unsigned selector, bool is_signed)
{
	if (selector >= GPUL_PTX_SEL_B0 && selector <= GPUL_PTX_SEL_B3) {
		const uint8_t b = (uint8_t)(x >> 8 * (selector - GPUL_PTX_SEL_B0));
		return is_signed ? (int8_t)b : b;
	}
	if (selector == GPUL_PTX_SEL_H0 || selector == GPUL_PTX_SEL_H1) {
		const uint16_t h = (uint16_t)(x >> 16 * (selector - GPUL_PTX_SEL_H0));
		return is_signed ? (int16_t)h : h;
	}
	return is_signed ? (int64_t)(int32_t)x : (int64_t)x;
}

static int64_t clamp_to(int64_t x, unsigned bits, bool is_signed)
{
	const int64_t most = is_signed ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
	const int64_t least = is_signed ? -most - 1 : 0;
	return x > most ? most : x < least ? least : x;
}

static bool compare_integers(int64_t a, int64_t b, unsigned compare)
{
	switch (compare) {
	case CMP_EQ:
		return a == b;
	case CMP_NE:
		return a != b;
	case CMP_LT:
		return a < b;
	case CMP_LE:
		return a <= b;
	case CMP_GT:
		return a > b;
	default:
		return a >= b;
	}
}

/* Bits that vshl shifts out of the 34 bits are lost before .sat is applied: on sm_90, vshl.u32.u32.u32.sat of 0x80000000 by 7 is 0.
 * Without .sat, 64 bits are kept, and a following .min or .max compares all of them. */
static int64_t shift_part(int64_t a, int64_t b, unsigned op, unsigned flags)
{
	const uint64_t amount = (flags & VIDEO_WRAP) ? (uint64_t)b & 31 : (uint32_t)b > 32 ? 32 : (uint32_t)b;
	if (op == VIDEO_SHR)
		return a >> amount;
	const unsigned cut = (flags & VIDEO_SAT) ? 64 - 34 : 0;
	return (int64_t)((uint64_t)a << amount << cut) >> cut;
}

static int64_t first_operation(int64_t a, int64_t b, unsigned op, unsigned compare, unsigned flags)
{
	switch (op) {
	case VIDEO_ADD:
		return a + b;
	case VIDEO_SUB:
		return a - b;
	case VIDEO_ABSDIFF:
		return a < b ? b - a : a - b;
	case VIDEO_MIN:
		return a < b ? a : b;
	case VIDEO_MAX:
		return a > b ? a : b;
	case VIDEO_AVRG:
		return (a + b + (a + b >= 0)) >> 1; /* vavrg: (a + b) / 2, rounded to nearest, ties away from zero */
	case VIDEO_SET:
		return compare_integers(a, b, compare);
	default:
		return shift_part(a, b, op, flags);
	}
}

/* Return the width of the part of d that a merge writes. */
static unsigned merge_bits(unsigned selector)
{
	return selector == GPUL_PTX_SEL_H0 || selector == GPUL_PTX_SEL_H1 ? 16 : 8;
}

static unsigned merge_at(unsigned selector)
{
	if (selector == GPUL_PTX_SEL_H0 || selector == GPUL_PTX_SEL_H1)
		return 16 * (selector - GPUL_PTX_SEL_H0);
	return 8 * (selector - GPUL_PTX_SEL_B0);
}

static bool is_shift(const struct video *v)
{
	return v->op == VIDEO_SHL || v->op == VIDEO_SHR;
}

/* .min and .max compare the result r of the first operation with c, in 64 bits, as the type of d (vset: of a).  Observed on sm_90: c
 * is extended as that type; after vadd, vsub, and shifts with .sat, the low 32 bits of r are sign-extended; after other operations,
 * r keeps all bits.  So if d is unsigned, r = -1 is greater than every c. */
static bool first_is_less(int64_t r, uint32_t c, const struct video *v)
{
	const bool word = v->op == VIDEO_ADD || v->op == VIDEO_SUB || (is_shift(v) && (v->flags & VIDEO_SAT));
	const int64_t x = word ? (int32_t)r : r;
	return (v->flags & VIDEO_D_SIGNED) ? x < (int32_t)c : (uint64_t)x < c;
}

static uint32_t second_operation(int64_t r, uint32_t c, const struct video *v)
{
	switch (v->second) {
	case VIDEO_2ND_ADD:
		return (uint32_t)r + c;
	case VIDEO_2ND_MIN:
		return first_is_less(r, c, v) ? (uint32_t)r : c;
	case VIDEO_2ND_MAX:
		return first_is_less(r, c, v) ? c : (uint32_t)r;
	case VIDEO_MERGE:
		break;
	default:
		return (uint32_t)r;
	}
	const unsigned at = merge_at(v->d_selector);
	const uint32_t mask = (((uint32_t)1 << merge_bits(v->d_selector)) - 1) << at;
	return (c & ~mask) | ((uint32_t)r << at & mask);
}

/* vmad: a * b + c with negations, .po (plus one) and scaling, in 64 bits.  Observed on sm_90: 32-bit operands are signed even if
 * their types are unsigned; with unsigned types, the scaling shifts zeros in, and .sat clamps to u32. */
static uint32_t multiply_add(int64_t a, int64_t b, uint32_t c, const struct video *v)
{
	const bool is_signed = v->flags & (VIDEO_A_SIGNED | VIDEO_B_SIGNED | VIDEO_NEG_PRODUCT | VIDEO_NEG_C);
	const int64_t x = v->a_selector == GPUL_PTX_SEL_NONE ? (int32_t)a : a;
	const int64_t y = v->b_selector == GPUL_PTX_SEL_NONE ? (int32_t)b : b;
	int64_t r = (v->flags & VIDEO_NEG_PRODUCT) ? -(x * y) : x * y; /* cannot overflow: the product is at most 2^62 */
	r += (v->flags & VIDEO_NEG_C) ? -(int64_t)(int32_t)c : (int32_t)c;
	r += (v->flags & VIDEO_PLUS_ONE) ? 1 : 0;
	r = is_signed ? r >> v->shift : (int64_t)((uint64_t)r >> v->shift);
	return (uint32_t)((v->flags & VIDEO_SAT) ? clamp_to(r, 32, is_signed) : r);
}

/* Apply .sat to the result r of the first operation, before it is merged into c.  According to the PTX ISA, .sat clamps r to the
 * range of the written part of d.  Observed on sm_90: .sat limits the low 32 bits, as an unsigned number, and only from above, so
 * that -1 becomes the greatest value of the part; for .h1, the limit is 0. */
static int64_t saturate_merged_part(int64_t r, const struct video *v)
{
	const unsigned bits = merge_bits(v->d_selector) - !!(v->flags & VIDEO_D_SIGNED);
	const uint32_t most = v->d_selector == GPUL_PTX_SEL_H1 ? 0 : ((uint32_t)1 << bits) - 1;
	return (uint32_t)r > most ? most : (uint32_t)r;
}

/* Apply .sat to the result r of the first operation: r is clamped to 32 bits if no second operation follows, or if the first one is a
 * shift.  Observed on sm_90: before .add, .min or .max, an unsigned r is limited from below only. */
static int64_t saturate_first(int64_t r, const struct video *v)
{
	const bool d_signed = v->flags & VIDEO_D_SIGNED;
	if (v->second == VIDEO_PLAIN || is_shift(v))
		return clamp_to(r, 32, d_signed);
	if (v->second == VIDEO_MERGE)
		return saturate_merged_part(r, v);
	return d_signed ? clamp_to(r, 32, true) : r < 0 ? 0 : r;
}

static uint32_t video_scalar(uint32_t a, uint32_t b, uint32_t c, const struct video *v)
{
	const int64_t x = part_of(a, v->a_selector, v->flags & VIDEO_A_SIGNED);
	const int64_t y = part_of(b, v->b_selector, !is_shift(v) && (v->flags & VIDEO_B_SIGNED));
	if (v->op == VIDEO_MAD)
		return multiply_add(x, y, c, v);
	int64_t r = first_operation(x, y, v->op, v->compare, v->flags);
	if (v->flags & VIDEO_SAT)
		r = saturate_first(r, v);
	return second_operation(r, c, v);
}

OP(VIDEO)
{
	struct video v;
	memcpy(&v, &i->imm, sizeof(v));
	OPERAND(uint32_t, a);
	OPERAND(uint32_t, b);
	const uint32_t *c = v.op == VIDEO_MAD || v.second != VIDEO_PLAIN ? U32(w, i->c) : a;
	uint32_t *d = opptr(w, i->d);
	for (unsigned l = 0; l < LANES; l++)
		if (w->mask >> l & 1)
			d[l] = video_scalar(a[l], b[l], c[l], &v);
	return i + 1;
}

/* ---- SIMD: two halves or four bytes -------------------------------------------------------------------- */

/* Return byte or half `pick` of the 64-bit value b:a: bytes 0-3 come from a, 4-7 from b; halves 0-1 from a, 2-3 from b. */
static int64_t simd_part(uint32_t a, uint32_t b, unsigned pick, unsigned bits, bool is_signed)
{
	const uint64_t u = ((uint64_t)b << 32 | a) >> bits * pick;
	if (bits == 8)
		return is_signed ? (int8_t)u : (int64_t)(uint8_t)u;
	return is_signed ? (int16_t)u : (int64_t)(uint16_t)u;
}

static uint32_t video_simd(uint32_t a, uint32_t b, uint32_t c, const struct video_simd *v, unsigned parts)
{
	const uint32_t picks = (uint32_t)v->picks[0] | (uint32_t)v->picks[1] << 8 | (uint32_t)v->picks[2] << 16;
	const unsigned bits = 32 / parts;
	const uint32_t part_mask = ((uint32_t)1 << bits) - 1;
	uint32_t merged = c, sum = c;
	for (unsigned k = 0; k < parts; k++) {
		if (!(v->parts >> k & 1))
			continue;
		const int64_t x = simd_part(a, b, picks >> 3 * k & 7, bits, v->flags & VIDEO_A_SIGNED);
		const int64_t y = simd_part(a, b, picks >> (12 + 3 * k) & 7, bits, v->flags & VIDEO_B_SIGNED);
		int64_t r = first_operation(x, y, v->op, v->compare, v->flags);
		if (v->flags & VIDEO_SAT)
			r = clamp_to(r, bits, v->flags & VIDEO_D_SIGNED);
		sum += (uint32_t)r;
		merged = (merged & ~(part_mask << bits * k)) | ((uint32_t)r & part_mask) << bits * k;
	}
	return v->second == VIDEO_2ND_ADD ? sum : merged;
}

OP(VIDEO_SIMD)
{
	struct video_simd v;
	memcpy(&v, &i->imm, sizeof(v));
	OPERAND(uint32_t, a);
	OPERAND(uint32_t, b);
	OPERAND(uint32_t, c);
	uint32_t *d = opptr(w, i->d);
	for (unsigned l = 0; l < LANES; l++)
		if (w->mask >> l & 1)
			d[l] = video_simd(a[l], b[l], c[l], &v, i->n);
	return i + 1;
}
