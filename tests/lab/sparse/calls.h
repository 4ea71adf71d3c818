/* calls.h — sparse all-reduces of ranks that are threads of one process, over libfabric; every bit of the result is compared. */
#ifndef GPULOAD_TESTS_LAB_SPARSE_CALLS_H
#define GPULOAD_TESTS_LAB_SPARSE_CALLS_H

#include "lab/sparse/sparse.h"
#include "tests/comm/ranks.h"

struct call {
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	size_t count, send_offset, recv_offset; /* in elements */
	uint32_t block;
	unsigned per_mille; /* share of the blocks that are not zero, per mille */
	bool in_place;
	uint64_t seed;
};

/* The data that the threads of a test share. */
struct test {
	gpul_comm_job job;
	gpul_comm_sparse_options options;
	bool falls_back;     /* true: there is a communicator for dense data */
	uint32_t direct;     /* a bit for each rank: it packs in device memory */
	bool as_gpu;         /* pretend that device memory is that of a GPU, which libfabric
				    * cannot access */
	const char *refused; /* not NULL: gpul_comm_sparse_create() fails with it */
	void (*run)(struct rank *r, gpul_comm_sparse *s, struct test *t);
};

/* Make a call on one rank, in memory of its own, and compare the result; aborts on a difference. */
gpul_comm_sparse_report run_call(struct rank *r, gpul_comm_sparse *s, const struct call *c);
/* Run t.run on n ranks. */
void run_sparse(int n_ranks, struct test t);

#endif
