/* mma_sum_internal.h — sums of products as the tensor cores of sm_90 calculate them, for f16, bf16, tf32 and f8.
 *
 * `block` products and the accumulator are added in one step, whose result is rounded once:
 *
 *     e          the largest exponent of a product (exponent of x + exponent of y) or of the accumulator
 *     products   computed exactly, then truncated towards zero to a multiple of 2^(e - fraction_bits)
 *     sum        of these values, computed exactly; then rounded to f32 towards zero, or to f16 to nearest even
 *
 * The exponent of a subnormal number is that of the format's least normal number; the significands are not normalised
 * before the alignment.  A NaN is 0x7fffffff or 0x7fff.
 * A sum of zero is +0.  Measured on an H200: no difference in 160,000 sets of operands (tests/softcuda/api/mma).
 * Source: Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores (2021); Khattak, Mikaitis: Accurate
 * models of NVIDIA tensor cores (2025); block and fraction_bits of sm_90: 16 products of 16 bits, 25. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_MMA_SUM_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_MMA_SUM_INTERNAL_H

#include "softcuda/exec/matrix_internal.h"
#include "softcuda/exec/run/half_internal.h"

enum {
	NO_EXPONENT = -10000,         /* exponent of an element that is zero */
	NOT_STORED = NO_EXPONENT - 1, /* exponent of an element that is zero because mma.sp does not store it */
	ALL_ZERO = NO_EXPONENT / 2,   /* if the largest exponent of the products is below this, all products are zero */
	NARROW_EXPONENT = 50,         /* up to this exponent, a float can hold the product of elements and scale */
};

struct operands {
	float x[MAX_K][TILE_ROWS], y[MAX_K][TILE_COLUMNS];
	int32_t xe[MAX_K][TILE_ROWS], ye[MAX_K][TILE_COLUMNS];
	bool wide;    /* the exponent of an element is beyond NARROW_EXPONENT */
	bool special; /* x or y has an infinite or NaN element; the exponent of such an element is NO_EXPONENT */
};

/* ---- conversion of operands to float ------------------------------------------------------------ */

static inline int least_exponent(unsigned type)
{
	return type == MATRIX_BF16 || type == MATRIX_TF32 || type == MATRIX_F32 ? -126 : -14;
}

static inline void widen_e4m3(float *v, const uint8_t *b, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		const uint32_t magnitude = b[k] & 0x7f, sign = (uint32_t)(b[k] & 0x80) << 24;
		const uint32_t scaled = bits_of(float_of(magnitude << 20) * 0x1p120f);

		v[k] = float_of(sign | (magnitude == 0x7f ? 0x7fffffff : scaled));
	}
}

static inline void widen_e5m2(float *v, const uint8_t *b, unsigned n)
{
	uint16_t half[4 * LANES];

	for (unsigned k = 0; k < n; k++)
		half[k] = (uint16_t)(b[k] << 8);
	widen_f16(v, half, n);
}

/* Convert the elements in n words to float; n is a multiple of 4, and at most LANES. */
static inline void widen_words(const uint32_t *words, unsigned n, unsigned type, float *v)
{
	switch (type) {
	case MATRIX_F16:
		widen_f16(v, (const uint16_t *)words, 2 * n);
		break;
	case MATRIX_BF16:
		widen_bf16(v, (const uint16_t *)words, 2 * n);
		break;
	case MATRIX_E4M3:
		widen_e4m3(v, (const uint8_t *)words, 4 * n);
		break;
	case MATRIX_E5M2:
		widen_e5m2(v, (const uint8_t *)words, 4 * n);
		break;
	default:
		for (unsigned k = 0; k < n; k++)
			v[k] = float_of(words[k] & 0xffffe000);
	}
}

static inline void find_exponents(const float *v, int32_t *e, unsigned n, int least, struct operands *o)
{
	uint32_t special = 0, wide = 0;

	for (unsigned k = 0; k < n; k++) {
		const int32_t field = (int32_t)(bits_of(v[k]) >> 23 & 0xff);
		const int32_t exponent = field - 127 > least ? field - 127 : least;

		special |= (uint32_t)(field == 0xff);
		wide |= (uint32_t)(v[k] != 0 && (exponent > NARROW_EXPONENT || exponent < -NARROW_EXPONENT));
		e[k] = v[k] == 0 || field == 0xff ? NO_EXPONENT : exponent;
	}
	o->special |= special;
	o->wide |= wide;
}

/* ---- the sum of a block of products ------------------------------------------------------------------------------ */

/* Round to float towards zero.  This is also correct for subnormal results, which have fewer bits. */
static inline float towards_zero(double x)
{
	const float r = (float)x;
	const float most = float_of((bits_of64(x) >> 32 & 0x80000000) | 0x7f800000);
	const float inwards = float_of(bits_of(r) - ((double)fabsf(r) > fabs(x)));

	return fabs(x) >= 0x1p128 ? most : inwards;
}

/* Like towards_zero(), but sets the last bit if the result is not exact (round to odd), so that rounding it again to f16 is correct. */
static inline float to_odd(double x)
{
	const float r = towards_zero(x);

	return float_of(bits_of(r) | (uint32_t)((double)r != x && fabs(x) < 0x1p128));
}

static inline double power_of_two(int e)
{
	return double_of((uint64_t)(1023 + e) << 52);
}

static inline float power_of_two_narrow(int e)
{
	return float_of((uint32_t)(127 + e) << 23);
}

/* Define a function that adds n products of each row with one column of y to acc, and stores the sums as double.  least: the least
 * exponent that acc can have; fraction: fraction_bits; real: a type in which the product of two elements and the scale is exact;
 * lowest: the lowest exponent for which the scale is finite. */
#define SUM_BLOCK(name, real, power, lowest) \
	static inline void name(const struct operands *o, unsigned from, unsigned n, unsigned column, int least, int fraction, \
				const float acc[TILE_ROWS], double sum[TILE_ROWS]) \
	{ \
		int32_t top[TILE_ROWS], s[2][TILE_ROWS] = { { 0 } }; \
		real scale[TILE_ROWS]; \
		for (unsigned r = 0; r < TILE_ROWS; r++) \
			top[r] = NO_EXPONENT; \
		for (unsigned k = from; k < from + n; k++) \
			for (unsigned r = 0; r < TILE_ROWS; r++) { \
				const int32_t e = o->xe[k][r] + o->ye[k][column]; \
				top[r] = e > top[r] ? e : top[r]; \
			} \
		for (unsigned r = 0; r < TILE_ROWS; r++) { \
			const int32_t field = (int32_t)(bits_of(acc[r]) >> 23 & 0xff) - 127; \
			const int32_t e = acc[r] == 0 ? NO_EXPONENT : field > least ? field : least; \
			const int32_t most = e > top[r] ? e : top[r]; \
			scale[r] = power(fraction - (most > (lowest) ? most : (lowest))); \
			sum[r] = power_of_two((most > (lowest) ? most : (lowest)) - fraction); \
		} \
		for (unsigned k = 0; k < n; k++) \
			for (unsigned r = 0; r < TILE_ROWS; r++) \
				s[k % 2][r] += (int32_t)((real)o->x[from + k][r] * (real)o->y[from + k][column] * scale[r]); \
		for (unsigned r = 0; r < TILE_ROWS; r++) { \
			const double exact = (double)s[0][r] + (double)s[1][r] + (double)(int32_t)((real)acc[r] * scale[r]); \
			sum[r] = top[r] < ALL_ZERO ? (double)acc[r] + 0 : exact * sum[r]; \
		} \
	}
SUM_BLOCK(sum_block, float, power_of_two_narrow, -2 * NARROW_EXPONENT)
SUM_BLOCK(sum_block_wide, double, power_of_two, -300)

static inline void add_block(const struct operands *o, const struct mma_sum *m, bool half, unsigned from, unsigned column,
			     float acc[TILE_ROWS])
{
	double sum[TILE_ROWS];
	float finite[TILE_ROWS], r[TILE_ROWS];
	uint16_t h[TILE_ROWS];

	for (unsigned k = 0; k < TILE_ROWS; k++)
		finite[k] = fabsf(acc[k]) < INFINITY ? acc[k] : 0;
	(o->wide ? sum_block_wide : sum_block)(o, from, m->block, column, half ? -14 : -126, m->fraction_bits, finite, sum);
	for (unsigned k = 0; k < TILE_ROWS; k++)
		r[k] = half              ? to_odd(sum[k])
		       : m->short_result ? float_of(bits_of(towards_zero(sum[k])) & 0xfffffc00)
					 : towards_zero(sum[k]);
	if (half) {
		narrow_f16(h, r, TILE_ROWS);
		widen_f16(r, h, TILE_ROWS);
	}
	for (unsigned k = 0; k < TILE_ROWS; k++) /* a sum of zero is +0, even if it was negative before the rounding */
		acc[k] = fabsf(acc[k]) < INFINITY ? (r[k] == 0 ? 0 : r[k]) : acc[k] != acc[k] ? float_of(0x7fffffff) : acc[k];
}

/* Return NaN or infinity if the accumulator c or one of n products, from k = `from` on, makes the sum NaN or infinite; else `sum`. */
static inline float special_sum(const struct operands *o, unsigned from, unsigned n, unsigned row, unsigned column, float c, float sum)
{
	bool nan = c != c, up = c == INFINITY, down = c == -INFINITY;

	for (unsigned k = from; k < from + n; k++) {
		if (o->xe[k][row] == NOT_STORED)
			continue;
		const float product = o->x[k][row] * o->y[k][column];
		const bool infinite = fabsf(o->x[k][row]) == INFINITY || fabsf(o->y[k][column]) == INFINITY;

		nan |= product != product;
		up |= infinite && product > 0;
		down |= infinite && product < 0;
	}
	return nan || (up && down) ? float_of(0x7fffffff) : up ? INFINITY : down ? -INFINITY : sum;
}

/* Replace infinite and NaN elements by zero: the sum is first computed without them, and special_sum() takes them into account later. */
static inline void hide_specials(struct operands *o, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		for (unsigned r = 0; r < TILE_ROWS; r++)
			o->x[k][r] = fabsf(o->x[k][r]) < INFINITY ? o->x[k][r] : 0;
		for (unsigned c = 0; c < TILE_COLUMNS; c++)
			o->y[k][c] = fabsf(o->y[k][c]) < INFINITY ? o->y[k][c] : 0;
	}
}

/* Add the products of n_k elements to d[column][row], which contains C when this is called. */
static inline void sum_tile(struct operands *o, const struct mma_sum *m, bool half, unsigned n_k, float d[TILE_COLUMNS][TILE_ROWS])
{
	struct operands all;
	float c[TILE_ROWS];

	if (o->special) {
		all = *o;
		hide_specials(o, n_k);
	}
	for (unsigned column = 0; column < TILE_COLUMNS; column++)
		for (unsigned k = 0; k < n_k; k += m->block) {
			memcpy(c, d[column], sizeof c);
			add_block(o, m, half, k, column, d[column]);
			for (unsigned r = 0; o->special && r < TILE_ROWS; r++)
				d[column][r] = special_sum(&all, k, m->block, r, column, c[r], d[column][r]);
		}
	if (o->special)
		*o = all;
}

#endif
