/* test_symbol.c — kernels from a driver's handle, and function pointers from variables, with a fake driver that fails on request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/symbol/symbol.h"
#include "tests/fake/fake_driver.h"

/* Variables with names as nvcc (CUDA 13.0) writes them: at file scope, static with -rdc=true, in namespaces. */
static const char tables[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
			     ".func add() { ret; }\n.func mul() { ret; }\n"
			     ".visible .entry k(.param .u64 f) { ret; }\n"
			     ".global .align 8 .u64 table[3] = {add, mul, k};\n"
			     ".global .align 8 .u64 __nv_static_6__st_cu_hidden[2] = {mul, 0};\n"
			     ".global .align 8 .u64 _ZN2ns5innerE[2] = {add, mul};\n"
			     ".global .align 8 .u64 _ZN14_INTERNAL_1_cu2ns1uE = mul;\n"
			     ".const .align 8 .u64 constant = add;\n"
			     ".global .align 4 .f32 scale[4] = {1.0, 2.0, 3.0, 4.0};\n";

static uint64_t memory[3] = { 0x100, 0x200, 0 };

static gpul_module *load_tables(void)
{
	const gpul_driver *drv = fake_driver(0);
	gpul_module *m = NULL;
	gpul_error err = { 0 };

	fake_behave()->global = memory;
	fake_behave()->global_bytes = sizeof memory;
	if (gpul_module_load_ptx(drv, tables, strlen(tables), "t.ptx", NULL, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

static void reads_an_element_of_an_array_of_function_pointers(void **state)
{
	static const char *const names[] = { "table", "hidden", "ns::inner", "_ZN2ns5innerE", "ns::u", "constant" };
	gpul_module *m = load_tables();

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t index = 0; index < 2; index++) {
			gpul_error err = { 0 };
			uint64_t f = 0;

			if (gpul_function_pointer(m, names[i], index, &f, &err))
				fail_msg("%s: %s", names[i], err.text);
			assert_int_equal(f, memory[index]);
		}
	gpul_module_unload(m);
}

static void finds_the_function_that_an_element_is_initialised_with(void **state)
{
	gpul_module *m = load_tables();
	bool is_kernel = true;

	(void)state;
	assert_string_equal(gpul_function_pointer_target(m, "table", 1, &is_kernel), "mul");
	assert_false(is_kernel);
	assert_string_equal(gpul_function_pointer_target(m, "table", 2, &is_kernel), "k");
	assert_true(is_kernel);
	assert_null(gpul_function_pointer_target(m, "table", 3, &is_kernel));
	assert_null(gpul_function_pointer_target(m, "hidden", 1, &is_kernel));
	assert_null(gpul_function_pointer_target(m, "scale", 1, &is_kernel));
	assert_null(gpul_function_pointer_target(m, "nothing", 0, &is_kernel));
	gpul_module_unload(m);
}

static void explains_why_a_function_pointer_cannot_be_read(void **state)
{
	static const struct {
		const char *name;
		size_t index;
		gpul_status st;
		const char *message;
	} rows[] = {
		{ "tabel", 0, GPUL_EINVAL, "no variable 'tabel' in the module: did you mean 'table'?" },
		{ "nothing_like_it", 0, GPUL_EINVAL, "it has: table, hidden, ns::inner, ns::u, constant" },
		{ "table", 3, GPUL_EINVAL, "table[3] is beyond the end of the variable: 24 bytes, 3 function pointers" },
		{ "table", SIZE_MAX / 8 + 1, GPUL_EINVAL, "is beyond the end of the variable" },
		{ "table", 2, GPUL_EFORMAT, "table[2] is 0: it has no function yet" },
		{ "scale", 0, GPUL_EINVAL, "scale has elements of 4 bytes, but function pointers have 8" },
	};
	gpul_module *m = load_tables();

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		gpul_error err = { 0 };
		uint64_t f = 7;

		assert_int_equal(gpul_function_pointer(m, rows[i].name, rows[i].index, &f, &err), rows[i].st);
		assert_int_equal(f, 7);
		if (!strstr(err.text, rows[i].message))
			fail_msg("'%s' does not contain '%s'", err.text, rows[i].message);
	}
	gpul_module_unload(m);
}

static int n_launched;

static void count_launch(void **params)
{
	n_launched++;
	assert_int_equal(*(uint64_t *)params[0], 11);
}

static void launches_a_kernel_from_a_handle_with_the_same_checks(void **state)
{
	static const gpul_launch_config one = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	const gpul_driver *drv = fake_driver(0);
	gpul_kernel *k = NULL;
	gpul_error err = { 0 };
	uint64_t a = 11, b = 12;
	CUfunction fn = NULL;

	(void)state;
	fake_behave()->n_params = 2;
	fake_behave()->launched = count_launch;
	assert_int_equal(gpul_kernel_of(drv, (CUfunction)(void *)&a, &k, &err), GPUL_OK);
	assert_string_equal(gpul_kernel_name(k), "_Z4fakePdi");
	assert_null(gpul_kernel_ptx(k));
	assert_int_equal(gpul_kernel_signature(k)->n_params, 2);
	assert_int_equal(gpul_kernel_prepare(k, &err), GPUL_OK);
	assert_int_equal(gpul_kernel_function(k, &fn, &err), GPUL_OK);
	assert_ptr_equal(fn, &a);

	assert_int_equal(gpul_kernel_launch(k, &one, (void *[]){ &a, &b }, (const size_t[]){ 8, 8 }, 2, &err), GPUL_OK);
	assert_int_equal(n_launched, 1);
	assert_int_equal(gpul_kernel_launch(k, &one, (void *[]){ &a, &b }, (const size_t[]){ 8, 4 }, 2, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "argument 1 has 4 bytes, but its parameter has 8"));
	assert_int_equal(n_launched, 1);
	gpul_kernel_release(k);
	assert_int_equal(fake_alive(), 0);
}

static void releases_everything_if_any_driver_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) {
		const gpul_driver *drv = fake_driver(n);
		gpul_kernel *k = NULL;
		gpul_error err = { 0 };
		gpul_status st;

		fake_behave()->n_params = 1;
		st = gpul_kernel_of(drv, (CUfunction)(void *)&n, &k, &err);
		if (st)
			assert_null(k);
		gpul_kernel_release(k);
		assert_int_equal(fake_alive(), 0);
		if (!st && n > fake_calls())
			return;
		if (st)
			assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_an_element_of_an_array_of_function_pointers),
		cmocka_unit_test(finds_the_function_that_an_element_is_initialised_with),
		cmocka_unit_test(explains_why_a_function_pointer_cannot_be_read),
		cmocka_unit_test(launches_a_kernel_from_a_handle_with_the_same_checks),
		cmocka_unit_test(releases_everything_if_any_driver_call_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
