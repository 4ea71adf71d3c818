/* link_refer.c — checks that every reference has a definition, and renames private names that collide. */
#include "ptx/link/ptx_link_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- references -------------------------------------------------------------------------- */

/* True for an array in dynamic shared memory, which needs no definition, because the launch determines its size. */
static bool is_dynamic_shared(const ptx_linker *l, const ptx_link_symbol *s)
{
	return !s->is_func && l->inputs[s->first.input].m.vars[s->first.row].space == GPUL_PTX_MOD_SHARED;
}

static gpul_status check_reference(const ptx_linker *l, uint32_t input, gpul_ptx_str name, const char *user)
{
	ptx_link_symbol *s = ptx_link_symbol_of(l, input, name);
	const char *text = gpul_ptx_name(&l->inputs[input].m, name);

	if (!s)
		return GPUL_OK;
	s->is_referred_to = true;
	if (s->strength || ptx_link_is_system_call(text) || is_dynamic_shared(l, s))
		return GPUL_OK;
	return gpul_fail(l->err, GPUL_EFORMAT, 0,
			 "'%.90s' is not defined; '%.60s' of %.40s refers to it: also link the file that "
			 "defines it",
			 text, user, l->inputs[input].name);
}

static gpul_status check_reference_to_row(const ptx_linker *l, uint32_t input, unsigned kind, uint32_t row, const char *user)
{
	const gpul_ptx_module *m = &l->inputs[input].m;

	if (kind == GPUL_PTX_REF_MODULE_VAR)
		return check_reference(l, input, m->vars[row].name, user);
	if (kind == GPUL_PTX_REF_FUNC)
		return check_reference(l, input, m->funcs[row].name, user);
	return GPUL_OK;
}

static gpul_status check_func(const ptx_linker *l, uint32_t input, const gpul_ptx_func *f)
{
	gpul_status st = GPUL_OK;

	for (uint32_t i = 0; i < f->n_operands && !st; i++)
		if (f->operands[i].kind == GPUL_PTX_OP_SYMBOL)
			st = check_reference_to_row(l, input, f->operands[i].ref_kind, f->operands[i].index,
						    gpul_ptx_name(&l->inputs[input].m, f->name));
	return st;
}

static gpul_status check_var(const ptx_linker *l, uint32_t input, const gpul_ptx_var *v)
{
	const gpul_ptx_module *m = &l->inputs[input].m;
	gpul_status st = GPUL_OK;

	for (uint32_t i = v->first_init; i < v->first_init + v->n_inits && !st; i++)
		if (m->inits[i].kind == GPUL_PTX_INIT_SYMBOL)
			st = check_reference_to_row(l, input, m->inits[i].ref_kind, m->inits[i].index, gpul_ptx_name(m, v->name));
	return st;
}

static gpul_status check_aliases(const ptx_linker *l, uint32_t input)
{
	const gpul_ptx_module *m = &l->inputs[input].m;
	gpul_status st = GPUL_OK;

	for (uint32_t i = 0; i < m->n_aliases && !st; i++)
		st = check_reference(l, input, m->funcs[m->aliases[i].aliasee].name, gpul_ptx_name(m, m->funcs[m->aliases[i].alias].name));
	return st;
}

gpul_status ptx_link_refer(ptx_linker *l)
{
	gpul_status st = GPUL_OK;

	for (uint32_t i = 0; i < l->n_inputs && !st; i++) {
		const gpul_ptx_module *m = &l->inputs[i].m;

		for (uint32_t k = 0; k < m->n_funcs && !st; k++)
			if (m->funcs[k].has_body && ptx_link_keeps_func(l, i, k))
				st = check_func(l, i, &m->funcs[k]);
		for (uint32_t k = 0; k < m->n_vars && !st; k++)
			if (ptx_link_keeps_var(l, i, k))
				st = check_var(l, i, &m->vars[k]);
		if (!st)
			st = check_aliases(l, i);
	}
	return st;
}

/* ---- private names ----------------------------------------------------------------------- */

static bool has_name(const gpul_ptx_module *m, const char *text)
{
	for (uint32_t i = 0; i < m->n_strings; i++)
		if (!strcmp(m->strings[i], text))
			return true;
	return false;
}

/* Create a name that no module uses at module level, and that the module of `input` does not use at all, because a local name there
 * would hide it.  Allocated in the arena; NULL: out of memory. */
static const char *new_name(ptx_linker *l, uint32_t input, const char *old)
{
	size_t room = strlen(old) + 24;
	char *text = ptx_arena_alloc(&l->arena, room);

	for (uint32_t n = input + 1; text; n++) {
		snprintf(text, room, "%s__%u", old, n);
		uint32_t row = ptx_link_intern(l, text);
		if (!row)
			return NULL;
		if (!l->symbols.at[row].taken && !has_name(&l->inputs[input].m, text))
			break;
	}
	return text;
}

/* Choose the module-level name of a private symbol, and reserve it: its own name if no other symbol uses that, else a new name. 0:
 * out of memory. */
static gpul_ptx_str claim_name(ptx_linker *l, uint32_t input, gpul_ptx_str name)
{
	gpul_ptx_module *m = &l->inputs[input].m;
	const char *text = gpul_ptx_name(m, name);
	uint32_t row = ptx_link_intern(l, text);

	if (row && l->symbols.at[row].taken) {
		text = new_name(l, input, text);
		row = text ? ptx_link_intern(l, text) : 0;
		m->strings[m->n_strings] = text;
		l->inputs[input].func_row[m->n_strings] = l->inputs[input].func_row[name];
		name = m->n_strings++;
	}
	if (!row)
		return 0;
	l->symbols.at[row].taken = true;
	return name;
}

static bool rename_row(ptx_linker *l, uint32_t input, gpul_ptx_str *name, gpul_ptx_str *claimed)
{
	if (ptx_link_symbol_of(l, input, *name))
		return true;
	if (!claimed[*name])
		claimed[*name] = claim_name(l, input, *name);
	*name = claimed[*name];
	return *name != 0;
}

gpul_status ptx_link_rename(ptx_linker *l)
{
	for (uint32_t i = 0; i < l->n_inputs; i++) {
		gpul_ptx_module *m = &l->inputs[i].m;
		size_t bytes = m->n_strings * sizeof(gpul_ptx_str);
		gpul_ptx_str *claimed = ptx_arena_alloc(&l->arena, bytes);
		bool ok = claimed != NULL;

		if (ok)
			memset(claimed, 0, bytes);
		for (uint32_t k = 0; k < m->n_vars && ok; k++)
			ok = rename_row(l, i, &m->vars[k].name, claimed);
		for (uint32_t k = 0; k < m->n_funcs && ok; k++)
			ok = m->funcs[k].kind == GPUL_PTX_FUNC_PROTOTYPE || rename_row(l, i, &m->funcs[k].name, claimed);
		if (!ok)
			return ptx_link_no_memory(l);
	}
	return GPUL_OK;
}
