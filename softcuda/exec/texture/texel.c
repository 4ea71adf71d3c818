/* texel.c — converts elements of textures to the 32-bit components that instructions load, and back. */
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

/* Round to the nearest f16 value, ties to even. */
uint16_t gpul_float_to_half(float f)
{
	const uint32_t bits = bits_of(f), magnitude = bits & 0x7fffffff;
	const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);

	if (magnitude > 0x7f800000)
		return 0x7fff;
	if (magnitude >= 0x477ff000)
		return sign | 0x7c00;
	if (magnitude < 0x38800000) /* the result is a subnormal f16 number, a multiple of 2^-24 */
		return (uint16_t)(sign | (uint16_t)lrintf(float_of(magnitude) * 0x1p24f));
	return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

/* Convert to f16, rounded towards zero. */
static uint16_t half_toward_zero(float f)
{
	const uint16_t h = gpul_float_to_half(f);

	return fabsf(gpul_half_to_float(h)) > fabsf(f) ? h - 1 : h;
}

/* ---- sRGB: IEC 61966-2-1 ------------------------------------------------------------------------ */

/* The linear value to which an H200 converts each sRGB value: this 8-bit number times 2^-gpul_srgb_bits(value). */
static const uint8_t linear_light[256] = {
	0,   5,   10,  15,  20,  25,  30,  35,  40,  45,  50,  55,  60,  66,  72,  78,  85,  92,  99,  107, 115, 123, 131, 140, 150, 159,
	169, 180, 190, 201, 213, 224, 118, 125, 131, 138, 145, 152, 159, 166, 174, 182, 190, 198, 206, 215, 224, 233, 121, 126, 131, 136,
	141, 146, 151, 156, 162, 168, 173, 179, 185, 191, 197, 204, 105, 108, 112, 115, 118, 122, 125, 129, 133, 136, 140, 144, 148, 152,
	156, 160, 164, 169, 173, 177, 182, 186, 191, 195, 200, 205, 209, 214, 219, 224, 229, 234, 120, 122, 125, 128, 130, 133, 136, 139,
	142, 145, 148, 151, 154, 157, 160, 163, 166, 169, 172, 176, 179, 182, 186, 189, 192, 196, 199, 203, 206, 210, 214, 217, 221, 225,
	229, 232, 236, 240, 244, 248, 126, 128, 130, 132, 134, 136, 138, 141, 143, 145, 147, 149, 152, 154, 156, 158, 161, 163, 165, 168,
	170, 173, 175, 178, 180, 182, 185, 188, 190, 193, 195, 198, 200, 203, 206, 209, 211, 214, 217, 219, 222, 225, 228, 231, 234, 237,
	240, 242, 123, 124, 126, 127, 129, 130, 132, 133, 135, 137, 138, 140, 141, 143, 145, 146, 148, 150, 151, 153, 155, 156, 158, 160,
	161, 163, 165, 167, 169, 170, 172, 174, 176, 178, 179, 181, 183, 185, 187, 189, 191, 193, 195, 197, 199, 201, 203, 205, 207, 209,
	211, 213, 215, 217, 219, 221, 223, 225, 227, 229, 232, 234, 236, 238, 120, 121, 122, 123, 125, 126, 127, 128,
};

unsigned gpul_srgb_bits(uint8_t channel)
{
	static const uint8_t first[] = { 32, 48, 64, 96, 136, 184, 248 };
	unsigned bits = 14;

	for (unsigned k = 0; k < sizeof first && channel >= first[k]; k++)
		bits--;
	return bits;
}

static float linear_of_srgb(uint8_t channel)
{
	return (float)linear_light[channel] / (float)(1 << gpul_srgb_bits(channel));
}

static float srgb_of_linear(float x)
{
	return x <= 0.0031308f ? x * 12.92f : (float)(1.055 * pow(x, 1 / 2.4) - 0.055);
}

/* With four channels, red, green and blue are sRGB; with one or two channels, only the first is (as on an H200). */
bool gpul_texel_is_srgb(const struct texture *t, unsigned channel)
{
	return t->srgb && channel < (t->n_channels == 4 ? 3 : 1);
}

/* ---- elements of textures -------------------------------------------------------------------------- */

float gpul_texel_float(const struct texture *t, const uint8_t *from, unsigned channel)
{
	const unsigned bytes = gpul_channel_bytes(t->channel);
	uint32_t word = 0;
	float f;

	memcpy(&word, from + channel * bytes, bytes);
	switch (t->channel) {
	case CHANNEL_U8:
		return gpul_texel_is_srgb(t, channel) ? linear_of_srgb((uint8_t)word) : (float)word / 255.0f;
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

uint32_t gpul_texel_integer(const struct texture *t, const uint8_t *from, unsigned channel)
{
	const unsigned bytes = gpul_channel_bytes(t->channel);
	uint32_t word = 0;

	memcpy(&word, from + channel * bytes, bytes);
	if (t->channel == CHANNEL_S8)
		return (uint32_t)(int8_t)word;
	return t->channel == CHANNEL_S16 ? (uint32_t)(int16_t)word : word;
}

void gpul_texel_decode(const struct texture *t, const uint8_t *from, uint32_t out[4])
{
	for (unsigned k = 0; k < 4; k++) {
		if (k < t->n_channels)
			out[k] = t->read_integer ? gpul_texel_integer(t, from, k) : bits_of(gpul_texel_float(t, from, k));
		else
			out[k] = 0;
	}
}

void gpul_texel_encode(const struct texture *t, const uint32_t in[4], uint8_t *to)
{
	const unsigned bytes = gpul_channel_bytes(t->channel);

	for (unsigned k = 0; k < t->n_channels; k++) {
		const uint32_t word = t->channel == CHANNEL_F16 ? gpul_float_to_half(float_of(in[k])) : in[k];

		memcpy(to + k * bytes, &word, bytes); /* copies the low bytes, because the CPU is little-endian */
	}
}

/* Convert a fraction to an integer up to `most`, as an H200 does: truncate it to 4 bits more than the integer has, then round. */
static uint32_t integer_of(float f, double most, double steps)
{
	const double least = most == 255 || most == 65535 ? 0 : -1;
	const double x = f > 1 ? 1 : f > least ? (double)f : least;

	return (uint32_t)(int32_t)floor(floor(x * steps) * most / steps + 0.5);
}

/* Convert the border colour to an element in the texture's format, as an H200 does: its results show the rounding of the format. */
void gpul_texture_set_border(struct texture *t, const uint32_t border[4])
{
	static const uint16_t most[] = { [CHANNEL_U8] = 255, [CHANNEL_U16] = 65535, [CHANNEL_S8] = 127, [CHANNEL_S16] = 32767 };
	const unsigned bytes = gpul_channel_bytes(t->channel);

	for (unsigned k = 0; k < t->n_channels; k++) {
		uint32_t word = border[k];

		if (t->channel == CHANNEL_F16)
			word = half_toward_zero(float_of(word));
		else if (gpul_texel_is_srgb(t, k))
			word = (uint32_t)(srgb_of_linear(fminf(fmaxf(float_of(word), 0), 1)) * 255 + 0.5f);
		else if (bytes < 4 && !t->read_integer)
			word = integer_of(float_of(word), most[t->channel], 16.0 * (most[t->channel] + 1));
		memcpy(t->sampler.border + k * bytes, &word, bytes);
	}
}
