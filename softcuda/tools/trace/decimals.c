/* decimals.c — converts 32 numbers to decimal text with vector instructions.
 *
 * Most values of a kernel are small integers or floats between 1e-4 and 1e9, and printing 32 of them by printf() takes longer than
 * interpreting 100 instructions. Here, vector code without branches converts eight lanes together. This file is compiled once for
 * each CPU instruction set, like the instruction handlers.
 *
 *     bits ──find_digits()──> 9 digits and an exponent ──lay_out()──> up to 16 bytes of text
 *
 * A float is printed with the smallest number of digits (7, 8 or 9) that distinguishes it from its neighbours, without trailing
 * zeros. Floats of 2^24 and more are integers and are printed with all digits. */
#include "softcuda/tools/trace/trace_internal.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* N: number of 64-bit elements in a vector register.  The macros wrap instructions for which C has no vector operator. */
#if defined(__AVX512F__)
enum { N = 8 };
#define MULTIPLY_32(a, b)      ((vec_u)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#define MULTIPLY_HIGH_16(a, b) ((vec_h)_mm512_mulhi_epu16((__m512i)(a), (__m512i)(b)))
#define COUNT_DIGITS(digits)   (9 - ((vec_u)_mm512_lzcnt_epi64((__m512i)(digits)) >> 3))
#define LOOK_UP(table, i)      ((vec_d)_mm512_permutex2var_pd(_mm512_loadu_pd(table), (__m512i)(i), _mm512_loadu_pd((table) + 8)))
#elif defined(__AVX2__)
enum { N = 4 };
#define MULTIPLY_32(a, b)      ((vec_u)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define MULTIPLY_HIGH_16(a, b) ((vec_h)_mm256_mulhi_epu16((__m256i)(a), (__m256i)(b)))
#define LOOK_UP(table, i)      ((vec_d)_mm256_i64gather_pd(table, (__m256i)(i), 8))
#else
enum { N = 2 };
#define LOOK_UP(table, i) ((vec_d){ (table)[(i)[0]], (table)[(i)[1]] })
#if defined(__x86_64__)
#define MULTIPLY_32(a, b)      ((vec_u)_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#define MULTIPLY_HIGH_16(a, b) ((vec_h)_mm_mulhi_epu16((__m128i)(a), (__m128i)(b)))
#else
#define MULTIPLY_32(a, b) ((a) * (b))
#define MULTIPLY_HIGH_16(a, b) \
	(__builtin_convertvector(__builtin_convertvector(a, vec_hw) * __builtin_convertvector(b, vec_hw) >> 16, vec_h))
#endif
#endif

typedef uint64_t vec_u __attribute__((vector_size(8 * N)));
typedef int64_t vec_i __attribute__((vector_size(8 * N))); /* also the type of the result of a comparison: 0 or -1 in each element */
typedef double vec_d __attribute__((vector_size(8 * N)));
typedef float vec_f __attribute__((vector_size(4 * N)));
typedef uint32_t vec_w __attribute__((vector_size(4 * N)));
typedef uint16_t vec_h __attribute__((vector_size(8 * N)));
typedef uint32_t vec_hw __attribute__((vector_size(16 * N)));

struct digits {
	vec_i usual;    /* -1 (all ones) if the float is between 1e-4 and 1e9, else 0 */
	vec_i exponent; /* power of 10 of the first digit */
	vec_u value;    /* the nine digits as an integer */
};

struct texts {
	uint64_t low[LANES], high[LANES]; /* the 16 bytes of each text; the first byte is the lowest */
	uint64_t length[LANES];
	int64_t usual[LANES];
};

#define SELECT(condition, a, b) (__typeof__(a))(((condition) & (vec_i)(a)) | (~(condition) & (vec_i)(b)))

/* biased exponent of 2^24; floats from this value on are integers */
enum { FIRST_INTEGER = 127 + 24 };

/* powers[k] is 10^(k-5). */
static const double powers[] = { 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1,    1e1,  1e2,  1e3,  1e4, 1e5,
				 1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };

#define EACH(v) ((vec_u){ 0 } + (v))

/* Round numbers below 2^52 to the nearest integer. */
static inline vec_d rounded(vec_d v)
{
	return v + 0x1p52 - 0x1p52;
}

static inline vec_d distance(vec_d a, vec_d b)
{
	return (vec_d)((vec_i)(a - b) & INT64_MAX);
}

/* Scale the values to 9 digits before the decimal point.  The product is exact in double: a float has 24 bits, and 5^12 has 28. */
static inline void find_digits(const uint32_t bits[N], struct digits *out)
{
	vec_w words;
	vec_u given, b;
	vec_i binary, e;
	vec_d v, scale, scaled, half, d9, d8, d7;

	memcpy(&words, bits, sizeof words);
	given = __builtin_convertvector(words & 0x7fffffff, vec_u);
	out->usual = (vec_i)((vec_i)given >= 0x38d1b718) & (vec_i)((vec_i)given < 0x4e6e6b28); /* bits of 1e-4 and 1e9 */
	b = SELECT(out->usual, given, EACH(0x3f800000));
	binary = (vec_i)(b >> 23);
	e = ((binary - 127) * 77) >> 8; /* log10(2) is about 77/256; for some values, the result is one too small */
	v = __builtin_convertvector((vec_f) __builtin_convertvector(b, vec_w), vec_d);
	e -= (vec_i)(v >= LOOK_UP(powers, e + 6));
	scale = LOOK_UP(powers + 5, 8 - e);
	scaled = v * scale;
	half = (vec_d)((binary - 127 - 24 + 1023) << 52) * scale;      /* half the distance to the next float */
	half = SELECT((vec_i)((b & 0x7fffff) == 0), half * 0.5, half); /* below a power of 2, floats are twice as dense */
	half = SELECT((vec_i)(binary >= FIRST_INTEGER), (vec_d){ 0 }, half);
	d9 = rounded(scaled);
	d8 = rounded(scaled * 0.1) * 10;
	d7 = rounded(scaled * 0.01) * 100;
	d9 = SELECT((vec_i)(distance(d8, scaled) < half), d8, d9);
	d9 = SELECT((vec_i)(distance(d7, scaled) < half), d7, d9);
	out->exponent = e;
	out->value = (vec_u)(d9 + 0x1p52) & UINT64_C(0xfffffffffffff);
}

/* Return the eight decimal digits of each number, one per byte; the first digit is in the low byte. */
static inline vec_u split_digits(vec_u v)
{
	const vec_u high = MULTIPLY_32(v, EACH(3518437209)) >> 45, low = v - MULTIPLY_32(high, EACH(10000));
	const vec_h fours = (vec_h)(high | low << 32), hundreds = MULTIPLY_HIGH_16(fours, (vec_h){ 0 } + 5243) >> 3;
	const vec_h twos = hundreds | (vec_h)((vec_u)(fours - hundreds * 100) << 16);
	const vec_h tens = twos * 103 >> 10;

	return (vec_u)(tens | (twos - tens * 10) << 8);
}

/* Return the number of digits up to the last nonzero one, plus one for the first of the nine digits, which is not in `digits`. */
static inline vec_u count_digits(vec_u digits)
{
#if defined(COUNT_DIGITS)
	return COUNT_DIGITS(digits);
#else
	vec_u some = (digits + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);

	some |= some >> 8;
	some |= some >> 16;
	some |= some >> 32;
	some += some >> 32;
	some += some >> 16;
	some += some >> 8;
	return (some & 15) + 1;
#endif
}

/* For each exponent from -4 on, the text before the first digit ("0.000", lowest byte first), and the length of this text in bits. */
static const union {
	uint64_t u[16];
	double d[16];
} zeros_text = { { 0x3030302e30, 0x30302e30, 0x302e30, 0x2e30 } }, zeros_bits = { { 40, 32, 24, 16 } };

/* Write a blank, the sign, zeros, digits and the decimal point. */
static inline void lay_out(const struct digits *d, const uint32_t bits[N], uint64_t low_out[N], uint64_t high_out[N],
			   uint64_t length_out[N])
{
	const vec_i e = d->exponent, fraction = (vec_i)(e < 0), point = ~fraction & (vec_i)(e < 8);
	const vec_u first = MULTIPLY_32(d->value, EACH(1441151881)) >> 57;
	const vec_u rest = split_digits(d->value - MULTIPLY_32(first, EACH(100000000))), text = rest | UINT64_C(0x3030303030303030);
	const vec_u n = count_digits(rest), whole = (vec_u)(e + 1);
	const vec_u bit = (vec_u)(e & point) * 8; /* position of the point in the text */
	const vec_u behind = text >> bit << bit, before = text ^ behind;
	const vec_u middle = SELECT(point, before | EACH('.') << bit | behind << 8, text);
	const vec_u zeros = (vec_u)LOOK_UP(zeros_bits.d, e + 4);
	const vec_u digits_low = first | '0' | middle << 8, digits_high = middle >> 56 | ((vec_u)point & (behind >> 56 << 8));
	vec_u sign, low, high, length, shift;
	vec_w words;

	memcpy(&words, bits, sizeof words);
	sign = __builtin_convertvector(words >> 31, vec_u);
	shift = sign * 8 + 8;
	low = ' ' | ((0 - sign) & ('-' << 8)) | (vec_u)LOOK_UP(zeros_text.d, e + 4) << shift;
	shift += zeros;
	low |= digits_low << shift;
	high = digits_high << shift | digits_low >> (64 - shift);
	length = SELECT(fraction, n, SELECT((vec_i)(n > whole), n + 1, whole)) + shift / 8;
	memcpy(low_out, &low, sizeof low);
	memcpy(high_out, &high, sizeof high);
	memcpy(length_out, &length, sizeof length);
}

/* Write the texts of the lanes in `on` one after another, and "-" for the other lanes. */
static char *join(char *to, const struct texts *t, uint32_t on)
{
	for (unsigned l = 0; l < LANES && on == ALL_LANES; l++) {
		memcpy(to, &t->low[l], 8);
		memcpy(to + 8, &t->high[l], 8);
		to += t->length[l];
	}
	for (unsigned l = 0; l < LANES && on != ALL_LANES; l++) {
		memcpy(to, " -", 2);
		if (on >> l & 1) {
			memcpy(to, &t->low[l], 8);
			memcpy(to + 8, &t->high[l], 8);
		}
		to += on >> l & 1 ? t->length[l] : 2;
	}
	return to;
}

char *GPUL_BUILD(gpul_trace_integers)(char *to, const uint64_t values[LANES], uint32_t on)
{
	struct texts t;

	for (unsigned l = 0; l < LANES; l += N) {
		vec_u v, text, skipped = EACH(56), high, low, length;

		memcpy(&v, values + l, sizeof v);
		for (uint64_t power = 10; power < 100000000; power *= 10)
			skipped -= (vec_u)((vec_i)v >= (int64_t)power) & 8;
		text = (split_digits(v) | UINT64_C(0x3030303030303030)) >> skipped;
		low = text << 8 | ' ';
		high = text >> 56;
		length = 9 - skipped / 8;
		memcpy(t.low + l, &low, sizeof low);
		memcpy(t.high + l, &high, sizeof high);
		memcpy(t.length + l, &length, sizeof length);
	}
	return join(to, &t, on);
}

char *GPUL_BUILD(gpul_trace_floats)(char *to, const uint32_t bits[LANES], uint32_t on)
{
	struct texts t;
	struct digits d;
	vec_i all = (vec_i){ 0 } - 1;
	int64_t usual = -1;

	for (unsigned l = 0; l < LANES; l += N) {
		find_digits(bits + l, &d);
		lay_out(&d, bits + l, t.low + l, t.high + l, t.length + l);
		memcpy(t.usual + l, &d.usual, sizeof d.usual);
		all &= d.usual;
	}
	for (unsigned k = 0; k < N; k++)
		usual &= all[k];
	if (usual)
		return join(to, &t, on);
	for (unsigned l = 0; l < LANES; l++) {
		if (!(on >> l & 1) || !t.usual[l]) {
			*to++ = ' ';
			*to = '-';
			to = on >> l & 1 ? gpul_trace_number(to, bits[l], 4, 'f') : to + 1;
			continue;
		}
		memcpy(to, &t.low[l], 8);
		memcpy(to + 8, &t.high[l], 8);
		to += t.length[l];
	}
	return to;
}
