/* test_replay.c — repeated calls, and calls in CUDA graphs: the arguments of one launch are used for many calls. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/cmocka.h"
#include "tests/comm/collectives.h"

/* clang-format off */
static const struct collective oneshot = {
	.call = GPUL_COMM_ALLREDUCE, .algo = GPUL_COMM_ONE_SHOT, .proto = GPUL_COMM_LL, .dtype = GPUL_COMM_I32, .count = 65,
	.n_blocks = 2, .n_threads = 32,
};
static const struct collective direct = {
	.call = GPUL_COMM_ALLREDUCE, .algo = GPUL_COMM_DIRECT, .proto = GPUL_COMM_SIMPLE, .dtype = GPUL_COMM_I32, .count = 650,
	.n_blocks = 2, .n_threads = 32,
};
/* clang-format on */

static unsigned graphs_of(const gpul_comm *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < GPUL_COMM_REPLAYS; i++)
		n += c->replay.entries[i].exec != NULL;
	return n;
}

static void expect_graphs(const struct rank *r, unsigned n)
{
	if (graphs_of(r->comm) == n)
		return;
	(void)fprintf(stderr, "rank %d: %u graphs instead of %u\n", r->rank, graphs_of(r->comm), n);
	abort();
}

static void same_arguments(struct rank *r, void *arg)
{
	struct buffers b;

	(void)arg;
	new_buffers(r, 16 << 10, true, &b);
	for (int i = 0; i < 20; i++) {
		run_collective(r, &b, &oneshot);
		run_collective(r, &b, &direct);
		expect_graphs(r, i == 0 ? 0 : 2);
	}
	free_buffers(r, &b);
}

static void a_call_that_repeats_becomes_a_graph(void **state)
{
	(void)state;
	run_ranks(3, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, same_arguments, NULL);
}

/* Send n_parts messages to the next rank and receive as many from the previous one, in one group. */
static void send_around(struct rank *r, CUdeviceptr data, unsigned n_parts, uint32_t value)
{
	const int next = (r->rank + 1) % r->n_ranks, before = (r->rank + r->n_ranks - 1) % r->n_ranks;
	uint32_t words[8];
	gpul_error err = { 0 };

	for (unsigned i = 0; i < n_parts; i++)
		words[i] = value + i + 100 * (unsigned)r->rank;
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(data, words, n_parts * 4)), &err, "cuMemcpyHtoD");
	must(gpul_comm_group_begin(r->comm, &err), &err, "gpul_comm_group_begin");
	for (unsigned i = 0; i < n_parts; i++) {
		must(gpul_comm_send(r->comm, data + i * 4, 1, GPUL_COMM_I32, next, r->stream, &err), &err, "gpul_comm_send");
		must(gpul_comm_recv(r->comm, data + 64 + i * 4, 1, GPUL_COMM_I32, before, r->stream, &err), &err, "gpul_comm_recv");
	}
	must(gpul_comm_group_end(r->comm, &err), &err, "gpul_comm_group_end");
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(words, data + 64, n_parts * 4)), &err, "cuMemcpyDtoH");
	for (unsigned i = 0; i < n_parts; i++)
		if (words[i] != value + i + 100 * (unsigned)before) {
			(void)fprintf(stderr, "rank %d: message %u of %u is %u\n", r->rank, i, n_parts, words[i]);
			abort();
		}
}

static void same_groups(struct rank *r, void *arg)
{
	gpul_error err = { 0 };
	CUdeviceptr data;

	(void)arg;
	must(gpul_cu(r->drv, &err, cuMemAlloc(&data, 128)), &err, "cuMemAlloc");
	for (uint32_t i = 0; i < 10; i++) {
		send_around(r, data, 1, i);
		send_around(r, data, 2, 1000 * i);
		expect_graphs(r, i == 0 ? 0 : 2);
		send_around(r, data, 3, 7 * i); /* six transfers: more than GPUL_COMM_FEW_P2P */
	}
	expect_graphs(r, 2);
	must(gpul_cu(r->drv, &err, cuMemFree(data)), &err, "cuMemFree");
}

static void a_small_group_that_repeats_becomes_a_graph(void **state)
{
	(void)state;
	run_ranks(3, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, same_groups, NULL);
}

static void many_arguments(struct rank *r, void *arg)
{
	struct buffers b;

	(void)arg;
	new_buffers(r, 16 << 10, true, &b);
	for (int i = 0; i < 3 * GPUL_COMM_REPLAYS; i++)
		for (int twice = 0; twice <= i % 2; twice++) {
			struct collective x = oneshot;

			x.count += (size_t)i % (GPUL_COMM_REPLAYS + 5);
			run_collective(r, &b, &x);
		}
	expect_graphs(r, GPUL_COMM_REPLAYS / 2);
	free_buffers(r, &b);
}

static void more_calls_than_entries_are_right(void **state)
{
	(void)state;
	run_ranks(2, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, many_arguments, NULL);
}

/* Launch a graph of a one-shot and a direct all-reduce, both in place: n launches multiply each element by n_ranks^(2n). */
static void launch_graph_often(struct rank *r, void *arg)
{
	const int n_launches = *(int *)arg;
	struct collective x = oneshot, y = direct;
	uint32_t data[650], factor = 1;
	struct buffers b;
	CUgraph graph;
	CUgraphExec exec;
	gpul_error err = { 0 };

	x.in_place = y.in_place = true;
	x.count = y.count = 650;
	new_buffers(r, 16 << 10, true, &b);
	must(start_collective(r, &b, &x, &err), &err, "start_collective"); /* loads the kernels */
	must(start_collective(r, &b, &y, &err), &err, "start_collective");
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	for (uint32_t i = 0; i < 650; i++)
		data[i] = 2 * i + 1;
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(b.send, data, sizeof data)), &err, "cuMemcpyHtoD");
	must(gpul_cu(r->drv, &err, cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_RELAXED)), &err, "cuStreamBeginCapture");
	must(start_collective(r, &b, &x, &err), &err, "start_collective");
	must(start_collective(r, &b, &y, &err), &err, "start_collective");
	must(gpul_cu(r->drv, &err, cuStreamEndCapture(r->stream, &graph)), &err, "cuStreamEndCapture");
	must(gpul_cu(r->drv, &err, cuGraphInstantiate(&exec, graph, 0)), &err, "cuGraphInstantiate");
	for (int i = 0; i < n_launches; i++) {
		must(gpul_cu(r->drv, &err, cuGraphLaunch(exec, r->stream)), &err, "cuGraphLaunch");
		factor *= (uint32_t)(r->n_ranks * r->n_ranks);
	}
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(data, b.send, sizeof data)), &err, "cuMemcpyDtoH");
	for (uint32_t i = 0; i < 650; i++)
		if (data[i] != (2 * i + 1) * factor) {
			(void)fprintf(stderr, "rank %d: element %u is %u instead of %u\n", r->rank, i, data[i], (2 * i + 1) * factor);
			abort();
		}
	must(gpul_cu(r->drv, &err, cuGraphExecDestroy(exec)), &err, "cuGraphExecDestroy");
	must(gpul_cu(r->drv, &err, cuGraphDestroy(graph)), &err, "cuGraphDestroy");
	free_buffers(r, &b);
}

static void a_captured_graph_can_be_launched_a_thousand_times(void **state)
{
	int n_launches = 1000;

	(void)state;
	run_ranks(3, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, launch_graph_often, &n_launches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_repeats_becomes_a_graph),
		cmocka_unit_test(a_small_group_that_repeats_becomes_a_graph),
		cmocka_unit_test(more_calls_than_entries_are_right),
		cmocka_unit_test(a_captured_graph_can_be_launched_a_thousand_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
