/* parse_func.c — parses kernels and functions: PTX ISA 9.0, chapters 7 and 11. */
#include "ptx/parse/parser_internal.h"

/* Copy the registers of module scope to the start of the function's table, because their names are bound to these indices. */
static void inherit_registers(ptx_parser *p)
{
	for (size_t i = 0; i < p->module_regs.n && !p->heads_only; i++)
		*ptx_push(p, &p->regs) = p->module_regs.at[i];
	p->func.n_module_regs = p->func.n_flat_regs = p->heads_only ? 0 : p->module.n_flat_regs;
}

static void start_function(ptx_parser *p, gpul_ptx_func_kind kind, gpul_ptx_linkage linkage)
{
	p->func = (gpul_ptx_func){ .kind = (uint8_t)kind,
				   .linkage = (uint8_t)linkage,
				   .definition = GPUL_PTX_NONE,
				   .tuning = ptx_no_tuning(),
				   .line = p->tok.line };
	p->func_vars.n = p->regs.n = p->labels.n = p->insts.n = 0;
	p->operands.n = p->scopes.n = p->items.n = 0;
	p->unresolved.n = p->siblings.n = 0;
	p->scope = p->loc = GPUL_PTX_NONE;
	inherit_registers(p);
}

static void keep_tables(ptx_parser *p)
{
	gpul_ptx_func *f = &p->func;

	f->vars = ptx_keep(p, p->func_vars, &f->n_vars);
	f->regs = ptx_keep(p, p->regs, &f->n_regs);
	f->labels = ptx_keep(p, p->labels, &f->n_labels);
	f->insts = ptx_keep(p, p->insts, &f->n_insts);
	f->operands = ptx_keep(p, p->operands, &f->n_operands);
	f->scopes = ptx_keep(p, p->scopes, &f->n_scopes);
	f->items = ptx_keep(p, p->items, &f->n_items);
}

/* Bind the function's name before its body is parsed, because the body may call the function itself.  Operands refer to a function
 * by the index of its first declaration. */
static void bind_function(ptx_parser *p, const ptx_token *where, uint32_t row)
{
	const gpul_ptx_func *before;
	ptx_found f;

	if (!ptx_names_find(&p->names, where->text, where->bytes, &f) || f.depth != 0) {
		ptx_bind(p, where, p->func.name, PTX_IS_FUNC, row, 0);
		return;
	}
	before = f.what == PTX_IS_FUNC ? &p->funcs.at[f.row] : NULL;
	if (!before || before->kind != p->func.kind)
		ptx_fail_at(p, where, "'%.*s' is already declared as something else", (int)where->bytes, where->text);
}

static bool same_shape(const gpul_ptx_var *a, uint32_t n_a, const gpul_ptx_var *b, uint32_t n_b)
{
	for (uint32_t i = 0; i < n_a && n_a == n_b; i++)
		if (a[i].bytes != b[i].bytes || a[i].space != b[i].space)
			return false;
	return n_a == n_b;
}

/* Check that all declarations of one name have the same parameters and results. */
static void check_prototype(ptx_parser *p, const ptx_token *where)
{
	const gpul_ptx_func *f = &p->func, *first;
	ptx_found found;

	if (p->status || !ptx_names_find(&p->names, where->text, where->bytes, &found) || found.what != PTX_IS_FUNC)
		return;
	first = &p->funcs.at[found.row];
	if (!same_shape(first->params, first->n_params, f->params, f->n_params) ||
	    !same_shape(first->rets, first->n_rets, f->rets, f->n_rets))
		ptx_fail_at(p, where, "'%.*s' was declared with other parameters in line %u", (int)where->bytes, where->text, first->line);
}

/* Parse the body of a function.  Fails if the function already has a body. link_definitions() updates the other entries of the name. */
static void parse_definition(ptx_parser *p, const ptx_token *where, uint32_t row)
{
	ptx_found f;

	if (ptx_names_find(&p->names, where->text, where->bytes, &f) && f.what == PTX_IS_FUNC) {
		gpul_ptx_func *first = &p->funcs.at[f.row];

		if (first->definition != GPUL_PTX_NONE)
			ptx_fail_at(p, where, "'%.*s' already has a body", (int)where->bytes, where->text);
		first->definition = row;
	}
	p->func.has_body = true;
	ptx_parse_body(p);
}

/* Parse the .attribute in .func .attribute(.unified(1, 2)) name */
static void parse_function_attributes(ptx_parser *p)
{
	if (!ptx_accept_dot(p, "attribute"))
		return;
	ptx_expect(p, '(', ".attribute");
	if (!ptx_accept_dot(p, "unified"))
		ptx_fail_at(p, &p->tok, "expected .unified");
	ptx_parse_unified(p, p->func.unified);
	ptx_expect(p, ')', "an attribute");
	p->func.has_unified = true;
}

/* Check that the parameters of a kernel fit into the parameter space; the limits are those of ptxas. */
static void check_param_space(ptx_parser *p, const ptx_token *where, const gpul_ptx_func *f)
{
	bool large = p->module.version_major > 8 || (p->module.version_major == 8 && p->module.version_minor >= 1);
	uint64_t limit = large ? 32764 : 4352, end = 0;

	for (uint32_t i = 0; i < f->n_params && !p->status; i++) {
		const gpul_ptx_var *v = &f->params[i];
		uint64_t own = (uint64_t)gpul_ptx_type_bytes(v->type) * v->vector;
		uint64_t align = v->align ? v->align : own ? own : 1;

		if (v->n_dims && !v->bytes)
			ptx_fail_at(p, where, "parameter %u is an array without a size", i);
		end = (end + align - 1) / align * align; /* the sum cannot overflow: end <= limit, and align has 32 bits */
		if (v->bytes > limit || end + v->bytes > limit)
			ptx_fail_at(p, where, "the parameters of '%.*s' need more than %llu bytes, the limit of PTX %u.%u",
				    (int)where->bytes, where->text, (unsigned long long)limit, p->module.version_major,
				    p->module.version_minor);
		end += v->bytes;
	}
}

/* Add an entry for the function whose name is the token `where`. */
static uint32_t add_function(ptx_parser *p, const ptx_token *where, const struct ptx_place *head)
{
	const uint32_t row = PTX_N(p->funcs);

	bind_function(p, where, row);
	ptx_push(p, &p->funcs);
	if (p->skips_bodies && !p->heads_only) {
		/* add empty entries for the prototypes of indirect calls, which have entries in funcs, but no body */
		while (p->heads.n < row && !p->status)
			ptx_push(p, &p->heads);
		*ptx_push(p, &p->heads) = *head;
	}
	return row;
}

/* Parse the function up to its body into p->func, and open the function's scope. *row: the index of the function in funcs; if it is
 * GPUL_PTX_NONE, add an entry and set *row. */
static void parse_head(ptx_parser *p, gpul_ptx_linkage linkage, uint32_t *row, ptx_token *where)
{
	const struct ptx_place head = { p->tok.text - 1, p->tok.line_start, p->tok.line };
	bool entry = ptx_tok_is(&p->tok, PTX_TOK_DOT, "entry");
	gpul_ptx_func *f = &p->func;

	start_function(p, entry ? GPUL_PTX_FUNC_ENTRY : GPUL_PTX_FUNC_DEVICE, linkage);
	ptx_next(p);
	parse_function_attributes(p);
	p->rets.n = 0;
	if (!entry && p->tok.kind == '(')
		ptx_parse_params(p, &p->rets);
	f->name = ptx_expect_word(p, "the name of a function", where);
	if (*row == GPUL_PTX_NONE)
		*row = add_function(p, where, &head);
	ptx_names_open_scope(&p->names);
	ptx_bind_params(p, &p->rets, PTX_IS_RET);
	f->rets = ptx_keep(p, p->rets, &f->n_rets);
	if (p->tok.kind == '(') {
		ptx_parse_params(p, &p->params);
		ptx_bind_params(p, &p->params, PTX_IS_PARAM);
		f->params = ptx_keep(p, p->params, &f->n_params);
	}
	if (entry)
		check_param_space(p, where, f);
	ptx_parse_tuning(p, &f->tuning);
}

/* Parse a kernel or function; the current token is .entry or .func. */
void ptx_parse_function(ptx_parser *p, gpul_ptx_linkage linkage)
{
	uint32_t row = GPUL_PTX_NONE;
	gpul_ptx_func *f = &p->func;
	ptx_token where;

	parse_head(p, linkage, &row, &where);
	if (p->status)
		return;
	p->funcs.at[row] = *f;
	check_prototype(p, &where);
	if (p->tok.kind == '{')
		parse_definition(p, &where, row);
	else if (f->kind == GPUL_PTX_FUNC_ENTRY ||
		 !ptx_at_module_statement(&p->tok)) /* ptxas accepts a .func without ';' before the next statement */
		ptx_expect(p, ';', "the declaration of a function (or '{' and its body)");
	ptx_names_close_scope(&p->names);
	keep_tables(p);
	if (p->status)
		return;
	f->definition = f->has_body ? row : GPUL_PTX_NONE;
	p->funcs.at[row] = *f;
	*ptx_push(p, &p->module_items) = (gpul_ptx_item){ GPUL_PTX_ITEM_FUNC, row };
}

void ptx_parse_function_again(ptx_parser *p)
{
	uint32_t row = 0;
	ptx_token where;

	parse_head(p, GPUL_PTX_STATIC, &row, &where);
	if (p->status)
		return;
	ptx_parse_body(p);
	ptx_names_close_scope(&p->names);
	keep_tables(p);
}
