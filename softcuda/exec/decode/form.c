/* form.c — compares an instruction's types and modifiers (its form) with the rules of its opcode, and its operands with a signature. */
#include <stdarg.h>
#include <stdio.h>

#include "softcuda/exec/decode/form_internal.h"

bool gpul_form_refuse(const struct form *form, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(form->why, form->why_bytes, fmt, ap);
	va_end(ap);
	return false;
}

static bool type_fits(unsigned rule_type, unsigned type)
{
	static const uint16_t any[][3] = {
		{ GPUL_PTX_MOD_U16, GPUL_PTX_MOD_S16, GPUL_PTX_MOD_B16 },
		{ GPUL_PTX_MOD_U32, GPUL_PTX_MOD_S32, GPUL_PTX_MOD_B32 },
		{ GPUL_PTX_MOD_U64, GPUL_PTX_MOD_S64, GPUL_PTX_MOD_B64 },
	};
	if (rule_type < ANY_16)
		return rule_type == type;
	const bool or_bits = rule_type < INT_16;
	const uint16_t *row = any[(rule_type - ANY_16) % 3];
	return type == row[0] || type == row[1] || (or_bits && type == row[2]);
}

static bool rule_fits(const struct rule *r, const struct form *form)
{
	for (unsigned k = 0; k < MAX_FORM_TYPES; k++)
		if (!type_fits(r->type[k], form->type[k]))
			return false;
	return (form->set & r->need) == r->need && !(form->set & ~(r->need | r->may));
}

static uint8_t common_flags(uint64_t set)
{
	uint8_t flags = set & HAS(RZ) ? ROUND_RZ : set & HAS(RM) ? ROUND_RM : set & HAS(RP) ? ROUND_RP : ROUND_RN;
	if (set & HAS(FTZ))
		flags |= FLAG_FTZ;
	if (set & HAS(SAT))
		flags |= FLAG_SAT;
	if (set & HAS(RELU))
		flags |= FLAG_RELU;
	if (set & HAS(NAN))
		flags |= FLAG_NAN;
	if (set & HAS(XORSIGN))
		flags |= FLAG_XORSIGN;
	return flags;
}

bool gpul_form_match(const struct form *form, const struct rule_list *list, struct selection *out)
{
	bool types_fit = false;
	for (unsigned k = 0; k < list->n_rules; k++) {
		const struct rule *r = &list->rules[k];
		if (!rule_fits(r, form)) {
			types_fit |= type_fits(r->type[0], form->type[0]) && type_fits(r->type[1], form->type[1]);
			continue;
		}
		out->op = r->op;
		out->flags = r->flags | common_flags(form->set);
		out->n = r->n;
		return gpul_form_operands(form, r->signature, out);
	}
	const char *root = gpul_ptx_opcode_text(form->inst->opcode);
	if (!types_fit)
		return gpul_form_refuse(form, "%s does not support .%s", root,
					form->n_types ? gpul_ptx_mod_text(form->module, form->type[0]) : "no type");
	return gpul_form_refuse(form, "%s does not support this combination of modifiers with .%s", root,
				gpul_ptx_mod_text(form->module, form->type[0]));
}

static uint16_t letter_type(char letter)
{
	switch (letter) {
	case 'h':
		return GPUL_PTX_MOD_B16;
	case 'w':
		return GPUL_PTX_MOD_B32;
	case 'd':
		return GPUL_PTX_MOD_B64;
	case 'q':
		return GPUL_PTX_MOD_B128;
	case 'x':
		return GPUL_PTX_MOD_F16;
	case 'y':
		return GPUL_PTX_MOD_BF16;
	case 'f':
		return GPUL_PTX_MOD_F32;
	case 'g':
		return GPUL_PTX_MOD_F64;
	case 'b':
		return GPUL_PTX_MOD_B8;
	default:
		return GPUL_PTX_MOD_PRED;
	}
}

char gpul_form_letter(unsigned type)
{
	switch (type) {
	case GPUL_PTX_MOD_F16:
		return 'x';
	case GPUL_PTX_MOD_BF16:
		return 'y';
	case GPUL_PTX_MOD_F32:
		return 'f';
	case GPUL_PTX_MOD_F64:
		return 'g';
	case GPUL_PTX_MOD_PRED:
		return 'p';
	default:
		break;
	}
	switch (gpul_ptx_type_bytes(type)) {
	case 1:
		return 'b';
	case 2:
		return 'h';
	case 4:
		return 'w';
	case 8:
		return 'd';
	case 16:
		return 'q';
	default:
		return 0;
	}
}

/* Store operand k in out->imm; it must be an integer constant. */
static bool read_immediate(const struct form *form, unsigned k, struct selection *out)
{
	const gpul_ptx_operand *o = &form->operands[k];
	if (o->kind != GPUL_PTX_OP_INT)
		return gpul_form_refuse(form, "operand %u must be an integer constant", k + 1);
	out->imm = o->value.i;
	return true;
}

bool gpul_form_operands(const struct form *form, const char *signature, struct selection *out)
{
	const char *s = signature;
	out->d_type = letter_type(*s++);
	if (*s != '=')
		out->d2_type = letter_type(*s++);
	unsigned k = 1;
	const unsigned n = form->inst->n_operands;
	const bool is_pair = n && form->operands[0].kind == GPUL_PTX_OP_PAIR;
	if (is_pair != (out->d2_type != 0))
		return gpul_form_refuse(form,
					is_pair ? "this instruction has only one destination" : "a second destination (d|p) is missing");
	for (s++; *s; s++, k++) {
		if (k >= n)
			return gpul_form_refuse(form, "%u operands are given, %zu are expected", n, k + strlen(s));
		if (*s == 'i') {
			if (!read_immediate(form, k, out))
				return false;
			out->skip |= (uint8_t)(1u << (k - 1));
		} else {
			out->source_type[out->n_sources++] = letter_type(*s);
		}
	}
	return k == n || gpul_form_refuse(form, "%u operands are given, %u are expected", n, k);
}

static const struct {
	uint64_t bit;
	int compare;
	bool is_unsigned;
} compare_modifiers[] = {
	{ HAS(EQ), CMP_EQ, false },   { HAS(NE), CMP_NE, false },   { HAS(LT), CMP_LT, false },   { HAS(LE), CMP_LE, false },
	{ HAS(GT), CMP_GT, false },   { HAS(GE), CMP_GE, false },   { HAS(LO), CMP_LT, true },    { HAS(LS), CMP_LE, true },
	{ HAS(HI), CMP_GT, true },    { HAS(HS), CMP_GE, true },    { HAS(EQU), CMP_EQU, false }, { HAS(NEU), CMP_NEU, false },
	{ HAS(LTU), CMP_LTU, false }, { HAS(LEU), CMP_LEU, false }, { HAS(GTU), CMP_GTU, false }, { HAS(GEU), CMP_GEU, false },
	{ HAS(NUM), CMP_NUM, false }, { HAS(NAN), CMP_NAN, false },
};

int gpul_form_compare(const struct form *form, bool is_unsigned)
{
	for (unsigned k = 0; k < sizeof(compare_modifiers) / sizeof(compare_modifiers[0]); k++)
		if ((form->set & compare_modifiers[k].bit) && (is_unsigned || !compare_modifiers[k].is_unsigned))
			return compare_modifiers[k].compare;
	return -1;
}
