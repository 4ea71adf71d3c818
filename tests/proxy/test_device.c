/* test_device.c — the device code of the FIFO, in fifo_device.cuh (device.cu) and in proxy/fifo.ptx: order and
 * visibility of each mode, waiting for a full ring, time-outs and aborts.
 *
 * Runs on any driver (GPULOAD_DRIVER).  GPULOAD_TEST_FIFO_PTX names a file with other kernels to test. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/proxy/device_rig.h"

static const unsigned SIZES[] = { 1, 2, 16, 32, 128 };
enum { N_SIZES = sizeof(SIZES) / sizeof(*SIZES), SECOND_NS = 1000000000, SOON_NS = 20000000 };

/* True: this kernel writes a note before each push, and pushes with release semantics. */
static bool releases(const char *name)
{
	return !strcmp(name, "fifo_push_release") || !strcmp(name, "fifo_push_sync");
}

/* Launch a kernel, handle all its triggers, and check that none is left. */
static void run(struct rig *r, const struct rig_kernel *k, uint64_t n_triggers)
{
	rig_launch(r, k);
	rig_serve(r, n_triggers);
	rig_wait(r);
	rig_expect(r, k->blocks * k->threads, GPUL_FIFO_OK, k->count);
	assert_int_equal(rig_take(r, 1), 0);
	assert_int_equal(gpul_fifo_aborted(r->fifo), 0);
}

/* Run a kernel whose threads all share one lane. */
static void shared_by(struct rig *r, const char *name, unsigned slots, unsigned blocks, unsigned threads, unsigned count)
{
	rig_fifo(r, slots, 1);
	r->shared = true;
	r->notes_first = releases(name);
	run(r, &(struct rig_kernel){ name, blocks, threads, count, 0, FOR_EVER }, (uint64_t)blocks * threads * count);
	rig_fifo_close(r);
}

static void triggers_of_a_shared_lane_arrive_in_ticket_order(void **state)
{
	for (int i = 0; i < N_SIZES; i++) {
		shared_by(*state, "fifo_push", SIZES[i], 1, 32, 40);
		shared_by(*state, "fifo_push", SIZES[i], 4, 48, 10);
	}
}

static void push_release_makes_earlier_writes_visible(void **state)
{
	for (int i = 0; i < N_SIZES; i++)
		shared_by(*state, "fifo_push_release", SIZES[i], 8, 8, 30);
}

static void sync_makes_the_handlers_writes_visible(void **state)
{
	for (int i = 0; i < N_SIZES; i++) {
		shared_by(*state, "fifo_push_sync", SIZES[i], 1, 32, 10);
		shared_by(*state, "fifo_push_sync", SIZES[i], 16, 1, 20);
	}
}

static void poll_makes_the_handlers_writes_visible(void **state)
{
	for (int i = 0; i < N_SIZES; i++)
		shared_by(*state, "fifo_push_poll", SIZES[i], 4, 4, 20);
}

static void five_hundred_blocks_share_one_slot(void **state)
{
	shared_by(*state, "fifo_push_sync", 1, 512, 1, 1);
	shared_by(*state, "fifo_push", 1, 512, 1, 2);
}

/* Run a kernel in which each thread owns a lane, so that the position of a trigger is its number. */
static void owned_by(struct rig *r, const char *name, unsigned slots, unsigned lanes, unsigned blocks, unsigned count)
{
	rig_fifo(r, slots, lanes);
	r->notes_first = releases(name);
	run(r, &(struct rig_kernel){ name, blocks, lanes / blocks, count, 0, FOR_EVER }, (uint64_t)lanes * count);
	for (unsigned i = 0; i < lanes; i++)
		assert_int_equal(r->position[i], count);
	rig_fifo_close(r);
}

static void triggers_of_owned_lanes_arrive_in_push_order(void **state)
{
	static const char *const names[] = { "fifo_push", "fifo_push_release", "fifo_push_sync", "fifo_push_poll" };

	for (int n = 0; n < 4; n++) {
		for (int i = 0; i < N_SIZES; i++)
			owned_by(*state, names[n], SIZES[i], 1, 1, 100);
		owned_by(*state, names[n], 128, 128, 128, 10); /* each lane has one slot */
		owned_by(*state, names[n], 128, 32, 1, 20);    /* each thread of one warp owns a lane */
		owned_by(*state, names[n], 512, 64, 16, 20);
	}
}

/* The threads of block b share lane b. */
static void blocks_share_several_lanes(void **state)
{
	struct rig *r = *state;

	rig_fifo(r, 64, 8);
	r->shared = true;
	run(r, &(struct rig_kernel){ "fifo_push", 8, 32, 20, 0, FOR_EVER }, 8 * 32 * 20);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(r->position[i], 32 * 20);
	rig_fifo_close(r);
}

static void kernel_continues_after_the_previous_kernel(void **state)
{
	struct rig *r = *state;

	for (unsigned mode = 0; mode < 3; mode++) {
		rig_fifo(r, 8, 4);
		for (unsigned i = 0; i < 5; i++) {
			r->shared = mode == 2 ? i & 1 : mode; /* mode 0: owned lanes; 1: shared; 2: alternately */
			run(r, &(struct rig_kernel){ "fifo_push", 4, 1, 7, 7 * i, FOR_EVER }, 4 * 7);
		}
		rig_fifo_close(r);
	}
}

/* After 15 single pushes, the 32 triggers of a warp push continue at the start of the ring, in a small ring several times. */
static void warp_push_continues_after_single_pushes(void **state)
{
	struct rig *r = *state;

	for (unsigned slots = 1; slots <= 64; slots *= 2) {
		rig_fifo(r, slots, 1);
		r->shared = true;
		for (unsigned round = 0; round < 3; round++) {
			run(r, &(struct rig_kernel){ "fifo_push", 1, 5, 3, 0, FOR_EVER }, 5 * 3);
			rig_forget_threads(r);
			run(r, &(struct rig_kernel){ "fifo_warp_push", 1, 64, 2, 0, FOR_EVER }, 64 * 2);
			rig_forget_threads(r);
		}
		rig_fifo_close(r);
	}
}

/* Warps push 32 triggers together, into lanes of fewer and of more than 32 slots. */
static void a_warp_pushes_in_the_order_of_its_threads(void **state)
{
	struct rig *r = *state;

	for (unsigned slots = 1; slots <= 64; slots *= 2)
		for (int shared = 0; shared < 2; shared++) {
			rig_fifo(r, 2 * slots, 2);
			r->shared = shared;
			run(r, &(struct rig_kernel){ "fifo_warp_push", 2, 32, 20, 0, FOR_EVER }, 2 * 32 * 20);
			rig_fifo_close(r);
		}
	rig_fifo(r, 64, 1);
	r->shared = true;
	run(r, &(struct rig_kernel){ "fifo_warp_push", 1, 128, 20, 0, FOR_EVER }, 128 * 20);
	rig_fifo_close(r);
}

/* The positions show that 32 consecutive triggers belong to one warp. */
static void triggers_of_a_warp_push_are_consecutive(void **state)
{
	struct rig *r = *state;
	gpul_fifo_item items[64];
	const struct rig_kernel k = { "fifo_warp_push", 2, 32, 1, 0, FOR_EVER };

	rig_fifo(r, 64, 1);
	r->shared = true;
	rig_launch(r, &k);
	rig_wait(r);
	assert_int_equal(gpul_fifo_poll(r->fifo, items, 64), 64);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(items[i].word[0] >> 32, (items[i / 32 * 32].word[0] >> 32) + i % 32);
	rig_fifo_close(r);
}

static void push_waits_while_the_ring_is_full(void **state)
{
	struct rig *r = *state;
	const struct rig_kernel k = { "fifo_push", 1, 1, 10, 0, FOR_EVER };

	for (int shared = 0; shared < 2; shared++) {
		rig_fifo(r, 4, 1);
		r->shared = shared;
		rig_launch(r, &k);
		for (unsigned came = 0; came < 4;)
			came += rig_take(r, 64);
		for (int i = 0; i < 1000; i++) {
			assert_int_equal(rig_take(r, 64), 0);
			assert_false(rig_ended(r));
		}
		gpul_fifo_release(r->fifo);
		rig_serve(r, 6);
		rig_wait(r);
		rig_expect(r, 1, GPUL_FIFO_OK, 10);
		rig_fifo_close(r);
	}
}

static void a_sync_waits_for_the_release(void **state)
{
	struct rig *r = *state;
	const struct rig_kernel k = { "fifo_push_sync", 1, 1, 1, 0, FOR_EVER };

	for (int shared = 0; shared < 2; shared++) {
		rig_fifo(r, 4, 1);
		r->shared = shared;
		rig_launch(r, &k);
		while (!rig_take(r, 64))
			;
		for (int i = 0; i < 1000; i++)
			assert_false(rig_ended(r));
		gpul_fifo_release(r->fifo);
		rig_wait(r);
		rig_expect(r, 1, GPUL_FIFO_OK, 1);
		rig_fifo_close(r);
	}
}

static void owner_can_push_again_after_a_time_out(void **state)
{
	struct rig *r = *state;

	rig_fifo(r, 4, 1);
	rig_launch(r, &(struct rig_kernel){ "fifo_push", 1, 1, 10, 0, SOON_NS });
	rig_wait(r);
	rig_expect(r, 1, GPUL_FIFO_TIMED_OUT, 4);
	assert_int_equal(gpul_fifo_aborted(r->fifo), 0);
	rig_serve(r, 4);
	run(r, &(struct rig_kernel){ "fifo_push_release", 1, 1, 4, 4, SECOND_NS }, 4);
	rig_fifo_close(r);
}

static void owning_warp_can_push_again_after_a_time_out(void **state)
{
	struct rig *r = *state;

	rig_fifo(r, 64, 1);
	rig_launch(r, &(struct rig_kernel){ "fifo_warp_push", 1, 32, 10, 0, SOON_NS });
	rig_wait(r);
	rig_expect(r, 32, GPUL_FIFO_TIMED_OUT, 2);
	assert_int_equal(gpul_fifo_aborted(r->fifo), 0);
	rig_serve(r, 64);
	run(r, &(struct rig_kernel){ "fifo_warp_push", 1, 32, 2, 2, SECOND_NS }, 64);
	rig_fifo_close(r);
}

/* A thread that times out has reserved a position but writes no trigger; this gap would block all later triggers of the lane. */
static void time_out_in_a_shared_lane_aborts_the_fifo(void **state)
{
	static const char *const names[] = { "fifo_push", "fifo_push_release", "fifo_warp_push" };
	struct rig *r = *state;

	for (int n = 0; n < 3; n++) {
		rig_fifo(r, 32, 1);
		r->shared = true;
		rig_launch(r, &(struct rig_kernel){ names[n], 1, 32, 4, 0, SOON_NS });
		rig_wait(r);
		uint64_t pushed = 0;
		for (unsigned i = 0; i < 32; i++) {
			assert_int_equal(r->results[2 * i], GPUL_FIFO_TIMED_OUT);
			pushed += r->results[2 * i + 1];
		}
		assert_int_equal(pushed, 32);
		assert_int_equal(gpul_fifo_aborted(r->fifo), GPUL_FIFO_CODE_TIMED_OUT);
		rig_fifo_close(r);
	}
}

static void time_out_after_a_partial_warp_push_aborts_the_fifo(void **state)
{
	struct rig *r = *state;

	rig_fifo(r, 16, 1);
	rig_launch(r, &(struct rig_kernel){ "fifo_warp_push", 1, 32, 1, 0, SOON_NS });
	rig_wait(r);
	rig_expect(r, 32, GPUL_FIFO_TIMED_OUT, 0);
	assert_int_equal(gpul_fifo_aborted(r->fifo), GPUL_FIFO_CODE_TIMED_OUT);
	rig_fifo_close(r);
}

static void sync_time_out_does_not_abort_the_fifo(void **state)
{
	struct rig *r = *state;

	for (int shared = 0; shared < 2; shared++) {
		rig_fifo(r, 64, 1);
		r->shared = shared;
		rig_launch(r, &(struct rig_kernel){ "fifo_push_sync", 1, 1, 1, 0, SOON_NS });
		rig_wait(r);
		rig_expect(r, 1, GPUL_FIFO_TIMED_OUT, 0);
		assert_int_equal(gpul_fifo_aborted(r->fifo), 0);
		rig_serve(r, 1);
		run(r, &(struct rig_kernel){ "fifo_push_sync", 1, 1, 5, 1, FOR_EVER }, 5);
		rig_fifo_close(r);
	}
}

static void an_abort_ends_every_wait(void **state)
{
	static const char *const names[] = { "fifo_push", "fifo_push_release", "fifo_push_sync", "fifo_push_poll", "fifo_warp_push" };
	struct rig *r = *state;

	for (int n = 0; n < 5; n++)
		for (int shared = 0; shared < 2; shared++) {
			rig_fifo(r, 32, 32);
			r->shared = shared;
			rig_launch(r, &(struct rig_kernel){ names[n], 1, 32, 64, 0, FOR_EVER });
			while (!rig_take(r, 1))
				;
			assert_false(rig_ended(r));
			gpul_fifo_abort(r->fifo, 7);
			rig_wait(r);
			for (unsigned i = 0; i < 32; i++)
				assert_int_equal(r->results[2 * i], GPUL_FIFO_ABORTED);
			assert_int_equal(gpul_fifo_aborted(r->fifo), 7);
			rig_fifo_close(r);
		}
}

static void lane_has_one_owner_until_it_is_disowned(void **state)
{
	struct rig *r = *state;

	rig_fifo(r, 8, 4);
	for (unsigned lane = 0; lane < 8; lane++) { /* the kernel takes lane numbers mod 4 */
		unsigned n[4] = { 0 };

		rig_launch(r, &(struct rig_kernel){ "fifo_own", 1, 64, 0, lane, FOR_EVER });
		rig_wait(r);
		for (unsigned i = 0; i < 64; i++)
			n[r->results[2 * i] & 3]++;
		assert_int_equal(n[GPUL_FIFO_OK], 1);
		assert_int_equal(n[GPUL_FIFO_BUSY], 63);
	}
	rig_fifo_close(r);
}

static const struct CMUnitTest TESTS[] = {
	cmocka_unit_test(triggers_of_a_shared_lane_arrive_in_ticket_order),
	cmocka_unit_test(push_release_makes_earlier_writes_visible),
	cmocka_unit_test(sync_makes_the_handlers_writes_visible),
	cmocka_unit_test(poll_makes_the_handlers_writes_visible),
	cmocka_unit_test(five_hundred_blocks_share_one_slot),
	cmocka_unit_test(triggers_of_owned_lanes_arrive_in_push_order),
	cmocka_unit_test(blocks_share_several_lanes),
	cmocka_unit_test(kernel_continues_after_the_previous_kernel),
	cmocka_unit_test(warp_push_continues_after_single_pushes),
	cmocka_unit_test(a_warp_pushes_in_the_order_of_its_threads),
	cmocka_unit_test(triggers_of_a_warp_push_are_consecutive),
	cmocka_unit_test(push_waits_while_the_ring_is_full),
	cmocka_unit_test(a_sync_waits_for_the_release),
	cmocka_unit_test(owner_can_push_again_after_a_time_out),
	cmocka_unit_test(owning_warp_can_push_again_after_a_time_out),
	cmocka_unit_test(time_out_in_a_shared_lane_aborts_the_fifo),
	cmocka_unit_test(time_out_after_a_partial_warp_push_aborts_the_fifo),
	cmocka_unit_test(sync_time_out_does_not_abort_the_fifo),
	cmocka_unit_test(an_abort_ends_every_wait),
	cmocka_unit_test(lane_has_one_owner_until_it_is_disowned),
};

static const char *kernels; /* path of the PTX file */

static int open_kernels(void **state)
{
	*state = (void *)(uintptr_t)kernels;
	return rig_open(state);
}

static int run_all(const char *path)
{
	kernels = path;
	return cmocka_run_group_tests_name(path, TESTS, open_kernels, rig_close);
}

int main(void)
{
	const char *path = getenv("GPULOAD_TEST_FIFO_PTX");

	return path ? run_all(path) : run_all(GPUL_KERNELS "/tests/proxy/device.ptx") + run_all("proxy/fifo.ptx");
}
