/* test_transactions.c — sectors, lines and bank conflicts of accesses, compared with numbers computed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "softcuda/tools/profile/transactions_internal.h"

#define ALL 0xffffffffu

static void expect(struct cost c, unsigned actual, unsigned ideal, unsigned lines)
{
	assert_int_equal(c.actual, actual);
	assert_int_equal(c.ideal, ideal);
	assert_int_equal(c.lines, lines);
}

/* Return the cost of an access in which lane l accesses address from + l * stride. */
static struct cost strided(uint64_t from, uint64_t stride, uint32_t bytes)
{
	uint64_t at[WARP_LANES];

	for (unsigned l = 0; l < WARP_LANES; l++)
		at[l] = from + l * stride;
	return gpul_sectors(at, WARP_LANES, bytes);
}

static void a_row_of_words_is_four_sectors_of_one_line(void **state)
{
	(void)state;
	expect(strided(0x1000, 4, 4), 4, 4, 1);
	expect(gpul_sectors_of_row(0x1000, 4), 4, 4, 1);
	expect(strided(0x1000, 8, 8), 8, 8, 2);
	expect(strided(0x1000, 16, 16), 16, 16, 4);
	expect(strided(0x1000, 1, 1), 1, 1, 1);
}

static void a_misaligned_row_touches_one_more_sector(void **state)
{
	(void)state;
	expect(strided(0x1004, 4, 4), 5, 4, 2);
	expect(gpul_sectors_of_row(0x1004, 4), 5, 4, 2);
	expect(strided(0x1020, 4, 4), 4, 4, 2); /* aligned to a sector, but not to a line */
	expect(gpul_sectors_of_row(0x1020, 4), 4, 4, 2);
}

static void a_stride_of_words_takes_as_many_times_the_sectors_until_each_lane_has_its_own(void **state)
{
	(void)state;
	for (unsigned stride = 1; stride <= 32; stride++) {
		const unsigned last = 31 * stride * 4; /* the offset of the last word */
		const unsigned sectors = stride < 8 ? last / 32 + 1 : 32, lines = stride < 32 ? last / 128 + 1 : 32;

		expect(strided(0x10000, stride * 4, 4), sectors, 4, lines);
	}
}

static void the_order_of_lanes_does_not_matter(void **state)
{
	uint64_t at[WARP_LANES];

	(void)state;
	for (unsigned l = 0; l < WARP_LANES; l++)
		at[l] = 0x2000 + (31 - l) * 4;
	expect(gpul_sectors(at, WARP_LANES, 4), 4, 4, 1);
	for (unsigned l = 0; l < WARP_LANES; l++)
		at[l] = 0x2000 + (l * 7 % 32) * 64;
	expect(gpul_sectors(at, WARP_LANES, 4), 32, 4, 16);
}

static void lanes_that_read_the_same_word_need_one_sector(void **state)
{
	(void)state;
	expect(strided(0x3000, 0, 4), 1, 1, 1);
	expect(strided(0x3000, 0, 16), 1, 1, 1);
}

static void fewer_lanes_need_fewer_sectors(void **state)
{
	const uint64_t at[] = { 0x1000, 0x1004, 0x2000 };

	(void)state;
	expect(gpul_sectors(at, 3, 4), 2, 1, 2);
	expect(gpul_sectors(at, 1, 4), 1, 1, 1);
}

static void a_span_of_bytes_counts_the_sectors_that_it_touches(void **state)
{
	(void)state;
	expect(gpul_sectors_of_span(0x1000, 1024), 32, 32, 8);
	expect(gpul_sectors_of_span(0x1010, 1024), 33, 32, 9);
	expect(gpul_sectors_of_span(0x1000, 0), 0, 0, 0);
}

static void local_memory_is_interleaved_so_that_the_same_offset_is_a_row(void **state)
{
	uint64_t at[WARP_LANES];

	(void)state;
	for (unsigned l = 0; l < WARP_LANES; l++)
		at[l] = 40;
	expect(gpul_sectors_local(at, ALL, 4), 4, 4, 1);
	expect(gpul_sectors_local(at, ALL, 8), 8, 8, 2);
	for (unsigned l = 0; l < WARP_LANES; l++)
		at[l] = l * 4; /* lane l accesses word l of line l */
	expect(gpul_sectors_local(at, ALL, 4), 32, 4, 32);
}

/* Return the cost of an access in which lane l accesses shared memory at offset l * stride. */
static struct cost shared(uint32_t stride, uint32_t bytes, uint32_t lanes)
{
	uint32_t at[WARP_LANES];

	for (unsigned l = 0; l < WARP_LANES; l++)
		at[l] = l * stride;
	return gpul_wavefronts(at, lanes, bytes, false);
}

/* If words are s apart, gcd(s, 32) lanes share a bank. */
static void a_stride_of_words_conflicts_as_often_as_its_divisor_of_32(void **state)
{
	(void)state;
	for (unsigned stride = 1; stride <= 64; stride++) {
		unsigned divisor = 1;

		while (divisor < 32 && stride % (2 * divisor) == 0)
			divisor *= 2;
		expect(shared(stride * 4, 4, ALL), divisor, 1, 0);
	}
}

static void lanes_that_read_one_word_do_not_conflict(void **state)
{
	uint32_t at[WARP_LANES];

	(void)state;
	expect(shared(0, 4, ALL), 1, 1, 0);
	expect(shared(1, 1, ALL), 1, 1, 0); /* four lanes access the bytes of one word */
	expect(shared(2, 2, ALL), 1, 1, 0);
	for (unsigned l = 0; l < WARP_LANES; l++)
		at[l] = l % 2 * 128; /* 16 lanes access one word of bank 0, and 16 lanes another word of it */
	expect(gpul_wavefronts(at, ALL, 4, false), 2, 1, 0);
}

static void wide_accesses_are_made_by_parts_of_the_warp(void **state)
{
	(void)state;
	expect(shared(8, 8, ALL), 2, 2, 0);    /* two wavefronts: each half warp uses 16 x 2 banks */
	expect(shared(16, 16, ALL), 4, 4, 0);  /* four wavefronts: each quarter warp uses 8 x 4 banks */
	expect(shared(16, 8, ALL), 4, 2, 0);   /* lanes 0 and 8 of a half warp share banks */
	expect(shared(128, 8, ALL), 32, 2, 0); /* all 16 lanes of a half warp use the same bank */
	expect(shared(32, 16, ALL), 8, 4, 0);  /* lanes 0 and 4 of a quarter warp share banks */
	expect(shared(8, 8, 0xffff), 1, 1, 0); /* the other half has no active lane */
	expect(shared(128, 4, 0xf), 4, 1, 0);
}

static void atomics_to_one_word_are_done_one_after_the_other(void **state)
{
	uint32_t at[WARP_LANES] = { 0 };

	(void)state;
	expect(gpul_wavefronts(at, ALL, 4, true), 32, 1, 0);
	for (unsigned l = 0; l < WARP_LANES; l++)
		at[l] = l * 4;
	expect(gpul_wavefronts(at, ALL, 4, true), 1, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_of_words_is_four_sectors_of_one_line),
		cmocka_unit_test(a_misaligned_row_touches_one_more_sector),
		cmocka_unit_test(a_stride_of_words_takes_as_many_times_the_sectors_until_each_lane_has_its_own),
		cmocka_unit_test(the_order_of_lanes_does_not_matter),
		cmocka_unit_test(lanes_that_read_the_same_word_need_one_sector),
		cmocka_unit_test(fewer_lanes_need_fewer_sectors),
		cmocka_unit_test(a_span_of_bytes_counts_the_sectors_that_it_touches),
		cmocka_unit_test(local_memory_is_interleaved_so_that_the_same_offset_is_a_row),
		cmocka_unit_test(a_stride_of_words_conflicts_as_often_as_its_divisor_of_32),
		cmocka_unit_test(lanes_that_read_one_word_do_not_conflict),
		cmocka_unit_test(wide_accesses_are_made_by_parts_of_the_warp),
		cmocka_unit_test(atomics_to_one_word_are_done_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
