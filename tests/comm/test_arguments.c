/* test_arguments.c — arguments that collectives, posted calls, sends, receives and groups refuse, and the messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "comm/layout.h"
#include "comm/persistent.h"
#include "comm/trace.h"
#include "tests/comm/ranks.h"

enum { N_RANKS = 2, BAD_TYPE = 17, BAD_OP = 9 };

/* A call with wrong arguments, and a part of its message.  The addresses may be invalid, because no kernel is launched. */
struct refused {
	gpul_comm_posting call;
	const char *text;
};

/* clang-format off */
static const struct refused wrong_calls[] = {
	{ { GPUL_COMM_ALLREDUCE, 0x1000, 0x2000, 8, (gpul_comm_dtype)BAD_TYPE, GPUL_COMM_SUM, 0 }, "17 is unknown: expected a value of gpul_comm_dtype" },
	{ { GPUL_COMM_REDUCESCATTER, 0x1000, 0x2000, 8, GPUL_COMM_F32, (gpul_comm_op)BAD_OP, 0 }, "reduction operation 9 is unknown" },
	{ { GPUL_COMM_ALLREDUCE, 0, 0x2000, 8, GPUL_COMM_F32, GPUL_COMM_SUM, 0 }, "the send buffer is NULL, but has 32 bytes" },
	{ { GPUL_COMM_ALLGATHER, 0x1000, 0, 8, GPUL_COMM_F32, GPUL_COMM_SUM, 0 }, "the recv buffer is NULL, but has 64 bytes" },
	{ { GPUL_COMM_ALLREDUCE, 0x1002, 0x2000, 8, GPUL_COMM_F32, GPUL_COMM_SUM, 0 }, "0x1002 is not aligned to 4 bytes" },
	{ { GPUL_COMM_BROADCAST, 0x1000, 0x2004, 8, GPUL_COMM_F64, GPUL_COMM_SUM, 0 }, "0x2004 is not aligned to 8 bytes" },
	{ { GPUL_COMM_ALLREDUCE, 0x1000, 0x101c, 8, GPUL_COMM_F32, GPUL_COMM_SUM, 0 }, "(0x1000, 32 bytes) and the recv buffer (0x101c, 32 bytes) overlap" },
	{ { GPUL_COMM_REDUCESCATTER, 0x1000, 0x1010, 8, GPUL_COMM_F32, GPUL_COMM_SUM, 0 }, "overlap; for an in-place call, send must point to" },
	{ { GPUL_COMM_ALLGATHER, 0x1010, 0x1000, 8, GPUL_COMM_F32, GPUL_COMM_SUM, 0 }, "overlap; for an in-place call, send must point to" },
	{ { GPUL_COMM_ALLTOALL, 0x1000, 0x1000, 8, GPUL_COMM_F32, GPUL_COMM_SUM, 0 }, "overlap" },
	{ { GPUL_COMM_BROADCAST, 0x1000, 0x2000, 8, GPUL_COMM_F32, GPUL_COMM_SUM, 2 }, "root 2 does not exist: the communicator has ranks 0 to 1" },
	{ { GPUL_COMM_BROADCAST, 0x1000, 0x2000, 8, GPUL_COMM_F32, GPUL_COMM_SUM, -1 }, "root -1 does not exist" },
	{ { GPUL_COMM_ALLREDUCE, 0x1000, 0x2000, SIZE_MAX / 8, GPUL_COMM_F32, GPUL_COMM_SUM, 0 }, "for 2 ranks exceed the address space" },
	{ { GPUL_COMM_ALLREDUCE, 0x1000, ~(CUdeviceptr)0xff, 1024, GPUL_COMM_U8, GPUL_COMM_SUM, 0 }, "with 1024 bytes ends beyond the address space" },
};
/* clang-format on */
enum { N_WRONG = sizeof wrong_calls / sizeof *wrong_calls };

static gpul_status make_call(struct rank *r, const gpul_comm_posting *p, gpul_error *err)
{
	switch (p->call) {
	case GPUL_COMM_ALLREDUCE:
		return gpul_comm_allreduce(r->comm, p->send, p->recv, p->count, p->dtype, p->op, r->stream, err);
	case GPUL_COMM_REDUCESCATTER:
		return gpul_comm_reducescatter(r->comm, p->send, p->recv, p->count, p->dtype, p->op, r->stream, err);
	case GPUL_COMM_ALLGATHER:
		return gpul_comm_allgather(r->comm, p->send, p->recv, p->count, p->dtype, r->stream, err);
	case GPUL_COMM_BROADCAST:
		return gpul_comm_broadcast(r->comm, p->send, p->recv, p->count, p->dtype, p->root, r->stream, err);
	default:
		return gpul_comm_alltoall(r->comm, p->send, p->recv, p->count, p->dtype, r->stream, err);
	}
}

static void expect_refusal(gpul_status st, const gpul_error *err, const char *text)
{
	if (st == GPUL_EINVAL && strstr(err->text, text))
		return;
	(void)fprintf(stderr, "expected '%s', got status %d: %s\n", text, st, err->text);
	abort();
}

/* Check that the communicator still works after all refused calls. */
static void sum_ones(struct rank *r)
{
	const uint8_t one = 1;
	uint8_t sum = 0;
	CUdeviceptr at;
	gpul_error err = { 0 };

	must(gpul_cu(r->drv, &err, cuMemAlloc(&at, 1)), &err, "cuMemAlloc");
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(at, &one, 1)), &err, "cuMemcpyHtoD");
	must(gpul_comm_allreduce(r->comm, at, at, 1, GPUL_COMM_U8, GPUL_COMM_SUM, r->stream, &err), &err, "gpul_comm_allreduce");
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(&sum, at, 1)), &err, "cuMemcpyDtoH");
	must(gpul_cu(r->drv, &err, cuMemFree(at)), &err, "cuMemFree");
	assert_int_equal(sum, r->n_ranks);
}

static void refuse_calls(struct rank *r, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < N_WRONG; i++) {
		gpul_error err = { 0 };
		const gpul_status st = make_call(r, &wrong_calls[i].call, &err);

		expect_refusal(st, &err, wrong_calls[i].text);
	}
	must(gpul_comm_allreduce(r->comm, 0, 0, 0, GPUL_COMM_F32, GPUL_COMM_SUM, r->stream, NULL), &(gpul_error){ 0 }, "0 elements");
	sum_ones(r);
}

static void collectives_refuse_wrong_arguments(void **state)
{
	(void)state;
	run_ranks(N_RANKS, NULL, refuse_calls, NULL);
}

static void refuse_postings(struct rank *r, void *arg)
{
	gpul_comm_persistent *p;
	gpul_error err = { 0 };

	(void)arg;
	must(gpul_comm_persistent_start(r->comm, 1, &p, &err), &err, "gpul_comm_persistent_start");
	for (size_t i = 0; i < N_WRONG; i++) {
		uint64_t ticket;

		if (wrong_calls[i].call.call == GPUL_COMM_ALLTOALL)
			continue;
		err = (gpul_error){ 0 };
		expect_refusal(gpul_comm_persistent_post(p, &wrong_calls[i].call, &ticket, &err), &err, wrong_calls[i].text);
	}
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_trace_start(r->comm, 100, &err), &err, "stop that kernel before you start or stop a trace");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_trace_stop(r->comm, &err), &err, "stop that kernel before you start or stop a trace");
	err = (gpul_error){ 0 };
	must(gpul_comm_persistent_stop(p, &err), &err, "gpul_comm_persistent_stop");
	sum_ones(r);
}

static void persistent_kernels_refuse_the_same(void **state)
{
	(void)state;
	run_ranks(N_RANKS, NULL, refuse_postings, NULL);
}

static void refuse_transfers(struct rank *r, void *arg)
{
	gpul_error err = { 0 };

	(void)arg;
	expect_refusal(gpul_comm_send(r->comm, 0x1000, 1, GPUL_COMM_F32, 2, r->stream, &err), &err, "rank 2 does not exist");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_recv(r->comm, 0x1000, 1, GPUL_COMM_F32, -1, r->stream, &err), &err, "rank -1 does not exist");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_send(r->comm, 0, 1, GPUL_COMM_F32, 1, r->stream, &err), &err, "the send buffer is NULL");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_recv(r->comm, 0x1002, 1, GPUL_COMM_F32, 0, r->stream, &err), &err,
		       "the recv buffer at 0x1002 is not aligned");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_send(r->comm, 0x1000, SIZE_MAX, GPUL_COMM_F64, 1, r->stream, &err), &err,
		       "are more than the address space");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_send(r->comm, ~(CUdeviceptr)0xff, 1024, GPUL_COMM_U8, 1, r->stream, &err), &err,
		       "ends beyond the address space");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_send(r->comm, 0x1000, 1, GPUL_COMM_U8, r->rank, r->stream, &err), &err, "the group does not receive them");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_group_end(r->comm, &err), &err, "gpul_comm_group_end() was called without gpul_comm_group_begin()");
	must(gpul_comm_group_begin(r->comm, &err), &err, "gpul_comm_group_begin");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_group_begin(r->comm, &err), &err, "groups cannot be nested");
	err = (gpul_error){ 0 };
	must(gpul_comm_recv(r->comm, 0x1000, 1, GPUL_COMM_U8, r->rank, r->stream, &err), &err, "gpul_comm_recv");
	expect_refusal(gpul_comm_group_end(r->comm, &err), &err, "the group does not send them");
	err = (gpul_error){ 0 };
	must(gpul_comm_group_begin(r->comm, &err), &err, "gpul_comm_group_begin");
	must(gpul_comm_send(r->comm, 0x1000, 4, GPUL_COMM_U8, r->rank, r->stream, &err), &err, "gpul_comm_send");
	expect_refusal(gpul_comm_recv(r->comm, 0x2000, 8, GPUL_COMM_U8, r->rank, NULL, &err), &err, "different streams");
	err = (gpul_error){ 0 };
	must(gpul_comm_recv(r->comm, 0x2000, 8, GPUL_COMM_U8, r->rank, r->stream, &err), &err, "gpul_comm_recv");
	expect_refusal(gpul_comm_group_end(r->comm, &err), &err, "sends 4 bytes to itself, but receives 8");
	sum_ones(r);
}

static void sends_and_receives_refuse_wrong_arguments(void **state)
{
	(void)state;
	run_ranks(N_RANKS, NULL, refuse_transfers, NULL);
}

static void expect_options(gpul_comm_options o, const char *text)
{
	const gpul_comm_job job = new_job(1);
	const gpul_driver *drv;
	gpul_comm *c = NULL;
	gpul_error err = { 0 };

	o.job = &job;
	must(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err), &err, "gpul_driver_open");
	expect_refusal(gpul_comm_create(drv, &o, &c, &err), &err, text);
	assert_null(c);
}

static void a_communicator_refuses_wrong_options(void **state)
{
	(void)state;
	expect_options((gpul_comm_options){ .device = -2 }, "options.device is -2");
	expect_options((gpul_comm_options){ .transport = (gpul_comm_transport)7 }, "unknown transport 7");
	expect_options((gpul_comm_options){ .algo = (gpul_comm_algo)8 }, "algorithm 8");
	expect_options((gpul_comm_options){ .proto = (gpul_comm_proto)9 }, "protocol 9");
	expect_options((gpul_comm_options){ .n_blocks = GPUL_COMM_MAX_BLOCKS + 1 }, "options.n_blocks is 65: expected at most 64");
	expect_options((gpul_comm_options){ .slot_bytes = 100 }, "options.slot_bytes is 100: expected a multiple of 128");
}

/* With one rank, the result of each posted call is the rank's own data, whatever the size and the kind of memory. */
static void copy_alone(struct rank *r, void *arg)
{
	enum { COUNT = 300001 };
	static uint8_t data[COUNT], copy[COUNT];
	gpul_comm_persistent *p;
	CUdeviceptr send, recv;
	uint64_t ticket;
	gpul_error err = { 0 };

	(void)arg;
	for (size_t i = 0; i < COUNT; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	must(gpul_cu(r->drv, &err, cuMemAlloc(&send, COUNT)), &err, "cuMemAlloc");
	must(gpul_cu(r->drv, &err, cuMemAlloc(&recv, COUNT)), &err, "cuMemAlloc");
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(send, data, COUNT)), &err, "cuMemcpyHtoD");
	must(gpul_comm_persistent_start(r->comm, 2, &p, &err), &err, "gpul_comm_persistent_start");
	for (gpul_comm_call call = GPUL_COMM_ALLREDUCE; call < GPUL_COMM_N_CALLS; call++) {
		const gpul_comm_posting posting = { .call = call, .send = send, .recv = recv, .count = COUNT, .dtype = GPUL_COMM_U8 };

		must(gpul_cu(r->drv, &err, cuMemsetD8Async(recv, 0, COUNT, r->stream)), &err, "cuMemsetD8Async");
		must(gpul_cu(r->drv, &err, cuStreamSynchronize(r->stream)), &err, "cuStreamSynchronize");
		must(gpul_comm_persistent_post(p, &posting, &ticket, &err), &err, "gpul_comm_persistent_post");
		must(gpul_comm_persistent_wait(p, ticket, 20000, &err), &err, "gpul_comm_persistent_wait");
		must(gpul_cu(r->drv, &err, cuMemcpyDtoHAsync(copy, recv, COUNT, r->stream)), &err, "cuMemcpyDtoHAsync");
		must(gpul_cu(r->drv, &err, cuStreamSynchronize(r->stream)), &err, "cuStreamSynchronize");
		assert_memory_equal(copy, data, COUNT);
	}
	must(gpul_comm_persistent_stop(p, &err), &err, "gpul_comm_persistent_stop");
	must(gpul_cu(r->drv, &err, cuMemFree(send)), &err, "cuMemFree");
	must(gpul_cu(r->drv, &err, cuMemFree(recv)), &err, "cuMemFree");
}

static void one_rank_alone_gets_its_own_data(void **state)
{
	(void)state;
	run_ranks(1, &(gpul_comm_options){ .device = -1, .n_blocks = 2, .timeout_ms = 20000 }, copy_alone, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_refuse_wrong_arguments),        cmocka_unit_test(persistent_kernels_refuse_the_same),
		cmocka_unit_test(sends_and_receives_refuse_wrong_arguments), cmocka_unit_test(a_communicator_refuses_wrong_options),
		cmocka_unit_test(one_rank_alone_gets_its_own_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
