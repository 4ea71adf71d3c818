/* test_streams.c — calls of one communicator on several streams: destroyed ones, capturing ones, default ones. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/cmocka.h"
#include "comm/persistent.h"
#include "tests/comm/ranks.h"

enum { COUNT = 1000, RANKS = 2 };

/* Ranks free memory only after this barrier: cuMemFree() waits for all kernels of their common context, which may wait for a rank. */
static pthread_barrier_t all;

static void meet(void)
{
	(void)pthread_barrier_wait(&all);
}

#define DO(r, call) must(gpul_cu((r)->drv, &err, call), &err, #call)

/* Allocate device memory whose words are all equal. */
static CUdeviceptr new_words(const struct rank *r, uint32_t value)
{
	uint32_t words[COUNT];
	gpul_error err = { 0 };
	CUdeviceptr at;

	for (unsigned i = 0; i < COUNT; i++)
		words[i] = value;
	DO(r, cuMemAlloc(&at, sizeof words));
	DO(r, cuMemcpyHtoD(at, words, sizeof words));
	return at;
}

static void expect_words(const struct rank *r, CUdeviceptr at, uint32_t value, const char *what)
{
	uint32_t words[COUNT];
	gpul_error err = { 0 };

	DO(r, cuMemcpyDtoH(words, at, sizeof words));
	for (unsigned i = 0; i < COUNT; i++)
		if (words[i] != value) {
			(void)fprintf(stderr, "rank %d, %s: element %u is %u instead of %u\n", r->rank, what, i, words[i], value);
			abort();
		}
	meet();
	DO(r, cuMemFree(at));
	meet();
}

/* Kinds of calls: an all-reduce multiplies all words by the number of ranks; the other two leave them unchanged. */
enum kind { ALLREDUCE, SENDRECV, GROUP, KINDS };

static void call_on(const struct rank *r, enum kind kind, CUdeviceptr at, CUstream stream)
{
	const int other = (r->rank + 1) % r->n_ranks;
	const CUdeviceptr half = at + COUNT / 2 * 4;
	gpul_error err = { 0 };

	if (kind == ALLREDUCE) {
		must(gpul_comm_allreduce(r->comm, at, at, COUNT, GPUL_COMM_I32, GPUL_COMM_SUM, stream, &err), &err, "allreduce");
		return;
	}
	if (kind == SENDRECV && r->rank) {
		must(gpul_comm_recv(r->comm, half, COUNT / 2, GPUL_COMM_I32, other, stream, &err), &err, "recv");
		must(gpul_comm_send(r->comm, half, COUNT / 2, GPUL_COMM_I32, other, stream, &err), &err, "send");
		return;
	}
	if (kind == SENDRECV) {
		must(gpul_comm_send(r->comm, half, COUNT / 2, GPUL_COMM_I32, other, stream, &err), &err, "send");
		must(gpul_comm_recv(r->comm, half, COUNT / 2, GPUL_COMM_I32, other, stream, &err), &err, "recv");
		return;
	}
	must(gpul_comm_group_begin(r->comm, &err), &err, "group_begin");
	must(gpul_comm_send(r->comm, at, COUNT / 2, GPUL_COMM_I32, other, stream, &err), &err, "send");
	must(gpul_comm_recv(r->comm, half, COUNT / 2, GPUL_COMM_I32, other, stream, &err), &err, "recv");
	must(gpul_comm_group_end(r->comm, &err), &err, "group_end");
}

static uint32_t product(enum kind kind, const struct rank *r, unsigned n)
{
	uint32_t x = 3;

	for (unsigned i = 0; kind == ALLREDUCE && i < n; i++)
		x *= (uint32_t)r->n_ranks;
	return x;
}

static const gpul_comm_options options = { .device = -1, .timeout_ms = 20000 };

/* Make in-place calls on alternating streams: a call that overtakes the previous one gives a wrong result.  The ranks share a context, so
 * only one of them may use the legacy stream, and copies wait until the calls have ended. */
static void alternate(struct rank *r, void *arg)
{
	const bool *has_legacy = arg, legacy = *has_legacy && r->rank == 0;
	gpul_error err = { 0 };
	CUdeviceptr at[KINDS];
	CUstream other;

	DO(r, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	for (enum kind kind = 0; kind < KINDS; kind++)
		at[kind] = new_words(r, 3);
	meet();
	for (enum kind kind = 0; kind < KINDS; kind++) {
		const CUstream streams[] = { r->stream, *has_legacy ? other : CU_STREAM_PER_THREAD, legacy ? CU_STREAM_LEGACY : other,
					     legacy ? NULL : r->stream };

		for (unsigned i = 0; i < 20; i++)
			call_on(r, kind, at[kind], streams[i % 4]);
		must(gpul_comm_wait(r->comm, streams[19 % 4], &err), &err, "wait");
	}
	meet();
	for (enum kind kind = 0; kind < KINDS; kind++)
		expect_words(r, at[kind], product(kind, r, 20), "streams in turn");
	DO(r, cuStreamDestroy(other));
}

static void streams_in_turn_keep_the_order_of_the_calls(void **state)
{
	(void)state;
	run_ranks(RANKS, &options, alternate, &(bool){ false });
	run_ranks(RANKS, &options, alternate, &(bool){ true });
}

/* A new stream usually gets the handle of the destroyed one, whose work has not ended. */
static void destroy_at_once(struct rank *r, void *arg)
{
	gpul_error err = { 0 };

	(void)arg;
	for (enum kind kind = 0; kind < KINDS; kind++) {
		const CUdeviceptr at = new_words(r, 3);

		for (unsigned i = 0; i < 12; i++) {
			CUstream s;

			DO(r, cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
			call_on(r, kind, at, s);
			if (i % 3 == 0)
				must(gpul_comm_wait(r->comm, s, &err), &err, "wait");
			DO(r, cuStreamDestroy(s));
		}
		call_on(r, kind, at, r->stream);
		must(gpul_comm_wait(r->comm, r->stream, &err), &err, "wait");
		expect_words(r, at, product(kind, r, 13), "streams that are destroyed");
	}
}

static void a_stream_may_be_destroyed_right_after_a_call(void **state)
{
	(void)state;
	run_ranks(RANKS, &options, destroy_at_once, NULL);
}

/* A persistent kernel starts after the last call, and gpul_comm_destroy() is called when no stream of a call exists any more. */
static void persist_and_leave(struct rank *r, void *arg)
{
	const CUdeviceptr at = new_words(r, 3);
	gpul_comm_persistent *p = NULL;
	gpul_error err = { 0 };
	uint64_t ticket;
	CUstream s;

	(void)arg;
	DO(r, cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	call_on(r, ALLREDUCE, at, s);
	DO(r, cuStreamDestroy(s));
	must(gpul_comm_persistent_start(r->comm, 0, &p, &err), &err, "persistent_start");
	must(gpul_comm_persistent_post(p,
				       &(gpul_comm_posting){ .call = GPUL_COMM_ALLREDUCE,
							     .send = at,
							     .recv = at,
							     .count = COUNT,
							     .dtype = GPUL_COMM_I32,
							     .op = GPUL_COMM_SUM },
				       &ticket, &err),
	     &err, "persistent_post");
	must(gpul_comm_persistent_stop(p, &err), &err, "persistent_stop");
	call_on(r, ALLREDUCE, at, r->stream);
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "wait");
	expect_words(r, at, product(ALLREDUCE, r, 3), "a persistent kernel after a destroyed stream");
	DO(r, cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	call_on(r, ALLREDUCE, new_words(r, 1), s);
	DO(r, cuStreamDestroy(s));
}

static void a_persistent_kernel_follows_a_destroyed_stream(void **state)
{
	(void)state;
	run_ranks(RANKS, &options, persist_and_leave, NULL);
}

/* One stream captures a call while another stream runs calls; the driver sees no dependency between them.  This kind of call has not been
 * made before, so that its kernel is loaded during the capture. */
static void capture_beside(struct rank *r, void *arg)
{
	const CUstreamCaptureMode *mode = arg;
	const CUdeviceptr captured = new_words(r, 3), eager = new_words(r, 3);
	unsigned n_eager = 0;
	gpul_error err = { 0 };
	CUgraphExec exec;
	CUgraph graph;
	CUstream other;

	DO(r, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	for (enum kind kind = 0; kind < KINDS; kind++) {
		call_on(r, ALLREDUCE, captured, r->stream); /* the last uncaptured call is on the stream that will capture */
		must(gpul_comm_wait(r->comm, r->stream, &err), &err, "wait");
		meet();
		DO(r, cuStreamBeginCapture(r->stream, *mode));
		meet();
		call_on(r, kind, captured, r->stream);
		for (unsigned i = 0; i < 3; i++, n_eager++)
			call_on(r, ALLREDUCE, eager, other);
		call_on(r, kind, captured, r->stream);
		must(gpul_comm_wait(r->comm, other, &err), &err, "wait beside a capture");
		meet();
		DO(r, cuStreamEndCapture(r->stream, &graph));
		meet();
		DO(r, cuGraphInstantiate(&exec, graph, 0));
		DO(r, cuGraphLaunch(exec, r->stream));
		must(gpul_comm_wait(r->comm, r->stream, &err), &err, "wait for a graph");
		DO(r, cuGraphExecDestroy(exec));
		DO(r, cuGraphDestroy(graph));
	}
	expect_words(r, captured, product(ALLREDUCE, r, 3 + 2), "captured calls");
	expect_words(r, eager, product(ALLREDUCE, r, n_eager), "calls beside a capture");
	DO(r, cuStreamDestroy(other));
}

static void a_capture_and_calls_on_another_stream_do_not_meet(void **state)
{
	CUstreamCaptureMode modes[] = { CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
					CU_STREAM_CAPTURE_MODE_GLOBAL };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		run_ranks(RANKS, &options, capture_beside, &modes[i]);
}

/* Calls on two streams of one capture keep their order, too: the program has forked the second stream, and joins it. */
static void capture_forked(struct rank *r, void *arg)
{
	const CUdeviceptr at = new_words(r, 3);
	gpul_error err = { 0 };
	CUgraphExec exec;
	CUgraph graph;
	CUstream other;
	CUevent fork, join;

	(void)arg;
	DO(r, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	DO(r, cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	DO(r, cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	DO(r, cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	DO(r, cuEventRecord(fork, r->stream));
	DO(r, cuStreamWaitEvent(other, fork, 0));
	for (unsigned i = 0; i < 6; i++)
		call_on(r, ALLREDUCE, at, i % 2 ? other : r->stream);
	DO(r, cuEventRecord(join, other));
	DO(r, cuStreamWaitEvent(r->stream, join, 0));
	DO(r, cuStreamEndCapture(r->stream, &graph));
	DO(r, cuGraphInstantiate(&exec, graph, 0));
	for (unsigned i = 0; i < 2; i++)
		DO(r, cuGraphLaunch(exec, r->stream));
	call_on(r, ALLREDUCE, at, r->stream);
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "wait");
	expect_words(r, at, product(ALLREDUCE, r, 13), "a capture of two streams");
	DO(r, cuGraphExecDestroy(exec));
	DO(r, cuGraphDestroy(graph));
	DO(r, cuEventDestroy(fork));
	DO(r, cuEventDestroy(join));
	DO(r, cuStreamDestroy(other));
}

static void two_streams_of_one_capture_keep_the_order_of_the_calls(void **state)
{
	(void)state;
	run_ranks(RANKS, &options, capture_forked, NULL);
}

/* Waiting for a stream that captures is an error of the program: it ends the capture, but not the communicator. */
static void wait_for_capture(struct rank *r, void *arg)
{
	const CUdeviceptr at = new_words(r, 3);
	gpul_error err = { 0 };
	CUgraph graph = NULL;

	(void)arg;
	DO(r, cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	call_on(r, ALLREDUCE, at, r->stream);
	if (gpul_comm_wait(r->comm, r->stream, &err) != GPUL_ECUDA || gpul_comm_failed(r->comm, NULL)) {
		(void)fprintf(stderr, "rank %d: waiting for a stream that captures: %s\n", r->rank, err.text);
		abort();
	}
	(void)r->drv->cuStreamEndCapture(r->stream, &graph);
	err = (gpul_error){ 0 };
	call_on(r, ALLREDUCE, at, r->stream);
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "wait");
	expect_words(r, at, product(ALLREDUCE, r, 1), "after a wrong wait");
}

static void a_wait_for_a_capturing_stream_leaves_the_communicator_whole(void **state)
{
	(void)state;
	run_ranks(RANKS, &options, wait_for_capture, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_in_turn_keep_the_order_of_the_calls),
		cmocka_unit_test(a_stream_may_be_destroyed_right_after_a_call),
		cmocka_unit_test(a_persistent_kernel_follows_a_destroyed_stream),
		cmocka_unit_test(a_capture_and_calls_on_another_stream_do_not_meet),
		cmocka_unit_test(two_streams_of_one_capture_keep_the_order_of_the_calls),
		cmocka_unit_test(a_wait_for_a_capturing_stream_leaves_the_communicator_whole),
	};

	(void)pthread_barrier_init(&all, NULL, RANKS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
