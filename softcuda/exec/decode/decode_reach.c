/* decode_reach.c — finds the kernels that reach a function that cannot be executed, so that the other kernels of its module run.
 *
 * A call names its function, or it goes through a pointer.  A pointer can contain the address of every function that the module
 * takes the address of (in an instruction or an initialiser), if its parameters and results fit the call's .callprototype; with
 * .calltargets, only the functions of that list. */
#include <stdlib.h>

#include "core/array.h"
#include "softcuda/exec/decode/decode_internal.h"

struct call_edge {
	uint32_t caller, callee;
}; /* rows of module->funcs that have a body */
struct pointer_call {
	uint32_t caller;
	const gpul_ptx_func *prototype; /* NULL: unknown, any function fits */
};

struct call_graph {
	const gpul_ptx_module *m;
	GPUL_ARRAY(struct call_edge) edges;
	GPUL_ARRAY(struct pointer_call) pointer_calls;
	bool *taken; /* by row of module->funcs: its address is taken */
};

/* ---- collecting calls
 * ------------------------------------------------------------------------------------ */

static bool add_edge(struct call_graph *g, uint32_t caller, const gpul_ptx_operand *o)
{
	const uint32_t callee = g->m->funcs[o->index].definition;
	struct call_edge *e;

	if (callee == GPUL_PTX_NONE)
		return true;
	e = gpul_array_push(&g->edges);
	if (e)
		*e = (struct call_edge){ caller, callee };
	return e;
}

static bool names_function(const gpul_ptx_operand *o)
{
	return o->kind == GPUL_PTX_OP_SYMBOL && o->ref_kind == GPUL_PTX_REF_FUNC;
}

/* A call through a pointer; its last operand can be a label of .callprototype or .calltargets.
 */
static bool add_pointer_call(struct call_graph *g, uint32_t caller, const gpul_ptx_func *f,
			     const gpul_ptx_operand *last)
{
	const gpul_ptx_label *label =
		last->kind == GPUL_PTX_OP_LABEL ? &f->labels[last->index] : NULL;
	struct pointer_call *c;

	if (label && label->kind == GPUL_PTX_LABEL_CALLTARGETS) {
		for (uint32_t k = 0; k < label->n_targets; k++) {
			const gpul_ptx_operand *o = &f->operands[label->first_target + k];

			if (names_function(o) && !add_edge(g, caller, o))
				return false;
		}
		return true;
	}
	c = gpul_array_push(&g->pointer_calls);
	if (c)
		*c = (struct pointer_call){ caller,
					    label && label->kind == GPUL_PTX_LABEL_CALLPROTOTYPE
						    ? &g->m->funcs[label->prototype]
						    : NULL };
	return c;
}

static bool add_call(struct call_graph *g, uint32_t caller, const gpul_ptx_func *f,
		     const gpul_ptx_inst *in)
{
	const gpul_ptx_operand *o = &f->operands[in->first_operand];
	uint32_t target = in->n_operands > 1 && o->kind == GPUL_PTX_OP_LIST;

	if (!in->n_operands)
		return true;
	return names_function(&o[target])
		       ? add_edge(g, caller, &o[target])
		       : add_pointer_call(g, caller, f, &o[in->n_operands - 1]);
}

static void mark_taken(struct call_graph *g, const gpul_ptx_func *f, const gpul_ptx_operand *o)
{
	if (names_function(o) && g->m->funcs[o->index].definition != GPUL_PTX_NONE)
		g->taken[g->m->funcs[o->index].definition] = true;
	for (uint32_t k = 0; k < o->n_children;
	     k++) /* children of children are never functions */
		if (names_function(&f->operands[o->first_child + k]))
			mark_taken(g, f, &f->operands[o->first_child + k]);
}

static bool collect_function(struct call_graph *g, uint32_t row)
{
	const gpul_ptx_func *f = &g->m->funcs[row];

	for (uint32_t k = 0; k < f->n_insts; k++) {
		const gpul_ptx_inst *in = &f->insts[k];

		if (in->opcode == GPUL_PTX_CALL) {
			if (!add_call(g, row, f, in))
				return false;
			continue;
		}
		for (uint32_t n = 0; n < in->n_operands; n++)
			mark_taken(g, f, &f->operands[in->first_operand + n]);
	}
	return true;
}

static bool collect_calls(struct call_graph *g)
{
	for (uint32_t k = 0; k < g->m->n_inits; k++) {
		const gpul_ptx_init *i = &g->m->inits[k];

		if (i->kind == GPUL_PTX_INIT_SYMBOL && i->ref_kind == GPUL_PTX_REF_FUNC &&
		    g->m->funcs[i->index].definition != GPUL_PTX_NONE)
			g->taken[g->m->funcs[i->index].definition] = true;
	}
	for (uint32_t k = 0; k < g->m->n_funcs; k++)
		if (g->m->funcs[k].has_body && !collect_function(g, k))
			return false;
	return true;
}

/* ---- calls through pointers
 * ------------------------------------------------------------------------------- */

static bool same_sizes(const gpul_ptx_var *a, uint32_t n_a, const gpul_ptx_var *b, uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t k = 0; k < n_a; k++)
		if (a[k].bytes != b[k].bytes)
			return false;
	return true;
}

static bool fits_call(const gpul_ptx_func *f, const gpul_ptx_func *prototype)
{
	return f->kind == GPUL_PTX_FUNC_DEVICE &&
	       (!prototype ||
		(same_sizes(f->params, f->n_params, prototype->params, prototype->n_params) &&
		 same_sizes(f->rets, f->n_rets, prototype->rets, prototype->n_rets)));
}

/* spreading the refusals */

/* Add to every call through a pointer the edges to refused functions that it may call. */
static bool spread_to_pointer_calls(const struct call_graph *g, struct func_code *code,
				    uint32_t refused)
{
	bool spread = false;

	for (size_t k = 0; g->taken[refused] && k < g->pointer_calls.n; k++) {
		const struct pointer_call *c = &g->pointer_calls.at[k];

		if (code[c->caller].refusal || !fits_call(&g->m->funcs[refused], c->prototype))
			continue;
		code[c->caller].refusal = code[refused].refusal;
		spread = true;
	}
	return spread;
}

/* Each pass follows the calls at least one level; the number of passes is at most the depth of the deepest call chain. */
static void spread(const struct call_graph *g, struct func_code *code)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t k = 0; k < g->edges.n; k++) {
			const struct call_edge *e = &g->edges.at[k];

			if (code[e->callee].refusal && !code[e->caller].refusal) {
				code[e->caller].refusal = code[e->callee].refusal;
				more = true;
			}
		}
		for (uint32_t k = 0; g->pointer_calls.n && k < g->m->n_funcs; k++)
			if (code[k].refusal && spread_to_pointer_calls(g, code, k))
				more = true;
	}
}

/* "FILE:LINE: INSTRUCTION: why; kernel NAME reaches it" */
static gpul_status name_kernel(struct gpul_exec_program *p, struct func_code *code,
			       gpul_error *err)
{
	const char *name = gpul_ptx_name(p->module, code->ptx->name);
	gpul_error text = { 0 };
	char *copy;

	gpul_fail(&text, GPUL_EUNSUPPORTED, 0, "%s; kernel %s reaches it", code->refusal, name);
	copy = gpul_program_alloc(p, sizeof text.text, err);
	if (!copy)
		return GPUL_ENOMEM;
	code->refusal = strcpy(copy, text.text);
	return GPUL_OK;
}

gpul_status gpul_spread_refusals(struct gpul_exec_program *p, gpul_error *err)
{
	struct call_graph g = { .m = p->module };
	gpul_status st = GPUL_OK;
	uint32_t first = 0;

	while (first < g.m->n_funcs && !p->code[first].refusal)
		first++;
	if (first == g.m->n_funcs)
		return GPUL_OK;
	g.taken = calloc(g.m->n_funcs, sizeof *g.taken);
	if (g.taken && collect_calls(&g))
		spread(&g, p->code);
	else
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the call graph");
	for (uint32_t k = first; !st && k < g.m->n_funcs; k++)
		if (p->code[k].refusal && g.m->funcs[k].kind == GPUL_PTX_FUNC_ENTRY)
			st = name_kernel(p, &p->code[k], err);
	free(g.taken);
	gpul_array_free(&g.edges);
	gpul_array_free(&g.pointer_calls);
	return st;
}
