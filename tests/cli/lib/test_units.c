/* test_units.c — times and rates as text. */
#include "tests/support/cmocka.h"
#include "cli/lib/value.h"

static void a_time_has_four_digits_and_the_unit_that_fits(void **state)
{
	/* clang-format off */
	static const struct { double seconds; const char *text; } cases[] = {
		{ 0, "0 ns" },		    { 1.5e-9, "1.5 ns" },     { 0.0001842, "184.2 us" }, { 0.99994e-6, "999.9 ns" },
		{ 0.99996e-6, "1 us" },	    { 0.0123456, "12.35 ms" }, { 1, "1 s" },		    { 0.999999, "1 s" },
		{ 75.5, "75.5 s" },
	};
	/* clang-format on */
	char buf[UNITS_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(units_time(cases[i].seconds, buf), cases[i].text);
}

static void a_rate_has_three_digits_and_powers_of_1000(void **state)
{
	char buf[UNITS_TEXT_BYTES];

	(void)state;
	assert_string_equal(units_rate(3.352e12, buf), "3.35 TB/s");
	assert_string_equal(units_rate(0.9999e9, buf), "1 GB/s");
	assert_string_equal(units_rate(41000, buf), "41 kB/s");
	assert_string_equal(units_rate(24, buf), "24 B/s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_has_four_digits_and_the_unit_that_fits),
		cmocka_unit_test(a_rate_has_three_digits_and_powers_of_1000),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
