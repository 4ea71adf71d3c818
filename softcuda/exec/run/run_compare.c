/* run_compare.c — handlers of setp, set, testp: PTX ISA 9.7.5, 9.7.6, 9.7.3.1.
 *
 * SETP_LT_S32 and similar handlers are for setp without modifiers.  SETP_ANY, which reads the comparison from insn->n, is for setp
 * with a combining predicate, p|q, .ftz or an unordered comparison; SET_ANY is for set. */
#include "softcuda/exec/run/float_internal.h"
#include "softcuda/exec/run/lanes_internal.h"

#define PLAIN(type, T, N, cmp, C) \
	OP(SETP_##cmp##_##type) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		uint32_t bits; \
		TEST_LANES(N, bits, a[l] C b[l]); \
		set_predicate(w, i->d, bits); \
		return i + 1; \
	}
#define PLAINS(type, T, N) \
	PLAIN(type, T, N, EQ, ==) \
	PLAIN(type, T, N, NE, !=) PLAIN(type, T, N, LT, <) PLAIN(type, T, N, LE, <=) PLAIN(type, T, N, GT, >) PLAIN(type, T, N, GE, >=)

/* clang-format off */
PLAINS(U16, uint16_t, 16) PLAINS(S16, int16_t, 16)
PLAINS(U32, uint32_t, 32) PLAINS(S32, int32_t, 32)
PLAINS(U64, uint64_t, 64) PLAINS(S64, int64_t, 64)
/* clang-format on */

/* In PTX, ne of floats is false if an operand is NaN; in C, != is true. */
#define FLOATS(type, T, N) \
	PLAIN(type, T, N, EQ, ==) \
	PLAIN(type, T, N, LT, <) PLAIN(type, T, N, LE, <=) PLAIN(type, T, N, GT, >) PLAIN(type, T, N, GE, >=) OP(SETP_NE_##type) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		uint32_t bits; \
		TEST_LANES(N, bits, (a[l] < b[l]) | (a[l] > b[l])); \
		set_predicate(w, i->d, bits); \
		return i + 1; \
	}
	FLOATS(F32, float, 32) FLOATS(F64, double, 64)

	/* ---- any comparison ---------------------------------------------------------------------------- */

	COMPARE(compare_u16, uint16_t, 16) COMPARE(compare_s16, int16_t, 16) COMPARE(compare_u32, uint32_t, 32)
		COMPARE(compare_s32, int32_t, 32) COMPARE(compare_u64, uint64_t, 64) COMPARE(compare_s64, int64_t, 64)
			COMPARE(compare_f32, float, 32) COMPARE(compare_f64, double, 64)

				static uint32_t compare_16(struct warp *w, const struct insn *i)
{
	return (i->flags & COMPARE_SIGNED) ? compare_s16(S16(w, i->a), S16(w, i->b), i->n) : compare_u16(U16(w, i->a), U16(w, i->b), i->n);
}

static uint32_t compare_32(struct warp *w, const struct insn *i)
{
	if (!(i->flags & COMPARE_FLOAT))
		return (i->flags & COMPARE_SIGNED) ? compare_s32(S32(w, i->a), S32(w, i->b), i->n)
						   : compare_u32(U32(w, i->a), U32(w, i->b), i->n);
	const float *a = F32(w, i->a), *b = F32(w, i->b);
	if (!(i->flags & FLAG_FTZ))
		return compare_f32(a, b, i->n);
	_Alignas(64) float x[LANES], y[LANES];
	for (unsigned l = 0; l < LANES; l++) {
		x[l] = flush(a[l]);
		y[l] = flush(b[l]);
	}
	return compare_f32(x, y, i->n);
}

static uint32_t compare_64(struct warp *w, const struct insn *i)
{
	if (i->flags & COMPARE_FLOAT)
		return compare_f64(F64(w, i->a), F64(w, i->b), i->n);
	return (i->flags & COMPARE_SIGNED) ? compare_s64(S64(w, i->a), S64(w, i->b), i->n) : compare_u64(U64(w, i->a), U64(w, i->b), i->n);
}

/* Store both results of setp.lt.and p|q, a, b, c: p = (a < b) and c, q = !(a < b) and c. */
static inline void set_both(struct warp *w, const struct insn *i, uint32_t bits)
{
	const uint32_t p = combine(w, i, bits), q = combine(w, i, ~bits);
	set_predicate(w, i->d, p);
	if (i->flags & COMPARE_HAS_Q)
		set_predicate(w, i->d2, q);
}

/* Store the result of set d, a, b: 32 ones, or the float 1.0, if the comparison is true; else 0. */
static inline void set_word(struct warp *w, const struct insn *i, uint32_t bits)
{
	const uint32_t yes = (i->flags & SET_FLOAT) ? 0x3f800000 : UINT32_MAX;
	const uint32_t p = combine(w, i, bits);
	MERGE_LANES(uint32_t, opptr(w, i->d), (p >> l & 1) ? yes : 0);
}

#define ANY(bits) \
	OP(SETP_ANY_##bits) \
	{ \
		set_both(w, i, compare_##bits(w, i)); \
		return i + 1; \
	} \
	OP(SET_ANY_##bits) \
	{ \
		set_word(w, i, compare_##bits(w, i)); \
		return i + 1; \
	}
ANY(16)
ANY(32)
ANY(64)

/* ---- testp -------------------------------------------------------------------------------------- */

/* Returns true if the number has the property.  magnitude: its bits without sign; infinity, least: bits of infinity and of the least
 * normal. */
static inline bool has_property(uint64_t magnitude, uint64_t infinity, uint64_t least, unsigned property)
{
	switch (property) {
	case TEST_FINITE:
		return magnitude < infinity;
	case TEST_INFINITE:
		return magnitude == infinity;
	case TEST_NUMBER:
		return magnitude <= infinity;
	case TEST_NOTANUMBER:
		return magnitude > infinity;
	case TEST_NORMAL:
		return (magnitude >= least || magnitude == 0) && magnitude < infinity; /* testp.normal, which is also true for 0 */
	default:
		return magnitude < least && magnitude != 0;
	}
}

OP(TESTP_F32)
{
	OPERAND(uint32_t, a);
	uint32_t bits = 0;
	for (unsigned l = 0; l < LANES; l++)
		bits |= (uint32_t)has_property(a[l] & INT32_MAX, 0x7f800000, 0x00800000, i->n) << l;
	set_predicate(w, i->d, bits);
	return i + 1;
}

OP(TESTP_F64)
{
	OPERAND(uint64_t, a);
	uint32_t bits = 0;
	for (unsigned l = 0; l < LANES; l++)
		bits |= (uint32_t)has_property(a[l] & INT64_MAX, 0x7ff0000000000000, 0x0010000000000000, i->n) << l;
	set_predicate(w, i->d, bits);
	return i + 1;
}
