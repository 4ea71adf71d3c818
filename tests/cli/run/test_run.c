/* test_run.c — the parts of gpuload run that need no driver: the `// gpuload run:` line, checking arguments against
 * a signature, --expect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "cli/run/cli_run.h"

/* ---- the gpuload run: line -------------------------------------------------------- */

static char path[] = "/tmp/gpuload-test-XXXXXX";

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd) ? -1 : 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static gpul_status find_line(const char *kernel, struct run_line *l, gpul_error *err)
{
	gpul_source *source = NULL;
	gpul_status st = gpul_source_open(path, &source, err);

	if (!st)
		st = run_line_find(source, kernel, l, err);
	gpul_source_close(source);
	return st;
}

/* Write text to a file, and compare the words of its "gpuload run:" line, each in <>; "": the file has no such line. */
static void expect_words(const char *text, const char *kernel, const char *words)
{
	struct run_line l;
	gpul_error err = { 0 };
	char all[256] = "";

	write_file(text);
	if (find_line(kernel, &l, &err))
		fail_msg("%s: %s", text, err.text);
	for (size_t i = 0; i < l.n_words; i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "<%s>", l.words[i]);
	assert_string_equal(all, words);
	run_line_free(&l);
}

static void finds_the_gpuload_run_line_of_a_file(void **state)
{
	(void)state;
	expect_words("// gpuload run: i32=1 f32[2]=iota\n.version 7.0\n", NULL, "<i32=1><f32[2]=iota>");
	expect_words("// text\n\t//gpuload run:a", NULL, "<a>");
	expect_words("// gpuload run: --grid 4 -- x\n", NULL, "<--grid><4><--><x>");
	expect_words("no // gpuload run: a\n// see gpuload run: b\n", NULL, "");
	expect_words("// gpuload run", NULL, "");
}

static void splits_words_as_a_shell_does(void **state)
{
	(void)state;
	expect_words("// gpuload run: 'a b' \"c d\" e\\ f\n", NULL, "<a b><c d><e f>");
	expect_words("// gpuload run: a'b'\"c\" '' \\\\ '\\'\n", NULL, "<abc><><\\><\\>");
	expect_words("// gpuload run:  \"a\\\"b\"\t \r\n", NULL, "<a\"b>");
	expect_words("// gpuload run:\n", NULL, "");
}

static void uses_the_first_line_for_the_kernel(void **state)
{
	static const char text[] = "// gpuload run: --kernel one a\n// gpuload run: b --kernel=two\n"
				   "// gpuload run: c\n";

	(void)state;
	expect_words(text, NULL, "<--kernel><one><a>");
	expect_words(text, "two", "<b><--kernel=two>");
	expect_words(text, "three", "<c>");
}

static void refuses_an_unterminated_quote(void **state)
{
	struct run_line l;
	gpul_error err = { 0 };

	(void)state;
	write_file("\n// gpuload run: 'a\n");
	assert_int_equal(find_line(NULL, &l, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, ":2: a quote"));
}

/* ---- requests ---------------------------------------------------------------------- */

static gpul_status request(const char **words, struct cli_args *args, struct run_request *q, gpul_error *err)
{
	size_t n = 0;

	while (words[n])
		n++;
	assert_int_equal(cli_parse(cli_run.opts, (char *const *)words, n, args, err), GPUL_OK);
	return run_request_make(args, NULL, q, err);
}
#define WORDS(...) ((const char *[]){ __VA_ARGS__, NULL })

static void the_command_line_takes_precedence_over_the_file(void **state)
{
	struct cli_args args;
	struct run_request q;

	(void)state;
	write_file("// gpuload run: f32[8]=ones i32=8 --grid 4 --block 2,3 --expect 0=ones "
		   "-DA=1\n");
	assert_int_equal(request(WORDS(path, "--grid", "5", "-DB"), &args, &q, NULL), GPUL_OK);
	assert_true(q.has_args);
	assert_int_equal(q.n_args, 2);
	assert_int_equal(q.grid[0], 5);
	assert_int_equal(q.block[1], 3);
	assert_int_equal(q.n_expects, 1);
	assert_string_equal(q.nvrtc.words[0], "-DA=1");
	assert_string_equal(q.nvrtc.words[1], "-DB");
	assert_null(q.nvrtc.words[2]);
	run_request_free(&q);
	cli_args_free(&args);
	assert_int_equal(request(WORDS(path, "i32=1", "--timeout=0.5"), &args, &q, NULL), GPUL_OK);
	assert_int_equal(q.n_args, 1); /* arguments on the command line replace the whole line of the file */
	assert_int_equal(q.grid[0], 0);
	assert_int_equal(q.timeout_ms, 500);
	run_request_free(&q);
	cli_args_free(&args);
}

static void refuses_invalid_options_and_arguments(void **state)
{
	static const struct {
		const char *words[6];
		const char *why;
	} bad[] = {
		{ { NULL }, "needs a FILE" },
		{ { path, "--grid", "0", "i32=1", NULL }, "--grid needs X" },
		{ { path, "--grid", "1,2,3,4", "i32=1", NULL }, "--grid needs X" },
		{ { path, "--block", "4x4", "i32=1", NULL }, "--block needs X" },
		{ { path, "--block", "4294967296", "i32=1", NULL }, "--block needs X" },
		{ { path, "--repeat", "0", "i32=1", NULL }, "--repeat needs" },
		{ { path, "--shared", "-1", "i32=1", NULL }, "--shared needs" },
		{ { path, "--device", "x", "i32=1", NULL }, "--device needs" },
		{ { path, "--rtol", "-1", "i32=1", NULL }, "--rtol needs" },
		{ { path, "--timeout", "nan", "i32=1", NULL }, "--timeout needs" },
		{ { path, "--driver", "amd", "i32=1", NULL }, "--driver must be auto, nvidia or soft" },
		{ { path, "--expect", "iota", "i32=1", NULL }, "--expect needs ARG=WHAT" },
		{ { path, "--expect", "1=iota", "i32=1", NULL }, "argument 1 does not exist" },
		{ { path, "--save", "0=a.npy", "i32=1", NULL }, "argument 0 is i32=1, not a buffer" },
		{ { path, "i32=zero", NULL }, "not a whole number" },
	};

	(void)state;
	write_file(".version 7.0\n");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct cli_args args;
		struct run_request q;
		gpul_error err = { 0 };

		assert_int_equal(request((const char **)bad[i].words, &args, &q, &err), GPUL_EINVAL);
		if (!strstr(err.text, bad[i].why))
			fail_msg("expected '%s' in: %s", bad[i].why, err.text);
		cli_args_free(&args);
	}
}

static void refuses_a_file_line_that_writes_files_or_chooses_the_driver(void **state)
{
	static const char *const lines[] = { "--save 0=x.npy", "--driver nvidia", "--json", "--device 1",
					     "--timeout 1",    "--frobnicate",    "i8=300" };

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct cli_args args;
		struct run_request q;
		gpul_error err = { 0 };
		char text[80], where[64];

		snprintf(text, sizeof text, "\n// gpuload run: f32[1]=1 %s\n", lines[i]);
		snprintf(where, sizeof where, "%s:2: ", path);
		write_file(text);
		assert_int_equal(request(WORDS(path), &args, &q, &err), GPUL_EINVAL);
		if (strncmp(err.text, where, strlen(where)))
			fail_msg("%s does not begin with %s", err.text, where);
		cli_args_free(&args);
	}
}

/* ---- which arguments fit a parameter ------------------------------------------------- */

/* Parameters of every role; each is tested alone, as the only parameter of a kernel. */
static gpul_param params[] = {
	{ .bytes = 8, .role = GPUL_ROLE_BUFFER, .type = GPUL_F64, .loaded = true },
	{ .bytes = 4, .role = GPUL_ROLE_COUNT, .type = GPUL_I32 },
	{ .bytes = 4, .role = GPUL_ROLE_SCALAR, .type = GPUL_F32 },
	{ .bytes = 12, .role = GPUL_ROLE_STRUCT },
	{ .bytes = 8, .role = GPUL_ROLE_UNKNOWN },
	{ .bytes = 8, .role = GPUL_ROLE_BUFFER, .type = GPUL_U32 },
};

static bool fits(size_t param, const char *text)
{
	gpul_signature s = { .kernel = "k", .params = &params[param], .n_params = 1 };
	struct arg a;
	gpul_error err = { 0 };
	gpul_status st;

	assert_int_equal(arg_parse(text, NULL, &a, NULL), GPUL_OK);
	st = run_fit(&s, &a, 1, &err);
	if (st) {
		assert_int_equal(st, GPUL_EINVAL);
		assert_non_null(strstr(err.text, text)); /* the message quotes the argument */
		assert_non_null(strstr(err.text, "k(")); /* the message has the signature */
	}
	arg_free(&a);
	return st == GPUL_OK;
}

static void accepts_only_arguments_that_fit_the_parameter(void **state)
{
	(void)state;
	assert_true(fits(0, "f64[4]=ones"));
	assert_true(fits(0, "out:f64[4]"));
	assert_true(fits(0, "u8[32]=zeros")); /* u8 fits every element type */
	assert_true(fits(0, "u64=0"));        /* a u64 is accepted as an address */
	assert_false(fits(0, "f32[4]=ones"));
	assert_false(fits(0, "f64=1"));
	assert_false(fits(0, "i32=1"));
	assert_true(fits(1, "i32=4"));
	assert_true(fits(1, "u32=4"));
	assert_true(fits(1, "hex:00000001"));
	assert_false(fits(1, "i64=4"));
	assert_false(fits(1, "f32=4"));
	assert_false(fits(1, "i32[4]=ones"));
	assert_true(fits(2, "f32=1"));
	assert_false(fits(2, "i32=1"));
	assert_false(fits(2, "f64=1"));
	assert_true(fits(3, "hex:000102030405060708090a0b"));
	assert_false(fits(3, "hex:00"));
	assert_false(fits(3, "f64=1"));
	assert_true(fits(4, "f32[1]=1"));
	assert_true(fits(4, "f64=1"));
	assert_false(fits(4, "f32=1"));
	assert_true(fits(5, "u8[16]=iota"));
	assert_true(fits(5, "f64[2]=iota"));
}

static void reports_a_wrong_number_of_arguments_with_the_signature(void **state)
{
	gpul_signature s = { .kernel = "k", .params = params, .n_params = 2 };
	struct arg a[3] = { 0 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(run_fit(&s, a, 3, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "takes 2 arguments, but 3 were given"));
	assert_non_null(strstr(err.text, "k("));
}

/* ---- checking ---------------------------------------------------------------------- */

/* Check a buffer that contains `text` against the expectation `what`. */
static struct run_check check(const char *text, const char *what, double rtol, double atol)
{
	struct run_target target = { .arg = 0, .what = what };
	struct arg a;
	struct run r = { .ask = { .args = &a, .n_args = 1, .expects = &target, .n_expects = 1, .rtol = rtol, .atol = atol } };
	struct run_check c;
	gpul_error err = { 0 };

	assert_int_equal(arg_parse(text, NULL, &a, NULL), GPUL_OK);
	if (run_check_prepare(&r, &err))
		fail_msg("%s: %s", what, err.text);
	run_check_all(&r);
	c = r.checks[0];
	run_check_free(&r);
	arg_free(&a);
	return c;
}

static void finds_the_first_wrong_element(void **state)
{
	struct run_check c;

	(void)state;
	assert_true(check("i32[8]=iota", "iota", 0, 0).ok);
	c = check("i32[8]=iota", "iota:-3:2", 0, 0); /* only element 3 is equal */
	assert_false(c.ok);
	assert_int_equal(c.n_wrong, 7);
	assert_int_equal(c.first_wrong, 0);
	c = check("u8[300]=iota", "iota", 0, 0);
	assert_true(c.ok);
	c = check("out:f32[4]", "zeros", 0, 0);
	assert_true(c.unwritten);
	assert_string_equal(c.want, "0");
}

static void compares_floats_with_the_given_tolerances(void **state)
{
	(void)state;
	assert_false(check("f32[1]=1.0001", "1", 0, 0).ok);
	assert_true(check("f32[1]=1.0001", "1", 1e-3, 0).ok);
	assert_true(check("f32[1]=1.0001", "1", 0, 1e-3).ok);
	assert_false(check("f32[1]=1.01", "1", 1e-3, 1e-3).ok);
	assert_true(check("f64[1]=nan", "nan", 0, 0).ok);
	assert_false(check("f64[1]=nan", "1", 1, 1).ok);
	assert_true(check("f64[1]=inf", "inf", 0, 0).ok);
	assert_false(check("f64[1]=inf", "-inf", 1, 1).ok);
	assert_false(check("f64[1]=inf", "1", 1, 1e300).ok);
	assert_true(check("f64[1]=-0", "0", 0, 0).ok);
	assert_false(check("i32[1]=2", "1", 1, 1).ok); /* tolerances do not apply to integers */
}

static void sums_integers_and_floats(void **state)
{
	struct run_check c;

	(void)state;
	assert_true(check("i32[1000]=iota", "sum:499500", 0, 0).ok);
	assert_true(check("i8[3]=-100", "sum:-300", 0, 0).ok);
	assert_true(check("f32[10]=0.5", "sum:5", 0, 0).ok);
	assert_true(check("f64[10]=0.1", "sum:1", 0, 0).ok); /* compensated summation has no rounding error here */
	c = check("u64[2]=3", "sum:7", 0, 0);
	assert_false(c.ok);
	assert_string_equal(c.got, "6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_gpuload_run_line_of_a_file),
		cmocka_unit_test(splits_words_as_a_shell_does),
		cmocka_unit_test(uses_the_first_line_for_the_kernel),
		cmocka_unit_test(refuses_an_unterminated_quote),
		cmocka_unit_test(the_command_line_takes_precedence_over_the_file),
		cmocka_unit_test(refuses_invalid_options_and_arguments),
		cmocka_unit_test(refuses_a_file_line_that_writes_files_or_chooses_the_driver),
		cmocka_unit_test(accepts_only_arguments_that_fit_the_parameter),
		cmocka_unit_test(reports_a_wrong_number_of_arguments_with_the_signature),
		cmocka_unit_test(finds_the_first_wrong_element),
		cmocka_unit_test(compares_floats_with_the_given_tolerances),
		cmocka_unit_test(sums_integers_and_floats),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
