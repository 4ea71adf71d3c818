/* comm_sparse_data.c — computes the sparse data of each rank, and the expected sums. */
#include <math.h>
#include <string.h>

#include "cli/comm/sparse/comm_sparse.h"

/* Mix the bits of x, as the random number generator SplitMix64 does. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Return the value of element i: a number from -4 to 4 in a block that is not zero, else 0. */
static int value_at(const struct sparse_data *d, int rank, size_t i)
{
	const uint64_t stream = mix(d->seed * GPUL_COMM_MAX_RANKS + (uint64_t)rank);
	const uint64_t block = mix(stream ^ i / d->block), element = mix(block + i);
	const int magnitude = 1 + (int)(element % 4);

	if ((double)(block >> 11) * 0x1p-53 * 100 >= d->percent)
		return 0;
	return element >> 63 ? -magnitude : magnitude;
}

/* Convert x to f16; its absolute value must be 0, or from 2^-14 to 65504. */
static uint16_t half_of(double x)
{
	int exponent;
	const double mantissa = frexp(fabs(x), &exponent);
	const int bits = ((exponent + 14) << 10) + (int)rint(ldexp(mantissa, 11)) - 1024;

	return (uint16_t)(x < 0 ? bits | 0x8000 : x > 0 ? bits : 0);
}

/* Return the bits of sum / n in a type; the result is exact, or rounded once. */
static uint64_t bits_of(gpul_comm_dtype dtype, int sum, int n)
{
	const float f = (float)sum / (float)n;
	const double x = (double)sum / n;
	uint32_t word;
	uint64_t bits = 0;

	switch (dtype) {
	case GPUL_COMM_F16:
		return half_of((double)f);
	case GPUL_COMM_BF16:
		memcpy(&word, &f, sizeof word);
		return (word + 0x7fff + (word >> 16 & 1)) >> 16;
	case GPUL_COMM_F32:
		memcpy(&bits, &f, sizeof f);
		return bits;
	case GPUL_COMM_F64:
		memcpy(&bits, &x, sizeof x);
		return bits;
	case GPUL_COMM_U8:
		return (uint64_t)((uint8_t)sum / n);
	default:
		return (uint32_t)(sum / n);
	}
}

void sparse_data_fill(const struct sparse_data *d, int rank, size_t first, size_t n, void *out)
{
	const size_t bytes = gpul_comm_dtype_bytes(d->dtype);

	for (size_t i = 0; i < n; i++) {
		const uint64_t bits = bits_of(d->dtype, value_at(d, rank, first + i), 1);

		memcpy((unsigned char *)out + i * bytes, &bits, bytes);
	}
}

uint64_t sparse_data_check(const struct sparse_data *d, size_t first, size_t n, const void *got)
{
	const size_t bytes = gpul_comm_dtype_bytes(d->dtype);
	uint64_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t bits;
		int sum = 0;

		for (int r = 0; r < d->n_ranks; r++)
			sum += value_at(d, r, first + i);
		bits = bits_of(d->dtype, sum, d->op == GPUL_COMM_AVG ? d->n_ranks : 1);
		wrong += memcmp((const unsigned char *)got + i * bytes, &bits, bytes) != 0;
	}
	return wrong;
}
