/* test_sendrecv.c — sends and receives between ranks, over both transports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/comm/ranks.h"

struct exchange {
	size_t bytes, offset;
};

static unsigned char value(int rank, size_t i)
{
	return (unsigned char)(i * 7 + i / 251 + (size_t)rank * 101 + 1);
}

/* Send to the next rank and receive from the previous one, in one group; more data than the
 * slots of a channel can hold. */
static void pass_to_next(struct rank *r, void *arg)
{
	const struct exchange *x = arg;
	const int next = (r->rank + 1) % r->n_ranks, before = (r->rank + r->n_ranks - 1) % r->n_ranks;
	unsigned char *data = malloc(x->bytes);
	CUdeviceptr send, recv;
	gpul_error err = { 0 };

	assert_non_null(data);
	for (size_t i = 0; i < x->bytes; i++)
		data[i] = value(r->rank, i);
	must(gpul_cu(r->drv, &err, cuMemAlloc(&send, x->bytes + 16)), &err, "cuMemAlloc");
	must(gpul_cu(r->drv, &err, cuMemAlloc(&recv, x->bytes + 16)), &err, "cuMemAlloc");
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(send + x->offset, data, x->bytes)), &err, "cuMemcpyHtoD");
	for (int round = 0; round < 3; round++) {
		must(gpul_comm_group_begin(r->comm, &err), &err, "gpul_comm_group_begin");
		must(gpul_comm_send(r->comm, send + x->offset, x->bytes, GPUL_COMM_U8, next, r->stream, &err), &err, "gpul_comm_send");
		must(gpul_comm_recv(r->comm, recv + x->offset, x->bytes, GPUL_COMM_U8, before, r->stream, &err), &err, "gpul_comm_recv");
		must(gpul_comm_group_end(r->comm, &err), &err, "gpul_comm_group_end");
		must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	}
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(data, recv + x->offset, x->bytes)), &err, "cuMemcpyDtoH");
	for (size_t i = 0; i < x->bytes; i++)
		if (data[i] != value(before, i)) {
			(void)fprintf(stderr, "rank %d: byte %zu of %zu is wrong\n", r->rank, i, x->bytes);
			abort();
		}
	must(gpul_cu(r->drv, &err, cuMemFree(send)), &err, "cuMemFree");
	must(gpul_cu(r->drv, &err, cuMemFree(recv)), &err, "cuMemFree");
	free(data);
}

static void grouped_messages_arrive(void **state)
{
	static const struct exchange sizes[] = { { 1, 0 }, { 4096, 0 }, { 300001, 0 }, { 300001, 3 }, { 2 << 20, 0 } };

	(void)state;
	for (gpul_comm_transport t = GPUL_COMM_DEVICE; t <= GPUL_COMM_HOST; t++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			for (int n = 2; n <= 3; n++) {
				struct exchange x = sizes[i];

				run_ranks(n, &(gpul_comm_options){ .device = -1, .transport = t, .timeout_ms = 20000 }, pass_to_next, &x);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grouped_messages_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
