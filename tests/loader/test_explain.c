/* test_explain.c — explanations for unknown host stubs, and advice on the messages of tools.
 *
 * pitfalls/ has the tests that need objects compiled by nvcc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/cuda_errors.h"
#include "loader/advice/advice.h"
#include "loader/advice/known_internal.h"
#include "loader/symbol/symbol.h"

static const char *explain(const void *stub, int runtime_error)
{
	static gpul_error err;

	err = (gpul_error){ 0 };
	assert_int_equal(gpul_symbol_explain(stub, runtime_error, "cudaErrorOfATest", &err), GPUL_EINVAL);
	assert_int_equal(err.native, runtime_error);
	return err.text;
}

static void expect_part(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' does not contain '%s'", text, part);
}

__attribute__((noinline)) static void no_stub(void)
{
	__asm__ volatile("");
}

static void explains_addresses_that_are_not_stubs(void **state)
{
	void *heap = malloc(16);
	uint64_t stack = 0;

	(void)state;
	expect_part(explain(NULL, 98), "the host stub is NULL");
	expect_part(explain(heap, 98), "is not in a program or library of this process");
	expect_part(explain(&stack, 98), "is not in a program or library of this process");
	expect_part(explain((const void *)(uintptr_t)0x7000000000000000, 98), "is not in a program");
	expect_part(explain((const void *)(uintptr_t)no_stub, 98), "no_stub is in this program, which has no device code");
	expect_part(explain((const void *)(uintptr_t)getenv, 98), "getenv is in libc.so.6, which has no");
	free(heap);
}

static void names_the_driver_if_the_runtime_refuses_it(void **state)
{
	(void)state;
	expect_part(explain((const void *)(uintptr_t)no_stub, cudaErrorInsufficientDriver),
		    "NVIDIA's CUDA runtime works only with NVIDIA's driver");
	expect_part(explain((const void *)(uintptr_t)no_stub, cudaErrorNoDevice), "libgpuload-rt.a");
}

static void gives_advice_on_messages_of_tools(void **state)
{
	static const struct {
		const char *message, *advice;
	} rows[] = {
		{ "ptxas error   : Undefined reference to '_Z7VecAdd2Pf' in '<input>'\n",
		  "VecAdd2(float*) is declared but not defined: define it in this file" },
		{ "ptxas fatal   : Cannot take address of function 'op'", "op is declared but not defined, so it has no address" },
		{ "nvlink error   : Undefined reference to 'helper' in 'rdc.o'", "no linked file defines helper" },
		{ "nothing\nnvlink error   : Undefined reference to 'helper' in 'a.o'\n"
		  "ptxas error   : Undefined reference to 'x' in '<input>'\n",
		  "no linked file defines helper" },
		{ "/usr/bin/ld: rdc.cu:(.text+0x1): undefined reference to "
		  "`__cudaRegisterLinkedBinary_3ce7a96d_6_rdc_cu_014b6126'",
		  "nvcc -dlink OBJECTS -o dlink.o" },
		{ "ld: main.o: hidden symbol `VecAdd' isn't defined", "link the archive" },
	};
	char advice[GPUL_ADVICE_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_non_null(gpul_advice(rows[i].message, advice));
		expect_part(advice, rows[i].advice);
	}
	assert_null(gpul_advice("", advice));
	assert_null(gpul_advice("ptxas info    : Used 8 registers", advice));
}

static void appends_advice_to_an_error_once_and_within_its_buffer(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	gpul_advise(NULL);
	gpul_advise(&err);
	assert_string_equal(err.text, "");
	gpul_fail(&err, GPUL_EFORMAT, 0, "Cannot take address of function 'op'");
	gpul_advise(&err);
	expect_part(err.text, "'op': op is declared but not defined");
	for (int i = 0; i < 2; i++) {
		char before[sizeof err.text];

		memcpy(before, err.text, sizeof before);
		gpul_advise(&err);
		assert_string_equal(err.text, before);
	}
	memset(err.text, 'x', sizeof err.text - 1);
	memcpy(err.text, "hidden symbol `", 15);
	gpul_advise(&err);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

/* Check each row: an earlier row must not match its message first, and its advice must not be truncated. */
static void every_row_of_the_tables_is_found_and_fits(void **state)
{
	static const struct gpul_known_table *const tables[] = { &gpul_known_ptx,    &gpul_known_ptxas, &gpul_known_compilers,
								 &gpul_known_nvcc,   &gpul_known_link,  &gpul_known_nvlink,
								 &gpul_known_python, &gpul_known_nccl,  &gpul_known_nccl_warning };

	(void)state;
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
		for (size_t i = 0; i < tables[t]->n; i++) {
			const struct gpul_known_message *row = &tables[t]->rows[i];
			char line[512], advice[GPUL_ADVICE_BYTES];
			const char *hole = strstr(row->advice, "%s"), *rest = hole ? hole + 2 : "";
			size_t prefix = hole ? (size_t)(hole - row->advice) : strlen(row->advice);

			snprintf(line, sizeof line, "%s: %sNAME' %s", tables[t]->where ? tables[t]->where : "", row->part, row->and_part);
			assert_true(strlen(row->advice) + (hole ? 70 : 0) < GPUL_ADVICE_BYTES);
			if (!gpul_advice(line, advice) || strncmp(advice, row->advice, prefix) != 0 || !strstr(advice, rest))
				fail_msg("'%s' is explained by '%s', not by '%s'", line, advice, row->advice);
		}
	}
}

static void every_error_of_cuda_is_explained_by_name_and_by_text(void **state)
{
	static const struct {
		int number;
		const char *names[2], *text;
	} errors[] = {
#define ROW(number, driver_name, runtime_name, text) { number, { driver_name, runtime_name }, text },
		GPUL_CUDA_ERRORS(ROW)
#undef ROW
	};
	char line[512], by_name[GPUL_ADVICE_BYTES], by_text[GPUL_ADVICE_BYTES];

	(void)state;
	for (size_t i = 1; i < sizeof errors / sizeof *errors && errors[i].number < 1000; i++) {
		for (int k = 0; k < 2; k++) {
			if (!errors[i].names[k])
				continue;
			snprintf(line, sizeof line, "cupy_backends.cuda.api.driver.CUDADriverError: %s: %s", errors[i].names[k],
				 errors[i].text);
			if (!gpul_advice(line, by_name))
				fail_msg("no advice on '%s'", line);
		}
		snprintf(line, sizeof line, "RuntimeError: CUDA error: %s", errors[i].text);
		if (!gpul_advice(line, by_text))
			fail_msg("no advice on '%s'", line);
		if (errors[i].number != 200 && errors[i].number != 300) /* these two have the same text */
			assert_string_equal(by_name, by_text);
	}
}

static void texts_that_other_programs_print_are_not_taken_for_those_of_cuda(void **state)
{
	/* clang-format off */
	static const char *const unknown[] = {
		"cp: cannot create 'x': invalid argument", "mount: operation not permitted", "g++: error: out of memory allocating 65536 bytes",
		"curl: Connect to 10.0.0.1 failed : Connection refused", "tar: unknown option 'q'", "make: *** [all] Error 1",
		"bash: file not found", "my_cudaErrorIllegalAddress_handler called", "Duplicate entry in modifiers",
	};
	/* clang-format on */
	char advice[GPUL_ADVICE_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		if (gpul_advice(unknown[i], advice))
			fail_msg("'%s' is explained by '%s'", unknown[i], advice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(explains_addresses_that_are_not_stubs),
		cmocka_unit_test(names_the_driver_if_the_runtime_refuses_it),
		cmocka_unit_test(gives_advice_on_messages_of_tools),
		cmocka_unit_test(every_row_of_the_tables_is_found_and_fits),
		cmocka_unit_test(every_error_of_cuda_is_explained_by_name_and_by_text),
		cmocka_unit_test(texts_that_other_programs_print_are_not_taken_for_those_of_cuda),
		cmocka_unit_test(appends_advice_to_an_error_once_and_within_its_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
