/* test_cubin.c — the kernels of cubins of both ABIs, linked and not; and of damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/image/kernels.h"
#include "tests/loader/image/forge.h"

#define NV_INFO 0x70000000

static forge made;

/* One kernel with two parameters, 300 floats of shared memory, 13 registers. */
static void make_one(bool older, unsigned sm, bool relocatable)
{
	const uint32_t first[] = { 0, 0, 0x21f000 }, second[] = { 0, 0x80001, 0x11f000 };
	const uint32_t threads[] = { 256, 1, 1 }, cluster[] = { 2, 1, 1 };
	unsigned symbol, text, info, shared = 1200;

	forge_start(&made, older, sm, relocatable);
	text = forge_kernel(&made, "_Z3addPfi", &symbol);
	if (older)
		made.sections[text].sh_flags |= 3 << 20;
	info = forge_section(&made, ".nv.info", NV_INFO, 0, 0);
	forge_numbers(&made, info, 0x2f, 2, (uint32_t[]){ symbol, 13 });
	forge_numbers(&made, info, 0x11, 2, (uint32_t[]){ symbol, 64 });
	forge_numbers(&made, info, 0x12, 2, (uint32_t[]){ symbol, 64 });
	info = forge_section(&made, ".nv.info._Z3addPfi", NV_INFO, text, 0);
	forge_numbers(&made, info, 0x17, 3, second);
	forge_numbers(&made, info, 0x17, 3, first);
	forge_numbers(&made, info, 0x05, 3, threads);
	forge_numbers(&made, info, 0x3d, 3, cluster);
	forge_value(&made, info, 3, 0x1b, 255);
	if (!older)
		forge_value(&made, info, 2, 0x4c, 3);
	if (!relocatable && sm >= 90)
		shared += 1024;
	forge_section(&made, ".nv.shared._Z3addPfi", SHT_NOBITS, text, shared);
	forge_section(&made, ".nv.constant0._Z3addPfi", SHT_PROGBITS, text, 540);
	forge_finish(&made);
}

static gpul_status read_made(gpul_kernel_table *t, gpul_error *err)
{
	const gpul_image image = { .kind = GPUL_IMAGE_CUBIN };
	unsigned char *exact = malloc(made.n_bytes ? made.n_bytes : 1);
	gpul_status st;

	assert_non_null(exact);
	memcpy(exact, made.bytes, made.n_bytes); /* so that ASan sees a read beyond the end */
	st = gpul_kernels_read(&image, exact, made.n_bytes, t, err);
	free(exact);
	return st;
}

static void check_one(void)
{
	gpul_kernel_table t = { 0 };
	gpul_error err = { 0 };
	const gpul_kernel_info *k;

	assert_int_equal(read_made(&t, &err), GPUL_OK);
	assert_int_equal(t.n, 1);
	k = &t.at[0];
	assert_string_equal(k->name, "_Z3addPfi");
	assert_int_equal(k->n_params, 2);
	assert_int_equal(k->params[0].offset, 0);
	assert_int_equal(k->params[0].bytes, 8);
	assert_int_equal(k->params[1].offset, 8);
	assert_int_equal(k->params[1].bytes, 4);
	assert_int_equal(k->registers, 13);
	assert_int_equal(k->local_bytes, 64);
	assert_int_equal(k->shared_bytes, 1200);
	assert_int_equal(k->const_bytes, 540);
	assert_int_equal(k->barriers, 3);
	assert_int_equal(k->max_threads[0], 256);
	assert_int_equal(k->required_threads[0], 0);
	assert_int_equal(k->cluster[0], 2);
	assert_false(k->is_static);
	gpul_kernel_table_free(&t);
}

static void reads_a_kernel_of_either_abi(void **state)
{
	(void)state;
	for (int older = 0; older < 2; older++)
		for (int relocatable = 0; relocatable < 2; relocatable++) {
			const unsigned sms[] = { 75, 80, 90, 120 };

			for (size_t i = 0; i < 4; i++) {
				make_one(older, sms[i], relocatable);
				check_one();
			}
		}
}

/* The suffix of a cubin with these e_flags and, compat not being 0, that attribute 9. */
static char suffix_of(bool older, unsigned sm, uint32_t e_flags, unsigned compat)
{
	bool relocatable = false;
	char suffix = '?';
	uint16_t told = 0;

	forge_start(&made, older, sm, false);
	made.header.e_flags = e_flags;
	if (compat)
		forge_value(&made, forge_section(&made, ".nv.compat", NV_INFO + 0x86, 0, 0), 2, 9,
			    compat);
	forge_finish(&made);
	assert_int_equal(gpul_cubin_target(made.bytes, made.n_bytes, &told, &suffix, &relocatable,
					   NULL), GPUL_OK);
	assert_int_equal(told, sm);
	return suffix;
}

/* e_flags as ptxas 11.8, 12.9 and 13.0 wrote them for these targets. */
static void tells_architecture_specific_code_of_each_generation(void **state)
{
	(void)state;
	assert_int_equal(suffix_of(true, 60, 0x23053c, 0), 0);
	assert_int_equal(suffix_of(true, 90, 0x5a055a, 0), 0);
	assert_int_equal(suffix_of(true, 90, 0x5a0d5a, 0), 'a');
	assert_int_equal(suffix_of(false, 100, 0x6006402, 0), 0);
	assert_int_equal(suffix_of(false, 100, 0x600640a, 0), 'a');
	assert_int_equal(suffix_of(false, 90, 0x6005a04, 1), 'a');
	assert_int_equal(suffix_of(false, 100, 0x6006402, 1), 'a');
}

static void survives_a_cut_at_every_byte(void **state)
{
	(void)state;
	make_one(false, 90, false);
	while (made.n_bytes > 0) {
		gpul_kernel_table t = { 0 };
		gpul_error err = { 0 };

		made.n_bytes--;
		assert_int_equal(read_made(&t, &err), GPUL_EFORMAT);
		assert_non_null(strstr(err.text, "cubin: at byte "));
		assert_null(t.at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_kernel_of_either_abi),
		cmocka_unit_test(tells_architecture_specific_code_of_each_generation),
		cmocka_unit_test(survives_a_cut_at_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
