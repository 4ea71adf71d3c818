/* test_linker.c — what is made of a linker's answers: one that dies, complains, or makes nothing.
 * The linker is so_nvjitlink.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/link/link.h"
#include "tests/loader/image/forge.h"

/* LTO code is handed over as it is. */
static gpul_status link_these(const void *bytes, size_t n, uint32_t cc, gpul_linked *out,
			      gpul_error *err)
{
	const gpul_link_input input = { GPUL_IMAGE_LTO, bytes, n, "a.o" };
	const gpul_link_options options = { .cc = cc, .no_cache = true };

	return gpul_link(&input, 1, &options, out, err);
}

static void refuses(const char *word, uint32_t cc, gpul_status status, const char *says)
{
	gpul_linked linked;
	gpul_error err = { 0 };

	assert_int_equal(link_these(word, strlen(word), cc, &linked, &err), status);
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
	assert_null(linked.bytes);
	gpul_linked_free(&linked);
}

static void a_linker_that_dies_takes_nobody_along(void **state)
{
	(void)state;
	refuses("die", 90, GPUL_EFORMAT, "nvJitLink died of signal 6");
	refuses("die", 90, GPUL_EFORMAT, "what it was given to link is damaged");
}

static void success_with_a_complaint_is_a_failure(void **state)
{
	(void)state;
	refuses("complain", 90, GPUL_EFORMAT, "nvJitLink 99.7: error   : Multiple definition of '_Z1fi'");
}

static void a_failure_names_the_symbol_as_in_cpp_and_who_refers_to_it(void **state)
{
	(void)state;
	refuses("fail", 90, GPUL_EFORMAT, "a.o refers to ");
	refuses("fail", 90, GPUL_EFORMAT, "which no file defines: give the file that does");
	refuses("fail lto", 90, GPUL_EFORMAT, "the code refers to ");
	refuses("mute", 90, GPUL_EFORMAT, "refused, with result 5 and no word");
}

static void a_device_that_the_linker_does_not_know_is_told(void **state)
{
	(void)state;
	refuses("x", 20, GPUL_EUNSUPPORTED, "nvJitLink 99.7 cannot link for sm_20");
}

static void the_result_must_have_a_kernel(void **state)
{
	static forge f;
	gpul_linked linked;
	gpul_error err = { 0 };
	unsigned symbol;

	(void)state;
	forge_start(&f, false, 90, false);
	forge_finish(&f);
	assert_int_equal(link_these(f.bytes, f.n_bytes, 90, &linked, &err), GPUL_EFORMAT);
	assert_string_equal(err.text, "linked, but there is no kernel in the result");
	gpul_linked_free(&linked);

	forge_start(&f, false, 90, false);
	forge_kernel(&f, "k", &symbol);
	forge_finish(&f);
	assert_int_equal(link_these(f.bytes, f.n_bytes, 90, &linked, &err), GPUL_OK);
	assert_int_equal(linked.kind, GPUL_IMAGE_CUBIN);
	assert_int_equal(linked.n_bytes, f.n_bytes);
	assert_memory_equal(linked.bytes, f.bytes, f.n_bytes);
	gpul_linked_free(&linked);
}

static void a_whole_program_is_refused_before(void **state)
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
	assert_non_null(strstr(err.text, "whole.o is a whole program, nothing that can be linked: "
					 "compile it with nvcc -dc"));
	gpul_linked_free(&linked);
}

/* ---- to PTX, without any linker but ours ---------------------------------------------------- */

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

static const char caller[] = HEAD ".extern .func (.param .b32 r) _Z5sevenv();\n"
				  ".visible .entry k()\n{\n.param .b32 r;\n"
				  "call.uni (r), _Z5sevenv;\nret;\n}\n";
static const char callee[] = HEAD ".visible .func (.param .b32 r) _Z5sevenv()\n{\n"
				  "st.param.b32 [r], 7;\nret;\n}\n";

static void ptx_is_linked_to_ptx(void **state)
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
	assert_string_equal(err.text, "linked, but there is no kernel in the result");
	gpul_linked_free(&linked);
}

static void machine_code_cannot_become_ptx(void **state)
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
		cmocka_unit_test(a_linker_that_dies_takes_nobody_along),
		cmocka_unit_test(success_with_a_complaint_is_a_failure),
		cmocka_unit_test(a_failure_names_the_symbol_as_in_cpp_and_who_refers_to_it),
		cmocka_unit_test(a_device_that_the_linker_does_not_know_is_told),
		cmocka_unit_test(the_result_must_have_a_kernel),
		cmocka_unit_test(a_whole_program_is_refused_before),
		cmocka_unit_test(ptx_is_linked_to_ptx),
		cmocka_unit_test(machine_code_cannot_become_ptx),
	};
	char path[4096];
	const char *slash = strrchr(argv[0], '/');

	(void)argc;
	snprintf(path, sizeof path, "%.*s/so_nvjitlink.so", slash ? (int)(slash - argv[0]) : 1,
		 slash ? argv[0] : ".");
	setenv("GPULOAD_NVJITLINK", path, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
