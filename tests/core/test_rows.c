/* test_rows.c — text files with one row per line and columns that are separated by commas. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/file/rows.h"

static char path[] = "/tmp/gpuload-test-rows-XXXXXX";

static void write_bytes(const char *text, size_t n)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

struct found {
	unsigned n;
	char name[8];
	uint64_t ranks;
	double us;
};

static gpul_status take(const gpul_rows *r, char *const *field, void *context)
{
	struct found *f = context;
	gpul_status st = gpul_rows_text(r, "name", field[0], f->name, sizeof f->name);

	st = st ? st : gpul_rows_number(r, "ranks", field[1], 2, 32, &f->ranks);
	st = st ? st : gpul_rows_decimal(r, "us", field[2], &f->us);
	f->n += !st;
	return st;
}

static gpul_status read_text(const char *text, struct found *f, gpul_error *err)
{
	*f = (struct found){ 0 };
	write_bytes(text, strlen(text));
	return gpul_rows_read(path, "name,ranks,us", take, f, err);
}

static void rows_are_read_in_order_with_and_without_a_last_newline(void **state)
{
	gpul_error err = { 0 };
	struct found f;

	(void)state;
	assert_int_equal(read_text("name,ranks,us\na,2,0\nb,32,1.5e3\n", &f, &err), GPUL_OK);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.name, "b");
	assert_int_equal(f.ranks, 32);
	assert_true(f.us > 1499 && f.us < 1501);
	assert_int_equal(read_text("name,ranks,us\na,2,0\nc,3,4", &f, &err), GPUL_OK);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.name, "c");
	assert_int_equal(read_text("name,ranks,us", &f, &err), GPUL_OK);
	assert_int_equal(f.n, 0);
}

static void a_wrong_row_is_named_by_its_line(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "name,ranks\n", ":1: the first line must be this header: name,ranks,us" },
		{ "name,ranks,us\na,2\n", ":2: the line has 2 columns instead of 3: name,ranks,us" },
		{ "name,ranks,us\na,2,3\na,2,3,\n", ":3: the line has 4 columns instead of 3" },
		{ "name,ranks,us\n\n", ":2: the line has 1 columns instead of 3" },
		{ "name,ranks,us\n,2,3\n", ":2: name '': the column is empty" },
		{ "name,ranks,us\neightchr,2,3\n", ":2: name 'eightchr': the text is too long" },
		{ "name,ranks,us\na,1,3\n", ":2: ranks '1': expected a number from 2 to 32" },
		{ "name,ranks,us\na,33,3\n", ":2: ranks '33': expected a number from 2 to 32" },
		{ "name,ranks,us\na,99999999999999999999999,3\n", ":2: ranks '99999999999999999999999': expected a decimal number" },
		{ "name,ranks,us\na,2x,3\n", ":2: ranks '2x': expected a decimal number" },
		{ "name,ranks,us\na,2,-1\n", ":2: us '-1': expected a number of at least 0" },
		{ "name,ranks,us\na,2,nan\n", ":2: us 'nan': expected a number of at least 0" },
		{ "name,ranks,us\na,2,1e99\n", ":2: us '1e99': expected a number of at least 0" },
		{ "name,ranks,us\na,2,1 \n", ":2: us '1 ': expected a number of at least 0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_error err = { 0 };
		struct found f;

		assert_int_equal(read_text(cases[i].text, &f, &err), GPUL_EFORMAT);
		if (!strstr(err.text, cases[i].message) || strncmp(err.text, path, strlen(path)) != 0)
			fail_msg("'%s' should contain '%s'", err.text, cases[i].message);
	}
}

static void lines_that_are_no_text_are_refused(void **state)
{
	char longest[14 + 600] = "name,ranks,us\n";
	gpul_error err = { 0 };
	struct found f = { 0 };

	(void)state;
	memset(longest + 14, 'a', 600);
	write_bytes(longest, sizeof longest);
	assert_int_equal(gpul_rows_read(path, "name,ranks,us", take, &f, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, ":2: the line is longer than 511 bytes"));
	write_bytes("name,ranks,us\na,\0,3\n", 20);
	assert_int_equal(gpul_rows_read(path, "name,ranks,us", take, &f, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, ":2: the line is longer than"));
	assert_int_equal(gpul_rows_read("/nowhere/at/all", "a", take, &f, &err), GPUL_ESYS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read_in_order_with_and_without_a_last_newline),
		cmocka_unit_test(a_wrong_row_is_named_by_its_line),
		cmocka_unit_test(lines_that_are_no_text_are_refused),
	};
	const int fd = mkstemp(path);
	int failed;

	if (fd < 0 || close(fd))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
