/* run_texture.c — handlers of tex, tld4, txq, suq, istypep. */
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/texture/texture_form_internal.h"

static const struct insn *fault_handle(struct warp *w, const struct insn *i, unsigned l, uint64_t handle, enum texture_kind kind)
{
	const bool known = gpul_texture_is(handle, kind);

	return gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_ADDRESS, l, "0x%llx is %s", (unsigned long long)handle,
			       known                    ? "a texture or surface reference that is not bound"
			       : kind == TEXTURE_OBJECT ? "not a texture object"
							: "not a surface object");
}

/* Read the operands of lane l. */
static void read_operands(const struct warp *w, const struct texture_form *f, unsigned l, struct texture_read *out)
{
	const unsigned n = f->cube ? 3 : f->dimensions;

	*out = (struct texture_read){ .dimensions = f->dimensions,
				      .layered = f->layered,
				      .cube = f->cube,
				      .integer = f->integer,
				      .lod_kind = f->lod_kind,
				      .layer = f->layered ? U32(w, f->layer)[l] : 0 };
	for (unsigned k = 0; k < n; k++) {
		if (f->integer)
			out->texel[k] = S32(w, f->at[k])[l];
		else
			out->at[k] = F32(w, f->at[k])[l];
		if (f->has_offset)
			out->offset[k] = S32(w, f->offset[k])[l];
		if (f->lod_kind == LOD_GRADIENT) {
			out->dx[k] = F32(w, f->dx[k])[l];
			out->dy[k] = F32(w, f->dy[k])[l];
		}
	}
	if (f->lod_kind == LOD_LEVEL)
		out->lod = f->integer ? (float)S32(w, f->lod)[l] : F32(w, f->lod)[l];
}

static uint32_t half_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return gpul_float_to_half(x);
}

static void write_results(struct warp *w, const struct texture_form *f, unsigned l, const uint32_t out[4])
{
	if (f->halves) {
		for (unsigned k = 0; k < 2; k++)
			U32(w, f->data[k])[l] = half_bits(out[2 * k]) | half_bits(out[2 * k + 1]) << 16;
		return;
	}
	for (unsigned k = 0; k < 4; k++)
		U32(w, f->data[k])[l] = out[k];
}

static const struct insn *run_read(struct warp *w, const struct insn *i, bool gather)
{
	const struct texture_form *f = i->object;
	struct texture_reader r = { .cache = state_of(w)->cache, .slot = i->src };
	const struct texture *t = NULL;
	uint64_t found = 0;

	EACH_ACTIVE(l, w)
	{
		const uint64_t handle = U64(w, f->handle)[l];
		struct texture_read read;
		uint32_t out[4];

		if (!t || handle != found)
			t = gpul_texture_find(found = handle, TEXTURE_OBJECT);
		if (!t)
			return fault_handle(w, i, l, handle, TEXTURE_OBJECT);
		read_operands(w, f, l, &read);
		if (!(gather ? gpul_texture_gather(t, &read, f->component, &r, out) : gpul_texture_sample(t, &read, &r, out)))
			return gpul_fault_text(state_of(w), i, GPUL_EXEC_ILLEGAL_ADDRESS, l,
					       "the texel at 0x%llx is not in any allocation that the device may read",
					       (unsigned long long)r.denied);
		write_results(w, f, l, out);
	}
	set_predicate(w, f->resident, ALL_LANES);
	return i + 1;
}

HANDLER(TEX)
{
	const struct texture_form *f = i->object;

	if (!GPUL_BUILD(gpul_texture_read_warp)(w, i))
		return run_read(w, i, false);
	set_predicate(w, f->resident, ALL_LANES);
	return i + 1;
}

HANDLER(TLD4)
{
	return run_read(w, i, true);
}

/* ---- txq, suq, istypep ------------------------------------------------------------------------- */

/* Return the type of a channel, as the number that OpenCL defines, because the PTX ISA (txq) uses OpenCL's numbers. */
static uint32_t channel_type(const struct texture *t)
{
	static const uint16_t integers[] = {
		[CHANNEL_S8] = 0x10d7,  [CHANNEL_S16] = 0x10d8, [CHANNEL_S32] = 0x10d9, [CHANNEL_U8] = 0x10da,
		[CHANNEL_U16] = 0x10db, [CHANNEL_U32] = 0x10dc, [CHANNEL_F16] = 0x10dd, [CHANNEL_F32] = 0x10de,
	};
	static const uint16_t fractions[] = {
		[CHANNEL_S8] = 0x10d0,
		[CHANNEL_S16] = 0x10d1,
		[CHANNEL_U8] = 0x10d2,
		[CHANNEL_U16] = 0x10d3,
	};

	return t->unorm ? fractions[t->channel] : integers[t->channel];
}

static uint32_t answer(const struct texture *t, enum texture_query query, int32_t lod)
{
	const struct texture_level *l = &t->level[lod < 0 ? 0 : (uint32_t)lod < t->n_levels ? (uint32_t)lod : t->n_levels - 1];
	const uint8_t *modes = t->sampler.address;
	static const uint8_t address_numbers[] = { [ADDRESS_WRAP] = 0, [ADDRESS_MIRROR] = 1, [ADDRESS_CLAMP] = 3, [ADDRESS_BORDER] = 4 };

	switch (query) {
	case QUERY_WIDTH:
		return l->width;
	case QUERY_HEIGHT:
		return t->dimensions > 1 ? l->height : 0;
	case QUERY_DEPTH:
		return t->dimensions > 2 ? l->depth : 0;
	case QUERY_CHANNEL_TYPE:
		return channel_type(t);
	case QUERY_CHANNEL_ORDER:
		return t->n_channels == 1 ? 0x10b0 : t->n_channels == 2 ? 0x10b2 : 0x10b5;
	case QUERY_NORMALISED:
		return t->sampler.normalised;
	case QUERY_UNNORMALISED:
		return !t->sampler.normalised;
	case QUERY_LAYERS:
		return t->n_layers;
	case QUERY_LEVELS:
		return t->n_levels;
	case QUERY_SAMPLES:
		return 1;
	case QUERY_FILTER:
		return t->sampler.linear;
	case QUERY_ADDRESS_0:
		return address_numbers[modes[0]];
	case QUERY_ADDRESS_1:
		return address_numbers[modes[1]];
	case QUERY_ADDRESS_2:
		return address_numbers[modes[2]];
	default:
		return t->linear_memory || t->in_table;
	}
}

HANDLER(TXQ)
{
	const struct texture_form *f = i->object;
	const enum texture_kind kind = f->n == SURFACE_OBJECT ? SURFACE_OBJECT : TEXTURE_OBJECT;

	EACH_ACTIVE(l, w)
	{
		const uint64_t handle = U64(w, f->handle)[l];
		const struct texture *t = gpul_texture_find(handle, kind);

		if (!t)
			return fault_handle(w, i, l, handle, kind);
		U32(w, f->data[0])[l] = answer(t, f->query, f->lod_kind == LOD_LEVEL ? S32(w, f->lod)[l] : 0);
	}
	return i + 1;
}

HANDLER(ISTYPEP)
{
	uint32_t bits = 0;

	EACH_ACTIVE(l, w)
	if (i->n && gpul_texture_is(U64(w, i->a)[l], i->n == SURFACE_OBJECT ? SURFACE_OBJECT : TEXTURE_OBJECT))
		bits |= 1u << l;
	set_predicate(w, i->d, bits);
	return i + 1;
}
