/* test_calls.c — gpuload calls: its filter, and its reader on records that a test writes: nested, unfinished, and damaged ones. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "cli/calls/log/filter.h"
#include "cli/calls/log/reader.h"

/* ---- the filter ------------------------------------------------------------------------------ */

static uint8_t wishes[CALLS_MAX_ROWS];

static bool wants(const char *symbol)
{
	const struct calls_row *row = calls_find(symbol);

	assert_non_null(row);
	return wishes[row - calls_rows] == CALLS_WANTED;
}

static void a_filter_has_names_patterns_and_classes(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(filter_read("cuMemAlloc,cuEvent*,vmm", wishes, &err), GPUL_OK);
	assert_true(wants("cuMemAlloc_v2") && wants("cuEventRecord") && wants("cuMemCreate"));
	assert_false(wants("cuMemAllocPitch_v2") || wants("cuInit"));
	assert_int_equal(wishes[calls_find("cuModuleGetFunction") - calls_rows], CALLS_HIDDEN);
	assert_int_equal(filter_read("!driver", wishes, &err), GPUL_OK);
	assert_true(wants("cudaMalloc") && !wants("cuMemAlloc_v2"));
	assert_int_equal(filter_read("memory,!cudaMalloc", wishes, &err), GPUL_OK);
	assert_true(wants("cudaFree") && !wants("cudaMalloc") && !wants("cudaLaunchKernel"));
	assert_int_equal(filter_read(NULL, wishes, &err), GPUL_OK);
	assert_true(wants("cuInit") && wants("cudaMalloc"));
}

static void a_filter_names_what_fits_nothing(void **state)
{
	static const char *const bad[] = { "cuMemAloc", "no*", "!x", ",", "launch,,x" };
	gpul_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		err.status = GPUL_OK;
		assert_int_equal(filter_read(bad[i], wishes, &err), GPUL_EINVAL);
	}
	assert_int_equal(filter_read("cuMemAloc", wishes, &(gpul_error){ 0 }), GPUL_EINVAL);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static struct reader reader;
static struct sink sink;
static struct {
	const char *name;
	unsigned depth;
	bool finished;
} seen[64];
static size_t n_seen;
static char kernel[64];

static void collect(struct sink *s, const struct calls_event *e)
{
	const char *name = e->row->n_words > 0 && !strcmp(e->row->category, "launch") ? kernel_name(s->names, e->pid, e->words[0]) : NULL;

	if (n_seen < 64) {
		seen[n_seen].name = e->row->name;
		seen[n_seen].depth = e->depth;
		seen[n_seen].finished = e->finished;
	}
	n_seen++;
	if (name)
		strncpy(kernel, name, sizeof kernel - 1);
	for (size_t i = 0; i < e->row->n_params; i++)
		calls_piece_of(e, i);
}

static int open_reader(void **state)
{
	(void)state;
	sink = (struct sink){ .fd = -1, .add = collect };
	n_seen = 0;
	return filter_read("all", wishes, NULL) || reader_open(wishes, &sink, &reader, NULL);
}

/* Claim a slot for this process. */
static struct calls_slot *claim(uint32_t i)
{
	struct calls_slot *slot = &reader.log->slots[i];

	slot->pid = slot->tid = getpid();
	if (atomic_load(&reader.log->n_slots) <= i)
		atomic_store(&reader.log->n_slots, i + 1);
	atomic_store(&slot->state, CALLS_SLOT_ACTIVE);
	return slot;
}

static void write_record(uint32_t i, uint8_t kind, const char *symbol, uint16_t sequence, uint64_t ticks, const void *content, size_t n)
{
	struct calls_slot *slot = &reader.log->slots[i];
	const uint64_t head = atomic_load(&slot->head);
	uint8_t *at = calls_ring(reader.log, i) + head % CALLS_RING_BYTES;
	struct calls_record r = { (uint16_t)((sizeof r + n + 15) / 16 * 16),   kind,     0,
				  (uint16_t)(calls_find(symbol) - calls_rows), sequence, ticks };

	memcpy(at, &r, sizeof r);
	memcpy(at + sizeof r, content, n);
	atomic_store(&slot->head, head + r.n_bytes);
}

static void calls_are_in_the_order_of_their_beginnings(void **state)
{
	static const uint64_t zeros[32];

	(void)state;
	claim(0);
	write_record(0, CALLS_ENTER, "cudaMalloc", 1, 10, zeros, 16);
	write_record(0, CALLS_ENTER, "cuMemAlloc_v2", 2, 20, zeros, 16);
	write_record(0, CALLS_EXIT, "cuMemAlloc_v2", 2, 30, zeros, 16);
	reader_drain(&reader);
	assert_int_equal(n_seen, 0); /* nothing is printed yet, because the outer call has not returned */
	write_record(0, CALLS_EXIT, "cudaMalloc", 1, 40, zeros, 16);
	write_record(0, CALLS_ENTER, "cuCtxSynchronize", 3, 50, zeros, 0);
	reader_drain(&reader);
	assert_int_equal(n_seen, 2);
	assert_string_equal(seen[0].name, "cudaMalloc");
	assert_string_equal(seen[1].name, "cuMemAlloc_v2");
	assert_true(seen[0].depth == 0 && seen[1].depth == 1 && seen[0].finished && seen[1].finished);
	reader_close(&reader);
	assert_int_equal(n_seen, 3);
	assert_false(seen[2].finished);
}

static void a_call_without_an_end_ends_with_the_outer_one(void **state)
{
	static const uint64_t zeros[32];

	(void)state;
	claim(0);
	write_record(0, CALLS_ENTER, "cudaMalloc", 1, 10, zeros, 16);
	write_record(0, CALLS_ENTER, "cuMemAlloc_v2", 2, 20, zeros, 16);
	write_record(0, CALLS_EXIT, "cudaMalloc", 1, 40, zeros, 16);
	write_record(0, CALLS_EXIT, "cudaMalloc", 77, 50, zeros, 16); /* the EXIT of a call without a recorded ENTER */
	reader_drain(&reader);
	assert_int_equal(n_seen, 2);
	assert_true(seen[0].finished && !seen[1].finished);
	reader_close(&reader);
}

static void a_kernel_has_the_name_that_another_thread_looked_up(void **state)
{
	const uint64_t arguments[] = { 0x1000, 0x2000, 0x3000, 1, 0x6b /* k */ }, launch[11] = { 0xabc };
	const uint64_t result[] = { 0, 8, 0xabc };

	(void)state;
	claim(0);
	claim(1);
	write_record(0, CALLS_ENTER, "cuLaunchKernel", 1, 100, launch, sizeof launch);
	write_record(0, CALLS_EXIT, "cuLaunchKernel", 1, 110, (uint64_t[]){ 0 }, 8);
	write_record(1, CALLS_ENTER, "cuModuleGetFunction", 1, 20, arguments, sizeof arguments);
	write_record(1, CALLS_EXIT, "cuModuleGetFunction", 1, 30, result, sizeof result);
	reader_drain(&reader);
	assert_string_equal(kernel, "k");
	reader_close(&reader);
}

static void a_call_that_waits_does_not_keep_thousands_of_others(void **state)
{
	static const uint64_t zeros[32];

	(void)state;
	claim(0);
	write_record(0, CALLS_ENTER, "cudaDeviceSynchronize", 1, 1, zeros, 0);
	for (int i = 0; i < 10000; i++) {
		write_record(0, CALLS_ENTER, "cuMemAlloc_v2", 2, 2, zeros, 16);
		write_record(0, CALLS_EXIT, "cuMemAlloc_v2", 2, 3, zeros, 16);
	}
	reader_drain(&reader);
	assert_true(n_seen >= 8000);
	write_record(0, CALLS_EXIT, "cudaDeviceSynchronize", 1, 4, zeros, 8);
	reader_drain(&reader);
	assert_int_equal(n_seen, 10001);
	reader_close(&reader);
}

static void a_ring_that_the_program_has_overwritten_does_no_harm(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 300; round++) {
		struct calls_slot *slot;

		assert_int_equal(round ? open_reader(NULL) : 0, 0);
		slot = claim(0);
		for (size_t i = 0; i < 4096; i++)
			calls_ring(reader.log, 0)[i] = (uint8_t)(rand() % (round % 3 ? 256 : 4));
		for (size_t i = 0; i < 4096; i += 16 * (1 + (size_t)rand() % 8)) /* write plausible record headers at random offsets */
			*(struct calls_record *)(calls_ring(reader.log, 0) + i) = (struct calls_record){
				(uint16_t)(16 * (rand() % 20)),         (uint8_t)(rand() % 3),  0,
				(uint16_t)(rand() % (int)n_calls_rows), (uint16_t)(rand() % 3), 1
			};
		atomic_store(&slot->head, round % 5 ? 4096 : (uint64_t)rand() << 30);
		reader_drain(&reader);
		reader_close(&reader);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filter_has_names_patterns_and_classes),
		cmocka_unit_test(a_filter_names_what_fits_nothing),
		cmocka_unit_test_setup(calls_are_in_the_order_of_their_beginnings, open_reader),
		cmocka_unit_test_setup(a_call_without_an_end_ends_with_the_outer_one, open_reader),
		cmocka_unit_test_setup(a_kernel_has_the_name_that_another_thread_looked_up, open_reader),
		cmocka_unit_test_setup(a_call_that_waits_does_not_keep_thousands_of_others, open_reader),
		cmocka_unit_test_setup(a_ring_that_the_program_has_overwritten_does_no_harm, open_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
