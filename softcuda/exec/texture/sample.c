/* sample.c — reads texels and filters them: the two nearest texels in each dimension, and the two nearest levels. */
#include "softcuda/exec/texture/texture_internal.h"

#include <math.h>
#include <string.h>

struct place { /* the coordinates of a read, which are the same for all levels */
	double at[3];
	uint64_t slice; /* index of the first slice of the layer or cubemap face */
};

/* Find the element at coordinates at[] of a level, or the border colour if a coordinate is OUTSIDE.  NULL: the kernel may not read it. */
static const uint8_t *find_texel(const struct texture *t, const struct texture_level *l, uint64_t slice, const int64_t at[3],
				 struct texture_reader *r)
{
	const uint8_t *from;

	if (at[0] == OUTSIDE || at[1] == OUTSIDE || at[2] == OUTSIDE)
		return t->sampler.border;
	from = l->at + (slice + (uint64_t)at[2]) * l->slice + (uint64_t)at[1] * l->pitch + (uint64_t)at[0] * t->element_bytes;
	if (t->in_table && !range_covers(r->cache, r->slot, (uintptr_t)from, t->element_bytes, false)) {
		r->denied = (uintptr_t)from;
		return NULL;
	}
	return from;
}

static bool read_texel(const struct texture *t, const struct texture_level *l, uint64_t slice, const int64_t at[3],
		       struct texture_reader *r, uint32_t out[4])
{
	const uint8_t *from = find_texel(t, l, slice, at, r);

	if (from)
		gpul_texel_decode(t, from, out);
	return from;
}

/* Read the texel at integer coordinates, without a filter; the result is 0 outside of the texture. */
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

static void find_axes(const struct texture *t, const struct texture_level *l, const struct texture_read *read, const double at[3],
		      bool linear, struct axis axis[3])
{
	const uint32_t extent[3] = { l->width, l->height, l->depth };
	const bool normalised = t->sampler.normalised || read->cube;

	for (unsigned k = 0; k < 3; k++)
		axis[k] = (struct axis){ .weight = 0 };
	for (unsigned k = 0; k < read->dimensions; k++)
		axis[k] = gpul_texture_axis(at[k], extent[k], read->cube ? ADDRESS_CLAMP : t->sampler.address[k], normalised, linear,
					    read->offset[k]);
	/* As on an H200, a one-dimensional texture is a row of height 1 that is read at its edge y = 0, so that half of the weight
	 * belongs to texels outside of the row. */
	if (linear && read->dimensions == 1 && !read->layered)
		axis[1] = gpul_texture_axis(0, 1, t->sampler.address[1], normalised, true, 0);
}

static bool add_tap(const struct texture *t, const struct texture_level *l, const struct place *p, const int64_t at[3], uint32_t weight,
		    struct texture_reader *r, struct taps *taps)
{
	struct tap *tap = &taps->tap[taps->n];

	if (!weight)
		return true;
	tap->at = find_texel(t, l, p->slice, at, r);
	tap->weight = weight;
	tap->group = (uint8_t)taps->n_groups;
	taps->n++;
	return tap->at;
}

/* Append the texels of a level around the coordinates to `taps`.  The weight is divided between slices, then columns, then rows.  In
 * each division, one part is rounded, and the other one is the rest, so that the sum of all weights does not change. */
static bool add_level(const struct texture *t, const struct texture_level *l, const struct texture_read *read, const struct place *p,
		      uint32_t weight, struct texture_reader *r, struct taps *taps)
{
	struct axis x[3];

	find_axes(t, l, read, p->at, true, x);
	for (unsigned slice = 0; slice < (read->dimensions == 3 ? 2u : 1u); slice++) {
		const uint32_t back = (weight * x[2].weight + 128) >> 8, in_slice = slice ? back : weight - back;
		const uint32_t right = (in_slice * x[0].weight + 128) >> 8;

		for (unsigned column = 0; column < 2; column++) {
			const uint32_t in_column = column ? right : in_slice - right;
			const uint32_t low = (in_column * x[1].weight + (column ? 128 : 127)) >> 8;

			if (!add_tap(t, l, p, (const int64_t[]){ x[0].index[column], x[1].index[0], x[2].index[slice] }, in_column - low, r,
				     taps) ||
			    !add_tap(t, l, p, (const int64_t[]){ x[0].index[column], x[1].index[1], x[2].index[slice] }, low, r, taps))
				return false;
		}
		taps->n_groups++;
	}
	return true;
}

static bool add_nearest(const struct texture *t, const struct texture_level *l, const struct texture_read *read, const struct place *p,
			uint32_t weight, struct texture_reader *r, struct taps *taps)
{
	struct axis x[3];
	bool found;

	find_axes(t, l, read, p->at, false, x);
	found = add_tap(t, l, p, (const int64_t[]){ x[0].index[0], x[1].index[0], x[2].index[0] }, weight, r, taps);
	taps->n_groups++;
	return found;
}

/* ---- levels of detail ------------------------------------------------------------------------------ */

/* Return log2 of the length of the longer of the two gradients, in texels of level 0. */
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

/* Compute the level of detail in units of 1/256, rounded down, and limited to the levels of the texture. */
static uint32_t choose_level(const struct texture *t, const struct texture_read *read)
{
	const float last = (float)(t->n_levels - 1);
	float lod = read->lod_kind == LOD_LEVEL ? read->lod : read->lod_kind == LOD_GRADIENT ? level_of_gradients(t, read) : 0;

	lod += t->sampler.bias;
	lod = lod < t->sampler.least_level ? t->sampler.least_level : lod > t->sampler.most_level ? t->sampler.most_level : lod;
	if (!(lod > 0)) /* also true if lod is NaN */
		return 0;
	return (uint32_t)((lod > last ? last : lod) * 256);
}

static struct place find_place(const struct texture *t, const struct texture_read *read)
{
	struct place p = { { (double)read->at[0], (double)read->at[1], (double)read->at[2] }, 0 };
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
	struct taps taps;
	uint32_t level, part;
	bool linear;

	taps.n = taps.n_groups = 0;
	if (read->integer) {
		level = read->lod_kind == LOD_LEVEL ? (uint32_t)read->lod : 0;
		return fetch(t, &t->level[level < t->n_levels ? level : t->n_levels - 1], read, p.slice, r, out);
	}
	level = t->n_levels > 1 ? choose_level(t, read) : 0;
	part = t->sampler.linear_levels ? level & 255 : 0;
	level = (t->sampler.linear_levels ? level : level + 128) >> 8;
	linear = t->sampler.linear && !t->read_integer;
	for (unsigned k = 0; k < (part ? 2u : 1u); k++)
		if (!(linear ? add_level : add_nearest)(t, &t->level[level + k], read, &p, k ? part : WHOLE - part, r, &taps))
			return false;
	if (linear || (t->n_levels > 1 && t->sampler.linear_levels))
		gpul_texture_filter(t, &taps, out);
	else
		gpul_texel_decode(t, taps.tap[0].at, out);
	return true;
}

/* tld4 returns the texels counter-clockwise, starting at the lower left texel (PTX ISA 9.0, 9.7.10.4). */
bool gpul_texture_gather(const struct texture *t, const struct texture_read *read, unsigned component, struct texture_reader *r,
			 uint32_t out[4])
{
	static const uint8_t side[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
	const struct place p = find_place(t, read);
	struct axis axis[3];

	find_axes(t, &t->level[0], read, p.at, true, axis);
	for (unsigned k = 0; k < 4; k++) {
		struct taps taps = { .n_groups = 1 };
		uint32_t texel[4];

		if (!add_tap(t, &t->level[0], &p, (const int64_t[]){ axis[0].index[side[k][0]], axis[1].index[side[k][1]], 0 }, WHOLE, r,
			     &taps))
			return false;
		gpul_texture_filter(t, &taps, texel);
		out[k] = texel[component];
	}
	return true;
}
