/* run_bits.c — handlers of logic, shifts, bit fields, byte permutation: PTX ISA 9.7.1 (bit fields) and 9.7.8. */
#include "softcuda/exec/run/lanes_internal.h"

/* ---- logic and shifts ------------------------------------------------------------------------ */

/* Shift amounts are unsigned; amounts beyond the width give all zeros, or all sign bits: PTX ISA, shl, shr. */
#define M(bits, T) \
	BINARY(AND_##bits, T, T, a[l] & b[l]) \
	BINARY(OR_##bits, T, T, a[l] | b[l]) \
	BINARY(XOR_##bits, T, T, a[l] ^ b[l]) \
	UNARY(NOT_##bits, T, T, ~a[l]) \
	UNARY(CNOT_##bits, T, T, a[l] == 0) \
	SHIFT(SHL_##bits, T, b[l] < bits ? a[l] << (b[l] & (bits - 1)) : 0)
M(16, uint16_t)
M(32, uint32_t)
M(64, uint64_t)
#undef M

/* clang-format off */
SHIFT(SHR_U16, uint16_t, b[l] < 16 ? a[l] >> (b[l] & 15) : 0)
SHIFT(SHR_U32, uint32_t, b[l] < 32 ? a[l] >> (b[l] & 31) : 0)
SHIFT(SHR_U64, uint64_t, b[l] < 64 ? a[l] >> (b[l] & 63) : 0)
SHIFT(SHR_S16, int16_t, a[l] >> (b[l] < 15 ? b[l] : 15))
SHIFT(SHR_S32, int32_t, a[l] >> (b[l] < 31 ? b[l] : 31))
SHIFT(SHR_S64, int64_t, a[l] >> (b[l] < 63 ? b[l] : 63))
/* clang-format on */

/* shf shifts the 64-bit value b:a, and returns its upper (.l) or lower (.r) half. */
#define PAIR    ((uint64_t)b[l] << 32 | a[l])
#define CLAMPED (c[l] < 32 ? c[l] : 32)
TERNARY(SHF_L_CLAMP, uint32_t, uint32_t, PAIR << CLAMPED >> 32)
TERNARY(SHF_L_WRAP, uint32_t, uint32_t, PAIR << (c[l] & 31) >> 32)
TERNARY(SHF_R_CLAMP, uint32_t, uint32_t, PAIR >> CLAMPED)
TERNARY(SHF_R_WRAP, uint32_t, uint32_t, PAIR >> (c[l] & 31))

/* Apply a truth table of lop3, which has a bit for each of the eight combinations of input bits; t[k] is all ones if bit k is set. */
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, const uint32_t t[8])
{
	return (t[0] & ~a & ~b & ~c) | (t[1] & ~a & ~b & c) | (t[2] & ~a & b & ~c) | (t[3] & ~a & b & c) | (t[4] & a & ~b & ~c) |
	       (t[5] & a & ~b & c) | (t[6] & a & b & ~c) | (t[7] & a & b & c);
}

static inline void spread_table(int64_t lut, uint32_t t[8])
{
	for (unsigned k = 0; k < 8; k++)
		t[k] = (lut >> k & 1) ? UINT32_MAX : 0;
}

OP(LOP3)
{
	OPERAND(uint32_t, a);
	OPERAND(uint32_t, b);
	OPERAND(uint32_t, c);
	uint32_t t[8];
	spread_table(i->imm, t);
	MERGE_LANES(uint32_t, opptr(w, i->d), lop3(a[l], b[l], c[l], t));
	return i + 1;
}

/* lop3.BoolOp d|p: p = (d != 0) BoolOp q, where q is source e of struct insn. */
#define LOP3_BOOL(name, combined) \
	OP(name) \
	{ \
		OPERAND(uint32_t, a); \
		OPERAND(uint32_t, b); \
		OPERAND(uint32_t, c); \
		const uint32_t q = *PRED(w, i->e); \
		uint32_t t[8], x; \
		spread_table(i->imm, t); \
		TEST_LANES(32, x, lop3(a[l], b[l], c[l], t) != 0); \
		MERGE_LANES(uint32_t, opptr(w, i->d), lop3(a[l], b[l], c[l], t)); \
		set_predicate(w, i->d2, combined); \
		return i + 1; \
	}
LOP3_BOOL(LOP3_AND, x &q)
LOP3_BOOL(LOP3_OR, x | q)

/* ---- prmt: bytes of b:a picked by the nibbles of c ----------------------------------------------- */

static inline uint32_t permute(uint64_t bytes, uint32_t selector)
{
	uint32_t d = 0;
	for (unsigned k = 0; k < 4; k++) {
		const uint32_t s = selector >> 4 * k;
		uint32_t byte = (uint32_t)(bytes >> 8 * (s & 7)) & 0xff;
		if (s & 8) /* if bit 3 of the nibble is set, replicate the sign of the byte */
			byte = (byte >> 7) * 0xff;
		d |= byte << 8 * k;
	}
	return d;
}

/* The selector of each mode of prmt for each value of the low two bits of c: PTX ISA, prmt. */
static const uint16_t prmt_selectors[][4] = {
	[PRMT_F4E] = { 0x3210, 0x4321, 0x5432, 0x6543 }, [PRMT_B4E] = { 0x5670, 0x6701, 0x7012, 0x0123 },
	[PRMT_RC8] = { 0x0000, 0x1111, 0x2222, 0x3333 }, [PRMT_ECL] = { 0x3210, 0x3211, 0x3222, 0x3333 },
	[PRMT_ECR] = { 0x0000, 0x1110, 0x2210, 0x3210 }, [PRMT_RC16] = { 0x1010, 0x3232, 0x1010, 0x3232 },
};

TERNARY(PRMT, uint32_t, uint32_t, permute(PAIR, c[l]))

OP(PRMT_MODE)
{
	OPERAND(uint32_t, a);
	OPERAND(uint32_t, b);
	OPERAND(uint32_t, c);
	const uint16_t *s = prmt_selectors[i->n];
	MERGE_LANES(uint32_t, opptr(w, i->d), permute(PAIR, s[c[l] & 3]));
	return i + 1;
}

/* ---- counting and finding ----------------------------------------------------------------------- */

#define CLZ32(x) ((x) ? (uint32_t)__builtin_clz(x) : 32u)
#define CLZ64(x) ((x) ? (uint32_t)__builtin_clzll(x) : 64u)

static inline uint32_t count_ones(uint32_t x)
{
	x -= x >> 1 & 0x55555555;
	x = (x & 0x33333333) + (x >> 2 & 0x33333333);
	return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

static inline uint32_t reverse_bits(uint32_t x)
{
	x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
	x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
	x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(x);
}

UNARY(POPC_32, uint32_t, uint32_t, count_ones(a[l]))
UNARY(POPC_64, uint32_t, uint64_t, count_ones((uint32_t)a[l]) + count_ones((uint32_t)(a[l] >> 32)))
UNARY(CLZ_32, uint32_t, uint32_t, CLZ32(a[l]))
UNARY(CLZ_64, uint32_t, uint64_t, CLZ64(a[l]))
UNARY(BREV_32, uint32_t, uint32_t, reverse_bits(a[l]))
UNARY(BREV_64, uint64_t, uint64_t, (uint64_t)reverse_bits((uint32_t)a[l]) << 32 | reverse_bits((uint32_t)(a[l] >> 32)))

/* bfind: return the position of the highest bit of x that is set; all ones if x is 0.  With shiftamt, return the left shift that
 * moves this bit to the top.  The caller has complemented a negative x, as bfind does. */
static inline uint32_t find_highest_set(uint64_t x, unsigned bits, bool shiftamt)
{
	if (x == 0)
		return UINT32_MAX;
	const uint32_t position = 63 - CLZ64(x);
	return shiftamt ? bits - 1 - position : position;
}
#define FROM_SIGN(x) ((x) < 0 ? ~(x) : (x))
UNARY(BFIND_U32, uint32_t, uint32_t, find_highest_set(a[l], 32, i->flags &BFIND_SHIFTAMT))
UNARY(BFIND_S32, uint32_t, int32_t, find_highest_set((uint32_t)FROM_SIGN(a[l]), 32, i->flags &BFIND_SHIFTAMT))
UNARY(BFIND_U64, uint32_t, uint64_t, find_highest_set(a[l], 64, i->flags &BFIND_SHIFTAMT))
UNARY(BFIND_S64, uint32_t, int64_t, find_highest_set((uint64_t)FROM_SIGN(a[l]), 64, i->flags &BFIND_SHIFTAMT))

/* fns d, mask, base, offset: d is the position of the offset-th set bit at or above base (offset > 0) or at or below base (offset <
 * 0); with offset 0, it is base, if that bit is set.  d is all ones if there is no such bit. */
static uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
	if (base > 31)
		return UINT32_MAX;
	if (offset == 0)
		return (mask >> base & 1) ? base : UINT32_MAX;
	const int step = offset > 0 ? 1 : -1;
	int64_t left = offset > 0 ? (int64_t)offset : -(int64_t)offset;
	for (int k = (int)base; k >= 0 && k < 32; k += step)
		if ((mask >> k & 1) && --left == 0)
			return (uint32_t)k;
	return UINT32_MAX;
}
TERNARY(FNS, uint32_t, uint32_t, find_nth_set(a[l], b[l], (int32_t)c[l]))

/* ---- bit fields: position and length are .u32 ---------------------------------------------------------
 *
 * PTX ISA, bfe and bfi: position and length are in 0..255; the effect of greater values is not specified.  Observed on sm_90: the 32-bit
 * instructions use the low 8 bits, the 64-bit ones (compiled to shifts) all 32 bits. */
#define LOW_BYTE(x) ((x) & 0xff)
#define WHOLE(x)    (x)

/* bfe: bits of the field above the top of x are the sign bit (signed) or zero.  x is sign-extended, so that shifts produce them. */
static inline uint64_t extract_signed_field(int64_t x, uint32_t at, uint32_t length)
{
	const int64_t field = x >> (at < 63 ? at : 63);
	const unsigned above = length < 64 ? (64 - length) & 63 : 0;
	return length ? (uint64_t)((int64_t)((uint64_t)field << above) >> above) : 0;
}

static inline uint64_t extract_unsigned_field(uint64_t x, uint32_t at, uint32_t length)
{
	const uint64_t field = at < 64 ? x >> (at & 63) : 0;
	const unsigned above = length < 64 ? (64 - length) & 63 : 0;
	return length ? field << above >> above : 0;
}

#define BFE(name, T, extract, limit) \
	OP(name) \
	{ \
		OPERAND(T, a); \
		OPERAND(uint32_t, b); \
		OPERAND(uint32_t, c); \
		MERGE_LANES(T, opptr(w, i->d), extract(a[l], limit(b[l]), limit(c[l]))); \
		return i + 1; \
	}
BFE(BFE_U32, uint32_t, extract_unsigned_field, LOW_BYTE)
BFE(BFE_S32, int32_t, extract_signed_field, LOW_BYTE)
BFE(BFE_U64, uint64_t, extract_unsigned_field, WHOLE)
BFE(BFE_S64, int64_t, extract_signed_field, WHOLE)

/* bfi d, a, b, c, e: the low e bits of a replace bits of b from position c. */
static inline uint64_t insert_field(uint64_t field, uint64_t into, uint32_t at, uint32_t length)
{
	const uint64_t ones_of = length < 64 ? ((uint64_t)1 << (length & 63)) - 1 : UINT64_MAX;
	const uint64_t mask = at < 64 ? ones_of << (at & 63) : 0;
	return (into & ~mask) | (field << (at & 63) & mask);
}

#define BFI(name, T, limit) \
	OP(name) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		OPERAND(uint32_t, c); \
		OPERAND(uint32_t, e); \
		MERGE_LANES(T, opptr(w, i->d), insert_field(a[l], b[l], limit(c[l]), limit(e[l]))); \
		return i + 1; \
	}
BFI(BFI_32, uint32_t, LOW_BYTE)
BFI(BFI_64, uint64_t, WHOLE)

/* bmsk d, position, length: d has `length` ones, the lowest at `position`.  .clamp: 0 if position > 31; .wrap: both modulo 32. */
static inline uint32_t bit_mask(uint32_t at, uint32_t length)
{
	if (at > 31 || length == 0)
		return 0;
	return (length > 31 ? UINT32_MAX : ((uint32_t)1 << length) - 1) << at;
}
BINARY(BMSK_CLAMP, uint32_t, uint32_t, bit_mask(a[l], b[l]))
BINARY(BMSK_WRAP, uint32_t, uint32_t, bit_mask(a[l] & 31, b[l] & 31))

/* szext d, a, width: keeps the low `width` bits and sign- or zero-extends them. */
static inline uint32_t extend_field(uint32_t x, uint32_t width, bool wrap, bool is_signed)
{
	const uint32_t n = wrap ? width & 31 : width;
	if (n == 0)
		return 0;
	if (n > 31)
		return x;
	return is_signed ? (uint32_t)((int32_t)(x << (32 - n)) >> (32 - n)) : x << (32 - n) >> (32 - n);
}
BINARY(SZEXT_U32, uint32_t, uint32_t, extend_field(a[l], b[l], i->flags &BMSK_WRAPS, false))
BINARY(SZEXT_S32, uint32_t, uint32_t, extend_field(a[l], b[l], i->flags &BMSK_WRAPS, true))

/* ---- dot products -------------------------------------------------------------------------------- */

static inline int32_t byte_of(uint32_t x, unsigned k, bool is_signed)
{
	const uint8_t b = (uint8_t)(x >> 8 * k);
	return is_signed ? (int8_t)b : b;
}

static inline int32_t half_of(uint32_t x, unsigned k, bool is_signed)
{
	const uint16_t h = (uint16_t)(x >> 16 * k);
	return is_signed ? (int16_t)h : h;
}

static inline uint32_t dot4(uint32_t a, uint32_t b, unsigned flags)
{
	int32_t sum = 0;
	for (unsigned k = 0; k < 4; k++)
		sum += byte_of(a, k, flags & DP_A_SIGNED) * byte_of(b, k, flags & DP_B_SIGNED);
	return (uint32_t)sum;
}

static inline uint32_t dot2(uint32_t a, uint32_t b, unsigned flags)
{
	int32_t sum = 0; /* cannot overflow: at most 2 * 65535 * 255 */
	for (unsigned k = 0; k < 2; k++)
		sum += half_of(a, k, flags & DP_A_SIGNED) * byte_of(b, k + ((flags & DP_HI) ? 2 : 0), flags & DP_B_SIGNED);
	return (uint32_t)sum;
}

TERNARY(DP4A, uint32_t, uint32_t, dot4(a[l], b[l], i->flags) + c[l])
TERNARY(DP2A, uint32_t, uint32_t, dot2(a[l], b[l], i->flags) + c[l])
