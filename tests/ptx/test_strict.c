/* test_strict.c — the strict check: each form in strict/forms.txt gives its expected verdict and reason; nvcc's PTX is never
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glob.h>

#include <cmocka.h>

#include "ptx/strict/strict.h"

enum { TEXT_BYTES = 8192 };

/* This text must equal the text in test_strict_ptxas.py. */
static const char head[] = ".version %s\n.target %s\n.address_size 64\n"
			   ".global .align 16 .b8 gl[64];\n%s\n.visible .entry k(.param .u64 pa)\n{\n"
			   ".reg .pred p<4>; .reg .b16 h<4>; .reg .b32 r<10>;\n.reg .b64 d<5>; .reg .f32 f<8>; .reg .f64 e<4>;\n"
			   ".reg .u32 u<4>; .reg .s32 s<4>;\n.shared .b8 sm[64];\n\n\t%s\n\tret;\n}\n";

static void replace(char *text, const char *from, char to)
{
	for (char *at; (at = strstr(text, from));) {
		*at = to;
		memmove(at + 1, at + strlen(from), strlen(at + strlen(from)) + 1);
	}
}

/* Replace the escapes \xe9 and \v by their bytes. */
static void unescape(char *text)
{
	replace(text, "\\v", '\v');
	for (char *at; (at = strstr(text, "\\x"));) {
		char digits[3] = { at[2], at[3], 0 }, from[5] = { '\\', 'x', at[2], at[3], 0 };

		replace(at, from, (char)strtol(digits, NULL, 16));
	}
}

/* Check a text; *err has the reason of a refusal. */
static gpul_status check(const char *text, size_t n_bytes, const char *name, gpul_error *err)
{
	gpul_ptx_module *m = NULL;
	gpul_status st = gpul_ptx_parse(text, n_bytes, name, &m, err);

	if (!st)
		st = gpul_ptx_check_strict(m, text, n_bytes, name, GPUL_PTX_NEWEST, err);
	gpul_ptx_module_destroy(m);
	return st;
}

static bool check_line(char *line)
{
	char version[16], target[16], text[TEXT_BYTES], *form = strchr(line, '|') + 2, *verdict = strstr(form, " | ");
	gpul_error err = { 0 };
	bool declaration = *form == '<';
	size_t n;

	for (char *next; (next = strstr(verdict + 3, " | "));)
		verdict = next;
	assert_int_equal(sscanf(line, "%15s %15s", version, target), 2);
	*verdict = '\0';
	verdict += 3;
	unescape(form);
	if (declaration) {
		form[strlen(form) - 1] = '\0';
		form++;
	}
	n = (size_t)snprintf(text, sizeof text, head, version, target, declaration ? form : "", declaration ? "" : form);
	check(text, n, "x.ptx", &err);
	if (!strcmp(verdict, "ok") ? err.status : !strstr(err.text, verdict)) {
		print_error("%s %s %s: expected '%s', got '%s'\n", version, target, form, verdict, err.text);
		return false;
	}
	if (err.status && !strchr(form, '\v') && !declaration && strstr(err.text, "operand "))
		assert_non_null(strstr(err.text, "x.ptx:13:2: "));
	return true;
}

static void each_form_has_its_verdict_and_reason(void **state)
{
	FILE *f = fopen("tests/ptx/strict/forms.txt", "r");
	char line[512];
	unsigned n = 0, wrong = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line || *line == '#')
			continue;
		wrong += !check_line(line);
		n++;
	}
	fclose(f);
	assert_int_equal(wrong, 0);
	assert_true(n > 150);
}

static void ptx_of_nvcc_is_accepted(void **state)
{
	static const char *const folders[] = { "tests/corpus/ptx/*.ptx", GPUL_KERNELS "/tests/corpus/*.ptx",
					       GPUL_KERNELS "/comm/kernels/*.ptx", "demo/*.ptx", GPUL_KERNELS "/cli/kernels/*.ptx" };

	(void)state;
	for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
		glob_t files;

		assert_int_equal(glob(folders[k], 0, NULL, &files), 0);
		for (size_t i = 0; i < files.gl_pathc; i++) {
			FILE *f = fopen(files.gl_pathv[i], "rb");
			char *text = NULL;
			size_t room = 0;
			gpul_error err = { 0 };

			assert_non_null(f);
			ssize_t n = getdelim(&text, &room, 0, f);
			fclose(f);
			assert_true(n > 0);
			if (check(text, (size_t)n, files.gl_pathv[i], &err))
				fail_msg("%s", err.text);
			free(text);
		}
		globfree(&files);
	}
}

static void the_newest_version_follows_cuda(void **state)
{
	static const struct {
		int cuda;
		unsigned version;
	} rows[] = {
		{ 11000, 70 }, { 11080, 78 }, { 12000, 80 }, { 12060, 85 }, { 12080, 87 },
		{ 12090, 88 }, { 13000, 90 }, { 13010, 91 }, { 13040, 94 },
	};
	static const char text[] = ".version 8.7\n.target sm_75\n.address_size 64\n.entry k() { ret; }\n";
	gpul_ptx_module *m = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(gpul_ptx_newest_of_cuda(rows[i].cuda), rows[i].version);
	assert_int_equal(gpul_ptx_parse(text, sizeof text - 1, "x.ptx", &m, NULL), GPUL_OK);
	assert_int_equal(gpul_ptx_check_strict(m, text, sizeof text - 1, "x.ptx", 85, NULL), GPUL_EUNSUPPORTED);
	assert_int_equal(gpul_ptx_check_strict(m, text, sizeof text - 1, "x.ptx", 87, NULL), GPUL_OK);
	gpul_ptx_module_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_has_its_verdict_and_reason),
		cmocka_unit_test(ptx_of_nvcc_is_accepted),
		cmocka_unit_test(the_newest_version_follows_cuda),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
