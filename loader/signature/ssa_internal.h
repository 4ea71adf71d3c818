/* ssa_internal.h — SSA form: numbers the values that register operands read or write. The control-flow graph is declared at the end.
 *
 *     add.s64 %a, %a, 4;      the %a that is written is a different value from the %a that is read
 *
 * Compilers use a new register for nearly every value; hand-written PTX reuses registers.  Each assignment to a register with
 * several assignments defines a new value, and where control-flow paths join, a phi joins the values that arrive.
 *
 * Source: Braun et al., Simple and Efficient Construction of Static Single Assignment Form, 2013 (local and global value numbering). */
#ifndef GPULOAD_LOADER_SIGNATURE_SSA_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_SSA_INTERNAL_H

#include "ptx/module.h"

typedef struct gpul_phi {  /* one operand of a phi */
	uint32_t inst;     /* the phi is placed before this instruction */
	uint32_t to, from; /* value `to` is value `from` if control comes from pred */
	uint32_t pred;     /* block from which `from` arrives; GPUL_PTX_NONE: the old value, which the instruction may keep */
} gpul_phi;

/* The numbers of all values.  A register with one assignment has its register number as the number of its value. */
typedef struct gpul_ssa {
	uint32_t *of; /* for each element of f->operands: the value of a register operand; NULL: the value is the register's number */
	uint32_t n_values;
	gpul_phi *phis; /* sorted by inst */
	uint32_t n_phis;
} gpul_ssa;

/* Number the values of f, which has a body; false: out of memory, and *out is empty.  Release it with gpul_ssa_close().
 * If f would need too many phis, each remaining register keeps one value. */
bool gpul_ssa_open(const gpul_ptx_func *f, gpul_ssa *out);
void gpul_ssa_close(gpul_ssa *v);

static inline uint32_t gpul_ssa_value(const gpul_ptx_func *f, const gpul_ssa *v, const gpul_ptx_operand *o)
{
	return v->of ? v->of[o - f->operands] : o->index;
}

/* The control-flow graph: a function's basic blocks and their predecessors. */
typedef struct gpul_cfg {
	uint32_t *of;         /* for each instruction: its block */
	uint32_t *first;      /* for each block: its first instruction */
	uint32_t *first_pred; /* for each block: index of its first predecessor in preds; one more element is the length of preds */
	uint32_t *preds;      /* the predecessors of all blocks, block by block */
	uint32_t n_blocks;
} gpul_cfg;

/* Build the graph of f, which has a body; false: out of memory, and *out is empty.  Release it with gpul_cfg_close(). */
bool gpul_cfg_open(const gpul_ptx_func *f, gpul_cfg *out);
void gpul_cfg_close(gpul_cfg *b);

#endif
