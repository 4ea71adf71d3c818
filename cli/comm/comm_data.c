/* comm_data.c — generates test data, computes the expected results, and compares them with the actual ones. */
#include "cli/comm/comm_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/calls.h"

/* ---- floats ------------------------------------------------------------------------------------------------- */

struct float_form {
	int mantissa_bits;        /* number of stored bits, without the hidden bit */
	int bias, least_exponent; /* least_exponent: log2 of the smallest subnormal number */
};

/* Return the format of a float type; NULL: the type is not a float. */
static const struct float_form *form_of(gpul_comm_dtype dtype)
{
	static const struct float_form forms[] = {
		[GPUL_COMM_F16] = { 10, 15, -24 },
		[GPUL_COMM_BF16] = { 7, 127, -133 },
		[GPUL_COMM_F32] = { 23, 127, -149 },
		[GPUL_COMM_F64] = { 52, 1023, -1074 },
	};

	return (unsigned)dtype <= GPUL_COMM_F64 ? &forms[dtype] : NULL;
}

/* Return the value of an f16.  Its exponent and mantissa, moved to those of an f32, give the value times 2^-112.  Infinities and NaNs
 * become numbers of at least 2^16, larger than every f16: inputs contain none, and in results they count as wrong. */
static double half_value(uint16_t half)
{
	const uint32_t bits = (uint32_t)(half & 0x7fff) << 13;
	float magnitude;

	memcpy(&magnitude, &bits, sizeof magnitude);
	magnitude *= 0x1p112f;
	return (double)(half >> 15 ? -magnitude : magnitude);
}

static double value_at(gpul_comm_dtype dtype, const unsigned char *at)
{
	uint16_t half;
	uint32_t bits;
	float f;
	double d;

	switch (dtype) {
	case GPUL_COMM_F16:
		memcpy(&half, at, sizeof half);
		return half_value(half);
	case GPUL_COMM_BF16:
		memcpy(&half, at, sizeof half);
		bits = (uint32_t)half << 16;
		memcpy(&f, &bits, sizeof f);
		return (double)f;
	case GPUL_COMM_F32:
		memcpy(&f, at, sizeof f);
		return (double)f;
	default:
		memcpy(&d, at, sizeof d);
		return d;
	}
}

/* ---- inputs --------------------------------------------------------------------------------------------------- */

/* SplitMix64: a bijection of 64 bits that passes statistical tests. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Return a random float: for sums from +-[1/8, 1), so that sums do not overflow and terms often cancel; for products from +-[3/4,
 * 3/2), so that 32 factors neither overflow nor underflow in f16. */
static uint64_t random_float(const struct float_form *form, bool product, uint64_t random)
{
	const uint64_t mantissa = random & ((UINT64_C(1) << form->mantissa_bits) - 1), sign = random >> 63;
	const int below = product ? (int)(mantissa >> (form->mantissa_bits - 1)) : 1 + (int)((random >> 60 & 7) % 3);
	const int exponent_bits = form->bias > 1000 ? 11 : form->bias > 100 ? 8 : 5;

	return (sign << exponent_bits | (uint64_t)(form->bias - below)) << form->mantissa_bits | mantissa;
}

static bool reduces(const struct comm_data_desc *d)
{
	return gpul_comm_call_info(d->call)->reduces;
}

static void generate(const struct comm_data_desc *d, int rank, size_t n, unsigned char *out)
{
	const struct float_form *form = form_of(d->dtype);
	const size_t bytes = gpul_comm_dtype_bytes(d->dtype);
	const bool is_product = d->op == GPUL_COMM_PROD && reduces(d);
	const uint64_t stream = mix(d->seed * GPUL_COMM_MAX_RANKS + (uint64_t)rank);

	for (size_t i = 0; i < n; i++) {
		uint64_t bits = mix(stream + i);

		if (form)
			bits = random_float(form, is_product, bits);
		memcpy(out + i * bytes, &bits, bytes); /* no byte swap, because this CPU is little-endian like the GPU */
	}
}

/* ---- results -------------------------------------------------------------------------------------------------- */

static bool selects(gpul_comm_op op)
{
	return op == GPUL_COMM_MIN || op == GPUL_COMM_MAX;
}

/* For element i, find the rank whose input is the minimum or the maximum. */
static void select_float(const struct comm_data *d, size_t i)
{
	const size_t bytes = d->element_bytes;
	const unsigned char *best = d->inputs[0] + i * bytes;

	for (int r = 1; r < d->desc.n_ranks; r++) {
		const unsigned char *at = d->inputs[r] + i * bytes;
		const double a = value_at(d->desc.dtype, at), b = value_at(d->desc.dtype, best);

		if (d->desc.op == GPUL_COMM_MIN ? a < b : a > b)
			best = at;
	}
	memcpy(d->reduced + i * bytes, best, bytes);
}

/* Compute the sum or product of element i in a wider type, and an error bound for any order of operations in the narrow type. */
static void combine_floats(const struct comm_data *d, size_t i)
{
	const struct float_form *form = form_of(d->desc.dtype);
	const int n = d->desc.n_ranks;
	/* 1 % more than u, because AVG of f16 and bf16 rounds twice, and the bound itself is rounded. */
	const long double u = ldexpl(1.01L, -form->mantissa_bits - 1), gamma = (n - 1) * u / (1 - (n - 1) * u);
	const long double least = ldexpl(1, form->least_exponent);
	long double sum = 0, magnitude = 0, product = 1, bound;

	for (int r = 0; r < n; r++) {
		const long double x = (long double)value_at(d->desc.dtype, d->inputs[r] + i * d->element_bytes);

		sum += x;
		magnitude += fabsl(x);
		product *= x;
	}
	if (d->desc.op == GPUL_COMM_PROD) {
		d->value[i] = (double)product;
		d->bound[i] = (double)(gamma * fabsl(product) + n * least);
		return;
	}
	bound = gamma * magnitude;
	if (d->desc.op == GPUL_COMM_AVG) {
		sum /= n;
		bound = bound / n * (1 + u) + u * fabsl(sum) + least;
	}
	d->value[i] = (double)sum;
	d->bound[i] = (double)bound + fabs(d->value[i]) * 0x1p-52; /* also allow for the rounding of the conversion to double */
}

/* Combine integers, which wrap around on overflow.  The result is computed in 32 bits, of which a u8 keeps the lowest 8. */
static void combine_integers(const struct comm_data *d, size_t i)
{
	const bool is_signed = d->desc.dtype == GPUL_COMM_I32;
	const size_t bytes = d->element_bytes;
	uint32_t result = 0;

	for (int r = 0; r < d->desc.n_ranks; r++) {
		uint32_t x = 0;

		memcpy(&x, d->inputs[r] + i * bytes, bytes);
		if (r == 0)
			result = x;
		else if (d->desc.op == GPUL_COMM_PROD)
			result *= x;
		else if (!selects(d->desc.op))
			result += x;
		else if ((is_signed ? (int32_t)x < (int32_t)result : x < result) == (d->desc.op == GPUL_COMM_MIN))
			result = x;
	}
	if (d->desc.op == GPUL_COMM_AVG && is_signed)
		result = (uint32_t)((int32_t)result / d->desc.n_ranks);
	else if (d->desc.op == GPUL_COMM_AVG)
		result = (result & 0xff) / (uint32_t)d->desc.n_ranks;
	memcpy(d->reduced + i * bytes, &result, bytes);
}

static void reduce(const struct comm_data *d)
{
	for (size_t i = 0; i < d->period; i++)
		if (!form_of(d->desc.dtype))
			combine_integers(d, i);
		else if (selects(d->desc.op))
			select_float(d, i);
		else
			combine_floats(d, i);
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

/* Return the number of elements of a send buffer. */
static size_t n_sent(const struct comm_data_desc *d)
{
	return gpul_comm_call_info(d->call)->sends_parts ? d->count * (size_t)d->n_ranks : d->count;
}

static bool allocate(struct comm_data *d)
{
	const size_t bytes = d->period * d->element_bytes;
	const bool exact = !form_of(d->desc.dtype) || selects(d->desc.op);
	bool ok = true;

	for (int r = 0; r < d->desc.n_ranks; r++)
		ok = (d->inputs[r] = malloc(bytes)) && ok;
	if (reduces(&d->desc) && exact)
		ok = (d->reduced = malloc(bytes)) && ok;
	if (reduces(&d->desc) && !exact) {
		d->value = malloc(2 * d->period * sizeof *d->value);
		d->bound = d->value ? d->value + d->period : NULL;
		ok = d->value && ok;
	}
	return ok;
}

gpul_status comm_data_create(const struct comm_data_desc *desc, struct comm_data *out, gpul_error *err)
{
	const size_t n = n_sent(desc);

	*out = (struct comm_data){ .desc = *desc,
				   .element_bytes = gpul_comm_dtype_bytes(desc->dtype),
				   .period = n < COMM_DATA_PERIOD ? n : COMM_DATA_PERIOD };
	if (!allocate(out)) {
		comm_data_free(out);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to check the data");
	}
	for (int r = 0; r < desc->n_ranks; r++)
		generate(desc, r, out->period, out->inputs[r]);
	if (reduces(desc))
		reduce(out);
	return GPUL_OK;
}

void comm_data_free(struct comm_data *d)
{
	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++)
		free(d->inputs[r]);
	free(d->reduced);
	free(d->value);
	*d = (struct comm_data){ 0 };
}

void comm_data_fill(const struct comm_data *d, size_t first, size_t n, void *out)
{
	unsigned char *to = out;

	while (n) {
		const size_t at = first % d->period, run = n < d->period - at ? n : d->period - at;

		memcpy(to, d->inputs[d->desc.rank] + at * d->element_bytes, run * d->element_bytes);
		to += run * d->element_bytes;
		first += run;
		n -= run;
	}
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

static uint64_t count_different(const unsigned char *a, const unsigned char *b, size_t n, size_t element_bytes)
{
	uint64_t wrong = 0;

	if (memcmp(a, b, n * element_bytes) == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		wrong += memcmp(a + i * element_bytes, b + i * element_bytes, element_bytes) != 0;
	return wrong;
}

static uint64_t count_outside(const struct comm_data *d, size_t at, size_t n, const unsigned char *got)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		const double x = value_at(d->desc.dtype, got + i * d->element_bytes);

		wrong += !(fabs(x - d->value[at + i]) <= d->bound[at + i]); /* written so that a NaN counts as wrong */
	}
	return wrong;
}

/* Find the data that part `part` of the recv buffer must contain: the input of a rank, or the reduced data, from element *at. */
static const unsigned char *source_of(const struct comm_data *d, size_t part, size_t *at)
{
	const struct comm_data_desc *desc = &d->desc;
	const struct gpul_comm_call_info *info = gpul_comm_call_info(desc->call);

	*at = info->sends_parts ? (size_t)desc->rank * desc->count : 0;
	if (info->reduces)
		return d->reduced;
	if (info->receives_parts)
		return d->inputs[part];
	return d->inputs[info->has_root ? desc->root : (desc->rank + desc->n_ranks - 1) % desc->n_ranks];
}

uint64_t comm_data_check(const struct comm_data *d, size_t first, size_t n, const void *got)
{
	const unsigned char *from = got;
	uint64_t wrong = 0;

	while (n) {
		const size_t in_part = first % d->desc.count;
		size_t at, run = n < d->desc.count - in_part ? n : d->desc.count - in_part;
		const unsigned char *expected = source_of(d, first / d->desc.count, &at);

		at = (at + in_part) % d->period;
		run = run < d->period - at ? run : d->period - at;
		wrong += expected ? count_different(expected + at * d->element_bytes, from, run, d->element_bytes)
				  : count_outside(d, at, run, from);
		from += run * d->element_bytes;
		first += run;
		n -= run;
	}
	return wrong;
}

uint64_t comm_data_hash(uint64_t hash, const void *bytes, size_t n_bytes)
{
	const unsigned char *at = bytes;
	uint64_t word;

	for (; n_bytes >= sizeof word; at += sizeof word, n_bytes -= sizeof word) {
		memcpy(&word, at, sizeof word);
		hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
		hash ^= hash >> 32;
	}
	word = n_bytes;
	memcpy(&word, at, n_bytes);
	return n_bytes ? mix(hash ^ word) : hash;
}
