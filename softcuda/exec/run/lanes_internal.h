/* lanes_internal.h — macros for arithmetic handlers: one expression for 32 lanes.
 *
 *     BINARY(ADD_32, uint32_t, uint32_t, a[l] + b[l])
 *
 * is the complete handler of add.u32.  Each file of handlers is compiled once per instruction set (see engine_internal.h).  A handler is a
 * vectorised loop over all 32 lanes.  If some lanes are inactive, the loop writes to a temporary array, whose active lanes are then copied
 * to the destination.  Because the expression is also evaluated for inactive lanes, it must not trap (no x / 0). */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_LANES_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_LANES_INTERNAL_H

#include "softcuda/exec/exec_select_internal.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The head of a handler's definition. */
#define OP(name) const struct insn *GPUL_BUILD(op_##name)(struct warp * w, const struct insn *i)

#define X(name) OP(name);
GPUL_ALU_OPS(X)
#undef X

/* d[lane] = t[lane] for the lanes of mask, with elements of 2 bytes (merge32: 4 bytes, merge64: 8); t is 64-byte aligned. */
static inline void merge16(uint32_t mask, uint16_t *d, const uint16_t *t)
{
#if defined(__AVX512BW__)
	_mm512_mask_storeu_epi16(d, mask, _mm512_load_si512(t));
#else
	for (unsigned l = 0; l < LANES; l++)
		d[l] = (uint16_t)((mask >> l & 1) ? t[l] : d[l]);
#endif
}

static inline void merge32(uint32_t mask, uint32_t *d, const uint32_t *t)
{
#if defined(__AVX512F__)
	_mm512_mask_storeu_epi32(d, (__mmask16)mask, _mm512_load_si512(t));
	_mm512_mask_storeu_epi32(d + 16, (__mmask16)(mask >> 16), _mm512_load_si512(t + 16));
#elif defined(__AVX2__)
	const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
	for (unsigned l = 0; l < LANES; l += 8) {
		__m256i m = _mm256_and_si256(_mm256_set1_epi32((int)(mask >> l)), bit);
		_mm256_maskstore_epi32((int *)(d + l), _mm256_cmpeq_epi32(m, bit), _mm256_load_si256((const __m256i *)(t + l)));
	}
#else
	for (unsigned l = 0; l < LANES; l++)
		d[l] = (mask >> l & 1) ? t[l] : d[l];
#endif
}

static inline void merge64(uint32_t mask, uint64_t *d, const uint64_t *t)
{
#if defined(__AVX512F__)
	for (unsigned l = 0; l < LANES; l += 8)
		_mm512_mask_storeu_epi64(d + l, (__mmask8)(mask >> l), _mm512_load_si512(t + l));
#elif defined(__AVX2__)
	const __m256i bit = _mm256_setr_epi64x(1, 2, 4, 8);
	for (unsigned l = 0; l < LANES; l += 4) {
		__m256i m = _mm256_and_si256(_mm256_set1_epi64x((long long)(mask >> l)), bit);
		_mm256_maskstore_epi64((long long *)(d + l), _mm256_cmpeq_epi64(m, bit), _mm256_load_si256((const __m256i *)(t + l)));
	}
#else
	for (unsigned l = 0; l < LANES; l++)
		d[l] = (mask >> l & 1) ? t[l] : d[l];
#endif
}

static inline void merge_lanes(uint32_t mask, void *d, const void *t, size_t element_bytes)
{
	if (element_bytes == 2)
		merge16(mask, d, t);
	else if (element_bytes == 4)
		merge32(mask, d, t);
	else
		merge64(mask, d, t);
}

/* d[l] = value for the active lanes l of w; T is the type of an element. */
#define MERGE_LANES(T, d, value) \
	do { \
		T *const d_ = __builtin_assume_aligned(d, 64); \
		if (w->mask == ALL_LANES) { \
			VECTORISE \
			for (unsigned l = 0; l < LANES; l++) \
				d_[l] = (T)(value); \
		} else { \
			_Alignas(64) T t_[LANES]; \
			for (unsigned l = 0; l < LANES; l++) \
				t_[l] = (T)(value); \
			merge_lanes(w->mask, d_, t_, sizeof(T)); \
		} \
	} while (0)

#define OPERAND(T, name) const T *const name = __builtin_assume_aligned(opptr(w, i->name), 64)

/* Define handlers with one, two or three sources.  T: type of the destination; S: type of the sources. */
#define UNARY(name, T, S, value) \
	OP(name) \
	{ \
		OPERAND(S, a); \
		MERGE_LANES(T, opptr(w, i->d), value); \
		return i + 1; \
	}
#define BINARY(name, T, S, value) \
	OP(name) \
	{ \
		OPERAND(S, a); \
		OPERAND(S, b); \
		MERGE_LANES(T, opptr(w, i->d), value); \
		return i + 1; \
	}
#define TERNARY(name, T, S, value) \
	OP(name) \
	{ \
		OPERAND(S, a); \
		OPERAND(S, b); \
		OPERAND(S, c); \
		MERGE_LANES(T, opptr(w, i->d), value); \
		return i + 1; \
	}
/* Define a shift, whose second source is always .u32. */
#define SHIFT(name, T, value) \
	OP(name) \
	{ \
		OPERAND(T, a); \
		OPERAND(uint32_t, b); \
		MERGE_LANES(T, opptr(w, i->d), value); \
		return i + 1; \
	}
/* Define mad.wide, whose third source is as wide as the destination. */
#define WIDE_MAD(name, T, S, value) \
	OP(name) \
	{ \
		OPERAND(S, a); \
		OPERAND(S, b); \
		OPERAND(T, c); \
		MERGE_LANES(T, opptr(w, i->d), value); \
		return i + 1; \
	}

/* ---- predicates ------------------------------------------------------------------------------ */

/* Combine `bits`, the results of a comparison, with predicate c, as in setp.lt.and p, a, b, c. */
static inline uint32_t combine(const struct warp *w, const struct insn *i, uint32_t bits)
{
	switch (i->flags & COMBINE_MASK) {
	case COMBINE_AND:
		return bits & *PRED(w, i->c);
	case COMBINE_OR:
		return bits | *PRED(w, i->c);
	case COMBINE_XOR:
		return bits ^ *PRED(w, i->c);
	default:
		return bits;
	}
}

/* Convert 32 results of a comparison (each 0 or -1) to a predicate, whose bit l is the sign of t[l]. */
static inline uint32_t signs16(const int16_t *t)
{
#if defined(__AVX512BW__)
	return _mm512_movepi16_mask(_mm512_load_si512(t));
#elif defined(__SSE2__)
	const __m128i *v = (const __m128i *)t;
	uint32_t lo = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(v[0], v[1]));
	return lo | (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(v[2], v[3])) << 16;
#else
	uint32_t bits = 0;
	for (unsigned l = 0; l < LANES; l++)
		bits |= (uint32_t)(t[l] < 0) << l;
	return bits;
#endif
}

static inline uint32_t signs32(const int32_t *t)
{
#if defined(__AVX512DQ__)
	uint32_t lo = _mm512_movepi32_mask(_mm512_load_si512(t));
	return lo | (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(t + 16)) << 16;
#elif defined(__AVX2__)
	uint32_t bits = 0;
	for (unsigned l = 0; l < LANES; l += 8)
		bits |= (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)(t + l))) << l;
	return bits;
#elif defined(__SSE2__)
	uint32_t bits = 0;
	for (unsigned l = 0; l < LANES; l += 4)
		bits |= (uint32_t)_mm_movemask_ps(_mm_load_ps((const float *)(t + l))) << l;
	return bits;
#else
	uint32_t bits = 0;
	for (unsigned l = 0; l < LANES; l++)
		bits |= (uint32_t)(t[l] < 0) << l;
	return bits;
#endif
}

static inline uint32_t signs64(const int64_t *t)
{
	uint32_t bits = 0;
#if defined(__AVX512DQ__)
	for (unsigned l = 0; l < LANES; l += 8)
		bits |= (uint32_t)_mm512_movepi64_mask(_mm512_load_si512(t + l)) << l;
#elif defined(__AVX2__)
	for (unsigned l = 0; l < LANES; l += 4)
		bits |= (uint32_t)_mm256_movemask_pd(_mm256_load_pd((const double *)(t + l))) << l;
#elif defined(__SSE2__)
	for (unsigned l = 0; l < LANES; l += 2)
		bits |= (uint32_t)_mm_movemask_pd(_mm_load_pd((const double *)(t + l))) << l;
#else
	for (unsigned l = 0; l < LANES; l++)
		bits |= (uint32_t)(t[l] < 0) << l;
#endif
	return bits;
}

/* Set bits to the lanes l for which cond is true; N (16, 32 or 64) is the width of the operands in cond. */
#define TEST_LANES(N, bits, cond) \
	do { \
		_Alignas(64) int##N##_t t_[LANES]; \
		for (unsigned l = 0; l < LANES; l++) \
			t_[l] = (cond) ? -1 : 0; \
		(bits) = signs##N(t_); \
	} while (0)

/* Define a function for all comparisons of type T; cmp is an enum compare.  The unordered comparison CMP_GEU (greater, equal or
 * unordered) is the complement of CMP_LT, and so on; CMP_NAN is the complement of CMP_NUM. */
/* clang-format off */
#define COMPARE(name, T, N)                                                   \
	static uint32_t name(const T *a, const T *b, unsigned cmp)            \
	{                                                                     \
		uint32_t bits = 0;                                            \
		switch (cmp) {                                                \
		case CMP_EQ: case CMP_NEU: TEST_LANES(N, bits, a[l] == b[l]); break;  \
		case CMP_NE: case CMP_EQU: TEST_LANES(N, bits, (a[l] < b[l]) | (a[l] > b[l])); break; \
		case CMP_LT: case CMP_GEU: TEST_LANES(N, bits, a[l] < b[l]); break;   \
		case CMP_LE: case CMP_GTU: TEST_LANES(N, bits, a[l] <= b[l]); break;  \
		case CMP_GT: case CMP_LEU: TEST_LANES(N, bits, a[l] > b[l]); break;   \
		case CMP_GE: case CMP_LTU: TEST_LANES(N, bits, a[l] >= b[l]); break;  \
		default: TEST_LANES(N, bits, (a[l] == a[l]) & (b[l] == b[l])); break; \
		}                                                             \
		return (cmp >= CMP_EQU && cmp != CMP_NUM) ? ~bits : bits;     \
	}
/* clang-format on */

#endif
