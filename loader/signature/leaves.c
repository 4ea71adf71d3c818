/* leaves.c — finds the leaves of a kernel's parameters: scalars, and the members of structs that the code loads. */
#include <stdlib.h>

#include "loader/signature/dataflow_internal.h"

static bool is_struct(const gpul_ptx_var *v)
{
	return v->n_dims || v->vector > 1;
}

static bool is_param_symbol(const gpul_ptx_operand *o)
{
	return o->kind == GPUL_PTX_OP_SYMBOL && o->ref_kind == GPUL_PTX_REF_PARAM;
}

/* Return the struct parameter from which an access loads at a constant offset; NULL: another kind of access. */
static const gpul_ptx_operand *loaded_struct(const gpul_ptx_func *f, const gpul_inst_access *a)
{
	const gpul_ptx_operand *symbol;

	if (!a->address || !a->loads || a->stores || a->space != GPUL_PTX_MOD_PARAM || !a->address->n_children)
		return NULL;
	symbol = &f->operands[a->address->first_child];
	return is_param_symbol(symbol) && is_struct(&f->params[symbol->index]) ? symbol : NULL;
}

/* Add a leaf, unless p->leaves already contains it; false: there are too many. */
static bool add_leaf(gpul_dataflow *p, const gpul_leaf *leaf)
{
	for (uint32_t i = 0; i < p->n_leaves; i++) {
		const gpul_leaf *other = &p->leaves[i];

		if (other->param != leaf->param || other->offset >= leaf->offset + leaf->bytes ||
		    leaf->offset >= other->offset + other->bytes)
			continue;
		if (other->offset != leaf->offset || other->bytes != leaf->bytes)
			p->opaque |= (uint64_t)1
				     << leaf->param; /* the code loads these bytes with different sizes, so they are not one member */
		return true;
	}
	if (p->n_leaves == DATAFLOW_MAX_LEAVES)
		return false;
	p->leaves[p->n_leaves++] = *leaf;
	return true;
}

/* Add the members that one ld.param loads. */
static bool add_members(gpul_dataflow *p, const gpul_ptx_func *f, const gpul_inst_access *a, uint32_t param)
{
	uint32_t bytes = gpul_ptx_type_bytes(a->type);

	for (uint32_t i = 0; i < a->vector; i++) {
		int64_t offset = a->address->value.i + (int64_t)i * bytes;
		gpul_leaf leaf = { .param = param, .offset = (uint32_t)offset, .bytes = bytes, .type = a->type };

		if (bytes == 0 || offset < 0 || (uint64_t)offset + bytes > f->params[param].bytes)
			p->opaque |= (uint64_t)1 << param;
		else if (!add_leaf(p, &leaf))
			return false;
	}
	return true;
}

/* Find structs that are used in other ways than by ld.param with a constant offset, such as by their address. */
static void find_opaque(gpul_dataflow *p, const gpul_ptx_func *f)
{
	uint32_t n_other[DATAFLOW_MAX_LEAVES] = { 0 };

	for (uint32_t k = 0; k < f->n_operands; k++)
		n_other[f->operands[k].index % DATAFLOW_MAX_LEAVES] += is_param_symbol(&f->operands[k]);
	for (uint32_t k = 0; k < f->n_insts; k++) {
		gpul_inst_access a = gpul_inst_access_of(f, &f->insts[k]);
		const gpul_ptx_operand *symbol = loaded_struct(f, &a);

		if (symbol)
			n_other[symbol->index]--;
	}
	for (uint32_t i = 0; i < f->n_params; i++)
		if (is_struct(&f->params[i]) && n_other[i])
			p->opaque |= (uint64_t)1 << i;
}

static int by_position(const void *a, const void *b)
{
	const gpul_leaf *x = a, *y = b;

	if (x->param != y->param)
		return x->param < y->param ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Drop the leaves of structs that turned out to be opaque, and sort the others. */
static void keep_leaves(gpul_dataflow *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_leaves; i++)
		if (!(p->opaque >> p->leaves[i].param & 1))
			p->leaves[n++] = p->leaves[i];
	p->n_leaves = n;
	qsort(p->leaves, n, sizeof *p->leaves, by_position);
}

bool gpul_dataflow_find_leaves(gpul_dataflow *p, const gpul_ptx_func *f)
{
	if (f->n_params > DATAFLOW_MAX_LEAVES)
		return false;
	for (uint32_t i = 0; i < f->n_params; i++) {
		const gpul_ptx_var *v = &f->params[i];
		gpul_leaf leaf = { .param = i, .bytes = (uint32_t)v->bytes, .type = v->type, .ptr = v->ptr_space || v->ptr_align };

		if (!is_struct(v) && !add_leaf(p, &leaf))
			return false;
	}
	find_opaque(p, f);
	for (uint32_t k = 0; k < f->n_insts; k++) {
		gpul_inst_access a = gpul_inst_access_of(f, &f->insts[k]);
		const gpul_ptx_operand *symbol = loaded_struct(f, &a);

		if (symbol && !(p->opaque >> symbol->index & 1) && !add_members(p, f, &a, symbol->index))
			return false;
	}
	keep_leaves(p);
	return true;
}

const gpul_leaf *gpul_dataflow_leaf(const gpul_dataflow *p, uint32_t param, int64_t offset, uint32_t bytes)
{
	for (uint32_t i = 0; i < p->n_leaves; i++)
		if (p->leaves[i].param == param && p->leaves[i].offset == offset && p->leaves[i].bytes == bytes)
			return &p->leaves[i];
	return NULL;
}

const gpul_leaf *gpul_leaf_of_access(const gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_inst_access *a, uint32_t i)
{
	const gpul_ptx_operand *symbol;
	uint32_t bytes = gpul_ptx_type_bytes(a->type);

	if (fn != p->funcs || a->space != GPUL_PTX_MOD_PARAM || !a->address->n_children)
		return NULL;
	symbol = &fn->f->operands[a->address->first_child];
	if (!is_param_symbol(symbol) || !is_struct(&fn->f->params[symbol->index]))
		return NULL;
	return gpul_dataflow_leaf(p, symbol->index, a->address->value.i + (int64_t)i * bytes, bytes);
}

bool gpul_leaf_is_member(const gpul_dataflow *p, const gpul_leaf *leaf)
{
	return is_struct(&p->funcs[0].f->params[leaf->param]);
}
