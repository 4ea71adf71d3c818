/* declare.c — checks variables, parameters and directives. */
#include "ptx/strict/strict_internal.h"

#include <string.h>

static gpul_status check_vector(struct strict *s, uint32_t line, const char *name, unsigned elements, unsigned type)
{
	if (elements * gpul_ptx_type_bytes(type) > 16)
		return strict_fail(s, line, 1, "'%.80s': a vector of %u bytes is too large: at most 16 bytes are accepted", name,
				   elements * gpul_ptx_type_bytes(type));
	return GPUL_OK;
}

/* If a feature is used, check that .version and .target are new enough for the feature. */
static gpul_status need(struct strict *s, uint32_t line, bool used, const char *what, unsigned ptx, unsigned sm)
{
	if (!used)
		return GPUL_OK;
	if (s->sm < sm)
		return strict_fail(s, line, 1, "%s needs .target sm_%u or higher; this module has sm_%u", what, sm, s->sm);
	if (s->version < ptx)
		return strict_fail(s, line, 1, "%s needs .version %u.%u or higher; this module has %u.%u", what, ptx / 10, ptx % 10,
				   s->version / 10, s->version % 10);
	return GPUL_OK;
}

static gpul_status check_variable(struct strict *s, const gpul_ptx_var *v, bool parameter_of_entry)
{
	const char *name = gpul_ptx_name(s->m, v->name);

	if (v->type == GPUL_PTX_MOD_SAMPLERREF && v->space == GPUL_PTX_MOD_GLOBAL &&
	    !strstr(gpul_ptx_name(s->m, s->m->target), "texmode_independent"))
		return strict_fail(s, v->line, 1, "'%.80s': a .samplerref needs .target ..., texmode_independent", name);
	if (v->space == GPUL_PTX_MOD_PARAM && v->vector > 1)
		return strict_fail(s, v->line, 1,
				   "'%.80s': a .param variable cannot be a vector: declare an array, as in .param .align 16 .b8 a[16]",
				   name);
	if (parameter_of_entry && v->space == GPUL_PTX_MOD_REG)
		return strict_fail(s, v->line, 1, "'%.80s': a parameter of an .entry must be in .param", name);
	if (v->space != GPUL_PTX_MOD_REG && v->type == GPUL_PTX_MOD_PRED)
		return strict_fail(s, v->line, 1, "'%.80s': a variable of type .pred must be in .reg", name);
	const struct {
		bool used;
		const char *what;
		unsigned char ptx, sm;
	} rows[] = {
		{ v->type == GPUL_PTX_MOD_B128, "the type .b128", 83, 70 },
		{ v->linkage == GPUL_PTX_WEAK, ".weak", 31, 0 },
		{ v->linkage == GPUL_PTX_COMMON, ".common", 50, 0 },
		{ v->attributes & GPUL_PTX_ATTRIBUTE_MANAGED, ".managed", 40, 30 },
		{ v->attributes & GPUL_PTX_ATTRIBUTE_UNIFIED, ".unified", 90, 90 },
	};
	gpul_status st = check_vector(s, v->line, name, v->vector, v->type);

	for (size_t i = 0; !st && i < sizeof rows / sizeof *rows; i++)
		st = need(s, v->line, rows[i].used, rows[i].what, rows[i].ptx, rows[i].sm);
	return st;
}

static gpul_status check_variables(struct strict *s, const gpul_ptx_var *v, uint32_t n, bool parameters_of_entry)
{
	gpul_status st = GPUL_OK;

	for (uint32_t i = 0; !st && i < n; i++)
		st = check_variable(s, &v[i], parameters_of_entry);
	return st;
}

static gpul_status check_tuning(struct strict *s, const gpul_ptx_func *f)
{
	const gpul_ptx_tuning *t = &f->tuning;
	const struct {
		bool used;
		const char *what;
		unsigned char ptx, sm;
	} rows[] = {
		{ t->maxnreg >= 0, ".maxnreg", 13, 0 },
		{ t->maxntid[0] >= 0, ".maxntid", 13, 0 },
		{ t->reqntid[0] >= 0, ".reqntid", 21, 0 },
		{ t->minnctapersm >= 0, ".minnctapersm", 20, 0 },
		{ t->reqnctapercluster[0] >= 0, ".reqnctapercluster", 78, 90 },
		{ t->explicitcluster, ".explicitcluster", 78, 90 },
		{ t->maxclusterrank >= 0, ".maxclusterrank", 78, 90 },
		{ t->noreturn, ".noreturn", 64, 30 },
		{ t->blocksareclusters, ".blocksareclusters", 90, 90 },
		{ t->abi_preserve >= 0 || t->abi_preserve_control >= 0, ".abi_preserve", 90, 80 },
	};
	gpul_status st = GPUL_OK;

	for (size_t i = 0; !st && i < sizeof rows / sizeof *rows; i++)
		st = need(s, f->line, rows[i].used, rows[i].what, rows[i].ptx, rows[i].sm);
	if (!st && t->maxntid[0] >= 0 && t->reqntid[0] >= 0)
		st = strict_fail(s, f->line, 1, ".maxntid and .reqntid cannot both be given");
	if (!st && (t->maxntid[0] == 0 || t->reqntid[0] == 0))
		st = strict_fail(s, f->line, 1, ".maxntid and .reqntid must be at least 1");
	return st;
}

/* True if two parameter lists have the same types, array sizes, alignments and spaces. */
static bool same_parameters(const gpul_ptx_var *a, uint32_t n_a, const gpul_ptx_var *b, uint32_t n_b)
{
	for (uint32_t i = 0; i < n_a && n_a == n_b; i++) {
		const uint32_t natural = gpul_ptx_type_bytes(a[i].type) * a[i].vector;
		const uint32_t align_a = a[i].align ? a[i].align : natural, align_b = b[i].align ? b[i].align : natural;

		if (a[i].type != b[i].type || a[i].vector != b[i].vector || a[i].bytes != b[i].bytes || a[i].space != b[i].space ||
		    align_a != align_b)
			return false;
	}
	return n_a == n_b;
}

/* Errors are reported at the line where the alias is declared, because the parsed module does not contain the line of .alias. */
static gpul_status check_alias(struct strict *s, uint32_t row)
{
	const gpul_ptx_module *m = s->m;
	const gpul_ptx_alias *own = &m->aliases[row];
	const gpul_ptx_func *a = &m->funcs[own->alias], *b = &m->funcs[own->aliasee];
	const char *name = gpul_ptx_name(m, a->name), *other = gpul_ptx_name(m, b->name);

	if (a->kind == GPUL_PTX_FUNC_ENTRY || b->kind == GPUL_PTX_FUNC_ENTRY)
		return strict_fail(s, a->line, 1, ".alias %.60s, %.60s: neither name may be a kernel", name, other);
	if (own->alias == own->aliasee)
		return strict_fail(s, a->line, 1, ".alias %.60s, %.60s: a function cannot be its own alias", name, other);
	if (b->linkage == GPUL_PTX_WEAK || b->linkage == GPUL_PTX_EXTERN)
		return strict_fail(s, a->line, 1, ".alias %.60s, %.60s: a .%s function cannot have an alias", name, other,
				   b->linkage == GPUL_PTX_WEAK ? "weak" : "extern");
	if (a->has_body)
		return strict_fail(s, a->line, 1, ".alias %.60s, %.60s: '%.60s' has a body", name, other, name);
	if (!same_parameters(a->params, a->n_params, b->params, b->n_params) || !same_parameters(a->rets, a->n_rets, b->rets, b->n_rets) ||
	    a->tuning.noreturn != b->tuning.noreturn)
		return strict_fail(s, a->line, 1, ".alias %.60s, %.60s: their parameters, results or .noreturn differ", name, other);
	for (uint32_t i = 0; i < row; i++)
		if (m->aliases[i].alias == own->alias)
			return strict_fail(s, a->line, 1, ".alias %.60s, %.60s: '%.60s' is an alias already", name, other, name);
	return GPUL_OK;
}

gpul_status strict_check_declarations(struct strict *s)
{
	gpul_status st = check_variables(s, s->m->vars, s->m->n_vars, false);

	if (!st && s->m->n_aliases)
		st = need(s, s->m->funcs[s->m->aliases[0].alias].line, true, ".alias", 63, 30);
	for (uint32_t i = 0; !st && i < s->m->n_aliases; i++)
		st = check_alias(s, i);
	return st;
}

gpul_status strict_check_function(struct strict *s, const gpul_ptx_func *f)
{
	gpul_status st = check_variables(s, f->params, f->n_params, f->kind == GPUL_PTX_FUNC_ENTRY);

	s->f = f;
	if (!st)
		st = check_variables(s, f->rets, f->n_rets, false);
	if (!st)
		st = check_variables(s, f->vars, f->n_vars, false);
	for (uint32_t i = 0; !st && i < f->n_regs; i++)
		st = check_vector(s, f->line, gpul_ptx_name(s->m, f->regs[i].name), f->regs[i].vector, f->regs[i].type);
	if (!st)
		st = check_tuning(s, f);
	for (uint32_t i = 0; !st && i < f->n_insts; i++) {
		const struct strict_form *form;

		st = strict_match(s, &f->insts[i], &form);
		if (!st)
			st = strict_check_operands(s, &f->insts[i], form);
	}
	return st;
}
