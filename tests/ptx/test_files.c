/* test_files.c — whole PTX files: valid files are equal after printing and parsing again; invalid files give the expected error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glob.h>

#include <cmocka.h>

#include "ptx/module.h"

static char *read_file(const char *path, size_t *n_bytes)
{
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	long end = ftell(f);
	assert_true(end >= 0);
	rewind(f);
	char *text = malloc((size_t)end + 1);
	assert_non_null(text);
	*n_bytes = fread(text, 1, (size_t)end, f);
	assert_int_equal(*n_bytes, end);
	text[end] = 0;
	fclose(f);
	return text;
}

/* Call check() for each file; fail if there are fewer than `least`. */
static void each_file(const char *pattern, size_t least, void (*check)(const char *path))
{
	glob_t files;

	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= least);
	for (size_t i = 0; i < files.gl_pathc; i++)
		check(files.gl_pathv[i]);
	globfree(&files);
}

static gpul_ptx_module *parse(const char *text, size_t n_bytes, const char *path)
{
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	if (gpul_ptx_parse(text, n_bytes, path, &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(err.status, GPUL_OK);
	return m;
}

static void check_round_trip(const char *path)
{
	size_t n_bytes, n_printed;
	char *text = read_file(path, &n_bytes), *printed = NULL;
	gpul_ptx_module *m = parse(text, n_bytes, path), *again;

	assert_int_equal(gpul_ptx_print(m, &printed, &n_printed, NULL), GPUL_OK);
	assert_int_equal(strlen(printed), n_printed);
	again = parse(printed, n_printed, path);
	if (!gpul_ptx_module_equal(m, again))
		fail_msg("%s: not the same after printing", path);
	gpul_ptx_module_destroy(m);
	gpul_ptx_module_destroy(again);
	free(printed);
	free(text);
}

static void unusual_valid_files_are_equal_after_printing_and_parsing(void **state)
{
	(void)state;
	each_file("tests/ptx/good/*.ptx", 10, check_round_trip);
}

static void files_of_nvcc_are_equal_after_printing_and_parsing(void **state)
{
	(void)state;
	each_file("tests/corpus/ptx/*.ptx", 10, check_round_trip);
	each_file(GPUL_KERNELS "/tests/corpus/*.ptx", 60, check_round_trip);
}

/* The first line of the file is "// expect: TEXT"; the error message must contain the text. */
static void check_message(const char *path)
{
	size_t n_bytes;
	char *text = read_file(path, &n_bytes), expected[256];
	const char *name = strrchr(path, '/') + 1; /* a message shortens a long name */
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	assert_int_equal(sscanf(text, "// expect: %255[^\n]", expected), 1);
	assert_int_equal(gpul_ptx_parse(text, n_bytes, name, &m, &err), GPUL_EFORMAT);
	assert_null(m);
	if (!strstr(err.text, expected))
		fail_msg("%s: expected \"%s\", got \"%s\"", name, expected, err.text);
	assert_memory_equal(err.text, name, strlen(name));
	assert_in_range(err.native, 0, n_bytes);
	/* the message's second line quotes the file, and the third has a caret below the column */
	const char *quote = strchr(err.text, '\n'), *caret = quote ? strchr(quote + 1, '\n') : NULL;
	assert_non_null(caret);
	assert_int_equal(caret[strlen(caret) - 1], '^');
	free(text);
}

static void reports_each_error_at_its_line_and_column(void **state)
{
	(void)state;
	each_file(GPUL_KERNELS "/tests/ptx/bad/*.ptx", 50, check_message);
}

/* Each shortened text ends at the end of its allocation, so that a sanitizer detects a read past the end. */
static void check_cuts(const char *path)
{
	size_t n_bytes;
	char *text = read_file(path, &n_bytes);

	for (size_t n = 0; n < n_bytes; n++) {
		char *cut = malloc(n ? n : 1);
		gpul_ptx_module *m = NULL;
		gpul_error err = { 0 };

		assert_non_null(cut);
		memcpy(cut, text, n);
		gpul_status st = gpul_ptx_parse(cut, n, path, &m, &err);
		assert_int_equal(st, err.status);
		assert_true((m != NULL) == (st == GPUL_OK));
		gpul_ptx_module_destroy(m);
		free(cut);
	}
	free(text);
}

static void parses_or_refuses_a_file_that_is_cut_at_any_byte(void **state)
{
	(void)state;
	each_file("tests/ptx/good/*.ptx", 10, check_cuts);
}

static void a_message_fits_with_a_long_file_name_and_a_long_line(void **state)
{
	static char name[2000], text[5000];
	gpul_ptx_module *m = NULL;

	(void)state;
	memset(name, 'n', sizeof name - 1);
	for (size_t n_name = 0; n_name < 300; n_name += 7)
		for (size_t column = 0; column < 400; column += 13) {
			gpul_error err = { 0 };
			int n = snprintf(text, sizeof text, ".version 8.0\n%*s?\t%*s\n", (int)column, "", 300, "x");

			assert_int_equal(gpul_ptx_parse(text, (size_t)n, name + sizeof name - 1 - n_name, &m, &err), GPUL_EFORMAT);
			assert_non_null(strstr(err.text, "expected .target"));
			assert_null(strchr(err.text, '\t'));
		}
	/* err may be NULL */
	assert_int_equal(gpul_ptx_parse("", 0, "empty", &m, NULL), GPUL_EFORMAT);
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unusual_valid_files_are_equal_after_printing_and_parsing),
		cmocka_unit_test(files_of_nvcc_are_equal_after_printing_and_parsing),
		cmocka_unit_test(reports_each_error_at_its_line_and_column),
		cmocka_unit_test(parses_or_refuses_a_file_that_is_cut_at_any_byte),
		cmocka_unit_test(a_message_fits_with_a_long_file_name_and_a_long_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
