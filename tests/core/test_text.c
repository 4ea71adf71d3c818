/* test_text.c — edit distance and suggestions for misspelt names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/text.h"

static void counts_edits(void **state)
{
	(void)state;
	assert_int_equal(gpul_text_distance("", ""), 0);
	assert_int_equal(gpul_text_distance("", "abc"), 3);
	assert_int_equal(gpul_text_distance("vecadd", "vecadd"), 0);
	assert_int_equal(gpul_text_distance("kitten", "sitting"), 3);
	assert_int_equal(gpul_text_distance("grdi", "grid"), 1);  /* a swap is one edit */
	assert_int_equal(gpul_text_distance("grid", "gridd"), 1);
}

static void suggests_the_nearest_name_and_no_distant_one(void **state)
{
	static const char *const names[] = { "vecadd", "vecsub", "reduce", "x" };

	(void)state;
	assert_string_equal(gpul_text_nearest("vecad", names, 4), "vecadd");
	assert_string_equal(gpul_text_nearest("vecsbu", names, 4), "vecsub");
	assert_string_equal(gpul_text_nearest("re", names, 4),
			    "reduce");  /* the only name with this prefix */
	assert_null(gpul_text_nearest("v", names, 4));                     /* two names have this prefix */
	assert_null(gpul_text_nearest("matmul", names, 4));
	assert_null(gpul_text_nearest("", names, 4));
	assert_null(gpul_text_nearest("vecadd", NULL, 0));
}

static void accepts_names_of_any_length(void **state)
{
	char a[1000], b[1000];
	const char *names[] = { b };

	(void)state;
	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	a[999] = b[999] = '\0';
	assert_int_equal(gpul_text_distance(a, b), 255);
	assert_null(gpul_text_nearest(a, names, 1));
}

static void reads_numbers_of_bytes(void **state)
{
	static const char *const wrong[] = { "", "G", "-1", "1.5G", "8GB", "8g", " 8", "0x10", "99999999999999999999", "99999999T" };
	uint64_t n = 7;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(gpul_text_bytes(wrong[i], &n));
	assert_int_equal(n, 7);
	assert_true(gpul_text_bytes("4096", &n) && n == 4096);
	assert_true(gpul_text_bytes("3K", &n) && n == 3 << 10);
	assert_true(gpul_text_bytes("8G", &n) && n == 8ull << 30);
	assert_true(gpul_text_bytes("16777215T", &n) && n == 16777215ull << 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_edits),
		cmocka_unit_test(suggests_the_nearest_name_and_no_distant_one),
		cmocka_unit_test(accepts_names_of_any_length),
		cmocka_unit_test(reads_numbers_of_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
