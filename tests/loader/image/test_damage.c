/* test_damage.c — damaged files are refused with one line that names the place and the damage; claimed sizes are checked
 * before memory is allocated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/image/images.h"
#include "tests/loader/image/forge.h"
#include "tests/loader/image/pack.h"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n\tret;\n}\n";

static void names_the_kind_of_a_file_that_cannot_hold_device_code(void **state)
{
	static const struct {
		const char *bytes, *words;
	} cases[] = {
		{ "", "is empty" },
		{ "some words\n", "a text that is not PTX" },
		{ "BC\xc0\xde", "LLVM bitcode" },
		{ "\xb1\x43\x62\x46\1\0\0\0", "a fatbin wrapper without its fatbin" },
		{ "\1\2\3\4", "a file of an unknown format" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		pack p = { 0 };

		pack_bytes(&p, cases[i].bytes, strlen(cases[i].bytes));
		pack_expect_refused(&p, GPUL_EFORMAT, cases[i].words);
		pack_free(&p);
	}
}

static void refuses_a_fatbin_truncated_at_any_byte(void **state)
{
	pack p = { 0 };

	(void)state;
	pack_fatbin_of(&p, &(pack_of){ 1, 80, 0, "-O3" }, ptx, sizeof ptx);
	for (size_t n = 4; n < p.n; n++) { /* fewer than 4 bytes are not recognised as a fatbin */
		pack cut = { 0 };

		pack_bytes(&cut, p.at, n);
		pack_expect_refused(&cut, GPUL_EFORMAT, "test: ");
		pack_free(&cut);
	}
	pack_free(&p);
}

static void refuses_invalid_numbers_in_a_fatbin(void **state)
{
	static const struct {
		size_t at, n;
		uint64_t v;
		const char *words;
	} cases[] = {
		{ FATBIN_VERSION, 2, 2, "version 2" },
		{ FATBIN_HEADER_BYTES, 2, 24, "header of 24" },
		{ FATBIN_PAYLOAD, 8, UINT64_MAX, "claims" },
		{ FATBIN_PAYLOAD, 8, 100, "damaged" },
		{ 16 + ENTRY_HEADER_BYTES, 4, 0, "the length of its header is invalid" },
		{ 16 + ENTRY_HEADER_BYTES, 4, UINT32_MAX, "the length of its header is invalid" },
		{ 16 + ENTRY_PADDED, 8, UINT64_MAX - 8, "longer than its fatbin" },
		{ 16 + ENTRY_COMPRESSED, 4, UINT32_MAX, "compressed size is larger" },
		{ 16 + ENTRY_OPTIONS, 4, 4096, "options are outside" },
		{ 16 + ENTRY_FLAGS, 8, FLAG_LZ4 | FLAG_ZSTD, "by both LZ4 and zstd" },
		{ 16 + ENTRY_UNPACKED, 8, UINT64_C(1) << 40, "cannot both be right" },
	};

	(void)state;
	for (size_t i = 0; GPUL_HAVE_ZSTD && i < sizeof cases / sizeof *cases; i++) {
		pack p = { 0 };

		pack_fatbin_of(&p, &(pack_of){ 1, 80, FLAG_ZSTD, "-O3" }, ptx, sizeof ptx);
		pack_set(&p, cases[i].at, cases[i].v, cases[i].n);
		pack_expect_refused(&p, GPUL_EFORMAT, cases[i].words);
		pack_free(&p);
	}
}

static void expect_damaged(const gpul_images *list, size_t i, size_t n, const char *words)
{
	size_t n_damaged;
	const gpul_error *damaged = gpul_images_damaged(list, &n_damaged);

	assert_int_equal(n_damaged, n);
	if (!strstr(damaged[i].text, words))
		fail_msg("\"%s\" does not contain \"%s\"", damaged[i].text, words);
}

static void reports_the_place_of_junk_between_fatbins(void **state)
{
	pack data = { 0 }, p = { 0 };

	(void)state;
	for (int in_section = 0; in_section < 2; in_section++) {
		const gpul_images *list;

		data.n = p.n = 0;
		pack_fatbin_of(&data, &(pack_of){ 2, 90, 0, NULL }, "code", 4);
		pack_zeros(&data, 8);
		pack_bytes(&data, "junk", 4);
		pack_zeros(&data, 60);
		pack_fatbin_of(&data, &(pack_of){ 2, 80, 0, NULL }, "code", 4);
		pack_bytes(&data, "more junk", 9);
		if (in_section)
			pack_elf(&p, (pack_section[]){ { ".nv_fatbin", 0, 0, data.at, data.n } }, 1);
		else
			pack_bytes(&p, data.at, data.n);
		list = pack_open(&p); /* the images around the junk are listed */
		assert_int_equal(pack_count(list), 2);
		expect_damaged(list, 0, 2,
			       in_section ? "test, .nv_fatbin: there is no fatbin at byte " : "test: there is no fatbin at byte ");
		expect_damaged(list, 1, 2, "fatbin");
		pack_images_close(list);
	}
	pack_free(&p);
	pack_free(&data);
}

static void refuses_a_host_file_truncated_at_any_byte(void **state)
{
	pack data = { 0 }, p = { 0 };

	(void)state;
	pack_fatbin_of(&data, &(pack_of){ 2, 90, 0, NULL }, "code", 4);
	pack_elf(&p, (pack_section[]){ { ".nv_fatbin", 0, 0, data.at, data.n } }, 1);
	for (size_t n = sizeof(Elf64_Ehdr); n < p.n; n++) {
		pack cut = { 0 };

		pack_bytes(&cut, p.at, n);
		pack_expect_refused(&cut, GPUL_EFORMAT, "damaged");
		pack_free(&cut);
	}
	pack_free(&p);
	pack_free(&data);
}

static void refuses_sections_beyond_the_end_of_the_file(void **state)
{
	pack data = { 0 }, p = { 0 };
	size_t table;

	(void)state;
	pack_fatbin_of(&data, &(pack_of){ 2, 90, 0, NULL }, "code", 4);
	table = pack_elf(&p, (pack_section[]){ { ".nv_fatbin", 0, 0, data.at, data.n } }, 1);
	pack_set(&p, table + 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), UINT64_MAX - 64, 8);
	pack_expect_refused(&p, GPUL_EFORMAT, "section .nv_fatbin ends after");
	pack_free(&p);
	pack_free(&data);
}

static void refuses_an_archive_truncated_at_any_byte(void **state)
{
	pack p = { 0 };

	(void)state;
	pack_archive(&p, false);
	pack_member(&p, "a.ptx/", ptx, sizeof ptx - 1);
	for (size_t n = 9; n < p.n - 1; n++) { /* the last byte is padding */
		pack cut = { 0 };

		pack_bytes(&cut, p.at, n);
		pack_expect_refused(&cut, GPUL_EFORMAT, "cut off");
		pack_free(&cut);
	}
	pack_free(&p);
}

static void expect_member_refused(const char *name, const char *bytes, size_t n, const char *words)
{
	pack p = { 0 };

	pack_archive(&p, false);
	pack_member(&p, name, bytes, n);
	pack_expect_refused(&p, GPUL_EFORMAT, words);
	pack_free(&p);
}

static void refuses_invalid_member_names(void **state)
{
	(void)state;
	expect_member_refused("/7", ptx, sizeof ptx, "an invalid name"); /* the archive has no table of long names */
	expect_member_refused("#1/999", ptx, sizeof ptx, "an invalid name");
	expect_member_refused("#1/", ptx, sizeof ptx, "an invalid name");
}

static void lists_the_members_around_damaged_ones(void **state)
{
	const gpul_images *list;
	pack inner = { 0 }, p = { 0 };

	(void)state;
	pack_archive(&inner, false);
	pack_member(&inner, "in.ptx/", ptx, sizeof ptx);
	pack_member(&inner, "#1/999", ptx, sizeof ptx);
	pack_archive(&p, false);
	pack_member(&p, "bad.fatbin/", "\x50\xed\x55\xba junk", 9);
	pack_member(&p, "a.ptx/", ptx, sizeof ptx);
	pack_member(&p, "inner.a/", inner.at, inner.n);
	pack_member(&p, "b.ptx/", ptx, sizeof ptx);
	pack_bytes(&p, "cut off", 7);
	list = pack_open(&p);
	assert_int_equal(pack_count(list), 3);
	assert_string_equal(gpul_images_place(list, gpul_images_all(list, &(size_t){ 0 }) + 1)->member, "inner.a(in.ptx)");
	expect_damaged(list, 0, 3, "test(bad.fatbin): ");
	expect_damaged(list, 1, 3, "test(inner.a): the member at byte ");
	expect_damaged(list, 2, 3, "the archive is cut off");
	pack_images_close(list);
	pack_free(&inner);
	pack_free(&p);
}

static void limits_archives_in_archives(void **state)
{
	(void)state;
	for (int levels = 7; levels < 2000; levels = levels == 7 ? 8 : 10 * levels) {
		pack inner = { 0 };

		pack_bytes(&inner, ptx, sizeof ptx);
		for (int i = 0; i <= levels; i++) {
			pack outer = { 0 };

			pack_archive(&outer, false);
			pack_member(&outer, "a/", inner.at, inner.n);
			pack_free(&inner);
			inner = outer;
		}
		if (levels < 8) {
			const gpul_images *list = pack_open(&inner);

			assert_string_equal(gpul_images_place(list, pack_only(list))->member, "a(a)(a)(a)(a)(a)(a)(a)");
			pack_images_close(list);
		} else {
			pack_expect_refused(&inner, GPUL_EFORMAT, "more than 8 levels deep");
		}
		pack_free(&inner);
	}
}

static void put_offload_binary(pack *p, unsigned version, const void *image, size_t n)
{
	size_t start = p->n, at = 72;

	pack_bytes(p, "\x10\xff\x10\xad", 4);
	pack_u32(p, version);
	pack_zeros(p, 64);
	pack_bytes(p, image, n);
	pack_align(p, 8);
	pack_set(p, start + 8, p->n - start, 8);
	pack_set(p, start + 16, 32, 8);                    /* offset of the entry */
	pack_set(p, start + 24, version == 1 ? 40 : 1, 8); /* version 1: size of the entry; version 2: number of entries */
	pack_set(p, start + 32 + 24, at, 8);
	pack_set(p, start + 32 + 32, n, 8);
}

static void lists_the_images_in_offload_binaries_of_clang(void **state)
{
	pack data = { 0 }, p = { 0 };
	const gpul_images *list;
	size_t n;

	(void)state;
	put_offload_binary(&data, 1, ptx, sizeof ptx - 1);
	put_offload_binary(&data, 1, "BC\xc0\xde bitcode", 12);
	put_offload_binary(&data, 2, ptx, sizeof ptx - 1);
	put_offload_binary(&data, 1, "\x50\xed\x55\xba junk", 9);
	pack_elf(&p, (pack_section[]){ { ".llvm.offloading", 0x6fff4c0b, 0, data.at, data.n } }, 1);
	for (int in_file = 0; in_file < 2; in_file++) {
		list = pack_open(in_file ? &data : &p);
		assert_int_equal(pack_count(list), 2);
		assert_int_equal(gpul_images_all(list, &n)[1].sm, 80);
		assert_int_equal(gpul_images_all(list, &n)[1].bytes, sizeof ptx - 1);
		expect_damaged(list, 0, 1, "fatbin");
		pack_images_close(list);
	}
	p.n = 0;
	put_offload_binary(&p, 2, (char[400]){ 0 }, 400); /* two entries with the same image */
	pack_set(&p, 24, 2, 8);
	memcpy(p.at + 72, p.at + 32, 40);
	pack_expect_refused(&p, GPUL_EFORMAT, "images overlap");
	for (int i = 0; i < 1000; i++) { /* an offload binary in an offload binary, 1000 levels deep */
		pack outer = { 0 };

		put_offload_binary(&outer, 1, p.at, p.n);
		pack_free(&p);
		p = outer;
	}
	pack_expect_refused(&p, GPUL_EFORMAT, "more than 8 levels deep");
	for (size_t cut = 1; cut < 72 + sizeof ptx - 1; cut++) {
		pack part = { 0 };

		pack_bytes(&part, data.at, cut);
		if (cut < 4)
			pack_expect_refused(&part, GPUL_EFORMAT, "");
		else
			pack_expect_refused(&part, GPUL_EFORMAT, "offload binary");
		pack_free(&part);
	}
	pack_free(&data);
	pack_free(&p);
}

static void expect_unpack_refused(const pack *p, const char *words)
{
	const gpul_images *list = pack_open(p);
	gpul_unpacked u = { 0 };
	gpul_error err = { 0 };

	assert_int_equal(gpul_image_unpack(pack_only(list), &u, &err), GPUL_EFORMAT);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
	gpul_unpacked_free(&u);
	pack_images_close(list);
}

static void refuses_payloads_with_a_wrong_length(void **state)
{
	static const uint64_t flags[] = { FLAG_LZ4, FLAG_ZSTD };
	static const uint64_t lengths[] = { sizeof ptx - 1, sizeof ptx + 1, 1 << 20 };
	static const bool have[] = { GPUL_HAVE_LZ4, GPUL_HAVE_ZSTD };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; have[i] && k < sizeof lengths / sizeof *lengths; k++) {
			pack p = { 0 };

			pack_fatbin_of(&p, &(pack_of){ 1, 80, flags[i], NULL }, ptx, sizeof ptx);
			pack_set(&p, 16 + ENTRY_UNPACKED, lengths[k], 8);
			expect_unpack_refused(&p, "the ptx image for sm_80 at byte 80 cannot be decompressed");
			pack_free(&p);
		}
}

static void damaged_payloads_cause_no_access_out_of_bounds(void **state)
{
	static const uint64_t flags[] = { FLAG_LZ4, FLAG_ZSTD };
	static const bool have[] = { GPUL_HAVE_LZ4, GPUL_HAVE_ZSTD };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		pack p = { 0 };

		pack_fatbin_of(&p, &(pack_of){ 1, 80, flags[i], NULL }, ptx, sizeof ptx);
		for (size_t at = 80; have[i] && at < p.n; at++) {
			gpul_unpacked u = { 0 };
			const gpul_images *list;

			p.at[at] ^= 0x55;
			list = pack_open(&p);
			if (gpul_image_unpack(pack_only(list), &u, NULL) == GPUL_OK)
				assert_true(u.n_bytes <= sizeof ptx);
			gpul_unpacked_free(&u);
			pack_images_close(list);
			p.at[at] ^= 0x55;
		}
		pack_free(&p);
	}
}

static void write_file(const char *folder, const char *name, const void *bytes, size_t n)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void reads_members_of_a_thin_archive_from_its_folder(void **state)
{
	char folder[] = "/tmp/gpuload-thin-XXXXXX", path[256];
	const gpul_images *list = NULL;
	gpul_error err = { 0 };
	pack p = { 0 };

	(void)state;
	assert_non_null(mkdtemp(folder));
	pack_archive(&p, true);
	pack_member(&p, "//", "a_name_longer_than_sixteen.ptx/\n", 32);
	pack_member(&p, "/0             /", NULL, sizeof ptx - 1); /* ar writes this header if the base name has 15 characters */
	snprintf(path, sizeof path, "%s/lib.a", folder);
	write_file(folder, "lib.a", p.at, p.n);
	pack_expect_refused(&p, GPUL_EFORMAT, "a thin archive from memory");

	assert_int_equal(pack_images_open(path, NULL, &list, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "a_name_longer_than_sixteen.ptx: no such file"));
	write_file(folder, "a_name_longer_than_sixteen.ptx", ptx, sizeof ptx - 1);
	assert_int_equal(pack_images_open(path, NULL, &list, NULL), GPUL_OK);
	assert_int_equal(pack_only(list)->sm, 80);
	assert_int_equal(pack_only(list)->offset, 0);
	assert_string_equal(gpul_images_place(list, pack_only(list))->member, "a_name_longer_than_sixteen.ptx");
	pack_images_close(list);
	pack_member(&p, "missing.ptx/", NULL, 100); /* a member whose file is missing; the other member is still listed */
	write_file(folder, "lib.a", p.at, p.n);
	assert_int_equal(pack_images_open(path, NULL, &list, NULL), GPUL_OK);
	assert_int_equal(pack_only(list)->sm, 80);
	expect_damaged(list, 0, 1, "missing.ptx: no such file");
	pack_images_close(list);

	unlink(path);
	snprintf(path, sizeof path, "%s/a_name_longer_than_sixteen.ptx", folder);
	unlink(path);
	rmdir(folder);
	pack_free(&p);
}

static void refuses_a_thin_archive_that_contains_itself(void **state)
{
	char path[] = "/tmp/gpuload-self-XXXXXX", name[32];
	const gpul_images *list = NULL;
	gpul_error err = { 0 };
	pack p = { 0 };
	int fd = mkstemp(path);

	(void)state;
	snprintf(name, sizeof name, "%s/\n", strrchr(path, '/') + 1);
	pack_archive(&p, true);
	pack_member(&p, "//", name, strlen(name));
	pack_member(&p, "/0", NULL, 100);
	assert_int_equal(write(fd, p.at, p.n), p.n);
	close(fd);
	assert_int_equal(pack_images_open(path, NULL, &list, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "a thin archive inside another archive"));
	unlink(path);
	pack_free(&p);
}

static void finds_the_extent_of_an_image_from_its_headers(void **state)
{
	static forge f;
	pack p = { 0 };
	const void *at;
	size_t n;

	(void)state;
	pack_fatbin_of(&p, &(pack_of){ 1, 80, 0, NULL }, ptx, sizeof ptx);
	assert_int_equal(gpul_image_extent(p.at, &at, &n, NULL), GPUL_OK);
	assert_ptr_equal(at, p.at);
	assert_int_equal(n, p.n);

	struct {
		uint32_t magic, version;
		const void *data, *more;
	} wrapper = { 0x466243B1, 1, p.at, NULL };
	assert_int_equal(gpul_image_extent(&wrapper, &at, &n, NULL), GPUL_OK);
	assert_ptr_equal(at, p.at);
	wrapper.data = NULL;
	assert_int_equal(gpul_image_extent(&wrapper, &at, &n, NULL), GPUL_EFORMAT);

	assert_int_equal(gpul_image_extent(ptx, &at, &n, NULL), GPUL_OK);
	assert_int_equal(n, sizeof ptx - 1);
	forge_start(&f, false, 90, false);
	forge_finish(&f);
	assert_int_equal(gpul_image_extent(f.bytes, &at, &n, NULL), GPUL_OK);
	assert_int_equal(n, f.n_bytes);
	assert_int_equal(gpul_image_extent("", &at, &n, NULL), GPUL_EFORMAT);
	assert_int_equal(gpul_image_extent("no PTX", &at, &n, NULL), GPUL_EFORMAT);
	pack_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_the_kind_of_a_file_that_cannot_hold_device_code),
		cmocka_unit_test(refuses_a_fatbin_truncated_at_any_byte),
		cmocka_unit_test(refuses_invalid_numbers_in_a_fatbin),
		cmocka_unit_test(reports_the_place_of_junk_between_fatbins),
		cmocka_unit_test(refuses_a_host_file_truncated_at_any_byte),
		cmocka_unit_test(refuses_sections_beyond_the_end_of_the_file),
		cmocka_unit_test(refuses_an_archive_truncated_at_any_byte),
		cmocka_unit_test(refuses_invalid_member_names),
		cmocka_unit_test(lists_the_members_around_damaged_ones),
		cmocka_unit_test(limits_archives_in_archives),
		cmocka_unit_test(lists_the_images_in_offload_binaries_of_clang),
		cmocka_unit_test(refuses_payloads_with_a_wrong_length),
		cmocka_unit_test(damaged_payloads_cause_no_access_out_of_bounds),
		cmocka_unit_test(reads_members_of_a_thin_archive_from_its_folder),
		cmocka_unit_test(refuses_a_thin_archive_that_contains_itself),
		cmocka_unit_test(finds_the_extent_of_an_image_from_its_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
