/* test_visit.c — gpul_kernels_visit(): each image once and in order, whatever the timing of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/image/kernels/kernels.h"
#include "tests/loader/image/forge.h"
#include "tests/loader/image/pack.h"

enum { N_IMAGES = 500 };

typedef struct seen {
	size_t n, n_kernels, n_failed, stop_at, only_odd;
	uint64_t last_offset;
	uint64_t told, total;
} seen;

static pack packed;

/* Make fatbins with one image each (kernel_0, kernel_1, ...), of different sizes, so that the threads finish out of order. */
static int make_images(void **state)
{
	static char text[40000];

	(void)state;
	for (int i = 0; i < N_IMAGES; i++) {
		int n = snprintf(text, sizeof text,
				 ".version 7.0\n.target sm_75\n.address_size 64\n"
				 ".visible .entry kernel_%d(.param .u32 p) { ret; }\n",
				 i);
		int more = i * 7919 % 30000;

		memset(text + n, '\n', (size_t)more);
		pack_fatbin_of(&packed, &(pack_of){ .kind = 1, .sm = 75, .flags = i % 3 == 2 ? FLAG_LZ4 : 0 }, text, (size_t)(n + more));
	}
	return 0;
}

static int drop_images(void **state)
{
	(void)state;
	pack_free(&packed);
	return 0;
}

static const gpul_images *open_packed(void)
{
	const gpul_images *list = NULL;
	gpul_error err = { 0 };

	pack_images_of(packed.at, packed.n, "packed", &list, &err);
	assert_string_equal(err.text, "");
	return list;
}

static bool is_wanted(const gpul_image *image, void *context)
{
	seen *s = context;

	return !s->only_odd || image->unit % 2 == 1;
}

static gpul_status see(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context, gpul_error *err)
{
	seen *s = context;
	char name[32];

	assert_true(s->n == 0 || image->offset > s->last_offset);
	s->last_offset = image->offset;
	s->n++;
	s->n_kernels += table->n;
	if (failed) {
		s->n_failed++;
		assert_int_equal(table->n, 0);
		assert_int_not_equal(failed->text[0], 0);
		return GPUL_OK;
	}
	snprintf(name, sizeof name, "kernel_%u", image->unit);
	assert_string_equal(table->at[0].name, name);
	if (s->n == s->stop_at)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 7, "enough");
	return GPUL_OK;
}

static void tell(void *context, uint64_t done, uint64_t total)
{
	seen *s = context;

	assert_true(done >= s->told && done <= total);
	s->told = done;
	s->total = total;
}

static void visits_each_image_once_in_the_order_of_the_list(void **state)
{
	const gpul_images *list = open_packed();
	seen s = { 0 };
	const gpul_progress progress = { tell, &s };

	(void)state;
	assert_int_equal(gpul_kernels_visit(list, NULL, see, &s, &progress, NULL), GPUL_OK);
	assert_int_equal(s.n, N_IMAGES);
	assert_int_equal(s.n_kernels, N_IMAGES);
	assert_int_equal(s.n_failed, 0);
	assert_true(s.total > 0 && s.told == s.total);
	pack_images_close(list);
}

static void visits_only_the_images_that_pass_the_filter(void **state)
{
	const gpul_images *list = open_packed();
	seen s = { .only_odd = 1 };

	(void)state;
	assert_int_equal(gpul_kernels_visit(list, is_wanted, see, &s, NULL, NULL), GPUL_OK);
	assert_int_equal(s.n, N_IMAGES / 2);
	pack_images_close(list);
}

static void ends_when_the_visitor_returns_a_failure(void **state)
{
	const gpul_images *list = open_packed();

	(void)state;
	for (size_t stop = 1; stop < N_IMAGES; stop += 83) {
		seen s = { .stop_at = stop };
		gpul_error err = { 0 };

		assert_int_equal(gpul_kernels_visit(list, NULL, see, &s, NULL, &err), GPUL_EUNSUPPORTED);
		assert_int_equal(s.n, stop);
		assert_string_equal(err.text, "enough");
		assert_int_equal(err.native, 7);
	}
	pack_images_close(list);
}

static void continues_after_damaged_images(void **state)
{
	const gpul_images *list = open_packed();
	size_t n;
	const gpul_image *all = gpul_images_all(list, &n);
	seen s = { 0 };

	(void)state;
	for (size_t i = 0; i < n; i++)
		if (i % 5 == 0) /* damage the compressed bytes after they were listed */
			memset(packed.at + all[i].offset, 0xff, 40);
	assert_int_equal(gpul_kernels_visit(list, NULL, see, &s, NULL, NULL), GPUL_OK);
	assert_int_equal(s.n, N_IMAGES);
	assert_int_equal(s.n_failed, N_IMAGES / 5);
	assert_int_equal(s.n_kernels, N_IMAGES - N_IMAGES / 5);
	pack_images_close(list);
}

static void visits_lists_with_one_image_and_without_images(void **state)
{
	static const char text[] = ".version 7.0\n.target sm_75\n.entry kernel_0() { ret; }\n";
	const gpul_images *list = NULL;
	seen s = { 0 }, none = { .only_odd = 1 };

	(void)state;
	assert_int_equal(pack_images_of(text, sizeof text - 1, "k.ptx", &list, NULL), GPUL_OK);
	assert_int_equal(gpul_kernels_visit(list, NULL, see, &s, NULL, NULL), GPUL_OK);
	assert_int_equal(s.n_kernels, 1);
	assert_int_equal(gpul_kernels_visit(list, is_wanted, see, &none, NULL, NULL), GPUL_OK);
	assert_int_equal(none.n, 0);
	pack_images_close(list);
}

/* ---- large cubins, read from an excerpt ---------------------------------------------------------- */

enum { LARGE = 20 << 20, MIDDLE = 10 << 20 };

typedef struct ends {
	size_t n;
	uint32_t registers[4], param_bytes[4];
} ends;

static gpul_status see_ends(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
			    gpul_error *err)
{
	ends *e = context;

	(void)image;
	(void)err;
	assert_null(failed);
	assert_int_equal(table->n, 1);
	assert_string_equal(table->at[0].name, "large");
	assert_int_equal(table->at[0].n_params, 1);
	e->registers[e->n] = table->at[0].registers;
	e->param_bytes[e->n++] = table->at[0].params[0].bytes;
	return GPUL_OK;
}

/* Make a cubin of LARGE bytes that ends with its section table.  apart: the data about parameters is in the middle of the code, so that
 * an excerpt (first and last part of the file) does not contain it. */
static unsigned char *make_large(uint32_t registers, uint32_t param_bytes, bool apart)
{
	static forge f;
	unsigned char *bytes = malloc(LARGE);
	unsigned symbol, code, info;
	Elf64_Shdr *table;
	size_t table_bytes, table_at;
	uint32_t chance = registers; /* random state: the content compresses to a third, like machine code */

	forge_start(&f, false, 90, false);
	code = forge_kernel(&f, "large", &symbol);
	info = forge_section(&f, ".nv.info.large", SHT_LOPROC, code, 0);
	forge_numbers(&f, info, 0x17, 3, (uint32_t[]){ 0, 0, param_bytes << 18 });
	info = forge_section(&f, ".nv.info", SHT_LOPROC, 0, 0);
	forge_numbers(&f, info, 0x2f, 2, (uint32_t[]){ symbol, registers });
	forge_finish(&f);
	table_bytes = f.n_sections * sizeof *table;
	table_at = LARGE - table_bytes;
	for (size_t i = 0; bytes && i < LARGE; i++)
		bytes[i] = (unsigned char)((chance = chance * 1664525 + 1013904223) >> 29);
	assert_non_null(bytes);
	table = forge_header_of(&f, info - 1);
	if (apart) {
		memcpy(bytes + MIDDLE, f.bytes + table->sh_offset, table->sh_size);
		table->sh_offset = MIDDLE;
	}
	memcpy(bytes + table_at, f.bytes + f.header.e_shoff, table_bytes);
	memcpy(bytes, f.bytes, f.header.e_shoff);
	memcpy(bytes + offsetof(Elf64_Ehdr, e_shoff), &table_at, sizeof table_at);
	return bytes;
}

static void reads_large_cubins_from_an_excerpt_or_completely(void **state)
{
	pack p = { 0 };
	ends e = { 0 };
	const gpul_images *list;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		unsigned char *bytes = make_large(40 + i, 8 * (i + 1), i == 2);

		pack_fatbin_of(&p, &(pack_of){ .kind = 2, .sm = 90, .flags = FLAG_ZSTD }, bytes, LARGE);
		free(bytes);
	}
	list = pack_open(&p);
	assert_int_equal(gpul_kernels_visit(list, NULL, see_ends, &e, NULL, NULL), GPUL_OK);
	assert_int_equal(e.n, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(e.registers[i], 40 + i);
		assert_int_equal(e.param_bytes[i], 8 * (i + 1));
	}
	pack_images_close(list);
	pack_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(visits_each_image_once_in_the_order_of_the_list),
		cmocka_unit_test(visits_only_the_images_that_pass_the_filter),
		cmocka_unit_test(ends_when_the_visitor_returns_a_failure),
		cmocka_unit_test(visits_lists_with_one_image_and_without_images),
		cmocka_unit_test(reads_large_cubins_from_an_excerpt_or_completely),
		cmocka_unit_test(continues_after_damaged_images), /* last: this test damages the images */
	};

	return cmocka_run_group_tests(tests, make_images, drop_images);
}
