/* test_failing_probe.c — each driver call fails in turn during a probe: the probe reports a verdict, and nothing leaks. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "memalloc/probe/probe_internal.h"
#include "tests/fake/fake_memory.h"
#include "tests/memalloc/support.h"

static const struct {
	gpul_mem_kind kind;
	bool fabric;
} all[] = {
	{ GPUL_MEM_HOST_NUMA, false }, { GPUL_MEM_DEVICE, false }, { GPUL_MEM_DEVICE, true },      { GPUL_MEM_MEMFD, false },
	{ GPUL_MEM_SHM, false },       { GPUL_MEM_PINNED, false }, { GPUL_MEM_DEVICE_IPC, false },
};
enum { N_ALL = sizeof all / sizeof all[0] };

/* No other process can open the fake, so the import is tried in this process.  Returns the number of driver calls. */
static int probe_once(size_t i, int fail_at, CUresult error, gpul_mem_verdict *v)
{
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);
	struct probe_child child = { .drv = drv, .socket = -1 };
	gpul_context context = { 0 };
	int before;

	assert_int_equal(gpul_context_open(drv, 0, &context, NULL), GPUL_OK);
	before = fake_calls();
	fake_fail_next(fail_at, error);
	gpul_probe_try(&child, 0, all[i].kind, all[i].fabric, v);
	before = fake_calls() - before;
	fake_fail_next(0, CUDA_SUCCESS);
	gpul_context_close(&context);
	assert_int_equal(fake_alive(), 0);
	return before;
}

static void a_failing_call_is_reported_and_leaks_nothing(void **state)
{
	static const CUresult errors[] = { CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,   CUDA_ERROR_NOT_SUPPORTED,
					   CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_UNKNOWN };
	size_t fds = count_fds();

	(void)state;
	for (size_t i = 0; i < N_ALL; i++) {
		gpul_mem_verdict v;
		int n = probe_once(i, 0, CUDA_SUCCESS, &v);

		assert_true(v.works);
		for (int at = 1; at <= n; at++)
			for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
				probe_once(i, at, errors[e], &v);
				assert_true(v.works || !v.shares);
				assert_int_equal(v.why[0] == '\0', v.works && v.shares);
			}
	}
	assert_int_equal(count_fds(), fds);
}

static void a_driver_without_open_env_is_probed_in_this_process(void **state)
{
	gpul_mem_verdict v;

	(void)state;
	for (size_t i = 0; i < N_ALL; i++) {
		probe_once(i, 0, CUDA_SUCCESS, &v);
		assert_false(v.tested_another);
		if (all[i].kind == GPUL_MEM_DEVICE_IPC)
			assert_non_null(strstr(v.why, "cannot open its own cuIpc handle"));
		else if (all[i].kind == GPUL_MEM_PINNED)
			assert_non_null(strstr(v.why, "cannot be shared"));
		else if (!v.shares)
			fail_msg("%s: %s", gpul_mem_kind_name(all[i].kind), v.why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failing_call_is_reported_and_leaks_nothing),
		cmocka_unit_test(a_driver_without_open_env_is_probed_in_this_process),
	};

	return cmocka_run_group_tests_name("failing_probe", tests, NULL, NULL);
}
