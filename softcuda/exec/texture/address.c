/* address.c — from coordinates to texels: CUDA C++ Programming Guide, Texture Fetching; PTX ISA 9.0, 5.3. */
#include "softcuda/exec/texture/texture_internal.h"

#include <math.h>

/* Far beyond every texture, so that sums cannot overflow; multiples of 1/256 below it are exact in a double. */
#define FAR_AWAY 0x1p40

static int64_t wrap_index(int64_t i, int64_t n)
{
	return i % n < 0 ? i % n + n : i % n;
}

/* 0 1 2 2 1 0 0 1 2 ... */
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
	case ADDRESS_WRAP: return wrap_index(i, n);
	case ADDRESS_MIRROR: return mirror_index(i, n);
	case ADDRESS_CLAMP: return i < 0 ? 0 : n - 1;
	default: return OUTSIDE;
	}
}

/* The coordinate in texels.  A wrapped one is reduced before it is scaled, so that it keeps its precision. */
static double in_texels(float x, uint32_t extent, enum address_mode mode, bool normalised)
{
	double d;

	if (isnan(x))
		return 0;
	if (!normalised)
		return x > FAR_AWAY ? FAR_AWAY : x < -FAR_AWAY ? -FAR_AWAY : (double)x;
	if (mode == ADDRESS_WRAP)
		x = isinf(x) ? 0 : x - floorf(x);
	else if (mode == ADDRESS_MIRROR)
		x = isinf(x) ? 0 : x - 2 * floorf(x / 2);
	d = (double)(x * (float)extent);
	return d > FAR_AWAY ? FAR_AWAY : d < -FAR_AWAY ? -FAR_AWAY : d;
}

struct axis gpul_texture_axis(float x, uint32_t extent, enum address_mode mode, bool normalised, bool linear, int32_t offset)
{
	struct axis a = { .weight = 0 };
	int64_t fixed, first;
	double texels;

	if (!normalised && (mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR))
		mode = ADDRESS_CLAMP;  /* CUDA Driver API, cuTexObjectCreate */
	texels = in_texels(x, extent, mode, normalised);
	if (!linear) {
		first = (int64_t)floor(texels) + offset;
		a.index[0] = a.index[1] = place_index(first, extent, mode);
		return a;
	}
	fixed = (int64_t)floor(texels * 256 + 0.5) - 128;
	first = (fixed >> 8) + offset;
	a.weight = (uint32_t)(fixed & 255);
	a.index[0] = place_index(first, extent, mode);
	a.index[1] = place_index(first + 1, extent, mode);
	return a;
}

unsigned gpul_cube_face(const float d[3], float in_face[2])
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
	in_face[0] = (s / major + 1) / 2;
	in_face[1] = (t / major + 1) / 2;
	return face;
}
