/* test_parse.c — parsing a command line with an option table. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/lib/command.h"

enum { GRID, JSON, INCLUDE, STD, CALLS };
static const struct cli_opt opts[] = {
	[GRID] = { "grid", "X", "", NULL },     [JSON] = { "json", NULL, "", NULL },        [INCLUDE] = { "I", "DIR", "", NULL },
	[STD] = { "std", "DIALECT", "", NULL }, [CALLS] = { "calls", "[=LIST]", "", NULL }, { 0 },
};

static gpul_status parse(struct cli_args *out, gpul_error *err, const char **words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return cli_parse(opts, (char *const *)words, n, out, err);
}
#define WORDS(...) ((const char *[]){ __VA_ARGS__, NULL })

static void accepts_options_before_between_and_after_operands(void **state)
{
	struct cli_args a;

	(void)state;
	assert_int_equal(parse(&a, NULL, WORDS("--grid", "4", "file", "--json", "i32=-5", "--grid=8")), GPUL_OK);
	assert_int_equal(a.n_operands, 2);
	assert_string_equal(a.operands[0], "file");
	assert_string_equal(a.operands[1], "i32=-5");
	assert_string_equal(cli_value(&a, GRID), "8"); /* the last use wins */
	assert_string_equal(cli_value(&a, JSON), "");
	assert_null(cli_value(&a, STD));
	cli_args_free(&a);
}

static void accepts_the_spellings_of_compiler_options(void **state)
{
	struct cli_args a;

	(void)state;
	assert_int_equal(parse(&a, NULL, WORDS("-Ione", "-I", "two", "-std=c++17")), GPUL_OK);
	assert_int_equal(a.n_given, 3);
	assert_string_equal(a.given[0].value, "one");
	assert_string_equal(a.given[1].value, "two");
	assert_string_equal(cli_value(&a, STD), "c++17");
	cli_args_free(&a);
}

static void an_optional_value_is_a_part_of_the_word(void **state)
{
	struct cli_args a;

	(void)state;
	assert_int_equal(parse(&a, NULL, WORDS("--calls", "file")), GPUL_OK);
	assert_int_equal(a.n_operands, 1);
	assert_string_equal(cli_value(&a, CALLS), "");
	cli_args_free(&a);
	assert_int_equal(parse(&a, NULL, WORDS("--calls=memory", "file")), GPUL_OK);
	assert_string_equal(cli_value(&a, CALLS), "memory");
	cli_args_free(&a);
}

static void two_dashes_end_the_options(void **state)
{
	struct cli_args a;

	(void)state;
	assert_int_equal(parse(&a, NULL, WORDS("--", "--json", "-")), GPUL_OK);
	assert_int_equal(a.n_operands, 2);
	assert_null(cli_value(&a, JSON));
	cli_args_free(&a);
}

static void recognises_a_request_for_help(void **state)
{
	struct cli_args a;

	(void)state;
	assert_int_equal(parse(&a, NULL, WORDS("x", "-h")), GPUL_OK);
	assert_true(a.help);
	cli_args_free(&a);
}

static void explains_each_mistake_in_the_options(void **state)
{
	static const struct {
		const char *word, *why;
	} bad[] = {
		{ "--gird", "did you mean --grid?" },
		{ "--frobnicate", "unknown option --frobnicate" },
		{ "-x", "unknown option -x" },
		{ "--grid", "--grid needs a value: X" },
		{ "-I", "-I needs a value: DIR" },
		{ "--json=yes", "--json takes no value" },
		{ "--gird=5", "did you mean --grid?" },
		{ "--=", "unknown option --=" },
		{ "--"
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "a",
		  "unknown option" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct cli_args a;
		gpul_error err = { 0 };

		assert_int_equal(parse(&a, &err, WORDS(bad[i].word)), GPUL_EINVAL);
		if (!strstr(err.text, bad[i].why))
			fail_msg("%s: expected '%s' in: %s", bad[i].word, bad[i].why, err.text);
		assert_null(a.given);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_options_before_between_and_after_operands),
		cmocka_unit_test(accepts_the_spellings_of_compiler_options),
		cmocka_unit_test(an_optional_value_is_a_part_of_the_word),
		cmocka_unit_test(two_dashes_end_the_options),
		cmocka_unit_test(recognises_a_request_for_help),
		cmocka_unit_test(explains_each_mistake_in_the_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
