/* test_devices_arg.c — parsing and opening --driver and --devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/lib/options/devices_arg.h"

static void keeps_the_order_of_the_device_list(void **state)
{
	struct devices_arg d;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(devices_arg_parse("soft", "3,0,12", &d, &err), GPUL_OK);
	assert_int_equal(d.choice, GPUL_DRIVER_SOFT);
	assert_int_equal(d.n, 3);
	assert_int_equal(d.ordinal[0], 3);
	assert_int_equal(d.ordinal[1], 0);
	assert_int_equal(d.ordinal[2], 12);
	assert_null(d.drv);
	assert_int_equal(devices_arg_parse(NULL, NULL, &d, &err), GPUL_OK);
	assert_int_equal(d.choice, GPUL_DRIVER_AUTO);
	assert_int_equal(d.n, 1);
	assert_int_equal(d.ordinal[0], 0);
}

static void refuses_invalid_device_lists(void **state)
{
	static const struct {
		const char *driver, *devices, *why;
	} rows[] = {
		{ NULL, "", "not ''" },
		{ NULL, "0,", "not '0,'" },
		{ NULL, ",0", "not ',0'" },
		{ NULL, "0 1", "not '0 1'" },
		{ NULL, "-1", "not '-1'" },
		{ NULL, "gpu0", "not 'gpu0'" },
		{ NULL, "99999999999999999999", "not '9999" },
		{ NULL, "2,1,2", "device 2 twice" },
		{ NULL, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "more than 16" },
		{ "amd", "0", "not 'amd'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct devices_arg d;
		gpul_error err = { 0 };

		assert_int_equal(devices_arg_parse(rows[i].driver, rows[i].devices, &d, &err), GPUL_EINVAL);
		assert_non_null(strstr(err.text, rows[i].why));
		assert_int_equal(d.n, 0);
	}
}

static void context_of_the_first_device_is_current(void **state)
{
	struct devices_arg d;
	gpul_error err = { 0 };
	CUcontext current = NULL;

	(void)state;
	assert_int_equal(devices_arg_parse("soft", "0", &d, &err), GPUL_OK);
	assert_int_equal(devices_arg_open(&d, &err), GPUL_OK);
	assert_int_equal(d.drv->cuCtxGetCurrent(&current), CUDA_SUCCESS);
	assert_non_null(current);
	assert_ptr_equal(current, d.context[0].handle);
	devices_arg_close(&d);
	devices_arg_close(&d);
}

static void unknown_device_leaves_nothing_open(void **state)
{
	struct devices_arg d;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(devices_arg_parse("soft", "0,15", &d, &err), GPUL_OK);
	assert_int_equal(devices_arg_open(&d, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "device 15 does not exist"));
	for (unsigned i = 0; i < GPUL_MEM_MAX_DEVICES; i++)
		assert_null(d.context[i].handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_order_of_the_device_list),
		cmocka_unit_test(refuses_invalid_device_lists),
		cmocka_unit_test(context_of_the_first_device_is_current),
		cmocka_unit_test(unknown_device_leaves_nothing_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
