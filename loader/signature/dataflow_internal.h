/* dataflow_internal.h — dataflow analysis: the abstract value of every SSA value in a kernel.
 *
 *     PTX ── cfg.c: basic blocks ── ssa.c: SSA values ── program.c: reachable functions, nodes
 *         ── dataflow.c: transfer functions, joined until a fixpoint ──> one gpul_absval per
 * node
 *
 * The analysis covers all functions that the kernel can reach.  Their SSA values, parameters,
 * return values and variables are numbered together, as nodes; a call joins the arguments into
 * the callee's parameters. */
#ifndef GPULOAD_LOADER_SIGNATURE_DATAFLOW_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_DATAFLOW_INTERNAL_H

#include "loader/signature/absval_internal.h"
#include "loader/signature/inst_internal.h"
#include "loader/signature/signature.h"
#include "loader/signature/ssa_internal.h"

#define DATAFLOW_MAX_PARAMS 64 /* one bit each in a set of parameters */

/* A reachable function, and the first node of each of its tables. */
typedef struct gpul_dataflow_func {
	const gpul_ptx_func *f;
	gpul_ssa ssa;
	uint32_t regs, params, rets, vars;
} gpul_dataflow_func;

typedef struct gpul_dataflow {
	const gpul_ptx_module *m;
	gpul_dataflow_func *funcs; /* [0]: the kernel */
	size_t n_funcs;
	uint32_t n_nodes;
	uint32_t local_cell;  /* node: the join of all values stored to .local memory */
	uint32_t shared_cell; /* node: the join of all values stored to .shared memory */
	gpul_absval *values;  /* by node */
	uint64_t pointers;    /* parameters known to be addresses */
	bool changed;         /* a value grew in this round */
} gpul_dataflow;

/* Collect the functions that kernel can reach and number their nodes; part of
 * gpul_dataflow_open(). */
gpul_status gpul_dataflow_init(const gpul_ptx_module *m, const gpul_ptx_func *kernel,
			       gpul_dataflow *out, const char **why_not, gpul_error *err);

/* Run the analysis.
 *
 * kernel has a body and at most DATAFLOW_MAX_PARAMS parameters.  *out is released by
 * gpul_dataflow_close() and zeroed on failure.  If the program is too big to analyse, *why_not
 * is set to one phrase, *out is empty, and the status is OK.  Fails with GPUL_ENOMEM only. */
gpul_status gpul_dataflow_open(const gpul_ptx_module *m, const gpul_ptx_func *kernel,
			       gpul_dataflow *out, const char **why_not, gpul_error *err);
void gpul_dataflow_close(gpul_dataflow *p);

/* The abstract value of an operand before the instruction executes. */
gpul_absval gpul_absval_of(const gpul_dataflow *p, const gpul_dataflow_func *fn,
			   const gpul_ptx_operand *o);

/* The node of a register, or of a parameter, return value or variable symbol; else
 * GPUL_PTX_NONE. */
uint32_t gpul_operand_node(const gpul_dataflow_func *fn, const gpul_ptx_operand *o);
/* The node of a function's i-th parameter; of its i-th return value. */
uint32_t gpul_param_node(const gpul_dataflow_func *fn, uint32_t i);
uint32_t gpul_ret_node(const gpul_dataflow_func *fn, uint32_t i);

/* The row in p->funcs of a called function; NULL: the module has no body for it. */
const gpul_dataflow_func *gpul_dataflow_callee(const gpul_dataflow *p,
					       const gpul_ptx_operand *o);

#endif
