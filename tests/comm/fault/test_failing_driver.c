/* test_failing_driver.c — each driver call of a communicator fails in turn: nothing may leak.  There is one rank, because
 * only one thread may use the fake driver. */
#include <stdio.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/comm.h"
#include "tests/fake/fake_memory.h"
#include "tests/fault/count.h"

static const CUresult errors[] = { CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_LAUNCH_FAILED };

static gpul_status use_all(const gpul_driver *drv, gpul_comm_transport transport, gpul_error *err)
{
	const gpul_comm_job job = { .size = 1, .name = "test-failing-driver", .source = "test" };
	gpul_comm *c = NULL;
	CUdeviceptr at = 0;
	gpul_status st = gpul_comm_create(drv, &(gpul_comm_options){ .job = &job, .device = -1, .transport = transport }, &c, err);

	if (st) {
		assert_null(c);
		return st;
	}
	st = gpul_comm_alloc(c, 5000, &at, err);
	st = st ? st : gpul_comm_wait(c, NULL, err);
	st = st ? st : gpul_comm_free(c, at, err);
	gpul_comm_destroy(c);
	return st;
}

static void undoes_everything_whichever_call_fails(void **state)
{
	struct counts before;
	char text[FAULT_TEXT];

	(void)state;
	assert_int_equal(use_all(fake_memory_driver(0, CUDA_SUCCESS), GPUL_COMM_TRANSPORT_AUTO, NULL), GPUL_OK);
	counts_take(&before);
	for (gpul_comm_transport t = GPUL_COMM_TRANSPORT_AUTO; t < GPUL_COMM_N_TRANSPORTS; t++)
		for (unsigned e = 0; e < sizeof errors / sizeof *errors; e++)
			for (int n = 1, calls = n; n <= calls; n++) {
				gpul_error err = { 0 };
				const gpul_status st = use_all(fake_memory_driver(n, errors[e]), t, &err);

				calls = fake_calls();
				if (fake_alive())
					fail_msg("call %d fails with %d: %d objects are left", n, (int)errors[e], fake_alive());
				if (!counts_same(&before, text))
					fail_msg("call %d fails with %d: %s", n, (int)errors[e], text);
				if (st && !err.text[0])
					fail_msg("call %d fails with %d: no reason", n, (int)errors[e]);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undoes_everything_whichever_call_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
