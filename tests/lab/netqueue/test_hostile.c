/* test_hostile.c — entries with wrong members are refused and reported; nothing outside of the destination is written. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include <errno.h>

#include "core/clock.h"
#include "tests/lab/netqueue/hostile.h"

enum { SLOT = 4096, SLOTS = 512, DESTINATION = 10000 }; /* SLOTS * SLOT is 2 MiB, exactly one mapping */

struct limit {
	uint64_t source, destination;
	uint32_t lap, length, field; /* field: the one that is reported as wrong; 0: none */
	const char *text;
};

static const struct limit limits[] = {
	{ 0, 0, 1, SLOT, 0, "" },
	{ 0, 0, 1, SLOT + 1, GPUL_NETQUEUE_LENGTH, "entry 0: its length is 4097 bytes, expected 1 to 4096" },
	{ 0, 0, 1, 0, GPUL_NETQUEUE_LENGTH, "entry 0: its length is 0 bytes, expected 1 to 4096" },
	{ SLOTS * SLOT - 1, 0, 1, 1, 0, "" },
	{ SLOTS * SLOT, 0, 1, 1, GPUL_NETQUEUE_SOURCE, "the data begins at byte 2097152 of the bounce memory, which has 2097152 bytes" },
	{ SLOTS * SLOT - 1, 0, 1, 2, GPUL_NETQUEUE_SOURCE_END,
	  "the data ends at byte 2097153 of the bounce memory, which has 2097152 bytes" },
	{ GPUL_NETQUEUE_SOURCE_MASK, 0, 1, 1, GPUL_NETQUEUE_SOURCE, "begins at byte 68719476735" },
	{ SLOT - 7, 0, 1, 7, 0, "" },
	{ SLOT - 7, 0, 1, 8, GPUL_NETQUEUE_SLOT_END, "the data ends at byte 4097 of the bounce memory, but its slot ends at byte 4096" },
	{ 0, DESTINATION - 1, 1, 1, 0, "" },
	{ 0, DESTINATION, 1, 1, GPUL_NETQUEUE_DESTINATION, "the data would go to byte 10000 of the destination, which has 10000 bytes" },
	{ 0, DESTINATION - 1, 1, 2, GPUL_NETQUEUE_DESTINATION_END,
	  "the data ends at byte 10001 of the destination, which has 10000 bytes" },
	{ 0, GPUL_NETQUEUE_DESTINATION_MASK, 1, 1, GPUL_NETQUEUE_DESTINATION, "go to byte 72057594037927935" },
	{ 0, 0, 2, 1, GPUL_NETQUEUE_LAP, "entry 0: its lap number is 2, expected 1" },
	{ 0, 0, 0, 1, GPUL_NETQUEUE_LAP, "entry 0: its lap number is 0, expected 1" },
	{ 0, 0, 255, 1, GPUL_NETQUEUE_LAP, "entry 0: its lap number is 255, expected 1" },
};

static void checks_each_limit(void **state)
{
	const gpul_netqueue_desc desc = { .shape = { .n_slots = SLOTS, .slot_bytes = SLOT, .n_entries = 64 } };
	struct rig r;

	(void)state;
	rig_open(&r, &desc, DESTINATION, 3);
	rig_fill_bounce(&r);
	for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
		const struct limit *l = &limits[i];
		/* A valid entry follows the wrong one, and must still be executed. */
		const gpul_netqueue_entry entries[] = { gpul_netqueue_pack(l->lap, l->source, l->length, l->destination),
							gpul_netqueue_pack(1, 5, 9, 7) };
		gpul_netqueue_result result;
		gpul_error err = { 0 };

		rig_fill_destination(&r);
		assert_int_equal(rig_rule(&r, 0, &entries[0]), l->field);
		assert_int_equal(rig_run(&r, entries, 2, &result, &err), l->field ? GPUL_EFORMAT : GPUL_OK);
		assert_int_equal(result.counts.n_pieces, l->field ? 1 : 2);
		assert_int_equal(result.counts.n_refused, l->field ? 1 : 0);
		assert_int_equal(result.counts.refused[l->field], l->field ? 1 : 0);
		assert_true(rig_first_wrong(&r, entries, 2) == UINT64_MAX);
		if (!strstr(err.text, l->text))
			fail_msg("'%s', expected '%s'", err.text, l->text);
	}
	rig_close(&r);
}

static void refuses_random_entries_and_writes_nothing_outside(void **state)
{
	static const unsigned shapes[][3] = { { 1, 8, 64 }, { 2, 4, 96 }, { 3, 32, 128 } };
	uint64_t refused[GPUL_NETQUEUE_N_FIELDS] = { 0 };

	(void)state;
	for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const gpul_netqueue_desc desc = { .shape = { .n_slots = SLOTS,
							     .slot_bytes = SLOT,
							     .n_entries = 1024,
							     .n_blocks = shapes[i][0],
							     .chunk_entries = shapes[i][1] },
						  .n_threads = shapes[i][2] };
		struct rig r;

		rig_open(&r, &desc, DESTINATION, i);
		r.seed = 100 + i;
		rig_fill_bounce(&r);
		assert_true(hostile_round(&r, refused));
		rig_close(&r);
	}
	for (unsigned field = 1; field < GPUL_NETQUEUE_N_FIELDS; field++)
		assert_true(refused[field] > 0); /* at least one entry broke this rule */
}

static void reports_more_refusals_than_there_is_room_for(void **state)
{
	const gpul_netqueue_desc desc = { .shape = { .n_entries = 256 } };
	static gpul_netqueue_entry entries[200];
	gpul_netqueue_result result;
	gpul_error err = { 0 };
	struct rig r;

	(void)state;
	rig_open(&r, &desc, DESTINATION, 0);
	for (unsigned i = 0; i < 200; i++)
		entries[i] = gpul_netqueue_pack(1, 0, 1, DESTINATION + i);
	assert_int_equal(rig_run(&r, entries, 200, &result, &err), GPUL_EFORMAT);
	assert_int_equal(result.counts.n_refused, 200);
	assert_int_equal(result.n_reports, GPUL_NETQUEUE_MAX_REPORTS);
	assert_non_null(strstr(err.text, "200 of 200 pieces of data were rejected; entry "));
	rig_close(&r);
}

static void reports_an_entry_that_never_comes(void **state)
{
	const gpul_netqueue_desc desc = { .shape = { .n_entries = 64, .n_blocks = 1 }, .timeout_ms = 200 };
	const gpul_netqueue_entry right = gpul_netqueue_pack(1, 0, 100, 0);
	gpul_netqueue_result result;
	gpul_error err = { 0 };
	struct rig r;

	(void)state;
	rig_open(&r, &desc, DESTINATION, 0);
	rig_must(gpul_netqueue_begin(r.queue, r.destination, r.destination_bytes, &err), &err, "begin");
	gpul_netqueue_write(r.queue, 0, &right);
	gpul_netqueue_publish(r.queue, 1, false);
	assert_int_equal(gpul_netqueue_wait(r.queue, &result, &err), GPUL_ESYS);
	assert_int_equal(err.native, ETIMEDOUT);
	assert_non_null(strstr(err.text, "for entry 1 of the ring, but the CPU has not written"));
	assert_int_equal(result.counts.n_pieces, 1);
	rig_close(&r);
}

static void leaves_after_an_abort(void **state)
{
	const gpul_netqueue_desc desc = { .timeout_ms = -1 };
	const uint64_t start_ns = gpul_clock_ns();
	gpul_netqueue_result result;
	gpul_error err = { 0 };
	struct rig r;

	(void)state;
	rig_open(&r, &desc, DESTINATION, 0);
	rig_must(gpul_netqueue_begin(r.queue, r.destination, r.destination_bytes, &err), &err, "begin");
	assert_int_equal(gpul_netqueue_begin(r.queue, r.destination, r.destination_bytes, &err), GPUL_EINVAL);
	gpul_netqueue_abort(r.queue);
	err = (gpul_error){ 0 };
	rig_must(gpul_netqueue_wait(r.queue, &result, &err), &err, "wait");
	rig_must(gpul_netqueue_begin(r.queue, r.destination, r.destination_bytes, &err), &err, "begin");
	rig_close(&r); /* closes while the kernel is running */
	assert_true(gpul_clock_ns() - start_ns < 60000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks_each_limit),
		cmocka_unit_test(refuses_random_entries_and_writes_nothing_outside),
		cmocka_unit_test(reports_more_refusals_than_there_is_room_for),
		cmocka_unit_test(reports_an_entry_that_never_comes),
		cmocka_unit_test(leaves_after_an_abort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
