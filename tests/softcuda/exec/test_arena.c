/* test_arena.c — the allocator of device addresses: blocks never overlap, free neighbours are merged, and freed addresses still
 * belong to the arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/exec/exec_arena_internal.h"

static void addresses_stay_its_own_after_they_were_freed(void **state)
{
	struct arena_block *b;
	int on_the_stack = 0;
	uint64_t p;

	(void)state;
	b = gpul_arena_take(1, 1, &p);
	assert_non_null(b);
	*(char *)(uintptr_t)p = 1;
	assert_true(gpul_arena_contains(p));
	gpul_arena_give(b);
	assert_true(gpul_arena_contains(p));
	assert_false(gpul_arena_contains((uintptr_t)&on_the_stack));
	assert_null(gpul_arena_take(SIZE_MAX, 4096, &p));
	assert_null(gpul_arena_take((size_t)1 << 62, 4096, &p));
	gpul_arena_give(NULL);
}

static void free_neighbours_are_one_block_again(void **state)
{
	enum { N = 16, STEP = 1 << 20 };
	struct arena_block *b[N], *all;
	uint64_t p[N], q;

	(void)state;
	for (int k = 0; k < N; k++)
		assert_non_null(b[k] = gpul_arena_take(STEP, 4096, &p[k]));
	for (int k = 0; k < N; k += 2)
		gpul_arena_give(b[k]);
	for (int k = 1; k < N; k += 2)
		gpul_arena_give(b[k]);
	assert_non_null(all = gpul_arena_take((size_t)N * STEP, 4096, &q));
	assert_true(q <= p[0]);
	memset((void *)(uintptr_t)q, 1, (size_t)N * STEP);
	gpul_arena_give(all);
}

/* The test fills each block with the block's number, and checks the bytes before it frees the block. */
static void blocks_never_overlap(void **state)
{
	enum { N = 200, STEPS = 20000 };
	struct arena_block *b[N] = { 0 };
	size_t bytes[N] = { 0 };
	uint64_t p[N], seed = 1;

	(void)state;
	for (int step = 0; step < STEPS; step++) {
		unsigned k, align;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		k = (unsigned)(seed >> 33) % N;
		align = 4096u << (seed >> 24) % 5;
		if (b[k]) {
			const unsigned char *at = (const unsigned char *)(uintptr_t)p[k];

			assert_true(at[0] == k && at[bytes[k] / 2] == k && at[bytes[k] - 1] == k);
			gpul_arena_give(b[k]);
			b[k] = NULL;
			continue;
		}
		bytes[k] = 1 + (seed >> 40) % 100000;
		b[k] = gpul_arena_take(bytes[k], align, &p[k]);
		assert_non_null(b[k]);
		assert_int_equal(p[k] % align, 0);
		memset((void *)(uintptr_t)p[k], (int)k, bytes[k]);
	}
	for (int k = 0; k < N; k++)
		gpul_arena_give(b[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_stay_its_own_after_they_were_freed),
		cmocka_unit_test(free_neighbours_are_one_block_again),
		cmocka_unit_test(blocks_never_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
