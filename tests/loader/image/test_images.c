/* test_images.c — the images of each kind of container, and their properties. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/image/images.h"
#include "tests/loader/image/forge.h"
#include "tests/loader/image/pack.h"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n\tret;\n}\n";

static void entries_of_a_fatbin_are_images_of_one_unit(void **state)
{
	pack p = { 0 };
	size_t fatbin = pack_fatbin(&p), n;
	const gpul_image *image;
	const gpul_images *list;

	(void)state;
	pack_entry(&p, &(pack_of){ 2, 90, FLAG_A, NULL }, "machine code", 12);
	pack_entry(&p, &(pack_of){ 64, 90, 0, NULL }, "of a kind to come", 17);
	pack_entry(&p, &(pack_of){ 1, 80, FLAG_DEBUG, " -maxrregcount=40 " }, ptx, sizeof ptx);
	pack_entry(&p, &(pack_of){ 8, 100, FLAG_F, "-ftz=0" }, "scrambled", 9);
	pack_fatbin_end(&p, fatbin);
	list = pack_open(&p);
	image = gpul_images_all(list, &n);
	assert_int_equal(n, 3);
	assert_int_equal(image[0].kind, GPUL_IMAGE_CUBIN);
	assert_int_equal(image[0].sm, 90);
	assert_int_equal(image[0].suffix, 'a');
	assert_int_equal(image[0].offset, 16 + 64);
	assert_int_equal(image[1].kind, GPUL_IMAGE_PTX);
	assert_true(image[1].debug);
	assert_int_equal(image[1].bytes, sizeof ptx - 1);
	assert_int_equal(image[1].options_bytes, strlen("-maxrregcount=40"));
	assert_memory_equal(image[1].options, "-maxrregcount=40", image[1].options_bytes);
	assert_int_equal(image[2].kind, GPUL_IMAGE_LTO);
	assert_int_equal(image[2].suffix, 'f');
	assert_true(image[2].relocatable);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(image[i].unit, 0);
		assert_int_equal(image[i].origin, GPUL_ORIGIN_REGISTERED);
		assert_string_equal(gpul_images_place(list, &image[i])->section, "");
	}
	pack_images_close(list);
	pack_free(&p);
}

static void images_in_named_sections_are_registered_and_in_other_data_embedded(void **state)
{
	pack fatbin = { 0 }, data = { 0 }, p = { 0 };
	const gpul_image *image;
	const gpul_images *list;
	size_t n;

	(void)state;
	pack_fatbin_of(&fatbin, &(pack_of){ 1, 80, 0, NULL }, ptx, sizeof ptx);
	pack_bytes(&data, "a string, then at an odd place:", 31);
	pack_bytes(&data, fatbin.at, fatbin.n);
	pack_bytes(&data, "the end", 7);
	pack_elf(&p,
		 (pack_section[]){ { ".rodata", 0, 0, data.at, data.n },
				   { ".nv_fatbin", 0, 0, fatbin.at, fatbin.n },
				   { "__nv_relfatbin", 0, 0, fatbin.at, fatbin.n },
				   { ".bss", 8, 0, NULL, 1u << 30 } },
		 4);
	list = pack_open(&p);
	image = gpul_images_all(list, &n);
	assert_int_equal(n, 3);
	assert_int_equal(image[0].origin, GPUL_ORIGIN_EMBEDDED);
	assert_string_equal(gpul_images_place(list, &image[0])->section, ".rodata");
	assert_int_equal(image[1].origin, GPUL_ORIGIN_REGISTERED);
	assert_false(image[1].relocatable);
	assert_int_equal(image[2].origin, GPUL_ORIGIN_REGISTERED);
	assert_true(image[2].relocatable);
	assert_int_equal(image[2].unit, 2);
	pack_images_close(list);
	pack_free(&p);
	pack_free(&data);
	pack_free(&fatbin);
}

static void recognises_archive_members_by_content(void **state)
{
	static forge f;
	pack fatbin = { 0 }, p = { 0 };
	const gpul_image *image;
	const gpul_images *list;
	size_t n;

	(void)state;
	forge_start(&f, false, 90, true);
	forge_finish(&f);
	pack_fatbin_of(&fatbin, &(pack_of){ 1, 80, 0, NULL }, ptx, sizeof ptx);
	pack_archive(&p, false);
	pack_member(&p, "/", "\0\0\0\0", 4);
	pack_member(&p, "//", "a_name_longer_than_sixteen.o/\n", 30);
	pack_member(&p, "/0", f.bytes, f.n_bytes);
	pack_member(&p, "readme/", "words.", 5);
	pack_member(&p, "k.fatbin/", fatbin.at, fatbin.n);
	pack_member(&p, "#1/8", "bsd.ptx\0.version 8.0\n.target sm_90a\n", 36);
	list = pack_open(&p);
	image = gpul_images_all(list, &n);
	assert_int_equal(n, 3);
	assert_string_equal(gpul_images_place(list, &image[0])->member, "a_name_longer_than_sixteen.o");
	assert_true(image[0].relocatable);
	assert_int_equal(image[0].sm, 90);
	assert_string_equal(gpul_images_place(list, &image[1])->member, "k.fatbin");
	assert_string_equal(gpul_images_place(list, &image[2])->member, "bsd.ptx");
	assert_int_equal(image[2].suffix, 'a');
	pack_images_close(list);
	pack_free(&p);
	pack_free(&fatbin);
}

/* Relocatable code declares shared memory by sections that have a size, but no bytes in the file. */
static void sections_without_bytes_in_the_file_are_accepted(void **state)
{
	static const uint32_t types[] = { SHT_NOBITS, 0x70000007, 0x70000009, 0x7000000a, 0x70000015 };
	static forge f;
	const gpul_images *list = NULL;
	unsigned memory;
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		forge_start(&f, false, 90, true);
		memory = forge_section(&f, ".nv.shared.k", types[i], 0, 0);
		forge_finish(&f);
		forge_header_of(&f, memory)->sh_size = 49152;
		assert_int_equal(pack_images_of(f.bytes, f.n_bytes, "k.cubin", &list, NULL), GPUL_OK);
		assert_int_equal(gpul_images_all(list, &n)->bytes, f.n_bytes);
		pack_images_close(list);
	}
	forge_header_of(&f, memory)->sh_type = SHT_PROGBITS;
	assert_int_equal(pack_images_of(f.bytes, f.n_bytes, "k.cubin", &list, NULL), GPUL_EFORMAT);
}

static void reads_target_and_options_of_ptx(void **state)
{
	const char text[] = "// ptxas options: -maxrregcount=32 -O1\n/* words */ .version 8.0\n"
			    ".target sm_90a , texmode_unified,debug\n.address_size 64\n";
	pack p = { 0 };
	const gpul_image *image;
	gpul_unpacked u = { 0 };
	const gpul_images *list;

	(void)state;
	pack_bytes(&p, text, sizeof text - 1);
	list = pack_open(&p);
	image = pack_only(list);
	assert_int_equal(image->sm, 90);
	assert_int_equal(image->suffix, 'a');
	assert_true(image->debug);
	assert_memory_equal(image->options, "-maxrregcount=32 -O1", 20);
	assert_int_equal(image->options_bytes, 20);
	assert_int_equal(gpul_image_unpack(image, &u, NULL), GPUL_OK);
	assert_int_equal(u.n_bytes, sizeof text - 1);
	assert_string_equal(u.bytes, text); /* gpul_image_unpack() has appended a NUL */
	gpul_unpacked_free(&u);
	pack_images_close(list);
	pack_free(&p);
}

static void expect_unpacked(uint64_t flags)
{
	static char text[100000];
	pack p = { 0 };
	gpul_unpacked u = { 0 };
	const gpul_images *list;

	memset(text, ' ', sizeof text);
	memcpy(text, ptx, sizeof ptx - 1);
	text[sizeof text - 1] = '\0';
	pack_fatbin_of(&p, &(pack_of){ 1, 80, flags, NULL }, text, sizeof text);
	list = pack_open(&p);
	assert_int_equal(gpul_image_unpack(pack_only(list), &u, NULL), GPUL_OK);
	assert_int_equal(u.n_bytes, sizeof text - 1);
	assert_string_equal(u.bytes, text);
	gpul_unpacked_free(&u);
	pack_images_close(list);
	pack_free(&p);
}

static void decompresses_payloads(void **state)
{
	(void)state;
	expect_unpacked(0);
	if (GPUL_HAVE_LZ4)
		expect_unpacked(FLAG_LZ4);
	if (GPUL_HAVE_ZSTD)
		expect_unpacked(FLAG_ZSTD);
}

static void unpacks_lto_code_into_a_fatbin_with_one_image(void **state)
{
	pack p = { 0 };
	size_t fatbin = pack_fatbin(&p), n;
	const gpul_image *image;
	gpul_unpacked u = { 0 };
	const gpul_images *list, *again = NULL;

	(void)state;
	pack_entry(&p, &(pack_of){ 1, 80, 0, NULL }, ptx, sizeof ptx);
	pack_entry(&p, &(pack_of){ 8, 90, FLAG_LTO, "-ftz=0" }, "scrambled", 9);
	pack_fatbin_end(&p, fatbin);
	list = pack_open(&p);
	image = gpul_images_all(list, &n);
	assert_int_equal(gpul_image_unpack(&image[1], &u, NULL), GPUL_OK);
	assert_int_equal(pack_images_of(u.bytes, u.n_bytes, "again", &again, NULL), GPUL_OK);
	assert_int_equal(pack_only(again)->kind, GPUL_IMAGE_LTO);
	assert_memory_equal(pack_only(again)->stored, "scrambled", 9);
	pack_images_close(again);
	gpul_unpacked_free(&u);
	pack_images_close(list);
	pack_free(&p);
}

static void a_host_file_without_device_code_gives_an_empty_list(void **state)
{
	pack p = { 0 };
	const gpul_images *list;

	(void)state;
	pack_elf(&p, (pack_section[]){ { ".rodata", 0, 0, "\x50\xed\x55\xba\1\0\x10\0", 8 } }, 1);
	list = pack_open(&p);
	assert_int_equal(pack_count(list), 0);
	pack_images_close(list);
	pack_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_of_a_fatbin_are_images_of_one_unit),
		cmocka_unit_test(images_in_named_sections_are_registered_and_in_other_data_embedded),
		cmocka_unit_test(recognises_archive_members_by_content),
		cmocka_unit_test(sections_without_bytes_in_the_file_are_accepted),
		cmocka_unit_test(reads_target_and_options_of_ptx),
		cmocka_unit_test(decompresses_payloads),
		cmocka_unit_test(unpacks_lto_code_into_a_fatbin_with_one_image),
		cmocka_unit_test(a_host_file_without_device_code_gives_an_empty_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
