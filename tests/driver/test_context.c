/* test_context.c — gpul_context and gpul_cu_status against a driver that fails on request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/context.h"
#include "tests/fake/fake_driver.h"

static void undoes_everything_whichever_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) { /* fail the 1st driver call, then the 2nd, ... */
		gpul_context c = { 0 };
		gpul_error err = { 0 };

		if (gpul_context_open(fake_driver(n), 0, &c, &err) == GPUL_OK) {
			assert_int_equal(n, fake_calls() + 1); /* each driver call has failed in one iteration */
			gpul_context_close(&c);
			assert_int_equal(fake_alive(), 0);
			return;
		}
		assert_null(c.handle);
		assert_int_equal(err.status, GPUL_ECUDA);
		assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
		assert_int_equal(fake_alive(), 0);
	}
}

static void a_context_is_current_only_while_it_is_open(void **state)
{
	const gpul_driver *drv = fake_driver(0);
	gpul_context c = { 0 };
	CUcontext current = NULL;

	(void)state;
	assert_int_equal(gpul_context_open(drv, 0, &c, NULL), GPUL_OK);
	drv->cuCtxGetCurrent(&current);
	assert_ptr_equal(current, c.handle);
	assert_int_equal(fake_alive_of(FAKE_CONTEXT), 1);
	gpul_context_close(&c);
	drv->cuCtxGetCurrent(&current);
	assert_null(current);
	gpul_context_close(&c); /* closing twice is allowed, because the first call has zeroed the context */
	assert_int_equal(fake_alive(), 0);
}

static void reports_the_number_of_devices(void **state)
{
	gpul_context c = { 0 };

	(void)state;
	for (int ordinal = -1; ordinal <= 1; ordinal += 2) {
		gpul_error err = { 0 };

		assert_int_equal(gpul_context_open(fake_driver(0), ordinal, &c, &err), GPUL_EINVAL);
		assert_non_null(strstr(err.text, "the fake driver has 1"));
		assert_int_equal(fake_alive(), 0);
	}
}

static void reports_the_call_the_error_and_advice(void **state)
{
	const gpul_driver *drv = fake_driver_failing(1, CUDA_ERROR_NO_BINARY_FOR_GPU);
	gpul_error err = { 0 };
	CUdeviceptr p;

	(void)state;
	assert_int_equal(gpul_cu(drv, &err, cuMemAlloc(&p, 8)), GPUL_ECUDA);
	assert_int_equal(err.native, CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_non_null(strstr(err.text, "cuMemAlloc: CUDA_ERROR_NO_BINARY_FOR_GPU (209)"));
	assert_non_null(strstr(err.text, "include PTX"));
}

static void accepts_an_error_without_a_name(void **state)
{
	const gpul_driver *drv = fake_driver_failing(1, (CUresult)12345);
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_cu(drv, &err, cuCtxSynchronize()), GPUL_ECUDA);
	assert_non_null(strstr(err.text, "12345"));
}

static const char *fault_text(void)
{
	return "kernel k, line 7";
}

static void uses_the_fault_text_of_the_driver_instead_of_advice(void **state)
{
	gpul_driver drv = *fake_driver_failing(1, CUDA_ERROR_ILLEGAL_ADDRESS);
	gpul_error err = { 0 };

	(void)state;
	drv.last_fault = fault_text;
	assert_int_equal(gpul_cu(&drv, &err, cuCtxSynchronize()), GPUL_ECUDA);
	assert_string_equal(err.text, "kernel k, line 7: CUDA_ERROR_ILLEGAL_ADDRESS (700)");

	drv = *fake_driver_failing(1, CUDA_ERROR_OUT_OF_MEMORY);
	drv.last_fault = fault_text;
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_cu(&drv, &err, cuCtxSynchronize()), GPUL_ECUDA);
	assert_null(strstr(err.text, "line 7")); /* the text of the last fault is not that of this error */
}

static void every_advice_fits_into_the_error_text(void **state)
{
	(void)state;
	for (int r = 1; r < 1000; r++)
		assert_true(strlen(gpul_cu_advice((CUresult)r)) < 96);
	assert_string_equal(gpul_cu_advice(CUDA_SUCCESS), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undoes_everything_whichever_call_fails),
		cmocka_unit_test(a_context_is_current_only_while_it_is_open),
		cmocka_unit_test(reports_the_number_of_devices),
		cmocka_unit_test(reports_the_call_the_error_and_advice),
		cmocka_unit_test(uses_the_fault_text_of_the_driver_instead_of_advice),
		cmocka_unit_test(every_advice_fits_into_the_error_text),
		cmocka_unit_test(accepts_an_error_without_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
