/* values_internal.h — which value of a register an operand speaks of.
 *
 *     add.s64 %a, %a, 4;      the %a that is written is not the %a that is read
 *
 * Compilers name a new register for nearly every value; people reuse names.  Each assignment to
 * a register that has several is a value of its own here, and where paths meet, a value that
 * may be any of those that arrive: single static assignment, with its phis as merges.
 *
 * Source: Braun et al., Simple and Efficient Construction of Static Single Assignment Form,
 * 2013, whose local and global numbering this follows, block by block on demand. */
#ifndef GPULOAD_LOADER_SIGNATURE_VALUES_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_VALUES_INTERNAL_H

#include "ptx/module.h"

typedef struct gpul_merge {
	uint32_t inst;     /* just before it */
	uint32_t to, from; /* the value `to` may be the value `from` */
} gpul_merge;

/* Values are numbered from 0: the registers first, for those that are written once, then the
 * rest. */
typedef struct gpul_values {
	uint32_t *of; /* by row of f->operands: the value of a REG; NULL: the register itself */
	uint32_t n_values;
	gpul_merge *merges; /* in the order of inst */
	uint32_t n_merges;
} gpul_values;

/* Number the values of f, which has a body; false: no memory, and *out is empty.  Released by
 * gpul_values_close().  A function too tangled for it keeps registers that are written many
 * times as one value each. */
bool gpul_values_open(const gpul_ptx_func *f, gpul_values *out);
void gpul_values_close(gpul_values *v);

static inline uint32_t gpul_value_of(const gpul_ptx_func *f, const gpul_values *v,
				     const gpul_ptx_operand *o)
{
	return v->of ? v->of[o - f->operands] : o->index;
}

#endif
