/* test_admission.c — receiver-driven admission: each input and the grants that it permits. */
#include <stdbool.h>

#include "tests/support/cmocka.h"
#include "comm/net/admission.h"

static gpul_admission *create(unsigned n_senders, uint64_t window_bytes, uint64_t grant_bytes)
{
	const gpul_admission_desc desc = {
		.n_senders = n_senders, .max_messages = 4, .window_bytes = window_bytes, .grant_bytes = grant_bytes, .late_ns = 1000
	};
	gpul_admission *a = NULL;

	assert_int_equal(gpul_admission_create(&desc, &a, NULL), GPUL_OK);
	return a;
}

/* Check that the next grant has these values. */
static void expect(gpul_admission *a, unsigned sender, uint64_t message, uint64_t offset, uint64_t bytes, bool last)
{
	gpul_admission_grant g;

	assert_true(gpul_admission_next(a, &g));
	assert_int_equal(g.sender, sender);
	assert_int_equal(g.message, message);
	assert_int_equal(g.offset, offset);
	assert_int_equal(g.bytes, bytes);
	assert_int_equal(g.last, last);
}

static void expect_none(gpul_admission *a)
{
	gpul_admission_grant g = { .sender = 77 };

	assert_false(gpul_admission_next(a, &g));
	assert_int_equal(g.sender, 77);
}

static void divides_a_message_into_grants(void **state)
{
	gpul_admission *a = create(1, 1000, 100);

	(void)state;
	expect_none(a);
	assert_true(gpul_admission_request(a, 0, 250));
	assert_true(gpul_admission_request(a, 0, 7));
	assert_int_equal(gpul_admission_waiting(a), 257);
	expect(a, 0, 0, 0, 100, false);
	expect(a, 0, 0, 100, 100, false);
	expect(a, 0, 0, 200, 50, true);
	expect(a, 0, 1, 0, 7, true);
	expect_none(a);
	assert_int_equal(gpul_admission_waiting(a), 0);
	assert_int_equal(gpul_admission_in_flight(a), 257);
	gpul_admission_destroy(a);
}

static void one_window_limits_all_senders_together(void **state)
{
	gpul_admission *a = create(3, 250, 100);

	(void)state;
	for (unsigned s = 0; s < 3; s++)
		assert_true(gpul_admission_request(a, s, 300));
	expect(a, 0, 0, 0, 100, false);
	expect(a, 1, 0, 0, 100, false);
	expect_none(a);
	gpul_admission_arrived(a, 0, 100);
	expect(a, 2, 0, 0, 100, false);
	expect_none(a);
	gpul_admission_arrived(a, 1, 50);
	expect(a, 0, 0, 100, 100, false);
	assert_int_equal(gpul_admission_in_flight(a), 250);
	expect_none(a);
	gpul_admission_destroy(a);
}

static void a_grant_larger_than_the_window_goes_alone(void **state)
{
	gpul_admission *a = create(2, 10, 100);

	(void)state;
	assert_true(gpul_admission_request(a, 0, 100));
	assert_true(gpul_admission_request(a, 1, 100));
	expect(a, 0, 0, 0, 100, true);
	expect_none(a);
	gpul_admission_arrived(a, 0, 99);
	expect_none(a);
	gpul_admission_arrived(a, 0, 1);
	expect(a, 1, 0, 0, 100, true);
	gpul_admission_destroy(a);
}

static void a_sender_alone_gets_the_whole_window(void **state)
{
	gpul_admission *a = create(8, 400, 100);

	(void)state;
	assert_true(gpul_admission_request(a, 5, 1000));
	for (uint64_t at = 0; at < 400; at += 100)
		expect(a, 5, 0, at, 100, false);
	expect_none(a);
	gpul_admission_destroy(a);
}

static void small_messages_get_as_many_bytes_as_large_ones(void **state)
{
	gpul_admission *a = create(2, 100, 100);
	uint64_t got[2] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		gpul_admission_grant g;

		while (gpul_admission_request(a, 0, 7))
			;
		while (gpul_admission_request(a, 1, 100))
			;
		assert_true(gpul_admission_next(a, &g));
		got[g.sender] += g.bytes;
		gpul_admission_arrived(a, g.sender, g.bytes);
		assert_true(got[0] <= got[1] + 100 && got[1] <= got[0] + 100);
	}
	gpul_admission_destroy(a);
}

static void a_large_piece_is_not_overtaken_by_small_ones(void **state)
{
	gpul_admission *a = create(2, 100, 100);

	(void)state;
	assert_true(gpul_admission_request(a, 0, 10));
	expect(a, 0, 0, 0, 10, true);
	assert_true(gpul_admission_request(a, 1, 100));
	assert_true(gpul_admission_request(a, 0, 10));
	expect_none(a); /* the next 100 bytes do not fit; smaller messages must not overtake and starve them */
	gpul_admission_arrived(a, 0, 10);
	expect(a, 1, 0, 0, 100, true);
	gpul_admission_destroy(a);
}

static void refuses_requests_beyond_the_ring_and_after_the_end(void **state)
{
	gpul_admission *a = create(2, 100, 100);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_true(gpul_admission_request(a, 0, 1));
	assert_false(gpul_admission_request(a, 0, 1));
	expect(a, 0, 0, 0, 1, true);
	assert_true(gpul_admission_request(a, 0, 1));
	gpul_admission_leave(a, 1);
	assert_false(gpul_admission_request(a, 1, 1));
	gpul_admission_destroy(a);
}

static void a_sender_that_leaves_gives_its_credits_back(void **state)
{
	gpul_admission *a = create(2, 200, 100);

	(void)state;
	assert_true(gpul_admission_request(a, 0, 150));
	assert_true(gpul_admission_request(a, 0, 30));
	assert_true(gpul_admission_request(a, 1, 500));
	expect(a, 0, 0, 0, 100, false);
	expect(a, 1, 0, 0, 100, false);
	expect_none(a);
	gpul_admission_leave(a, 0);
	assert_int_equal(gpul_admission_held_by(a, 0), 0);
	assert_int_equal(gpul_admission_waiting(a), 400);
	expect(a, 1, 0, 100, 100, false);
	expect_none(a);
	gpul_admission_leave(a, 0); /* leaving twice is allowed */
	assert_int_equal(gpul_admission_held(a), 200);
	gpul_admission_destroy(a);
}

static void credits_of_a_late_sender_do_not_count(void **state)
{
	gpul_admission *a = create(2, 200, 100);

	(void)state;
	gpul_admission_tick(a, 5000);
	assert_true(gpul_admission_request(a, 0, 500));
	assert_true(gpul_admission_request(a, 1, 500));
	expect(a, 0, 0, 0, 100, false);
	expect(a, 1, 0, 0, 100, false);
	gpul_admission_tick(a, 5900);
	gpul_admission_arrived(a, 1, 100);
	gpul_admission_tick(a, 6000);
	assert_true(gpul_admission_is_late(a, 0));
	assert_false(gpul_admission_is_late(a, 1));
	assert_int_equal(gpul_admission_held(a), 100);
	assert_int_equal(gpul_admission_in_flight(a), 0);
	expect(a, 1, 0, 100, 100, false); /* sender 1 is now the only active sender */
	expect(a, 1, 0, 200, 100, false);
	expect_none(a);
	gpul_admission_arrived(a, 0, 40); /* sender 0 sends again */
	assert_false(gpul_admission_is_late(a, 0));
	assert_int_equal(gpul_admission_in_flight(a), 260);
	expect_none(a);
	gpul_admission_arrived(a, 1, 100);
	gpul_admission_arrived(a, 0, 60);
	expect(a, 0, 0, 100, 100, false);
	gpul_admission_destroy(a);
}

static void a_sender_that_was_idle_has_no_arrears(void **state)
{
	gpul_admission *a = create(2, 100, 100);

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		assert_true(gpul_admission_request(a, 0, 100));
		expect(a, 0, i, 0, 100, true);
		gpul_admission_arrived(a, 0, 100);
	}
	assert_true(gpul_admission_request(a, 0, 400));
	assert_true(gpul_admission_request(a, 1, 400));
	for (unsigned i = 0; i < 3; i++) { /* the senders alternate: sender 1 does not get 5,000 bytes first */
		expect(a, 1, 0, 100 * i, 100, false);
		gpul_admission_arrived(a, 1, 100);
		expect(a, 0, 50, 100 * i, 100, false);
		gpul_admission_arrived(a, 0, 100);
	}
	gpul_admission_destroy(a);
}

static void time_without_credits_makes_no_sender_late(void **state)
{
	gpul_admission *a = create(1, 100, 100);

	(void)state;
	gpul_admission_tick(a, 10000);
	assert_true(gpul_admission_request(a, 0, 100));
	expect(a, 0, 0, 0, 100, true);
	gpul_admission_tick(a, 10999);
	assert_false(gpul_admission_is_late(a, 0));
	gpul_admission_tick(a, 11000);
	assert_true(gpul_admission_is_late(a, 0));
	gpul_admission_destroy(a);
}

static void a_silent_sender_cannot_collect_the_window(void **state)
{
	gpul_admission *a = create(4, 400, 50);
	gpul_admission_grant g;

	(void)state;
	for (unsigned s = 0; s < 4; s++)
		assert_true(gpul_admission_request(a, s, 100000));
	for (unsigned i = 0; i < 2000; i++) {
		assert_true(gpul_admission_next(a, &g));
		if (g.sender != 2)
			gpul_admission_arrived(a, g.sender, g.bytes);
	}
	assert_true(gpul_admission_held_by(a, 2) <= 100 + 50);
	gpul_admission_destroy(a);
}

static void refuses_bad_descriptions(void **state)
{
	static const gpul_admission_desc bad[] = {
		{ .n_senders = 0, .max_messages = 1, .window_bytes = 1, .grant_bytes = 1 },
		{ .n_senders = 65537, .max_messages = 1, .window_bytes = 1, .grant_bytes = 1 },
		{ .n_senders = 1, .max_messages = 0, .window_bytes = 1, .grant_bytes = 1 },
		{ .n_senders = 1, .max_messages = 1, .window_bytes = 0, .grant_bytes = 1 },
		{ .n_senders = 1, .max_messages = 1, .window_bytes = 1, .grant_bytes = 0 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		gpul_admission *a = NULL;
		gpul_error err = { 0 };

		assert_int_equal(gpul_admission_create(&bad[i], &a, &err), GPUL_EINVAL);
		assert_null(a);
		assert_true(err.text[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(divides_a_message_into_grants),
		cmocka_unit_test(one_window_limits_all_senders_together),
		cmocka_unit_test(a_grant_larger_than_the_window_goes_alone),
		cmocka_unit_test(a_sender_alone_gets_the_whole_window),
		cmocka_unit_test(small_messages_get_as_many_bytes_as_large_ones),
		cmocka_unit_test(a_large_piece_is_not_overtaken_by_small_ones),
		cmocka_unit_test(refuses_requests_beyond_the_ring_and_after_the_end),
		cmocka_unit_test(a_sender_that_leaves_gives_its_credits_back),
		cmocka_unit_test(credits_of_a_late_sender_do_not_count),
		cmocka_unit_test(a_sender_that_was_idle_has_no_arrears),
		cmocka_unit_test(time_without_credits_makes_no_sender_late),
		cmocka_unit_test(a_silent_sender_cannot_collect_the_window),
		cmocka_unit_test(refuses_bad_descriptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
