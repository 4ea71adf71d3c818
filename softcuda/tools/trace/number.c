/* number.c — converts one value to decimal text.
 *
 * A float is printed with the fewest digits that distinguish it from its neighbours. Source: R. Giulietti, The Schubfach way to
 * render doubles, 2020; the names c, q, k, h and g are those of the paper. printf() takes about 20 times as long. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "softcuda/tools/trace/trace_internal.h"

__extension__ typedef unsigned __int128 wide;

/* the functions store eight bytes at a time, lowest byte first, sometimes past the end of the text */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as in device memory");

/* ---- integers -------------------------------------------------------------------------------------------------------- */

/* Return the eight decimal digits of a number below 10^8, one per byte; the first digit is in the low byte. */
static uint64_t eight_digits(uint32_t v)
{
	const uint64_t fours = v / 10000 | (uint64_t)(v % 10000) << 32;
	const uint64_t hundreds = fours * 5243 >> 19 & UINT64_C(0x7f0000007f), twos = hundreds | (fours - 100 * hundreds) << 16;
	const uint64_t tens = twos * 103 >> 10 & UINT64_C(0x000f000f000f000f);

	return tens | (twos - 10 * tens) << 8;
}

char *gpul_trace_decimal(char *to, uint64_t v)
{
	const uint64_t last = v % 100000000, digits = eight_digits((uint32_t)last);
	uint64_t text = digits | UINT64_C(0x3030303030303030);
	unsigned skipped = 0;

	if (v == last) { /* remove leading zeros (the low bytes), but keep the last digit */
		skipped = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) & ~7u;
		text >>= skipped;
	} else {
		to = gpul_trace_decimal(to, v / 100000000);
	}
	memcpy(to, &text, sizeof text);
	return to + 8 - skipped / 8;
}

/* Return the eight hexadecimal digits of a number, the first one in the low byte. */
static uint64_t hex_text(uint32_t v)
{
	uint64_t x = v;

	x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
	x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
	x = __builtin_bswap64((x | x << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f));
	return x + UINT64_C(0x3030303030303030) +
	       ((x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101)) * ('a' - '9' - 1);
}

static char *put_hex(char *to, uint64_t v)
{
	const unsigned skipped = (unsigned)__builtin_clzll(v | 1) / 4;
	const wide text = ((wide)hex_text((uint32_t)v) << 64 | hex_text((uint32_t)(v >> 32))) >> 8 * skipped;

	memcpy(to, "0x", 2);
	memcpy(to + 2, &text, sizeof text);
	return to + 2 + 16 - skipped;
}

char *gpul_trace_mask(char *to, uint32_t mask)
{
	const uint64_t text = hex_text(mask);

	memcpy(to, &text, sizeof text);
	return to + sizeof text;
}

static char *put_signed(char *to, int64_t v)
{
	*to = '-';
	to += v < 0;
	return gpul_trace_decimal(to, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* ---- powers of 10 ----------------------------------------------------------------------------------------------------- */

enum { LEAST_POWER = -292, MOST_POWER = 324, BIG_WORDS = 21 };

/* the highest 128 bits of 10^k, rounded up */
struct power {
	uint64_t high, low;
};

static struct power powers[MOST_POWER - LEAST_POWER + 1];
static pthread_once_t powers_are_known = PTHREAD_ONCE_INIT;

/* Return the 64 bits of a number that begin at bit `at`, which may be negative. */
static uint64_t bits_from(const uint64_t *words, int at)
{
	uint64_t out = 0;

	for (int k = 0; k < 64; k++)
		if (at + k >= 0 && words[(at + k) / 64] >> (at + k) % 64 & 1)
			out |= UINT64_C(1) << k;
	return out;
}

static struct power highest_bits(const uint64_t *words, bool exact)
{
	int top = 64 * BIG_WORDS - 1;
	struct power p;

	while (!(words[top / 64] >> top % 64 & 1))
		top--;
	for (int at = 0; at < top - 127; at++)
		exact &= !(words[at / 64] >> at % 64 & 1);
	p = (struct power){ .high = bits_from(words, top - 63), .low = bits_from(words, top - 127) };
	if (!exact && !++p.low)
		p.high++;
	return p;
}

static void compute_powers(void)
{
	uint64_t up[BIG_WORDS] = { 1 }, down[BIG_WORDS] = { 0 };

	down[BIG_WORDS - 1] = 1; /* 10^-k as a fixed-point fraction, which begins as 1 */
	for (int k = 0; k <= MOST_POWER; k++) {
		wide carry = 0, rest = 0;

		powers[k - LEAST_POWER] = highest_bits(up, true);
		if (k && -k >= LEAST_POWER)
			powers[-k - LEAST_POWER] = highest_bits(down, false);
		for (int w = 0; w < BIG_WORDS; w++, carry >>= 64) {
			carry += (wide)up[w] * 10;
			up[w] = (uint64_t)carry;
		}
		for (int w = BIG_WORDS; w-- > 0; rest %= 10) {
			rest = rest << 64 | down[w];
			down[w] = (uint64_t)(rest / 10);
		}
	}
}

/* ---- floats ----------------------------------------------------------------------------------------------------------- */

/* the number digits * 10^exponent */
struct decimal {
	uint64_t digits;
	int exponent;
};

/* Return g * cp / 2^128, rounded to odd, as in Giulietti's paper. */
static uint64_t scaled(const struct power *g, uint64_t cp)
{
	const wide low = (wide)g->low * cp, high = (wide)g->high * cp + (uint64_t)(low >> 64);

	return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* Return the shortest decimal in the rounding interval of c * 2^q.  closer: the next lower float is only half as far away. */
static struct decimal shortest(uint64_t c, int q, bool closer)
{
	const bool odd = c & 1;
	const int k = (q * 1262611 - (closer ? 524031 : 0)) >> 22, h = q + ((-k * 1741647) >> 19) + 1;
	const struct power *g = &powers[-k - LEAST_POWER];
	const uint64_t lower = scaled(g, (4 * c - 2 + closer) << h) + odd, upper = scaled(g, (4 * c + 2) << h) - odd;
	const uint64_t v = scaled(g, 4 * c << h), s = v / 4, tens = s / 10;
	bool below, above;

	if (s >= 10) {
		below = lower <= 40 * tens;
		above = 40 * tens + 40 <= upper;
		if (below != above)
			return (struct decimal){ tens + above, k + 1 };
	}
	below = lower <= 4 * s;
	above = 4 * s + 4 <= upper;
	if (below == above)
		above = v > 4 * s + 2 || (v == 4 * s + 2 && (s & 1));
	return (struct decimal){ s + above, k };
}

/* Write a decimal number, with an exponent if it is below 1e-4 or at least 10^most, as printf() does. */
static char *put_digits(char *to, struct decimal d, int most)
{
	char digits[24];
	const int n = (int)(gpul_trace_decimal(digits, d.digits) - digits), e = d.exponent + n - 1;
	int used = n;

	while (used > 1 && digits[used - 1] == '0')
		used--;
	if (e < -4 || e >= most) {
		*to++ = digits[0];
		if (used > 1)
			*to++ = '.';
		memcpy(to, digits + 1, (size_t)used - 1);
		to += used - 1;
		*to++ = 'e';
		*to++ = e < 0 ? '-' : '+';
		if (e > -10 && e < 10)
			*to++ = '0';
		return gpul_trace_decimal(to, (uint64_t)(e < 0 ? -e : e));
	}
	for (int k = e; k < 0; k++) {
		*to++ = '0';
		if (k == e)
			*to++ = '.';
	}
	for (int k = 0; k < used || k <= e; k++) {
		if (k == e + 1 && e >= 0)
			*to++ = '.';
		*to++ = k < used ? digits[k] : '0';
	}
	return to;
}

/* Write a float.  significand_bits does not include the hidden bit; v: the value if it is an integer below 1e9, else 0. */
static char *put_float(char *to, uint64_t bits, unsigned significand_bits, unsigned exponent_bits, double v)
{
	const uint64_t significand = bits & ((UINT64_C(1) << significand_bits) - 1);
	const int most = (1 << exponent_bits) - 1, exponent = (int)(bits >> significand_bits) & most;
	const int bias = most / 2 + (int)significand_bits;

	if (bits >> (significand_bits + exponent_bits))
		*to++ = '-';
	if (exponent == most) {
		memcpy(to, significand ? "nan" : "inf", 3);
		return to + 3;
	}
	if (v < 1e9 && v == (double)(uint32_t)v)
		return gpul_trace_decimal(to, (uint64_t)v);
	pthread_once(&powers_are_known, compute_powers);
	return put_digits(to,
			  exponent ? shortest(significand | UINT64_C(1) << significand_bits, exponent - bias, !significand && exponent > 1)
				   : shortest(significand, 1 - bias, false),
			  significand_bits < 24 ? 9 : 16);
}

char *gpul_trace_number(char *to, uint64_t v, unsigned bytes, char type)
{
	const int64_t sign = bytes == 8 ? (int64_t)v : bytes == 4 ? (int32_t)v : (int16_t)v;
	const uint32_t low = (uint32_t)v;
	double d;
	float f;

	if (type == 'f' && bytes == 4) {
		memcpy(&f, &low, sizeof f);
		return put_float(to, low, 23, 8, fabs((double)f));
	}
	if (type == 'f' && bytes == 8) {
		memcpy(&d, &v, sizeof d);
		return put_float(to, v, 52, 11, fabs(d));
	}
	if (type == 's' && (bytes < 8 || (sign > -(INT64_C(1) << 40) && sign < INT64_C(1) << 40)))
		return put_signed(to, sign);
	if (type == 'u' && v <= UINT32_MAX)
		return gpul_trace_decimal(to, v);
	return v < 0x10000 ? gpul_trace_decimal(to, v) : put_hex(to, v);
}
