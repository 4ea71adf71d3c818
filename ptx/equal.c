/* equal.c — compares two modules, for gpul_ptx_module_equal().
 *
 * Table entries are compared in order. Names are compared by their text, because their numbers depend on the order in which names
 * were read.  Line and column numbers are ignored. */
#include <string.h>

#include "ptx/module.h"

struct modules {
	const gpul_ptx_module *a, *b;
};

static bool same_name(const struct modules *x, gpul_ptx_str a, gpul_ptx_str b)
{
	return !strcmp(gpul_ptx_name(x->a, a), gpul_ptx_name(x->b, b));
}

static bool same_mod(const struct modules *x, unsigned a, unsigned b)
{
	if (a < GPUL_PTX_MOD_EXTRA || b < GPUL_PTX_MOD_EXTRA)
		return a == b;
	return !strcmp(gpul_ptx_mod_text(x->a, a), gpul_ptx_mod_text(x->b, b));
}

static bool same_init(const struct modules *x, const gpul_ptx_init *a, const gpul_ptx_init *b)
{
	if (a->kind != b->kind || a->i != b->i)
		return false;
	if (a->kind == GPUL_PTX_INIT_PROPERTY)
		return same_name(x, a->index, b->index) && same_name(x, a->property_word, b->property_word);
	return a->ref_kind == b->ref_kind && a->generic == b->generic && a->mask_byte == b->mask_byte && a->index == b->index;
}

static bool same_var(const struct modules *x, const gpul_ptx_var *a, const gpul_ptx_var *b)
{
	if (!same_name(x, a->name, b->name) || a->space != b->space || a->type != b->type || a->vector != b->vector ||
	    a->linkage != b->linkage || a->ptr_space != b->ptr_space || a->ptr_align != b->ptr_align || a->align != b->align ||
	    a->n_dims != b->n_dims || a->bytes != b->bytes || a->n_inits != b->n_inits || a->reg != b->reg || a->scope != b->scope ||
	    a->attributes != b->attributes || memcmp(a->unified, b->unified, sizeof a->unified))
		return false;
	for (uint32_t i = 0; i < a->n_dims; i++)
		if (x->a->dims[a->first_dim + i] != x->b->dims[b->first_dim + i])
			return false;
	for (uint32_t i = 0; i < a->n_inits; i++)
		if (!same_init(x, &x->a->inits[a->first_init + i], &x->b->inits[b->first_init + i]))
			return false;
	return true;
}

static bool same_vars(const struct modules *x, const gpul_ptx_var *a, uint32_t n_a, const gpul_ptx_var *b, uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		if (!same_var(x, &a[i], &b[i]))
			return false;
	return true;
}

static bool same_pragmas(const struct modules *x, uint32_t first_a, uint32_t first_b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!same_name(x, x->a->pragmas[first_a + i], x->b->pragmas[first_b + i]))
			return false;
	return true;
}

static bool same_tuning(const struct modules *x, const gpul_ptx_tuning *a, const gpul_ptx_tuning *b)
{
	/* Compare the counts as bytes: they are the first members of the struct, and have no padding. */
	return !memcmp(a, b, offsetof(gpul_ptx_tuning, explicitcluster)) && a->explicitcluster == b->explicitcluster &&
	       a->noreturn == b->noreturn && a->blocksareclusters == b->blocksareclusters && a->n_pragmas == b->n_pragmas &&
	       same_pragmas(x, a->first_pragma, b->first_pragma, a->n_pragmas);
}

static bool same_loc(const struct modules *x, uint32_t a, uint32_t b)
{
	if (a == GPUL_PTX_NONE || b == GPUL_PTX_NONE)
		return a == b;
	const gpul_ptx_loc *l = &x->a->locs[a], *r = &x->b->locs[b];

	return l->file == r->file && l->line == r->line && l->column == r->column && same_name(x, l->function_label, r->function_label) &&
	       l->function_offset == r->function_offset && l->at_file == r->at_file && l->at_line == r->at_line &&
	       l->at_column == r->at_column;
}

/* The two functions that are compared. */
struct functions {
	const gpul_ptx_func *a, *b;
};

/* Compare n operands and their children.  Indices may differ, because parsing array[register] adds instructions. */
static bool same_operands(const struct functions *f, uint32_t first_a, uint32_t first_b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const gpul_ptx_operand *a = &f->a->operands[first_a + i], *b = &f->b->operands[first_b + i];

		if (a->kind != b->kind || a->ref_kind != b->ref_kind || a->negated != b->negated || a->selector != b->selector ||
		    a->index != b->index || a->n_children != b->n_children || a->value.i != b->value.i ||
		    !same_operands(f, a->first_child, b->first_child, a->n_children))
			return false;
	}
	return true;
}

static bool same_inst(const struct modules *x, const struct functions *f, const gpul_ptx_inst *a, const gpul_ptx_inst *b)
{
	if (a->opcode != b->opcode || a->n_mods != b->n_mods || a->n_operands != b->n_operands || a->guard != b->guard ||
	    a->guard_negated != b->guard_negated || !same_loc(x, a->loc, b->loc) ||
	    !same_operands(f, a->first_operand, b->first_operand, a->n_operands))
		return false;
	for (unsigned i = 0; i < a->n_mods; i++)
		if (!same_mod(x, a->mods[i], b->mods[i]))
			return false;
	return true;
}

static bool same_label(const struct modules *x, const struct functions *f, const gpul_ptx_label *a, const gpul_ptx_label *b)
{
	return same_name(x, a->name, b->name) && a->inst == b->inst && a->scope == b->scope && a->kind == b->kind &&
	       a->n_targets == b->n_targets && a->prototype == b->prototype &&
	       same_operands(f, a->first_target, b->first_target, a->n_targets);
}

static bool same_regs(const struct modules *x, const gpul_ptx_regs *a, const gpul_ptx_regs *b)
{
	return same_name(x, a->name, b->name) && a->type == b->type && a->vector == b->vector && a->ranged == b->ranged &&
	       a->first == b->first && a->count == b->count && a->scope == b->scope;
}

static bool same_item(const struct modules *x, const gpul_ptx_item *a, const gpul_ptx_item *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == GPUL_PTX_ITEM_LOC)
		return same_loc(x, a->index, b->index);
	if (a->kind == GPUL_PTX_ITEM_PRAGMA)
		return same_pragmas(x, a->index, b->index, 1);
	return a->index == b->index;
}

static bool same_items(const struct modules *x, const gpul_ptx_item *a, uint32_t n_a, const gpul_ptx_item *b, uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		if (!same_item(x, &a[i], &b[i]))
			return false;
	return true;
}

static bool same_tables(const struct modules *x, const gpul_ptx_func *a, const gpul_ptx_func *b)
{
	const struct functions f = { a, b };

	if (a->n_regs != b->n_regs || a->n_module_regs != b->n_module_regs || a->n_labels != b->n_labels || a->n_insts != b->n_insts ||
	    a->n_operands != b->n_operands || a->n_scopes != b->n_scopes)
		return false;
	for (uint32_t i = 0; i < a->n_regs; i++)
		if (!same_regs(x, &a->regs[i], &b->regs[i]))
			return false;
	for (uint32_t i = 0; i < a->n_labels; i++)
		if (!same_label(x, &f, &a->labels[i], &b->labels[i]))
			return false;
	for (uint32_t i = 0; i < a->n_insts; i++)
		if (!same_inst(x, &f, &a->insts[i], &b->insts[i]))
			return false;
	return !a->n_scopes || !memcmp(a->scopes, b->scopes, a->n_scopes * sizeof *a->scopes);
}

static bool same_func(const struct modules *x, const gpul_ptx_func *a, const gpul_ptx_func *b)
{
	return same_name(x, a->name, b->name) && a->kind == b->kind && a->linkage == b->linkage && a->has_body == b->has_body &&
	       a->definition == b->definition && a->n_flat_regs == b->n_flat_regs && a->has_unified == b->has_unified &&
	       !memcmp(a->unified, b->unified, sizeof a->unified) && same_tuning(x, &a->tuning, &b->tuning) &&
	       same_vars(x, a->params, a->n_params, b->params, b->n_params) && same_vars(x, a->rets, a->n_rets, b->rets, b->n_rets) &&
	       same_vars(x, a->vars, a->n_vars, b->vars, b->n_vars) && same_items(x, a->items, a->n_items, b->items, b->n_items) &&
	       same_tables(x, a, b);
}

static bool same_files(const struct modules *x)
{
	if (x->a->n_files != x->b->n_files)
		return false;
	for (uint32_t i = 0; i < x->a->n_files; i++) {
		const gpul_ptx_file *a = &x->a->files[i], *b = &x->b->files[i];

		if (a->number != b->number || !same_name(x, a->path, b->path) || a->timestamp != b->timestamp || a->bytes != b->bytes)
			return false;
	}
	return true;
}

static bool same_sections(const struct modules *x)
{
	if (x->a->n_sections != x->b->n_sections)
		return false;
	for (uint32_t i = 0; i < x->a->n_sections; i++) {
		const gpul_ptx_section *a = &x->a->sections[i], *b = &x->b->sections[i];

		if (!same_name(x, a->name, b->name) || !same_name(x, a->text, b->text))
			return false;
	}
	return true;
}

static bool same_aliases(const struct modules *x)
{
	if (x->a->n_aliases != x->b->n_aliases)
		return false;
	for (uint32_t i = 0; i < x->a->n_aliases; i++)
		if (x->a->aliases[i].alias != x->b->aliases[i].alias || x->a->aliases[i].aliasee != x->b->aliases[i].aliasee)
			return false;
	return true;
}

static bool same_module_regs(const struct modules *x)
{
	if (x->a->n_regs != x->b->n_regs)
		return false;
	for (uint32_t i = 0; i < x->a->n_regs; i++)
		if (!same_regs(x, &x->a->regs[i], &x->b->regs[i]))
			return false;
	return true;
}

bool gpul_ptx_module_equal(const gpul_ptx_module *a, const gpul_ptx_module *b)
{
	const struct modules x = { a, b };

	if (a->version_major != b->version_major || a->version_minor != b->version_minor || a->sm != b->sm ||
	    a->sm_suffix != b->sm_suffix || a->debug != b->debug || a->address_size != b->address_size ||
	    !same_name(&x, a->target, b->target) || a->n_funcs != b->n_funcs || !same_files(&x) || !same_sections(&x) ||
	    !same_aliases(&x) || !same_module_regs(&x) || !same_vars(&x, a->vars, a->n_vars, b->vars, b->n_vars) ||
	    !same_items(&x, a->items, a->n_items, b->items, b->n_items))
		return false;
	for (uint32_t i = 0; i < a->n_funcs; i++)
		if (!same_func(&x, &a->funcs[i], &b->funcs[i]))
			return false;
	return true;
}
