/* cfg_internal.h — the control-flow graph: a function's basic blocks and their predecessors. */
#ifndef GPULOAD_LOADER_SIGNATURE_CFG_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_CFG_INTERNAL_H

#include "ptx/module.h"

typedef struct gpul_cfg {
	uint32_t *of;         /* index: instruction; its block */
	uint32_t *first;      /* index: block; its first instruction */
	uint32_t *first_pred; /* index: block; its first row in preds.  One entry more than blocks */
	uint32_t *preds;      /* the predecessors of all blocks, block by block */
	uint32_t n_blocks;
} gpul_cfg;

/* Build the graph of f, which has a body; false: out of memory, and *out is empty.  Release it with gpul_cfg_close(). */
bool gpul_cfg_open(const gpul_ptx_func *f, gpul_cfg *out);
void gpul_cfg_close(gpul_cfg *b);

#endif
