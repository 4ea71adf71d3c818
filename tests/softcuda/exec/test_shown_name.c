/* test_shown_name.c — the names of kernels and variables in messages, and the names by which a user may select them. */
#include "softcuda/exec/shown_name_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void names_are_as_in_cxx_and_lose_their_parameters_first(void **state)
{
	char buf[24];

	(void)state;
	assert_string_equal(SHOWN_NAME("_Z3addPfi"), "add(float*, int)");
	assert_string_equal(SHOWN_NAME("vecadd"), "vecadd");
	assert_string_equal(gpul_shown_name("_Z3addPfi", buf, sizeof buf), "add(float*, int)");
	assert_string_equal(gpul_shown_name("_Z9reductionPKdS0_Pd", buf, sizeof buf), "reduction(...)");
	assert_string_equal(gpul_shown_name("a_name_of_thirty_two_characters_", buf, sizeof buf), "a_name_of_thirty_two...");
}

static void a_part_of_the_name_is_enough(void **state)
{
	static const struct {
		const char *name, *is[6], *is_not[5];
	} names[] = {
		{ "vecadd", { "vecadd" }, { "vec", "add", "" } },
		{ "_Z3addPfi", { "_Z3addPfi", "add(float*, int)", "add" }, { "ad", "dd", "float*", "add(" } },
		/* void ns::scale<float>(float*), ns::deep(int*, int), work(int*)::buf, ns::table */
		{ "_ZN2ns5scaleIfEEvPT_",
		  { "void ns::scale<float>(float*)", "ns::scale<float>", "scale<float>", "ns::scale", "scale" },
		  { "ns", "void", "scale<int>", "float" } },
		{ "_ZN2ns4deepEPii", { "ns::deep", "deep" }, { "ns", "deep<", "" } },
		{ "_ZZ4workPiE3buf", { "buf", "work(int*)::buf" }, { "work", "uf" } },
		{ "_ZN2ns5tableE", { "ns::table", "table" }, { "tab", "::table" } },
	};

	(void)state;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		for (size_t n = 0; names[k].is[n]; n++)
			if (!gpul_shown_name_is(names[k].name, names[k].is[n]))
				fail_msg("%s should be %s", names[k].name, names[k].is[n]);
		for (size_t n = 0; names[k].is_not[n]; n++)
			if (gpul_shown_name_is(names[k].name, names[k].is_not[n]))
				fail_msg("%s should not be %s", names[k].name, names[k].is_not[n]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_as_in_cxx_and_lose_their_parameters_first),
		cmocka_unit_test(a_part_of_the_name_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
