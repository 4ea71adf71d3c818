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
	size_t count; /* elements of a rank's part */
	int root;
	bool in_place;
	bool in_windows;                 /* memory of gpul_comm_alloc() */
	size_t send_offset, recv_offset; /* elements; rank r adds r * offset_of_rank */
	size_t offset_of_rank;
	unsigned n_blocks, n_threads;
};

/* Buffers of a rank, for all collectives that fit. */
struct buffers {
	CUdeviceptr send, recv;
	size_t bytes;
	bool in_windows;
};

void new_buffers(struct rank *r, size_t bytes, bool in_windows, struct buffers *out);
void free_buffers(struct rank *r, struct buffers *b);

/* Fill send with the rank's terms, and recv with a pattern. */
void prepare_collective(struct rank *r, const struct buffers *b, const struct collective *x);
/* Compare the bytes of recv, and those around it, with the reference; aborts on a difference. */
void check_collective(struct rank *r, const struct buffers *b, const struct collective *x);
/* Post it to a persistent kernel; algo, proto, n_blocks and n_threads are not used. */
gpul_status post_collective(gpul_comm_persistent *p, struct rank *r, const struct buffers *b, const struct collective *x, uint64_t *ticket,
			    gpul_error *err);

/* Prepare it, run it on one rank, and check it. */
void run_collective(struct rank *r, const struct buffers *b, const struct collective *x);
/* Only launch its kernel. */
gpul_status start_collective(struct rank *r, const struct buffers *b, const struct collective *x, gpul_error *err);

#endif
