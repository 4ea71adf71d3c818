/* fifo_bench_check.h — checks that every trigger arrives exactly once and in order.
 *
 * Word 0 of a trigger is its number within its block, from 0; word 1 is the number of the block (fifo_bench.cu). */
#ifndef GPULOAD_CLI_FIFO_BENCH_FIFO_BENCH_CHECK_H
#define GPULOAD_CLI_FIFO_BENCH_FIFO_BENCH_CHECK_H

#include <stdint.h>

#include "cli/fifo/bench/fifo_count.h"
#include "proxy/fifo.h"

struct fifo_check {
	unsigned blocks;          /* number of blocks that push */
	uint64_t triggers;        /* expected triggers per block */
	struct fifo_count *count; /* used by fifo_check_count(); cleared for `triggers` keys; borrowed */
	uint64_t sum;             /* written by fifo_check_count(): sum of the block numbers */
	/* used by fifo_check_order() and fifo_check_stamp(): for each block, the number of its next trigger; owned */
	uint64_t *next;
	uint64_t *popped_ns; /* fifo_check_stamp() writes arrival times, to element block * triggers + number; borrowed */
	uint64_t wrong;      /* triggers that are wrong, repeated or out of order */
};

/** Begin a check of the order, for fifo_check_stamp() and fifo_check_order().
 *
 * @c  blocks and triggers are filled in; release it with fifo_check_end()
 * Errors  GPUL_ENOMEM
 * Threads one at a time */
gpul_status fifo_check_begin(struct fifo_check *c, gpul_error *err);
void fifo_check_end(struct fifo_check *c); /* accepts a struct of zeros */

/* For each trigger of a batch, increment the counter of its number in the hash map. */
void fifo_check_count(struct fifo_check *c, const gpul_fifo_item *items, unsigned n);
/* Check that each trigger of a batch is the next one of its block, and record its arrival time. */
void fifo_check_stamp(struct fifo_check *c, const gpul_fifo_item *items, unsigned n);
/* Check that each trigger of a run (triggers that warps have pushed) is the next one of its block. */
void fifo_check_order(struct fifo_check *c, const gpul_fifo_run *run);

/** Evaluate the check after all expected triggers.
 *
 * @c       a check in use
 * @kernel  name of the kernel, for the message
 * Errors  GPUL_EFORMAT triggers were lost, repeated or wrong; the message gives their number
 * Threads one at a time */
gpul_status fifo_check_result(struct fifo_check *c, const char *kernel, gpul_error *err);

#endif
