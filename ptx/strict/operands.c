/* operands.c — checks the operands of an instruction against the letters (`args`) of its table entry in forms_*.c. */
#include "ptx/strict/strict_internal.h"

#include <string.h>

enum type_class { CLASS_BITS, CLASS_INT, CLASS_FLOAT, CLASS_PACKED, CLASS_PRED };

struct operand {
	const gpul_ptx_inst *in;
	const gpul_ptx_operand *o;
	unsigned number; /* number of the operand in the instruction, from 1, for messages */
};

static enum type_class class_of(unsigned type)
{
	switch (type) {
	case GPUL_PTX_MOD_B8:
	case GPUL_PTX_MOD_B16:
	case GPUL_PTX_MOD_B32:
	case GPUL_PTX_MOD_B64:
	case GPUL_PTX_MOD_B128:
		return CLASS_BITS;
	case GPUL_PTX_MOD_U8:
	case GPUL_PTX_MOD_U16:
	case GPUL_PTX_MOD_U32:
	case GPUL_PTX_MOD_U64:
	case GPUL_PTX_MOD_S8:
	case GPUL_PTX_MOD_S16:
	case GPUL_PTX_MOD_S32:
	case GPUL_PTX_MOD_S64:
		return CLASS_INT;
	case GPUL_PTX_MOD_F16:
	case GPUL_PTX_MOD_BF16:
	case GPUL_PTX_MOD_F32:
	case GPUL_PTX_MOD_F64:
		return CLASS_FLOAT;
	case GPUL_PTX_MOD_PRED:
		return CLASS_PRED;
	default:
		return CLASS_PACKED;
	}
}

/* True if a register of type `have` can hold a value of type `want`. larger: the register may be larger than the value. */
static bool accepts(unsigned want, unsigned have, bool larger)
{
	unsigned want_bytes = gpul_ptx_type_bytes(want), have_bytes = gpul_ptx_type_bytes(have);
	enum type_class wanted = class_of(want), held = class_of(have);

	if (wanted == CLASS_PRED || held == CLASS_PRED)
		return wanted == held;
	if (have_bytes < want_bytes || (have_bytes > want_bytes && (!larger || want == GPUL_PTX_MOD_BF16)))
		return false;
	if (held == CLASS_BITS || wanted == CLASS_BITS)
		return true;
	if (wanted == CLASS_INT)
		return held == CLASS_INT || have == GPUL_PTX_MOD_F16X2;
	if (wanted == CLASS_FLOAT)
		return have == want;
	return have == want;
}

static const char *type_text(const struct strict *s, unsigned type)
{
	return gpul_ptx_mod_text(s->m, type);
}

static gpul_status fail_type(struct strict *s, const struct operand *a, unsigned want, unsigned have)
{
	char name[128];

	return strict_fail_inst(s, a->in, "%s: operand %u must be of type .%s, not a register of type .%s",
				gpul_ptx_inst_text(s->m, a->in, name, sizeof name), a->number, type_text(s, want), type_text(s, have));
}

static gpul_status fail_operand(struct strict *s, const struct operand *a, const char *expected)
{
	char name[128];

	return strict_fail_inst(s, a->in, "%s: operand %u must be %s", gpul_ptx_inst_text(s->m, a->in, name, sizeof name), a->number,
				expected);
}

/* Return the state space that the modifiers name, without a suffix such as ::cta; NONE: generic addressing. */
static unsigned space_of(const gpul_ptx_inst *in)
{
	for (unsigned i = 0; i < in->n_mods; i++)
		switch (in->mods[i]) {
		case GPUL_PTX_MOD_GLOBAL:
		case GPUL_PTX_MOD_LOCAL:
		case GPUL_PTX_MOD_CONST:
			return in->mods[i];
		case GPUL_PTX_MOD_SHARED:
		case GPUL_PTX_MOD_SHARED__CTA:
		case GPUL_PTX_MOD_SHARED__CLUSTER:
			return GPUL_PTX_MOD_SHARED;
		case GPUL_PTX_MOD_PARAM:
		case GPUL_PTX_MOD_PARAM__ENTRY:
		case GPUL_PTX_MOD_PARAM__FUNC:
			return GPUL_PTX_MOD_PARAM;
		default:
			break;
		}
	return GPUL_PTX_MOD_NONE;
}

static const gpul_ptx_var *variable_of(const struct strict *s, const gpul_ptx_operand *o)
{
	switch (o->ref_kind) {
	case GPUL_PTX_REF_MODULE_VAR:
		return &s->m->vars[o->index];
	case GPUL_PTX_REF_FUNC_VAR:
		return &s->f->vars[o->index];
	case GPUL_PTX_REF_PARAM:
		return &s->f->params[o->index];
	case GPUL_PTX_REF_RET:
		return &s->f->rets[o->index];
	default:
		return NULL;
	}
}

/* ---- registers and literals --------------------------------------------------------------- */

static gpul_status check_literal(struct strict *s, const struct operand *a, unsigned type)
{
	bool is_int = a->o->kind == GPUL_PTX_OP_INT;

	switch (class_of(type)) {
	case CLASS_FLOAT:
		if (type == GPUL_PTX_MOD_F16 || type == GPUL_PTX_MOD_BF16)
			return fail_operand(s, a, "a register: this type has no literals");
		return is_int ? fail_operand(s, a, "a register or a floating-point literal, such as 1.0 or 0f3F800000") : GPUL_OK;
	case CLASS_PACKED:
		return fail_operand(s, a, "a register: this type has no literals");
	case CLASS_BITS: /* in mov.b32 r, 0f3F800000 the literal must have as many bits as the type */
		if (is_int || gpul_ptx_type_bytes(type) == (a->o->kind == GPUL_PTX_OP_F32 ? 4 : 8))
			return GPUL_OK;
		return fail_operand(s, a,
				    "a register or an integer, or a floating-point literal of its size: 0f... for .b32, 0d... for .b64");
	default:
		return is_int ? GPUL_OK : fail_operand(s, a, "a register or an integer, not a floating-point literal");
	}
}

/* True for a whole vector register, without a selector such as .x. */
static bool is_vector(const struct strict *s, const gpul_ptx_operand *o)
{
	return o->kind == GPUL_PTX_OP_REG && o->selector == GPUL_PTX_SEL_NONE && gpul_ptx_reg_row(s->f, o->index)->vector > 1;
}

/* Check an operand that is a variable, as in cvta.global.u64 d, variable. */
static gpul_status check_cvta_variable(struct strict *s, const struct operand *a)
{
	const gpul_ptx_var *v = variable_of(s, a->o);

	if (gpul_ptx_has_mod(a->in, GPUL_PTX_MOD_TO))
		return fail_operand(s, a, "a register that has a generic address");
	return !v || v->space == space_of(a->in) ? GPUL_OK : fail_operand(s, a, "an address in the state space of the instruction");
}

/* Check a register or literal against a type. */
static gpul_status check_value(struct strict *s, const struct operand *a, unsigned type, bool larger)
{
	switch (a->o->kind) {
	case GPUL_PTX_OP_REG: {
		unsigned have = gpul_ptx_reg_row(s->f, a->o->index)->type;

		if (is_vector(s, a->o))
			return GPUL_OK;
		if (a->o->negated && class_of(type) != CLASS_PRED)
			return fail_operand(s, a, "a register without a sign");
		return accepts(type, have, larger) ? GPUL_OK : fail_type(s, a, type, have);
	}
	case GPUL_PTX_OP_INT:
	case GPUL_PTX_OP_F32:
	case GPUL_PTX_OP_F64:
		if (class_of(type) == CLASS_PRED)
			return GPUL_OK;
		return check_literal(s, a, type);
	case GPUL_PTX_OP_SYMBOL:
		if (a->in->opcode == GPUL_PTX_CVTA)
			return check_cvta_variable(s, a);
		if (a->in->opcode == GPUL_PTX_MOV || a->o->value.i || a->o->ref_kind == GPUL_PTX_REF_FUNC ||
		    a->o->ref_kind == GPUL_PTX_REF_NONE)
			return GPUL_OK;
		return fail_operand(s, a, "a register or literal: mov loads the address of a variable");
	case GPUL_PTX_OP_PAIR:
		return fail_operand(s, a, "one register, not a pair as in r|p");
	case GPUL_PTX_OP_LABEL:
	case GPUL_PTX_OP_ADDRESS:
		return fail_operand(s, a, a->o->kind == GPUL_PTX_OP_LABEL ? "a value, not a label" : "a value, not an address in brackets");
	default:
		return GPUL_OK;
	}
}

/* Check a result operand: every operand that is valid as a value is valid as a result, except a literal. */
static gpul_status check_result(struct strict *s, const struct operand *a, unsigned type, bool larger)
{
	if (a->o->kind == GPUL_PTX_OP_INT || a->o->kind == GPUL_PTX_OP_F32 || a->o->kind == GPUL_PTX_OP_F64)
		return fail_operand(s, a, "a register: the result is stored there");
	if (a->o->kind == GPUL_PTX_OP_SINK && a->in->opcode != GPUL_PTX_ATOM && a->in->opcode != GPUL_PTX_LOP3 &&
	    type != GPUL_PTX_MOD_BF16 && type != GPUL_PTX_MOD_BF16X2)
		return fail_operand(s, a, "a register: only some instructions accept _");
	return check_value(s, a, type, larger);
}

static bool has_l2_priority(const gpul_ptx_inst *in)
{
	return gpul_ptx_has_mod(in, GPUL_PTX_MOD_L2__EVICT_LAST) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_L2__EVICT_NORMAL) ||
	       gpul_ptx_has_mod(in, GPUL_PTX_MOD_L2__EVICT_FIRST);
}

/* Vectors of 32 bytes, as in ld.global.v8.u32, need a newer PTX than those of 16 bytes. */
static gpul_status check_vector_bytes(struct strict *s, const struct operand *a, unsigned bytes)
{
	unsigned space = space_of(a->in);

	if (bytes <= 16 && has_l2_priority(a->in))
		return fail_operand(s, a, "a vector of 32 bytes, because .L2::evict_first, _last and _normal apply only to those");
	if (bytes <= 16)
		return GPUL_OK;
	if (bytes > 32 || gpul_ptx_has_mod(a->in, GPUL_PTX_MOD_B128) || (space && space != GPUL_PTX_MOD_GLOBAL) ||
	    (a->in->opcode != GPUL_PTX_LD && a->in->opcode != GPUL_PTX_ST))
		return fail_operand(s, a, "a vector of at most 16 bytes, or 32 in .global memory");
	if (s->sm < 100)
		return strict_fail_inst(s, a->in, "a vector of 32 bytes needs .target sm_100 or higher; this module has sm_%u", s->sm);
	if (s->version < 88)
		return strict_fail_inst(s, a->in, "a vector of 32 bytes needs .version 8.8 or higher; this module has %u.%u",
					s->version / 10, s->version % 10);
	return GPUL_OK;
}

/* Check each element of {a, b}, or a single value, against the type. */
static gpul_status check_elements(struct strict *s, const struct operand *a, unsigned type)
{
	gpul_status st = GPUL_OK;
	unsigned n = 1;

	for (unsigned i = 0; i < a->in->n_mods; i++)
		n = a->in->mods[i] == GPUL_PTX_MOD_V2   ? 2
		    : a->in->mods[i] == GPUL_PTX_MOD_V4 ? 4
		    : a->in->mods[i] == GPUL_PTX_MOD_V8 ? 8
							: n;
	st = check_vector_bytes(s, a, n * gpul_ptx_type_bytes(type));
	if (st || is_vector(s, a->o))
		return st;
	if (a->o->kind == GPUL_PTX_OP_F32 || a->o->kind == GPUL_PTX_OP_F64)
		return class_of(type) == CLASS_BITS ? GPUL_OK : check_value(s, a, type, true);
	if (a->o->kind != GPUL_PTX_OP_VECTOR && n == 1)
		return a->number == 1 ? check_result(s, a, type, true) : check_value(s, a, type, true);
	if (a->o->kind != GPUL_PTX_OP_VECTOR || a->o->n_children != n)
		return fail_operand(s, a,
				    n == 1   ? "one value: the instruction has no .v2, .v4 or .v8"
				    : n == 2 ? "a vector of 2 values"
				    : n == 4 ? "a vector of 4 values"
					     : "a vector of 8 values");
	for (uint32_t i = 0; !st && i < a->o->n_children; i++) {
		const gpul_ptx_operand *child = &s->f->operands[a->o->first_child + i];
		struct operand one = { a->in, child, a->number };
		unsigned have = child->kind == GPUL_PTX_OP_REG ? gpul_ptx_reg_row(s->f, child->index)->type : GPUL_PTX_MOD_NONE;

		if (have && class_of(have) == CLASS_INT && gpul_ptx_type_bytes(have) == gpul_ptx_type_bytes(type))
			continue; /* ptxas does not compare the kinds (signed, unsigned, bits) of the elements */
		st = check_value(s, &one, type, true);
	}
	return st;
}

/* Check an operand of mov: a single value, or a vector whose elements together have the size of the type. */
static gpul_status check_move(struct strict *s, const struct operand *a, unsigned type)
{
	unsigned bytes = gpul_ptx_type_bytes(type);

	if (a->o->kind != GPUL_PTX_OP_VECTOR)
		return a->number == 1 ? check_result(s, a, type, false) : check_value(s, a, type, false);
	if (class_of(type) != CLASS_BITS)
		return fail_operand(s, a, "one value: only the types .b16, .b32, .b64 and .b128 pack vectors");
	for (uint32_t i = 0; i < a->o->n_children; i++) {
		const gpul_ptx_operand *child = &s->f->operands[a->o->first_child + i];
		unsigned have = child->kind == GPUL_PTX_OP_REG ? gpul_ptx_reg_row(s->f, child->index)->type : GPUL_PTX_MOD_NONE;

		if (have && gpul_ptx_type_bytes(have) * a->o->n_children != bytes)
			return fail_operand(s, a, "a vector whose elements have the size of the type together");
	}
	return GPUL_OK;
}

static gpul_status check_predicate(struct strict *s, const struct operand *a, bool may_negate)
{
	if (a->o->kind == GPUL_PTX_OP_REG && gpul_ptx_reg_row(s->f, a->o->index)->type != GPUL_PTX_MOD_PRED)
		return fail_operand(s, a, "a register of type .pred");
	if (a->o->kind == GPUL_PTX_OP_REG && a->o->negated && !may_negate)
		return fail_operand(s, a, "a predicate without a sign");
	return GPUL_OK;
}

static gpul_status check_pair(struct strict *s, const struct operand *a, unsigned first_type)
{
	gpul_status st;

	if (a->o->kind != GPUL_PTX_OP_PAIR)
		return first_type == GPUL_PTX_MOD_PRED ? check_predicate(s, a, false) : check_result(s, a, first_type, false);
	struct operand first = { a->in, &s->f->operands[a->o->first_child], a->number };
	struct operand second = { a->in, &s->f->operands[a->o->first_child + 1], a->number };

	if (first.o->kind == GPUL_PTX_OP_SINK)
		return check_predicate(s, &second, false);
	st = first_type == GPUL_PTX_MOD_PRED ? check_predicate(s, &first, false) : check_value(s, &first, first_type, false);
	return st ? st : check_predicate(s, &second, false);
}

/* ---- addresses ---------------------------------------------------------------------------- */

static bool is_address(const struct strict *s, const gpul_ptx_operand *o)
{
	enum type_class held = class_of(gpul_ptx_reg_row(s->f, o->index)->type);

	return held == CLASS_BITS || held == CLASS_INT;
}

static gpul_status check_address(struct strict *s, const struct operand *a)
{
	unsigned space = space_of(a->in), op = a->in->opcode;
	bool memory = op == GPUL_PTX_LD || op == GPUL_PTX_ST || op == GPUL_PTX_ATOM || op == GPUL_PTX_RED || op == GPUL_PTX_LDU;
	const gpul_ptx_operand *base;
	const gpul_ptx_var *v;

	if (a->o->kind != GPUL_PTX_OP_ADDRESS)
		return fail_operand(s, a, "an address in brackets");
	if (a->o->selector == GPUL_PTX_SEL_UNIFIED && space && space != GPUL_PTX_MOD_GLOBAL)
		return fail_operand(s, a, "an address without .unified, which needs .global or no state space");
	base = &s->f->operands[a->o->first_child];
	if (base->kind == GPUL_PTX_OP_REG)
		return is_address(s, base) ? GPUL_OK : fail_operand(s, a, "an address in a register of an integer or bit type");
	v = base->kind == GPUL_PTX_OP_SYMBOL ? variable_of(s, base) : NULL;
	if (a->o->selector == GPUL_PTX_SEL_UNIFIED && v && !(v->attributes & GPUL_PTX_ATTRIBUTE_UNIFIED))
		return fail_operand(s, a, "a register, or a variable with .attribute(.unified), before .unified");
	if (!memory)
		return GPUL_OK;
	if (base->kind == GPUL_PTX_OP_INT)
		return space == GPUL_PTX_MOD_LOCAL
			       ? GPUL_OK
			       : fail_operand(s, a, "a register or a variable: only .local has addresses that are numbers");
	if (v && v->space != GPUL_PTX_MOD_REG && v->space != space && (space || v->space == GPUL_PTX_MOD_PARAM))
		return fail_operand(s, a, "an address in the state space of the instruction");
	if (op == GPUL_PTX_ST && base->ref_kind == GPUL_PTX_REF_PARAM && s->f->kind == GPUL_PTX_FUNC_ENTRY)
		return fail_operand(s, a, "an address that can be written: a kernel cannot write its parameters");
	return GPUL_OK;
}

/* ---- operands, by the letters in strict_form.args ------------------------------------------ */

static unsigned twice(unsigned type)
{
	switch (type) {
	case GPUL_PTX_MOD_U16:
		return GPUL_PTX_MOD_U32;
	case GPUL_PTX_MOD_S16:
		return GPUL_PTX_MOD_S32;
	case GPUL_PTX_MOD_U32:
		return GPUL_PTX_MOD_U64;
	default:
		return GPUL_PTX_MOD_S64;
	}
}

static gpul_status check_typed(struct strict *s, const struct operand *a, unsigned type, bool larger)
{
	if (type >= GPUL_PTX_N_MODS || !gpul_ptx_type_bytes(type))
		type = type == GPUL_PTX_MOD_PRED ? type : GPUL_PTX_MOD_NONE;
	if (!type)
		return GPUL_OK;
	if (a->in->opcode == GPUL_PTX_MOV)
		return check_move(s, a, type);
	return a->number == 1 ? check_result(s, a, type, larger) : check_value(s, a, type, larger);
}

static unsigned last_type(const struct strict *s, const gpul_ptx_inst *in)
{
	unsigned type = GPUL_PTX_MOD_NONE, t;

	for (unsigned n = 0; (t = strict_type(s, in, n)) != GPUL_PTX_MOD_NONE; n++)
		type = t;
	return type;
}

static gpul_status check_letter(struct strict *s, const struct operand *a, char letter)
{
	switch (letter) {
	case '0':
	case '1':
	case '2':
	case '3':
		return check_typed(s, a, strict_type(s, a->in, (unsigned)(letter - '0')), false);
	case 'A':
	case 'B':
		return check_typed(s, a, strict_type(s, a->in, letter == 'B'), true);
	case 'D':
		return check_typed(s, a, twice(strict_type(s, a->in, 0)), false);
	case 'V':
		return check_elements(s, a, last_type(s, a->in));
	case 'T':
		return check_pair(s, a, strict_type(s, a->in, 0));
	case 'E':
		return a->o->kind == GPUL_PTX_OP_PAIR ? check_pair(s, a, GPUL_PTX_MOD_B32)
						      : fail_operand(s, a, "a register and a predicate, as in r|p");
	case 'P':
		return check_pair(s, a, GPUL_PTX_MOD_PRED);
	case 'M':
		return strict_check_matrix(s, a->in, a->o, a->number);
	case 'S':
		return a->o->kind == GPUL_PTX_OP_SINK ? GPUL_OK : check_value(s, a, GPUL_PTX_MOD_B64, false);
	case 'w':
		return check_value(s, a, GPUL_PTX_MOD_B32, false);
	case 'l':
		return check_value(s, a, GPUL_PTX_MOD_B64, false);
	case 'h':
		return check_value(s, a, GPUL_PTX_MOD_B16, false);
	case 'u':
		return check_value(s, a, GPUL_PTX_MOD_U32, false);
	case 'i':
		return a->o->kind == GPUL_PTX_OP_REG && !is_address(s, a->o)
			       ? fail_operand(s, a, "an address in a register of an integer or bit type")
			       : GPUL_OK;
	case 'p':
		return check_predicate(s, a, false);
	case 'q':
		return check_predicate(s, a, true);
	case 'm':
		return check_address(s, a);
	case 'c':
		return a->o->kind == GPUL_PTX_OP_INT ? GPUL_OK : fail_operand(s, a, "a constant");
	default:
		return GPUL_OK;
	}
}

/* Check the operands of bar.sync 3, 64: barrier number and thread count. */
static gpul_status check_barrier(struct strict *s, const gpul_ptx_inst *in)
{
	unsigned first = gpul_ptx_has_mod(in, GPUL_PTX_MOD_RED);

	if (in->n_mods && (gpul_ptx_has_mod(in, GPUL_PTX_MOD_CLUSTER) || !strcmp(gpul_ptx_mod_text(s->m, in->mods[0]), "warp")))
		return GPUL_OK;
	for (unsigned i = first; i < in->n_operands && i < first + 2; i++) {
		const gpul_ptx_operand *o = &s->f->operands[in->first_operand + i];

		if (o->kind != GPUL_PTX_OP_INT)
			continue;
		if (i == first && (o->value.i < 0 || o->value.i > 15))
			return strict_fail_inst(s, in, "barrier %lld does not exist: expected a number from 0 to 15",
						(long long)o->value.i);
		if (i > first && (o->value.i < 0 || o->value.i % 32 || (!o->value.i && gpul_ptx_has_mod(in, GPUL_PTX_MOD_ARRIVE))))
			return strict_fail_inst(s, in, "a barrier cannot wait for %lld threads: expected a multiple of 32",
						(long long)o->value.i);
	}
	return GPUL_OK;
}

/* Check "call (results), function, (arguments)": the numbers of results and arguments must be those of the function. */
static gpul_status check_call(struct strict *s, const gpul_ptx_inst *in)
{
	const gpul_ptx_operand *o = &s->f->operands[in->first_operand], *end = o + in->n_operands;
	const bool has_results = o < end && o->kind == GPUL_PTX_OP_LIST;
	const uint32_t n_results = has_results ? o->n_children : 0;

	o += has_results;
	if (o >= end || o->kind != GPUL_PTX_OP_SYMBOL || o->ref_kind != GPUL_PTX_REF_FUNC)
		return GPUL_OK;
	const gpul_ptx_func *f = &s->m->funcs[o->index];
	const uint32_t n_args = ++o < end && o->kind == GPUL_PTX_OP_LIST ? o->n_children : 0;

	/* a last parameter such as .param .b8 rest[] accepts any number of bytes, or none */
	if (f->n_params && !f->params[f->n_params - 1].bytes)
		return GPUL_OK;
	if (n_args != f->n_params || n_results != f->n_rets)
		return strict_fail_inst(s, in, "call has %u arguments and %u results: %.80s has %u and %u", n_args, n_results,
					gpul_ptx_name(s->m, f->name), f->n_params, f->n_rets);
	return GPUL_OK;
}

/* Check the signs of operands, as in -f1 and !r1, alone or in {...}.  Only predicates and the operands of vmad may have one. */
static gpul_status check_signs(struct strict *s, const gpul_ptx_inst *in)
{
	for (unsigned i = 0; i < in->n_operands && in->opcode != GPUL_PTX_VMAD; i++) {
		const gpul_ptx_operand *o = &s->f->operands[in->first_operand + i];
		const bool is_list = o->kind == GPUL_PTX_OP_VECTOR;
		const gpul_ptx_operand *at = is_list ? &s->f->operands[o->first_child] : o;

		for (uint32_t k = 0; k < (is_list ? o->n_children : 1); k++, at++) {
			struct operand a = { in, at, i + 1 };

			if (at->kind == GPUL_PTX_OP_REG && at->negated && gpul_ptx_reg_row(s->f, at->index)->type != GPUL_PTX_MOD_PRED)
				return fail_operand(s, &a, "a register without a sign");
		}
	}
	return GPUL_OK;
}

gpul_status strict_check_operands(struct strict *s, const gpul_ptx_inst *in, const struct strict_form *form)
{
	gpul_status st = strict_check_specials(s, in);
	const char *letter = form ? form->args : NULL;

	if (!st && (in->opcode == GPUL_PTX_BAR || in->opcode == GPUL_PTX_BARRIER))
		st = check_barrier(s, in);
	if (!st && in->opcode == GPUL_PTX_CALL)
		st = check_call(s, in);
	if (!st)
		st = check_signs(s, in);
	if (!st && letter && *letter == 'M')
		st = strict_check_matrix_types(s, in);
	if (st || !letter)
		return st;
	if (in->n_operands == 3 && (in->opcode == GPUL_PTX_LD || in->opcode == GPUL_PTX_ST) &&
	    !gpul_ptx_has_mod(in, GPUL_PTX_MOD_L2__CACHE_HINT) && !gpul_ptx_has_mod(in, GPUL_PTX_MOD_ASYNC))
		return strict_fail_inst(s, in, "%s has 3 operands: expected 2, or .L2::cache_hint", gpul_ptx_opcode_text(in->opcode));
	for (unsigned i = 0; !st && i < in->n_operands && *letter && *letter != '*'; i++, letter++) {
		struct operand a = { in, &s->f->operands[in->first_operand + i], i + 1 };

		letter += *letter == '/';
		st = check_letter(s, &a, *letter);
	}
	return st;
}
