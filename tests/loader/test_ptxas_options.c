/* test_ptxas_options.c — options of ptxas, as nvcc stores them in a fatbin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loader/link/ptxas_options.h"

/* Return the value of a driver option; -1: the option is not set. */
static long value_of(const gpul_ptxas_options *o, CUjit_option key)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->keys[i] == key)
			return (long)(uintptr_t)o->values[i];
	return -1;
}

static void converts_options_to_those_of_the_driver(void **state)
{
	static const struct {
		const char *text;
		CUjit_option key;
		long value;
		const char *unknown;
	} rows[] = {
		{ "-O2 -v -dlcm=cg  -maxrregcount=32 ", CU_JIT_MAX_REGISTERS, 32, "" },
		{ "-O2 -v -dlcm=cg  -maxrregcount=32 ", CU_JIT_OPTIMIZATION_LEVEL, 2, "" },
		{ "-O2 -v -dlcm=cg  -maxrregcount=32 ", CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_CG, "" },
		{ "-maxrregcount 96", CU_JIT_MAX_REGISTERS, 96, "" },
		{ "--maxrregcount=96 --maxrregcount=64", CU_JIT_MAX_REGISTERS, 64, "" },
		{ "--opt-level 0 -g", CU_JIT_OPTIMIZATION_LEVEL, 0, "" },
		{ "--opt-level 0 -g", CU_JIT_GENERATE_DEBUG_INFO, 1, "" },
		{ "-O3", CU_JIT_OPTIMIZATION_LEVEL, 3, "" },
		{ "--generate-line-info", CU_JIT_GENERATE_LINE_INFO, 1, "" },
		{ "--fmad=false -O1 -Werror", CU_JIT_OPTIMIZATION_LEVEL, 1, "--fmad=false -Werror" },
		{ "-m64 -gno-such", CU_JIT_GENERATE_DEBUG_INFO, -1, "-gno-such" },
		{ "", CU_JIT_MAX_REGISTERS, -1, "" },
		{ " - -- --maxrregcount", CU_JIT_MAX_REGISTERS, 0, "- --" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		gpul_ptxas_options o;

		gpul_ptxas_options_parse(rows[i].text, strlen(rows[i].text), &o);
		if (value_of(&o, rows[i].key) != rows[i].value || strcmp(o.unknown, rows[i].unknown))
			fail_msg("'%s': %ld, unknown '%s'", rows[i].text, value_of(&o, rows[i].key), o.unknown);
	}
}

static void finds_options_on_the_first_line_of_ptx(void **state)
{
	static const char text[] = "// ptxas options: -maxrregcount=96\n.version 8.0\n";
	size_t n = 0;
	const char *found = gpul_ptxas_options_in(text, sizeof text - 1, &n);

	(void)state;
	assert_non_null(found);
	assert_int_equal(n, 16);
	assert_memory_equal(found, "-maxrregcount=96", n);
	assert_null(gpul_ptxas_options_in(".version 8.0\n", 13, &n));
	assert_null(gpul_ptxas_options_in(text, 10, &n));
	assert_non_null(gpul_ptxas_options_in(text, 20, &n)); /* the text ends within the first line */
	assert_int_equal(n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(converts_options_to_those_of_the_driver),
		cmocka_unit_test(finds_options_on_the_first_line_of_ptx),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
