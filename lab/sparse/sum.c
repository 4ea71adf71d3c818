/* sum.c — sums blocks on the CPU.  Compiled with -O3, so that gcc vectorises the loops. */
#include "lab/sparse/sum.h"

#include <string.h>

/* ---- f16 and bf16 --------------------------------------------------------------------------------------------
 *
 * An f32 operation, rounded to 16 bits, has the same result as a correctly rounded 16-bit operation: the f32 significand has at
 * least twice as many bits plus two as either 16-bit type, so that rounding twice, first to f32, gives the same result as rounding once. */

static float float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

static uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return bits;
}

static float f32_of_bf16(uint16_t x)
{
	return float_of((uint32_t)x << 16);
}

/* Round to nearest, ties to even; a NaN stays a NaN. */
static uint16_t bf16_of_f32(float f)
{
	const uint32_t bits = bits_of(f), rounded = bits + 0x7fff + (bits >> 16 & 1);

	return (uint16_t)(f != f ? bits >> 16 | 0x40 : rounded >> 16);
}

/* The exponent and the mantissa of an f16, shifted to the positions that they have in an f32, give its value times 2^-112.
 * Infinities and NaNs have the exponent 31, which becomes 31 + 112. */
static float f32_of_f16(uint16_t x)
{
	const uint32_t magnitude = (uint32_t)(x & 0x7fff) << 13;
	const uint32_t bits = (x & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000 : bits_of(float_of(magnitude) * 0x1p112f);

	return float_of(bits | (uint32_t)(x & 0x8000) << 16);
}

/* To round to a subnormal f16, add 0.5: the last mantissa bit of the f32 sum is 2^-24, like that of a subnormal f16. */
static uint16_t f16_of_f32(float f)
{
	const uint32_t magnitude = bits_of(f) & 0x7fffffff, sign = bits_of(f) >> 16 & 0x8000;
	const uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
	const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000;
	uint32_t half = magnitude < 0x38800000 ? subnormal : normal;

	half = magnitude >= 0x477ff000 ? 0x7c00 : half; /* values of 65520 and above become infinity */
	half = magnitude > 0x7f800000 ? 0x7e00 : half;
	return (uint16_t)(sign | half);
}

/* ---- sums ----------------------------------------------------------------------------------------------------- */

static uint16_t add_f16(uint16_t a, uint16_t b)
{
	return f16_of_f32(f32_of_f16(a) + f32_of_f16(b));
}

static uint16_t add_bf16(uint16_t a, uint16_t b)
{
	return bf16_of_f32(f32_of_bf16(a) + f32_of_bf16(b));
}

#define DIVIDE_F16(x, n)  f16_of_f32(f32_of_f16(x) / (float)(n))
#define DIVIDE_BF16(x, n) bf16_of_f32(f32_of_bf16(x) / (float)(n))
#define DIVIDE_I32(x, n)  (uint32_t)((int32_t)(x) / (int32_t)(n))
#define DIVIDE(T, x, n)   (T)((x) / (T)(n))

/* Define the functions add_name() and divide_name() for blocks of type T: out += block, or out += 0 if block is NULL; out /= divisor. */
#define SUM_OF(name, T, PLUS, DIVIDED) \
	static void add_##name(T *restrict out, const T *restrict block, size_t n) \
	{ \
		for (size_t i = 0; block && i < n; i++) \
			out[i] = PLUS(out[i], block[i]); \
		for (size_t i = 0; !block && i < n; i++) \
			out[i] = PLUS(out[i], (T)0); \
	} \
	static void divide_##name(T *out, size_t n, unsigned divisor) \
	{ \
		for (size_t i = 0; i < n; i++) \
			out[i] = DIVIDED(out[i], divisor); \
	}

#define PLAIN_PLUS(a, b)  ((a) + (b))
#define U8_PLUS(a, b)     ((uint8_t)((a) + (b)))
#define DIVIDED_F32(x, n) DIVIDE(float, x, n)
#define DIVIDED_F64(x, n) DIVIDE(double, x, n)
#define DIVIDED_U8(x, n)  (uint8_t)((x) / (n))

SUM_OF(halves, uint16_t, add_f16, DIVIDE_F16)
SUM_OF(bf16s, uint16_t, add_bf16, DIVIDE_BF16)
SUM_OF(floats, float, PLAIN_PLUS, DIVIDED_F32)
SUM_OF(doubles, double, PLAIN_PLUS, DIVIDED_F64)
SUM_OF(words, uint32_t, PLAIN_PLUS, DIVIDE_I32)
SUM_OF(bytes, uint8_t, U8_PLUS, DIVIDED_U8)

static void add(void *out, const void *block, size_t n, gpul_comm_dtype dtype)
{
	switch (dtype) {
	case GPUL_COMM_F16:
		add_halves(out, block, n);
		break;
	case GPUL_COMM_BF16:
		add_bf16s(out, block, n);
		break;
	case GPUL_COMM_F32:
		add_floats(out, block, n);
		break;
	case GPUL_COMM_F64:
		add_doubles(out, block, n);
		break;
	case GPUL_COMM_I32:
		add_words(out, block, n);
		break;
	default:
		add_bytes(out, block, n);
	}
}

static void divide(void *out, size_t n, gpul_comm_dtype dtype, unsigned divisor)
{
	switch (dtype) {
	case GPUL_COMM_F16:
		divide_halves(out, n, divisor);
		break;
	case GPUL_COMM_BF16:
		divide_bf16s(out, n, divisor);
		break;
	case GPUL_COMM_F32:
		divide_floats(out, n, divisor);
		break;
	case GPUL_COMM_F64:
		divide_doubles(out, n, divisor);
		break;
	case GPUL_COMM_I32:
		divide_words(out, n, divisor);
		break;
	default:
		divide_bytes(out, n, divisor);
	}
}

void gpul_sparse_sum(void *out, const void *const *blocks, unsigned n_ranks, size_t n, gpul_comm_dtype dtype, gpul_comm_op op)
{
	unsigned n_added = 0;

	for (unsigned r = 0; r < n_ranks; r++)
		if (blocks[r] && n_added++ == 0)
			memcpy(out, blocks[r], n * gpul_comm_dtype_bytes(dtype));
		else if (blocks[r])
			add(out, blocks[r], n, dtype);
	if (n_added < n_ranks)
		add(out, NULL, n, dtype);
	if (op == GPUL_COMM_AVG)
		divide(out, n, dtype, n_ranks);
}
