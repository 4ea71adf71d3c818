/* test_npy.c — .npy headers: writing and reading type and shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/lib/npy.h"

static void a_header_contains_the_type_and_the_shape(void **state)
{
	(void)state;
	for (gpul_type t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++) {
		for (unsigned n_dims = 0; n_dims <= NPY_MAX_DIMS; n_dims++) {
			const uint64_t dim[NPY_MAX_DIMS] = { 1, 20000000000, 3, 7 };
			char header[NPY_HEADER_BYTES];
			struct npy_about about;
			gpul_error err = { 0 };
			size_t n = npy_header(t, dim, n_dims, header);

			assert_int_equal(n % 64, 0);
			assert_int_equal(header[n - 1], '\n');
			if (npy_describe(header, n, "x.npy", &about, &err))
				fail_msg("%s", err.text);
			assert_int_equal(about.n_dims, n_dims);
			assert_memory_equal(about.dim, dim, n_dims * sizeof *dim);
			/* NumPy has no bf16: the bits are stored as u16. */
			assert_int_equal(about.type, t == GPUL_BF16 ? GPUL_U16 : t);
		}
	}
}

static void the_largest_shape_fits_into_a_header(void **state)
{
	const uint64_t dim[] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	char header[NPY_HEADER_BYTES];
	size_t n = npy_header(GPUL_F64, dim, NPY_MAX_DIMS, header);

	(void)state;
	assert_int_equal(n, NPY_HEADER_BYTES);
	assert_non_null(memmem(header, n, "18446744073709551615), }", 24));
}

static void refuses_a_header_truncated_at_any_byte(void **state)
{
	const uint64_t dim[] = { 3, 4 };
	char header[NPY_HEADER_BYTES];
	size_t n = npy_header(GPUL_I32, dim, 2, header);

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		struct npy_about about;
		gpul_error err = { 0 };
		char *exact = malloc(cut + 1); /* exactly this size, so that AddressSanitizer finds reads past the end */

		assert_non_null(exact);
		memcpy(exact, header, cut);
		exact = realloc(exact, cut ? cut : 1);
		assert_int_equal(npy_describe(exact, cut, "x.npy", &about, &err), GPUL_EFORMAT);
		free(exact);
	}
}

static void refuses_elements_that_are_not_plain_numbers(void **state)
{
	static const struct {
		const char *was, *is, *why;
	} rows[] = {
		{ "'<i4'", "'>i4'", "not plain little-endian numbers" }, { "'<i4'", "'<U9'", "not plain little-endian numbers" },
		{ "'<i4'", "[('a'", "not plain little-endian numbers" }, { "(3, 4)", "(x, 4)", "not a .npy header" },
		{ "'shape'", "'shepa'", "not a .npy header" },           { "(3, 4)", "(3,4,5,6,7)", "5 dimensions" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const uint64_t dim[] = { 3, 4 };
		char header[NPY_HEADER_BYTES];
		size_t n = npy_header(GPUL_I32, dim, 2, header);
		char *at = memmem(header, n, rows[i].was, strlen(rows[i].was));
		struct npy_about about;
		gpul_error err = { 0 };

		assert_non_null(at);
		memcpy(at, rows[i].is, strlen(rows[i].is));
		assert_int_equal(npy_describe(header, n, "x.npy", &about, &err), GPUL_EFORMAT);
		if (!strstr(err.text, rows[i].why))
			fail_msg("expected '%s' in: %s", rows[i].why, err.text);
	}
}

static void every_type_converts_to_a_dtype_and_back(void **state)
{
	(void)state;
	for (gpul_type t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++)
		assert_int_equal(npy_type(npy_dtype(t)), t);
	assert_string_equal(npy_dtype(GPUL_TYPE_NONE), "");
	assert_int_equal(npy_type(""), GPUL_TYPE_NONE);
	assert_int_equal(npy_type("<c8"), GPUL_TYPE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_contains_the_type_and_the_shape), cmocka_unit_test(the_largest_shape_fits_into_a_header),
		cmocka_unit_test(refuses_a_header_truncated_at_any_byte),   cmocka_unit_test(refuses_elements_that_are_not_plain_numbers),
		cmocka_unit_test(every_type_converts_to_a_dtype_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
