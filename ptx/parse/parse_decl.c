/* parse_decl.c — parses registers, variables and parameters: PTX ISA 9.0, chapter 5. */
#include "ptx/parse/parser_internal.h"

#include <stdio.h>
#include <string.h>

#include "ptx/vocabulary_internal.h"

/* The directives of a declaration before its names: .align 8 .v2 .f32 ... */
struct prefix {
	uint16_t space, type, ptr_space;
	uint8_t vector;
	uint32_t align, ptr_align, attributes;
	uint64_t unified[2];
};

static bool is_space(unsigned mod)
{
	return mod == GPUL_PTX_MOD_GLOBAL || mod == GPUL_PTX_MOD_CONST || mod == GPUL_PTX_MOD_SHARED || mod == GPUL_PTX_MOD_LOCAL ||
	       mod == GPUL_PTX_MOD_PARAM || mod == GPUL_PTX_MOD_TEX;
}

bool ptx_at_variable(const ptx_token *t)
{
	return t->kind == PTX_TOK_DOT && (is_space((unsigned)ptx_find_mod(t->text, t->bytes)) || ptx_tok_is(t, PTX_TOK_DOT, "align") ||
					  ptx_tok_is(t, PTX_TOK_DOT, "attribute"));
}

static bool is_type(unsigned mod)
{
	return mod == GPUL_PTX_MOD_PRED || (mod < GPUL_PTX_N_MODS && gpul_ptx_type_bytes(mod));
}

static uint32_t parse_align(ptx_parser *p)
{
	ptx_token where = p->tok;
	uint64_t align = ptx_parse_integer(p, "an alignment");

	if (!align || align & (align - 1) || align > 1 << 30)
		ptx_fail_at(p, &where, "an alignment must be a power of two");
	return (uint32_t)align;
}

void ptx_parse_unified(ptx_parser *p, uint64_t unified[2])
{
	ptx_expect(p, '(', ".unified");
	unified[0] = ptx_parse_integer(p, "the first half of a UUID");
	ptx_expect(p, ',', "the first half of a UUID");
	unified[1] = ptx_parse_integer(p, "the second half of a UUID");
	ptx_expect(p, ')', "a UUID");
}

/* Parse ( .managed ) or ( .unified(1, 2) ) after .attribute. */
static void parse_attributes(ptx_parser *p, struct prefix *x)
{
	ptx_expect(p, '(', ".attribute");
	do {
		if (ptx_accept_dot(p, "managed")) {
			x->attributes |= GPUL_PTX_ATTRIBUTE_MANAGED;
		} else if (ptx_accept_dot(p, "unified")) {
			x->attributes |= GPUL_PTX_ATTRIBUTE_UNIFIED;
			ptx_parse_unified(p, x->unified);
		} else {
			ptx_fail_at(p, &p->tok, "expected .managed or .unified");
		}
	} while (ptx_accept(p, ','));
	ptx_expect(p, ')', "an attribute");
}

/* Parse ".global .align 16" after the .ptr of a kernel parameter. */
static void parse_ptr(ptx_parser *p, struct prefix *x)
{
	int space = p->tok.kind == PTX_TOK_DOT ? ptx_find_mod(p->tok.text, p->tok.bytes) : 0;

	x->ptr_space = GPUL_PTX_MOD_GENERIC;
	if (is_space((unsigned)space)) {
		x->ptr_space = (uint16_t)space;
		ptx_next(p);
	}
	if (ptx_accept_dot(p, "align"))
		x->ptr_align = parse_align(p);
}

/* Parse one directive of a prefix.  Returns false if the directive does not belong to a prefix. */
static bool parse_prefix_directive(ptx_parser *p, struct prefix *x)
{
	ptx_token t = p->tok;
	int mod = ptx_find_mod(t.text, t.bytes);

	ptx_next(p);
	if (ptx_tok_is(&t, PTX_TOK_DOT, "align"))
		x->align = parse_align(p);
	else if (ptx_tok_is(&t, PTX_TOK_DOT, "ptr"))
		parse_ptr(p, x);
	else if (ptx_tok_is(&t, PTX_TOK_DOT, "attribute"))
		parse_attributes(p, x);
	else if (mod == GPUL_PTX_MOD_V2)
		x->vector = 2;
	else if (mod == GPUL_PTX_MOD_V4)
		x->vector = 4;
	else if (mod > 0 && is_type((unsigned)mod))
		x->type = (uint16_t)mod;
	else if (!x->space && is_space((unsigned)mod))
		x->space = (uint16_t)mod;
	else
		return false;
	return true;
}

static void parse_prefix(ptx_parser *p, struct prefix *x)
{
	x->vector = 1;
	while (p->tok.kind == PTX_TOK_DOT) {
		ptx_token t = p->tok;

		if (!parse_prefix_directive(p, x)) {
			ptx_fail_at(p, &t, "expected a type such as .u32, found '.%.*s'", (int)t.bytes, t.text);
			return;
		}
	}
	if (!x->type)
		ptx_fail_at(p, &p->tok, "expected a type such as .u32");
	if (x->type == GPUL_PTX_MOD_PRED && x->vector > 1)
		ptx_fail_at(p, &p->tok, "PTX has no vectors of predicates");
}

/* Parse the 5> of %r<5>.  The number is not parsed as an expression, because '>' would be an operator of the expression. */
static uint64_t parse_range(ptx_parser *p)
{
	const uint64_t count = p->tok.value;

	ptx_expect(p, PTX_TOK_INT, "'<'");
	ptx_expect(p, '>', "the number of names");
	return count;
}

/* ---- registers --------------------------------------------------------------------------- */

/* The table to which registers are added, and the number that its next register gets. */
struct reg_table {
	ptx_regs *rows;
	uint32_t *n_flat;
};

static struct reg_table registers_of_function(ptx_parser *p)
{
	return (struct reg_table){ &p->regs, &p->func.n_flat_regs };
}

static struct reg_table registers_of_module(ptx_parser *p)
{
	return (struct reg_table){ &p->module_regs, &p->module.n_flat_regs };
}

/* Append an entry for `count` registers to the table, and bind their name. */
static uint32_t add_registers(ptx_parser *p, struct reg_table to, const ptx_token *where, const struct prefix *x, uint32_t name,
			      uint64_t count, bool ranged)
{
	uint64_t flat = count * x->vector;
	uint32_t row = PTX_N(*to.rows), first = *to.n_flat;

	if (count > PTX_MAX_REGISTERS || first + flat > PTX_MAX_REGISTERS) {
		ptx_fail_at(p, where, "a function can have at most %d registers", PTX_MAX_REGISTERS);
		return 0;
	}
	gpul_ptx_regs *r = ptx_push(p, to.rows);
	*r = (gpul_ptx_regs){ .name = name,
			      .type = x->type,
			      .vector = x->vector,
			      .ranged = ranged,
			      .first = first,
			      .count = (uint32_t)count,
			      .scope = p->scope };
	*to.n_flat += (uint32_t)flat;
	if (count) /* %r<0> declares no register */
		ptx_bind(p, where, name, PTX_IS_REGS, row, ranged ? (uint32_t)count : 0);
	return row;
}

/* Parse ".b32 a, %r<5>;" after .reg. */
void ptx_parse_registers(ptx_parser *p)
{
	const struct reg_table to = p->in_body ? registers_of_function(p) : registers_of_module(p);
	struct prefix x = { .space = GPUL_PTX_MOD_REG };

	parse_prefix(p, &x);
	do {
		ptx_token where;
		uint32_t name = ptx_expect_word(p, "the name of a register", &where), row;
		uint64_t count = 1;
		bool ranged = ptx_accept(p, '<');

		if (ranged)
			count = parse_range(p);
		row = add_registers(p, to, &where, &x, name, count, ranged);
		*ptx_push(p, p->in_body ? &p->items : &p->module_items) = (gpul_ptx_item){ GPUL_PTX_ITEM_REGS, row };
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';', "a register declaration");
}

/* ---- variables --------------------------------------------------------------------------- */

/* Parse [4][][3], and append the sizes to module->dims. */
static void parse_dims(ptx_parser *p, gpul_ptx_var *v)
{
	v->first_dim = PTX_N(p->dims);
	while (ptx_accept(p, '[')) {
		uint64_t dim = 0;

		if (p->tok.kind != ']')
			dim = ptx_parse_integer(p, "an array size");
		if (!dim && v->n_dims)
			ptx_fail_at(p, &p->tok, "only the first array size may be left out");
		ptx_expect(p, ']', "an array size");
		*ptx_push(p, &p->dims) = dim;
		v->n_dims++;
	}
}

/* Set the size of a variable in bytes. n_elements: the number of elements in the initializer of an array of unknown size, []. */
static void set_bytes(ptx_parser *p, const ptx_token *where, gpul_ptx_var *v, uint64_t n_elements)
{
	uint64_t bytes = (uint64_t)gpul_ptx_type_bytes(v->type) * v->vector;

	for (uint32_t i = 0; i < v->n_dims && !p->status; i++) {
		uint64_t dim = p->dims.at[v->first_dim + i];

		if (!dim && i == 0)
			dim = n_elements;
		if (dim && bytes > (UINT64_C(1) << 48) / dim)
			ptx_fail_at(p, where, "this array is larger than 2^48 bytes");
		bytes *= dim;
	}
	v->bytes = bytes;
}

static void copy_prefix(gpul_ptx_var *v, const struct prefix *x)
{
	v->space = x->space;
	v->type = x->type;
	v->vector = x->vector;
	v->align = x->align;
	v->ptr_space = x->ptr_space;
	v->ptr_align = x->ptr_align;
	v->attributes = x->attributes;
	memcpy(v->unified, x->unified, sizeof v->unified);
}

/* Bind the name of a variable.  A variable may be declared twice if one declaration is .extern; the name is then bound to the other
 * declaration. */
static void bind_variable(ptx_parser *p, const ptx_token *where, const gpul_ptx_var *v, ptx_what what, uint32_t row)
{
	ptx_found f;

	if (p->in_body && p->skips_bodies) /* if bodies are skipped, no name in them is looked up, and inner scopes are not tracked */
		return;
	bool again = !p->in_body && ptx_names_find(&p->names, where->text, where->bytes, &f) && f.what == PTX_IS_MODULE_VAR;

	if (again && v->linkage == GPUL_PTX_EXTERN)
		return;
	if (!again || p->module_vars.at[f.row].linkage != GPUL_PTX_EXTERN)
		ptx_bind(p, where, v->name, what, row, 0);
	else if (!ptx_names_bind(&p->names, v->name, what, row, 0))
		ptx_fail_memory(p);
}

static void check_variable(ptx_parser *p, const ptx_token *where, const gpul_ptx_var *v)
{
	bool is_extern = v->linkage == GPUL_PTX_EXTERN;

	if (v->type == GPUL_PTX_MOD_PRED)
		ptx_fail_at(p, where, "a predicate must be a register: .reg .pred");
	if (v->n_dims && !v->bytes && !is_extern)
		ptx_fail_at(p, where, "an array needs a size, unless it is .extern");
	if (v->n_inits && (is_extern || (v->space != GPUL_PTX_MOD_GLOBAL && v->space != GPUL_PTX_MOD_CONST)))
		ptx_fail_at(p, where,
			    "only .global and .const variables that are not .extern are "
			    "initialized");
}

/* Parse the 3> of .global .u32 a<3>, which declares a0, a1 and a2. */
static void parse_variable_range(ptx_parser *p, const ptx_token *where, gpul_ptx_var *v)
{
	ptx_vars *vars = p->in_body ? &p->func_vars : &p->module_vars;
	const uint64_t count = parse_range(p);
	char name[1024];

	if (count > PTX_MAX_RANGE)
		ptx_fail_at(p, where, "a declaration can have at most %d variables", PTX_MAX_RANGE);
	if (where->bytes > sizeof name - 16)
		ptx_fail_at(p, where, "the name of a range of variables can have at most %zu characters", sizeof name - 16);
	set_bytes(p, where, v, 0);
	check_variable(p, where, v);
	for (uint64_t i = 0; i < count && !p->status; i++) {
		const uint32_t n = (uint32_t)snprintf(name, sizeof name, "%.*s%llu", (int)where->bytes, where->text, (unsigned long long)i);
		ptx_found f;

		if (ptx_names_find(&p->names, name, n, &f) && f.depth == p->names.depth)
			ptx_fail_at(p, where, "'%s' is declared twice in this scope", name);
		v->name = ptx_names_intern(&p->names, name, n);
		if (!v->name || !ptx_names_bind(&p->names, v->name, p->in_body ? PTX_IS_FUNC_VAR : PTX_IS_MODULE_VAR, PTX_N(*vars), 0))
			ptx_fail_memory(p);
		*ptx_push(p, p->in_body ? &p->items : &p->module_items) = (gpul_ptx_item){ GPUL_PTX_ITEM_VAR, PTX_N(*vars) };
		*ptx_push(p, vars) = *v;
	}
}

static void parse_variable(ptx_parser *p, const struct prefix *x, gpul_ptx_linkage linkage)
{
	ptx_vars *vars = p->in_body ? &p->func_vars : &p->module_vars;
	ptx_items *items = p->in_body ? &p->items : &p->module_items;
	gpul_ptx_var v = { .linkage = (uint8_t)linkage, .scope = p->scope };
	uint32_t row = PTX_N(*vars);
	uint64_t n_outer = 0;
	ptx_token where;

	copy_prefix(&v, x);
	v.name = ptx_expect_word(p, "the name of a variable", &where);
	v.line = where.line;
	if (ptx_accept(p, '<')) {
		parse_variable_range(p, &where, &v);
		return;
	}
	parse_dims(p, &v);
	if (ptx_accept(p, '=')) {
		v.first_init = PTX_N(p->inits);
		ptx_parse_initializer(p, &v, &n_outer);
		v.n_inits = PTX_N(p->inits) - v.first_init;
	}
	set_bytes(p, &where, &v, n_outer);
	check_variable(p, &where, &v);
	bind_variable(p, &where, &v, p->in_body ? PTX_IS_FUNC_VAR : PTX_IS_MODULE_VAR, row);
	*ptx_push(p, vars) = v;
	*ptx_push(p, items) = (gpul_ptx_item){ GPUL_PTX_ITEM_VAR, row };
}

/* Parse .global .align 4 .u32 a, b[4] = {1, 2}; the current token is the first directive. */
void ptx_parse_variables(ptx_parser *p, gpul_ptx_linkage linkage)
{
	struct prefix x = { 0 };

	parse_prefix(p, &x);
	if (!x.space)
		ptx_fail_at(p, &p->tok, "expected a state space such as .global before the name");
	do
		parse_variable(p, &x, linkage);
	while (ptx_accept(p, ','));
	ptx_expect(p, ';', "a variable declaration");
}

/* ---- parameters -------------------------------------------------------------------------- */

static void parse_param(ptx_parser *p, ptx_vars *params)
{
	struct prefix x = { .space = GPUL_PTX_MOD_PARAM };
	gpul_ptx_var v = { .scope = GPUL_PTX_NONE };
	ptx_token where;

	if (ptx_accept_dot(p, "reg"))
		x.space = GPUL_PTX_MOD_REG;
	else if (!ptx_accept_dot(p, "param"))
		ptx_fail_at(p, &p->tok, "expected .param or .reg");
	parse_prefix(p, &x);
	copy_prefix(&v, &x);
	where = p->tok;
	if (p->heads_only) /* do not intern the name, because it is never looked up */
		ptx_expect(p, PTX_TOK_WORD, "the type of a parameter");
	else
		v.name = ptx_expect_word(p, "the name of a parameter", &where);
	v.line = where.line;
	parse_dims(p, &v);
	set_bytes(p, &where, &v, 0);
	*ptx_push(p, params) = v;
	*ptx_push(p, &p->param_names) = where;
}

/* Parse ( .param .u64 a, .reg .b32 b ) */
void ptx_parse_params(ptx_parser *p, ptx_vars *params)
{
	params->n = p->param_names.n = 0;
	ptx_expect(p, '(', "a name");
	if (ptx_accept(p, ')'))
		return;
	do
		parse_param(p, params);
	while (ptx_accept(p, ','));
	ptx_expect(p, ')', "a parameter list");
}

/* Bind the names of the last parameter list. */
void ptx_bind_params(ptx_parser *p, ptx_vars *params, ptx_what what)
{
	for (uint32_t i = 0; i < params->n && !p->status && !p->heads_only; i++) {
		gpul_ptx_var *v = &params->at[i];
		const ptx_token *where = &p->param_names.at[i];

		if (v->space == GPUL_PTX_MOD_REG) {
			const struct prefix x = { .type = v->type, .vector = v->vector };

			v->reg = p->func.n_flat_regs;
			add_registers(p, registers_of_function(p), where, &x, v->name, 1, false);
		} else if (where->bytes != 1 || *where->text != '_') {
			ptx_bind(p, where, v->name, what, i, 0);
		}
	}
}
