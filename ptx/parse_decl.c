/* parse_decl.c — registers, variables, parameters, initializers: PTX ISA 9.0, chapter 5. */
#include "ptx/parser_internal.h"

#include <string.h>

#include "ptx/vocabulary_internal.h"

/* What stands before the names of a declaration: .align 8 .v2 .f32 ... */
struct prefix {
	uint16_t space, type, ptr_space;
	uint8_t vector;
	uint32_t align, ptr_align, attributes;
	uint64_t unified[2];
};

static bool is_space(unsigned mod)
{
	return mod == GPUL_PTX_MOD_GLOBAL || mod == GPUL_PTX_MOD_CONST || mod == GPUL_PTX_MOD_SHARED ||
	       mod == GPUL_PTX_MOD_LOCAL || mod == GPUL_PTX_MOD_PARAM || mod == GPUL_PTX_MOD_TEX;
}

bool ptx_at_variable(const ptx_token *t)
{
	return t->kind == PTX_TOK_DOT && is_space((unsigned)ptx_find_mod(t->text, t->bytes));
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
		ptx_fail_at(p, &where, "an alignment is a power of two");
	return (uint32_t)align;
}

/* .attribute( .managed ), .attribute( .unified(1, 2) ); the word itself is taken. */
static void parse_attributes(ptx_parser *p, struct prefix *x)
{
	ptx_expect(p, '(', ".attribute");
	do {
		if (ptx_accept_dot(p, "managed")) {
			x->attributes |= GPUL_PTX_ATTRIBUTE_MANAGED;
		} else if (ptx_accept_dot(p, "unified")) {
			x->attributes |= GPUL_PTX_ATTRIBUTE_UNIFIED;
			ptx_expect(p, '(', ".unified");
			x->unified[0] = ptx_parse_integer(p, "the first half of a UUID");
			ptx_expect(p, ',', "the first half of a UUID");
			x->unified[1] = ptx_parse_integer(p, "the second half of a UUID");
			ptx_expect(p, ')', "a UUID");
		} else {
			ptx_fail_at(p, &p->tok, "expected .managed or .unified");
		}
	} while (ptx_accept(p, ','));
	ptx_expect(p, ')', "an attribute");
}

/* .ptr .global .align 16, of a kernel parameter; .ptr itself is taken. */
static void parse_ptr(ptx_parser *p, struct prefix *x)
{
	x->ptr_space = GPUL_PTX_MOD_GENERIC;
	if (ptx_at_variable(&p->tok)) {
		x->ptr_space = ptx_mod_of(p, &p->tok);
		ptx_next(p);
	}
	if (ptx_accept_dot(p, "align"))
		x->ptr_align = parse_align(p);
}

/* One word of a prefix; false: it belongs to none. */
static bool parse_prefix_word(ptx_parser *p, struct prefix *x)
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
	else if (mod == GPUL_PTX_MOD_V8)
		x->vector = 8;
	else if (mod > 0 && is_type((unsigned)mod))
		x->type = (uint16_t)mod;
	else
		return false;
	return true;
}

static void parse_prefix(ptx_parser *p, struct prefix *x)
{
	x->vector = 1;
	while (p->tok.kind == PTX_TOK_DOT) {
		ptx_token t = p->tok;

		if (!parse_prefix_word(p, x)) {
			ptx_fail_at(p, &t, "expected a type such as .u32, found '.%.*s'", (int)t.bytes, t.text);
			return;
		}
	}
	if (!x->type)
		ptx_fail_at(p, &p->tok, "expected a type such as .u32");
}

/* ---- registers --------------------------------------------------------------------------- */

/* A row of func->regs for registers first .. first + count - 1, bound to its name. */
static uint32_t add_registers(ptx_parser *p, const ptx_token *where, const struct prefix *x, uint32_t name,
			      uint64_t count, bool ranged)
{
	uint64_t flat = count * x->vector;
	uint32_t row = PTX_N(p->regs), first = p->func.n_flat_regs;

	if (count > PTX_MAX_REGISTERS || first + flat > PTX_MAX_REGISTERS) {
		ptx_fail_at(p, where, "a function can have %d registers at most", PTX_MAX_REGISTERS);
		return 0;
	}
	gpul_ptx_regs *r = ptx_push(p, &p->regs);
	*r = (gpul_ptx_regs){ .name = name, .type = x->type, .vector = x->vector, .ranged = ranged,
			      .first = first, .count = (uint32_t)count, .scope = p->scope };
	p->func.n_flat_regs += (uint32_t)flat;
	if (count)   /* %r<0> declares nothing */
		ptx_bind(p, where, name, PTX_IS_REGS, row, ranged ? (uint32_t)count : 0);
	return row;
}

/* .reg .b32 a, %r<5>;  the word .reg is taken. */
void ptx_parse_registers(ptx_parser *p)
{
	struct prefix x = { .space = GPUL_PTX_MOD_REG };

	parse_prefix(p, &x);
	do {
		ptx_token where;
		uint32_t name = ptx_expect_word(p, "the name of a register", &where), row;
		uint64_t count = 1;
		bool ranged = ptx_accept(p, '<');

		if (ranged) {
			/* Not an expression: its '>' would be taken for an operator. */
			count = p->tok.value;
			ptx_expect(p, PTX_TOK_INT, "'<'");
			ptx_expect(p, '>', "the number of registers");
		}
		row = add_registers(p, &where, &x, name, count, ranged);
		*ptx_push(p, &p->items) =
			(gpul_ptx_item){ GPUL_PTX_ITEM_REGS, row };
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';', "a register declaration");
}

/* ---- initializers ------------------------------------------------------------------------ */

static gpul_ptx_init *push_init(ptx_parser *p)
{
	return ptx_push(p, &p->inits);
}

/* name, name + 8, name - 4: t is the name, already taken. */
static void parse_init_symbol(ptx_parser *p, const ptx_token *t, gpul_ptx_init *i)
{
	ptx_found f = { 0 };

	i->kind = GPUL_PTX_INIT_SYMBOL;
	if (!ptx_find_symbol(p, t, &f))
		return;
	if (f.what != PTX_IS_MODULE_VAR && f.what != PTX_IS_FUNC)
		ptx_fail_at(p, t, "'%.*s' has no address that is known here", (int)t->bytes, t->text);
	i->ref_kind = f.what == PTX_IS_FUNC ? GPUL_PTX_REF_FUNC : GPUL_PTX_REF_MODULE_VAR;
	i->index = f.row;
}

/* What may be added to a name or to generic(name). */
static void parse_init_offset(ptx_parser *p, gpul_ptx_init *i)
{
	if (p->tok.kind == '+')
		ptx_next(p);
	else if (p->tok.kind != '-')
		return;
	i->i = (int64_t)ptx_parse_expr(p).bits;
}

/* generic(name) or name, and an offset. */
static void parse_init_address(ptx_parser *p, gpul_ptx_init *i)
{
	ptx_token t = p->tok;

	ptx_next(p);
	i->generic = ptx_tok_is(&t, PTX_TOK_WORD, "generic") && ptx_accept(p, '(');
	if (i->generic) {
		t = p->tok;
		ptx_next(p);
		parse_init_symbol(p, &t, i);
		parse_init_offset(p, i);
		ptx_expect(p, ')', "generic(name");
	} else {
		parse_init_symbol(p, &t, i);
	}
	parse_init_offset(p, i);
}

/* 0xFF00(name): the byte of the address that the mask selects; false: it selects none. */
static bool mask_byte_of(uint64_t mask, uint8_t *byte)
{
	for (uint8_t i = 0; i < 8; i++) {
		if (mask != UINT64_C(0xFF) << 8 * i)
			continue;
		*byte = (uint8_t)(i + 1);
		return true;
	}
	return false;
}

/* A constant, or the mask of an address. */
static void parse_init_constant(ptx_parser *p, gpul_ptx_init *i)
{
	ptx_token where = p->tok;
	ptx_value v = ptx_parse_expr(p);

	i->i = (int64_t)v.bits;
	switch (v.kind) {
	case PTX_F32:
		i->kind = GPUL_PTX_INIT_F32;
		return;
	case PTX_F64:
		i->kind = GPUL_PTX_INIT_F64;
		return;
	default:
		i->kind = GPUL_PTX_INIT_INT;
	}
	if (!ptx_accept(p, '('))
		return;
	uint64_t mask = v.bits;
	i->i = 0;
	parse_init_address(p, i);
	if (!mask_byte_of(mask, &i->mask_byte))
		ptx_fail_at(p, &where, "a mask selects one byte: 0xFF, 0xFF00, 0xFF0000 ...");
	ptx_expect(p, ')', "the address under a mask");
}

/* filter_mode = nearest: the properties of a texture or sampler. */
static void parse_init_property(ptx_parser *p, gpul_ptx_init *i)
{
	i->kind = GPUL_PTX_INIT_PROPERTY;
	i->index = ptx_expect_word(p, "a property", NULL);
	ptx_expect(p, '=', "a property");
	if (p->tok.kind == PTX_TOK_WORD)
		i->property_word = ptx_expect_word(p, "a value", NULL);
	else
		i->i = (int64_t)ptx_parse_integer(p, "a value");
}

/* Is the word at hand followed by '='? */
static bool at_property(ptx_parser *p)
{
	ptx_lexer ahead = p->lexer;
	ptx_token t;

	ptx_lexer_next(&ahead, &t);
	return t.kind == '=';
}

static void parse_initializer(ptx_parser *p, uint64_t *n_elements)
{
	gpul_ptx_init i = { 0 };

	if (!ptx_enter(p))
		return;
	if (ptx_accept(p, '{')) {
		uint64_t inner;

		push_init(p)->kind = GPUL_PTX_INIT_OPEN;
		*n_elements = 0;
		while (p->tok.kind != '}' && !ptx_ended(p)) {
			parse_initializer(p, &inner);
			++*n_elements;
			if (!ptx_accept(p, ','))
				break;
		}
		ptx_expect(p, '}', "an initializer");
		push_init(p)->kind = GPUL_PTX_INIT_CLOSE;
		ptx_leave(p);
		return;
	}
	*n_elements = 1;
	if (p->tok.kind == PTX_TOK_WORD && !ptx_tok_is(&p->tok, PTX_TOK_WORD, "WARP_SZ")) {
		if (at_property(p))
			parse_init_property(p, &i);
		else
			parse_init_address(p, &i);
	} else {
		parse_init_constant(p, &i);
	}
	*push_init(p) = i;
	ptx_leave(p);
}

/* ---- variables --------------------------------------------------------------------------- */

/* [4][][3]: rows of module->dims */
static void parse_dims(ptx_parser *p, gpul_ptx_var *v)
{
	v->first_dim = PTX_N(p->dims);
	while (ptx_accept(p, '[')) {
		uint64_t dim = 0;

		if (p->tok.kind != ']')
			dim = ptx_parse_integer(p, "an array size");
		ptx_expect(p, ']', "an array size");
		*ptx_push(p, &p->dims) = dim;
		v->n_dims++;
	}
}

/* Bytes of all elements; n_elements stands in for a [] that an initializer completes. */
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

static void from_prefix(gpul_ptx_var *v, const struct prefix *x)
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

/* The row that an `.extern` of the same name and scope holds becomes hidden by the new one. */
static bool completes_extern(ptx_parser *p, const ptx_token *t)
{
	ptx_found f;

	return !p->in_body && ptx_names_find(&p->names, t->text, t->bytes, &f) && f.what == PTX_IS_MODULE_VAR &&
	       p->module_vars.at[f.row].linkage == GPUL_PTX_EXTERN;
}

static void parse_variable(ptx_parser *p, const struct prefix *x, gpul_ptx_linkage linkage)
{
	ptx_vars *vars = p->in_body ? &p->func_vars : &p->module_vars;
	ptx_items *items = p->in_body ? &p->items : &p->module_items;
	ptx_what what = p->in_body ? PTX_IS_FUNC_VAR : PTX_IS_MODULE_VAR;
	gpul_ptx_var v = { .linkage = (uint8_t)linkage, .scope = p->scope };
	uint64_t n_elements = 0;
	ptx_token where;

	from_prefix(&v, x);
	v.name = ptx_expect_word(p, "the name of a variable", &where);
	v.line = where.line;
	parse_dims(p, &v);
	uint32_t row = PTX_N(*vars);
	if (completes_extern(p, &where)) {
		if (!ptx_names_bind(&p->names, v.name, what, row, 0))
			ptx_fail_memory(p);
	} else {
		ptx_bind(p, &where, v.name, what, row, 0);
	}
	*ptx_push(p, vars) = v;   /* its own address may initialize it */
	if (ptx_accept(p, '=')) {
		v.first_init = PTX_N(p->inits);
		parse_initializer(p, &n_elements);
		v.n_inits = PTX_N(p->inits) - v.first_init;
	}
	set_bytes(p, &where, &v, n_elements);
	if (!p->status)
		vars->at[row] = v;
	*ptx_push(p, items) =
		(gpul_ptx_item){ GPUL_PTX_ITEM_VAR, row };
}

/* .global .align 4 .u32 a, b[4] = {1, 2};  the token at hand is the space. */
void ptx_parse_variables(ptx_parser *p, gpul_ptx_linkage linkage)
{
	struct prefix x = { .space = ptx_mod_of(p, &p->tok) };

	ptx_next(p);
	parse_prefix(p, &x);
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
	from_prefix(&v, &x);
	v.name = ptx_expect_word(p, "the name of a parameter", &where);
	v.line = where.line;
	parse_dims(p, &v);
	set_bytes(p, &where, &v, 0);
	*ptx_push(p, params) = v;
	*ptx_push(p, &p->param_names) = where;
}

/* ( .param .u64 a, .reg .b32 b )  with its brackets. */
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

/* Make the parameters parsed last known by name. */
void ptx_bind_params(ptx_parser *p, ptx_vars *params, ptx_what what)
{
	for (uint32_t i = 0; i < params->n && !p->status; i++) {
		gpul_ptx_var *v = &params->at[i];
		const ptx_token *where = &p->param_names.at[i];

		if (v->space == GPUL_PTX_MOD_REG) {
			const struct prefix x = { .type = v->type, .vector = v->vector };

			v->reg = p->func.n_flat_regs;
			add_registers(p, where, &x, v->name, 1, false);
		} else if (where->bytes != 1 || *where->text != '_') {
			ptx_bind(p, where, v->name, what, i, 0);
		}
	}
}
