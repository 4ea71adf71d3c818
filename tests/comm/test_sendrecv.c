/* test_sendrecv.c — sends and receives between ranks, over both transports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/comm/ranks.h"

struct exchange {
	size_t bytes, offset;
};

static unsigned char value(int rank, size_t i)
{
	return (unsigned char)(i * 7 + i / 251 + (size_t)rank * 101 + 1);
}

/* In one group, send to the next rank and receive from the previous one, with more data than the slots of a channel can hold. */
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

/* On the software driver a slot of LL holds 2 KiB of data: a head of 16 bytes and the message, or a part of the message. */
static void messages_of_a_slot_arrive_in_ll(void **state)
{
	static const struct exchange sizes[] = { { 1, 0 },    { 8, 0 },    { 8, 2 },    { 7, 4 },    { 12, 4 },
						 { 2031, 0 }, { 2032, 0 }, { 2032, 1 }, { 2033, 0 }, { 6000, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct exchange x = sizes[i];

		run_ranks(2, &(gpul_comm_options){ .device = -1, .proto = GPUL_COMM_LL, .n_blocks = 1, .timeout_ms = 20000 }, pass_to_next,
			  &x);
	}
}

enum { N_MESSAGES = 60, LATE_US = 3000 };

/* Send many small messages, each in a call of its own, to a receiver that begins late: the sender must wait for free slots, which it
 * finds by step counters that persist between calls. */
static void send_to_a_late_receiver(struct rank *r, void *arg)
{
	uint64_t data[N_MESSAGES];
	CUdeviceptr buffer;
	gpul_error err = { 0 };

	(void)arg;
	for (uint64_t i = 0; i < N_MESSAGES; i++)
		data[i] = r->rank == 0 ? i * i + 1 : 0;
	must(gpul_cu(r->drv, &err, cuMemAlloc(&buffer, sizeof data)), &err, "cuMemAlloc");
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(buffer, data, sizeof data)), &err, "cuMemcpyHtoD");
	for (uint64_t i = 0; i < N_MESSAGES; i++) {
		if (r->rank == 1 && i % 20 == 0)
			(void)usleep(LATE_US);
		must(r->rank == 0 ? gpul_comm_send(r->comm, buffer + i * 8, 8, GPUL_COMM_U8, 1, r->stream, &err)
				  : gpul_comm_recv(r->comm, buffer + i * 8, 8, GPUL_COMM_U8, 0, r->stream, &err),
		     &err, "gpul_comm_send or gpul_comm_recv");
	}
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(data, buffer, sizeof data)), &err, "cuMemcpyDtoH");
	for (uint64_t i = 0; i < N_MESSAGES; i++)
		assert_int_equal(data[i], i * i + 1);
	must(gpul_cu(r->drv, &err, cuMemFree(buffer)), &err, "cuMemFree");
}

static void small_messages_wait_for_a_late_receiver(void **state)
{
	static const gpul_comm_proto protocols[] = { GPUL_COMM_LL, GPUL_COMM_LL128, GPUL_COMM_SIMPLE };

	(void)state;
	for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
		run_ranks(2, &(gpul_comm_options){ .device = -1, .proto = protocols[i], .n_blocks = 1, .timeout_ms = 20000 },
			  send_to_a_late_receiver, NULL);
}

struct sizes {
	size_t sent, received;
};

/* Rank 0 sends to rank 1, which expects another size and reports it. */
static void receive_another_size(struct rank *r, void *arg)
{
	const struct sizes *s = arg;
	gpul_comm_failure f = { 0 };
	CUdeviceptr buffer;
	char expected[64];
	gpul_error err = { 0 };

	must(gpul_cu(r->drv, &err, cuMemAlloc(&buffer, 8192)), &err, "cuMemAlloc");
	must(r->rank == 0 ? gpul_comm_send(r->comm, buffer, s->sent, GPUL_COMM_U8, 1, r->stream, &err)
			  : gpul_comm_recv(r->comm, buffer, s->received, GPUL_COMM_U8, 0, r->stream, &err),
	     &err, "gpul_comm_send or gpul_comm_recv");
	(void)gpul_comm_wait(r->comm, r->stream, &err); /* the sender's wait may succeed before the receiver reports the mismatch */
	while (!gpul_comm_failed(r->comm, &f))
		(void)usleep(1000);
	(void)snprintf(expected, sizeof expected, "%zu", s->sent);
	if (f.cause != GPUL_COMM_MISMATCH || (r->rank == 1 && !strstr(f.text, expected))) {
		(void)fprintf(stderr, "rank %d: expected a mismatch with %s bytes: %s\n", r->rank, expected, f.text);
		abort();
	}
}

static void a_receiver_in_ll_reports_another_size(void **state)
{
	static const struct sizes sizes[] = { { 16, 8 }, { 8, 16 }, { 2033, 8 }, { 8, 2033 }, { 1000, 2032 }, { 6000, 2032 } };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct sizes s = sizes[i];

		run_ranks(2, &(gpul_comm_options){ .device = -1, .proto = GPUL_COMM_LL, .n_blocks = 1, .timeout_ms = 60000 },
			  receive_another_size, &s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grouped_messages_arrive),
		cmocka_unit_test(messages_of_a_slot_arrive_in_ll),
		cmocka_unit_test(small_messages_wait_for_a_late_receiver),
		cmocka_unit_test(a_receiver_in_ll_reports_another_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
