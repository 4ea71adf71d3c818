/* test_link.c — links PTX, as nvcc -dc writes it, by NVIDIA's nvJitLink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/image/kernels/kernels.h"
#include "loader/link/link.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

static const char caller[] = HEAD ".extern .func (.param .b32 r) _Z5twicei(.param .b32 x);\n"
				  ".visible .entry k(.param .u64 to)\n{\n"
				  ".reg .b32 %v; .reg .b64 %to; .param .b32 x, r;\n"
				  "ld.param.u64 %to, [to];\nst.param.b32 [x], 21;\n"
				  "call.uni (r), _Z5twicei, (x);\nld.param.b32 %v, [r];\n"
				  "st.global.b32 [%to], %v;\nret;\n}\n";
static const char callee[] = HEAD ".visible .func (.param .b32 r) _Z5twicei(.param .b32 x)\n{\n.reg .b32 %v;\n"
				  "ld.param.b32 %v, [x];\nadd.s32 %v, %v, %v;\nst.param.b32 [r], %v;\nret;\n}\n";
static const char wrong[] = HEAD ".visible .entry k()\n{\n.reg .b32 %v;\n"
				 "add.s32 %v, %nowhere, 1;\nret;\n}\n";

static const gpul_link_input inputs[] = {
	{ GPUL_IMAGE_PTX, caller, sizeof caller - 1, "caller.ptx" },
	{ GPUL_IMAGE_PTX, callee, sizeof callee - 1, "callee.ptx" },
	{ GPUL_IMAGE_PTX, wrong, sizeof wrong - 1, "wrong.ptx" },
};

static gpul_status link_some(size_t from, size_t n, const char *argument, gpul_linked *out, gpul_error *err)
{
	const char *const arguments[] = { argument, NULL };
	const gpul_link_options options = { .cc = 90, .arguments = argument ? arguments : NULL, .no_cache = true };
	const char *path;

	if (gpul_link_find(&path, NULL, NULL, NULL))
		skip();
	*err = (gpul_error){ 0 };
	return gpul_link(inputs + from, n, &options, out, err);
}

static void refuses(size_t from, size_t n, const char *argument, const char *message)
{
	gpul_linked linked;
	gpul_error err;

	assert_int_equal(link_some(from, n, argument, &linked, &err), GPUL_EFORMAT);
	if (!strstr(err.text, message))
		fail_msg("'%s' does not contain '%s'", err.text, message);
	assert_null(linked.bytes);
	gpul_linked_free(&linked);
}

static void links_ptx_to_a_cubin_with_its_kernels(void **state)
{
	const gpul_image image = { .kind = GPUL_IMAGE_CUBIN };
	gpul_kernel_table table = { 0 };
	gpul_linked linked;
	gpul_error err;
	uint16_t sm = 0;
	char suffix;
	bool relocatable = true;

	(void)state;
	if (link_some(0, 2, NULL, &linked, &err))
		fail_msg("%s", err.text);
	assert_int_equal(linked.kind, GPUL_IMAGE_CUBIN);
	assert_int_equal(gpul_cubin_target(linked.bytes, linked.n_bytes, &sm, &suffix, &relocatable, &err), GPUL_OK);
	assert_int_equal(sm, 90);
	assert_false(relocatable);
	assert_int_equal(gpul_kernels_read(&image, linked.bytes, linked.n_bytes, &table, &err), GPUL_OK);
	assert_int_equal(table.n, 1);
	assert_string_equal(table.at[0].name, "k");
	assert_int_equal(table.at[0].n_params, 1);
	gpul_kernel_table_free(&table);
	gpul_linked_free(&linked);
}

static void names_an_undefined_symbol_and_the_input_that_refers_to_it(void **state)
{
	(void)state;
	refuses(0, 1, NULL, "caller.ptx refers to ");
	refuses(0, 1, NULL, "which no input defines: add the file that does");
}

static void shows_the_line_of_an_error_in_ptx(void **state)
{
	(void)state;
	refuses(2, 1, NULL, "wrong.ptx:7: error");
	refuses(2, 1, NULL, "\nadd.s32 %v, %nowhere, 1;");
}

static void names_an_unknown_linker_option(void **state)
{
	(void)state;
	refuses(0, 2, "-no-such-option", "-no-such-option");
}

static void refuses_a_result_without_a_kernel(void **state)
{
	(void)state;
	refuses(1, 1, NULL, "the linked code has no kernel");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_ptx_to_a_cubin_with_its_kernels),
		cmocka_unit_test(names_an_undefined_symbol_and_the_input_that_refers_to_it),
		cmocka_unit_test(shows_the_line_of_an_error_in_ptx),
		cmocka_unit_test(names_an_unknown_linker_option),
		cmocka_unit_test(refuses_a_result_without_a_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
