/* test_linker.c — gpul_link() with a fake linker (so_nvjitlink.c) that crashes, logs errors, or returns no result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/link/link.h"
#include "tests/loader/image/forge.h"

/* Link the bytes as LTO code, because gpul_link() passes LTO code to the linker unchecked. */
static gpul_status link_bytes(const void *bytes, size_t n, uint32_t cc, gpul_linked *out, gpul_error *err)
{
	const gpul_link_input input = { GPUL_IMAGE_LTO, bytes, n, "a.o" };
	const gpul_link_options options = { .cc = cc, .no_cache = true };

	return gpul_link(&input, 1, &options, out, err);
}

static void refuses(const char *input, uint32_t cc, gpul_status status, const char *message)
{
	gpul_linked linked;
	gpul_error err = { 0 };

	assert_int_equal(link_bytes(input, strlen(input), cc, &linked, &err), status);
	if (!strstr(err.text, message))
		fail_msg("'%s' does not contain '%s'", err.text, message);
	assert_null(linked.bytes);
	gpul_linked_free(&linked);
}

static void reports_a_crash_of_the_linker(void **state)
{
	(void)state;
	refuses("die", 90, GPUL_EFORMAT, "nvJitLink crashed with signal 6");
	refuses("die", 90, GPUL_EFORMAT, "an input is damaged");
}

static void a_logged_error_is_a_failure_even_if_the_linker_reports_success(void **state)
{
	(void)state;
	refuses("complain", 90, GPUL_EFORMAT, "nvJitLink 99.7: error   : Multiple definition of '_Z1fi'");
}

static void names_an_undefined_symbol_as_in_cpp_and_the_input_that_refers_to_it(void **state)
{
	(void)state;
	refuses("fail", 90, GPUL_EFORMAT, "a.o refers to ");
	refuses("fail", 90, GPUL_EFORMAT, "which no input defines: add the file that does");
	refuses("fail lto", 90, GPUL_EFORMAT, "the code refers to ");
	refuses("mute", 90, GPUL_EFORMAT, "failed with result 5 and an empty log");
}

/* If the linker inherited the writing end of another pipe, that pipe's reader would wait until the linker ends. */
static void the_linker_inherits_only_the_pipe_to_its_parent(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	refuses("descriptors", 90, GPUL_EFORMAT, "descriptors other than the standard ones: 1");
	close(ends[0]);
	close(ends[1]);
}

static void refuses_a_device_that_the_linker_does_not_support(void **state)
{
	(void)state;
	refuses("x", 20, GPUL_EUNSUPPORTED, "nvJitLink 99.7 cannot link for sm_20");
}

static void refuses_a_result_without_a_kernel(void **state)
{
	static forge f;
	gpul_linked linked;
	gpul_error err = { 0 };
	unsigned symbol;

	(void)state;
	forge_start(&f, false, 90, false);
	forge_finish(&f);
	assert_int_equal(link_bytes(f.bytes, f.n_bytes, 90, &linked, &err), GPUL_EFORMAT);
	assert_string_equal(err.text, "the linked code has no kernel");
	gpul_linked_free(&linked);

	forge_start(&f, false, 90, false);
	forge_kernel(&f, "k", &symbol);
	forge_finish(&f);
	assert_int_equal(link_bytes(f.bytes, f.n_bytes, 90, &linked, &err), GPUL_OK);
	assert_int_equal(linked.kind, GPUL_IMAGE_CUBIN);
	assert_int_equal(linked.n_bytes, f.n_bytes);
	assert_memory_equal(linked.bytes, f.bytes, f.n_bytes);
	gpul_linked_free(&linked);
}

static void refuses_code_that_is_not_relocatable(void **state)
{
	static forge f;
	const gpul_link_options options = { .cc = 90 };
	gpul_link_input input = { GPUL_IMAGE_CUBIN, NULL, 0, "whole.o" };
	gpul_linked linked;
	gpul_error err = { 0 };
	unsigned symbol;

	(void)state;
	forge_start(&f, false, 90, false);
	forge_kernel(&f, "k", &symbol);
	forge_finish(&f);
	input.bytes = f.bytes;
	input.n_bytes = f.n_bytes;
	assert_int_equal(gpul_link(&input, 1, &options, &linked, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "whole.o is not relocatable device code, so it cannot be linked: "
					 "compile it with nvcc -dc"));
	gpul_linked_free(&linked);
}

/* ---- PTX to PTX, without nvJitLink ---------------------------------------------------------- */

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

static const char caller[] = HEAD ".extern .func (.param .b32 r) _Z5sevenv();\n"
				  ".visible .entry k()\n{\n.param .b32 r;\n"
				  "call.uni (r), _Z5sevenv;\nret;\n}\n";
static const char callee[] = HEAD ".visible .func (.param .b32 r) _Z5sevenv()\n{\n"
				  "st.param.b32 [r], 7;\nret;\n}\n";

static void links_ptx_to_ptx(void **state)
{
	const gpul_link_input inputs[] = {
		{ GPUL_IMAGE_PTX, caller, sizeof caller - 1, "caller.ptx" },
		{ GPUL_IMAGE_PTX, callee, sizeof callee - 1, "callee.ptx" },
	};
	const gpul_link_options options = { .cc = 90, .to_ptx = true };
	gpul_linked linked;
	gpul_error err = { 0 };

	(void)state;
	if (gpul_link(inputs, 2, &options, &linked, &err))
		fail_msg("%s", err.text);
	assert_int_equal(linked.kind, GPUL_IMAGE_PTX);
	assert_int_equal(linked.n_bytes, strlen(linked.bytes));
	assert_non_null(strstr(linked.bytes, ".entry k"));
	assert_null(strstr(linked.bytes, ".extern"));
	gpul_linked_free(&linked);

	assert_int_equal(gpul_link(inputs, 1, &options, &linked, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "'k' of caller.ptx refers to it"));
	assert_non_null(strstr(err.text, "seven"));
	gpul_linked_free(&linked);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_link(inputs + 1, 1, &options, &linked, &err), GPUL_EFORMAT);
	assert_string_equal(err.text, "the linked code has no kernel");
	gpul_linked_free(&linked);
}

static void refuses_to_link_machine_code_to_ptx(void **state)
{
	const gpul_link_input input = { GPUL_IMAGE_CUBIN, "", 0, "m.o" };
	const gpul_link_options options = { .cc = 90, .to_ptx = true };
	gpul_linked linked;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_link(&input, 1, &options, &linked, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "m.o is machine code, which cannot be linked to PTX"));
	gpul_linked_free(&linked);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_a_crash_of_the_linker),
		cmocka_unit_test(a_logged_error_is_a_failure_even_if_the_linker_reports_success),
		cmocka_unit_test(names_an_undefined_symbol_as_in_cpp_and_the_input_that_refers_to_it),
		cmocka_unit_test(the_linker_inherits_only_the_pipe_to_its_parent),
		cmocka_unit_test(refuses_a_device_that_the_linker_does_not_support),
		cmocka_unit_test(refuses_a_result_without_a_kernel),
		cmocka_unit_test(refuses_code_that_is_not_relocatable),
		cmocka_unit_test(links_ptx_to_ptx),
		cmocka_unit_test(refuses_to_link_machine_code_to_ptx),
	};
	char path[4096];
	const char *slash = strrchr(argv[0], '/');

	(void)argc;
	snprintf(path, sizeof path, "%.*s/so_nvjitlink.so", slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".");
	setenv("GPULOAD_NVJITLINK", path, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
