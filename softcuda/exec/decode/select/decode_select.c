/* decode_select.c — selects the operation that executes an arithmetic instruction.
 *
 * The modifiers are sorted into a struct form (types, and a bit set of the other modifiers), which is compared with the opcode's rules in
 * select_rules.c.  Opcodes with too many combinations for a list (mov, setp, cvt, video instructions) have functions instead of rules. */
#include "softcuda/exec/decode/form_internal.h"

/* The bit number of each modifier in form.set, plus 1; 0: the modifier has no bit. */
static const uint8_t form_bits[GPUL_PTX_N_MODS] = {
#define X(name) [GPUL_PTX_MOD_##name] = FORM_BIT_##name + 1,
	FORM_BITS(X)
#undef X
		[GPUL_PTX_MOD_OOB] = FORM_BIT_OOB + 1,
	[GPUL_PTX_MOD_NaN] = FORM_BIT_NAN + 1, /* min and max have .NaN, setp has .nan; these are different modifiers */
};

/* Return true for .u4, .s4, .u2 and .s2, the types of cvt.pack that registers cannot have. */
static bool is_narrow_type(const char *text)
{
	return (text[0] == 'u' || text[0] == 's') && (text[1] == '4' || text[1] == '2') && !text[2];
}

static bool sort_modifiers(struct form *form)
{
	for (unsigned k = 0; k < form->inst->n_mods; k++) {
		const unsigned mod = form->inst->mods[k];
		if (mod >= GPUL_PTX_MOD_B8 && mod <= GPUL_PTX_MOD_S16X2) {
			if (form->n_types == MAX_FORM_TYPES)
				return gpul_form_refuse(form, "the instruction has more than %d types", MAX_FORM_TYPES);
			form->type[form->n_types++] = (uint16_t)mod;
		} else if (mod < GPUL_PTX_N_MODS && form_bits[mod]) {
			form->set |= (uint64_t)1 << (form_bits[mod] - 1);
		} else if (form->inst->opcode == GPUL_PTX_CVT && is_narrow_type(gpul_ptx_mod_text(form->module, mod))) {
			form->part_bits = (uint8_t)(gpul_ptx_mod_text(form->module, mod)[1] - '0');
			form->part_signed = gpul_ptx_mod_text(form->module, mod)[0] == 's';
		} else {
			return gpul_form_refuse(form, "unknown modifier .%s for %s", gpul_ptx_mod_text(form->module, mod),
						gpul_ptx_opcode_text(form->inst->opcode));
		}
	}
	return true;
}

bool gpul_select_alu(const gpul_ptx_module *m, const gpul_ptx_func *f, const gpul_ptx_inst *in, struct selection *out, char *why,
		     size_t why_bytes)
{
	struct form form = { .module = m,
			     .func = f,
			     .inst = in,
			     .operands = in->n_operands ? f->operands + in->first_operand : NULL,
			     .why = why,
			     .why_bytes = why_bytes };
	switch (in->opcode) {
	case GPUL_PTX_MOV:
		return sort_modifiers(&form) && gpul_select_mov(&form, out);
	case GPUL_PTX_SETP:
	case GPUL_PTX_SET:
		return sort_modifiers(&form) && gpul_select_compare(&form, out);
	case GPUL_PTX_CVT:
		return sort_modifiers(&form) && gpul_select_cvt(&form, out);
	default:
		break;
	}
	const struct rule_list *list = &gpul_alu_rules[in->opcode];
	if (in->n_operands == 4 && in->opcode == GPUL_PTX_MIN)
		list = &gpul_min3_rules;
	if (in->n_operands == 4 && in->opcode == GPUL_PTX_MAX)
		list = &gpul_max3_rules;
	if (list->n_rules)
		return sort_modifiers(&form) && gpul_form_match(&form, list, out);
	if (in->opcode >= GPUL_PTX_VABSDIFF && in->opcode <= GPUL_PTX_VSUB4 && in->opcode != GPUL_PTX_VOTE)
		return sort_modifiers(&form) && gpul_select_video(&form, out);
	return gpul_form_refuse(&form, "%s is not supported by the software driver", gpul_ptx_opcode_text(in->opcode));
}
