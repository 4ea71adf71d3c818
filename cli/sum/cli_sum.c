/* cli_sum.c — computes the sum on the CPU, with which the GPU's sum is compared.
 *
 * The loops follow the drawing in cli_sum.h.  The compiler vectorises each loop over columns; without -ffast-math it cannot
 * change the order of floating-point additions. */
#include "cli/sum/cli_sum.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

gpul_type sum_type(gpul_type t)
{
	return value_type_is_float(t) ? GPUL_F64 : value_type_is_signed(t) ? GPUL_I64 : GPUL_U64;
}

size_t sum_chunks(gpul_type t, size_t count)
{
	size_t per_chunk = SUM_CHUNK_BYTES / gpul_type_bytes(t);

	return count / per_chunk + (count % per_chunk != 0);
}

/* ---- 16-bit floats ------------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

static uint32_t bits_of_float(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return bits;
}

/* Shift fraction and exponent to their positions in a float; adding 112 to the exponent changes the bias from 15 to 127 (twice for infinity
 * and NaN).  An exact subtraction normalises a subnormal number.  Masks select the result, because branches would prevent vectorisation. */
static double from_f16(uint16_t h)
{
	const uint32_t moved = (h & 0x7fffu) << 13, rebias = 112u << 23, smallest = 113u << 23;
	const uint32_t subnormal = 0u - ((h & 0x7c00u) == 0), endless = 0u - ((h & 0x7c00u) == 0x7c00u);
	const uint32_t normal = moved + rebias + (endless & rebias);
	const uint32_t small = bits_of_float(float_of_bits(moved | smallest) - float_of_bits(smallest));

	return (double)float_of_bits((subnormal & small) | (~subnormal & normal) | (h & 0x8000u) << 16);
}

static double from_bf16(uint16_t h)
{
	return (double)float_of_bits((uint32_t)h << 16);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* One row of elements, widened to 64 bits.  Integers wrap around, so signed and unsigned sums have the same bits. */
union row {
	double f[SUM_ROW_BYTES / sizeof(uint16_t)];
	uint64_t i[SUM_ROW_BYTES];
};

/* Defines a function that widens and adds two consecutive rows of n elements. */
#define ADD_TWO(name, type, member, widen) \
	static void name(const void *rows, size_t n, union row *out) \
	{ \
		const type *a = rows, *b = a + n; \
		for (size_t c = 0; c < n; c++) \
			out->member[c] = widen(a[c]) + widen(b[c]); \
	}
ADD_TWO(add_i8, int8_t, i, (uint64_t))
ADD_TWO(add_u8, uint8_t, i, (uint64_t))
ADD_TWO(add_i16, int16_t, i, (uint64_t))
ADD_TWO(add_u16, uint16_t, i, (uint64_t))
ADD_TWO(add_i32, int32_t, i, (uint64_t))
ADD_TWO(add_u32, uint32_t, i, (uint64_t))
ADD_TWO(add_64, uint64_t, i, (uint64_t))
ADD_TWO(add_f16, uint16_t, f, from_f16)
ADD_TWO(add_bf16, uint16_t, f, from_bf16)
ADD_TWO(add_f32, float, f, (double))
ADD_TWO(add_f64, double, f, (double))

static void (*const add_two[GPUL_N_TYPES])(const void *rows, size_t n, union row *out) = {
	[GPUL_I8] = add_i8,  [GPUL_U8] = add_u8,  [GPUL_I16] = add_i16, [GPUL_U16] = add_u16,   [GPUL_I32] = add_i32, [GPUL_U32] = add_u32,
	[GPUL_I64] = add_64, [GPUL_U64] = add_64, [GPUL_F16] = add_f16, [GPUL_BF16] = add_bf16, [GPUL_F32] = add_f32, [GPUL_F64] = add_f64,
};

/* ---- chunks -------------------------------------------------------------------------------- */

/* height of the tree in which the SUM_ROWS rows of a chunk are added: pairs of rows, then pairs of sums of 2, 4 and 8 rows */
enum { LEVELS = 4 };
static_assert(1 << LEVELS == SUM_ROWS, "rows are added as pairs of pairs");

/* Add up n_rows rows into room[0]; the following elements of room hold intermediate sums. */
static void add_rows(gpul_type t, const unsigned char *rows, unsigned n_rows, union row *room)
{
	const size_t n = SUM_ROW_BYTES / gpul_type_bytes(t);
	const unsigned half = n_rows / 2;

	if (half == 1) {
		add_two[t](rows, n, room);
		return;
	}
	add_rows(t, rows, half, room);
	add_rows(t, rows + (size_t)half * SUM_ROW_BYTES, half, room + 1);
	if (value_type_is_float(t))
		for (size_t c = 0; c < n; c++)
			room[0].f[c] += room[1].f[c];
	else
		for (size_t c = 0; c < n; c++)
			room[0].i[c] += room[1].i[c];
}

static void add_chunk(gpul_type t, const void *chunk, union row *room, void *out)
{
	size_t n = SUM_ROW_BYTES / gpul_type_bytes(t);

	add_rows(t, chunk, SUM_ROWS, room);
	while (n /= 2)
		if (value_type_is_float(t))
			for (size_t c = 0; c < n; c++)
				room->f[c] = room->f[2 * c] + room->f[2 * c + 1];
		else
			for (size_t c = 0; c < n; c++)
				room->i[c] = room->i[2 * c] + room->i[2 * c + 1];
	memcpy(out, room, 8);
}

/* Perform one step: write the sum of each chunk to out, which may be the same memory as data. */
static void add_chunks(gpul_type t, const unsigned char *data, size_t count, union row *room, unsigned char *out)
{
	size_t bytes = count * gpul_type_bytes(t);

	for (; bytes >= SUM_CHUNK_BYTES; bytes -= SUM_CHUNK_BYTES, data += SUM_CHUNK_BYTES, out += 8)
		add_chunk(t, data, room, out);
	if (bytes) { /* copy the incomplete last chunk to the memory after the LEVELS rows, and pad it with zeros */
		unsigned char *last = (unsigned char *)(room + LEVELS);

		memcpy(last, data, bytes);
		memset(last + bytes, 0, SUM_CHUNK_BYTES - bytes);
		add_chunk(t, last, room, out);
	}
}

gpul_status sum_on_cpu(gpul_type t, const void *data, size_t count, struct sum *out, gpul_error *err)
{
	const size_t n_sums = sum_chunks(t, count);
	union row *room = malloc(LEVELS * sizeof *room + SUM_CHUNK_BYTES);
	unsigned char *sums = malloc((n_sums + 1) * 8);
	gpul_status st = GPUL_OK;

	if (!room || !sums) {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the sums of %zu chunks", n_sums);
		goto free_both;
	}
	add_chunks(t, data, count, room, sums);
	*out = (struct sum){ .type = sum_type(t) };
	for (size_t n = n_sums; n > 1; n = sum_chunks(out->type, n))
		add_chunks(out->type, sums, n, room, sums);
	memcpy(out->bytes, sums, sizeof out->bytes);
free_both:
	free(sums);
	free(room);
	return st;
}

/* ---- sums ---------------------------------------------------------------------------------- */

bool sum_equal(const struct sum *a, const struct sum *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == GPUL_F64 && isnan(value_load(GPUL_F64, a->bytes).f))
		return isnan(value_load(GPUL_F64, b->bytes).f);
	return !memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

const char *sum_print(const struct sum *s, char buf[VALUE_TEXT_BYTES])
{
	return value_print(s->type, s->bytes, buf);
}
