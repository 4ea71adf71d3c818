/* run_surface.c — handlers of suld, sust, sured. */
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/texture/texture_form_internal.h"

enum found { FOUND, NOTHING, FAULT };  /* NOTHING: outside, with .zero */

struct spot { uint8_t *at; const struct texture *t; const struct insn *stop; };

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

/* Find the bytes that lane l accesses. */
static enum found find_spot(struct warp *w, const struct insn *i, unsigned l, struct spot *out)
{
	const struct texture_form *f = i->object;
	const uint64_t handle = U64(w, f->handle)[l];
	const struct texture *t = gpul_texture_find(handle, SURFACE_OBJECT);
	const struct texture_level *v = t ? &t->level[0] : NULL;
	int64_t x, y, z, layer, row, bytes;

	if (!t) {
		out->stop = gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_ADDRESS, l, "0x%llx is not a surface object, or is not bound",
					    (unsigned long long)handle);
		return FAULT;
	}
	bytes = f->formatted ? t->element_bytes : f->n * f->bytes;
	x = S32(w, f->at[0])[l] * (int64_t)(f->formatted ? t->element_bytes : 1);
	y = f->dimensions > 1 ? S32(w, f->at[1])[l] : 0;
	z = f->dimensions > 2 ? S32(w, f->at[2])[l] : 0;
	layer = f->layered ? S32(w, f->layer)[l] : 0;
	row = (int64_t)v->width * t->element_bytes;
	if (x < 0 || x + bytes > row || y < 0 || y >= v->height || z < 0 || z >= v->depth || layer < 0 ||
	    (layer && layer >= (int64_t)t->n_layers)) {
		if (f->outside == OUTSIDE_ZERO || bytes > row)
			return NOTHING;
		if (f->outside == OUTSIDE_TRAP) {
			out->stop = gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_ADDRESS, l,
						    "byte %lld of row %lld, slice %lld is outside the surface: rows of %lld bytes, %u x %u of them",
						    (long long)x, (long long)y, (long long)(z + layer), (long long)row, v->height,
						    f->layered ? t->n_layers : v->depth);
			return FAULT;
		}
		x = clamp(x, 0, row - bytes);
		y = clamp(y, 0, v->height - 1);
		z = clamp(z, 0, v->depth - 1);
		layer = clamp(layer, 0, t->n_layers ? t->n_layers - 1 : 0);
	}
	if (x % (f->formatted ? 1 : bytes)) {
		out->stop = gpul_fault_text(state_of(w), i, GPUL_EXEC_MISALIGNED, l, "byte %lld of a row is not a multiple of %lld",
					    (long long)x, (long long)bytes);
		return FAULT;
	}
	out->t = t;
	out->at = (uint8_t *)(uintptr_t)v->at + (uint64_t)(z + layer) * v->slice + (uint64_t)y * v->pitch + (uint64_t)x;
	return FOUND;
}

/* The registers of .b8 have 16 bits. */
static void write_register(struct warp *w, opref d, unsigned bytes, unsigned l, uint64_t v)
{
	if (bytes <= 2)
		U16(w, d)[l] = (uint16_t)v;
	else if (bytes == 4)
		U32(w, d)[l] = (uint32_t)v;
	else
		U64(w, d)[l] = v;
}

static uint64_t read_register(const struct warp *w, opref a, unsigned bytes, unsigned l)
{
	return bytes <= 2 ? U16(w, a)[l] : bytes == 4 ? U32(w, a)[l] : U64(w, a)[l];
}

HANDLER(SULD)
{
	const struct texture_form *f = i->object;

	EACH_ACTIVE(l, w) {
		struct spot s;
		const enum found found = find_spot(w, i, l, &s);

		if (found == FAULT)
			return s.stop;
		for (unsigned k = 0; k < f->n; k++) {
			uint64_t v = 0;

			if (found == FOUND)
				memcpy(&v, s.at + k * f->bytes, f->bytes);
			write_register(w, f->data[k], f->bytes, l, v);
		}
	}
	return i + 1;
}

HANDLER(SUST)
{
	const struct texture_form *f = i->object;

	state_of(w)->stirs = true;
	EACH_ACTIVE(l, w) {
		uint32_t element[4] = { 0 };
		struct spot s;
		const enum found found = find_spot(w, i, l, &s);

		if (found == FAULT)
			return s.stop;
		if (found == NOTHING)
			continue;
		for (unsigned k = 0; k < f->n; k++) {
			const uint64_t v = read_register(w, f->data[k], f->bytes, l);

			element[k] = (uint32_t)v;
			if (!f->formatted)
				memcpy(s.at + k * f->bytes, &v, f->bytes);
		}
		if (f->formatted)
			gpul_texel_encode(s.t, element, s.at);
	}
	return i + 1;
}

/* ---- sured --------------------------------------------------------------------------------------- */

static uint64_t extend(uint64_t v, const struct texture_form *f)
{
	return f->bytes == 4 && f->is_signed ? (uint64_t)(int32_t)v : v;
}

static uint64_t reduce(uint64_t a, uint64_t b, const struct texture_form *f)
{
	const bool less = f->is_signed ? (int64_t)a < (int64_t)b : a < b;

	switch (f->op) {
	case SURFACE_ADD: return a + b;
	case SURFACE_MIN: return less ? a : b;
	case SURFACE_MAX: return less ? b : a;
	case SURFACE_AND: return a & b;
	default: return a | b;
	}
}

static void reduce_atomically(const struct texture_form *f, uint8_t *at, uint64_t operand)
{
	if (f->bytes == 4) {
		uint32_t old = __atomic_load_n((MEMORY_TYPE(uint32_t) *)(void *)at, __ATOMIC_RELAXED), new;

		do
			new = (uint32_t)reduce(extend(old, f), operand, f);
		while (!__atomic_compare_exchange_n((MEMORY_TYPE(uint32_t) *)(void *)at, &old, new, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	} else {
		uint64_t old = __atomic_load_n((MEMORY_TYPE(uint64_t) *)(void *)at, __ATOMIC_RELAXED), new;

		do
			new = reduce(old, operand, f);
		while (!__atomic_compare_exchange_n((MEMORY_TYPE(uint64_t) *)(void *)at, &old, new, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	}
}

HANDLER(SURED)
{
	const struct texture_form *f = i->object;

	state_of(w)->stirs = true;
	EACH_ACTIVE(l, w) {
		struct spot s;
		const enum found found = find_spot(w, i, l, &s);

		if (found == FAULT)
			return s.stop;
		if (found == FOUND && f->bytes >= 4)
			reduce_atomically(f, s.at, extend(read_register(w, f->data[0], f->bytes, l), f));
	}
	return i + 1;
}
