/* signature_program.c — collects the functions that a kernel can call, and numbers the nodes of their values. */
#include <stdlib.h>

#include "loader/signature/dataflow_internal.h"

#define MAX_NODES (4u << 20) /* a kernel with more nodes is not analysed */

static gpul_dataflow_func *find_func(const gpul_dataflow *p, const gpul_ptx_func *f)
{
	for (size_t i = 0; i < p->n_funcs; i++)
		if (p->funcs[i].f == f)
			return &p->funcs[i];
	return NULL;
}

static const gpul_ptx_func *find_definition(const gpul_ptx_module *m, const gpul_ptx_operand *o)
{
	const gpul_ptx_func *f;

	if (!o || o->kind != GPUL_PTX_OP_SYMBOL || o->ref_kind != GPUL_PTX_REF_FUNC)
		return NULL;
	f = &m->funcs[o->index];
	if (!f->has_body && f->definition != GPUL_PTX_NONE)
		f = &m->funcs[f->definition];
	return f->has_body ? f : NULL;
}

const gpul_dataflow_func *gpul_dataflow_callee(const gpul_dataflow *p, const gpul_ptx_operand *o)
{
	const gpul_ptx_func *f = find_definition(p->m, o);

	return f ? find_func(p, f) : NULL;
}

/* Return a new element at the end of p->funcs; NULL: out of memory.  Most kernels call no function, but a module may have a
 * hundred thousand functions, so the table starts small, and doubles when its length is a power of two. */
static gpul_dataflow_func *next_row(gpul_dataflow *p)
{
	size_t n = p->n_funcs;

	if ((n & (n - 1)) == 0) {
		gpul_dataflow_func *rows = realloc(p->funcs, (n ? 2 * n : 1) * sizeof *rows);

		if (!rows)
			return NULL;
		p->funcs = rows;
	}
	p->funcs[n] = (gpul_dataflow_func){ 0 };
	return &p->funcs[n];
}

/* Append f and number its values with the next free nodes; *too_many is set if MAX_NODES is exceeded. */
static bool add_func(gpul_dataflow *p, const gpul_ptx_func *f, bool *too_many)
{
	gpul_dataflow_func *row;
	uint64_t end;

	*too_many = f->n_flat_regs > MAX_NODES; /* checked before memory for the registers is allocated */
	if (*too_many)
		return false;
	row = next_row(p);
	if (!row || !gpul_ssa_open(f, &row->ssa))
		return false;
	p->n_funcs++; /* from now on, gpul_dataflow_close() frees row->ssa */
	end = (uint64_t)p->n_nodes + row->ssa.n_values + f->n_params + f->n_rets + f->n_vars;
	*too_many = end > MAX_NODES;
	if (*too_many)
		return false;
	row->f = f;
	row->regs = p->n_nodes;
	row->params = row->regs + row->ssa.n_values;
	row->rets = row->params + f->n_params;
	row->vars = row->rets + f->n_rets;
	p->n_nodes = (uint32_t)end;
	return true;
}

/* Collect the functions that the kernel can call.  funcs[] is also the work list: the calls of an appended function are visited later. */
static bool collect_funcs(gpul_dataflow *p, const gpul_ptx_func *kernel, bool *too_many)
{
	if (!add_func(p, kernel, too_many))
		return false;
	for (size_t i = 0; i < p->n_funcs; i++) {
		const gpul_ptx_func *f = p->funcs[i].f; /* copied, because add_func() may move the array p->funcs */

		for (uint32_t k = 0; k < f->n_insts; k++) {
			const gpul_ptx_inst *in = &f->insts[k];
			const gpul_ptx_func *to;

			if (in->opcode != GPUL_PTX_CALL)
				continue;
			to = find_definition(p->m, gpul_inst_call_parts(f, in).target);
			if (to && !find_func(p, to) && !add_func(p, to, too_many))
				return false;
		}
	}
	for (uint32_t i = 0; i < p->n_leaves; i++) {
		const gpul_ptx_var *v = &kernel->params[p->leaves[i].param];
		bool whole = !v->n_dims && v->vector <= 1;

		p->leaves[i].node = whole ? p->funcs[0].params + p->leaves[i].param : p->n_nodes++;
	}
	p->local_cell = p->n_nodes++;
	p->shared_cell = p->n_nodes++;
	return true;
}

gpul_status gpul_dataflow_init(const gpul_ptx_module *m, const gpul_ptx_func *kernel, gpul_dataflow *out, const char **why_not,
			       gpul_error *err)
{
	gpul_dataflow p = { .m = m };
	bool too_many = false;

	*out = (gpul_dataflow){ 0 };
	if (!gpul_dataflow_find_leaves(&p, kernel)) {
		*why_not = "the kernel has more than 64 parameters and members of structs";
		gpul_dataflow_close(&p);
		return GPUL_OK;
	}
	if (collect_funcs(&p, kernel, &too_many))
		p.values = calloc(p.n_nodes, sizeof *p.values);
	if (too_many) {
		*why_not = "the kernel has too many registers to analyse";
		gpul_dataflow_close(&p);
		return GPUL_OK;
	}
	if (!p.values) {
		gpul_dataflow_close(&p);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to analyse the kernel's values");
	}
	*out = p;
	return GPUL_OK;
}

void gpul_dataflow_close(gpul_dataflow *p)
{
	for (size_t i = 0; i < p->n_funcs; i++)
		gpul_ssa_close(&p->funcs[i].ssa);
	free(p->values);
	free(p->funcs);
	*p = (gpul_dataflow){ 0 };
}

uint32_t gpul_param_node(const gpul_dataflow_func *fn, uint32_t i)
{
	const gpul_ptx_var *v = &fn->f->params[i];

	return v->space == GPUL_PTX_MOD_REG ? fn->regs + v->reg : fn->params + i;
}

uint32_t gpul_ret_node(const gpul_dataflow_func *fn, uint32_t i)
{
	const gpul_ptx_var *v = &fn->f->rets[i];

	return v->space == GPUL_PTX_MOD_REG ? fn->regs + v->reg : fn->rets + i;
}

uint32_t gpul_operand_node(const gpul_dataflow_func *fn, const gpul_ptx_operand *o)
{
	if (o->kind == GPUL_PTX_OP_REG)
		return fn->regs + gpul_ssa_value(fn->f, &fn->ssa, o);
	if (o->kind == GPUL_PTX_OP_ADDRESS)
		return o->n_children ? gpul_operand_node(fn, &fn->f->operands[o->first_child]) : GPUL_PTX_NONE;
	if (o->kind != GPUL_PTX_OP_SYMBOL)
		return GPUL_PTX_NONE;
	switch (o->ref_kind) {
	case GPUL_PTX_REF_PARAM:
		return gpul_param_node(fn, o->index);
	case GPUL_PTX_REF_RET:
		return gpul_ret_node(fn, o->index);
	case GPUL_PTX_REF_FUNC_VAR:
		return fn->vars + o->index;
	default:
		return GPUL_PTX_NONE;
	}
}
