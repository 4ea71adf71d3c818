/* select_move.c — selects the operations of mov (including packing and unpacking of vectors), setp and set. */
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/decode/form_internal.h"

/* ---- mov ------------------------------------------------------------------------------------------- */

static const struct {
	uint8_t parts, part_bytes;
	uint16_t part_type, pack, unpack;
} vector_moves[] = {
	{ 2, 1, GPUL_PTX_MOD_B8, OP_PACK_2X8, OP_UNPACK_2X8 },    { 4, 1, GPUL_PTX_MOD_B8, OP_PACK_4X8, OP_UNPACK_4X8 },
	{ 2, 2, GPUL_PTX_MOD_B16, OP_PACK_2X16, OP_UNPACK_2X16 }, { 4, 2, GPUL_PTX_MOD_B16, OP_PACK_4X16, OP_UNPACK_4X16 },
	{ 2, 4, GPUL_PTX_MOD_B32, OP_PACK_2X32, OP_UNPACK_2X32 }, { 2, 8, GPUL_PTX_MOD_B64, OP_PACK_2X64, OP_UNPACK_2X64 },
};

/* Select the operation of mov.b64 d, {x, y} (pack) or mov.b64 {x, y}, d (unpack). */
static bool select_vector(const struct form *form, unsigned n_parts, bool pack, struct selection *out)
{
	const unsigned bytes = gpul_ptx_type_bytes(form->type[0]);
	for (unsigned k = 0; k < sizeof(vector_moves) / sizeof(vector_moves[0]); k++) {
		if (vector_moves[k].parts != n_parts || vector_moves[k].parts * vector_moves[k].part_bytes != bytes)
			continue;
		out->op = pack ? vector_moves[k].pack : vector_moves[k].unpack;
		out->d_type = pack ? form->type[0] : vector_moves[k].part_type;
		out->source_type[0] = pack ? vector_moves[k].part_type : form->type[0];
		out->n_sources = 1;
		return true;
	}
	return gpul_form_refuse(form, "%u bytes cannot be divided into %u equal parts", bytes, n_parts);
}

bool gpul_select_mov(const struct form *form, struct selection *out)
{
	if (form->inst->n_operands != 2 || form->n_types != 1 || form->set)
		return gpul_form_refuse(form, "mov needs one type and two operands");
	for (unsigned k = 0; k < 2; k++)
		if (gpul_operand_is_list(form->func, &form->operands[k]))
			return select_vector(form, gpul_operand_elements(form->func, &form->operands[k]), k == 1, out);
	switch (gpul_ptx_type_bytes(form->type[0])) {
	case 0:
		out->op = OP_MOV_PRED;
		break;
	case 2:
		out->op = OP_MOV_16;
		break;
	case 4:
		out->op = OP_MOV_32;
		break;
	case 8:
		out->op = OP_MOV_64;
		break;
	case 16:
		out->op = OP_MOV_128;
		break;
	default:
		return gpul_form_refuse(form, "mov does not support 8-bit types");
	}
	out->d_type = out->source_type[0] = form->type[0];
	out->n_sources = 1;
	return true;
}

/* ---- setp, set -------------------------------------------------------------------------------------- */

struct comparable {
	uint16_t type;
	uint16_t plain;     /* operation for .eq without modifiers; .ne to .ge follow in the order of enum compare; 0: none */
	uint16_t setp, set; /* operations that support all modifiers */
	uint8_t flags;
};

/* gpul_select_compare() computes `plain` + comparison, so the operations (OPS_BY_COMPARE) must have the order of enum compare. */
_Static_assert(OP_SETP_GE_U32 - OP_SETP_EQ_U32 == CMP_GE - CMP_EQ, "plain + compare");
_Static_assert(OP_SETP_LT_F64 - OP_SETP_EQ_F64 == CMP_LT - CMP_EQ, "plain + compare");

static const struct comparable comparables[] = {
	{ GPUL_PTX_MOD_B16, OP_SETP_EQ_U16, OP_SETP_ANY_16, OP_SET_ANY_16, 0 },
	{ GPUL_PTX_MOD_U16, OP_SETP_EQ_U16, OP_SETP_ANY_16, OP_SET_ANY_16, 0 },
	{ GPUL_PTX_MOD_S16, OP_SETP_EQ_S16, OP_SETP_ANY_16, OP_SET_ANY_16, COMPARE_SIGNED },
	{ GPUL_PTX_MOD_B32, OP_SETP_EQ_U32, OP_SETP_ANY_32, OP_SET_ANY_32, 0 },
	{ GPUL_PTX_MOD_U32, OP_SETP_EQ_U32, OP_SETP_ANY_32, OP_SET_ANY_32, 0 },
	{ GPUL_PTX_MOD_S32, OP_SETP_EQ_S32, OP_SETP_ANY_32, OP_SET_ANY_32, COMPARE_SIGNED },
	{ GPUL_PTX_MOD_B64, OP_SETP_EQ_U64, OP_SETP_ANY_64, OP_SET_ANY_64, 0 },
	{ GPUL_PTX_MOD_U64, OP_SETP_EQ_U64, OP_SETP_ANY_64, OP_SET_ANY_64, 0 },
	{ GPUL_PTX_MOD_S64, OP_SETP_EQ_S64, OP_SETP_ANY_64, OP_SET_ANY_64, COMPARE_SIGNED },
	{ GPUL_PTX_MOD_F32, OP_SETP_EQ_F32, OP_SETP_ANY_32, OP_SET_ANY_32, COMPARE_FLOAT },
	{ GPUL_PTX_MOD_F64, OP_SETP_EQ_F64, OP_SETP_ANY_64, OP_SET_ANY_64, COMPARE_FLOAT },
	{ GPUL_PTX_MOD_F16, 0, OP_SETP_F16, OP_SET_F16, COMPARE_FLOAT },
	{ GPUL_PTX_MOD_F16X2, 0, OP_SETP_F16X2, OP_SET_F16X2, COMPARE_FLOAT },
	{ GPUL_PTX_MOD_BF16, 0, OP_SETP_BF16, OP_SET_BF16, COMPARE_FLOAT },
	{ GPUL_PTX_MOD_BF16X2, 0, OP_SETP_BF16X2, OP_SET_BF16X2, COMPARE_FLOAT },
};

static const struct comparable *find_comparable(unsigned type)
{
	for (unsigned k = 0; k < sizeof(comparables) / sizeof(comparables[0]); k++)
		if (comparables[k].type == type)
			return &comparables[k];
	return NULL;
}

static uint8_t combining_flag(const struct form *form)
{
	return form->set & HAS(AND) ? COMBINE_AND : form->set & HAS(OR) ? COMBINE_OR : form->set & HAS(XOR) ? COMBINE_XOR : COMBINE_NONE;
}

static bool compare_operands(const struct form *form, const struct comparable *c, bool combines, struct selection *out)
{
	char signature[8] = "p=";
	char *s = signature;
	const char letter = gpul_form_letter(c->type);
	if (form->inst->opcode == GPUL_PTX_SET)
		*s++ = gpul_form_letter(form->type[0]);
	else
		*s++ = 'p';
	if (form->inst->n_operands && form->operands[0].kind == GPUL_PTX_OP_PAIR)
		*s++ = 'p';
	*s++ = '=';
	*s++ = letter;
	*s++ = letter;
	if (combines)
		*s++ = 'p';
	*s = 0;
	return gpul_form_operands(form, signature, out);
}

/* Set the destination's type for a `set` instruction: u32, s32 or f32; if `set` compares 16-bit floats, also f16, bf16, u16 or s16. */
static bool set_destination(const struct form *form, struct selection *out)
{
	const unsigned d = form->type[0];
	out->imm = gpul_ptx_type_bytes(d);
	switch (d) {
	case GPUL_PTX_MOD_U32:
	case GPUL_PTX_MOD_S32:
	case GPUL_PTX_MOD_U16:
	case GPUL_PTX_MOD_S16:
		return true;
	case GPUL_PTX_MOD_BF16:
	case GPUL_PTX_MOD_BF16X2:
		out->flags |= SET_BF16 | SET_FLOAT;
		return true;
	case GPUL_PTX_MOD_F32:
	case GPUL_PTX_MOD_F16:
	case GPUL_PTX_MOD_F16X2:
		out->flags |= SET_FLOAT;
		return true;
	default:
		return gpul_form_refuse(form, "set does not support this destination type");
	}
}

bool gpul_select_compare(const struct form *form, struct selection *out)
{
	const bool is_set = form->inst->opcode == GPUL_PTX_SET;
	const struct comparable *c = form->n_types == (is_set ? 2 : 1) ? find_comparable(form->type[is_set]) : NULL;
	const bool is_unsigned = c && (c->type == GPUL_PTX_MOD_U16 || c->type == GPUL_PTX_MOD_U32 || c->type == GPUL_PTX_MOD_U64);
	const int cmp = gpul_form_compare(form, is_unsigned);
	if (!c || cmp < 0)
		return gpul_form_refuse(form, "this comparison or type is not supported");
	if (!(c->flags & COMPARE_FLOAT) && cmp >= CMP_EQU)
		return gpul_form_refuse(form, "unordered comparisons are for floating point");
	const uint8_t combine = combining_flag(form);
	const bool ftz = form->set & HAS(FTZ);
	out->flags = (uint8_t)(c->flags | combine | (ftz ? FLAG_FTZ : 0));
	out->n = (uint8_t)cmp;
	out->op = is_set ? c->set : c->setp;
	if (is_set && !set_destination(form, out))
		return false;
	if (!compare_operands(form, c, combine != COMBINE_NONE, out))
		return false;
	if (out->d2_type)
		out->flags |= COMPARE_HAS_Q;
	else if (!is_set && !combine && !ftz && c->plain && cmp <= CMP_GE)
		out->op = (uint16_t)(c->plain + cmp);
	return true;
}
