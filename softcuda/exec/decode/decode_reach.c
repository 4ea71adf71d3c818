/* decode_reach.c — finds and refuses the kernels that call a function with an instruction that the interpreter does not implement.
 * The other kernels of the module run.
 *
 * Only calls by name count.  A call through a pointer can reach every function whose address the module takes: NCCL's kernels call
 * one function of a table of hundreds.  So a kernel with such a call runs, and faults only if it executes the instruction (OP_REFUSED). */
#include "core/array.h"
#include "softcuda/exec/decode/decode_internal.h"

struct call_edge {
	uint32_t caller, callee;
}; /* indices in module->funcs; both functions have bodies */

struct call_graph {
	const gpul_ptx_module *m;
	GPUL_ARRAY(struct call_edge) edges;
};

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

static bool add_call(struct call_graph *g, uint32_t caller, const gpul_ptx_func *f, const gpul_ptx_inst *in)
{
	const gpul_ptx_operand *o = &f->operands[in->first_operand];
	uint32_t target = in->n_operands > 1 && o->kind == GPUL_PTX_OP_LIST;

	if (!in->n_operands)
		return true;
	return !names_function(&o[target]) || add_edge(g, caller, &o[target]);
}

static bool collect_calls(struct call_graph *g)
{
	for (uint32_t row = 0; row < g->m->n_funcs; row++) {
		const gpul_ptx_func *f = &g->m->funcs[row];

		for (uint32_t k = 0; f->has_body && k < f->n_insts; k++)
			if (f->insts[k].opcode == GPUL_PTX_CALL && !add_call(g, row, f, &f->insts[k]))
				return false;
	}
	return true;
}

/* Copy the refusal of a callee to its callers.  Each pass covers one more level of calls, so there are at most as many passes as levels. */
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
	}
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
	if (collect_calls(&g))
		spread(&g, p->code);
	else
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the call graph");
	gpul_array_free(&g.edges);
	return st;
}
