/* run_mma_float.c — mma and wmma of f16, bf16, tf32 and f8, as the tensor cores of sm_90 calculate.
 *
 * `block` products and the accumulator are added at once; only the result is rounded:
 *
 *     e    = the largest exponent of a product (exponent of x + exponent of y) or of the accumulator
 *     each   product, which is exact, is cut off behind 2^(e - fraction_bits), towards zero
 *     sum    of the integers that result, exact; rounded to f32 towards zero, or to f16 to nearest even
 *
 * The exponent of a subnormal number is that of the format's least normal number; the significands are not normalised
 * before the alignment.  A NaN is 0x7fffffff or 0x7fff.
 * Source: Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores (2021); Khattak, Mikaitis: Accurate
 * models of NVIDIA tensor cores (2025); block and fraction_bits of sm_90: 16 products of 16 bits, 25. */
#include "softcuda/exec/matrix_internal.h"
#include "softcuda/exec/run/half_internal.h"
#include "softcuda/exec/run/run_internal.h"

enum {
	NO_EXPONENT = -10000,         /* of zero */
	ALL_ZERO = NO_EXPONENT / 2,   /* below: no product differs from zero */
	NARROW_EXPONENT = 50,         /* up to here products and their scale fit into a float */
};

struct operands {
	float x[MAX_K][TILE_ROWS], y[MAX_K][TILE_COLUMNS];
	int32_t xe[MAX_K][TILE_ROWS], ye[MAX_K][TILE_COLUMNS];
	bool wide;                    /* an exponent is beyond NARROW_EXPONENT */
	bool special;                 /* there is an infinity or NaN: x and y have it, their exponent is NO_EXPONENT */
};

/* ---- from registers to operands ----------------------------------------------------------------------------------- */

static int least_exponent(unsigned type)
{
	return type == MATRIX_BF16 || type == MATRIX_TF32 || type == MATRIX_F32 ? -126 : -14;
}

static void widen_e4m3(float *v, const uint8_t *b, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		const uint32_t magnitude = b[k] & 0x7f, sign = (uint32_t)(b[k] & 0x80) << 24;
		const uint32_t scaled = bits_of(float_of(magnitude << 20) * 0x1p120f);

		v[k] = float_of(sign | (magnitude == 0x7f ? 0x7fffffff : scaled));
	}
}

static void widen_e5m2(float *v, const uint8_t *b, unsigned n)
{
	uint16_t half[4 * LANES];

	for (unsigned k = 0; k < n; k++)
		half[k] = (uint16_t)(b[k] << 8);
	widen_f16(v, half, n);
}

/* The elements of a register in all lanes, in the order of its bytes; returns the number of each lane. */
static unsigned widen_register(const struct warp *w, opref r, unsigned type, float v[4 * LANES])
{
	const void *bits = opptr(w, r);

	switch (type) {
	case MATRIX_F16: widen_f16(v, bits, 2 * LANES); return 2;
	case MATRIX_BF16: widen_bf16(v, bits, 2 * LANES); return 2;
	case MATRIX_E4M3: widen_e4m3(v, bits, 4 * LANES); return 4;
	case MATRIX_E5M2: widen_e5m2(v, bits, 4 * LANES); return 4;
	default:
		for (unsigned l = 0; l < LANES; l++)
			v[l] = float_of(U32(w, r)[l] & 0xffffe000);
		return 1;
	}
}

static void find_exponents(const float *v, int32_t *e, unsigned n, int least, struct operands *o)
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

/* With f8, sm_90 first adds the products of the lower two bytes of each register, then those of the upper two; if X is sparse,
 * two bytes are of four k. */
static unsigned place_of(const struct mma_form *f, unsigned k)
{
	const unsigned n = f->sparse ? 4 : 2;

	return f->sum.bytes ? k / n % 2 * (f->k / 2u) + k / (2 * n) * n + k % n : k;
}

static void load_x(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, struct operands *o)
{
	const unsigned groups = f->rows / 8;
	float v[4 * LANES];
	int32_t e[4 * LANES];

	for (unsigned k = 0; f->sparse && k < f->k; k++)
		for (unsigned r = 0; r < TILE_ROWS; r++) {
			o->x[k][r] = 0;
			o->xe[k][r] = NO_EXPONENT;
		}
	for (unsigned r = 0; r < f->n_x; r++) {
		const unsigned n = widen_register(w, t->x[r], f->x_type, v);

		find_exponents(v, e, n * LANES, least_exponent(f->x_type), o);
		for (unsigned l = 0; l < LANES; l++)
			for (unsigned j = 0; j < n; j++) {
				const unsigned k = f->sparse ? sparse_position(f, U32(w, f->metadata), l, r, j)
							     : 4 * n * (r / groups) + n * (l % 4) + j;
				const unsigned at = place_of(f, k), row = l / 4 + 8 * (r % groups);

				o->x[at][row] = v[n * l + j];
				o->xe[at][row] = e[n * l + j];
			}
	}
}

static void load_y(const struct warp *w, const struct mma_form *f, const struct mma_tile *t, struct operands *o)
{
	float v[4 * LANES];
	int32_t e[4 * LANES];

	for (unsigned r = 0; r < f->n_y; r++) {
		const unsigned n = widen_register(w, t->y[r], f->y_type, v);

		find_exponents(v, e, n * LANES, least_exponent(f->y_type), o);
		for (unsigned l = 0; l < LANES; l++)
			for (unsigned j = 0; j < n; j++) {
				const unsigned at = place_of(f, 4 * n * r + n * (l % 4) + j);

				o->y[at][l / 4] = v[n * l + j];
				o->ye[at][l / 4] = e[n * l + j];
			}
	}
}

/* ---- the sum of a block ------------------------------------------------------------------------------------------ */

/* Also right for subnormal results, which a conversion to nearest would round at another bit. */
static inline float towards_zero(double x)
{
	const float r = (float)x;
	const float most = float_of((bits_of64(x) >> 32 & 0x80000000) | 0x7f800000);
	const float inwards = float_of(bits_of(r) - ((double)fabsf(r) > fabs(x)));

	return fabs(x) >= 0x1p128 ? most : inwards;
}

/* As towards_zero(), but the last bit is set if the result is not exact: rounding it again, to f16, is right. */
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

/* acc += the n products of column y: name(o, first k, n, column, least exponent of acc, fraction_bits, acc, sum as a double).
 * real: the type in which a product, times its scale, is exact; lowest: of the exponents for which the scale is finite. */
#define SUM_BLOCK(name, real, power, lowest)                                                                            \
	static void name(const struct operands *o, unsigned from, unsigned n, unsigned column, int least, int fraction, \
			 const float acc[TILE_ROWS], double sum[TILE_ROWS])                                             \
	{                                                                                                               \
		int32_t top[TILE_ROWS], s[2][TILE_ROWS] = { { 0 } };                                                    \
		real scale[TILE_ROWS];                                                                                  \
		for (unsigned r = 0; r < TILE_ROWS; r++)                                                                \
			top[r] = NO_EXPONENT;                                                                           \
		for (unsigned k = from; k < from + n; k++)                                                              \
			for (unsigned r = 0; r < TILE_ROWS; r++) {                                                      \
				const int32_t e = o->xe[k][r] + o->ye[k][column];                                       \
				top[r] = e > top[r] ? e : top[r];                                                       \
			}                                                                                               \
		for (unsigned r = 0; r < TILE_ROWS; r++) {                                                              \
			const int32_t field = (int32_t)(bits_of(acc[r]) >> 23 & 0xff) - 127;                            \
			const int32_t e = acc[r] == 0 ? NO_EXPONENT : field > least ? field : least;                    \
			const int32_t most = e > top[r] ? e : top[r];                                                   \
			scale[r] = power(fraction - (most > (lowest) ? most : (lowest)));                               \
			sum[r] = power_of_two((most > (lowest) ? most : (lowest)) - fraction);                          \
		}                                                                                                       \
		for (unsigned k = 0; k < n; k++)                                                                        \
			for (unsigned r = 0; r < TILE_ROWS; r++)                                                        \
				s[k % 2][r] += (int32_t)((real)o->x[from + k][r] * (real)o->y[from + k][column] * scale[r]); \
		for (unsigned r = 0; r < TILE_ROWS; r++) {                                                              \
			const double exact = (double)s[0][r] + (double)s[1][r] + (double)(int32_t)((real)acc[r] * scale[r]); \
			sum[r] = top[r] < ALL_ZERO ? (double)acc[r] + 0 : exact * sum[r];                               \
		}                                                                                                       \
	}
SUM_BLOCK(sum_block, float, power_of_two_narrow, -2 * NARROW_EXPONENT)
SUM_BLOCK(sum_block_wide, double, power_of_two, -300)

static void add_block(const struct operands *o, const struct mma_form *f, bool half, unsigned from, unsigned column,
		      float acc[TILE_ROWS])
{
	double sum[TILE_ROWS];
	float finite[TILE_ROWS], r[TILE_ROWS];
	uint16_t h[TILE_ROWS];

	for (unsigned k = 0; k < TILE_ROWS; k++)
		finite[k] = fabsf(acc[k]) < INFINITY ? acc[k] : 0;
	(o->wide ? sum_block_wide : sum_block)(o, from, f->sum.block, column, half ? -14 : -126, f->sum.fraction_bits, finite, sum);
	for (unsigned k = 0; k < TILE_ROWS; k++)
		r[k] = half ? to_odd(sum[k]) : towards_zero(sum[k]);
	if (half) {
		narrow_f16(h, r, TILE_ROWS);
		widen_f16(r, h, TILE_ROWS);
	}
	for (unsigned k = 0; k < TILE_ROWS; k++)
		acc[k] = fabsf(acc[k]) < INFINITY ? r[k] : acc[k] != acc[k] ? float_of(0x7fffffff) : acc[k];
}

/* Infinities and NaN among the operands of one element. */
static float special_sum(const struct operands *o, unsigned n, unsigned row, unsigned column, float c, float sum)
{
	bool nan = c != c, up = c == INFINITY, down = c == -INFINITY;

	for (unsigned k = 0; k < n; k++) {
		const float product = o->x[k][row] * o->y[k][column];
		const bool infinite = fabsf(o->x[k][row]) == INFINITY || fabsf(o->y[k][column]) == INFINITY;

		nan |= product != product;
		up |= infinite && product > 0;
		down |= infinite && product < 0;
	}
	return nan || (up && down) ? float_of(0x7fffffff) : up ? INFINITY : down ? -INFINITY : sum;
}

/* In the sum, products with an infinity or NaN count as zero. */
static void hide_specials(struct operands *o, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		for (unsigned r = 0; r < TILE_ROWS; r++)
			o->x[k][r] = fabsf(o->x[k][r]) < INFINITY ? o->x[k][r] : 0;
		for (unsigned c = 0; c < TILE_COLUMNS; c++)
			o->y[k][c] = fabsf(o->y[k][c]) < INFINITY ? o->y[k][c] : 0;
	}
}

/* ---- the accumulators -------------------------------------------------------------------------------------------- */

static void load_sums(const struct warp *w, const struct mma_form *f, const struct mma_tile *t,
		      float c[TILE_COLUMNS][TILE_ROWS])
{
	float v[2 * LANES];

	memset(c, 0, TILE_COLUMNS * sizeof c[0]);
	for (unsigned r = 0; r < f->n_c; r++) {
		const bool half = f->c_type == MATRIX_F16;

		if (half)
			widen_f16(v, opptr(w, t->c[r]), 2 * LANES);
		for (unsigned l = 0; l < LANES; l++) {
			const unsigned row = l / 4, column = l % 4 * 2;

			if (half)
				for (unsigned k = 0; k < 2; k++)
					c[column + k][row + 8 * r] = v[2 * l + k];
			else
				c[column + r % 2][row + 8 * (r / 2)] = F32(w, t->c[r])[l];
		}
	}
}

static void store_sums(const struct warp *w, const struct mma_form *f, const struct mma_tile *t,
		       float d[TILE_COLUMNS][TILE_ROWS])
{
	for (unsigned r = 0; r < f->n_d; r++) {
		float v[2 * LANES] = { 0 };
		uint16_t h[2 * LANES];

		if (f->d_type != MATRIX_F16) {
			EACH_ACTIVE(l, w)
				F32(w, t->d[r])[l] = d[l % 4 * 2 + r % 2][l / 4 + 8 * (r / 2)];
			continue;
		}
		for (unsigned l = 0; l < 2 * LANES; l++)
			v[l] = d[l % 8][l / 8 + 8 * r];
		narrow_f16(h, v, 2 * LANES);
		EACH_ACTIVE(l, w)
			memcpy(&U32(w, t->d[r])[l], &h[2 * l], 4);
	}
}

static void multiply(const struct warp *w, const struct mma_form *f, const struct mma_tile *t,
		     float d[TILE_COLUMNS][TILE_ROWS])
{
	const bool half = f->c_type == MATRIX_F16 && f->d_type == MATRIX_F16;
	struct operands o, all;
	float c[TILE_COLUMNS][TILE_ROWS];

	o.wide = o.special = false;
	load_x(w, f, t, &o);
	load_y(w, f, t, &o);
	load_sums(w, f, t, c);
	if (o.special) {
		all = o;
		hide_specials(&o, f->k);
	}
	memcpy(d, c, sizeof c);
	if (f->sum.bytes)
		memset(d, 0, sizeof c);
	for (unsigned column = 0; column < TILE_COLUMNS; column++) {
		for (unsigned k = 0; k < f->k; k += f->sum.block)
			add_block(&o, f, half, k, column, d[column]);
		for (unsigned r = 0; o.special && r < TILE_ROWS; r++)
			d[column][r] = special_sum(&all, f->k, r, column, f->sum.bytes ? 0 : c[column][r], d[column][r]);
		for (unsigned r = 0; f->sum.bytes && r < TILE_ROWS; r++)
			d[column][r] = canonical(d[column][r] + c[column][r]);
	}
}

HANDLER(MMA_FLOAT)
{
	const struct mma_form *f = i->object;
	float d[MAX_TILES][TILE_COLUMNS][TILE_ROWS];

	if (!lanes_have_arrived(state_of(w), ALL_LANES))
		return raise_event(state_of(w), EVENT_SYNC, i);
	for (unsigned t = 0; t < f->n_tiles; t++)
		multiply(w, f, &f->tile[t], d[t]);
	for (unsigned t = 0; t < f->n_tiles; t++)
		store_sums(w, f, &f->tile[t], d[t]);
	return i + 1;
}
