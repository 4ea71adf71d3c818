/* filter.c — the weighted sum of texels, rounded as an H200 rounds it.
 *
 * NVIDIA documents that weights have 8 fraction bits, but nothing about the sums. The rules below were inferred from an H200's
 * results, and reproduce them bit by bit (tests/gpu/textures/textures.py, docs/measured.md). */
#include "softcuda/exec/texture/texture_internal.h"

#include <math.h>
#include <string.h>

/* number of bits that a sum of f32 or f16 keeps, counted from the highest bit of the largest texel; lower bits of other texels are lost */
enum { FLOAT_BITS = 28, HALF_BITS = 15 };

/* ---- floats: f32, f16, and linear light converted from sRGB ------------------------------------ */

/* Return 2^e, which must be a normal double. */
static double power_of_two(int e)
{
	const uint64_t bits = (uint64_t)(e + 1023) << 52;
	double d;

	memcpy(&d, &bits, 8);
	return d;
}

/* Return the exponent e with 2^(e-1) <= |f| < 2^e; for a subnormal float, a lower number is returned.  f is finite. */
static int exponent_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return (int)(bits >> 23 & 255) - 126;
}

/* Return the exponent of a texel's unit, the lowest bit that counts: the texel is a multiple of 2^unit.  For f16 and f32, the unit
 * depends on the value; for sRGB, a table contains it. */
static int unit_of(const struct texture *t, const struct tap *tap, unsigned channel, float value)
{
	if (t->channel == CHANNEL_U8)
		return -(int)gpul_srgb_bits(tap->at[channel]);
	return exponent_of(value) - (t->channel == CHANNEL_F16 ? HALF_BITS : FLOAT_BITS);
}

/* Return the sum of a group's texels (see struct tap), each truncated to a multiple of the largest unit of the group. */
static double sum_of_group(const struct texture *t, const struct taps *taps, const float *value, unsigned channel, unsigned group)
{
	int64_t sum = 0;
	int most = -200;
	double scale;

	for (unsigned k = 0; k < taps->n; k++) {
		const int unit = taps->tap[k].group == group ? unit_of(t, &taps->tap[k], channel, value[k]) : most;

		most = unit > most ? unit : most;
	}
	scale = power_of_two(-most);
	for (unsigned k = 0; k < taps->n; k++)
		if (taps->tap[k].group == group)
			sum += taps->tap[k].weight * (int64_t)((double)value[k] * scale);
	return (double)sum * power_of_two(most - 8);
}

/* Round to the nearest float, ties away from 0. */
static float float_away(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, 8);
	bits += (bits & 0x1fffffff) == 0x10000000;
	memcpy(&d, &bits, 8);
	return (float)d;
}

/* Round to the nearest f16 value, ties away from 0. */
static float half_away(double d)
{
	const double magnitude = fabs(d);
	double unit;
	int e;

	frexp(magnitude, &e);
	unit = power_of_two((e < -13 ? -13 : e) - 11);
	return (float)copysign((double)(int64_t)(magnitude / unit + 0.5) * unit, d);
}

static float filter_floats(const struct texture *t, const struct taps *taps, unsigned channel)
{
	float value[MAX_TAPS];
	bool finite = true;
	double sum = 0;

	for (unsigned k = 0; k < taps->n; k++) {
		value[k] = gpul_texel_float(t, taps->tap[k].at, channel);
		finite &= (bool)isfinite(value[k]);
	}
	if (taps->n == 1)
		return value[0];
	if (!finite) {
		for (unsigned k = 0; k < taps->n; k++)
			sum += taps->tap[k].weight * (double)value[k];
		return (float)sum;
	}
	for (unsigned group = 0; group < taps->n_groups; group++)
		sum += sum_of_group(t, taps, value, channel, group);
	return t->channel == CHANNEL_F32 ? float_away(sum) : half_away(sum);
}

/* ---- texels with 8-bit or 16-bit integers -------------------------------------------------------- */

/* Convert a sum of 8-bit or 16-bit texels, with weights that add up to 256, to a fraction whose denominator is 65535 or 32767.  Sums
 * of 8-bit texels are extended to 16 bits before rounding. */
static float fraction(int64_t sum, unsigned channel)
{
	switch (channel) {
	case CHANNEL_U8:
		return (float)(sum + ((sum + 128) >> 8)) / 65535.0f;
	case CHANNEL_U16:
		return (float)((sum + 128) >> 8) / 65535.0f;
	case CHANNEL_S8:
		sum += (sum + 16 * (sum >> 12) + 64) >> 7;
		break;
	default:
		sum = (sum + 128) >> 8;
	}
	return (float)(sum < -32767 ? -32767 : sum) / 32767.0f;
}

static int64_t sum_of_integers(const struct texture *t, const struct taps *taps, unsigned channel)
{
	const bool is_signed = t->channel == CHANNEL_S8 || t->channel == CHANNEL_S16 || t->channel == CHANNEL_S32;
	int64_t sum = 0;

	for (unsigned k = 0; k < taps->n; k++) {
		const uint32_t v = gpul_texel_integer(t, taps->tap[k].at, channel);

		sum += taps->tap[k].weight * (is_signed ? (int64_t)(int32_t)v : (int64_t)v);
	}
	return sum;
}

static uint32_t filter_channel(const struct texture *t, const struct taps *taps, unsigned channel)
{
	uint32_t bits;
	float result;

	if (t->channel == CHANNEL_F16 || t->channel == CHANNEL_F32 || gpul_texel_is_srgb(t, channel)) {
		result = filter_floats(t, taps, channel);
	} else {
		const int64_t sum = sum_of_integers(t, taps, channel);

		if (t->read_integer)
			return (uint32_t)((sum + (gpul_channel_bytes(t->channel) < 4 ? 128 : 0)) >> 8);
		result = fraction(sum, t->channel);
	}
	memcpy(&bits, &result, 4);
	return bits;
}

void gpul_texture_filter(const struct texture *t, const struct taps *taps, uint32_t out[4])
{
	for (unsigned k = 0; k < 4; k++)
		out[k] = k < t->n_channels ? filter_channel(t, taps, k) : 0;
}
