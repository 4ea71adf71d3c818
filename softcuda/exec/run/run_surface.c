/* run_surface.c — handlers of suld, sust, sured. */
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/texture/texture_form_internal.h"

static const struct insn *fault(struct warp *w, const struct insn *i, unsigned l, enum surface_found found, const struct surface_spot *s)
{
	const struct texture_form *f = i->object;

	switch (found) {
	case SURFACE_UNKNOWN:
		return gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_ADDRESS, l, "0x%llx is not a surface object, or is not bound",
				       (unsigned long long)U64(w, f->handle)[l]);
	case SURFACE_OUTSIDE:
		return gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_ADDRESS, l,
				       "byte %lld of row %lld, slice %lld is outside the surface, which has rows of %lld bytes, %u "
				       "rows and %u slices",
				       (long long)s->x, (long long)s->y, (long long)s->slice, (long long)s->row_bytes,
				       s->t->level[0].height, f->layered ? s->t->n_layers : s->t->level[0].depth);
	default:
		return gpul_fault_text(state_of(w), i, GPUL_EXEC_MISALIGNED, l,
				       "the offset %lld in a row is not a multiple of the access size %lld", (long long)s->x,
				       (long long)s->bytes);
	}
}

/* Write v to lane l of a register; for .b8, the register has 16 bits. */
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

	EACH_ACTIVE(l, w)
	{
		struct surface_spot s;
		const enum surface_found found = gpul_surface_find(w, f, l, &s);

		if (found > SURFACE_NOTHING)
			return fault(w, i, l, found, &s);
		for (unsigned k = 0; k < f->n; k++) {
			uint64_t v = 0;

			if (found == SURFACE_FOUND)
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
	EACH_ACTIVE(l, w)
	{
		uint32_t element[4] = { 0 };
		struct surface_spot s;
		const enum surface_found found = gpul_surface_find(w, f, l, &s);

		if (found > SURFACE_NOTHING)
			return fault(w, i, l, found, &s);
		if (found == SURFACE_NOTHING)
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
	case SURFACE_ADD:
		return a + b;
	case SURFACE_MIN:
		return less ? a : b;
	case SURFACE_MAX:
		return less ? b : a;
	case SURFACE_AND:
		return a & b;
	default:
		return a | b;
	}
}

static void reduce_atomically(const struct texture_form *f, uint8_t *at, uint64_t operand)
{
	if (f->bytes == 4) {
		uint32_t old = __atomic_load_n((MEMORY_TYPE(uint32_t) *)(void *)at, __ATOMIC_RELAXED), new;

		do
			new = (uint32_t)reduce(extend(old, f), operand, f);
		while (!__atomic_compare_exchange_n((MEMORY_TYPE(uint32_t) *)(void *)at, &old, new, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED));
	} else {
		uint64_t old = __atomic_load_n((MEMORY_TYPE(uint64_t) *)(void *)at, __ATOMIC_RELAXED), new;

		do
			new = reduce(old, operand, f);
		while (!__atomic_compare_exchange_n((MEMORY_TYPE(uint64_t) *)(void *)at, &old, new, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED));
	}
}

HANDLER(SURED)
{
	const struct texture_form *f = i->object;

	state_of(w)->stirs = true;
	EACH_ACTIVE(l, w)
	{
		struct surface_spot s;
		const enum surface_found found = gpul_surface_find(w, f, l, &s);

		if (found > SURFACE_NOTHING)
			return fault(w, i, l, found, &s);
		if (found == SURFACE_FOUND && f->bytes >= 4)
			reduce_atomically(f, s.at, extend(read_register(w, f->data[0], f->bytes, l), f));
	}
	return i + 1;
}
