/* fifo_bench_check.h — did every trigger come, once, and in its order?
 *
 * Word 0 of a trigger is its number within its block, from 0; word 1 is that of the block (fifo_bench.cu). */
#ifndef GPULOAD_CLI_FIFO_BENCH_FIFO_BENCH_CHECK_H
#define GPULOAD_CLI_FIFO_BENCH_FIFO_BENCH_CHECK_H

#include <stdint.h>

#include "cli/fifo/bench/fifo_count.h"
#include "proxy/fifo.h"

struct fifo_check {
	unsigned blocks;      /* that push, and */
	uint64_t triggers;    /* of each: what is to come */
	struct fifo_count *count;  /* _count: cleared for as many; borrowed */
	uint64_t sum;         /* _count: of the blocks' numbers */
	uint64_t *next;       /* the others: of each block, the number that comes next; owned */
	uint64_t *popped_ns;  /* _stamp: when, by gpul_clock_ns(), at block * triggers + number; borrowed */
	uint64_t wrong;       /* that no block has pushed, or not now */
};

/** Begin one whose numbers are to come in order.
 *
 * @c  blocks and triggers filled in; fifo_check_end() frees
 * Errors  GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status fifo_check_begin(struct fifo_check *c, gpul_error *err);
void fifo_check_end(struct fifo_check *c);  /* a zeroed one is fine */

/* Take a batch: count each number in the hash map; or look whether each is the next of its block, and note the time. */
void fifo_check_count(struct fifo_check *c, const gpul_fifo_item *items, unsigned n);
void fifo_check_stamp(struct fifo_check *c, const gpul_fifo_item *items, unsigned n);
/* Take a run of warps' triggers: look whether each is the next of its block. */
void fifo_check_order(struct fifo_check *c, const gpul_fifo_run *run);

/** What they found, after as many triggers as were to come.
 *
 * @c       used
 * @kernel  whose, for the message
 * Errors  GPUL_EFORMAT how many are lost, repeated or wrong
 * Threads one at a time
 * Source  - */
gpul_status fifo_check_result(struct fifo_check *c, const char *kernel, gpul_error *err);

#endif
