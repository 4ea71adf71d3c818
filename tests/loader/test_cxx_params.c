/* test_cxx_params.c — reads parameter types from demangled names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loader/names/cxx_params.h"
#include "loader/names/names.h"

static void reads_parameter_types_from_a_name(void **state)
{
	static const struct {
		const char *name, *text;
		uint32_t bytes;
		gpul_type type;
		bool pointer, constant;
	} rows[] = {
		{ "f(double const*)", "double const*", 8, GPUL_F64, true, true },
		{ "f(float*)", "float*", 8, GPUL_F32, true, false },
		{ "f(int)", "int", 4, GPUL_I32, false, false },
		{ "f(unsigned long long)", "unsigned long long", 8, GPUL_U64, false, false },
		{ "f(bool)", "bool", 1, GPUL_U8, false, false },
		{ "f(int volatile*)", "int volatile*", 8, GPUL_I32, true, false },
		{ "f(int const volatile*)", "int const volatile*", 8, GPUL_I32, true, true },
		{ "f(__half const* __restrict)", "__half const* __restrict", 8, GPUL_F16, true, true },
		{ "f(float4)", "float4", 16, GPUL_TYPE_NONE, false, false },
		{ "f(float4*)", "float4*", 8, GPUL_TYPE_NONE, true, false },
		{ "f(void*)", "void*", 8, GPUL_TYPE_NONE, true, false },
		{ "f(float**)", "float**", 8, GPUL_TYPE_NONE, false, false },
		{ "f(float* const*)", "float* const*", 8, GPUL_TYPE_NONE, false, true },
		{ "f(float (*)(float, float))", "float (*)(float, float)", 8, GPUL_TYPE_NONE, false, false },
		{ "f(pair<int, float>)", "pair<int, float>", 0, GPUL_TYPE_NONE, false, false },
		{ "void g<(int)3, (a::b)1>(ns::thing<(int)2, float>)", "ns::thing<(int)2, float>", 0, GPUL_TYPE_NONE, false, false },
		{ "(anonymous namespace)::f(short)", "short", 2, GPUL_I16, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		gpul_cxx_param p = { 0 };

		if (gpul_cxx_params(rows[i].name, &p, 1) != 1 || p.text_bytes != strlen(rows[i].text) ||
		    memcmp(p.text, rows[i].text, p.text_bytes))
			fail_msg("%s: expected one parameter, %s", rows[i].name, rows[i].text);
		if (p.bytes != rows[i].bytes || p.type != rows[i].type || p.pointer != rows[i].pointer || p.constant != rows[i].constant)
			fail_msg("%s: got %u bytes of %s%s%s", rows[i].name, p.bytes, gpul_type_name(p.type), p.pointer ? ", pointer" : "",
				 p.constant ? ", constant" : "");
	}
}

static void counts_all_parameters_even_if_the_array_is_too_small(void **state)
{
	gpul_cxx_param p[2];

	(void)state;
	assert_int_equal(gpul_cxx_params("f", NULL, 0), GPUL_CXX_NO_LIST);
	assert_int_equal(gpul_cxx_params("", NULL, 0), GPUL_CXX_NO_LIST);
	assert_int_equal(gpul_cxx_params("f()", NULL, 0), 0);
	assert_int_equal(gpul_cxx_params("f(int, a<b, c>, float (*)(int, int), char*)", p, 2), 4);
	assert_memory_equal(p[1].text, "a<b, c>", p[1].text_bytes);
	assert_int_equal(p[1].text_bytes, 7);
}

static void accepts_malformed_names(void **state)
{
	static const char *const odd[] = {
		")", "()", "f)", "f(", "f(,)", "f(,,a)", "(((", ")))", "f(<)", "f(>>)", "f( )", "f(*)", "f(&*&)"
	};

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		gpul_cxx_param p[4] = { 0 };
		size_t n = gpul_cxx_params(odd[i], p, 4);

		assert_true(n == GPUL_CXX_NO_LIST || n <= 4);
	}
}

static void matches_a_kernel_by_the_names_that_users_type(void **state)
{
	(void)state;
	assert_true(gpul_name_matches("void f<int>(int*)", "f"));
	assert_true(gpul_name_matches("void f<int>(int*)", "f<int>"));
	assert_true(gpul_name_matches("void f<int>(int*)", "void f<int>"));
	assert_true(gpul_name_matches("a::f(int)", "a::f"));
	assert_false(gpul_name_matches("a::f(int)", "f"));
	assert_false(gpul_name_matches("fg(int)", "f"));
	assert_int_equal(gpul_name_before_params("void f<(int)3, 4>(int*)"), 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_parameter_types_from_a_name),
		cmocka_unit_test(counts_all_parameters_even_if_the_array_is_too_small),
		cmocka_unit_test(accepts_malformed_names),
		cmocka_unit_test(matches_a_kernel_by_the_names_that_users_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
