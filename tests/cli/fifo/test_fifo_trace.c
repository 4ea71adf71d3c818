/* test_fifo_trace.c — a trace of the FIFO has consistent times. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/fifo/fifo_trace.h"
#include "core/clock.h"
#include "driver/context.h"
#include "proxy/fifo_layout.h"
#include "tests/fake/fake_runtime.h"

static struct fifo_trace_request request(unsigned slots, unsigned lanes, unsigned blocks, unsigned triggers, bool sync)
{
	struct fifo_trace_request q = {
		.path = "-", .slots = slots, .lanes = lanes, .blocks = blocks, .triggers = triggers, .sync = sync, .timeout_ns = 20000000000
	};

	assert_int_equal(devices_arg_parse(NULL, NULL, &q.devices, NULL), GPUL_OK);
	return q;
}

/* Run a trace that must succeed and receive all triggers. */
static struct fifo_trace run_trace(const struct fifo_trace_request *q)
{
	struct fifo_trace t;
	gpul_error err = { 0 };

	if (fifo_trace_run(q, &t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(t.n_triggers, q->blocks * q->triggers);
	assert_int_equal(t.n_popped, t.n_triggers);
	return t;
}

static void check_trigger(const struct fifo_trace *t, const struct fifo_trace_trigger *of)
{
	const int64_t bound = (int64_t)t->relation.bound_ns + 1;

	assert_true(of->begun <= of->pushed);
	assert_true(of->begun <= of->popped + bound); /* not popped before the push began */
	assert_true(of->room <= of->pushed + bound);  /* not pushed before its slot was free */
	assert_true(of->popped <= of->handling && of->handling <= of->handled && of->handled <= of->released);
	assert_true(!t->ask.sync || (of->pushed <= of->synced && of->handled <= of->synced + bound));
	assert_true(of->handled - of->handling >= (int64_t)t->ask.handler_ns);
}

/* Check that each block pushes its triggers in sequence, and that triggers are popped in the order of positions. */
static void check_order(const struct fifo_trace *t)
{
	const unsigned per = t->ask.triggers;
	uint64_t *next = calloc(t->ask.lanes, sizeof *next);
	int64_t before = 0;

	assert_non_null(next);
	for (unsigned i = 0; i < t->n_triggers; i++) {
		const struct fifo_trace_trigger *of = &t->triggers[i], *previous = of - 1;

		check_trigger(t, of);
		if (i % per)
			assert_true(of->begun >= (t->ask.sync ? previous->synced : previous->pushed) && of->handling >= previous->handled);
	}
	for (unsigned i = 0; i < t->n_popped; i++) {
		const struct fifo_trace_trigger *of = &t->triggers[t->order[i]];

		assert_int_equal(of->position, next[of->lane]++);
		assert_true(of->handling >= before);
		before = of->handled;
	}
	free(next);
}

static void recorded_times_are_consistent_in_each_mode_and_size(void **state)
{
	static const unsigned shapes[][4] = {
		/* slots, lanes, blocks, triggers */
		{ 1, 1, 1, 20 }, { 1, 1, 3, 10 }, { 2, 2, 2, 20 }, { 8, 1, 4, 30 }, { 8, 4, 3, 30 }, { 8, 8, 16, 10 }, { 256, 1, 2, 50 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
		const unsigned *s = shapes[i / 2];
		struct fifo_trace_request q = request(s[0], s[1], s[2], s[3], i % 2);
		struct fifo_trace t = run_trace(&q);

		check_order(&t);
		fifo_trace_free(&t);
	}
}

static void slow_handler_makes_the_kernel_wait_for_a_slot(void **state)
{
	struct fifo_trace_request q = request(4, 1, 1, 40, false);
	struct fifo_trace t;
	unsigned waited = 0;

	(void)state;
	q.handler_ns = 200000;
	t = run_trace(&q);
	check_order(&t);
	for (unsigned i = 0; i < t.n_triggers; i++)
		waited += t.triggers[i].room > t.triggers[i].begun;
	assert_in_range(waited, 1, t.n_triggers - 4);
	fifo_trace_free(&t);
}

/* ---- the text --------------------------------------------------------------------------------------------------- */

static void percentiles_match_the_recorded_times(void **state)
{
	struct fifo_trace_trigger triggers[200] = { { 0 } };
	struct fifo_trace t = { .ask = { .slots = 8, .lanes = 2, .blocks = 2, .triggers = 100 },
				.driver = "soft",
				.kind = "memfd",
				.triggers = triggers,
				.n_triggers = 200,
				.n_popped = 200 };
	struct out o = { 0 };

	(void)state;
	for (int i = 0; i < 200; i++) {
		const int took = (i * 37) % 200 + 1; /* each number from 1 to 200 once, unsorted */

		triggers[i] = (struct fifo_trace_trigger){ .begun = 1000000,
							   .pushed = 1000000 + took * 10,
							   .popped = 1000000 + took * 1000,
							   .handled = 1000000 + took * 1000 + 500,
							   .released = 1000000 + took * 1000 + 700,
							   .room = i < 10 ? 1000010 : 0 };
	}
	assert_int_equal(fifo_trace_text(&t, &o, NULL), GPUL_OK);
	out_bytes(&o, "", 1);
	assert_non_null(strstr(o.at, "200 triggers of 2 blocks through 2 lanes of 4 slots, memfd memory, soft driver\n"));
	assert_non_null(strstr(o.at, "push begun to popped           100.00     180.00     198.00     200.00\n"));
	assert_non_null(strstr(o.at, "popped to handled                0.50       0.50       0.50       0.50\n"));
	assert_non_null(strstr(o.at, "wait for room                  0.01       0.01       0.01       0.01  "
				     " 10 of 200\n"));
	assert_null(strstr(o.at, "sync"));
	out_free(&o);
}

/* ---- when something fails --------------------------------------------------------------------------------------- */

static void reports_a_kernel_that_timed_out(void **state)
{
	struct fifo_trace_request q = request(1, 1, 4, 20, true);
	struct fifo_trace t;
	gpul_error err = { 0 };

	(void)state;
	q.timeout_ns = 1000000;
	q.handler_ns = 50000000;
	assert_int_equal(fifo_trace_run(&q, &t, &err), GPUL_ESYS);
	assert_int_equal(err.native, ETIMEDOUT);
	assert_non_null(strstr(err.text, "could not push or sync"));
	assert_null(t.triggers);
}

static int n_launches;

/* The fake driver runs a kernel within the launch.  The first and the third launch are the clock's kernel, which writes
 * all answers; the second is the trace's kernel, which pushes one trigger. */
static void run_kernel(void **params)
{
	const uint64_t lap = 1ull << 63;

	if (n_launches++ != 1) {
		uint64_t *mailbox = *(uint64_t **)params[0];

		for (uint32_t i = 1; i <= *(uint32_t *)params[1]; i++)
			mailbox[8 + i] = gpul_clock_ns();
		mailbox[8] = 1;
		return;
	}
	struct gpul_trigger *slot = ((struct gpul_fifo_device *)params[0])->slots;
	struct fifo_trace_stamps *stamps = *(struct fifo_trace_stamps **)params[1];

	*stamps = (struct fifo_trace_stamps){ .begun = gpul_clock_ns(), .pushed = gpul_clock_ns() };
	*slot = (struct gpul_trigger){ { lap, lap | UINT32_MAX } };
}

static void frees_everything_whichever_call_fails(void **state)
{
	struct fifo_trace_request q = request(4, 1, 1, 1, false);

	(void)state;
	q.kind = GPUL_MEM_PINNED;
	for (int n = 1;; n++) {
		const gpul_driver *drv = fake_runtime_driver(n);
		gpul_context context;
		struct fifo_trace t;
		gpul_error err = { 0 };
		gpul_status st;

		fake_behave()->launched = run_kernel;
		n_launches = 0;
		if (gpul_context_open(drv, 0, &context, NULL))
			continue;
		st = fifo_trace_with(drv, &q, &t, &err);
		gpul_context_close(&context);
		assert_int_equal(fake_alive(), 0);
		if (st == GPUL_OK) {
			assert_int_equal(t.n_popped, 1);
			fifo_trace_free(&t);
			assert_int_equal(n, fake_calls() + 1);
			return;
		}
		assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
		assert_null(t.triggers);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_times_are_consistent_in_each_mode_and_size),
		cmocka_unit_test(slow_handler_makes_the_kernel_wait_for_a_slot),
		cmocka_unit_test(percentiles_match_the_recorded_times),
		cmocka_unit_test(reports_a_kernel_that_timed_out),
		cmocka_unit_test(frees_everything_whichever_call_fails),
	};

	return cmocka_run_group_tests_name("cli/fifo_trace", tests, NULL, NULL);
}
