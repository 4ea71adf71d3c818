/* test_ptx_kernels.c — the kernels that PTX declares: parameters, limits, shared memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/image/kernels/kernels.h"
#include "ptx/module.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static gpul_status read_text(const char *text, gpul_kernel_table *t, gpul_error *err)
{
	const gpul_image image = { .kind = GPUL_IMAGE_PTX };

	return gpul_kernels_read(&image, text, strlen(text), t, err);
}

static void computes_parameter_offsets_as_the_driver_does(void **state)
{
	static const char text[] = HEAD ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 4 b,\n"
					".param .align 16 .b8 c[20], .param .f16 d, .param .v4 .f32 e, .param .f64 f[3],\n"
					".param .texref g) { ret; }\n";
	static const gpul_kernel_param wanted[] = {
		{ 0, 1, GPUL_PTX_MOD_U8 },    { 8, 8, GPUL_PTX_MOD_U64 },   { 16, 20, GPUL_PTX_MOD_B8 },    { 36, 2, GPUL_PTX_MOD_F16 },
		{ 48, 16, GPUL_PTX_MOD_F32 }, { 64, 24, GPUL_PTX_MOD_F64 }, { 88, 8, GPUL_PTX_MOD_TEXREF },
	};
	gpul_kernel_table t = { 0 };
	gpul_error err = { 0 };

	(void)state;
	read_text(text, &t, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(t.n, 1);
	assert_int_equal(t.at[0].n_params, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(t.at[0].params[i].offset, wanted[i].offset);
		assert_int_equal(t.at[0].params[i].bytes, wanted[i].bytes);
		assert_int_equal(t.at[0].params[i].type, wanted[i].type);
	}
	gpul_kernel_table_free(&t);
}

static void reads_limits_and_leaves_machine_code_numbers_unknown(void **state)
{
	static const char text[] = HEAD ".extern .entry declared();\n.func helper() { ret; }\n"
					".visible .entry a() .maxntid 128, 2 .reqnctapercluster 4 { ret; }\n"
					".entry b() .reqntid 32, 1, 3 { .shared .b8 x[5]; .shared .f64 y; ret; }\n";
	gpul_kernel_table t = { 0 };
	gpul_error err = { 0 };

	(void)state;
	read_text(text, &t, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(t.n, 2);
	assert_string_equal(t.at[0].name, "a");
	assert_false(t.at[0].is_static);
	assert_memory_equal(t.at[0].max_threads, ((uint32_t[]){ 128, 2, 1 }), 12);
	assert_memory_equal(t.at[0].required_threads, ((uint32_t[3]){ 0 }), 12);
	assert_memory_equal(t.at[0].cluster, ((uint32_t[]){ 4, 1, 1 }), 12);
	assert_int_equal(t.at[0].shared_bytes, 0);
	assert_string_equal(t.at[1].name, "b");
	assert_true(t.at[1].is_static);
	assert_memory_equal(t.at[1].required_threads, ((uint32_t[]){ 32, 1, 3 }), 12);
	assert_int_equal(t.at[1].shared_bytes, 16);
	assert_int_equal(t.at[1].registers, GPUL_NOT_RECORDED);
	assert_int_equal(t.at[1].frame_bytes, GPUL_NOT_RECORDED);
	assert_int_equal(t.at[1].const_bytes, GPUL_NOT_RECORDED);
	assert_int_equal(t.at[1].barriers, GPUL_NOT_RECORDED);
	gpul_kernel_table_free(&t);
}

static void counts_shared_memory_as_ptxas_does(void **state)
{
	static const char text[] = HEAD ".shared .b8 all[40];\n.extern .shared .align 32 .b8 dynamic[];\n"
					".entry none() { ret; }\n.entry one() { .shared .b8 x[65]; ret; }\n"
					".entry both() { .shared .b8 x[33]; st.shared.u8 [all], 1; ret; }\n";
	gpul_kernel_table t = { 0 };

	(void)state;
	assert_int_equal(read_text(text, &t, NULL), GPUL_OK);
	assert_int_equal(t.at[0].shared_bytes, 0);
	assert_int_equal(t.at[1].shared_bytes, 96); /* rounded up to 32, the alignment of the dynamic shared memory */
	assert_int_equal(t.at[2].shared_bytes, 96);
	gpul_kernel_table_free(&t);
}

static void refuses_text_that_is_not_ptx(void **state)
{
	gpul_kernel_table t = { 0 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(read_text("not PTX", &t, &err), GPUL_EFORMAT);
	assert_null(t.at);
	err = (gpul_error){ 0 };
	assert_int_equal(read_text(HEAD ".entry k(.param .u99 a) { ret; }", &t, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "4:"));
	assert_int_equal(read_text(HEAD, &t, NULL), GPUL_OK); /* a module without kernels is valid */
	assert_int_equal(t.n, 0);
}

static void lists_no_kernels_of_lto(void **state)
{
	const gpul_image image = { .kind = GPUL_IMAGE_LTO };
	gpul_kernel_table t = { 0 };

	(void)state;
	assert_int_equal(gpul_kernels_read(&image, "anything", 8, &t, NULL), GPUL_OK);
	assert_int_equal(t.n, 0);
	gpul_kernel_table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(computes_parameter_offsets_as_the_driver_does),
		cmocka_unit_test(reads_limits_and_leaves_machine_code_numbers_unknown),
		cmocka_unit_test(counts_shared_memory_as_ptxas_does),
		cmocka_unit_test(refuses_text_that_is_not_ptx),
		cmocka_unit_test(lists_no_kernels_of_lto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
