/* operands.c — random operands: uniform bits, near and far exponents, cancellation, infinities and NaN, subnormals, zeros. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/api/mma/mma_fuzz.h"

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static const struct layout {
	unsigned bits, exponent, fraction, pad;
} layouts[] = {
	[F16] = { 16, 5, 10, 0 }, [BF16] = { 16, 8, 7, 0 },  [TF32] = { 32, 8, 10, 13 }, [E4M3] = { 8, 4, 3, 0 },
	[E5M2] = { 8, 5, 2, 0 },  [F32] = { 32, 8, 23, 0 },  [F64] = { 64, 11, 52, 0 },  [S32] = { 32, 0, 0, 0 },
	[BITS] = { 32, 0, 0, 0 }, [FOURS] = { 32, 0, 0, 0 }, [PAIRS] = { 32, 0, 0, 0 },
};

unsigned element_bits(enum element type)
{
	return layouts[type].bits;
}

enum mode { UNIFORM, NEAR, MIDDLE, CANCEL, SPECIAL, ZEROS, SUBNORMAL, LONE_SUM, TWO_POWERS, N_MODES };

static uint64_t assemble(const struct layout *f, uint64_t random, int64_t exponent, uint64_t fraction)
{
	const int64_t most = ((int64_t)1 << f->exponent) - 1;
	const uint64_t bounded = (uint64_t)(exponent < 0 ? 0 : exponent > most ? most : exponent);

	return ((random & 1) << (f->exponent + f->fraction) | bounded << f->fraction | (fraction & (((uint64_t)1 << f->fraction) - 1)))
	       << f->pad;
}

static uint64_t special_value(const struct layout *f, uint64_t random)
{
	const int64_t most = ((int64_t)1 << f->exponent) - 1;
	static const int at[] = { 0, 0, 1, 1, -1, -1, -1, -2 };
	const unsigned which = (unsigned)(random >> 8 & 7);
	const uint64_t ones = which == 1 || which == 3 || which == 5 || which == 7 ? UINT64_MAX : which == 6 ? 1 : 0;

	return assemble(f, random, at[which] < 0 ? most + 1 + at[which] : at[which], ones);
}

/* Make eight 4-bit elements of mma.sp's metadata. */
static uint64_t make_positions(enum element type, uint64_t random)
{
	static const uint8_t fours[] = { 4, 8, 12, 9, 13, 14 }, pairs[] = { 4, 14 };
	uint64_t word = 0;

	for (unsigned k = 0; k < 8; k++, random >>= 8)
		word |= (uint64_t)(type == FOURS ? fours[(random & 255) % 6] : pairs[random & 1]) << 4 * k;
	return word;
}

/* Make one element.  sum: true for an element of C, false for one of A or B. */
static uint64_t make_element(enum element type, enum mode mode, bool sum, uint64_t *state)
{
	const struct layout *f = &layouts[type];
	const uint64_t random = next_random(state), fraction = next_random(state);
	const int64_t bias = f->exponent ? ((int64_t)1 << (f->exponent - 1)) - 1 : 0;
	const int64_t near = (int64_t)(random >> 16 & 3) - 2, middle = (int64_t)(random >> 20 & 31) - 16;

	if (type == FOURS || type == PAIRS)
		return make_positions(type, fraction);
	if (!f->exponent)
		return mode == SPECIAL && random & 2 ? (sum ? (uint64_t)INT32_MAX + (random >> 2 & 1) : 0x80808080) : fraction;
	switch (mode) {
	case NEAR:
		return assemble(f, random, bias + near, fraction);
	case MIDDLE:
		return assemble(f, random, bias + (sum ? 2 * middle : middle), fraction);
	case CANCEL:
		return assemble(f, random, bias + near, random >> 32 & 7 ? 0 : fraction);
	case SPECIAL:
		return random >> 40 & 31 ? assemble(f, random, bias + near, fraction) : special_value(f, random);
	case ZEROS:
		return random >> 40 & 7 ? assemble(f, random, 0, 0) : assemble(f, random, bias + (sum ? 3 * middle : middle), fraction);
	case SUBNORMAL:
		return assemble(f, random, random >> 40 & 3, fraction);
	case LONE_SUM:
		return sum ? assemble(f, random, (int64_t)(fraction >> 11), fraction) : assemble(f, random, bias + near, fraction);
	case TWO_POWERS:
		return assemble(f, random, bias + near, random >> 41 & 1 ? 0 : UINT64_MAX);
	default:
		return fraction >> (64 - f->bits) >> f->pad << f->pad;
	}
}

static uint32_t *make_operand(const struct operand *o, enum mode mode, bool sum, uint64_t *state, uint32_t *words)
{
	const unsigned bits = layouts[o->type].bits;
	uint64_t word = 0;

	for (unsigned at = 0; at < 32 * o->words; at += bits) {
		const uint64_t one = make_element(o->type, mode, sum, state);

		if (bits == 64) {
			memcpy(words + at / 32, &one, 8);
			continue;
		}
		word = at % 32 ? word | one << at % 32 : one;
		if ((at + bits) % 32 == 0)
			words[at / 32] = (uint32_t)word;
	}
	return words + o->words;
}

void make_operands(const struct form *f, uint64_t seed, unsigned form_index, unsigned number, uint32_t *words)
{
	uint64_t state = seed ^ (uint64_t)form_index << 32 ^ (uint64_t)number << 40;
	const enum mode mode = (enum mode)(number % N_MODES),
			of_sum = (enum mode)(number / N_MODES % 4 ? mode : next_random(&state) % N_MODES);

	for (unsigned t = 0; t < f->threads; t++) {
		words = make_operand(&f->a, mode, false, &state, words);
		words = make_operand(&f->b, mode, false, &state, words);
		words = make_operand(&f->c, of_sum, true, &state, words);
		words = make_operand(&f->metadata, mode, false, &state, words);
	}
}

/* Return the rank of a number in the order of all numbers of its type. */
static int64_t position(const struct layout *f, uint64_t x)
{
	const unsigned width = f->exponent + f->fraction;
	const uint64_t magnitude = x & (((uint64_t)1 << width) - 1);

	return x >> width & 1 ? -(int64_t)magnitude : (int64_t)magnitude;
}

static bool is_nan(const struct layout *f, uint64_t x)
{
	const uint64_t magnitude = x & (((uint64_t)1 << (f->exponent + f->fraction)) - 1);

	return magnitude > (((uint64_t)1 << f->exponent) - 1) << f->fraction;
}

uint64_t distance(enum element type, uint64_t x, uint64_t y)
{
	const struct layout *f = &layouts[type];

	if (x == y)
		return 0;
	if (!f->exponent || is_nan(f, x) || is_nan(f, y))
		return UINT64_MAX;
	const int64_t a = position(f, x), b = position(f, y);

	return a == b ? 1 : (uint64_t)llabs(a - b); /* +0 and -0 have the same position, but count as different */
}
