/* two_ends.h — two ends of a connection in one process, for the tests of rdma.h: a listener's thread accepts. */
#ifndef GPULOAD_TESTS_RDMA_TWO_ENDS_H
#define GPULOAD_TESTS_RDMA_TWO_ENDS_H

#include "rdma/rdma.h"

struct two_ends {
	gpul_rdma *r[2]; /* the accepting side, the connecting side */
	gpul_rdma_listener *listener;
	gpul_rdma_conn *conn[2];
};

/* Return the backend that a test uses: $GPULOAD_TEST_BACKEND ("verbs" in the virtual machine of the tests), or libfabric. */
const char *two_ends_backend(void);

/* Open both sides with the same description and connect them; fails the test on an error. */
void two_ends_open(const gpul_rdma_desc *desc, struct two_ends *out);
void two_ends_close(struct two_ends *ends);

/* Open one more connection between the same devices. */
void two_ends_connect(struct two_ends *ends, gpul_rdma_conn *conn[2]);

/* Make progress on both ends until the request of one end has ended; returns its status. */
gpul_status two_ends_wait(gpul_rdma_conn *const conn[2], int end, gpul_rdma_request request, uint64_t *bytes, gpul_error *err);

#endif
