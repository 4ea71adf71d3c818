/* case_half.c — 16-bit floating point, compared bit for bit with double arithmetic and one rounding.
 *
 * The exact sum, product or fused multiply-add of half numbers is representable as double, or is so far
 * from a tie that rounding twice gives the same result.  So the reference is double arithmetic, rounded
 * once to 16 bits. */
#include <math.h>
#include <string.h>

#include "tests/corpus/corpus.h"

enum { N = 2048, THREADS = 128, BLOCKS = N / THREADS };

/* A format: the number of fraction bits, and the least exponent. */
struct format {
	int fraction, least;
	uint16_t infinity;
};

static const struct format half = { 10, -14, 0x7c00 }, bfloat = { 7, -126, 0x7f80 };

static double value_of(uint16_t bits, struct format f)
{
	int exponent = (bits & 0x7fff) >> f.fraction, fraction = bits & ((1 << f.fraction) - 1);
	double v = fraction;

	if ((bits & 0x7fff) >= f.infinity)
		v = fraction ? NAN : INFINITY;
	else
		v = ldexp(exponent ? v + (1 << f.fraction) : v, (exponent ? exponent - 1 : 0) + f.least - f.fraction);
	return bits & 0x8000 ? -v : v;
}

/* Rounds to nearest, ties to even; every NaN becomes 0x7fff, the result of arithmetic. */
static uint16_t bits_of(double v, struct format f)
{
	uint16_t sign = signbit(v) ? 0x8000 : 0;
	int e;

	if (isnan(v))
		return 0x7fff;
	if (isinf(v))
		return sign | f.infinity;
	if (v == 0)
		return sign;
	e = ilogb(v) < f.least ? f.least : ilogb(v);
	double units = nearbyint(ldexp(fabs(v), f.fraction - e)); /* in units of the last place */
	long bits = (long)units + ((long)(e - f.least) << f.fraction);
	return bits >= f.infinity ? sign | f.infinity : sign | (uint16_t)bits;
}

/* PTX ISA, min and max: if one operand is NaN the result is the other one, and -0 < +0. */
static double less(double x, double y)
{
	if (x == y)
		return signbit(x) ? x : y;
	return isnan(x) || y < x ? y : x;
}

static double more(double x, double y)
{
	return -less(-x, -y);
}

static void fill_bits(struct corpus *c, uint16_t *a, uint16_t *b, struct format f)
{
	for (int i = 0; i < N; i++) {
		static const double edge[] = { 0,        -0.0,    1,     -1,     INFINITY, -INFINITY, NAN,      0x1p-24,
					       -0x1p-24, 0x1p-14, 65504, -65504, 1.0 / 3,  3,         0x1p-133, 0x1p-126 };
		a[i] = i < 256 ? bits_of(edge[i % 16], f) : (uint16_t)corpus_random(c);
		b[i] = i < 256 ? bits_of(edge[i / 16], f) : (uint16_t)corpus_random(c);
		if (i >= 256 && i % 2) /* operands of similar size, whose sums are rounded */
			b[i] = (uint16_t)((b[i] & ~f.infinity) | (a[i] & f.infinity));
	}
}

static void same_bits(struct corpus *c, const char *what, const uint16_t *a, const uint16_t *b, const uint16_t *got, const uint16_t *want,
		      struct format f)
{
	for (int i = 0; i < N && c->err.status == GPUL_OK; i++) {
		bool both_nan = (got[i] & 0x7fff) > f.infinity && (want[i] & 0x7fff) > f.infinity;

		if (got[i] != want[i] && !both_nan)
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "%s(0x%04x, 0x%04x) is 0x%04x, expected 0x%04x", what, a[i], b[i], got[i],
				  want[i]);
	}
}

/* One row of halfops for the arguments x and y. */
static uint16_t half_reference(int row, double x, double y, uint16_t bits)
{
	switch (row) {
	case 0:
	case 12:
	case 13:
		return bits_of(x + y, half);
	case 1:
		return bits_of(x - y, half);
	case 2:
		return bits_of(x * y, half);
	case 3:
	case 14:
		return bits_of(fma(x, y, x), half);
	case 4:
		return bits ^ 0x8000;
	case 5:
		return bits_of(less(x, y), half);
	case 6:
		return bits_of(more(x, y), half);
	case 7:
		return bits_of(floor(x), half);
	case 8:
		return bits_of(nearbyint(x), half);
	case 9:
		return bits_of((double)(3.0f * (float)x), half);
	case 10:
		return bits_of(x / 3.0, half);
	case 11:
		return (uint16_t)((x < y) | (x == y) << 1 | (x != y) << 2 | isnan(x) << 3);
	default:
		return bits_of(fma(y, x, y), half);
	}
}

static void run_half(struct corpus *c)
{
	static const char *const rows[] = {
		"add",  "sub",         "mul",        "fma",     "neg",      "min",       "max",      "floor",
		"rint", "three times", "a third of", "compare", "low add2", "high add2", "low fma2", "high fma2"
	};
	static uint16_t a[N], b[N], got[16 * N], want[N];
	int n = N;

	fill_bits(c, a, b, half);
	CUdeviceptr da = corpus_in(c, a, sizeof a), db = corpus_in(c, b, sizeof b), out = corpus_out(c, sizeof got);
	corpus_launch(c, "halfops", (struct corpus_shape){ .grid_x = BLOCKS, .block_x = THREADS }, (void *[]){ &da, &db, &out, &n });
	corpus_get(c, got, out, sizeof got);
	for (int row = 0; row < 16; row++) {
		for (int i = 0; i < N; i++)
			want[i] = half_reference(row, value_of(a[i], half), value_of(b[i], half), a[i]);
		same_bits(c, rows[row], a, b, got + row * N, want, half);
	}
}

static void run_bfloat(struct corpus *c)
{
	static const char *const rows[] = { "mul", "neg", "abs", "three times", "from int" };
	static uint16_t a[N], b[N], got[5 * N], want[N];
	int n = N;

	fill_bits(c, a, b, bfloat);
	CUdeviceptr da = corpus_in(c, a, sizeof a), db = corpus_in(c, b, sizeof b), out = corpus_out(c, sizeof got);
	corpus_launch(c, "bfloat", (struct corpus_shape){ .grid_x = BLOCKS, .block_x = THREADS }, (void *[]){ &da, &db, &out, &n });
	corpus_get(c, got, out, sizeof got);
	for (int row = 0; row < 5; row++) {
		for (int i = 0; i < N; i++) {
			double x = value_of(a[i], bfloat), y = value_of(b[i], bfloat);
			double exact[] = { x * y, 0, 0, (double)(3.0f * (float)x), i * 12345.0 };

			want[i] = row == 1 ? a[i] ^ 0x8000 : row == 2 ? b[i] & 0x7fff : bits_of(exact[row], bfloat);
		}
		same_bits(c, rows[row], a, b, got + row * N, want, bfloat);
	}
}

/* 200 threads each add 1 to the sums, and (1, 1/2) to the pair; every format represents these sums exactly. */
static void run_halfsum(struct corpus *c)
{
	uint32_t zero = 0;
	uint16_t got[4] = { 0 }, want[4];
	CUdeviceptr sum = corpus_in(c, &zero, 4), pair = corpus_in(c, &zero, 4), wide = corpus_in(c, &zero, 4);

	want[0] = want[1] = bits_of(200, half);
	want[2] = bits_of(100, half);
	want[3] = bits_of(200, bfloat);
	corpus_launch(c, "halfsum", (struct corpus_shape){ .grid_x = 5, .block_x = 40 }, (void *[]){ &sum, &pair, &wide });
	corpus_get(c, &got[0], sum, 2);
	corpus_get(c, &got[1], pair, 4);
	corpus_get(c, &got[3], wide, 2);
	corpus_same_u8(c, "the sums' bytes", (const uint8_t *)got, (const uint8_t *)want, sizeof got);
}

const struct corpus_case corpus_half_cases[] = {
	{ "half", "halfops", run_half },
	{ "half", "bfloat", run_bfloat },
	{ "half", "halfsum", run_halfsum },
	{ 0 },
};
