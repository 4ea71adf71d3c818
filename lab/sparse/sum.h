/* sum.h — the sum of blocks on the CPU, in the order of the ranks: the same bits in every run.
 *
 * A block that a rank does not send consists of zeros.  Adding +0 changes no number except -0:
 * -0 + 0 = +0.  So one zero is added if any rank has not sent the block; the sum then has the
 * same bits as with all blocks sent.  Only a block whose bits are all 0 counts as zero: one of
 * -0 is sent. */
#ifndef GPULOAD_LAB_SPARSE_SUM_H
#define GPULOAD_LAB_SPARSE_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "comm/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sum a block of n elements, after each operation rounded to the type; integers wrap.  op: SUM, or AVG: the sum divided by n_ranks,
 * integers towards zero.  blocks: [n_ranks], in the order of the ranks, NULL: a block of zeros; at least one is not NULL.  Elements
 * are aligned to their size.  out overlaps no block.  The bits of a NaN result are not defined. */
void gpul_sparse_sum(void *out, const void *const *blocks, unsigned n_ranks, size_t n, gpul_comm_dtype dtype, gpul_comm_op op);

#ifdef __cplusplus
}
#endif

#endif
