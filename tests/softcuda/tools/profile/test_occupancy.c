/* test_occupancy.c — theoretical occupancy, compared with numbers of NVIDIA's occupancy calculator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "softcuda/tools/profile/profile_internal.h"

static unsigned warps(unsigned sm, unsigned threads, unsigned registers, uint32_t shared_bytes)
{
	return gpul_occupancy(gpul_architecture(sm), threads, registers, shared_bytes).warps;
}

static void small_kernels_fill_a_multiprocessor(void **state)
{
	(void)state;
	assert_int_equal(warps(90, 256, 32, 0), 64);
	assert_int_equal(warps(80, 1024, 32, 0), 64);
	assert_int_equal(warps(86, 256, 32, 0), 48);
	assert_int_equal(warps(100, 128, 32, 0), 64);
}

/* 255 registers x 32 lanes are 8160, rounded up to 8192, so each of the 4 partitions of 16384 registers has room for 2 warps. */
static void registers_are_allocated_in_units_of_256_by_warp(void **state)
{
	(void)state;
	assert_int_equal(warps(90, 128, 255, 0), 8);
	assert_int_equal(warps(90, 128, 64, 0), 32);
	assert_int_equal(warps(90, 128, 65, 0), 28); /* 65 is rounded up to 72; 72 x 32 = 2304, so a partition has room for 7 warps */
	assert_int_equal(warps(90, 1024, 65, 0), 0); /* a block has 32 warps, but there is room for only 28 */
	assert_int_equal(warps(90, 1024, 64, 0), 32);
	assert_int_equal(warps(90, 96, 64, 0), 30); /* 10 blocks of 3 warps */
}

static void each_block_needs_a_kilobyte_of_shared_memory_more(void **state)
{
	(void)state;
	assert_int_equal(warps(90, 64, 16, 0), 64);
	assert_int_equal(warps(90, 64, 16, 7 * 1024), 56);       /* a block takes 7 + 1 of 228 KiB: 28 blocks of 2 warps */
	assert_int_equal(warps(90, 64, 16, 7 * 1024 + 1), 56);   /* 8320 bytes per block: 28 blocks */
	assert_int_equal(warps(90, 64, 16, 7 * 1024 + 200), 54); /* 8448 bytes per block: 27 blocks */
	assert_int_equal(warps(90, 64, 16, 227 * 1024), 2);
	assert_int_equal(warps(90, 64, 16, 227 * 1024 + 1), 0);
	assert_int_equal(warps(80, 64, 16, 163 * 1024), 2);
	assert_int_equal(warps(80, 64, 16, 164 * 1024), 0);
}

static void small_blocks_are_limited_by_their_number(void **state)
{
	(void)state;
	assert_int_equal(warps(90, 32, 16, 0), 32);
	assert_int_equal(warps(86, 32, 16, 0), 16);
	assert_int_equal(warps(90, 1, 16, 0), 32);
}

static void an_unknown_architecture_is_not_guessed(void **state)
{
	(void)state;
	assert_null(gpul_architecture(30));
	assert_non_null(gpul_architecture(90));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_kernels_fill_a_multiprocessor),
		cmocka_unit_test(registers_are_allocated_in_units_of_256_by_warp),
		cmocka_unit_test(each_block_needs_a_kilobyte_of_shared_memory_more),
		cmocka_unit_test(small_blocks_are_limited_by_their_number),
		cmocka_unit_test(an_unknown_architecture_is_not_guessed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
