/* test_verbs_failure.c — how a path reports errors, over the fake libibverbs. */
#include "tests/rdma/verbs/ends.h"
#include "tests/support/cmocka.h"
#include <errno.h>
#include <string.h>

#include "core/log.h"

static struct end a, b;

static void open_pair(unsigned n_qps)
{
	const gpul_rdma_device_desc desc = plain_desc();

	fake_verbs(0);
	ends_open(&a, &b, &desc, n_qps);
}

static void close_pair(void)
{
	end_close(&a);
	end_close(&b);
	assert_int_equal(fake_verbs_alive(), 0);
}

static void every_status_gives_its_record(void **state)
{
	(void)state;
	for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; status++) {
		gpul_rdma_failure why;
		gpul_rdma_event events[8];
		gpul_rdma_op op;

		open_pair(1);
		op = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
		post_all(&a, &op, 1);
		fake_verbs_complete(1, (enum ibv_wc_status)status, 0x81);
		op.id = 2;
		post_all(&a, &op, 1);
		assert_int_equal(poll_once(&a, events, 8), 1); /* the earlier events are reported before the failure */
		assert_int_equal(events[0].id, 1);
		why = poll_failure(&a);
		assert_int_equal(why.status, GPUL_EVERBS);
		assert_int_equal(why.native, status);
		assert_int_equal(why.vendor, 0x81);
		assert_string_equal(why.call, "completion");
		assert_ptr_equal(strstr(why.what, "IBV_WC_"), why.what);
		assert_int_equal(poll_failure(&a).native, status); /* the failure is reported again */
		close_pair();
	}
}

static void common_errors_come_with_advice(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		const char *advice;
	} common[] = {
		{ IBV_WC_RETRY_EXC_ERR, "peer process" }, { IBV_WC_REM_ACCESS_ERR, "remote key" },
		{ IBV_WC_LOC_PROT_ERR, "local memory" },  { IBV_WC_RNR_RETRY_EXC_ERR, "not posted a receive" },
		{ IBV_WC_WR_FLUSH_ERR, "other side" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
		gpul_rdma_op op;

		open_pair(1);
		fake_verbs_complete(1, common[i].status, 0);
		op = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
		post_all(&a, &op, 1);
		assert_non_null(strstr(poll_failure(&a).advice, common[i].advice));
		close_pair();
	}
}

static void a_flushed_completion_does_not_hide_the_cause(void **state)
{
	gpul_rdma_event events[8];
	gpul_rdma_failure why = { 0 };
	gpul_rdma_op op;
	unsigned n = 99;

	(void)state;
	open_pair(2);
	fake_verbs_complete(1, IBV_WC_WR_FLUSH_ERR, 0);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	post_all(&a, &op, 1);
	assert_int_equal(gpul_rdma_verbs.poll(a.path, events, 8, &n, &why),
			 GPUL_OK); /* a flushed completion is not the cause, so the path waits for another one */
	assert_int_equal(n, 0);
	fake_verbs_complete(1, IBV_WC_RETRY_EXC_ERR, 0);
	op.qp = 1;
	post_all(&a, &op, 1);
	assert_int_equal(gpul_rdma_verbs.poll(a.path, events, 8, &n, &why), GPUL_EVERBS);
	assert_int_equal(why.native, IBV_WC_RETRY_EXC_ERR);
	assert_string_equal(why.what, "IBV_WC_RETRY_EXC_ERR: transport retry counter exceeded on queue pair 1 of 2");
	close_pair();
}

static void a_wrong_key_is_reported_on_both_sides(void **state)
{
	gpul_rdma_failure why = { 0 };
	gpul_rdma_op op;

	(void)state;
	open_pair(1);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	op.remote_key++;
	post_all(&a, &op, 1);
	assert_int_equal(poll_failure(&a).native, IBV_WC_REM_ACCESS_ERR);
	assert_false(gpul_rdma_verbs.async_read(b.device, &why)); /* false, because this event does not concern the whole device */
	why = poll_failure(&b);
	assert_string_equal(why.call, "asynchronous event");
	assert_int_equal(why.native, IBV_EVENT_QP_ACCESS_ERR);
	close_pair();
}

static void without_the_event_a_wrong_key_leaves_flushed_receives(void **state)
{
	gpul_rdma_op op;

	(void)state;
	open_pair(1);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, 8, 1);
	op.remote += END_BYTES - 4; /* ends 4 bytes beyond the registration */
	post_all(&a, &op, 1);
	assert_int_equal(poll_failure(&b).native, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(poll_failure(&a).native, IBV_WC_REM_ACCESS_ERR);
	close_pair();
}

static void wrong_local_memory_and_missing_receives_are_reported(void **state)
{
	gpul_rdma_op op;

	(void)state;
	open_pair(1);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	op.local_key = 1;
	post_all(&a, &op, 1);
	assert_int_equal(poll_failure(&a).native, IBV_WC_LOC_PROT_ERR);
	close_pair();
	open_pair(1);
	for (unsigned i = 0; i <= END_RECVS; i++) {
		op = write_op(&a, &b, GPUL_RDMA_OP_WRITE_IMM, 0, 8, i);
		post_all(&a, &op, 1);
	}
	assert_int_equal(gpul_rdma_verbs.async_fd(a.device) >= 0, 1);
	for (gpul_rdma_event events[32]; poll_once(&a, events, 32);)
		break;
	assert_int_equal(poll_failure(&a).native, IBV_WC_RNR_RETRY_EXC_ERR);
	close_pair();
}

static void a_failed_post_fails_the_path(void **state)
{
	gpul_rdma_failure why = { 0 };
	gpul_rdma_op op;
	unsigned n = 99;

	(void)state;
	open_pair(1);
	op = write_op(&a, &b, GPUL_RDMA_OP_WRITE, 0, 8, 1);
	fake_verbs_fail(1, EINVAL);
	assert_int_equal(gpul_rdma_verbs.post(a.path, &op, 1, &n, &why), GPUL_EVERBS);
	assert_int_equal(n, 99);
	assert_string_equal(why.call, "ibv_post_send");
	assert_int_equal(why.native, EINVAL);
	memset(&why, 0, sizeof why);
	fake_verbs_fail(1, ENOMEM);
	op = (gpul_rdma_op){ .kind = GPUL_RDMA_OP_RECV, .bytes = 1 };
	assert_int_equal(gpul_rdma_verbs.post(a.path, &op, 1, &n, &why), GPUL_EVERBS);
	assert_string_equal(why.call, "ibv_post_recv");
	memset(&why, 0, sizeof why);
	op = (gpul_rdma_op){ .kind = GPUL_RDMA_OP_COPY_IN };
	assert_int_equal(gpul_rdma_verbs.post(a.path, &op, 1, &n, &why), GPUL_EINVAL);
	close_pair();
}

static void only_a_dead_device_ends_all_paths(void **state)
{
	gpul_rdma_failure why = { 0 };
	gpul_rdma_event events[8];

	(void)state;
	open_pair(1);
	fake_verbs_raise(IBV_EVENT_PORT_ERR, 0, 1);
	assert_false(gpul_rdma_verbs.async_read(a.device, &why));
	assert_int_equal(poll_once(&a, events, 8), 0); /* no failure, because the NIC's retries may outlast the port error */
	fake_verbs_raise(IBV_EVENT_PORT_ACTIVE, 0, 1);
	assert_false(gpul_rdma_verbs.async_read(a.device, &why));
	assert_false(gpul_rdma_verbs.async_read(a.device, &why)); /* no event is pending, and the call does not wait for one */
	assert_int_equal(why.status, GPUL_OK);
	fake_verbs_raise(IBV_EVENT_DEVICE_FATAL, 0, 0);
	assert_true(gpul_rdma_verbs.async_read(a.device, &why));
	assert_int_equal(why.native, IBV_EVENT_DEVICE_FATAL);
	close_pair();
}

static void a_port_that_stays_down_fails_the_path(void **state)
{
	gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_failure why = { 0 };

	(void)state;
	fake_verbs(0);
	desc.timeout = 4; /* 4.096 us * 2^4 = 65 us */
	desc.retry = 1;
	ends_open(&a, &b, &desc, 1);
	fake_verbs_raise(IBV_EVENT_PORT_ERR, 0, 1);
	assert_false(gpul_rdma_verbs.async_read(a.device, &why));
	why = poll_failure(&a);
	assert_int_equal(why.native, IBV_EVENT_PORT_ERR);
	assert_non_null(strstr(why.what, "fake0 port 1 is down"));
	close_pair();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_gives_its_record),
		cmocka_unit_test(common_errors_come_with_advice),
		cmocka_unit_test(a_flushed_completion_does_not_hide_the_cause),
		cmocka_unit_test(a_wrong_key_is_reported_on_both_sides),
		cmocka_unit_test(without_the_event_a_wrong_key_leaves_flushed_receives),
		cmocka_unit_test(wrong_local_memory_and_missing_receives_are_reported),
		cmocka_unit_test(a_failed_post_fails_the_path),
		cmocka_unit_test(only_a_dead_device_ends_all_paths),
		cmocka_unit_test(a_port_that_stays_down_fails_the_path),
	};

	gpul_log_set_level(GPUL_LOG_OFF);
	gpul_verbs_use(fake_verbs(0));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
