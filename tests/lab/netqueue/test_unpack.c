/* test_unpack.c — the kernel copies pieces of all lengths and alignments, and touches nothing else. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/lab/netqueue/rig.h"

enum { MOST_ENTRIES = 8192 };

static gpul_netqueue_entry entries[MOST_ENTRIES];

static void run_and_compare(struct rig *r, uint64_t n)
{
	gpul_netqueue_result result;
	uint64_t bytes = 0, wrong;
	gpul_error err = { 0 };

	for (uint64_t i = 0; i < n; i++)
		bytes += gpul_netqueue_length_of(&entries[i]);
	rig_must(rig_run(r, entries, n, &result, &err), &err, "run");
	assert_int_equal(result.counts.n_pieces, n);
	assert_int_equal(result.counts.n_bytes, bytes);
	wrong = rig_first_wrong(r, entries, n);
	if (wrong != UINT64_MAX)
		fail_msg("byte %lld of the destination is wrong", (long long)wrong - GUARD_BYTES);
}

static void copies_every_pair_of_alignments(void **state)
{
	static const uint32_t lengths[] = { 1, 2, 14, 15, 16, 17, 29, 31, 33, 47, 500, 2065, 4096 + 511, 4096 + 512, 2 * 4096 + 513 };
	const gpul_netqueue_desc desc = { .device = 0 };
	struct rig r;

	(void)state;
	rig_open(&r, &desc, 3 << 20, 0);
	rig_fill_bounce(&r);
	for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++) {
		uint64_t n = 0, to = 0;

		rig_fill_destination(&r);
		for (uint32_t a = 0; a < 16; a++)
			for (uint32_t b = 0; b < 16; b++, n++) {
				to = (to + 16) / 16 * 16 + b;
				entries[n] = gpul_netqueue_pack(1, rig_below(&r, 1000) * 16 + a, lengths[l], to);
				to += lengths[l] + 1;
			}
		assert_true(to < r.destination_bytes);
		run_and_compare(&r, n);
	}
	rig_close(&r);
}

static void copies_random_pieces(void **state)
{
	/* {blocks, chunk_entries, threads, most bytes of a piece, shift of the destination} */
	static const unsigned shapes[][5] = {
		{ 1, 1, 64, 300, 0 }, { 2, 8, 96, 65536, 5 }, { 3, 4, 128, 20000, 16 }, { 2, 32, 64, 33, 11 }, { 2, 1, 160, 5000, 1 }
	};

	(void)state;
	for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const gpul_netqueue_desc desc = { .shape = { .n_blocks = shapes[i][0], .chunk_entries = shapes[i][1] },
						  .n_threads = shapes[i][2] };
		struct rig r;

		rig_open(&r, &desc, shapes[i][3] > 1000 ? 600000 : 60000, shapes[i][4]);
		r.seed = i;
		rig_fill_bounce(&r);
		for (int gaps = 0; gaps < 2; gaps++) {
			const uint64_t n = rig_random_entries(&r, entries, MOST_ENTRIES, shapes[i][3], gaps ? 40 : 0);

			rig_fill_destination(&r);
			assert_true(n > 4);
			run_and_compare(&r, n);
		}
		rig_close(&r);
	}
}

static void reads_no_byte_outside_of_the_bounce_memory(void **state)
{
	/* The bounce memory fills its whole mapping, so the software driver reports an access after its end. */
	const gpul_netqueue_desc desc = { .shape = { .n_slots = 32 } };
	struct rig r;
	uint64_t n = 0, to = 0;

	(void)state;
	rig_open(&r, &desc, 400000, 0);
	rig_fill_bounce(&r);
	const uint64_t all = (uint64_t)r.shape.n_slots * r.shape.slot_bytes;

	assert_int_equal(gpul_mem_about(gpul_netqueue_bounce(r.queue))->mapped_bytes, all);
	for (uint32_t length = 1; length < 700; length += 13, n += 2) {
		entries[n] = gpul_netqueue_pack(1, 0, length, to);
		entries[n + 1] = gpul_netqueue_pack(1, all - length, length, to + length);
		to += 2 * length;
	}
	run_and_compare(&r, n);
	rig_close(&r);
}

static void refuses_a_shape_that_is_not_possible(void **state)
{
	/* clang-format off */
	static const gpul_netqueue_desc bad[] = {
		{ .shape = { .slot_bytes = 1000 } }, { .shape = { .slot_bytes = 1 << 20 } }, { .shape = { .n_slots = 1 } },
		{ .shape = { .n_slots = 3 } }, { .shape = { .n_entries = 100 } }, { .shape = { .chunk_entries = 64 } }, { .n_threads = 32 }, { .n_threads = 100 }, { .n_threads = 1024 },
	};
	/* clang-format on */
	gpul_netqueue *q = NULL;
	const gpul_driver *drv;
	gpul_context context;
	gpul_error err = { 0 };

	(void)state;
	rig_must(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err), &err, "driver");
	rig_must(gpul_context_open(drv, 0, &context, &err), &err, "context");
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		err = (gpul_error){ 0 };
		assert_int_equal(gpul_netqueue_create(drv, &bad[i], &q, &err), GPUL_EINVAL);
		assert_non_null(strstr(err.text, "expected"));
		assert_null(q);
	}
	gpul_context_close(&context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_every_pair_of_alignments),
		cmocka_unit_test(copies_random_pieces),
		cmocka_unit_test(reads_no_byte_outside_of_the_bounce_memory),
		cmocka_unit_test(refuses_a_shape_that_is_not_possible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
