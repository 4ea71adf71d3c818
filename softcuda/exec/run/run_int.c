/* run_int.c — handlers of integer arithmetic: PTX ISA 9.7.1, except instructions with carry (run_carry.c) and on bits (run_bits.c).
 *
 * Sums and products wrap, so they are computed in unsigned types.  16-bit operands are converted to uint32_t, because C promotes them to
 * int, in which a product can overflow. */
#include "softcuda/exec/run/lanes_internal.h"

#define BY_SIZE(M) M(16, uint16_t, uint32_t) M(32, uint32_t, uint32_t) M(64, uint64_t, uint64_t)

#define M(bits, T, W) \
	BINARY(ADD_##bits, T, T, (W)a[l] + b[l]) \
	BINARY(SUB_##bits, T, T, (W)a[l] - b[l]) \
	BINARY(MUL_##bits, T, T, (W)a[l] * b[l]) \
	TERNARY(MAD_##bits, T, T, (W)a[l] * b[l] + c[l]) \
	UNARY(NEG_##bits, T, T, (W)0 - a[l]) \
	UNARY(ABS_##bits, T, T, a[l] >> (bits - 1) ? (W)0 - a[l] : a[l])
BY_SIZE(M)
#undef M

/* A type of twice the width, for the upper half of 64-bit products. */
__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;
#define HI(W, bits) ((W)a[l] * (W)b[l] >> (bits))

/* The PTX ISA does not define x / 0; on GPUs the result is all ones, and x % 0 is x.  The least integer / -1 wraps. */
#define UDIV(T, x, y)     ((y) == 0 ? (T) - 1 : (T)((x) / ((y) + ((y) == 0))))
#define UREM(T, x, y)     ((y) == 0 ? (x) : (T)((x) % ((y) + ((y) == 0))))
#define SDIV(T, U, x, y)  ((y) == 0 ? (T) - 1 : (y) == -1 ? (T)((U)0 - (U)(x)) : (T)((x) / ((y) + ((y) == 0))))
#define SREM(T, x, y)     ((y) == 0 ? (x) : (y) == -1 ? (T)0 : (T)((x) % ((y) + ((y) == 0))))
#define DISTANCE(U, x, y) ((x) < (y) ? (U)(y) - (U)(x) : (U)(x) - (U)(y))

#define UNSIGNED(M) M(U16, uint16_t, uint32_t, 16) M(U32, uint32_t, uint64_t, 32) M(U64, uint64_t, uint128, 64)
#define SIGNED(M)   M(S16, int16_t, uint16_t, int32_t, 16) M(S32, int32_t, uint32_t, int64_t, 32) M(S64, int64_t, uint64_t, int128, 64)

#define M(name, T, W, bits) \
	BINARY(MUL_HI_##name, T, T, HI(W, bits)) \
	TERNARY(MAD_HI_##name, T, T, HI(W, bits) + c[l]) \
	BINARY(MIN_##name, T, T, a[l] < b[l] ? a[l] : b[l]) \
	BINARY(MAX_##name, T, T, a[l] > b[l] ? a[l] : b[l]) \
	BINARY(DIV_##name, T, T, UDIV(T, a[l], b[l])) \
	BINARY(REM_##name, T, T, UREM(T, a[l], b[l])) \
	TERNARY(SAD_##name, T, T, DISTANCE(T, a[l], b[l]) + c[l])
UNSIGNED(M)
#undef M

#define M(name, T, U, W, bits) \
	BINARY(MUL_HI_##name, T, T, HI(W, bits)) \
	TERNARY(MAD_HI_##name, T, T, (U)HI(W, bits) + (U)c[l]) \
	BINARY(MIN_##name, T, T, a[l] < b[l] ? a[l] : b[l]) \
	BINARY(MAX_##name, T, T, a[l] > b[l] ? a[l] : b[l]) \
	BINARY(DIV_##name, T, T, SDIV(T, U, a[l], b[l])) \
	BINARY(REM_##name, T, T, SREM(T, a[l], b[l])) \
	TERNARY(SAD_##name, T, T, DISTANCE(U, a[l], b[l]) + (U)c[l])
SIGNED(M)
#undef M

static inline int32_t saturate_s32(int64_t x)
{
	return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

BINARY(ADD_SAT_S32, int32_t, int32_t, saturate_s32((int64_t)a[l] + b[l]))
BINARY(SUB_SAT_S32, int32_t, int32_t, saturate_s32((int64_t)a[l] - b[l]))
TERNARY(MAD_HI_SAT_S32, int32_t, int32_t, saturate_s32(HI(int64_t, 32) + c[l]))

BINARY(MUL_WIDE_U16, uint32_t, uint16_t, (uint32_t)a[l] * b[l])
BINARY(MUL_WIDE_S16, int32_t, int16_t, (int32_t)a[l] * b[l])
BINARY(MUL_WIDE_U32, uint64_t, uint32_t, (uint64_t)a[l] * b[l])
BINARY(MUL_WIDE_S32, int64_t, int32_t, (int64_t)a[l] * b[l])
WIDE_MAD(MAD_WIDE_U16, uint32_t, uint16_t, (uint32_t)a[l] * b[l] + c[l])
WIDE_MAD(MAD_WIDE_S16, uint32_t, int16_t, (uint32_t)((int32_t)a[l] * b[l]) + c[l])
WIDE_MAD(MAD_WIDE_U32, uint64_t, uint32_t, (uint64_t)a[l] * b[l] + c[l])
WIDE_MAD(MAD_WIDE_S32, uint64_t, int32_t, (uint64_t)((int64_t)a[l] * b[l]) + c[l])

/* mul24 multiplies the low 24 bits; .lo is bits 0-31 of the 48-bit product, .hi bits 16-47. */
static inline uint64_t product_u24(uint32_t x, uint32_t y)
{
	return (uint64_t)(x & 0xffffff) * (y & 0xffffff);
}

static inline int64_t product_s24(uint32_t x, uint32_t y)
{
	return (int64_t)((int32_t)(x << 8) >> 8) * ((int32_t)(y << 8) >> 8);
}

BINARY(MUL24_LO_U32, uint32_t, uint32_t, product_u24(a[l], b[l]))
BINARY(MUL24_LO_S32, uint32_t, uint32_t, product_s24(a[l], b[l]))
BINARY(MUL24_HI_U32, uint32_t, uint32_t, product_u24(a[l], b[l]) >> 16)
BINARY(MUL24_HI_S32, uint32_t, uint32_t, product_s24(a[l], b[l]) >> 16)
TERNARY(MAD24_LO_U32, uint32_t, uint32_t, product_u24(a[l], b[l]) + c[l])
TERNARY(MAD24_LO_S32, uint32_t, uint32_t, (uint64_t)product_s24(a[l], b[l]) + c[l])
TERNARY(MAD24_HI_U32, uint32_t, uint32_t, (product_u24(a[l], b[l]) >> 16) + c[l])
TERNARY(MAD24_HI_S32, uint32_t, uint32_t, (uint64_t)(product_s24(a[l], b[l]) >> 16) + c[l])
TERNARY(MAD24_HI_SAT_S32, int32_t, uint32_t, saturate_s32((int64_t)(int32_t)(product_s24(a[l], b[l]) >> 16) + (int32_t)c[l]))

/* .relu replaces a negative result by 0. */
BINARY(MIN_RELU_S32, int32_t, int32_t, (a[l] < b[l] ? a[l] : b[l]) < 0 ? 0 : a[l] < b[l] ? a[l] : b[l])
BINARY(MAX_RELU_S32, int32_t, int32_t, (a[l] > b[l] ? a[l] : b[l]) < 0 ? 0 : a[l] > b[l] ? a[l] : b[l])

/* Define a handler of u16x2 or s16x2: it computes 64 elements of 16 bits, and merges them as 32 pairs. */
#define PAIRS(name, T, value) \
	OP(name) \
	{ \
		OPERAND(T, a); \
		OPERAND(T, b); \
		_Alignas(64) T t[2 * LANES]; \
		for (unsigned l = 0; l < 2 * LANES; l++) \
			t[l] = (T)(value); \
		merge32(w->mask, opptr(w, i->d), (const uint32_t *)(const void *)t); \
		return i + 1; \
	}
#define RELU(x) ((x) < 0 ? 0 : (x))
PAIRS(ADD_16X2, uint16_t, a[l] + b[l])
PAIRS(MIN_U16X2, uint16_t, a[l] < b[l] ? a[l] : b[l])
PAIRS(MAX_U16X2, uint16_t, a[l] > b[l] ? a[l] : b[l])
PAIRS(MIN_S16X2, int16_t, a[l] < b[l] ? a[l] : b[l])
PAIRS(MAX_S16X2, int16_t, a[l] > b[l] ? a[l] : b[l])
PAIRS(MIN_RELU_S16X2, int16_t, RELU(a[l] < b[l] ? a[l] : b[l]))
PAIRS(MAX_RELU_S16X2, int16_t, RELU(a[l] > b[l] ? a[l] : b[l]))
