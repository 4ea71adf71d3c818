/* run_texture_warp.c — tex for all 32 lanes together, for common textures: one or two dimensions, one level, no layers.
 *
 *     coordinates ──find_texels()──> offsets of one texel, or of four and their weights ──> results
 *
 * The results are bit-identical to those of texture/sample.c. Texels are read for inactive lanes, too, which is safe because all
 * coordinates select texels of the texture or the border. Only the results of active lanes are written. */
#include "softcuda/exec/run/lanes_internal.h"
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/texture/texture_form_internal.h"

struct texels {                              /* the texels that the coordinates of all lanes select in one dimension */
	int32_t first[LANES], second[LANES]; /* index of a texel; OUTSIDE: the border colour, or 0 for integer coordinates */
	int32_t weight[LANES];               /* weight of the second texel, in 1/256 */
};

struct corner {                /* one of the texels that a lane reads */
	int32_t offset[LANES]; /* offset in bytes from level[0].at; negative: outside of the texture */
	int32_t weight[LANES]; /* weight in 1/256 */
};

/* ---- coordinates (texture/texture_address.c has the rules) ------------------------------------- */

static inline int32_t floor_double(double d)
{
	const int32_t i = (int32_t)d;

	return i - ((double)i > d);
}

static inline int32_t floor_float(float f)
{
	const int32_t i = (int32_t)f;

	return i - ((float)i > f);
}

/* Limit the coordinates to [-most, most]; NaN becomes 0.  Each step is a separate loop over all lanes, which compilers vectorise. */
static inline void limit_lanes(const float *x, float factor, float most, float out[LANES])
{
	for (unsigned l = 0; l < LANES; l++) {
		float f = x[l] * factor;

		f = f == f ? f : 0;
		f = f > most ? most : f;
		out[l] = f < -most ? -most : f;
	}
}

/* Apply the address mode to the index i of a texel, which is at most one period outside of [0, n). */
static inline int32_t place(int32_t i, int32_t n, enum address_mode mode)
{
	switch (mode) {
	case ADDRESS_WRAP:
		i += i < 0 ? n : 0;
		return i - (i >= n ? n : 0);
	case ADDRESS_MIRROR:
		i = i < 0 ? ~i : i;
		i -= i >= 2 * n ? 2 * n : 0;
		return i >= n ? 2 * n - 1 - i : i;
	case ADDRESS_CLAMP:
		i = i < 0 ? 0 : i;
		return i >= n ? n - 1 : i;
	default:
		return (uint32_t)i < (uint32_t)n ? i : OUTSIDE;
	}
}

/* Find the nearest texel of each lane.  Each call passes a constant mode, so that the loops contain no branches. */
static inline void nearest(const float *x, int32_t n, enum address_mode mode, bool normalised, int32_t *first)
{
	const float period = mode == ADDRESS_MIRROR ? 2 : 1;
	float f[LANES];

	if (mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR) {
		limit_lanes(x, 1, 0x1p23f * period, f); /* both the limit and floats beyond it are multiples of the period */
		for (unsigned l = 0; l < LANES; l++)
			f[l] -= period * (float)floor_float(f[l] / period);
		x = f;
	}
	limit_lanes(x, normalised ? (float)n : 1, 0x1p30f, f);
	for (unsigned l = 0; l < LANES; l++)
		first[l] = floor_float(f[l]);
	for (unsigned l = 0; l < LANES; l++)
		first[l] = place(first[l], n, mode);
}

/* Find the two texels that a linear filter uses. */
static inline void neighbours(const float *x, int32_t n, enum address_mode mode, bool normalised, struct texels *t)
{
	const double period = mode == ADDRESS_MIRROR ? 2 : 1;
	const bool periodic = mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR;
	int32_t fixed[LANES];
	float f[LANES];

	limit_lanes(x, 1, periodic ? 0x1p24f : normalised ? 4 : 0x1p20f, f);
	for (unsigned l = 0; l < LANES; l++) {
		double d = (double)f[l];

		if (periodic)
			d -= period * (double)floor_double(d / period);
		d = normalised ? (double)floor_double(d * 0x1p21) * (double)n * 0x1p-13 : d * 256;
		fixed[l] = floor_double(d + 0.5) - 128;
	}
	for (unsigned l = 0; l < LANES; l++) {
		t->first[l] = place(fixed[l] >> 8, n, mode);
		t->second[l] = place((fixed[l] >> 8) + 1, n, mode);
	}
	for (unsigned l = 0; l < LANES; l++)
		t->weight[l] = mode == ADDRESS_CLAMP && t->first[l] == t->second[l] ? 0 : fixed[l] & 255;
}

static void find_in_dimension(const float *x, uint32_t extent, const struct texture *t, unsigned dimension, bool linear, struct texels *out)
{
	const enum address_mode mode = t->sampler.address[dimension];
	const int32_t n = (int32_t)extent;

	if (!t->sampler.normalised) {
		if (mode == ADDRESS_BORDER)
			linear ? neighbours(x, n, ADDRESS_BORDER, false, out) : nearest(x, n, ADDRESS_BORDER, false, out->first);
		else
			linear ? neighbours(x, n, ADDRESS_CLAMP, false, out) : nearest(x, n, ADDRESS_CLAMP, false, out->first);
		return;
	}
	switch (mode) {
	case ADDRESS_WRAP:
		linear ? neighbours(x, n, ADDRESS_WRAP, true, out) : nearest(x, n, ADDRESS_WRAP, true, out->first);
		break;
	case ADDRESS_MIRROR:
		linear ? neighbours(x, n, ADDRESS_MIRROR, true, out) : nearest(x, n, ADDRESS_MIRROR, true, out->first);
		break;
	case ADDRESS_CLAMP:
		linear ? neighbours(x, n, ADDRESS_CLAMP, true, out) : nearest(x, n, ADDRESS_CLAMP, true, out->first);
		break;
	default:
		linear ? neighbours(x, n, ADDRESS_BORDER, true, out) : nearest(x, n, ADDRESS_BORDER, true, out->first);
	}
}

static void set_offsets(const struct texture *t, const int32_t *x, const int32_t *y, int32_t *offset)
{
	const int32_t bytes = t->element_bytes, pitch = (int32_t)t->level[0].pitch;

	for (unsigned l = 0; l < LANES; l++)
		offset[l] = x[l] < 0 || y[l] < 0 ? OUTSIDE : y[l] * pitch + x[l] * bytes;
}

static unsigned find_corners(const struct warp *w, const struct texture_form *f, const struct texture *t, bool linear, struct corner *c)
{
	const struct texture_level *level = &t->level[0];
	struct texels x, y = { .first = { 0 } };
	const float zeros[LANES] = { 0 };

	if (f->integer) {
		for (unsigned l = 0; l < LANES; l++) {
			x.first[l] = place(S32(w, f->at[0])[l], (int32_t)level->width, ADDRESS_BORDER);
			y.first[l] = f->dimensions < 2 ? 0 : place(S32(w, f->at[1])[l], (int32_t)level->height, ADDRESS_BORDER);
		}
	} else {
		find_in_dimension(F32(w, f->at[0]), level->width, t, 0, linear, &x);
		if (f->dimensions == 2)
			find_in_dimension(F32(w, f->at[1]), level->height, t, 1, linear, &y);
		else if (linear)
			find_in_dimension(zeros, 1, t, 1, true, &y);
	}
	set_offsets(t, x.first, y.first, c[0].offset);
	if (!linear)
		return 1;
	set_offsets(t, x.first, y.second, c[1].offset);
	set_offsets(t, x.second, y.first, c[2].offset);
	set_offsets(t, x.second, y.second, c[3].offset);
	for (unsigned l = 0; l < LANES; l++) { /* rounded as in add_level() of texture/sample.c */
		const int32_t right = x.weight[l], left = 256 - right;

		c[1].weight[l] = (left * y.weight[l] + 127) >> 8;
		c[0].weight[l] = left - c[1].weight[l];
		c[3].weight[l] = (right * y.weight[l] + 128) >> 8;
		c[2].weight[l] = right - c[3].weight[l];
	}
	return 4;
}

/* ---- loads of texels ---------------------------------------------------------------------------- */

/* value[l] = the channel of lane l's texel; if the texel is outside of the texture, the channel of `border`. */
#define LOAD(type, value) \
	for (unsigned l = 0; l < LANES; l++) { \
		const uint8_t *from = offset[l] < 0 ? border : at + offset[l]; \
		type v_; \
\
		memcpy(&v_, from + channel * sizeof v_, sizeof v_); \
		(value)[l] = v_; \
	}

static void load_integers(const struct texture *t, const int32_t *offset, const uint8_t *border, unsigned channel, int32_t *value)
{
	const uint8_t *at = t->level[0].at;

	switch (t->channel) {
	case CHANNEL_U8:
		LOAD(uint8_t, value);
		break;
	case CHANNEL_S8:
		LOAD(int8_t, value);
		break;
	case CHANNEL_U16:
		LOAD(uint16_t, value);
		break;
	case CHANNEL_S16:
		LOAD(int16_t, value);
		break;
	default:
		LOAD(int32_t, value);
	}
}

/* Like gpul_half_to_float(), without branches. */
static inline float float_of_half(uint32_t h)
{
	const uint32_t magnitude = (h & 0x7fff) << 13;
	float f;
	uint32_t bits;

	memcpy(&f, &magnitude, 4);
	f *= 0x1p112f;
	memcpy(&bits, &f, 4);
	bits |= (magnitude >= 0x0f800000 ? 0x7f800000 : 0) | (h & 0x8000) << 16;
	memcpy(&f, &bits, 4);
	return f;
}

static void load_floats(const struct texture *t, const int32_t *offset, const uint8_t *border, unsigned channel, float *value)
{
	const uint8_t *at = t->level[0].at;
	uint16_t half[LANES];

	if (t->channel == CHANNEL_F32) {
		LOAD(float, value);
		return;
	}
	LOAD(uint16_t, half);
	for (unsigned l = 0; l < LANES; l++)
		value[l] = float_of_half(half[l]);
}

/* ---- results: one texel, or the weighted sum of four -------------------------------------------- */

static bool as_is(const struct texture *t)
{
	return t->read_integer || t->channel == CHANNEL_F32;
}

static void read_nearest(const struct texture *t, const int32_t *offset, const uint8_t *border, unsigned channel, int32_t out[LANES])
{
	static const float most[] = { [CHANNEL_U8] = 255, [CHANNEL_U16] = 65535, [CHANNEL_S8] = 127, [CHANNEL_S16] = 32767 };
	float value[LANES];
	int32_t word[LANES];

	if (t->channel == CHANNEL_F16) {
		load_floats(t, offset, border, channel, value);
		memcpy(out, value, sizeof value);
		return;
	}
	load_integers(t, offset, border, channel, word);
	if (as_is(t)) {
		memcpy(out, word, sizeof word);
		return;
	}
	for (unsigned l = 0; l < LANES; l++) {
		const float x = (float)word[l] / most[t->channel];

		value[l] = x < -1 ? -1 : x;
	}
	memcpy(out, value, sizeof value);
}

/* Filter integer texels, as fraction() in texture/filter.c does. */
static void filter_integers(const struct texture *t, const struct corner c[4], unsigned channel, float out[LANES])
{
	const float most = t->channel == CHANNEL_U8 || t->channel == CHANNEL_U16 ? 65535 : 32767;
	int32_t word[LANES], sum[LANES] = { 0 };

	for (unsigned k = 0; k < 4; k++) {
		load_integers(t, c[k].offset, t->sampler.border, channel, word);
		for (unsigned l = 0; l < LANES; l++)
			sum[l] += c[k].weight[l] * word[l];
	}
	if (t->channel == CHANNEL_U8)
		for (unsigned l = 0; l < LANES; l++)
			sum[l] += (sum[l] + 128) >> 8;
	else if (t->channel == CHANNEL_S8)
		for (unsigned l = 0; l < LANES; l++)
			sum[l] += (sum[l] + 16 * (sum[l] >> 12) + 64) >> 7;
	else
		for (unsigned l = 0; l < LANES; l++)
			sum[l] = (sum[l] + 128) >> 8;
	for (unsigned l = 0; l < LANES; l++)
		out[l] = (float)(sum[l] < -32767 ? -32767 : sum[l]) / most;
}

/* Return 2^e, which must be a normal double. */
static inline double power_of_two(int64_t e)
{
	const int64_t bits = (e + 1023) << 52;
	double d;

	memcpy(&d, &bits, 8);
	return d;
}

/* Round sums as float_away() and half_away() in texture/filter.c do. */
static inline void round_sums(const double sum[LANES], bool half, float out[LANES])
{
	for (unsigned l = 0; l < LANES && !half; l++) {
		double d = sum[l];
		int64_t bits;

		memcpy(&bits, &d, 8);
		bits += (bits & 0x1fffffff) == 0x10000000;
		memcpy(&d, &bits, 8);
		out[l] = (float)d;
	}
	for (unsigned l = 0; l < LANES && half; l++) {
		const double magnitude = __builtin_fabs(sum[l]),
			     small = (double)(int32_t)((magnitude < 1 ? magnitude : 1) * 0x1p24 + 0.5) * 0x1p-24;
		double d = magnitude;
		int64_t bits;

		memcpy(&bits, &d, 8);
		bits = (bits + (INT64_C(1) << 41)) & -(INT64_C(1) << 42);
		memcpy(&d, &bits, 8);
		out[l] = (float)__builtin_copysign(magnitude < 0x1p-14 ? small : d, sum[l]);
	}
}

/* Filter float texels, as sum_of_group() in texture/filter.c does.  Returns false, without a result, if a texel is infinite or NaN. */
static bool filter_floats(const struct texture *t, const struct corner c[4], unsigned channel, float out[LANES])
{
	float value[4][LANES];
	const int32_t keep = t->channel == CHANNEL_F16 ? 15 : 28; /* precision of the sum in bits of the largest texel */
	int32_t most[LANES] = { 0 }, largest = 0;
	double sum[LANES];

	for (unsigned k = 0; k < 4; k++) {
		load_floats(t, c[k].offset, t->sampler.border, channel, value[k]);
		for (unsigned l = 0; l < LANES; l++) {
			int32_t bits, exponent;

			memcpy(&bits, &value[k][l], 4);
			bits &= c[k].weight[l] ? -1 : 0;
			memcpy(&value[k][l], &bits, 4);
			exponent = bits >> 23 & 255;
			most[l] = exponent > most[l] ? exponent : most[l];
		}
	}
	for (unsigned l = 0; l < LANES; l++)
		largest = most[l] > largest ? most[l] : largest;
	if (largest == 255)
		return false;
	for (unsigned l = 0; l < LANES; l++) {
		const double scale = power_of_two(126 + keep - most[l]);

		sum[l] = 0;
		for (unsigned k = 0; k < 4; k++)
			sum[l] += (double)(int32_t)((double)value[k][l] * scale) * (double)c[k].weight[l];
		sum[l] *= power_of_two(most[l] - 126 - keep - 8);
	}
	round_sums(sum, t->channel == CHANNEL_F16, out);
	for (unsigned l = 0; l < LANES; l++)
		out[l] = c[0].weight[l] == 256 ? value[0][l] : out[l];
	return true;
}

/* ---- tex for a whole warp ----------------------------------------------------------------------- */

/* Return the texture that all active lanes read, if the code in this file supports it; else NULL. */
static const struct texture *common_texture(struct warp *w, const struct insn *i, const struct texture_form *f, bool *linear)
{
	const uint64_t *handles = U64(w, f->handle), handle = handles[first_lane(w->mask)];
	const struct texture *t = gpul_texture_find(handle, TEXTURE_OBJECT);
	const struct texture_level *v = t ? &t->level[0] : NULL;
	uint32_t others = 0;
	uint64_t bytes;

	for (unsigned l = 0; l < LANES; l++)
		others |= (uint32_t)(handles[l] != handle) << l;
	if (!t || others & w->mask || f->dimensions > 2 || f->layered || f->cube || f->has_offset || f->halves)
		return NULL;
	*linear = t->sampler.linear && !t->read_integer && !f->integer;
	if (t->n_levels != 1 || t->srgb || t->dimensions != f->dimensions)
		return NULL;
	bytes = v->pitch * (v->height - 1) + (uint64_t)v->width * t->element_bytes;
	if (bytes > INT32_MAX || (t->in_table && !range_covers(state_of(w)->cache, i->src, (uintptr_t)v->at, bytes, false)))
		return NULL;
	return t;
}

static void write_lanes(struct warp *w, opref d, const int32_t value[LANES])
{
	int32_t *to = S32(w, d);

	SET_LANES(w, to, value[l]);
}

bool GPUL_BUILD(gpul_texture_read_warp)(struct warp *w, const struct insn *i)
{
	static const uint8_t nothing[16];
	const struct texture_form *f = i->object;
	int32_t out[4][LANES] = { 0 };
	struct corner corner[4];
	bool linear;
	const struct texture *t = common_texture(w, i, f, &linear);

	if (!t)
		return false;
	find_corners(w, f, t, linear, corner);
	for (unsigned k = 0; k < t->n_channels; k++) {
		float value[LANES];

		if (!linear) {
			read_nearest(t, corner[0].offset, f->integer ? nothing : t->sampler.border, k, out[k]);
			continue;
		}
		if (t->channel < CHANNEL_F16)
			filter_integers(t, corner, k, value);
		else if (!filter_floats(t, corner, k, value))
			return false;
		memcpy(out[k], value, sizeof value);
	}
	for (unsigned k = 0; k < 4; k++)
		write_lanes(w, f->data[k], out[k]);
	return true;
}
