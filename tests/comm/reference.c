/* reference.c — the data of the tests' calls, and their right results. */
#include "tests/comm/reference.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

uint64_t mix(uint64_t seed, uint64_t n)
{
	uint64_t x = seed + (n + 1) * 0x9e3779b97f4a7c15u; /* splitmix64 */

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* The format of a float type: sign, exponent, mantissa. */
struct format {
	unsigned bytes, mantissa_bits, bias;
};

static const struct format formats[GPUL_COMM_N_DTYPES] = {
	[GPUL_COMM_F16] = { 2, 10, 15 },   [GPUL_COMM_BF16] = { 2, 7, 127 }, [GPUL_COMM_F32] = { 4, 23, 127 },
	[GPUL_COMM_F64] = { 8, 52, 1023 }, [GPUL_COMM_I32] = { 4, 0, 0 },    [GPUL_COMM_U8] = { 1, 0, 0 },
};

static uint64_t element_bits(const struct format *f, uint64_t random)
{
	const unsigned sign_at = f->bytes * 8 - 1;

	if (f->mantissa_bits == 0)
		return random;
	return (random >> 63) << sign_at | (uint64_t)(f->bias - 1 + (random >> 62 & 1)) << f->mantissa_bits |
	       (random & ((1ull << f->mantissa_bits) - 1));
}

static double value_of_bits(const struct format *f, uint64_t bits)
{
	const unsigned sign_at = f->bytes * 8 - 1;
	const uint64_t mantissa = bits & ((1ull << f->mantissa_bits) - 1);
	const int exponent = (int)(bits >> f->mantissa_bits & ((1ull << (sign_at - f->mantissa_bits)) - 1));
	const bool subnormal = exponent == 0;
	const double whole = (double)(mantissa | (subnormal ? 0 : 1ull << f->mantissa_bits));
	const double v = ldexp(whole, (subnormal ? 1 : exponent) - (int)f->bias - (int)f->mantissa_bits);

	if (exponent == (1 << (sign_at - f->mantissa_bits)) - 1)
		return NAN; /* infinity is treated as NaN, because no correct result is infinite */
	return bits >> sign_at & 1 ? -v : v;
}

static uint64_t load_bits(const void *data, const struct format *f, size_t i)
{
	uint64_t bits = 0;

	memcpy(&bits, (const unsigned char *)data + i * f->bytes, f->bytes); /* little endian */
	return bits;
}

static uint64_t element_seed(uint64_t seed, int rank)
{
	return mix(seed, 1000 + (uint64_t)rank);
}

void fill_elements(void *to, gpul_comm_dtype dtype, uint64_t seed, int rank, size_t first, size_t n)
{
	const struct format *f = &formats[dtype];
	const uint64_t own = element_seed(seed, rank);

	for (size_t i = 0; i < n; i++) {
		const uint64_t bits = element_bits(f, mix(own, first + i));

		memcpy((unsigned char *)to + i * f->bytes, &bits, f->bytes);
	}
}

size_t find_other_element(const void *got, gpul_comm_dtype dtype, uint64_t seed, int rank, size_t first, size_t n)
{
	const struct format *f = &formats[dtype];
	const uint64_t own = element_seed(seed, rank);

	for (size_t i = 0; i < n; i++) {
		const uint64_t bits = element_bits(f, mix(own, first + i));
		const unsigned char *at = (const unsigned char *)got + i * f->bytes;

		if (memcmp(at, &bits, f->bytes) != 0)
			return i;
	}
	return n;
}

/* Integers wrap after each operation, so the order does not matter.  AVG divides the wrapped sum. */
static bool integer_is_right(const struct format *f, gpul_comm_op op, uint64_t got, const uint64_t *random, int n_ranks)
{
	const uint64_t mask = (1ull << f->bytes * 8) - 1;
	int64_t result = 0;

	for (int r = 0; r < n_ranks; r++) {
		const int64_t x = f->bytes == 4 ? (int32_t)random[r] : (int64_t)(random[r] & mask);

		if (r == 0)
			result = x;
		else if (op == GPUL_COMM_PROD)
			result = (int64_t)((uint64_t)result * (uint64_t)x);
		else if (op == GPUL_COMM_MIN)
			result = x < result ? x : result;
		else if (op == GPUL_COMM_MAX)
			result = x > result ? x : result;
		else
			result += x;
	}
	result = f->bytes == 4 ? (int32_t)(uint64_t)result : (int64_t)((uint64_t)result & mask);
	if (op == GPUL_COMM_AVG)
		result /= n_ranks;
	return got == ((uint64_t)result & mask);
}

static bool float_is_right(const struct format *f, gpul_comm_op op, uint64_t got, const uint64_t *random, int n_ranks)
{
	const double unit = ldexp(1, -(int)f->mantissa_bits - 1), value = value_of_bits(f, got);
	long double result = 0, magnitude = 0, bound;

	for (int r = 0; r < n_ranks; r++) {
		const double x = value_of_bits(f, element_bits(f, random[r]));

		if (r == 0)
			result = x;
		else if (op == GPUL_COMM_PROD)
			result *= x;
		else if (op == GPUL_COMM_MIN)
			result = x < (double)result ? x : result;
		else if (op == GPUL_COMM_MAX)
			result = x > (double)result ? x : result;
		else
			result += x;
		magnitude += fabs(x);
	}
	if (op == GPUL_COMM_MIN || op == GPUL_COMM_MAX)
		return value == (double)result;
	if (op == GPUL_COMM_PROD)
		magnitude = fabsl(result);
	/* There are n - 1 roundings.  Each may enlarge the values that are rounded later, which the factor 1.05 allows for: 8 roundings of
	 * bf16, whose unit is 2^-8, enlarge them by 3 %. */
	bound = 1.05L * (n_ranks - 1) * unit * magnitude;
	if (op == GPUL_COMM_AVG) {
		result /= n_ranks;
		bound = bound / n_ranks + 1.05L * unit * (fabsl(result) + bound / n_ranks);
	}
	return fabsl(value - result) <= bound;
}

size_t find_wrong_result(const void *got, gpul_comm_dtype dtype, gpul_comm_op op, uint64_t seed, int n_ranks, size_t first, size_t n)
{
	const struct format *f = &formats[dtype];
	uint64_t own[64], random[64];

	for (int r = 0; r < n_ranks; r++)
		own[r] = element_seed(seed, r);
	for (size_t i = 0; i < n; i++) {
		for (int r = 0; r < n_ranks; r++)
			random[r] = mix(own[r], first + i);
		if (!(f->mantissa_bits ? float_is_right : integer_is_right)(f, op, load_bits(got, f, i), random, n_ranks))
			return i;
	}
	return n;
}

uint64_t hash_bits(const void *data, size_t n_bytes)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < n_bytes; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
	return hash;
}
