/* test_fifo_put.c — the table and the events of a trace of puts agree with its times. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/fifo/put/fifo_put.h"

enum { BLOCKS = 2, PUTS = 100 };

static struct fifo_put_times times[BLOCKS * PUTS];

/* The time from the start of the push to the pop is 1 to 200 us, each value once per 200 messages, unsorted. */
static struct fifo_put_trace make_trace(void)
{
	for (int i = 0; i < BLOCKS * PUTS; i++) {
		const int64_t took = 1000 * ((i * 37) % 200 + 1), from = 10000000 * (int64_t)(i % PUTS);

		times[i] = (struct fifo_put_times){ .begun = from,
						    .pushed = from + 10,
						    .popped = from + took,
						    .posted = from + took + 500,
						    .acknowledged = from + took + 700,
						    .synced = from + took + 900,
						    .seen = from + took + 600,
						    .flushed = from + took + 650,
						    .kernel_seen = from + 2 * took };
	}
	return (struct fifo_put_trace){
		.ask = { .blocks = BLOCKS, .puts = PUTS, .bytes = 64 },
		.driver = "soft",
		.device = "GPU a",
		.peer_device = "GPU b",
		.fabric = "verbs, rxe0 port 1",
		.kind = "memfd",
		.puts = times,
		.n_puts = BLOCKS * PUTS,
		.relation = { .bound_ns = 500 },
		.peer_relation = { .bound_ns = 700 },
	};
}

static void percentiles_match_the_recorded_times(void **state)
{
	const struct fifo_put_trace t = make_trace();
	struct out o = { 0 };

	(void)state;
	assert_int_equal(fifo_put_text(&t, &o, NULL), GPUL_OK);
	out_bytes(&o, "", 1);
	assert_non_null(strstr(o.at, "200 puts of 64 bytes from 2 blocks over verbs, rxe0 port 1; memfd memory, soft driver\n"));
	assert_non_null(strstr(o.at, "GPU times are accurate to 0.50 us here, and to 0.70 us in the receiving process\n"));
	assert_non_null(strstr(o.at, "  push begun to popped                   100.00     180.00     198.00     200.00\n"));
	assert_non_null(strstr(o.at, "  posted to acknowledged                   0.20       0.20       0.20       0.20\n"));
	assert_non_null(strstr(o.at, "    flush                                  0.05       0.05       0.05       0.05\n"));
	assert_non_null(strstr(o.at, "  push begun to seen by peer's GPU       200.00     360.00     396.00     400.00\n"));
	out_free(&o);
}

static void a_step_of_less_than_nothing_counts_as_nothing(void **state)
{
	struct fifo_put_trace t = make_trace();
	struct out o = { 0 };

	(void)state;
	for (int i = 0; i < BLOCKS * PUTS; i++)
		times[i].popped = times[i].begun - 300; /* popped before the push began: a clock error */
	assert_int_equal(fifo_put_text(&t, &o, NULL), GPUL_OK);
	out_bytes(&o, "", 1);
	assert_non_null(strstr(o.at, "  push begun to popped                     0.00       0.00       0.00       0.00\n"));
	out_free(&o);
}

static unsigned count(const char *text, const char *of)
{
	unsigned n = 0;

	for (; (text = strstr(text, of)); text += strlen(of))
		n++;
	return n;
}

static void events_have_each_step_and_arrow_of_every_message(void **state)
{
	static const char *const slices[] = { "push", "sync", "post", "in flight", "flush", "wait for step" };
	static const char *const arrows[] = { "pushed", "arrived", "seen", "done" };
	const struct fifo_put_trace t = make_trace();
	struct out o = { 0 };
	char text[64];

	(void)state;
	assert_int_equal(fifo_put_json(&t, &o, NULL), GPUL_OK);
	out_bytes(&o, "", 1);
	for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
		snprintf(text, sizeof text, "\"name\":\"%s\",\"ts\"", slices[i]);
		assert_int_equal(count(o.at, text), BLOCKS * PUTS);
	}
	for (size_t i = 0; i < sizeof arrows / sizeof *arrows; i++) {
		snprintf(text, sizeof text, "\"cat\":\"%s\"", arrows[i]);
		assert_int_equal(count(o.at, text), 2 * BLOCKS * PUTS);
	}
	assert_int_equal(count(o.at, "\"puts\":200"), 1);
	assert_int_equal(count(o.at, "\"name\":\"receiver's GPU: GPU b\""), 1);
	out_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_match_the_recorded_times),
		cmocka_unit_test(a_step_of_less_than_nothing_counts_as_nothing),
		cmocka_unit_test(events_have_each_step_and_arrow_of_every_message),
	};

	return cmocka_run_group_tests_name("cli/fifo_put", tests, NULL, NULL);
}
