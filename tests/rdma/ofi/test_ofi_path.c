/* test_ofi_path.c — operations, completions and errors of a path, over the fake libfabric. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rdma/ofi/ends.h"
#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "core/log.h"

#if GPUL_HAVE_LIBFABRIC

#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <unistd.h>

static struct ofi_end a, b;

static int open_pair(void **state)
{
	(void)state;
	gpul_ofi_use(fake_ofi(0));
	ofi_ends_open(&a, &b, NULL, 2);
	return 0;
}

static int close_pair(void **state)
{
	(void)state;
	ofi_end_close(&a);
	ofi_end_close(&b);
	assert_int_equal(fake_ofi_alive(), 0);
	return 0;
}

/* Post one operation, and try again as often as the fabric refuses it for the moment. */
static void post_one(const gpul_rdma_op *op)
{
	while (!ofi_post(&a, op, 1))
		;
}

static gpul_rdma_failure failure_of(struct ofi_end *e)
{
	gpul_rdma_failure why = { 0 };
	gpul_rdma_event events[8];

	for (const uint64_t end = gpul_clock_ns() + 10000000000; gpul_clock_ns() < end;) {
		unsigned n;

		if (gpul_rdma_libfabric.poll(e->path, events, 8, &n, &why))
			return why;
	}
	fail_msg("the path has not failed");
	return why;
}

static void writes_arrive_with_their_immediate(void **state)
{
	gpul_rdma_event events[8];
	gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 100, 7, 0x123456789abcu);

	(void)state;
	memcpy(a.memory + 100, "letters", 7);
	op.imm = 0xdeadbeef;
	post_one(&op);
	assert_int_equal(fake_ofi_writes(), 1);
	assert_int_equal(ofi_poll(&a, events, 8), 1);
	assert_int_equal(events[0].kind, GPUL_RDMA_EVENT_DONE);
	assert_int_equal(events[0].id, 0x123456789abcu);
	assert_int_equal(ofi_poll(&b, events, 8), 1);
	assert_int_equal(events[0].kind, GPUL_RDMA_EVENT_ARRIVED);
	assert_int_equal(events[0].imm, 0xdeadbeef);
	assert_memory_equal(b.memory + 100, "letters", 7);
	assert_int_equal(b.memory[107], 0);
	op.kind = GPUL_RDMA_OP_WRITE; /* causes no event at the target */
	op.flags = GPUL_RDMA_INLINE;  /* without SIGNALED, no event at the sender either */
	post_one(&op);
	assert_int_equal(ofi_poll(&a, events, 8), 0);
	assert_int_equal(ofi_poll(&b, events, 8), 0);
	op.kind = GPUL_RDMA_OP_WRITE_IMM;
	op.flags = 0;
	op.bytes = 0;
	post_one(&op);
	assert_int_equal(ofi_poll(&b, events, 8), 1);
}

/* There are more immediates than a ring of rdma/ofi/words.c has words.  Each must arrive once, even 0 and values with 16 bits of 0. */
static void immediates_arrive_in_order(void **state)
{
	static const uint32_t special[] = { 0, UINT32_MAX, 0xffff0000, 0xffff };
	gpul_rdma_event events[8];

	(void)state;
	for (uint32_t i = 0; i < 1500; i++) {
		gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, i % 3, i);

		op.imm = i < 4 ? special[i] : i;
		post_one(&op);
		assert_int_equal(ofi_poll(&a, events, 8), 1);
		assert_int_equal(ofi_poll(&b, events, 8), 1);
		assert_int_equal(events[0].kind, GPUL_RDMA_EVENT_ARRIVED);
		assert_int_equal(events[0].imm, op.imm);
	}
	assert_int_equal(ofi_poll(&b, events, 8), 0);
}

static void receives_need_no_post(void **state)
{
	gpul_rdma_op ops[3] = {
		{ .kind = GPUL_RDMA_OP_RECV, .bytes = 32 },
		ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1),
		{ .kind = GPUL_RDMA_OP_RECV, .bytes = 1 },
	};

	(void)state;
	fake_ofi_behave()->connect_posts = 0;
	assert_int_equal(ofi_post(&a, ops, 3), 1); /* only one is accepted, because the first write must connect */
	assert_int_equal(ofi_post(&a, ops + 1, 2), 2);
	assert_int_equal(fake_ofi_writes(), 1);
}

/* Whichever post the fabric refuses, and however few writes it has room for, each write takes effect once and in order. */
static void a_refused_post_loses_and_reorders_nothing(void **state)
{
	enum { N = 40 };

	(void)state;
	for (int refused = 0; refused <= 2 * N; refused++) {
		unsigned done = 0, arrived = 0, posted = 0;
		gpul_rdma_op ops[N];

		fake_ofi_behave()->room = 1 + (unsigned)refused % 7;
		fake_ofi_refuse(refused);
		for (unsigned i = 0; i < N; i++) {
			ops[i] = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, i, 1, i);
			ops[i].imm = i;
			a.memory[i] = (unsigned char)(i + (unsigned)refused);
		}
		for (unsigned turns = 0; arrived < N || done < N; turns++) {
			gpul_rdma_event events[5];
			unsigned n;

			posted += ofi_post(&a, ops + posted, N - posted);
			n = ofi_poll(&a, events, 5);
			for (unsigned i = 0; i < n; i++)
				assert_int_equal(events[i].id, done++);
			n = ofi_poll(&b, events, 5);
			for (unsigned i = 0; i < n; i++)
				assert_int_equal(events[i].imm, arrived++);
			assert_true(turns < 1000);
		}
		assert_memory_equal(b.memory, a.memory, N);
	}
	fake_ofi_refuse(0);
}

static void each_queue_pair_is_an_endpoint_of_its_own(void **state)
{
	gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);

	(void)state;
	assert_int_equal(ofi_post(&a, &op, 1), 0); /* refused, because each endpoint connects at its first write */
	assert_int_equal(ofi_post(&a, &op, 1), 1);
	op.qp = 1;
	assert_int_equal(ofi_post(&a, &op, 1), 0);
	assert_int_equal(ofi_post(&a, &op, 1), 1);
}

static void a_wrong_key_is_reported_where_delivery_is_asked_for(void **state)
{
	gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	gpul_rdma_event events[8];
	gpul_rdma_failure why;

	(void)state;
	op.remote_key += 1000;
	op.flags |= GPUL_RDMA_DELIVERED;
	post_one(&op);
	assert_int_equal(ofi_poll(&a, events, 8), 0);
	assert_int_equal(ofi_poll(&b, events, 8), 0);
	why = failure_of(&a);
	assert_int_equal(why.status, GPUL_ESYS);
	assert_int_equal(why.native, FI_ECANCELED);
	assert_int_equal(why.vendor, FI_ENOENT);
	assert_string_equal(why.call, "completion");
	assert_non_null(strstr(why.what, "rejected the memory key or the range"));
	assert_non_null(strstr(why.advice, "send the peer's memory handle again"));
}

static void a_write_beyond_the_range_is_refused(void **state)
{
	gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	gpul_rdma_event events[8];

	(void)state;
	op.remote += OFI_END_BYTES - 4;
	op.flags |= GPUL_RDMA_DELIVERED;
	post_one(&op);
	(void)ofi_poll(&b, events, 8);
	assert_int_equal(failure_of(&a).vendor, FI_ENOENT);
}

static void a_peer_that_is_gone_is_reported(void **state)
{
	gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	gpul_rdma_failure why;

	(void)state;
	op.flags |= GPUL_RDMA_DELIVERED;
	post_one(&op);
	ofi_end_close(&b);
	why = failure_of(&a);
	assert_int_equal(why.native, FI_ECANCELED);
	assert_int_equal(why.vendor, FI_ENOTCONN);
	assert_non_null(strstr(why.what, "connection to the peer has ended"));
	assert_non_null(strstr(why.advice, "process has ended"));
}

/* Let the k-th completion be an error: the events before it must be reported before the failure. */
static void every_completion_can_be_an_error(void **state)
{
	static const struct {
		int error, provider_error;
		const char *what, *advice;
	} errors[] = {
		{ FI_EIO, 0, "Input/output error", "peer's process is running" },
		{ FI_ECANCELED, FI_ENOTCONN, "has ended", "peer's process has ended" },
		{ FI_ECANCELED, FI_ENOENT, "rejected the memory key", "send the peer's memory handle again" },
		{ FI_ECANCELED, 0, "Operation canceled", "peer's process is running" },
		{ FI_EACCES, 13, "Permission denied", "key or the range" },
		{ FI_EHOSTUNREACH, 113, "No route to host", "firewall" },
		{ FI_ENOTCONN, 107, "not connected", "process has ended" },
		{ FI_ENOMEM, 12, "allocate memory", "depth" },
	};

	(void)state;
	for (unsigned e = 0; e < sizeof errors / sizeof *errors; e++)
		for (int k = 1; k <= 5; k++) {
			gpul_rdma_failure why;
			unsigned n = 0;

			fake_ofi_complete(k, errors[e].error, errors[e].provider_error);
			for (unsigned i = 0; i < 5; i++) {
				const gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, i);

				post_one(&op);
			}
			for (gpul_rdma_event events[1]; n < (unsigned)k - 1; n++) {
				assert_int_equal(ofi_poll(&a, events, 1), 1);
				assert_int_equal(events[0].id, n);
			}
			why = failure_of(&a);
			assert_int_equal(why.status, GPUL_ESYS);
			assert_int_equal(why.native, errors[e].error);
			assert_int_equal(why.vendor, errors[e].provider_error);
			assert_non_null(strstr(why.what, errors[e].what));
			assert_non_null(strstr(why.advice, errors[e].advice));
			close_pair(NULL);
			open_pair(NULL);
		}
}

/* The error number is that of a refused key, but it comes after a long time without acknowledgements; a real refusal comes sooner. */
static void a_lost_connection_is_not_taken_for_a_refused_key(void **state)
{
	gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	gpul_rdma_event events[1];
	gpul_rdma_failure why;

	(void)state;
	fake_ofi_complete(2, FI_ECANCELED, FI_ENOENT);
	post_one(&op);
	while (!ofi_poll(&a, events, 1))
		;
	post_one(&op);
	(void)usleep(2100 * 1000);
	why = failure_of(&a);
	assert_int_equal(why.native, FI_ECANCELED);
	assert_non_null(strstr(why.what, "the network has lost the connection, or the peer has rejected the memory key"));
	assert_non_null(strstr(why.advice, "check the network between the machines"));
}

static void failing_calls_give_a_record(void **state)
{
	gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	gpul_rdma_event events[8];
	gpul_rdma_failure why = { 0 };
	unsigned n = 99;

	(void)state;
	fake_ofi_fail(1, FI_EINVAL);
	assert_int_equal(gpul_rdma_libfabric.post(a.path, &op, 1, &n, &why), GPUL_ESYS);
	assert_int_equal(n, 99);
	assert_string_equal(why.call, "fi_writemsg");
	assert_int_equal(why.native, FI_EINVAL);
	why = (gpul_rdma_failure){ 0 };
	fake_ofi_fail_read(1, FI_EIO);
	assert_int_equal(gpul_rdma_libfabric.poll(a.path, events, 8, &n, &why), GPUL_ESYS);
	assert_string_equal(why.call, "fi_cq_read");
	assert_true(why.advice[0]);
	fake_ofi_fail_read(1, FI_EAVAIL); /* another thread has read the error */
	assert_int_equal(gpul_rdma_libfabric.poll(a.path, events, 8, &n, &why), GPUL_OK);
	assert_int_equal(n, 0);
}

static void needs_the_local_key_where_the_provider_does(void **state)
{
	gpul_rdma_event events[8];
	gpul_rdma_op op;

	(void)state;
	close_pair(NULL);
	fake_ofi(0)->fi_version();
	for (unsigned i = 0; i < 4; i++)
		fake_ofi_behave()->entries[i].mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	ofi_ends_open(&a, &b, NULL, 1);
	assert_int_equal(a.piece.remote, a.piece.at); /* remote addresses are virtual addresses */
	assert_int_not_equal(a.piece.local_key, 0);
	a.memory[5] = 9;
	op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	post_one(&op);
	assert_int_equal(ofi_poll(&b, events, 8), 0);
	assert_int_equal(b.memory[5], 9);
}

/* Return the address of a port of this machine on which no process listens. */
static struct sockaddr_in closed_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	close(fd);
	return at;
}

static void a_data_port_that_is_blocked_is_reported(void **state)
{
	unsigned char description[GPUL_RDMA_MAX_DESCRIPTION], own[GPUL_RDMA_MAX_DESCRIPTION];
	const size_t n_bytes = gpul_rdma_libfabric.describe(b.path, description);
	const struct sockaddr_in at = closed_port();
	const gpul_rdma_op op = ofi_write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	const uint64_t begin = gpul_clock_ns();
	gpul_rdma_failure why = { 0 };
	gpul_error err = { 0 };
	unsigned n;

	(void)state;
	memcpy(description + 24, &at, sizeof at);
	memcpy(description + 24 + sizeof at, &at, sizeof at);
	ofi_end_close(&a);
	assert_int_equal(ofi_end_open(&a, &(gpul_rdma_device_desc){ .gpu = -1 }, 2, &err), GPUL_OK);
	assert_int_equal(gpul_rdma_libfabric.describe(a.path, own), n_bytes);
	assert_int_equal(gpul_rdma_libfabric.connect_path(a.path, description, n_bytes, &err), GPUL_OK);
	while (!gpul_rdma_libfabric.post(a.path, &op, 1, &n, &why)) {
		assert_int_equal(n, 0);
		if (gpul_clock_ns() - begin > 20000000000)
			fail_msg("no failure");
		usleep(1000);
	}
	assert_string_equal(why.call, "connect");
	assert_int_equal(why.native, ECONNREFUSED);
	assert_non_null(strstr(why.what, "127.0.0.1:"));
	assert_non_null(strstr(why.advice, "firewall"));
}

int main(void)
{
#define PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
		PAIR(writes_arrive_with_their_immediate),
		PAIR(immediates_arrive_in_order),
		PAIR(receives_need_no_post),
		PAIR(a_refused_post_loses_and_reorders_nothing),
		PAIR(each_queue_pair_is_an_endpoint_of_its_own),
		PAIR(a_wrong_key_is_reported_where_delivery_is_asked_for),
		PAIR(a_write_beyond_the_range_is_refused),
		PAIR(a_peer_that_is_gone_is_reported),
		PAIR(every_completion_can_be_an_error),
		PAIR(a_lost_connection_is_not_taken_for_a_refused_key),
		PAIR(failing_calls_give_a_record),
		PAIR(needs_the_local_key_where_the_provider_does),
		PAIR(a_data_port_that_is_blocked_is_reported),
	};

	gpul_log_set_level(GPUL_LOG_OFF);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	printf("skipped: built without libfabric\n");
	return 77;
}

#endif
