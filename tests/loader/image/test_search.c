/* test_search.c — find device code in plain data, at any position and in any block, without false positives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/image/images_internal.h"
#include "tests/loader/image/forge.h"
#include "tests/loader/image/pack.h"

#define MB ((size_t)1 << 20)

/* Reference implementation of gpul_magic_find(): compare at each byte. */
static size_t find_slowly(const unsigned char *p, size_t n, size_t from, size_t to)
{
	for (; from < to; from++)
		if (gpul_magic_is(p, n, from))
			return from;
	return to;
}

static void put_magic(unsigned char *p, size_t n, size_t at, bool elf)
{
	if (at + 4 <= n)
		memcpy(p + at,
		       elf ? "\x7f"
			     "ELF"
			   : "\x50\xed\x55\xba",
		       4);
}

static void finds_a_magic_number_at_any_position(void **state)
{
	enum { ROOM = 2000 };
	unsigned char *p = malloc(ROOM); /* a separate allocation, so that ASan detects reads beyond it */

	(void)state;
	for (size_t at = 0; at < ROOM; at++) {
		memset(p, at % 2 ? 0x50 : 0x7f, ROOM);
		put_magic(p, ROOM, at, at % 3);
		put_magic(p, ROOM, at + 700, at % 3 == 0);
		for (size_t from = at < 3 ? 0 : at - 3; from <= at + 3 && from < ROOM; from++)
			assert_int_equal(gpul_magic_find(p, ROOM, from, ROOM), find_slowly(p, ROOM, from, ROOM));
		assert_int_equal(gpul_magic_find(p, ROOM, 0, at), find_slowly(p, ROOM, 0, at));
	}
	free(p);
}

/* List the images of a library with one section of plain data; all of them must have the origin EMBEDDED. */
static const gpul_images *search(const pack *data)
{
	pack p = { 0 };
	const gpul_images *list;

	pack_elf(&p, (pack_section[]){ { ".rodata", 0, 0, data->at, data->n } }, 1);
	list = pack_open(&p);
	pack_free(&p); /* the callers use the images' offsets and sizes, not their bytes */
	return list;
}

static void finds_images_in_every_block_in_order(void **state)
{
	pack data = { 0 };
	const gpul_image *image;
	const gpul_images *list;
	size_t n;

	(void)state;
	pack_zeros(&data, 40 * MB + 13);
	for (size_t i = 0; i < 40; i++) { /* some images cross the border of two blocks */
		pack one = { 0 };

		pack_fatbin_of(&one, &(pack_of){ 2, (unsigned)(50 + i), 0, NULL }, "code", 4);
		memcpy(data.at + i * MB + (i % 4 == 3 ? MB - 150 : i * 1001), one.at, one.n);
		pack_free(&one);
	}
	list = search(&data);
	image = gpul_images_all(list, &n);
	assert_int_equal(n, 40);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(image[i].sm, 50 + i);
		assert_int_equal(image[i].unit, i);
		assert_int_equal(image[i].origin, GPUL_ORIGIN_EMBEDDED);
	}
	pack_images_close(list);
	pack_free(&data);
}

/* Two threads may search the later block first.  This must not end the search of the earlier block, and an image that
 * extends into the later block must be skipped there. */
static void a_block_searched_early_hides_no_image_of_an_earlier_block(void **state)
{
	enum { BLOCK = 4096 };
	gpul_images *list = calloc(1, sizeof *list);
	_Atomic size_t covered[2] = { 0, 0 };
	_Atomic int64_t patience = 1000;
	size_t n_searched = 0;
	gpul_error err = { 0 };
	gpul_walk w = {
		.list = list, .here = { .file = "", .section = "" }, .rejects_left = &patience, .n_searched = &n_searched, .err = &err
	};
	pack data = { 0 }, one = { 0 };
	gpul_span s;

	(void)state;
	pack_fatbin_of(&one, &(pack_of){ 2, 90, 0, NULL }, "code", 4);
	pack_zeros(&data, 2 * BLOCK);
	for (size_t i = 0; i < 4; i++)
		memcpy(data.at + i * (BLOCK / 2 - 10), one.at, one.n);
	s = w.file = (gpul_span){ data.at, data.n };
	assert_int_equal(gpul_walk_data(&w, s, BLOCK, 2 * BLOCK, &covered[1]), GPUL_OK);
	assert_int_equal(pack_count(list), 1);
	assert_int_equal(gpul_walk_data(&w, s, 0, BLOCK, &covered[0]), GPUL_OK);
	assert_int_equal(pack_count(list), 4);
	assert_int_equal(covered[0], 0);
	assert_int_equal(covered[1], 2 * (BLOCK / 2 - 10) + one.n);
	gpul_images_close(list);
	pack_free(&one);
	pack_free(&data);
}

/* A block that begins inside an uncompressed image contains data that looks like images. */
static void data_inside_an_image_is_not_listed_as_an_image(void **state)
{
	pack inner = { 0 }, payload = { 0 }, data = { 0 };
	const gpul_images *list;

	(void)state;
	pack_fatbin_of(&inner, &(pack_of){ 2, 75, 0, NULL }, "code", 4);
	for (size_t i = 0; i < 12; i++) {
		pack_zeros(&payload, MB);
		pack_bytes(&payload, inner.at, inner.n);
	}
	pack_fatbin_of(&data, &(pack_of){ 2, 90, 0, NULL }, payload.at, payload.n);
	pack_fatbin_of(&data, &(pack_of){ 2, 80, 0, NULL }, payload.at, payload.n);
	list = search(&data);
	assert_int_equal(pack_count(list), 2);
	pack_images_close(list);
	pack_free(&inner);
	pack_free(&payload);
	pack_free(&data);
}

/* A false image that begins inside a real one and extends beyond its end hides the images that follow. */
static void searches_a_block_again_after_a_false_image_across_its_border(void **state)
{
	pack data = { 0 };
	size_t outer = pack_fatbin(&data), inner, entry, n;
	const gpul_image *image;
	const gpul_images *list;

	(void)state;
	entry = pack_entry(&data, &(pack_of){ 2, 90, 0, NULL }, NULL, 0);
	pack_zeros(&data, 5 * MB);
	inner = pack_fatbin(&data); /* this fatbin is in the second block, and 3 MB long */
	pack_entry(&data, &(pack_of){ 2, 10, 0, NULL }, NULL, 0);
	pack_zeros(&data, MB);
	pack_set(&data, entry + ENTRY_PADDED, data.n - entry - 64, 8);
	pack_fatbin_end(&data, outer);
	pack_fatbin_of(&data, &(pack_of){ 2, 80, 0, NULL }, "code", 4);
	pack_zeros(&data, 2 * MB);
	pack_set(&data, inner + 16 + ENTRY_PADDED, data.n - inner - 16 - 64, 8);
	pack_fatbin_end(&data, inner);
	pack_zeros(&data, 20 * MB);
	list = search(&data);
	image = gpul_images_all(list, &n);
	assert_int_equal(n, 2);
	assert_int_equal(image[0].sm, 90);
	assert_int_equal(image[1].sm, 80);
	pack_images_close(list);
	pack_free(&data);
}

static void finds_bare_cubins_but_not_other_elf_files(void **state)
{
	static forge f;
	pack data = { 0 }, host = { 0 };
	const gpul_image *image;
	const gpul_images *list;

	(void)state;
	forge_start(&f, true, 86, false);
	forge_finish(&f);
	pack_elf(&host, NULL, 0);
	pack_bytes(&data, "abc", 3);
	pack_bytes(&data, host.at, host.n);
	pack_bytes(&data, f.bytes, f.n_bytes);
	pack_bytes(&data, f.bytes, f.n_bytes - 1); /* a truncated cubin must not be listed */
	list = search(&data);
	image = pack_only(list);
	assert_int_equal(image->sm, 86);
	assert_int_equal(image->bytes, f.n_bytes);
	pack_images_close(list);
	pack_free(&host);
	pack_free(&data);
}

static void ignores_incomplete_images_in_plain_data(void **state)
{
	static const size_t spoilt[] = { FATBIN_VERSION,    FATBIN_HEADER_BYTES,   FATBIN_PAYLOAD + 3, 16 + ENTRY_HEADER_BYTES,
					 16 + ENTRY_PADDED, 16 + ENTRY_COMPRESSED, 16 + ENTRY_ARCH + 2 };

	(void)state;
	for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
		pack data = { 0 };
		const gpul_images *list;

		pack_fatbin_of(&data, &(pack_of){ 2, 90, 0, NULL }, "some code", 9);
		data.at[spoilt[i]] ^= 0x7;
		list = search(&data);
		assert_int_equal(pack_count(list), 0);
		pack_images_close(list);
		pack_free(&data);
	}
}

/* Make many fatbins, each of which contains all later entries.  The last entry is invalid, so a naive search takes quadratic time. */
static void refuses_data_crafted_to_waste_time(void **state)
{
	enum { N = 20000 };
	pack data = { 0 }, p = { 0 };

	(void)state;
	for (size_t i = 0; i < N; i++) {
		size_t at = pack_entry(&data, &(pack_of){ 2, 90, 0, NULL }, NULL, 0);

		pack_set(&data, at + 48, 0xBA55ED50, 4); /* a fatbin header in unused words of the entry */
		pack_set(&data, at + 52, 1 | 16 << 16, 4);
		pack_set(&data, at + 56, (N - i) * 64, 8); /* the payload of this fatbin is everything that follows */
	}
	pack_zeros(&data, 64); /* the last entry: its header has 0 bytes, which is invalid */
	pack_elf(&p, (pack_section[]){ { ".rodata", 0, 0, data.at, data.n } }, 1);
	pack_expect_refused(&p, GPUL_EFORMAT, "looks like fatbins");
	pack_free(&p);
	pack_free(&data);
}

/* Append a program without section headers: at a fixed address, or position-independent, so that its wrapper needs a relocation. */
static void put_segments(pack *p, const pack *fatbin, bool fixed)
{
	enum { BASE = 0x400000 };
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			 .e_type = fixed ? ET_EXEC : ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof h,
			 .e_ehsize = sizeof h,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 2 };
	size_t head = pack_bytes(p, &h, sizeof h), segments = pack_zeros(p, 2 * sizeof(Elf64_Phdr));
	size_t one = pack_bytes(p, fatbin->at, fatbin->n), two = pack_bytes(p, fatbin->at, fatbin->n);
	size_t wrapper = pack_zeros(p, 24);
	Elf64_Rela r = { .r_offset = BASE + wrapper + 8, .r_addend = (Elf64_Sxword)(BASE + two) };
	size_t table = pack_bytes(p, &r, sizeof r);
	Elf64_Dyn d[] = { { DT_RELA, { BASE + table } }, { DT_RELASZ, { sizeof r } }, { 0, { 0 } } };
	size_t dynamic = pack_bytes(p, d, sizeof d);
	Elf64_Phdr ph[] = { { .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = BASE, .p_filesz = p->n, .p_memsz = p->n },
			    { .p_type = PT_DYNAMIC, .p_offset = dynamic, .p_filesz = sizeof d } };

	(void)head, (void)one;
	memcpy(p->at + segments, ph, sizeof ph);
	pack_set(p, wrapper, 0x466243B1, 4);
	pack_set(p, wrapper + 4, 1, 4);
	pack_set(p, wrapper + 8, fixed ? BASE + two : 0, 8);
	if (fixed)
		pack_set(p, table, 0, 8);
}

static void finds_registered_fatbins_by_wrappers_without_section_headers(void **state)
{
	(void)state;
	for (int fixed = 0; fixed < 2; fixed++) {
		pack fatbin = { 0 }, p = { 0 };
		const gpul_image *image;
		const gpul_images *list;
		size_t n;

		pack_fatbin_of(&fatbin, &(pack_of){ 2, 90, 0, NULL }, "code", 4);
		put_segments(&p, &fatbin, fixed);
		list = pack_open(&p);
		image = gpul_images_all(list, &n);
		assert_int_equal(n, 2);
		assert_int_equal(image[0].origin, GPUL_ORIGIN_EMBEDDED);
		assert_int_equal(image[1].origin, GPUL_ORIGIN_REGISTERED);
		pack_images_close(list);
		pack_free(&p);
		pack_free(&fatbin);
	}
}

struct progress_log {
	uint64_t last;
	unsigned n;
};

static void record_progress(void *context, uint64_t done, uint64_t total)
{
	struct progress_log *t = context;

	assert_true(done >= t->last && done <= total);
	t->last = done;
	t->n++;
}

static void a_long_search_reports_progress(void **state)
{
	pack data = { 0 }, p = { 0 };
	struct progress_log t = { 0 };
	const gpul_images *list = NULL;
	char path[] = "/tmp/gpuload-search-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	pack_zeros(&data, 20 * MB);
	pack_fatbin_of(&data, &(pack_of){ 2, 90, 0, NULL }, "code", 4);
	pack_elf(&p, (pack_section[]){ { ".rodata", 0, 0, data.at, data.n } }, 1);
	assert_int_equal(write(fd, p.at, p.n), p.n);
	close(fd);
	assert_int_equal(pack_images_open(path, &(gpul_progress){ record_progress, &t }, &list, NULL), GPUL_OK);
	assert_int_equal(pack_only(list)->sm, 90);
	assert_memory_equal(pack_only(list)->stored, "code", 4); /* readable, although the search has released pages of the file */
	assert_true(t.n >= 1 && t.last > 0);
	pack_images_close(list);
	unlink(path);
	pack_free(&p);
	pack_free(&data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_magic_number_at_any_position),
		cmocka_unit_test(finds_images_in_every_block_in_order),
		cmocka_unit_test(a_block_searched_early_hides_no_image_of_an_earlier_block),
		cmocka_unit_test(data_inside_an_image_is_not_listed_as_an_image),
		cmocka_unit_test(searches_a_block_again_after_a_false_image_across_its_border),
		cmocka_unit_test(finds_bare_cubins_but_not_other_elf_files),
		cmocka_unit_test(ignores_incomplete_images_in_plain_data),
		cmocka_unit_test(refuses_data_crafted_to_waste_time),
		cmocka_unit_test(finds_registered_fatbins_by_wrappers_without_section_headers),
		cmocka_unit_test(a_long_search_reports_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
