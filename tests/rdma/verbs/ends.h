/* ends.h — two ends of a verbs path in one process, each with its own device, over the fake libibverbs. */
#ifndef GPULOAD_TESTS_RDMA_VERBS_ENDS_H
#define GPULOAD_TESTS_RDMA_VERBS_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "rdma/backend/backend.h"
#include "tests/fake/fake_verbs.h"

enum { END_BYTES = 1 << 16, END_RECVS = 16, END_DEPTH = 64 };

struct end {
	void *device, *path, *token;
	unsigned char *memory;
	gpul_rdma_piece piece;
};

extern const gpul_rdma_backend *end_backend; /* default: gpul_rdma_verbs */

/* Return the description that tests use by default: any NIC, no GPU. */
gpul_rdma_device_desc plain_desc(void);

/* Open a device, register its memory, create a path; returns the status, with everything undone on failure. */
gpul_status end_open(struct end *e, const gpul_rdma_device_desc *desc, unsigned n_qps, gpul_error *err);
void end_close(struct end *e);

/* Connect two ends to each other. */
gpul_status ends_connect(struct end *a, struct end *b, gpul_error *err);

/* Open and connect two ends; every step must succeed. */
void ends_open(struct end *a, struct end *b, const gpul_rdma_device_desc *desc, unsigned n_qps);

/* Post operations, which must all be accepted. */
void post_all(struct end *e, const gpul_rdma_op *ops, unsigned n);

/* Poll once; the poll must succeed.  Returns the number of events. */
unsigned poll_once(struct end *e, gpul_rdma_event *events, unsigned max);

/* Poll until the path fails, for at most a second; returns the failure. */
gpul_rdma_failure poll_failure(struct end *e);

/* Make an operation from the memory of one end to the memory of the other. */
gpul_rdma_op write_op(const struct end *from, const struct end *to, gpul_rdma_op_kind kind, uint64_t offset, uint32_t n_bytes, uint64_t id);

#endif
