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

/* A job of the pack kernel: a thread block copies n blocks, and then sets a flag. */
typedef struct gpul_sparse_job {
	uint64_t to;       /* where the n blocks are copied to */
	uint32_t first, n; /* the job copies entries `first` to first + n - 1 of the list of all streams */
	uint32_t flag;     /* flags[flag] is set to the call's number when the job is done */
	uint32_t unused;
} gpul_sparse_job;

/* A sum to be scattered, and the number of its block in the output. */
typedef struct gpul_sparse_item {
	uint64_t from; /* address of the sum, a multiple of 16 */
	uint32_t block;
	uint32_t unused;
} gpul_sparse_item;

enum { GPUL_SPARSE_JOB_BLOCKS = 32, GPUL_SPARSE_THREADS = 256 };

#endif
