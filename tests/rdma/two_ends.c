/* two_ends.c — two ends of a connection in one process. */
#include "tests/rdma/two_ends.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/cmocka.h"

struct accepting {
	gpul_rdma_listener *listener;
	gpul_rdma_conn *conn;
	gpul_error err;
};

const char *two_ends_backend(void)
{
	const char *name = getenv("GPULOAD_TEST_BACKEND");

	return name ? name : "libfabric";
}

static void *accept_one(void *context)
{
	struct accepting *a = context;

	(void)gpul_rdma_accept(a->listener, 10000, &a->conn, &a->err);
	return NULL;
}

void two_ends_connect(struct two_ends *ends, gpul_rdma_conn *conn[2])
{
	struct accepting a = { .listener = ends->listener };
	pthread_t thread;
	gpul_error err = { 0 };

	assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
	const gpul_status st = gpul_rdma_connect(ends->r[1], gpul_rdma_listener_address(ends->listener), 10000, &conn[1], &err);

	pthread_join(thread, NULL);
	if (st || !a.conn)
		fail_msg("connect: %s; accept: %s", err.text, a.err.text);
	conn[0] = a.conn;
}

void two_ends_open(const gpul_rdma_desc *desc, struct two_ends *out)
{
	gpul_rdma_desc d = *desc;
	gpul_error err = { 0 };

	if (!d.backend)
		d.backend = two_ends_backend();
	*out = (struct two_ends){ 0 };
	for (int i = 0; i < 2; i++)
		if (gpul_rdma_open(&d, &out->r[i], &err))
			fail_msg("open: %s", err.text);
	if (gpul_rdma_listen(out->r[0], "127.0.0.1:0", &out->listener, &err))
		fail_msg("listen: %s", err.text);
	two_ends_connect(out, out->conn);
}

void two_ends_close(struct two_ends *ends)
{
	for (int i = 0; i < 2; i++)
		gpul_rdma_conn_close(ends->conn[i]);
	gpul_rdma_listener_close(ends->listener);
	for (int i = 0; i < 2; i++)
		gpul_rdma_close(ends->r[i]);
}

gpul_status two_ends_wait(gpul_rdma_conn *const conn[2], int end, gpul_rdma_request request, uint64_t *bytes, gpul_error *err)
{
	bool done = false;
	gpul_status st = GPUL_OK;

	while (!st && !done) {
		(void)gpul_rdma_progress(conn[!end], NULL, NULL);
		st = gpul_rdma_test(conn[end], request, &done, bytes, err);
	}
	return st;
}
