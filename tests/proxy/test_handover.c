/* test_handover.c — where new kernels continue after a process with kernels was killed during a push. */
#include <stdlib.h>
#include "tests/support/cmocka.h"
#include "driver/context.h"
#include "proxy/fifo.h"

static _Alignas(512) unsigned char area[8192];
static const gpul_fifo_shape shape = { .slots = 16, .lanes = 2 };
enum { PER_LANE = 8 };

static const gpul_driver *drv;
static gpul_context context;

static int open_driver(void **state)
{
	(void)state;
	return gpul_driver_open(GPUL_DRIVER_SOFT, &drv, NULL) || gpul_context_open(drv, 0, &context, NULL);
}

static int close_driver(void **state)
{
	(void)state;
	gpul_context_close(&context);
	return 0;
}

static struct gpul_trigger *slot_of(unsigned lane, uint64_t at)
{
	struct gpul_trigger *slots = (void *)(area + gpul_fifo_area_bytes(&shape) - shape.slots * sizeof(*slots));

	return &slots[lane * PER_LANE + at % PER_LANE];
}

/* Store words of a slot as a kernel does; bit 0 of `what` is the first word, bit 1 the second. */
static void store(unsigned lane, uint64_t at, int what)
{
	const uint64_t lap = (~(at / PER_LANE) & 1) << 63;

	for (int i = 0; i < 2; i++)
		if (what >> i & 1)
			slot_of(lane, at)->word[i] = at | lap;
}

static gpul_fifo *begin(void)
{
	gpul_fifo *f = NULL;

	assert_int_equal(gpul_fifo_area_format(area, sizeof(area), &shape, NULL), GPUL_OK);
	assert_int_equal(gpul_fifo_open(area, sizeof(area), &f, NULL), GPUL_OK);
	return f;
}

static gpul_fifo_gpu *kernels_end(void)
{
	gpul_fifo_gpu *g = NULL;
	gpul_error err = { 0 };

	if (gpul_fifo_gpu_create(drv, area, (CUdeviceptr)(uintptr_t)area, sizeof(area), &g, &err))
		fail_msg("%s", err.text);
	return g;
}

static uint64_t head_of(const gpul_fifo_gpu *g, unsigned lane)
{
	struct gpul_fifo_lane lanes[2];

	assert_int_equal(drv->cuMemcpyDtoH(lanes, (CUdeviceptr)(uintptr_t)gpul_fifo_gpu_param(g)->lanes, sizeof(lanes)), 0);
	return lanes[lane].head;
}

static void expect_items(gpul_fifo *f, unsigned lane, uint64_t from, uint64_t upto)
{
	gpul_fifo_item items[2 * PER_LANE];

	assert_int_equal(gpul_fifo_poll(f, items, 2 * PER_LANE), upto - from);
	for (uint64_t at = from; at < upto; at++) {
		assert_int_equal(items[at - from].lane, lane);
		assert_int_equal(items[at - from].position, at);
		assert_int_equal(items[at - from].word[0], at);
		assert_int_equal(items[at - from].word[1], at);
	}
	gpul_fifo_release(f);
}

static void kernels_begin_at_zero_in_new_memory(void **state)
{
	(void)state;
	gpul_fifo *f = begin();
	gpul_fifo_gpu *g = kernels_end();

	assert_int_equal(head_of(g, 0), 0);
	assert_int_equal(head_of(g, 1), 0);
	gpul_fifo_gpu_destroy(g);
	gpul_fifo_close(f);
}

/* Tests each position of two laps, so that the lap bit has both values. */
static void new_kernels_continue_behind_unhandled_triggers(void **state)
{
	(void)state;
	gpul_fifo *f = begin();

	for (uint64_t at = 0; at < 2 * PER_LANE + 2; at += 3) {
		for (uint64_t i = at; i < at + 3; i++)
			store(1, i, 3);
		gpul_fifo_gpu *g = kernels_end();

		assert_int_equal(head_of(g, 0), 0);
		assert_int_equal(head_of(g, 1), at + 3);
		gpul_fifo_gpu_destroy(g);
		expect_items(f, 1, at, at + 3);
	}
	gpul_fifo_close(f);
}

static void full_lane_stays_full_for_new_kernels(void **state)
{
	(void)state;
	gpul_fifo *f = begin();

	for (uint64_t at = 0; at < PER_LANE; at++)
		store(0, at, 3);
	gpul_fifo_gpu *g = kernels_end();

	assert_int_equal(head_of(g, 0), PER_LANE);
	gpul_fifo_gpu_destroy(g);
	expect_items(f, 0, 0, PER_LANE);
	gpul_fifo_close(f);
}

/* Tests each kind of gap at each position of two laps; triggers after a gap must never be returned. */
static void triggers_of_dead_kernels_behind_a_gap_are_never_taken(void **state)
{
	(void)state;
	for (int torn = 0; torn < 3; torn++) {
		gpul_fifo *f = begin();

		for (uint64_t at = 0; at < 2 * PER_LANE; at++) {
			store(0, at, torn);
			store(0, at + 1, 3);
			store(0, at + 2, 1);
			store(0, at + 3, 3);
			gpul_fifo_gpu *g = kernels_end();

			assert_int_equal(head_of(g, 0), at);
			gpul_fifo_gpu_destroy(g);
			expect_items(f, 0, at, at);
			store(0, at, 3);
			expect_items(f, 0, at, at + 1);
		}
		gpul_fifo_close(f);
	}
}

static void false_tail_is_handled_like_any_position(void **state)
{
	(void)state;
	gpul_fifo *f = begin();
	struct gpul_fifo_line *lines = (void *)(area + sizeof(struct gpul_fifo_header));

	lines[0].tail = UINT64_MAX - 2;
	lines[1].tail = 1ull << 63;
	gpul_fifo_gpu *g = kernels_end();

	assert_true(head_of(g, 0) - (UINT64_MAX - 2) <= PER_LANE);
	assert_true(head_of(g, 1) - (1ull << 63) <= PER_LANE);
	gpul_fifo_gpu_destroy(g);
	gpul_fifo_close(f);
}

static void both_ends_read_the_first_abort_code(void **state)
{
	(void)state;
	gpul_fifo *f = begin();
	gpul_fifo_gpu *g = kernels_end();

	assert_int_equal(gpul_fifo_gpu_aborted(g), 0);
	gpul_fifo_gpu_abort(g, GPUL_FIFO_CODE_PEER_GONE);
	gpul_fifo_abort(f, 7);
	assert_int_equal(gpul_fifo_gpu_aborted(g), GPUL_FIFO_CODE_PEER_GONE);
	assert_int_equal(gpul_fifo_aborted(f), GPUL_FIFO_CODE_PEER_GONE);
	gpul_fifo_gpu_destroy(g);
	gpul_fifo_close(f);

	f = begin();
	((struct gpul_fifo_header *)(void *)area)->raised = 9; /* as a kernel thread does when it times out */
	g = kernels_end();
	assert_int_equal(gpul_fifo_gpu_aborted(g), 9);
	for (unsigned i = 0; i < shape.lanes; i++)
		assert_int_equal(gpul_fifo_gpu_param(g)->lines[i].abort, 9);
	gpul_fifo_gpu_destroy(g);
	gpul_fifo_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_begin_at_zero_in_new_memory),
		cmocka_unit_test(new_kernels_continue_behind_unhandled_triggers),
		cmocka_unit_test(full_lane_stays_full_for_new_kernels),
		cmocka_unit_test(triggers_of_dead_kernels_behind_a_gap_are_never_taken),
		cmocka_unit_test(false_tail_is_handled_like_any_position),
		cmocka_unit_test(both_ends_read_the_first_abort_code),
	};

	return cmocka_run_group_tests(tests, open_driver, close_driver);
}
