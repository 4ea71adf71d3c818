/* test_failing_driver.c — each driver call of a netqueue fails in turn: nothing may leak. */
#include "tests/support/cmocka.h"
#include "lab/netqueue/netqueue.h"
#include "driver/context.h"
#include "tests/fake/fake_memory.h"

static gpul_status use_all(const gpul_driver *drv, gpul_mem_kind kind, gpul_error *err)
{
	const gpul_netqueue_desc desc = { .kind = kind, .shape = { .n_slots = 2, .slot_bytes = 65536, .n_blocks = 1 } };
	gpul_netqueue_result result;
	gpul_context context;
	gpul_netqueue *q = NULL;
	gpul_status st = gpul_context_open(drv, 0, &context, err);

	if (st)
		return st;
	st = gpul_netqueue_create(drv, &desc, &q, err);
	if (st)
		assert_null(q);
	else
		assert_int_equal(gpul_netqueue_about(q)->shape.n_blocks, 1);
	st = st ? st : gpul_netqueue_begin(q, 4096, 100, err); /* kernels of the fake driver end immediately */
	st = st ? st : gpul_netqueue_wait(q, &result, err);
	gpul_netqueue_destroy(q);
	gpul_context_close(&context);
	return st;
}

static void undoes_everything_whichever_call_fails(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE };
	static const CUresult errors[] = { CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED };

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		gpul_error none = { 0 };

		assert_string_equal((use_all(fake_memory_driver(0, CUDA_SUCCESS), kinds[k], &none), none.text), "");
		assert_int_equal(fake_alive(), 0);
		for (unsigned e = 0; e < 2; e++)
			for (int n = 1, calls = n; n <= calls; n++) {
				gpul_error err = { 0 };
				const gpul_status st = use_all(fake_memory_driver(n, errors[e]), kinds[k], &err);

				calls = fake_calls();
				if (fake_alive())
					fail_msg("call %d fails with %d: %d objects are left", n, (int)errors[e], fake_alive());
				if (st && !err.text[0])
					fail_msg("call %d fails with %d: no reason", n, (int)errors[e]);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undoes_everything_whichever_call_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
