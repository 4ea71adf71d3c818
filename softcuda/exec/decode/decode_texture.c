/* decode_texture.c — decodes instructions on textures: tex, tld4, txq, suq, istypep.  PTX ISA 9.0, 9.7.10. */
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/texture/texture_form_internal.h"

static bool has_text(const struct decoder *d, const char *text)
{
	for (unsigned k = 0; k < d->in->n_mods; k++)
		if (!strcmp(gpul_ptx_mod_text(d->m, d->in->mods[k]), text))
			return true;
	return false;
}

static const struct geometry {
	const char *text;
	uint8_t dimensions;
	bool layered, cube;
} geometries[] = {
	{ "1d", 1, false, false }, { "2d", 2, false, false },  { "3d", 3, false, false },  { "a1d", 1, true, false },
	{ "a2d", 2, true, false }, { "cube", 2, false, true }, { "acube", 2, true, true },
};

struct texture_form *gpul_texture_form(struct decoder *d)
{
	struct texture_form *f;

	for (size_t k = 0; k < sizeof geometries / sizeof *geometries; k++) {
		const struct geometry *g = &geometries[k];

		if (!has_text(d, g->text))
			continue;
		f = gpul_program_alloc(d->p, sizeof *f, d->err);
		if (f)
			*f = (struct texture_form){ .dimensions = g->dimensions, .layered = g->layered, .cube = g->cube };
		return f;
	}
	gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this geometry is not supported by the software driver");
	return NULL;
}

bool gpul_texture_handle(struct decoder *d, const gpul_ptx_operand *address, struct texture_form *f)
{
	if (address->kind != GPUL_PTX_OP_ADDRESS)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a texture or surface [...] is expected");
	if (address->value.i)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "an offset in an array of references is not supported");
	return gpul_operand_source(d, child(d, address, 0), GPUL_PTX_MOD_U64, false, &f->handle);
}

/* Decode element k of the operand {a, b, c, d}, or of an operand that is a single register. */
static bool vector_source(struct decoder *d, const gpul_ptx_operand *o, unsigned k, unsigned type, opref *out)
{
	const unsigned n = gpul_operand_elements(d->f, o);
	gpul_ptx_operand one;

	if (k >= n)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a vector of at least %u elements is expected", k + 1);
	one = gpul_operand_is_list(d->f, o) ? gpul_operand_element(d, o, k) : *o;
	return gpul_operand_source(d, &one, type, false, out);
}

bool gpul_texture_coordinates(struct decoder *d, const gpul_ptx_operand *o, unsigned type, struct texture_form *f)
{
	const unsigned n = f->cube ? 3 : f->dimensions;

	if (f->layered && !vector_source(d, o, 0, GPUL_PTX_MOD_U32, &f->layer))
		return false;
	for (unsigned k = 0; k < n; k++)
		if (!vector_source(d, o, k + f->layered, type, &f->at[k]))
			return false;
	return true;
}

/* Decode the registers of the four results, or of the two pairs of f16 results, and the predicate of d|p. */
static bool texture_results(struct decoder *d, struct texture_form *f)
{
	const gpul_ptx_operand *o = &d->operand[0], *list = o;
	const unsigned n = f->halves ? 2 : 4;

	f->resident = OPREF(BANK_SCRATCH, 0);
	if (o->kind == GPUL_PTX_OP_PAIR) {
		list = child(d, o, 0);
		if (!gpul_operand_dest(d, child(d, o, 1), GPUL_PTX_MOD_PRED, false, &f->resident))
			return false;
	}
	if (gpul_operand_elements(d->f, list) != n)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a vector of %u registers is expected", n);
	for (unsigned k = 0; k < n; k++) {
		const gpul_ptx_operand one = gpul_operand_element(d, list, k);

		if (!gpul_operand_dest(d, &one, GPUL_PTX_MOD_B32, false, &f->data[k]))
			return false;
	}
	return true;
}

/* Decode the operands after the coordinates: a level or gradients, then offsets.  A depth-compare operand is not supported. */
static bool texture_options(struct decoder *d, struct texture_form *f)
{
	const unsigned n = f->cube ? 3 : f->dimensions;
	unsigned at = 2;

	if (f->lod_kind == LOD_LEVEL &&
	    !gpul_operand_source(d, &d->operand[at++], f->integer ? GPUL_PTX_MOD_S32 : GPUL_PTX_MOD_F32, false, &f->lod))
		return false;
	if (f->lod_kind == LOD_GRADIENT) {
		for (unsigned k = 0; k < n; k++)
			if (!vector_source(d, &d->operand[at], k, GPUL_PTX_MOD_F32, &f->dx[k]) ||
			    !vector_source(d, &d->operand[at + 1], k, GPUL_PTX_MOD_F32, &f->dy[k]))
				return false;
		at += 2;
	}
	if (at >= d->in->n_operands)
		return true;
	if (f->cube || at + 1 < d->in->n_operands || (f->dimensions > 1 && !gpul_operand_is_list(d->f, &d->operand[at])))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "comparing depths is not supported by the software driver");
	for (unsigned k = 0; k < f->dimensions; k++)
		if (!vector_source(d, &d->operand[at], k, GPUL_PTX_MOD_S32, &f->offset[k]))
			return false;
	f->has_offset = true;
	return true;
}

bool gpul_decode_tex(struct decoder *d)
{
	static const char *const components[] = { "r", "g", "b", "a" };
	const bool gather = d->in->opcode == GPUL_PTX_TLD4;
	const gpul_ptx_operand *from = &d->operand[1];
	struct texture_form *f = gpul_texture_form(d);

	if (!f || !gpul_texture_handle(d, from, f))
		return false;
	if (from->n_children > 2)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "separate samplers are not supported by the software driver");
	if (from->n_children < 2)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the coordinates are missing");
	f->integer = gpul_type_mod(d->in) == GPUL_PTX_MOD_S32; /* the last type modifier is for the coordinates */
	f->halves = gpul_vector_mod(d->in) == 2;
	f->lod_kind = has_text(d, "level") ? LOD_LEVEL : has_text(d, "grad") ? LOD_GRADIENT : LOD_BASE;
	for (uint8_t k = 0; k < 4; k++)
		if (gather && has_text(d, components[k]))
			f->component = k;
	return texture_results(d, f) &&
	       gpul_texture_coordinates(d, child(d, from, 1), f->integer ? GPUL_PTX_MOD_S32 : GPUL_PTX_MOD_F32, f) &&
	       texture_options(d, f) && gpul_emit(d, gather ? OP_TLD4 : OP_TEX, &(struct insn){ .object = f }) &&
	       gpul_operand_emit_pending(d);
}

/* ---- txq, suq, istypep ----------------------------------------------------------------------------- */

static const struct {
	const char *text;
	uint8_t query;
} queries[] = {
	{ "width", QUERY_WIDTH },
	{ "height", QUERY_HEIGHT },
	{ "depth", QUERY_DEPTH },
	{ "channel_data_type", QUERY_CHANNEL_TYPE },
	{ "channel_order", QUERY_CHANNEL_ORDER },
	{ "normalized_coords", QUERY_NORMALISED },
	{ "array_size", QUERY_LAYERS },
	{ "num_mipmap_levels", QUERY_LEVELS },
	{ "num_samples", QUERY_SAMPLES },
	{ "force_unnormalized_coords", QUERY_UNNORMALISED },
	{ "filter_mode", QUERY_FILTER },
	{ "addr_mode_0", QUERY_ADDRESS_0 },
	{ "addr_mode_1", QUERY_ADDRESS_1 },
	{ "addr_mode_2", QUERY_ADDRESS_2 },
	{ "memory_layout", QUERY_LAYOUT },
};

bool gpul_decode_texture_query(struct decoder *d)
{
	struct texture_form *f = gpul_program_alloc(d->p, sizeof *f, d->err);
	size_t k = 0;

	if (!f || !gpul_texture_handle(d, &d->operand[1], f))
		return false;
	while (k < sizeof queries / sizeof *queries && !has_text(d, queries[k].text))
		k++;
	if (k == sizeof queries / sizeof *queries)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this query is not supported by the software driver");
	f->query = queries[k].query;
	f->n = d->in->opcode == GPUL_PTX_SUQ ? SURFACE_OBJECT : TEXTURE_OBJECT;
	f->lod_kind = has_text(d, "level") ? LOD_LEVEL : LOD_BASE;
	if (f->lod_kind == LOD_LEVEL && !gpul_operand_source(d, &d->operand[2], GPUL_PTX_MOD_S32, false, &f->lod))
		return false;
	return gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_B32, false, &f->data[0]) &&
	       gpul_emit(d, OP_TXQ, &(struct insn){ .object = f }) && gpul_operand_emit_pending(d);
}

bool gpul_decode_istypep(struct decoder *d)
{
	struct insn made = { .n = has_text(d, "surfref") ? SURFACE_OBJECT : has_text(d, "texref") ? TEXTURE_OBJECT : 0 };

	return gpul_operand_source(d, &d->operand[1], GPUL_PTX_MOD_U64, false, &made.a) &&
	       gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_PRED, false, &made.d) && gpul_emit(d, OP_ISTYPEP, &made);
}
