/* select_video.c — selects the operations of video instructions (vadd .. vset and their SIMD forms). */
#include "softcuda/exec/decode/form_internal.h"

static const struct {
	uint16_t opcode;
	uint8_t op, parts;
} videos[] = {
	{ GPUL_PTX_VADD, VIDEO_ADD, 1 },         { GPUL_PTX_VADD2, VIDEO_ADD, 2 },         { GPUL_PTX_VADD4, VIDEO_ADD, 4 },
	{ GPUL_PTX_VSUB, VIDEO_SUB, 1 },         { GPUL_PTX_VSUB2, VIDEO_SUB, 2 },         { GPUL_PTX_VSUB4, VIDEO_SUB, 4 },
	{ GPUL_PTX_VABSDIFF, VIDEO_ABSDIFF, 1 }, { GPUL_PTX_VABSDIFF2, VIDEO_ABSDIFF, 2 }, { GPUL_PTX_VABSDIFF4, VIDEO_ABSDIFF, 4 },
	{ GPUL_PTX_VMIN, VIDEO_MIN, 1 },         { GPUL_PTX_VMIN2, VIDEO_MIN, 2 },         { GPUL_PTX_VMIN4, VIDEO_MIN, 4 },
	{ GPUL_PTX_VMAX, VIDEO_MAX, 1 },         { GPUL_PTX_VMAX2, VIDEO_MAX, 2 },         { GPUL_PTX_VMAX4, VIDEO_MAX, 4 },
	{ GPUL_PTX_VAVRG2, VIDEO_AVRG, 2 },      { GPUL_PTX_VAVRG4, VIDEO_AVRG, 4 },       { GPUL_PTX_VSET, VIDEO_SET, 1 },
	{ GPUL_PTX_VSET2, VIDEO_SET, 2 },        { GPUL_PTX_VSET4, VIDEO_SET, 4 },         { GPUL_PTX_VSHL, VIDEO_SHL, 1 },
	{ GPUL_PTX_VSHR, VIDEO_SHR, 1 },         { GPUL_PTX_VMAD, VIDEO_MAD, 1 },
};

static uint8_t video_flags(const struct form *form, bool is_set)
{
	const uint16_t *type = form->type;
	uint8_t flags = form->set & HAS(SAT) ? VIDEO_SAT : 0;
	if (type[0] == GPUL_PTX_MOD_S32) /* the type of d; vset has none for d, so its .min and .max use that of a */
		flags |= VIDEO_D_SIGNED;
	if (type[is_set ? 0 : 1] == GPUL_PTX_MOD_S32)
		flags |= VIDEO_A_SIGNED;
	if (type[is_set ? 1 : 2] == GPUL_PTX_MOD_S32)
		flags |= VIDEO_B_SIGNED;
	return flags;
}

static bool check_types(const struct form *form, bool is_set)
{
	if (form->n_types != (is_set ? 2 : 3))
		return gpul_form_refuse(form, "%u types are given, %d are expected", form->n_types, is_set ? 2 : 3);
	for (unsigned k = 0; k < form->n_types; k++)
		if (form->type[k] != GPUL_PTX_MOD_U32 && form->type[k] != GPUL_PTX_MOD_S32)
			return gpul_form_refuse(form, "the types of video instructions are .u32 and .s32");
	return true;
}

/* Return the secondary operation, whose other operand is c: .add .min .max, or a merge of the result into c if d has a selector. */
static uint8_t second_operation(const struct form *form)
{
	if (form->operands[0].selector != GPUL_PTX_SEL_NONE)
		return VIDEO_MERGE;
	return form->set & HAS(ADD)   ? VIDEO_2ND_ADD
	       : form->set & HAS(MIN) ? VIDEO_2ND_MIN
	       : form->set & HAS(MAX) ? VIDEO_2ND_MAX
				      : VIDEO_PLAIN;
}

static void fill_mad(const struct form *form, struct video *v)
{
	const gpul_ptx_operand *o = form->operands;
	v->shift = form->set & HAS(SHR7) ? 7 : form->set & HAS(SHR15) ? 15 : 0;
	if (form->set & HAS(PO))
		v->flags |= VIDEO_PLUS_ONE;
	if (o[1].negated != o[2].negated)
		v->flags |= VIDEO_NEG_PRODUCT;
	if (o[3].negated)
		v->flags |= VIDEO_NEG_C;
}

static bool select_scalar(const struct form *form, unsigned op, struct selection *out)
{
	const bool is_set = op == VIDEO_SET;
	const gpul_ptx_operand *o = form->operands;
	struct video v = { .op = (uint8_t)op, .flags = video_flags(form, is_set), .second = second_operation(form) };
	const bool has_c = op == VIDEO_MAD || v.second != VIDEO_PLAIN;
	for (unsigned k = 0; k < form->inst->n_operands; k++)
		if (o[k].selector == GPUL_PTX_SEL_BYTES || o[k].selector == GPUL_PTX_SEL_HALVES)
			return gpul_form_refuse(form, "operand %u selects more than one byte or half", k + 1);
	if (!gpul_form_operands(form, has_c ? "w=www" : "w=ww", out))
		return false;
	v.a_selector = o[1].selector;
	v.b_selector = o[2].selector;
	v.d_selector = o[0].selector;
	if (is_set)
		v.compare = (uint8_t)gpul_form_compare(form, true);
	if (form->set & HAS(WRAP))
		v.flags |= VIDEO_WRAP;
	if (op == VIDEO_MAD)
		fill_mad(form, &v);
	out->op = OP_VIDEO;
	memcpy(&out->imm, &v, sizeof(v));
	return true;
}

/* Return the numbers of the bytes or halves that a selector such as .b7654 or .h10 names, 3 bits each, the first in the lowest bits;
 * without a selector, all parts of the operand in ascending order. */
static uint32_t source_picks(const gpul_ptx_operand *o, unsigned parts, unsigned first)
{
	uint32_t picks = 0;
	const bool given = o->selector == GPUL_PTX_SEL_BYTES || o->selector == GPUL_PTX_SEL_HALVES;
	for (unsigned k = 0; k < parts; k++)
		picks |= (given ? (uint32_t)(o->value.i >> 4 * k & 7) : first + k) << 3 * k;
	return picks;
}

/* Return a mask of the bytes or halves of d that are written: those that the selector (.b3, .b310, .h1 ...) names, or all. */
static uint8_t written_parts(const gpul_ptx_operand *d, unsigned parts)
{
	if (d->selector >= GPUL_PTX_SEL_B0 && d->selector <= GPUL_PTX_SEL_B3)
		return (uint8_t)(1u << (d->selector - GPUL_PTX_SEL_B0));
	if (d->selector == GPUL_PTX_SEL_H0 || d->selector == GPUL_PTX_SEL_H1)
		return (uint8_t)(1u << (d->selector - GPUL_PTX_SEL_H0));
	if (d->selector == GPUL_PTX_SEL_NONE)
		return (uint8_t)((1u << parts) - 1);
	uint8_t written = 0;
	for (int64_t k = 0; k < d->value.i >> 32; k++)
		written |= (uint8_t)(1u << (d->value.i >> 4 * k & 3));
	return written;
}

static bool select_simd(const struct form *form, unsigned op, unsigned parts, struct selection *out)
{
	const bool is_set = op == VIDEO_SET;
	const gpul_ptx_operand *o = form->operands;
	if (!gpul_form_operands(form, "w=www", out))
		return false;
	const uint32_t picks = source_picks(&o[1], parts, 0) | source_picks(&o[2], parts, parts) << 12;
	const struct video_simd v = {
		.op = (uint8_t)op,
		.second = form->set & HAS(ADD) ? VIDEO_2ND_ADD : VIDEO_MERGE,
		.parts = written_parts(&o[0], parts),
		.flags = video_flags(form, is_set),
		.compare = is_set ? (uint8_t)gpul_form_compare(form, true) : 0,
		.picks = { (uint8_t)picks, (uint8_t)(picks >> 8), (uint8_t)(picks >> 16) },
	};
	out->op = OP_VIDEO_SIMD;
	out->n = (uint8_t)parts;
	memcpy(&out->imm, &v, sizeof(v));
	return true;
}

bool gpul_select_video(const struct form *form, struct selection *out)
{
	for (unsigned k = 0; k < sizeof(videos) / sizeof(videos[0]); k++) {
		if (videos[k].opcode != form->inst->opcode)
			continue;
		const bool is_set = videos[k].op == VIDEO_SET;
		if (!check_types(form, is_set))
			return false;
		if (is_set && gpul_form_compare(form, true) < 0)
			return gpul_form_refuse(form, "the comparison is missing");
		return videos[k].parts == 1 ? select_scalar(form, videos[k].op, out)
					    : select_simd(form, videos[k].op, videos[k].parts, out);
	}
	return gpul_form_refuse(form, "%s is not supported by the software driver", gpul_ptx_opcode_text(form->inst->opcode));
}
