/* test_net_trace.c — the trace of a proxy has one event for each put, from its start to its end, in bounded memory. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "comm/net/net_trace.h"

enum { ROUTES = 3, FLIGHTS = 8, MOST = 64 };

static gpul_comm_net_trace trace;
static gpul_comm_net_event events[MOST];
static size_t n, n_lost;

/* Trace a put as the proxy does: its start and its end. */
static void put(unsigned route, uint32_t flight, uint64_t step)
{
	gpul_net_trace_put(&trace, route, flight,
			   (gpul_comm_net_event){ .begin_ns = gpul_net_trace_now(&trace),
						  .step = step,
						  .kind = GPUL_COMM_NET_SLOT,
						  .peer = (int32_t)route + 1,
						  .channel = 5,
						  .bytes = 100 });
}

static void read_all(void)
{
	gpul_net_trace_read(&trace, events, MOST, &n, &n_lost);
}

static int begin(void **state)
{
	(void)state;
	gpul_net_trace_init(&trace, ROUTES, FLIGHTS);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gpul_net_trace_free(&trace);
	return 0;
}

static void a_put_is_recorded_when_it_has_ended(void **state)
{
	(void)state;
	assert_int_equal(gpul_net_trace_start(&trace, MOST, NULL), GPUL_OK);
	put(1, 0, 70);
	put(1, 1, 71);
	put(2, 1, 90);
	read_all();
	assert_int_equal(n, 0);
	gpul_net_trace_ended(&trace, 1, 0);
	gpul_net_trace_ended(&trace, 2, 1);
	gpul_net_trace_ended(&trace, 1, 1);
	gpul_net_trace_stop(&trace);
	read_all();
	assert_true(n == 3 && n_lost == 0);
	for (size_t i = 0; i < n; i++) {
		static const uint64_t steps[] = { 70, 90, 71 };
		static const int32_t peers[] = { 2, 3, 2 };

		assert_int_equal(events[i].step, steps[i]);
		assert_int_equal(events[i].peer, peers[i]);
		assert_true(events[i].kind == GPUL_COMM_NET_SLOT && events[i].channel == 5 && events[i].bytes == 100);
		assert_true(events[i].begin_ns > 0 && events[i].begin_ns <= events[i].end_ns);
	}
}

static void nothing_is_recorded_while_the_trace_is_off(void **state)
{
	(void)state;
	assert_int_equal(gpul_net_trace_now(&trace), 0);
	put(0, 0, 1);
	gpul_net_trace_ended(&trace, 0, 0);
	gpul_net_trace_waited(&trace, 1);
	read_all();
	assert_true(n == 0 && n_lost == 0);
	assert_null(trace.events);
	assert_null(trace.pending);
	assert_int_equal(gpul_net_trace_start(&trace, 0, NULL), GPUL_EINVAL);
}

/* A put that starts before the trace and ends during it is not recorded, although a later put uses its entry of the ring `pending`. */
static void a_put_that_began_before_the_trace_is_left_out(void **state)
{
	(void)state;
	put(0, 3, 1);
	assert_int_equal(gpul_net_trace_start(&trace, MOST, NULL), GPUL_OK);
	gpul_net_trace_ended(&trace, 0, 3);
	put(0, 3 + FLIGHTS, 2);
	gpul_net_trace_ended(&trace, 0, 3);
	gpul_net_trace_ended(&trace, 0, 3 + FLIGHTS);
	gpul_net_trace_stop(&trace);
	read_all();
	assert_true(n == 1 && n_lost == 0);
	assert_int_equal(events[0].step, 2);
}

static void events_beyond_the_room_and_puts_that_do_not_end_are_counted(void **state)
{
	(void)state;
	assert_int_equal(gpul_net_trace_start(&trace, 4, NULL), GPUL_OK);
	for (uint32_t i = 0; i < 7; i++) {
		put(0, i, i);
		gpul_net_trace_ended(&trace, 0, i);
	}
	put(0, 7, 7);
	gpul_net_trace_stop(&trace);
	read_all();
	assert_true(n == 4 && n_lost == 4);
	assert_int_equal(gpul_net_trace_start(&trace, 0, NULL), GPUL_OK); /* a new start keeps the recorded events */
	gpul_net_trace_ended(&trace, 0, 7);
	gpul_net_trace_stop(&trace);
	gpul_net_trace_read(&trace, events, 3, &n, &n_lost);
	assert_true(n == 3 && n_lost == 5);
	assert_int_equal(gpul_net_trace_start(&trace, MOST, NULL), GPUL_OK);
	read_all();
	assert_true(n == 0 && n_lost == 0);
}

static void a_wait_begins_with_the_trace_at_the_earliest(void **state)
{
	(void)state;
	assert_int_equal(gpul_net_trace_start(&trace, MOST, NULL), GPUL_OK);
	trace.started_ns -= 1000000;
	gpul_net_trace_waited(&trace, trace.started_ns - 500000);
	read_all();
	assert_int_equal(n, 1);
	assert_true(events[0].kind == GPUL_COMM_NET_WAIT && events[0].peer == -1 && events[0].begin_ns == trace.started_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_put_is_recorded_when_it_has_ended, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_recorded_while_the_trace_is_off, begin, end),
		cmocka_unit_test_setup_teardown(a_put_that_began_before_the_trace_is_left_out, begin, end),
		cmocka_unit_test_setup_teardown(events_beyond_the_room_and_puts_that_do_not_end_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_wait_begins_with_the_trace_at_the_earliest, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
