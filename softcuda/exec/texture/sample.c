/* sample.c — reads texels and filters them: the two nearest texels in each dimension, and the two nearest levels. */
#include "softcuda/exec/texture/texture_internal.h"

#include <math.h>
#include <string.h>

struct place {                               /* where a read goes within all levels */
	float at[3];
	uint64_t slice;                      /* layer or face: slices before it */
};

/* Read an element at x, y, z of a level; OUTSIDE in a dimension: the border. */
static bool read_texel(const struct texture *t, const struct texture_level *l, uint64_t slice, const int64_t at[3],
		       struct texture_reader *r, uint32_t out[4])
{
	const uint8_t *from;

	if (at[0] == OUTSIDE || at[1] == OUTSIDE || at[2] == OUTSIDE) {
		memcpy(out, t->sampler.border, 4 * sizeof *out);
		return true;
	}
	from = l->at + (slice + (uint64_t)at[2]) * l->slice + (uint64_t)at[1] * l->pitch + (uint64_t)at[0] * t->element_bytes;
	if (t->in_table && !range_covers(r->cache, r->slot, (uintptr_t)from, t->element_bytes, false)) {
		r->denied = (uintptr_t)from;
		return false;
	}
	gpul_texel_decode(t, from, out);
	return true;
}

/* Coordinates that are texels: no filter; a texel outside is 0. */
static bool fetch(const struct texture *t, const struct texture_level *l, const struct texture_read *read, uint64_t slice,
		  struct texture_reader *r, uint32_t out[4])
{
	const uint32_t extent[3] = { l->width, l->height, l->depth };
	int64_t at[3] = { 0 };

	for (unsigned k = 0; k < read->dimensions; k++) {
		at[k] = (int64_t)read->texel[k] + read->offset[k];
		if (at[k] < 0 || at[k] >= extent[k]) {
			memset(out, 0, 4 * sizeof *out);
			return true;
		}
	}
	return read_texel(t, l, slice, at, r, out);
}

static void find_axes(const struct texture *t, const struct texture_level *l, const struct texture_read *read, const float at[3],
		      bool linear, struct axis axis[3])
{
	const uint32_t extent[3] = { l->width, l->height, l->depth };

	for (unsigned k = 0; k < 3; k++)
		axis[k] = (struct axis){ .weight = 0 };
	for (unsigned k = 0; k < read->dimensions; k++)
		axis[k] = gpul_texture_axis(at[k], extent[k], read->cube ? ADDRESS_CLAMP : t->sampler.address[k],
					    t->sampler.normalised || read->cube, linear, read->offset[k]);
}

/* sum[] += weight * the texels around the coordinates; weights add up to 1. */
static bool filter_level(const struct texture *t, const struct texture_level *l, const struct texture_read *read,
			 const struct place *p, struct texture_reader *r, double weight, double sum[4])
{
	struct axis axis[3];

	find_axes(t, l, read, p->at, true, axis);
	for (unsigned corner = 0; corner < 1u << read->dimensions; corner++) {
		double w = weight;
		uint32_t bits[4];
		int64_t at[3];

		for (unsigned k = 0; k < 3; k++) {
			const unsigned side = corner >> k & 1;

			at[k] = axis[k].index[side];
			if (k < read->dimensions)
				w *= (side ? axis[k].weight : 256 - axis[k].weight) / 256.0;
		}
		if (w == 0)  /* so that its NaN does not count */
			continue;
		if (!read_texel(t, l, p->slice, at, r, bits))
			return false;
		for (unsigned k = 0; k < 4; k++) {
			float f;

			memcpy(&f, &bits[k], 4);
			sum[k] += w * (double)f;
		}
	}
	return true;
}

static bool nearest_in_level(const struct texture *t, const struct texture_level *l, const struct texture_read *read,
			     const struct place *p, struct texture_reader *r, uint32_t out[4])
{
	struct axis axis[3];

	find_axes(t, l, read, p->at, false, axis);
	return read_texel(t, l, p->slice, (const int64_t[]){ axis[0].index[0], axis[1].index[0], axis[2].index[0] }, r, out);
}

/* ---- levels ---------------------------------------------------------------------------------------- */

/* log2 of the longer of the two gradients, in texels of the largest level. */
static float level_of_gradients(const struct texture *t, const struct texture_read *read)
{
	const struct texture_level *l = &t->level[0];
	const float extent[3] = { (float)l->width, (float)l->height, (float)l->depth };
	float x = 0, y = 0, most;

	for (unsigned k = 0; k < (read->cube ? 3 : read->dimensions); k++) {
		const float scale = read->cube ? extent[0] / 2 : t->sampler.normalised ? extent[k] : 1;

		x += read->dx[k] * scale * read->dx[k] * scale;
		y += read->dy[k] * scale * read->dy[k] * scale;
	}
	most = x > y ? x : y;
	return most > 0 ? log2f(most) / 2 : -126;
}

/* The level in 1/256, from 0 to the last one. */
static uint32_t choose_level(const struct texture *t, const struct texture_read *read)
{
	const float last = (float)(t->n_levels - 1);
	float lod = read->lod_kind == LOD_LEVEL ? read->lod : read->lod_kind == LOD_GRADIENT ? level_of_gradients(t, read) : 0;

	lod += t->sampler.bias;
	lod = lod < t->sampler.least_level ? t->sampler.least_level : lod > t->sampler.most_level ? t->sampler.most_level : lod;
	if (!(lod > 0))  /* NaN, too */
		return 0;
	return (uint32_t)floorf((lod > last ? last : lod) * 256 + 0.5f);
}

static struct place find_place(const struct texture *t, const struct texture_read *read)
{
	struct place p = { { read->at[0], read->at[1], read->at[2] }, 0 };
	const uint32_t n = t->n_layers ? t->n_layers : 1;

	if (read->layered)
		p.slice = read->layer < n ? read->layer : (int32_t)read->layer < 0 ? 0 : n - 1;
	if (read->cube) {
		const unsigned face = gpul_cube_face(read->at, p.at);

		p.slice = p.slice * 6 + (t->cube ? face : 0);
	}
	return p;
}

bool gpul_texture_sample(const struct texture *t, const struct texture_read *read, struct texture_reader *r, uint32_t out[4])
{
	const struct place p = find_place(t, read);
	uint32_t level, part;
	double sum[4] = { 0 };

	if (read->integer) {
		level = read->lod_kind == LOD_LEVEL ? (uint32_t)read->lod : 0;
		return fetch(t, &t->level[level < t->n_levels ? level : t->n_levels - 1], read, p.slice, r, out);
	}
	level = t->n_levels > 1 ? choose_level(t, read) : 0;
	part = level & 255;
	if (!t->sampler.linear_levels) {
		level += 128;
		part = 0;
	}
	level >>= 8;
	if (level >= t->n_levels - 1) {
		level = t->n_levels - 1;
		part = 0;
	}
	if (t->read_integer || (!t->sampler.linear && !part))
		return nearest_in_level(t, &t->level[level], read, &p, r, out);
	for (unsigned k = 0; k < (part ? 2u : 1u); k++) {
		const double weight = !part ? 1 : (k ? part : 256 - part) / 256.0;
		uint32_t bits[4];

		if (t->sampler.linear) {
			if (!filter_level(t, &t->level[level + k], read, &p, r, weight, sum))
				return false;
			continue;
		}
		if (!nearest_in_level(t, &t->level[level + k], read, &p, r, bits))
			return false;
		for (unsigned c = 0; c < 4; c++) {
			float f;

			memcpy(&f, &bits[c], 4);
			sum[c] += weight * (double)f;
		}
	}
	for (unsigned k = 0; k < 4; k++) {
		const float f = (float)sum[k];

		memcpy(&out[k], &f, 4);
	}
	return true;
}

/* tld4: PTX ISA 9.0, 9.7.10.4: counter-clockwise, from the lower left texel. */
bool gpul_texture_gather(const struct texture *t, const struct texture_read *read, unsigned component, struct texture_reader *r,
			 uint32_t out[4])
{
	static const uint8_t side[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
	const struct place p = find_place(t, read);
	struct axis axis[3];

	find_axes(t, &t->level[0], read, p.at, true, axis);
	for (unsigned k = 0; k < 4; k++) {
		uint32_t texel[4];

		if (!read_texel(t, &t->level[0], p.slice, (const int64_t[]){ axis[0].index[side[k][0]], axis[1].index[side[k][1]], 0 }, r, texel))
			return false;
		out[k] = texel[component];
	}
	return true;
}
