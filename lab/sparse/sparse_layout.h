/* sparse_layout.h — the arguments of the kernels of lab/sparse: for C and for CUDA C++.
 *
 *     input ── gpul_sparse_bitmap ──> a bit for each block ── CPU: lists of the non-zero blocks of each stream
 *     input ── gpul_sparse_pack ──> the non-zero blocks of each stream, one after another ── CPU: messages
 *     sums of non-zero blocks ── gpul_sparse_scatter ──> output
 *
 * A block is a multiple of 16 bytes; only the last one of a buffer may be shorter. */
#ifndef GPULOAD_LAB_SPARSE_SPARSE_LAYOUT_H
#define GPULOAD_LAB_SPARSE_SPARSE_LAYOUT_H

#include <stdint.h>

/* A job of the pack kernel: a CUDA block copies these blocks, and then sets a flag. */
typedef struct gpul_sparse_job {
	uint64_t to;       /* address of n blocks */
	uint32_t first, n; /* blocks[first] ... of the list of all streams */
	uint32_t flag;     /* flags[flag] becomes the call's number when the job is done */
	uint32_t unused;
} gpul_sparse_job;

/* A sum to scatter: a block of the output. */
typedef struct gpul_sparse_item {
	uint64_t from; /* address of the sum, a multiple of 16 */
	uint32_t block;
	uint32_t unused;
} gpul_sparse_item;

enum { GPUL_SPARSE_JOB_BLOCKS = 32, GPUL_SPARSE_THREADS = 256 };

#endif
