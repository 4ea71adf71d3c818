/* texel.c — converts elements of textures from and to the 32-bit components of instructions. */
#include "softcuda/exec/texture/texture_internal.h"

#include <math.h>
#include <string.h>

unsigned gpul_channel_bytes(unsigned channel)
{
	static const uint8_t bytes[] = {
		[CHANNEL_U8] = 1,  [CHANNEL_S8] = 1,  [CHANNEL_U16] = 2, [CHANNEL_S16] = 2,
		[CHANNEL_F16] = 2, [CHANNEL_U32] = 4, [CHANNEL_S32] = 4, [CHANNEL_F32] = 4,
	};

	return bytes[channel];
}

static float float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

static uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits;
}

float gpul_half_to_float(uint16_t h)
{
	const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;

	if (exponent == 31)
		return float_of(sign | 0x7f800000 | fraction << 13);
	if (exponent)
		return float_of(sign | (exponent + 112) << 23 | fraction << 13);
	return float_of(sign | bits_of((float)fraction * 0x1p-24f));
}

/* Rounds to the nearest, ties to even. */
uint16_t gpul_float_to_half(float f)
{
	const uint32_t bits = bits_of(f), magnitude = bits & 0x7fffffff;
	const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);

	if (magnitude > 0x7f800000)
		return 0x7fff;
	if (magnitude >= 0x477ff000)
		return sign | 0x7c00;
	if (magnitude < 0x38800000)  /* a subnormal half: a multiple of 2^-24 */
		return (uint16_t)(sign | (uint16_t)lrintf(float_of(magnitude) * 0x1p24f));
	return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

/* IEC 61966-2-1, from 0 to 1. */
static float linear_of_srgb(float x)
{
	return x <= 0.04045f ? x / 12.92f : (float)pow((x + 0.055) / 1.055, 2.4);
}

/* One channel as a float; signed integers reach -1 twice. */
static float float_channel(const struct texture *t, const uint8_t *from, unsigned channel)
{
	uint32_t word = 0;
	float f;

	memcpy(&word, from, gpul_channel_bytes(t->channel));
	switch (t->channel) {
	case CHANNEL_U8:
		f = (float)word / 255.0f;
		return t->srgb && channel < 3 ? linear_of_srgb(f) : f;
	case CHANNEL_U16:
		return (float)word / 65535.0f;
	case CHANNEL_S8:
		f = (float)(int8_t)word / 127.0f;
		return f < -1 ? -1 : f;
	case CHANNEL_S16:
		f = (float)(int16_t)word / 32767.0f;
		return f < -1 ? -1 : f;
	case CHANNEL_F16:
		return gpul_half_to_float((uint16_t)word);
	default:
		return float_of(word);
	}
}

static uint32_t integer_channel(const struct texture *t, const uint8_t *from)
{
	uint32_t word = 0;

	memcpy(&word, from, gpul_channel_bytes(t->channel));
	if (t->channel == CHANNEL_S8)
		return (uint32_t)(int8_t)word;
	return t->channel == CHANNEL_S16 ? (uint32_t)(int16_t)word : word;
}

void gpul_texel_decode(const struct texture *t, const uint8_t *from, uint32_t out[4])
{
	const unsigned bytes = gpul_channel_bytes(t->channel);

	for (unsigned k = 0; k < 4; k++) {
		if (k < t->n_channels)
			out[k] = t->read_integer ? integer_channel(t, from + k * bytes) : bits_of(float_channel(t, from + k * bytes, k));
		else
			out[k] = k < 3 ? 0 : t->read_integer ? 1 : 0x3f800000;
	}
}

void gpul_texel_encode(const struct texture *t, const uint32_t in[4], uint8_t *to)
{
	const unsigned bytes = gpul_channel_bytes(t->channel);

	for (unsigned k = 0; k < t->n_channels; k++) {
		const uint32_t word = t->channel == CHANNEL_F16 ? gpul_float_to_half(float_of(in[k])) : in[k];

		memcpy(to + k * bytes, &word, bytes);  /* little-endian: the low bytes */
	}
}
