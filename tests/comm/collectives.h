/* collectives.h — one collective with known data and a known result, checked on every rank. */
#ifndef GPULOAD_TESTS_COMM_COLLECTIVES_H
#define GPULOAD_TESTS_COMM_COLLECTIVES_H

#include "comm/comm_internal.h"
#include "comm/persistent.h"
#include "tests/comm/ranks.h"

struct collective {
	gpul_comm_call call;
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	size_t count; /* number of elements in a rank's part */
	int root;
	bool in_place;
	bool in_windows;                 /* true: the buffers are memory of gpul_comm_alloc() */
	size_t send_offset, recv_offset; /* in elements; rank r adds r * offset_of_rank */
	size_t offset_of_rank;
	unsigned n_blocks, n_threads;
};

/* Buffers of a rank, which several collectives use in turn. */
struct buffers {
	CUdeviceptr send, recv;
	size_t bytes;
	bool in_windows;
};

void new_buffers(struct rank *r, size_t bytes, bool in_windows, struct buffers *out);
void free_buffers(struct rank *r, struct buffers *b);

/* Fill send with the rank's elements, and recv with a pattern. */
void prepare_collective(struct rank *r, const struct buffers *b, const struct collective *x);
/* Compare the bytes of recv, and those around it, with the reference; aborts on a difference. */
void check_collective(struct rank *r, const struct buffers *b, const struct collective *x);
/* Post the collective to a persistent kernel, which does not use its algo, proto, n_blocks and n_threads. */
gpul_status post_collective(gpul_comm_persistent *p, struct rank *r, const struct buffers *b, const struct collective *x, uint64_t *ticket,
			    gpul_error *err);

/* Prepare, run and check a collective on this rank. */
void run_collective(struct rank *r, const struct buffers *b, const struct collective *x);
/* Launch the kernel of a collective, without preparing or checking data. */
gpul_status start_collective(struct rank *r, const struct buffers *b, const struct collective *x, gpul_error *err);

#endif
