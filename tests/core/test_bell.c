/* test_bell.c — gpul_bell, on which a thread sleeps until another thread rings it: no ring is lost. */
#include <pthread.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/thread/bell.h"
#include "core/clock.h"

static void a_bell_is_quiet_some_time_after_the_last_ring(void **state)
{
	gpul_bell bell = { 0 };
	gpul_bell_ear ear = { 0 }, other = { 0 };

	(void)state;
	assert_false(gpul_bell_is_quiet(&bell, &ear));
	while (!gpul_bell_is_quiet(&bell, &ear))
		usleep(10000);
	gpul_bell_ring(&bell);
	assert_false(gpul_bell_is_quiet(&bell, &ear));
	assert_false(gpul_bell_is_quiet(&bell, &other)); /* every listener notices every ring */
}

struct turns {
	gpul_bell bell;
	uint32_t done;
};

enum { TURNS = 20000, FOREVER_MS = 3600 * 1000 };

/* Sleeps until the next ring; if a ring were lost, the sleep would last forever. */
static void *answer(void *arg)
{
	struct turns *t = arg;
	gpul_bell_ear ear = { 0 };

	for (uint32_t i = 1; i <= TURNS; i++) {
		while (__atomic_load_n(&t->bell.rung, __ATOMIC_ACQUIRE) < i) {
			(void)gpul_bell_is_quiet(&t->bell, &ear);
			if (ear.heard < i)
				gpul_bell_sleep(&t->bell, &ear, FOREVER_MS);
		}
		__atomic_store_n(&t->done, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void no_ring_is_lost(void **state)
{
	struct turns t = { 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, answer, &t), 0);
	for (uint32_t i = 1; i <= TURNS; i++) {
		gpul_bell_ring(&t.bell);
		while (i % 3 && __atomic_load_n(&t.done, __ATOMIC_ACQUIRE) < i)
			usleep(0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(t.done, TURNS);
}

static void a_sleep_ends_by_itself(void **state)
{
	gpul_bell bell = { 0 };
	gpul_bell_ear ear = { 0 };

	(void)state;
	(void)gpul_bell_is_quiet(&bell, &ear);
	gpul_bell_sleep(&bell, &ear, 1);
	gpul_bell_ring(&bell);
	gpul_bell_sleep(&bell, &ear, FOREVER_MS); /* returns immediately, because the bell has rung since gpul_bell_is_quiet() */
	assert_int_equal(bell.sleepers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bell_is_quiet_some_time_after_the_last_ring),
		cmocka_unit_test(no_ring_is_lost),
		cmocka_unit_test(a_sleep_ends_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
