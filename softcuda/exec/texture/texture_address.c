/* texture_address.c — converts texture coordinates to indices of texels: CUDA C++ Programming Guide, Texture Fetching; PTX ISA 9.0, 5.3. */
#include "softcuda/exec/texture/texture_internal.h"

#include <math.h>

/* Coordinates are clamped to this: it is beyond every texture, sums cannot overflow, and a double can hold multiples of 1/256. */
#define FAR_AWAY 0x1p40

/* Return floor(d) for |d| < 2^63, without floor(), which is a call of the C library when the code is compiled for older CPUs. */
static int64_t floor_of(double d)
{
	const int64_t i = (int64_t)d;

	return i - ((double)i > d);
}

static int64_t wrap_index(int64_t i, int64_t n)
{
	return i % n < 0 ? i % n + n : i % n;
}

/* Mirror an index i at the edges of n texels, so that for n = 3, i = 0, 1, 2 ... becomes 0 1 2 2 1 0 0 1 2 ... */
static int64_t mirror_index(int64_t i, int64_t n)
{
	const int64_t at = wrap_index(i, 2 * n);

	return at < n ? at : 2 * n - 1 - at;
}

static int64_t place_index(int64_t i, int64_t n, enum address_mode mode)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case ADDRESS_WRAP:
		return wrap_index(i, n);
	case ADDRESS_MIRROR:
		return mirror_index(i, n);
	case ADDRESS_CLAMP:
		return i < 0 ? 0 : n - 1;
	default:
		return OUTSIDE;
	}
}

static double limit(double d, double most)
{
	return isnan(d) ? 0 : d > most ? most : d < -most ? -most : d;
}

/* Convert a coordinate to units of texels, for the nearest texel.  A wrapped or mirrored coordinate is reduced to one period before it is
 * scaled, so that it keeps its precision. */
static double in_texels(float x, uint32_t extent, enum address_mode mode, bool normalised)
{
	if (!normalised)
		return limit((double)x, FAR_AWAY);
	if ((mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR) && !(fabsf(x) < 0x1p40f))
		return 0;
	if (mode == ADDRESS_WRAP)
		x -= (float)floor_of((double)x);
	else if (mode == ADDRESS_MIRROR)
		x -= 2 * (float)floor_of((double)x / 2);
	return limit((double)(x * (float)extent), FAR_AWAY);
}

/* Convert a coordinate to units of 1/256 texel, for a linear filter.  As on an H200, normalised coordinates are truncated to
 * 21 fraction bits. */
static int64_t in_fractions(double x, uint32_t extent, enum address_mode mode, bool normalised)
{
	int64_t fixed;

	if (!normalised)
		return floor_of(limit(x, FAR_AWAY) * 256 + 0.5);
	if (mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR)
		fixed = floor_of(fabs(x) < FAR_AWAY ? x * 0x1p21 : 0) & ((1 << 22) - 1); /* modulo 2, the period of ADDRESS_MIRROR */
	else
		fixed = floor_of(limit(x, 0x1p20) * 0x1p21);
	return (fixed * extent + (1 << 12)) >> 13;
}

struct axis gpul_texture_axis(double x, uint32_t extent, enum address_mode mode, bool normalised, bool linear, int32_t offset)
{
	struct axis a = { .weight = 0 };
	int64_t fixed, first;

	if (!normalised && (mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR))
		mode = ADDRESS_CLAMP; /* as CUDA Driver API, cuTexObjectCreate, specifies */
	if (!linear) {
		first = floor_of(in_texels((float)x, extent, mode, normalised)) + offset;
		a.index[0] = a.index[1] = place_index(first, extent, mode);
		return a;
	}
	fixed = in_fractions(x, extent, mode, normalised) - 128;
	first = (fixed >> 8) + offset;
	a.weight = (uint32_t)(fixed & 255);
	a.index[0] = place_index(first, extent, mode);
	a.index[1] = place_index(first + 1, extent, mode);
	if (mode == ADDRESS_CLAMP && a.index[0] == a.index[1])
		a.weight = 0;
	return a;
}

unsigned gpul_cube_face(const float d[3], double in_face[2])
{
	const float x = fabsf(d[0]), y = fabsf(d[1]), z = fabsf(d[2]);
	float major, s, t;
	unsigned face;

	if (x >= y && x >= z) {
		face = d[0] >= 0 ? 0 : 1;
		major = x, s = d[0] >= 0 ? -d[2] : d[2], t = -d[1];
	} else if (y >= z) {
		face = d[1] >= 0 ? 2 : 3;
		major = y, s = d[0], t = d[1] >= 0 ? d[2] : -d[2];
	} else {
		face = d[2] >= 0 ? 4 : 5;
		major = z, s = d[2] >= 0 ? d[0] : -d[0], t = -d[1];
	}
	in_face[0] = ((double)s / (double)major + 1) / 2;
	in_face[1] = ((double)t / (double)major + 1) / 2;
	return face;
}
