/* test_cubin_ptx.c — the PTX that ptxas keeps in a cubin with line information. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/image/images.h"
#include "tests/loader/image/forge.h"

static const char first[] = ".version 7.5\0\0.target sm_75\0.address_size 64", second[] = "two";
static forge made;

static void make_texts(void)
{
	unsigned symbol, i;

	forge_start(&made, false, 90, false);
	forge_kernel(&made, "k", &symbol);
	i = forge_section(&made, ".nv_debug_ptx_txt.3613893826", SHT_PROGBITS, 0, sizeof first);
	made.content[i] = first;
	i = forge_section(&made, ".nv_debug_ptx_txt", SHT_PROGBITS, 0, sizeof second);
	made.content[i] = second;
	forge_finish(&made);
}

static gpul_status read_text(size_t index, char **text, size_t *text_bytes, gpul_error *err)
{
	return gpul_cubin_ptx(made.bytes, made.n_bytes, index, text, text_bytes, err);
}

static void reads_the_text_of_each_unit(void **state)
{
	size_t n;
	char *text;

	(void)state;
	make_texts();
	assert_int_equal(read_text(0, &text, &n, NULL), GPUL_OK);
	assert_string_equal(text, ".version 7.5\n\n.target sm_75\n.address_size 64\n");
	assert_int_equal(n, sizeof first);
	free(text);
	assert_int_equal(read_text(1, &text, &n, NULL), GPUL_OK);
	assert_string_equal(text, "two\n");
	free(text);
	assert_int_equal(read_text(2, &text, &n, NULL), GPUL_OK);
	assert_null(text);
}

static void a_cubin_without_line_information_has_no_text(void **state)
{
	unsigned symbol;
	size_t n;
	char *text;

	(void)state;
	forge_start(&made, true, 75, false);
	forge_kernel(&made, "k", &symbol);
	forge_finish(&made);
	assert_int_equal(read_text(0, &text, &n, NULL), GPUL_OK);
	assert_null(text);
}

static void refuses_a_text_outside_the_image(void **state)
{
	gpul_error err = { 0 };
	size_t n;
	char *text;

	(void)state;
	make_texts();
	forge_header_of(&made, 5)->sh_size = made.n_bytes;
	assert_int_equal(read_text(0, &text, &n, &err), GPUL_EFORMAT);
	assert_string_equal(err.text, "section 5 of the cubin, its PTX, is outside the image");
}

static void survives_a_cubin_truncated_at_any_byte(void **state)
{
	(void)state;
	make_texts();
	for (size_t n_bytes = 0; n_bytes < made.n_bytes; n_bytes++) {
		unsigned char *exact = malloc(n_bytes + 1); /* exactly this size, so that ASan detects a read beyond the end */
		char *text = NULL;
		size_t n;

		assert_non_null(exact);
		memcpy(exact + 1, made.bytes, n_bytes);
		if (!gpul_cubin_ptx(exact + 1, n_bytes, 0, &text, &n, NULL))
			free(text);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_text_of_each_unit),
		cmocka_unit_test(a_cubin_without_line_information_has_no_text),
		cmocka_unit_test(refuses_a_text_outside_the_image),
		cmocka_unit_test(survives_a_cubin_truncated_at_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
