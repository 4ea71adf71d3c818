/* test_forms.c — tests the comparison of two drivers' results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/gpu/form_oracle.h"

static bool agrees(form_check check, double bound, uint64_t a, uint64_t b, size_t bytes)
{
	struct form f = { .check = check, .bound = bound, .out_bytes = bytes };

	return form_row_agrees(&f, &a, &b);
}

static void form_bits_requires_equal_bits(void **state)
{
	(void)state;
	assert_true(agrees(FORM_BITS, 0, 0x7fffffff, 0x7fffffff, 4));
	assert_false(agrees(FORM_BITS, 0, 0x7fffffff, 0x7fc00000, 4)); /* both NaN, with different bits */
	assert_false(agrees(FORM_BITS, 0, 0x100000000, 0, 8));
	assert_true(agrees(FORM_BITS, 0, 0x100000000, 0, 4)); /* bytes after the row are ignored */
}

static void counts_ulp_across_zero_and_powers_of_two(void **state)
{
	(void)state;
	assert_true(agrees(FORM_F32, 1, 0x3f800000, 0x3f7fffff, 4)); /* 1 and the next lower number */
	assert_false(agrees(FORM_F32, 1, 0x3f800000, 0x3f7ffffe, 4));
	assert_true(agrees(FORM_F32, 2, 0x00000001, 0x80000001, 4)); /* the smallest subnormal number and its negative */
	assert_false(agrees(FORM_F32, 1, 0x00000001, 0x80000001, 4));
	assert_true(agrees(FORM_F64, 0, 0x8000000000000000, 0, 8));  /* -0 and 0 */
	assert_true(agrees(FORM_F16, 1, 0x3c003c00, 0x3c013bff, 4)); /* two elements in a row */
	assert_false(agrees(FORM_BF16, 1, 0x3f803f80, 0x3f803f82, 4));
}

static void nan_equals_nan_and_infinity_equals_itself(void **state)
{
	(void)state;
	assert_true(agrees(FORM_F32, 0, 0x7fffffff, 0xffc00000, 4));
	assert_false(agrees(FORM_F32, 1e9, 0x7fffffff, 0x3f800000, 4));
	assert_false(agrees(FORM_F16, 100, 0x7c01, 0x7c00, 2)); /* NaN and infinity, whose bits differ by one */
	assert_true(agrees(FORM_F32_ABS, 0, 0x7f800000, 0x7f800000, 4));
	assert_false(agrees(FORM_F32_ABS, 1e30, 0x7f800000, 0xff800000, 4));
}

static void compares_with_an_absolute_bound(void **state)
{
	(void)state;
	assert_true(agrees(FORM_F32_ABS, 1e-6, 0x00000000, 0x35800000, 4)); /* 0 and 2^-20, which is 9.5e-7 */
	assert_false(agrees(FORM_F32_ABS, 9e-7, 0x00000000, 0x35800000, 4));
}

static void finds_each_form_in_a_dump_by_its_whole_name(void **state)
{
	char path[] = "/tmp/gpuload-dump-XXXXXX";
	static const char text[] = "add_f32 ok 5\n1\n23\nadd refused 0: cuModuleLoadData(...): no\nadd_f3 ok 1\nx";
	struct form_dump d;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
	close(fd);
	assert_int_equal(form_dump_open(path, &d, NULL), GPUL_OK);
	assert_memory_equal(form_dump_find(&d, "add_f32").bytes, "1\n23\n", 5);
	assert_memory_equal(form_dump_find(&d, "add_f3").bytes, "x", 1);
	struct form_result refused = form_dump_find(&d, "add");
	assert_null(refused.bytes);
	assert_memory_equal(refused.why, "refused 0: cuModuleLoadData", 27);
	assert_null(form_dump_find(&d, "add_f").bytes);
	form_dump_close(&d);
	unlink(path);
}

/* Write a form's line, change it, and compare the result with it. */
static void compares_a_result_with_the_line_of_a_gpu(void **state)
{
	static const uint32_t operands[4] = { 1, 2, 3, 1 }; /* the last row repeats row 0 */
	uint32_t result[4] = { 0x3f800000, 0x40000000, 0x40400000, 0x3f800000 };
	struct form f = { .name = "rcp",
			  .rows = 4,
			  .in_bytes = 4,
			  .out_bytes = 4,
			  .check = FORM_BITS,
			  .ptx = { .bytes = "ptx", .n_bytes = 3 },
			  .in = { .bytes = operands, .n_bytes = 16 } };
	char *text = NULL;
	size_t n;

	(void)state;
	for (f.check = FORM_BITS; f.check <= FORM_F32; f.check += FORM_F32) {
		FILE *to = open_memstream(&text, &n);

		f.bound = 1;
		fputs("# comment\nrcp_ 0 bits 0\n", to);
		form_oracle_write(to, &f, result);
		fclose(to);
		assert_int_equal(form_oracle_compare(text, &f, result), FORM_AGREES);
		result[1] ^= 1; /* one ULP */
		assert_int_equal(form_oracle_compare(text, &f, result), f.check == FORM_BITS ? FORM_DIFFERS : FORM_AGREES);
		result[1] ^= 3; /* two ULP and more */
		assert_int_equal(form_oracle_compare(text, &f, result), FORM_DIFFERS);
		result[1] ^= 2;
		f.in.n_bytes = 12;
		assert_int_equal(form_oracle_compare(text, &f, result), FORM_OUTDATED);
		f.in.n_bytes = 16;
		assert_int_equal(form_oracle_compare("# comment\nrcp_ 0 bits 0\n", &f, result), FORM_UNKNOWN);
		text[n - 3] = text[n - 3] == '0' ? 'f' : '0';
		assert_int_equal(form_oracle_compare(text, &f, result), FORM_DIFFERS);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(form_bits_requires_equal_bits),
		cmocka_unit_test(counts_ulp_across_zero_and_powers_of_two),
		cmocka_unit_test(nan_equals_nan_and_infinity_equals_itself),
		cmocka_unit_test(compares_with_an_absolute_bound),
		cmocka_unit_test(finds_each_form_in_a_dump_by_its_whole_name),
		cmocka_unit_test(compares_a_result_with_the_line_of_a_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
