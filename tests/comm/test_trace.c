/* test_trace.c — events that a kernel records. */
#include <stdlib.h>

#include "tests/support/cmocka.h"
#include "comm/comm_internal.h"
#include "comm/trace.h"
#include "loader/embedded.h"
#include "tests/comm/ranks.h"

GPUL_EMBED(trace_events_ptx, "tests/comm/trace_events.ptx");

enum { BLOCKS = 3, PAIRS = 5, EVENTS = 2 * BLOCKS * PAIRS };

static void launch(struct rank *r, const gpul_kernel *kernel)
{
	const gpul_launch_config config = { .grid = { BLOCKS, 1, 1 }, .block = { 64, 1, 1 }, .stream = r->stream };
	uint32_t n = PAIRS;
	void *args[] = { &r->comm->view, &n };
	gpul_error err = { 0 };

	must(gpul_kernel_launch(kernel, &config, args, (const size_t[]){ sizeof(CUdeviceptr), sizeof n }, 2, &err), &err, "launch");
	must(gpul_cu(r->drv, &err, cuStreamSynchronize(r->stream)), &err, "cuStreamSynchronize");
}

static void check_events(const gpul_comm_event *events, size_t n)
{
	unsigned seen[BLOCKS][PAIRS][2] = { 0 };

	for (size_t i = 0; i < n; i++) {
		const gpul_comm_event *e = &events[i];
		const int sends = e->kind == GPUL_COMM_EVENT_SEND;

		assert_true(e->block < BLOCKS && e->step < PAIRS);
		assert_true(sends || e->kind == GPUL_COMM_EVENT_WAIT_CREDIT);
		assert_int_equal(e->peer, sends ? -1 : 3);
		assert_int_equal(e->bytes, sends ? 4096 : 0);
		assert_true(e->begin_ns > 0 && e->begin_ns <= e->end_ns);
		seen[e->block][e->step][sends]++;
	}
	for (size_t i = 0; n == EVENTS && i < EVENTS; i++)
		assert_int_equal((&seen[0][0][0])[i], 1); /* each event once, because one thread of each block records it */
}

static void record(struct rank *r, void *arg)
{
	gpul_comm_event events[EVENTS + 1];
	size_t n = 7, n_lost = 7;
	gpul_module *module;
	const gpul_kernel *kernel;
	gpul_error err = { 0 };

	(void)arg;
	must(gpul_module_load_embedded(r->drv, &trace_events_ptx, &module, &err), &err, "load");
	must(gpul_kernel_find(module, "trace_events", &kernel, &err), &err, "find");
	must(gpul_kernel_prepare(kernel, &err), &err, "prepare");

	launch(r, kernel); /* no trace has been started, so nothing is recorded */
	must(gpul_comm_trace_read(r->comm, events, EVENTS, &n, &n_lost, &err), &err, "read");
	assert_true(n == 0 && n_lost == 0);
	assert_int_equal(gpul_comm_trace_start(r->comm, 0, NULL), GPUL_EINVAL);

	must(gpul_comm_trace_start(r->comm, EVENTS + 1, &err), &err, "start");
	launch(r, kernel);
	must(gpul_comm_trace_stop(r->comm, &err), &err, "stop");
	launch(r, kernel);
	must(gpul_comm_trace_read(r->comm, events, EVENTS + 1, &n, &n_lost, &err), &err, "read");
	assert_true(n == EVENTS && n_lost == 0);
	check_events(events, n);

	must(gpul_comm_trace_start(r->comm, 0, &err), &err, "continue");
	launch(r, kernel);
	must(gpul_comm_trace_read(r->comm, events, EVENTS + 1, &n, &n_lost, &err), &err, "read");
	assert_true(n == EVENTS + 1 && n_lost == EVENTS - 1);

	must(gpul_comm_trace_start(r->comm, 4, &err), &err, "start again");
	launch(r, kernel);
	must(gpul_comm_trace_read(r->comm, events, EVENTS, &n, &n_lost, &err), &err, "read");
	assert_true(n == 4 && n_lost == EVENTS - 4);
	check_events(events, n);
	gpul_module_unload(module);
}

static void events_are_recorded_once_and_in_full(void **state)
{
	(void)state;
	run_ranks(1, NULL, record, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_recorded_once_and_in_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
