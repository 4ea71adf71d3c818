/* test_coredump.c — the attributes of core dumps: the driver stores them, although it never writes a core dump. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>

static void attributes_have_the_documented_defaults(void **state)
{
	bool on;
	char text[1024];
	size_t bytes = 0;

	(void)state;
	ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, NULL, &bytes));
	assert_int_equal(bytes, 1024);
	ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, &bytes));
	if (on_software_driver())
		assert_non_null(strstr(text, "core.cuda."));
	bytes = sizeof on;
	ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &bytes));
	assert_false(on);
	ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_TRIGGER_HOST, &on, &bytes));
	assert_true(on);
}

static void a_value_that_was_set_is_returned(void **state)
{
	bool on = true, got = false;
	char text[16] = "";
	size_t bytes = sizeof on;

	(void)state;
	ok(cuCoredumpSetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &on, &bytes));
	ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &got, &bytes));
	assert_true(got);
	bytes = 9;
	ok(cuCoredumpSetAttribute(CU_COREDUMP_PIPE, "my.pipe", &bytes));
	bytes = sizeof text;
	ok(cuCoredumpGetAttribute(CU_COREDUMP_PIPE, text, &bytes));
	assert_string_equal(text, "my.pipe");
}

static void refuses_unknown_attributes_and_sizes(void **state)
{
	char text[2000] = "x";
	size_t bytes = sizeof text;

	(void)state;
	fails(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, text, &bytes), CUDA_ERROR_INVALID_VALUE);
	fails(cuCoredumpGetAttributeGlobal((CUcoredumpSettings)0, text, &bytes), CUDA_ERROR_INVALID_VALUE);
	fails(cuCoredumpGetAttributeGlobal((CUcoredumpSettings)99, text, &bytes), CUDA_ERROR_INVALID_VALUE);
	fails(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, text, NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_context, destroy_context)
		TEST(attributes_have_the_documented_defaults),
		TEST(a_value_that_was_set_is_returned),
		TEST(refuses_unknown_attributes_and_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
