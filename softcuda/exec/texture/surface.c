/* surface.c — computes which bytes an instruction on surfaces accesses: PTX ISA 9.0, 9.7.11. */
#include "softcuda/exec/texture/texture_form_internal.h"

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

enum surface_found gpul_surface_find(const struct warp *w, const struct texture_form *f, unsigned l, struct surface_spot *out)
{
	const struct texture *t = gpul_texture_find(U64(w, f->handle)[l], SURFACE_OBJECT);
	const struct texture_level *v = t ? &t->level[0] : NULL;
	int64_t x, y, z, layer, row, bytes;

	if (!t)
		return SURFACE_UNKNOWN;
	bytes = f->formatted ? t->element_bytes : f->n * f->bytes;
	x = S32(w, f->at[0])[l] * (int64_t)(f->formatted ? t->element_bytes : 1);
	y = f->dimensions > 1 ? S32(w, f->at[1])[l] : 0;
	z = f->dimensions > 2 ? S32(w, f->at[2])[l] : 0;
	layer = f->layered ? S32(w, f->layer)[l] : 0;
	row = (int64_t)v->width * t->element_bytes;
	*out = (struct surface_spot){ .t = t, .x = x, .y = y, .slice = z + layer, .bytes = bytes, .row_bytes = row };
	if (x < 0 || x + bytes > row || y < 0 || y >= v->height || z < 0 || z >= v->depth || layer < 0 ||
	    (layer && layer >= (int64_t)t->n_layers)) {
		if (f->outside == OUTSIDE_ZERO || bytes > row)
			return SURFACE_NOTHING;
		if (f->outside == OUTSIDE_TRAP)
			return SURFACE_OUTSIDE;
		x = clamp(x, 0, row - bytes);
		y = clamp(y, 0, v->height - 1);
		z = clamp(z, 0, v->depth - 1);
		layer = clamp(layer, 0, t->n_layers ? t->n_layers - 1 : 0);
	}
	if (x % (f->formatted ? 1 : bytes))
		return SURFACE_MISALIGNED;
	out->at = (uint8_t *)(uintptr_t)v->at + (uint64_t)(z + layer) * v->slice + (uint64_t)y * v->pitch + (uint64_t)x;
	return SURFACE_FOUND;
}
