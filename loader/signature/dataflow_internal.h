/* dataflow_internal.h — dataflow analysis: computes the abstract value of every SSA value in a kernel.
 *
 *     PTX ── cfg.c: basic blocks ── ssa.c: SSA values ── signature_program.c: reachable functions, nodes
 *         ── dataflow.c: transfer functions, joined until a fixpoint ──> a gpul_absval for each node
 *
 * The analysis covers all functions that the kernel can call, directly or indirectly.  Their SSA values, parameters, return values
 * and variables are numbered together, as nodes; a call joins the arguments into the callee's parameters. */
#ifndef GPULOAD_LOADER_SIGNATURE_DATAFLOW_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_DATAFLOW_INTERNAL_H

#include "loader/signature/absval_internal.h"
#include "loader/signature/inst_internal.h"
#include "loader/signature/signature.h"
#include "loader/signature/ssa_internal.h"

#define DATAFLOW_MAX_LEAVES 64 /* a set of leaves has 64 bits */

/* A leaf: a kernel parameter or, if that is a struct, a member of it, as the code loads it. */
typedef struct gpul_leaf {
	uint32_t param;         /* index of the parameter */
	uint32_t offset, bytes; /* offset and size of the leaf in the parameter, in bytes */
	uint32_t node;
	uint16_t type; /* gpul_ptx_mod, as declared or as loaded */
	bool ptr;      /* declared as a pointer (.ptr) */
} gpul_leaf;

/* A function that the kernel can call, and the first node of each kind of value in it. */
typedef struct gpul_dataflow_func {
	const gpul_ptx_func *f;
	gpul_ssa ssa;
	uint32_t regs, params, rets, vars;
} gpul_dataflow_func;

typedef struct gpul_dataflow {
	const gpul_ptx_module *m;
	gpul_dataflow_func *funcs; /* funcs[0] is the kernel */
	size_t n_funcs;
	uint32_t n_nodes;
	uint32_t local_cell;  /* the node of .local memory: the join of all values stored there */
	uint32_t shared_cell; /* the node of .shared memory: the join of all values stored there */
	gpul_absval *values;  /* one for each node */
	gpul_leaf leaves[DATAFLOW_MAX_LEAVES];
	uint32_t n_leaves;
	uint64_t opaque;   /* set of struct parameters that the code does not access only by loading their members */
	uint64_t pointers; /* parameters known to be addresses */
	bool changed;      /* an abstract value changed in this round */
} gpul_dataflow;

/* Collect the functions that the kernel can call and number their nodes.  Only gpul_dataflow_open() calls this. */
gpul_status gpul_dataflow_init(const gpul_ptx_module *m, const gpul_ptx_func *kernel, gpul_dataflow *out, const char **why_not,
			       gpul_error *err);

/* Find the leaves (gpul_leaf) of the kernel's parameters, sorted by parameter and offset; false: there are too many. */
bool gpul_dataflow_find_leaves(gpul_dataflow *p, const gpul_ptx_func *kernel);

/* Return the leaf at [param + offset] with the given size, or NULL. */
const gpul_leaf *gpul_dataflow_leaf(const gpul_dataflow *p, uint32_t param, int64_t offset, uint32_t bytes);

/* Return the leaf that element i of a ld.param loads, if its function is the kernel; else NULL. */
const gpul_leaf *gpul_leaf_of_access(const gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_inst_access *a, uint32_t i);

/* True for a member of a struct, false for a whole parameter. */
bool gpul_leaf_is_member(const gpul_dataflow *p, const gpul_leaf *leaf);

/* Run the analysis.
 *
 * kernel must have a body.  Release *out with gpul_dataflow_close(); it is zeroed on failure.  If the program is too big to
 * analyse, *why_not is set to one phrase, *out is empty, and the status is OK.  Fails with GPUL_ENOMEM only. */
gpul_status gpul_dataflow_open(const gpul_ptx_module *m, const gpul_ptx_func *kernel, gpul_dataflow *out, const char **why_not,
			       gpul_error *err);
void gpul_dataflow_close(gpul_dataflow *p);

/* Return the abstract value of an operand before the instruction executes. */
gpul_absval gpul_absval_of(const gpul_dataflow *p, const gpul_dataflow_func *fn, const gpul_ptx_operand *o);

/* Return the node of a register, or of the symbol of a parameter, return value or variable; else GPUL_PTX_NONE. */
uint32_t gpul_operand_node(const gpul_dataflow_func *fn, const gpul_ptx_operand *o);
/* Return the node of a function's i-th parameter, or of its i-th return value. */
uint32_t gpul_param_node(const gpul_dataflow_func *fn, uint32_t i);
uint32_t gpul_ret_node(const gpul_dataflow_func *fn, uint32_t i);

/* Return the element of p->funcs for the function that o refers to; NULL: the module has no body for it. */
const gpul_dataflow_func *gpul_dataflow_callee(const gpul_dataflow *p, const gpul_ptx_operand *o);

#endif
