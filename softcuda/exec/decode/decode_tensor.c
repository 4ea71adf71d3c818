/* decode_tensor.c — decodes cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and tensormap. */
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/tensor_internal.h"

static const struct {
	uint16_t mod;
	uint8_t how;
} reductions[] = {
	{ GPUL_PTX_MOD_ADD, REDUCE_ADD }, { GPUL_PTX_MOD_MIN, REDUCE_MIN }, { GPUL_PTX_MOD_MAX, REDUCE_MAX },
	{ GPUL_PTX_MOD_INC, REDUCE_INC }, { GPUL_PTX_MOD_DEC, REDUCE_DEC }, { GPUL_PTX_MOD_AND, REDUCE_AND },
	{ GPUL_PTX_MOD_OR, REDUCE_OR },   { GPUL_PTX_MOD_XOR, REDUCE_XOR },
};

/* Return the atomic operation of a reduction for a type; OP_NOP if an H200 does not support the reduction for the type. */
static enum op operation_on(unsigned how, unsigned type)
{
	/* clang-format off */
	static const uint16_t ops[N_REDUCTIONS][GPUL_TENSOR_TYPES] = {
		[REDUCE_ADD] = { [GPUL_TENSOR_U32] = OP_ATOM_ADD_32, [GPUL_TENSOR_S32] = OP_ATOM_ADD_32, [GPUL_TENSOR_U64] = OP_ATOM_ADD_64,
				 [GPUL_TENSOR_F16] = OP_ATOM_ADD_F16, [GPUL_TENSOR_BF16] = OP_ATOM_ADD_BF16, [GPUL_TENSOR_F32] = OP_ATOM_ADD_F32,
				 [GPUL_TENSOR_F32_FTZ] = OP_ATOM_ADD_F32, [GPUL_TENSOR_TF32] = OP_ATOM_ADD_F32,
				 [GPUL_TENSOR_TF32_FTZ] = OP_ATOM_ADD_F32, [GPUL_TENSOR_F64] = OP_ATOM_ADD_F64 },
		[REDUCE_MIN] = { [GPUL_TENSOR_U32] = OP_ATOM_MIN_U32, [GPUL_TENSOR_S32] = OP_ATOM_MIN_S32, [GPUL_TENSOR_U64] = OP_ATOM_MIN_U64,
				 [GPUL_TENSOR_S64] = OP_ATOM_MIN_S64, [GPUL_TENSOR_F16] = OP_ATOM_MIN_F16, [GPUL_TENSOR_BF16] = OP_ATOM_MIN_BF16 },
		[REDUCE_MAX] = { [GPUL_TENSOR_U32] = OP_ATOM_MAX_U32, [GPUL_TENSOR_S32] = OP_ATOM_MAX_S32, [GPUL_TENSOR_U64] = OP_ATOM_MAX_U64,
				 [GPUL_TENSOR_S64] = OP_ATOM_MAX_S64, [GPUL_TENSOR_F16] = OP_ATOM_MAX_F16, [GPUL_TENSOR_BF16] = OP_ATOM_MAX_BF16 },
		[REDUCE_INC] = { [GPUL_TENSOR_U32] = OP_ATOM_INC_U32 },
		[REDUCE_DEC] = { [GPUL_TENSOR_U32] = OP_ATOM_DEC_U32 },
		[REDUCE_AND] = { [GPUL_TENSOR_U32] = OP_ATOM_AND_32, [GPUL_TENSOR_S32] = OP_ATOM_AND_32, [GPUL_TENSOR_U64] = OP_ATOM_AND_64 },
		[REDUCE_OR] = { [GPUL_TENSOR_U32] = OP_ATOM_OR_32, [GPUL_TENSOR_S32] = OP_ATOM_OR_32, [GPUL_TENSOR_U64] = OP_ATOM_OR_64 },
		[REDUCE_XOR] = { [GPUL_TENSOR_U32] = OP_ATOM_XOR_32, [GPUL_TENSOR_S32] = OP_ATOM_XOR_32, [GPUL_TENSOR_U64] = OP_ATOM_XOR_64 },
	};
	/* clang-format on */

	return ops[how][type] ? (enum op)ops[how][type] : OP_NOP;
}

static bool has_text(const struct decoder *d, const char *text)
{
	for (unsigned k = 0; k < d->in->n_mods; k++)
		if (!strcmp(gpul_ptx_mod_text(d->m, d->in->mods[k]), text))
			return true;
	return false;
}

static unsigned rank_of(const struct decoder *d)
{
	for (unsigned k = 0; k < d->in->n_mods; k++) {
		const char *text = gpul_ptx_mod_text(d->m, d->in->mods[k]);

		if (text[0] >= '1' && text[0] <= '5' && text[1] == 'd' && !text[2])
			return (unsigned)(text[0] - '0');
	}
	return 0;
}

/* Decode the operand [map, {x, y ...}]: the address of the tensor map, and coordinates. */
static bool decode_map(struct decoder *d, const gpul_ptx_operand *o, struct tensor_copy *c)
{
	unsigned n = 0;

	if (!gpul_decode_address(d, o, SPACE_GENERIC, &c->map))
		return false;
	for (unsigned k = 1; k < o->n_children; k++) {
		const gpul_ptx_operand *one = child(d, o, k);
		const bool list = one->kind == GPUL_PTX_OP_VECTOR;

		for (unsigned e = 0; e < (list ? one->n_children : 1); e++, n++)
			if (n < GPUL_TENSOR_RANKS &&
			    !gpul_operand_source(d, list ? child(d, one, e) : one, GPUL_PTX_MOD_S32, false, &c->at[n]))
				return false;
	}
	return n == c->rank || gpul_decode_fail(d, GPUL_EFORMAT, "%u coordinates are given, %u are expected", n, c->rank);
}

/* Decode the im2col offsets {w, h ...}, one for each spatial dimension (each dimension of the tensor except channels and images). */
static bool decode_offsets(struct decoder *d, const gpul_ptx_operand *o, struct tensor_copy *c)
{
	const unsigned n = gpul_operand_elements(d->f, o);

	if (n != c->rank - 2u)
		return gpul_decode_fail(d, GPUL_EFORMAT, "%u offsets are given, %u are expected", n, c->rank - 2u);
	for (unsigned k = 0; k < n; k++) {
		const gpul_ptx_operand one = gpul_operand_is_list(d->f, o) ? gpul_operand_element(d, o, k) : *o;

		if (!gpul_operand_source(d, &one, GPUL_PTX_MOD_U16, true, &c->offset[k]))
			return false;
	}
	return true;
}

static void set_reduction(struct tensor_copy *c, unsigned how)
{
	for (unsigned type = 0; type < GPUL_TENSOR_TYPES; type++) {
		const enum op op = operation_on(how, type);

		c->op[type] = (uint16_t)op;
		c->step[type] = op == OP_NOP ? NULL : gpul_handler(op);
	}
}

bool gpul_decode_tensor_copy(struct decoder *d)
{
	struct tensor_copy *c = gpul_program_alloc(d->p, sizeof *c, d->err);
	const bool load = has_mod(d, GPUL_PTX_MOD_MBARRIER__COMPLETE_TX__BYTES), reduces = has_mod(d, GPUL_PTX_MOD_REDUCE);
	const gpul_ptx_operand *map = &d->operand[load], *shared = &d->operand[!load];
	const enum op op = load ? OP_TENSOR_LOAD : reduces ? OP_TENSOR_REDUCE : OP_TENSOR_STORE;

	if (!c)
		return false;
	c->rank = (uint8_t)rank_of(d);
	c->map.src = c->shared.src = c->barrier.src = d->src;
	c->barrier.n = MBAR_COMPLETES;
	c->has_offsets = has_text(d, "im2col");
	c->im2col = c->has_offsets || has_text(d, "im2col_no_offs");
	if (has_text(d, "im2col::w") || has_text(d, "im2col::w::128") || has_text(d, "tile::gather4") || has_text(d, "tile::scatter4"))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this mode, which needs sm_100, is not supported by the software driver");
	for (size_t k = 0; reduces && k < sizeof reductions / sizeof reductions[0]; k++)
		if (has_mod(d, reductions[k].mod))
			set_reduction(c, reductions[k].how);
	if (!c->rank || (c->im2col && c->rank < 3) || d->in->n_operands < 2u + load + c->has_offsets ||
	    (!load && !has_mod(d, GPUL_PTX_MOD_BULK_GROUP)))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this tensor copy is not supported by the software driver");
	if (!decode_map(d, map, c) || !gpul_decode_address(d, shared, SPACE_SHARED, &c->shared) ||
	    (load && !gpul_decode_address(d, &d->operand[2], SPACE_SHARED, &c->barrier)))
		return false;
	if (c->has_offsets && !decode_offsets(d, &d->operand[3], c))
		return false;
	c->multicast = has_mod(d, GPUL_PTX_MOD_MULTICAST__CLUSTER);
	if (c->multicast && !gpul_operand_source(d, &d->operand[3 + c->has_offsets], GPUL_PTX_MOD_U16, true, &c->ranks))
		return false;
	return gpul_emit(d, op, &(struct insn){ .object = c });
}

/* ---- tensormap --------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	uint8_t field, dimensions, values;
} fields[] = {
	/* dimensions 0: the instruction has no index operand for the field; values 0: any value is valid, and may be in a register */
	{ "global_address", FIELD_ADDRESS, 0, 0 },
	{ "rank", FIELD_RANK, 0, 0 },
	{ "box_dim", FIELD_BOX, GPUL_TENSOR_RANKS, 0 },
	{ "global_dim", FIELD_DIMENSION, GPUL_TENSOR_RANKS, 0 },
	{ "global_stride", FIELD_STRIDE, GPUL_TENSOR_RANKS - 1, 0 },
	{ "element_stride", FIELD_STEP, GPUL_TENSOR_RANKS, 0 },
	{ "elemtype", FIELD_TYPE, 0, GPUL_TENSOR_TYPES },
	{ "interleave_layout", FIELD_INTERLEAVE, 0, 3 },
	{ "swizzle_mode", FIELD_SWIZZLE, 0, 4 },
	{ "swizzle_atomicity", FIELD_WITHOUT_EFFECT, 0, 1 },
	{ "fill_mode", FIELD_FILL, 0, 2 },
};

/* Convert a type number of .elemtype (PTX ISA 9.0, table 33) to one of CUtensorMapDataType, whose order differs. */
static uint64_t type_of_element(uint64_t value)
{
	static const uint8_t types[GPUL_TENSOR_TYPES] = {
		GPUL_TENSOR_U8,   GPUL_TENSOR_U16,  GPUL_TENSOR_U32,      GPUL_TENSOR_S32,     GPUL_TENSOR_U64,
		GPUL_TENSOR_S64,  GPUL_TENSOR_F16,  GPUL_TENSOR_F32,      GPUL_TENSOR_F32_FTZ, GPUL_TENSOR_F64,
		GPUL_TENSOR_BF16, GPUL_TENSOR_TF32, GPUL_TENSOR_TF32_FTZ,
	};

	return types[value];
}

static unsigned space_of_map(const struct decoder *d)
{
	return has_text(d, "global") ? SPACE_GLOBAL : has_text(d, "shared::cta") ? SPACE_SHARED : SPACE_GENERIC;
}

/* Read an immediate operand, which must be below a limit. */
static bool read_immediate(struct decoder *d, const gpul_ptx_operand *o, unsigned limit, uint64_t *value)
{
	*value = (uint64_t)o->value.i;
	return (o->kind == GPUL_PTX_OP_INT && *value < limit) ||
	       gpul_decode_fail(d, GPUL_EUNSUPPORTED,
				"this value of the field is not supported by the software driver: a number below %u is expected", limit);
}

static bool decode_replace(struct decoder *d)
{
	struct tensor_replace *r = gpul_program_alloc(d->p, sizeof *r, d->err);
	const gpul_ptx_operand *value;
	uint64_t n = 0;
	size_t k = 0;

	if (!r)
		return false;
	while (k < sizeof fields / sizeof *fields && !has_text(d, fields[k].text))
		k++;
	if (k == sizeof fields / sizeof *fields || d->in->n_operands != 2u + (fields[k].dimensions > 0))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this field of a tensor map is not supported by the software driver");
	r->map.src = d->src;
	r->field = fields[k].field;
	value = &d->operand[d->in->n_operands - 1];
	if (!gpul_decode_address(d, &d->operand[0], space_of_map(d), &r->map) ||
	    (fields[k].dimensions && !read_immediate(d, &d->operand[1], fields[k].dimensions, &n)))
		return false;
	r->dimension = (uint8_t)n;
	if (!fields[k].values) {
		const bool wide = r->field == FIELD_ADDRESS || r->field == FIELD_STRIDE;

		if (!gpul_operand_source(d, value, wide ? GPUL_PTX_MOD_B64 : GPUL_PTX_MOD_B32, false, &r->value))
			return false;
	} else if (!read_immediate(d, value, fields[k].values, &n) ||
		   !gpul_operand_const(d, r->field == FIELD_TYPE ? type_of_element(n) : n, 4, &r->value)) {
		return false;
	}
	return gpul_emit(d, OP_TENSOR_MAP_REPLACE, &(struct insn){ .object = r });
}

/* Decode tensormap.cp_fenceproxy [to], [from], 128, which copies to global memory.  The fence between proxies has no
 * effect, because the interpreter has no separate proxies. */
static bool decode_map_copy(struct decoder *d)
{
	struct tensor_map_copy *c = gpul_program_alloc(d->p, sizeof *c, d->err);

	if (!c)
		return false;
	c->to.src = c->from.src = d->src;
	if (d->in->n_operands != 3 || !gpul_decode_address(d, &d->operand[0], SPACE_GLOBAL, &c->to) ||
	    !gpul_decode_address(d, &d->operand[1], SPACE_SHARED, &c->from))
		return false;
	return gpul_emit(d, OP_TENSOR_MAP_COPY, &(struct insn){ .object = c });
}

bool gpul_decode_tensormap(struct decoder *d)
{
	if (has_text(d, "cp_fenceproxy"))
		return decode_map_copy(d);
	return has_text(d, "replace") ? decode_replace(d)
				      : gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this operation is not supported by the software driver");
}
