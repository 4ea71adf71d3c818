/* test_files.c — whole PTX files: good ones survive parse, print, parse; bad ones are explained. */
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

/* Calls check for each file; fails unless there are at least `least`. */
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

static void odd_but_legal_forms_survive_parse_print_parse(void **state)
{
	(void)state;
	each_file("tests/ptx/good/*.ptx", 10, check_round_trip);
}

static void what_nvcc_writes_survives_parse_print_parse(void **state)
{
	(void)state;
	each_file("tests/corpus/ptx/*.ptx", 40, check_round_trip);
}

/* The first line says what must be in the message: // expect: text */
static void check_message(const char *path)
{
	size_t n_bytes;
	char *text = read_file(path, &n_bytes), expected[256];
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	assert_int_equal(sscanf(text, "// expect: %255[^\n]", expected), 1);
	assert_int_equal(gpul_ptx_parse(text, n_bytes, path, &m, &err), GPUL_EFORMAT);
	assert_null(m);
	if (!strstr(err.text, expected))
		fail_msg("%s: expected \"%s\", got \"%s\"", path, expected, err.text);
	assert_memory_equal(err.text, path, strlen(path));
	assert_in_range(err.native, 0, n_bytes);
	/* the second line quotes the file, the third points at the column */
	const char *quote = strchr(err.text, '\n'),
		   *caret = quote ? strchr(quote + 1, '\n') : NULL;
	assert_non_null(caret);
	assert_int_equal(caret[strlen(caret) - 1], '^');
	free(text);
}

static void each_mistake_is_explained_at_its_place(void **state)
{
	(void)state;
	each_file("tests/ptx/bad/*.ptx", 50, check_message);
}

/* The text lies at the end of its own block, so that a sanitizer sees a read beyond it. */
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

static void a_file_cut_anywhere_is_parsed_or_refused(void **state)
{
	(void)state;
	each_file("tests/ptx/good/*.ptx", 10, check_cuts);
}

static void the_message_has_room_for_any_file_name_and_line(void **state)
{
	static char name[2000], text[5000];
	gpul_ptx_module *m = NULL;

	(void)state;
	memset(name, 'n', sizeof name - 1);
	for (size_t n_name = 0; n_name < 300; n_name += 7)
		for (size_t column = 0; column < 400; column += 13) {
			gpul_error err = { 0 };
			int n = snprintf(text, sizeof text, ".version 8.0\n%*s?\t%*s\n",
					 (int)column, "", 300, "x");

			assert_int_equal(gpul_ptx_parse(text, (size_t)n,
							name + sizeof name - 1 - n_name, &m,
							&err),
					 GPUL_EFORMAT);
			assert_non_null(strstr(err.text, "expected .target"));
			assert_null(strchr(err.text, '\t'));
		}
	/* and nobody needs to ask why */
	assert_int_equal(gpul_ptx_parse("", 0, "empty", &m, NULL), GPUL_EFORMAT);
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_but_legal_forms_survive_parse_print_parse),
		cmocka_unit_test(what_nvcc_writes_survives_parse_print_parse),
		cmocka_unit_test(each_mistake_is_explained_at_its_place),
		cmocka_unit_test(a_file_cut_anywhere_is_parsed_or_refused),
		cmocka_unit_test(the_message_has_room_for_any_file_name_and_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
