/* blocks_internal.h — a function's basic blocks, and from where each can be reached. */
#ifndef GPULOAD_LOADER_SIGNATURE_BLOCKS_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_BLOCKS_INTERNAL_H

#include "ptx/module.h"

typedef struct gpul_blocks {
	uint32_t *of;         /* by instruction: its block */
	uint32_t *first;      /* by block: its first instruction */
	uint32_t *first_pred; /* by block, and one past the last: a row of preds */
	uint32_t *preds;      /* blocks */
	uint32_t n_blocks;
} gpul_blocks;

/* Blocks of f, which has a body; false: no memory, and *out is empty.  Released by
 * gpul_blocks_close(). */
bool gpul_blocks_open(const gpul_ptx_func *f, gpul_blocks *out);
void gpul_blocks_close(gpul_blocks *b);

#endif
