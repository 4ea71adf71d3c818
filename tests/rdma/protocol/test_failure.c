/* test_failure.c — the first failure is kept, and a failure is one readable line. */
#include <errno.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "rdma/protocol/protocol_failure.h"

static void assert_line(const gpul_rdma_failure *f, const char *line)
{
	gpul_error err = { 0 };

	assert_int_equal(gpul_rdma_failure_error(f, &err), f->status);
	assert_string_equal(err.text, line);
	assert_int_equal(err.native, f->native);
}

static void keeps_the_first_failure_and_errno(void **state)
{
	gpul_rdma_failure f = { 0 };

	(void)state;
	errno = EPIPE;
	assert_int_equal(gpul_rdma_fail(&f, GPUL_EVERBS, 12, "completion", "check the route", "cause %d", 1), GPUL_EVERBS);
	assert_int_equal(gpul_rdma_fail(&f, GPUL_ESYS, 5, "close", NULL, "cause %d", 2), GPUL_EVERBS);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(f.native, 12);
	assert_string_equal(f.call, "completion");
	assert_string_equal(f.what, "cause 1");
	assert_string_equal(f.advice, "check the route");
}

static void cuts_long_texts(void **state)
{
	char text[500];
	gpul_rdma_failure f = { 0 };
	gpul_error err = { 0 };

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	(void)gpul_rdma_fail(&f, GPUL_EVERBS, 1, text, text, "%s", text);
	assert_int_equal(strlen(f.call), sizeof f.call - 1);
	assert_int_equal(strlen(f.what), sizeof f.what - 1);
	assert_int_equal(strlen(f.advice), sizeof f.advice - 1);
	(void)gpul_rdma_failure_error(&f, &err);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void writes_one_line(void **state)
{
	gpul_rdma_failure f = { .status = GPUL_EVERBS,
				.native = 12,
				.vendor = 0x81,
				.after_ns = 7520000000,
				.call = "completion",
				.what = "IBV_WC_RETRY_EXC_ERR: transport retry counter exceeded",
				.peer = "10.9.0.2:18515",
				.advice = "check that the peer runs" };

	(void)state;
	assert_line(&f, "10.9.0.2:18515: completion: IBV_WC_RETRY_EXC_ERR: transport retry counter exceeded (12, vendor 0x81) "
			"after 7.52 s: check that the peer runs");
	f.by_peer = 1;
	f.vendor = 0;
	f.advice[0] = '\0';
	f.after_ns = 12345678;
	assert_line(&f, "10.9.0.2:18515 reports: completion: IBV_WC_RETRY_EXC_ERR: transport retry counter exceeded (12) after 12 ms");
	f = (gpul_rdma_failure){ .status = GPUL_ESYS, .native = EPIPE, .call = "socket", .what = "ended", .after_ns = 85000 };
	assert_line(&f, "socket: ended after 85 us");
	f.by_peer = 1;
	assert_line(&f, "the peer reports: socket: ended after 85 us");
}

static void leaves_an_error_that_is_already_there(void **state)
{
	gpul_rdma_failure f = { 0 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_rdma_failure_error(&f, &err), GPUL_OK);
	assert_int_equal(err.status, GPUL_OK);
	(void)gpul_fail(&err, GPUL_ENOMEM, 0, "first");
	(void)gpul_rdma_fail(&f, GPUL_ESYS, 1, "socket", NULL, "second");
	assert_int_equal(gpul_rdma_failure_error(&f, &err), GPUL_ESYS);
	assert_string_equal(err.text, "first");
	assert_int_equal(gpul_rdma_failure_error(&f, NULL), GPUL_ESYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_first_failure_and_errno),
		cmocka_unit_test(cuts_long_texts),
		cmocka_unit_test(writes_one_line),
		cmocka_unit_test(leaves_an_error_that_is_already_there),
	};

	return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
