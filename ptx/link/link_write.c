/* link_write.c — prints the linked module.
 *
 * PTX requires a declaration before the first use, and two modules may refer to each other.  So declarations of all
 * functions come first, then the variables, then the bodies. */
#include "ptx/link/ptx_link_internal.h"

#include <stdlib.h>

#include "ptx/print_internal.h"

/* Declare every function, but only those kernels to which other code refers, or which an input declares before their definition. */
static void put_func_declarations(const ptx_linker *l, uint32_t input, ptx_out *o)
{
	const struct ptx_link_input *in = &l->inputs[input];

	for (uint32_t i = 0; i < in->m.n_funcs; i++) {
		const gpul_ptx_func *f = &in->m.funcs[i];
		const ptx_link_symbol *s = ptx_link_symbol_of(l, input, f->name);
		uint32_t row = in->func_row[f->name];

		if (f->kind == GPUL_PTX_FUNC_PROTOTYPE || !ptx_link_keeps_func(l, input, row) || (s && !s->strength && !s->is_referred_to))
			continue;
		if (f->kind == GPUL_PTX_FUNC_ENTRY ? i != row || (s && s->is_referred_to) : i == row)
			ptx_put_func_declaration(o, &in->m.funcs[row]);
	}
}

/* ---- variables --------------------------------------------------------------------------- */

/* A variable that must wait until the variables to which its initializer refers are printed. */
struct pending {
	struct ptx_link_place place;
	uint32_t next_init;
};
typedef GPUL_ARRAY(struct pending) pending_stack;

/* Find the declaration or definition that the result contains for a variable of an input. */
static struct ptx_link_place resolve_var(const ptx_linker *l, uint32_t input, uint32_t row)
{
	const ptx_link_symbol *s = ptx_link_symbol_of(l, input, l->inputs[input].m.vars[row].name);

	return !s ? (struct ptx_link_place){ input, row } : s->strength ? s->definition : s->first;
}

static bool push_pending(ptx_linker *l, pending_stack *t, struct ptx_link_place place)
{
	struct pending *row = gpul_array_push(t);

	if (!row)
		return false;
	row->place = place;
	row->next_init = l->inputs[place.input].m.vars[place.row].first_init;
	l->inputs[place.input].written[place.row] = PTX_BEGUN;
	return true;
}

/* Declare a variable before its definition.  This is needed if it contains its own address, or two variables contain each other's
 * address. */
static void put_extern(const ptx_linker *l, struct ptx_link_place place, ptx_out *o)
{
	gpul_ptx_var v = l->inputs[place.input].m.vars[place.row];

	v.linkage = GPUL_PTX_EXTERN;
	v.n_inits = 0;
	o->m = &l->inputs[place.input].m;
	ptx_put_var(o, &v);
}

/* Find the next variable that must be printed before t's variable, because its initializer refers to it.  Returns false if there
 * are no more. */
static bool find_needed_variable(ptx_linker *l, struct pending *t, ptx_out *o, struct ptx_link_place *needed)
{
	const gpul_ptx_module *m = &l->inputs[t->place.input].m;
	const gpul_ptx_var *v = &m->vars[t->place.row];

	while (t->next_init < v->first_init + v->n_inits) {
		const gpul_ptx_init *i = &m->inits[t->next_init++];

		if (i->kind != GPUL_PTX_INIT_SYMBOL || i->ref_kind != GPUL_PTX_REF_MODULE_VAR)
			continue;
		*needed = resolve_var(l, t->place.input, i->index);
		uint8_t *state = &l->inputs[needed->input].written[needed->row];
		if (*state == PTX_NOT_WRITTEN)
			return true;
		if (*state == PTX_BEGUN) {
			put_extern(l, *needed, o);
			*state = PTX_DECLARED;
		}
	}
	return false;
}

/* Print a variable after the variables to which it refers (depth-first), because PTX has no forward references.  An .extern
 * declaration is the last resort, because ptxas warns if the module also defines the variable. */
static bool put_variable(ptx_linker *l, struct ptx_link_place place, pending_stack *t, ptx_out *o)
{
	bool ok = push_pending(l, t, place);

	while (ok && t->n) {
		struct pending *top = &t->at[t->n - 1];
		struct ptx_link_place needed;

		if (find_needed_variable(l, top, o, &needed)) {
			ok = push_pending(l, t, needed);
			continue;
		}
		struct ptx_link_input *in = &l->inputs[top->place.input];
		o->m = &in->m;
		ptx_put_var(o, &in->m.vars[top->place.row]);
		in->written[top->place.row] = PTX_WRITTEN;
		t->n--;
	}
	return ok;
}

static bool put_variables(ptx_linker *l, ptx_out *o)
{
	pending_stack t = { 0 };
	bool ok = true;

	for (uint32_t i = 0; i < l->n_inputs; i++) {
		const struct ptx_link_input *in = &l->inputs[i];

		for (uint32_t k = 0; k < in->m.n_vars && ok; k++) {
			const ptx_link_symbol *s = ptx_link_symbol_of(l, i, in->m.vars[k].name);

			if (ptx_link_keeps_var(l, i, k) && in->written[k] == PTX_NOT_WRITTEN && (!s || s->strength || s->is_referred_to))
				ok = put_variable(l, (struct ptx_link_place){ i, k }, &t, o);
		}
	}
	gpul_array_free(&t);
	return ok;
}

/* ---- bodies and the whole module ----------------------------------------------------------- */

static void put_bodies(const ptx_linker *l, uint32_t input, ptx_out *o)
{
	const gpul_ptx_module *m = &l->inputs[input].m;

	for (uint32_t i = 0; i < m->n_items; i++) {
		uint32_t row = m->items[i].index;

		if (m->items[i].kind == GPUL_PTX_ITEM_PRAGMA)
			ptx_put_pragma(o, row);
		else if (m->items[i].kind == GPUL_PTX_ITEM_FUNC && m->funcs[row].has_body && ptx_link_keeps_func(l, input, row))
			ptx_put_func(o, &m->funcs[row]);
		else if (m->items[i].kind == GPUL_PTX_ITEM_ALIAS &&
			 ptx_link_keeps_func(l, input, l->inputs[input].func_row[m->funcs[m->aliases[row].alias].name]))
			ptx_put_alias(o, &m->aliases[row]);
	}
}

gpul_status ptx_link_write(ptx_linker *l, char **out_text, size_t *out_bytes)
{
	ptx_out o = { 0 };

	ptx_put_head(&o, l->version_major, l->version_minor, l->target, l->inputs[0].m.address_size);
	for (uint32_t i = 0; i < l->files.n; i++)
		ptx_put_file(&o, &l->files.at[i], ptx_names_text(&l->names, l->files.at[i].path));
	for (uint32_t i = 0; i < l->n_inputs; i++) {
		o.m = &l->inputs[i].m;
		put_func_declarations(l, i, &o);
	}
	o.failed |= !put_variables(l, &o);
	for (uint32_t i = 0; i < l->n_inputs; i++) {
		o.m = &l->inputs[i].m;
		put_bodies(l, i, &o);
	}
	ptx_put_bytes(&o, "", 1); /* append the NUL byte */
	if (o.failed) {
		free(o.text);
		return ptx_link_no_memory(l);
	}
	*out_text = o.text;
	if (out_bytes)
		*out_bytes = o.n - 1;
	return GPUL_OK;
}
