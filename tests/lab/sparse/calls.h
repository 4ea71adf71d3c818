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

/* Settings of a test, shared by the threads of all ranks. */
struct test {
	gpul_comm_job job;
	gpul_comm_sparse_options options;
	bool falls_back;     /* true: a call may fall back to a dense all-reduce */
	uint32_t direct;     /* bit r: rank r packs blocks in device memory */
	bool as_gpu;         /* libfabric must not access device memory, as on a GPU */
	const char *refused; /* not NULL: expected error of gpul_comm_sparse_create() */
	void (*run)(struct rank *r, gpul_comm_sparse *s, struct test *t);
};

/* Call the all-reduce on one rank, with buffers for this call, and compare the result; aborts the process on a difference. */
gpul_comm_sparse_report run_call(struct rank *r, gpul_comm_sparse *s, const struct call *c);
/* Run t.run on n ranks. */
void run_sparse(int n_ranks, struct test t);

#endif
