/* sum.h — sums blocks on the CPU, in the order of the ranks, so that every run gives the same bits.
 *
 * A block that a rank does not send consists of zeros.  Adding +0 changes no number except -0:
 * -0 + 0 = +0.  So one +0 is added if any rank has not sent the block. Then the sum has the same
 * bits as if all ranks had sent the block.  Only a block whose bits are all 0 counts as zero; a block
 * of -0 is sent. */
#ifndef GPULOAD_LAB_SPARSE_SUM_H
#define GPULOAD_LAB_SPARSE_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "comm/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sum blocks of n elements, with rounding to the type after each operation; integers wrap around.  op: SUM, or AVG (the sum divided
 * by n_ranks; integers are rounded towards zero).  blocks: [n_ranks], in the order of the ranks, NULL: a block of zeros; at least
 * one is not NULL.  Elements are aligned to their size.  out overlaps no block.  The bits of a NaN result are not defined. */
void gpul_sparse_sum(void *out, const void *const *blocks, unsigned n_ranks, size_t n, gpul_comm_dtype dtype, gpul_comm_op op);

#ifdef __cplusplus
}
#endif

#endif
