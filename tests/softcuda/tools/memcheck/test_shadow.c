/* test_shadow.c — memcheck's shadow bits, compared with an array of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "softcuda/tools/memcheck/parts_internal.h"

enum { BYTES = 1000, STEPS = 20000 };

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % n;
}

static void compare(const struct shadow *h, const uint8_t *model)
{
	for (uint64_t k = 0; k < BYTES; k++)
		assert_int_equal(shadow_has_byte(h, k), model[k]);
}

static void spans_are_set_cleared_and_copied_as_in_an_array_of_bytes(void **state)
{
	struct shadow a, b;
	uint8_t of_a[BYTES] = { 0 }, of_b[BYTES] = { 0 };

	(void)state;
	assert_true(gpul_shadow_create(&a, BYTES) && gpul_shadow_create(&b, BYTES));
	for (int n = 0; n < STEPS; n++) {
		const uint64_t bytes = random_below(n % 10 ? 20 : 300), at = random_below(BYTES - bytes + 1),
			       to = random_below(BYTES - bytes + 1);
		bool all = true;

		switch (random_below(4)) {
		case 0:
			gpul_shadow_set(&a, at, bytes, n % 2);
			memset(of_a + at, 1, bytes);
			break;
		case 1:
			gpul_shadow_clear(&a, at, bytes);
			memset(of_a + at, 0, bytes);
			break;
		case 2:
			gpul_shadow_copy(&b, to, &a, at, bytes, n % 2);
			for (uint64_t k = 0; k < bytes; k++)
				of_b[to + k] |= of_a[at + k];
			break;
		default:
			gpul_shadow_clear(&b, to, bytes);
			memset(of_b + to, 0, bytes);
		}
		for (uint64_t k = 0; k < bytes; k++)
			all &= of_a[at + k];
		assert_int_equal(gpul_shadow_has(&a, at, bytes), all);
		if (n % 1000 == 0) {
			compare(&a, of_a);
			compare(&b, of_b);
		}
	}
	compare(&a, of_a);
	compare(&b, of_b);
	gpul_shadow_free(&a);
	gpul_shadow_free(&b);
}

static void it_is_complete_when_the_last_byte_was_written(void **state)
{
	struct shadow h;

	(void)state;
	for (uint64_t bytes = 1; bytes < 200; bytes++) {
		assert_true(gpul_shadow_create(&h, bytes));
		gpul_shadow_set(&h, 0, bytes - 1, false);
		for (int k = 0; k < 100; k++)
			gpul_shadow_advance(&h);
		assert_false(h.complete);
		gpul_shadow_set(&h, bytes - 1, 1, false);
		for (int k = 0; k < 100; k++)
			gpul_shadow_advance(&h);
		assert_true(h.complete);
		gpul_shadow_free(&h);
	}
}

static struct shadow shared;

/* Thread function: set every fourth byte, from the given one on. */
static void *set_bytes(void *first)
{
	for (uint64_t k = (uintptr_t)first; k < 1 << 16; k += 4)
		gpul_shadow_set(&shared, k, 1, false);
	return NULL;
}

static void several_threads_lose_no_bit(void **state)
{
	pthread_t thread[4];

	(void)state;
	assert_true(gpul_shadow_create(&shared, 1 << 16));
	for (uintptr_t k = 0; k < 4; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, set_bytes, (void *)k), 0);
	for (int k = 0; k < 4; k++)
		pthread_join(thread[k], NULL);
	assert_true(gpul_shadow_has(&shared, 0, 1 << 16));
	gpul_shadow_free(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_are_set_cleared_and_copied_as_in_an_array_of_bytes),
		cmocka_unit_test(it_is_complete_when_the_last_byte_was_written),
		cmocka_unit_test(several_threads_lose_no_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
