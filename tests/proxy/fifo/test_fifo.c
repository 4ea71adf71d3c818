/* test_fifo.c — tests the CPU's end of a FIFO; the test itself writes triggers to the slots, as a kernel would. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "proxy/fifo.h"
#include "tests/proxy/fifo/pusher.h"

enum { MOST_LANES = 4096, ROOM = 1 << 21 };

static _Alignas(512) unsigned char area[ROOM];
static struct pusher pushers[MOST_LANES];
static gpul_fifo_item items[MOST_LANES];

static gpul_fifo *open_area(unsigned lanes)
{
	gpul_fifo *f = NULL;
	gpul_error err = { 0 };

	if (gpul_fifo_open(area, sizeof(area), &f, &err))
		fail_msg("%s", err.text);
	for (unsigned lane = 0; lane < lanes; lane++)
		pushers[lane] = pusher_of(area, lane);
	return f;
}

static gpul_fifo *begin(unsigned slots, unsigned lanes)
{
	const gpul_fifo_shape shape = { .slots = slots, .lanes = lanes };
	gpul_error err = { 0 };

	if (gpul_fifo_area_format(area, sizeof(area), &shape, &err))
		fail_msg("%s", err.text);
	return open_area(lanes);
}

static void push(unsigned lane, uint64_t a)
{
	assert_true(pusher_push(&pushers[lane], a, ~a >> 1));
}

static void expect(const gpul_fifo_item *item, unsigned lane, uint64_t position, uint64_t a)
{
	assert_int_equal(item->lane, lane);
	assert_int_equal(item->position, position);
	assert_int_equal(item->word[0], a);
	assert_int_equal(item->word[1], ~a >> 1);
}

static struct gpul_fifo_line *line(unsigned lane)
{
	return pushers[lane].line;
}

/* Pushes several laps of triggers, so that the lap bit has both values. */
static void triggers_are_taken_once_and_in_order(void **state)
{
	(void)state;
	gpul_fifo *f = begin(8, 2);

	for (uint64_t at = 0; at < 100; at++) {
		assert_int_equal(gpul_fifo_poll(f, items, 4), 0);
		push(at & 1, at + 1);
		assert_int_equal(gpul_fifo_poll(f, items, 4), 1);
		expect(items, at & 1, at / 2, at + 1);
		gpul_fifo_release(f);
	}
	gpul_fifo_close(f);
}

static void every_shape_returns_all_triggers_of_all_lanes(void **state)
{
	(void)state;
	for (unsigned lanes = 1; lanes <= MOST_LANES; lanes *= 2)
		for (unsigned per_lane = 1; per_lane <= 16; per_lane *= 4) {
			gpul_fifo *f = begin(lanes * per_lane, lanes);

			for (unsigned lap = 0; lap < 3; lap++) {
				static unsigned seen[MOST_LANES];
				unsigned n = 0;

				memset(seen, 0, sizeof(seen));
				for (unsigned i = 0; i < lanes * per_lane; i++)
					push(i / per_lane, i % per_lane);
				assert_true(pusher_full(&pushers[lanes - 1]));
				for (unsigned got; (got = gpul_fifo_poll(f, items, 100)) > 0; n += got)
					for (unsigned i = 0; i < got; i++) {
						const unsigned at = seen[items[i].lane]++;

						expect(&items[i], items[i].lane, (uint64_t)lap * per_lane + at, at);
					}
				assert_int_equal(n, lanes * per_lane);
				gpul_fifo_release(f);
			}
			gpul_fifo_close(f);
		}
}

static void slot_is_taken_when_both_halves_have_arrived(void **state)
{
	(void)state;
	gpul_fifo *f = begin(4, 1);

	for (uint64_t at = 0; at < 32; at++) {
		const unsigned first = at & 1;

		pusher_store(&pushers[0], at, first, first ? ~at >> 1 : at);
		assert_int_equal(gpul_fifo_poll(f, items, 1), 0);
		pusher_store(&pushers[0], at, !first, first ? at : ~at >> 1);
		assert_int_equal(gpul_fifo_poll(f, items, 1), 1);
		expect(items, 0, at, at);
		gpul_fifo_release(f);
	}
	gpul_fifo_close(f);
}

/* The half-written slot follows 1 to 5 complete ones, which can span more than a cache line. */
static void half_written_slot_ends_a_batch_of_its_lane(void **state)
{
	(void)state;
	for (unsigned whole = 1; whole <= 5; whole++)
		for (unsigned half = 0; half < 2; half++)
			for (unsigned run = 0; run < 2; run++) {
				gpul_fifo *f = begin(16, 2);
				gpul_fifo_run shown = { 0 };

				for (uint64_t at = 0; at < 48; at += whole + 1) {
					for (unsigned i = 0; i < whole; i++)
						push(1, at + i);
					pusher_store(&pushers[1], at + whole, half, half ? ~(at + whole) >> 1 : at + whole);
					for (unsigned got = 0; got < whole;)
						got += run ? gpul_fifo_poll_run(f, &shown, 16) : gpul_fifo_poll(f, items, 16);
					assert_int_equal(gpul_fifo_poll(f, items, 16), 0);
					push(1, at + whole);
					assert_int_equal(gpul_fifo_poll(f, items, 16), 1);
					expect(items, 1, at + whole, at + whole);
					gpul_fifo_release(f);
				}
				gpul_fifo_close(f);
			}
}

static void triggers_behind_a_gap_are_not_taken(void **state)
{
	(void)state;
	gpul_fifo *f = begin(4, 1);

	for (uint64_t at = 1; at < 4; at++)
		for (unsigned half = 0; half < 2; half++)
			pusher_store(&pushers[0], at, half, half ? ~at >> 1 : at);
	assert_int_equal(gpul_fifo_poll(f, items, 4), 0);
	push(0, 0);
	assert_int_equal(gpul_fifo_poll(f, items, 4), 4);
	for (unsigned at = 0; at < 4; at++)
		expect(&items[at], 0, at, at);
	gpul_fifo_close(f);
}

static void slots_are_free_only_after_a_release(void **state)
{
	(void)state;
	gpul_fifo *f = begin(2, 1);

	push(0, 1);
	push(0, 2);
	assert_int_equal(gpul_fifo_poll(f, items, 1), 1);
	assert_true(pusher_full(&pushers[0]));
	assert_int_equal(gpul_fifo_poll(f, items + 1, 1), 1);
	assert_int_equal(line(0)->tail, 0);
	gpul_fifo_release(f); /* releases the triggers of both polls */
	assert_int_equal(line(0)->tail, 2);
	assert_false(pusher_full(&pushers[0]));
	gpul_fifo_close(f);
}

static void release_lane_frees_up_to_a_position_and_release_the_rest(void **state)
{
	(void)state;
	gpul_fifo *f = begin(16, 2);

	for (unsigned i = 0; i < 8; i++)
		push(1, i);
	push(0, 9);
	assert_int_equal(gpul_fifo_poll(f, items, 16), 9);
	gpul_fifo_release_lane(f, 1, 3);
	assert_int_equal(line(1)->tail, 3);
	gpul_fifo_release_lane(f, 1, 3); /* repeating the call changes nothing */
	assert_int_equal(line(1)->tail, 3);
	assert_int_equal(line(0)->tail, 0);
	gpul_fifo_release(f);
	assert_int_equal(line(1)->tail, 8);
	assert_int_equal(line(0)->tail, 1);
	gpul_fifo_close(f);
}

/* One lane is always full, and another lane has one trigger. */
static void busy_lane_does_not_starve_other_lanes(void **state)
{
	(void)state;
	for (unsigned lanes = 2; lanes <= 1024; lanes *= 8) {
		for (unsigned busy = 0; busy < lanes; busy += lanes / 2 + 1) {
			gpul_fifo *f = begin(16 * lanes, lanes);
			const unsigned quiet = (busy + lanes - 1) % lanes;
			bool came = false;

			push(quiet, 77);
			for (unsigned polls = 0; polls < 2 && !came; polls++) {
				while (!pusher_full(&pushers[busy]))
					push(busy, 1);
				const unsigned n = gpul_fifo_poll(f, items, 8);

				assert_true(n > 0);
				for (unsigned i = 0; i < n; i++)
					came = came || items[i].lane == quiet;
				gpul_fifo_release(f);
			}
			assert_true(came);
			gpul_fifo_close(f);
		}
	}
}

static void poll_finds_a_trigger_in_any_lane_for_every_turn(void **state)
{
	(void)state;
	enum { LANES = 256 };
	gpul_fifo *f = begin(LANES, LANES);
	uint64_t pushed[LANES] = { 0 };

	for (unsigned turn = 0; turn < LANES; turn += 5)
		for (unsigned lane = 0; lane < LANES; lane++) {
			const unsigned before = (turn + LANES - 1) % LANES;

			push(before, 1); /* makes the next scan start at lane `turn` */
			assert_int_equal(gpul_fifo_poll(f, items, 1), 1);
			pushed[before]++;
			gpul_fifo_release(f);
			push(lane, lane);
			assert_int_equal(gpul_fifo_poll(f, items, LANES), 1);
			expect(items, lane, pushed[lane]++, lane);
			gpul_fifo_release(f);
		}
	gpul_fifo_close(f);
}

static void poll_with_max_0_takes_nothing(void **state)
{
	(void)state;
	gpul_fifo *f = begin(128, 64);

	push(5, 1);
	assert_int_equal(gpul_fifo_poll(f, items, 0), 0);
	assert_int_equal(gpul_fifo_poll(f, items, 1), 1);
	expect(items, 5, 0, 1);
	gpul_fifo_close(f);
}

static void positions_wrap_around_at_2_to_the_64(void **state)
{
	(void)state;
	gpul_fifo *f = begin(4, 2);

	gpul_fifo_close(f);
	line(0)->tail = UINT64_MAX - 4;
	f = open_area(2);
	/* the area is still zero, which in an odd lap looks like written slots; store what the previous lap would have left */
	for (unsigned i = 0; i < 2; i++)
		pusher_store(&pushers[0], pushers[0].next - 2 + i, 0, 0);
	for (uint64_t i = 0; i < 12; i++) {
		push(0, i);
		assert_int_equal(gpul_fifo_poll(f, items, 4), 1);
		expect(items, 0, UINT64_MAX - 4 + i, i);
		gpul_fifo_release(f);
	}
	gpul_fifo_close(f);
}

static void unreleased_triggers_come_again_after_reopening(void **state)
{
	(void)state;
	gpul_fifo *f = begin(16, 2);

	for (unsigned i = 0; i < 5; i++)
		push(1, i);
	assert_int_equal(gpul_fifo_poll(f, items, 2), 2);
	gpul_fifo_release(f);
	assert_int_equal(gpul_fifo_poll(f, items, 2), 2);
	gpul_fifo_close(f);
	assert_int_equal(gpul_fifo_open(area, sizeof(area), &f, NULL), GPUL_OK);
	assert_int_equal(gpul_fifo_poll(f, items, 16), 3);
	for (unsigned i = 0; i < 3; i++)
		expect(&items[i], 1, i + 2, i + 2);
	gpul_fifo_close(f);
}

/* Compares one large batch with many small ones. */
static void small_and_large_batches_return_the_same_order(void **state)
{
	(void)state;
	enum { LANES = 128, EACH = 3 };
	static gpul_fifo_item large[LANES * EACH];

	for (unsigned max = 1; max <= 200; max += 1 + max / 2) {
		unsigned n[2] = { 0 };

		for (unsigned small = 0; small < 2; small++) {
			gpul_fifo *f = begin(4 * LANES, LANES);
			gpul_fifo_item *to = small ? items : large;

			for (unsigned lane = 0; lane < LANES; lane += 1 + lane % 3)
				for (unsigned i = 0; i < EACH; i++)
					push(lane, i);
			/* a batch takes all triggers of a lane that fit, so the size of a small batch is a multiple of EACH */
			for (unsigned got; (got = gpul_fifo_poll(f, to + n[small], small ? EACH * max : LANES * EACH)) > 0;) {
				n[small] += got;
				if (small)
					gpul_fifo_release(f);
			}
			gpul_fifo_close(f);
		}
		assert_int_equal(n[0], n[1]);
		for (unsigned i = 0; i < n[0]; i++)
			expect(&items[i], large[i].lane, large[i].position, large[i].word[0]);
	}
}

static void triggers_during_a_batch_wait_for_the_turn_of_their_lane(void **state)
{
	(void)state;
	gpul_fifo *f = begin(64, 16);

	for (unsigned lane = 4; lane < 7; lane++)
		push(lane, lane);
	assert_int_equal(gpul_fifo_poll(f, items, 1), 1);
	expect(&items[0], 4, 0, 4);
	push(4, 44);  /* the scan has already passed this lane */
	push(15, 15); /* pushed after the last scan */
	push(5, 55);  /* the scan found this lane, so all its triggers are taken */
	assert_int_equal(gpul_fifo_poll(f, items, 16), 3);
	expect(&items[0], 5, 0, 5);
	expect(&items[1], 5, 1, 55);
	expect(&items[2], 6, 0, 6);
	assert_int_equal(gpul_fifo_poll(f, items, 16), 1);
	expect(&items[0], 15, 0, 15);
	assert_int_equal(gpul_fifo_poll(f, items, 16), 1);
	expect(&items[0], 4, 1, 44);
	gpul_fifo_close(f);
}

/* ---- aborting ---------------------------------------------------------------------- */

static void first_abort_code_is_written_to_all_lanes_and_stays(void **state)
{
	(void)state;
	gpul_fifo *f = begin(128, 128);

	assert_int_equal(gpul_fifo_aborted(f), 0);
	gpul_fifo_abort(f, 17);
	gpul_fifo_abort(f, 18);
	assert_int_equal(gpul_fifo_aborted(f), 17);
	for (unsigned lane = 0; lane < 128; lane++)
		assert_int_equal(pusher_aborted(&pushers[lane]), 17);
	gpul_fifo_close(f);
	f = open_area(128);
	gpul_fifo_abort(f, 19);
	assert_int_equal(gpul_fifo_aborted(f), 17); /* a newly opened CPU end sees the abort, too */
	gpul_fifo_close(f);
}

/* When two threads abort at the same time, the code in lane 0 counts, and both threads write that code to the other lanes. */
static void abort_code_of_lane_0_is_completed_in_all_lanes(void **state)
{
	(void)state;
	gpul_fifo *f = begin(8, 8);

	line(0)->abort = 5;
	gpul_fifo_abort(f, 6);
	for (unsigned lane = 0; lane < 8; lane++)
		assert_int_equal(pusher_aborted(&pushers[lane]), 5);
	gpul_fifo_close(f);
}

static void next_poll_copies_a_raised_code_to_all_lanes(void **state)
{
	(void)state;
	for (unsigned asked = 0; asked < 2; asked++) {
		gpul_fifo *f = begin(8, 4);
		struct gpul_fifo_header *h = (void *)area;

		h->raised = GPUL_FIFO_CODE_TIMED_OUT;
		push(2, 1);
		if (asked)
			assert_int_equal(gpul_fifo_aborted(f), GPUL_FIFO_CODE_TIMED_OUT);
		else
			assert_int_equal(gpul_fifo_poll(f, items, 1), 1); /* an aborted FIFO still returns the pushed trigger */
		for (unsigned lane = 0; lane < 4; lane++)
			assert_int_equal(pusher_aborted(&pushers[lane]), GPUL_FIFO_CODE_TIMED_OUT);
		gpul_fifo_abort(f, 3);
		h->raised = 4;
		assert_int_equal(gpul_fifo_aborted(f), GPUL_FIFO_CODE_TIMED_OUT);
		gpul_fifo_close(f);
	}
}

static void large_raised_word_becomes_the_largest_code(void **state)
{
	(void)state;
	static const uint64_t words[] = { 1ull << 32, UINT64_MAX, UINT32_MAX, 1ull << 63 };

	for (unsigned i = 0; i < 4; i++) {
		gpul_fifo *f = begin(8, 4);

		((struct gpul_fifo_header *)(void *)area)->raised = words[i];
		assert_int_equal(gpul_fifo_poll(f, items, 1), 0);
		assert_int_equal(gpul_fifo_aborted(f), UINT32_MAX);
		assert_int_equal(pusher_aborted(&pushers[3]), UINT32_MAX);
		gpul_fifo_close(f);
	}
}

static void reset_empties_the_fifo(void **state)
{
	(void)state;
	gpul_fifo *f = begin(8, 2);

	for (unsigned i = 0; i < 3; i++)
		push(i & 1, i);
	assert_int_equal(gpul_fifo_poll(f, items, 2), 2);
	pusher_store(&pushers[1], 3, 1, 0); /* writes one word of a slot that follows an empty slot */
	((struct gpul_fifo_header *)(void *)area)->raised = 9;
	assert_int_equal(gpul_fifo_aborted(f), 9);
	assert_int_equal(gpul_fifo_reset(f, NULL), GPUL_OK);
	assert_int_equal(gpul_fifo_aborted(f), 0);
	gpul_fifo_release(f); /* has no effect after the reset */
	for (unsigned lane = 0; lane < 2; lane++) {
		assert_int_equal(pusher_aborted(&pushers[lane]), 0);
		assert_int_equal(line(lane)->tail, 0);
		pushers[lane] = pusher_of(area, lane);
	}
	assert_int_equal(gpul_fifo_poll(f, items, 8), 0);
	for (unsigned i = 0; i < 8; i++)
		push(i & 1, i);
	assert_int_equal(gpul_fifo_poll(f, items, 8), 8);
	for (unsigned i = 0; i < 8; i++)
		expect(&items[i], i / 4, i % 4, 2 * (i % 4) + i / 4);
	gpul_fifo_close(f);
}

static void abort_codes_are_described_as_text(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { uint32_t code; const char *says; } codes[] = {
		{ 0, "not aborted" }, { GPUL_ESYS, "a handler failed with status 5" },
		{ GPUL_FIFO_CODE_TIMED_OUT, "a kernel waited longer than its time-out" }, { GPUL_FIFO_CODE_STOPPED, "the proxy was stopped" },
		{ GPUL_FIFO_CODE_PEER_GONE, "the other process has ended" }, { UINT32_MAX, "code 4294967295" },
	};
	/* clang-format on */
	char buf[64];

	for (unsigned i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		assert_string_equal(gpul_fifo_code_text(codes[i].code, buf), codes[i].says);
}

static void the_kind_is_in_the_four_bits_below_the_lap_bit(void **state)
{
	(void)state;
	gpul_fifo *f = begin(16, 1);

	for (unsigned kind = 0; kind < GPUL_FIFO_N_KINDS; kind++)
		assert_true(pusher_push(&pushers[0], 1, (uint64_t)kind << GPUL_FIFO_KIND_SHIFT | 5));
	assert_int_equal(gpul_fifo_poll(f, items, 16), 16);
	for (unsigned kind = 0; kind < GPUL_FIFO_N_KINDS; kind++)
		assert_int_equal(gpul_fifo_kind(&items[kind]), kind);
	gpul_fifo_close(f);
}

/* gpul_fifo_poll() copies triggers, gpul_fifo_poll_run() returns them in place; the two calls can be mixed. */
static void run_consists_of_consecutive_triggers(void **state)
{
	(void)state;
	for (unsigned pushed = 1, max = 1; pushed <= 16; pushed++, max = max * 3 % 17) {
		gpul_fifo *f = begin(32, 2);
		gpul_fifo_run run = { 0 };

		for (uint64_t at = 0; at < 1000;) {
			uint64_t got = 0;

			assert_int_equal(gpul_fifo_poll_run(f, &run, max), 0);
			for (unsigned i = 0; i < pushed; i++)
				push(1, at + i);
			while (got < pushed) {
				const uint64_t position = at + got;

				if (position % 5 == 0) {
					assert_int_equal(gpul_fifo_poll(f, items, 1), 1);
					expect(items, 1, position, position);
					got++;
					continue;
				}
				assert_int_not_equal(gpul_fifo_poll_run(f, &run, max), 0);
				assert_in_range(run.n, 1, max);
				assert_in_range(position % 16 + run.n, 1, 16);
				assert_int_equal(run.lane, 1);
				assert_int_equal(run.position, position);
				for (unsigned i = 0; i < run.n; i++)
					assert_int_equal(run.triggers[i].word[0] ^ run.lap, position + i);
				got += run.n;
			}
			assert_int_equal(gpul_fifo_poll(f, items, 1), 0);
			assert_int_equal(line(1)->tail, at);
			gpul_fifo_release(f);
			at += pushed;
			assert_int_equal(line(1)->tail, at);
		}
		gpul_fifo_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(triggers_are_taken_once_and_in_order),
		cmocka_unit_test(every_shape_returns_all_triggers_of_all_lanes),
		cmocka_unit_test(slot_is_taken_when_both_halves_have_arrived),
		cmocka_unit_test(half_written_slot_ends_a_batch_of_its_lane),
		cmocka_unit_test(triggers_behind_a_gap_are_not_taken),
		cmocka_unit_test(slots_are_free_only_after_a_release),
		cmocka_unit_test(release_lane_frees_up_to_a_position_and_release_the_rest),
		cmocka_unit_test(busy_lane_does_not_starve_other_lanes),
		cmocka_unit_test(poll_finds_a_trigger_in_any_lane_for_every_turn),
		cmocka_unit_test(poll_with_max_0_takes_nothing),
		cmocka_unit_test(positions_wrap_around_at_2_to_the_64),
		cmocka_unit_test(unreleased_triggers_come_again_after_reopening),
		cmocka_unit_test(small_and_large_batches_return_the_same_order),
		cmocka_unit_test(triggers_during_a_batch_wait_for_the_turn_of_their_lane),
		cmocka_unit_test(first_abort_code_is_written_to_all_lanes_and_stays),
		cmocka_unit_test(abort_code_of_lane_0_is_completed_in_all_lanes),
		cmocka_unit_test(next_poll_copies_a_raised_code_to_all_lanes),
		cmocka_unit_test(large_raised_word_becomes_the_largest_code),
		cmocka_unit_test(reset_empties_the_fifo),
		cmocka_unit_test(run_consists_of_consecutive_triggers),
		cmocka_unit_test(abort_codes_are_described_as_text),
		cmocka_unit_test(the_kind_is_in_the_four_bits_below_the_lap_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
