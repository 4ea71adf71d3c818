/* test_lease.c — heartbeats are due in time, and a silent peer is considered dead after the limit. */
#include <errno.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "rdma/protocol/lease.h"

enum { SECOND = 1000000000 };
static const uint64_t START = 77 * (uint64_t)SECOND;

static bool is_expired(const gpul_rdma_lease *l, uint64_t now_ns)
{
	gpul_rdma_failure why = { 0 };

	return gpul_rdma_lease_expired(l, now_ns, &why);
}

static void beats_often_enough_for_both_ends(void **state)
{
	gpul_rdma_lease l = gpul_rdma_lease_begin(8 * (uint64_t)SECOND, 16 * (uint64_t)SECOND, START);

	(void)state;
	assert_int_equal(l.interval_ns, SECOND);
	l = gpul_rdma_lease_begin(16 * (uint64_t)SECOND, 8 * (uint64_t)SECOND, START);
	assert_int_equal(l.interval_ns, SECOND);
	assert_false(gpul_rdma_lease_beat_due(&l, START + SECOND - 1));
	assert_int_equal(gpul_rdma_lease_next(&l), START + SECOND);
	assert_true(gpul_rdma_lease_beat_due(&l, START + SECOND));
	assert_false(gpul_rdma_lease_beat_due(&l, START + SECOND));
	assert_int_equal(gpul_rdma_lease_next(&l), START + 2 * (uint64_t)SECOND);
	assert_false(gpul_rdma_lease_beat_early(&l, START + SECOND + SECOND / 2 - 1));
	assert_true(gpul_rdma_lease_beat_early(&l, START + SECOND + SECOND / 2));
	assert_false(gpul_rdma_lease_beat_early(&l, START + SECOND + SECOND / 2));
}

static void gives_up_a_silent_peer_after_the_limit(void **state)
{
	gpul_rdma_lease l = gpul_rdma_lease_begin(5 * (uint64_t)SECOND, 5 * (uint64_t)SECOND, START);
	gpul_rdma_failure why = { 0 };
	uint64_t now = START;

	(void)state;
	for (; now < START + 20 * (uint64_t)SECOND; now += SECOND / 2) {
		gpul_rdma_lease_received(&l, now);
		gpul_rdma_lease_tick(&l, now);
		assert_false(is_expired(&l, now));
	}
	now = l.last_heard_ns;
	for (int i = 1; i <= 10; i++) {
		gpul_rdma_lease_tick(&l, now + (uint64_t)i * SECOND / 2);
		assert_false(is_expired(&l, now + (uint64_t)i * SECOND / 2));
	}
	assert_true(gpul_rdma_lease_expired(&l, now + 5 * (uint64_t)SECOND + 1, &why));
	assert_int_equal(why.status, GPUL_ESYS);
	assert_int_equal(why.native, ETIMEDOUT);
	assert_string_equal(why.call, "lease");
	assert_string_equal(why.what, "nothing was received from the peer for 5.0 s (the limit is 5.0 s)");
	assert_non_null(strstr(why.advice, "check that the peer's process is not stopped"));
}

static void wakes_for_the_expiry_if_that_comes_before_the_next_beat(void **state)
{
	gpul_rdma_lease l = gpul_rdma_lease_begin(8000, 8000, START);

	(void)state;
	assert_true(gpul_rdma_lease_beat_due(&l, START + 7500));
	assert_int_equal(gpul_rdma_lease_next(&l), START + 8001);
	assert_false(is_expired(&l, START + 8000));
	assert_true(is_expired(&l, gpul_rdma_lease_next(&l)));
}

/* Ctrl-Z stops both ends while the clock continues. */
static void does_not_count_the_time_in_which_this_process_was_stopped(void **state)
{
	gpul_rdma_lease l = gpul_rdma_lease_begin(8 * (uint64_t)SECOND, 8 * (uint64_t)SECOND, START);
	uint64_t now = START + 60 * (uint64_t)SECOND;

	(void)state;
	gpul_rdma_lease_tick(&l, START + SECOND);
	gpul_rdma_lease_tick(&l, now);
	assert_false(is_expired(&l, now));
	assert_true(gpul_rdma_lease_beat_due(&l, now));
	assert_int_equal(l.last_heard_ns, now - SECOND);
	assert_true(is_expired(&l, now + 7 * (uint64_t)SECOND + 1));
	gpul_rdma_lease_received(&l, now + SECOND);
	gpul_rdma_lease_tick(&l, now + SECOND);
	gpul_rdma_lease_received(&l, now + 60 * (uint64_t)SECOND);
	gpul_rdma_lease_tick(&l, now + 60 * (uint64_t)SECOND); /* last_heard_ns must never become later than the present time */
	assert_int_equal(l.last_heard_ns, now + 60 * (uint64_t)SECOND);
}

static void ignores_a_time_that_goes_back(void **state)
{
	gpul_rdma_lease l = gpul_rdma_lease_begin(8000, 8000, START);

	(void)state;
	gpul_rdma_lease_received(&l, START - 1);
	gpul_rdma_lease_tick(&l, START - 1);
	assert_int_equal(l.last_heard_ns, START);
	assert_int_equal(l.last_tick_ns, START);
	assert_false(is_expired(&l, START - 1));
	assert_false(gpul_rdma_lease_beat_due(&l, START - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beats_often_enough_for_both_ends),
		cmocka_unit_test(gives_up_a_silent_peer_after_the_limit),
		cmocka_unit_test(wakes_for_the_expiry_if_that_comes_before_the_next_beat),
		cmocka_unit_test(does_not_count_the_time_in_which_this_process_was_stopped),
		cmocka_unit_test(ignores_a_time_that_goes_back),
	};

	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
