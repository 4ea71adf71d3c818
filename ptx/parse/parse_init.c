/* parse_init.c — parses the initializers of variables: PTX ISA 9.0, 5.4.4. */
#include "ptx/parse/parser_internal.h"

#include "ptx/vocabulary_internal.h"

/* Set the symbol to which an initializer refers. t is its name, which has been consumed. */
static void parse_init_symbol(ptx_parser *p, const ptx_token *t, gpul_ptx_init *i)
{
	ptx_found f = { 0 };

	i->kind = GPUL_PTX_INIT_SYMBOL;
	if (!ptx_find_symbol(p, t, &f))
		return;
	if (f.what != PTX_IS_MODULE_VAR && f.what != PTX_IS_FUNC)
		ptx_fail_at(p, t, "'%.*s' has no constant address: expected a module-level variable or a function", (int)t->bytes, t->text);
	i->ref_kind = f.what == PTX_IS_FUNC ? GPUL_PTX_REF_FUNC : GPUL_PTX_REF_MODULE_VAR;
	i->index = f.row;
}

/* Parse an offset after name or generic(name): + 8, - 4. */
static void parse_init_offset(ptx_parser *p, gpul_ptx_init *i)
{
	if (p->tok.kind == '+')
		ptx_next(p);
	else if (p->tok.kind != '-')
		return;
	i->i = (int64_t)ptx_parse_expr(p).bits;
}

/* Parse generic(name) or name, with an offset. */
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

/* Find which byte of an address a mask selects: 1 for 0xFF, 2 for 0xFF00, ...  Returns false if the mask is invalid. */
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

/* Parse a constant, or the mask before an address. */
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
		ptx_fail_at(p, &where, "a mask must select one byte: 0xFF, 0xFF00, 0xFF0000 ...");
	ptx_expect(p, ')', "the address under a mask");
}

/* Parse filter_mode = nearest, a property of a texture or sampler. */
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

/* Parse { filter_mode = nearest, ... } */
static void parse_properties(ptx_parser *p)
{
	ptx_expect(p, '{', "'='");
	ptx_push(p, &p->inits)->kind = GPUL_PTX_INIT_OPEN;
	do {
		gpul_ptx_init i = { 0 };

		parse_init_property(p, &i);
		*ptx_push(p, &p->inits) = i;
	} while (ptx_accept(p, ','));
	ptx_expect(p, '}', "the properties");
	ptx_push(p, &p->inits)->kind = GPUL_PTX_INIT_CLOSE;
}

/* True if an initializer has the right type: PTX does not convert initializers, so an integer cannot initialize a .f32. */
static bool init_fits_type(const gpul_ptx_init *i, unsigned type)
{
	bool is_float = i->kind == GPUL_PTX_INIT_F32 || i->kind == GPUL_PTX_INIT_F64;

	switch (type) {
	case GPUL_PTX_MOD_F32:
	case GPUL_PTX_MOD_F64:
		return is_float;
	case GPUL_PTX_MOD_B8:
	case GPUL_PTX_MOD_B16:
	case GPUL_PTX_MOD_B32:
	case GPUL_PTX_MOD_B64:
		return true;
	case GPUL_PTX_MOD_U8:
	case GPUL_PTX_MOD_U16:
	case GPUL_PTX_MOD_U32:
	case GPUL_PTX_MOD_U64:
	case GPUL_PTX_MOD_S8:
	case GPUL_PTX_MOD_S16:
	case GPUL_PTX_MOD_S32:
	case GPUL_PTX_MOD_S64:
		return !is_float;
	default:
		return false;
	}
}

static void parse_init_scalar(ptx_parser *p, const gpul_ptx_var *v)
{
	gpul_ptx_init i = { 0 };
	ptx_token where = p->tok;

	if (p->tok.kind == PTX_TOK_WORD && !ptx_tok_is(&p->tok, PTX_TOK_WORD, "WARP_SZ"))
		parse_init_address(p, &i);
	else
		parse_init_constant(p, &i);
	if (!init_fits_type(&i, v->type))
		ptx_fail_at(p, &where, "this constant cannot initialize a .%s", gpul_ptx_mod_text(NULL, v->type));
	*ptx_push(p, &p->inits) = i;
}

/* Parse the elements of dimension `level`.  Each dimension, and each vector, has a pair of braces.  Missing elements are zero.
 * *n_outer is set to the number of elements of the outermost dimension, whose size may be omitted: []. */
static void parse_elements(ptx_parser *p, const gpul_ptx_var *v, uint32_t level, uint64_t *n_outer)
{
	bool is_vector = level == v->n_dims;
	uint64_t most = 0, n = 0;
	ptx_token where = p->tok;

	if (level == v->n_dims + (v->vector > 1)) {
		parse_init_scalar(p, v);
		return;
	}
	if (!ptx_enter(p))
		return;
	most = is_vector ? v->vector : p->dims.at[v->first_dim + level];
	ptx_expect(p, '{', "'='");
	ptx_push(p, &p->inits)->kind = GPUL_PTX_INIT_OPEN;
	if (p->tok.kind != '}')
		do {
			if (most && n == most)
				ptx_fail_at(p, &p->tok, "more than %llu elements", (unsigned long long)most);
			parse_elements(p, v, level + 1, n_outer);
			n++;
		} while (ptx_accept(p, ','));
	ptx_expect(p, '}', "an initializer");
	ptx_push(p, &p->inits)->kind = GPUL_PTX_INIT_CLOSE;
	if ((is_vector && n != most) || (!most && !n))
		ptx_fail_at(p, &where, "too few elements");
	if (level == 0)
		*n_outer = n;
	ptx_leave(p);
}

/* Skip an initializer in braces, if the size of the variable is known without it.  Returns false if it has not been skipped. */
static bool skip_initializer(ptx_parser *p, const gpul_ptx_var *v)
{
	unsigned depth = 0;

	if (p->tok.kind != '{' || (v->n_dims && !p->dims.at[v->first_dim]))
		return false;
	ptx_lexer_skip_body(&p->lexer, &depth);
	ptx_next(p);
	ptx_expect(p, '}', "an initializer");
	return true;
}

void ptx_parse_initializer(ptx_parser *p, const gpul_ptx_var *v, uint64_t *n_outer)
{
	if (v->type == GPUL_PTX_MOD_TEXREF || v->type == GPUL_PTX_MOD_SAMPLERREF || v->type == GPUL_PTX_MOD_SURFREF)
		parse_properties(p);
	else if (!p->heads_only || !skip_initializer(p, v))
		parse_elements(p, v, 0, n_outer);
}
