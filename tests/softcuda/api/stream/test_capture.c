/* test_capture.c — stream capture: the nodes that a capture creates, what launching the graph does, and which calls a capture
 * forbids.
 *
 * The expected errors are those of NVIDIA's driver: the program also runs on it. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

static const CUstreamCaptureMode RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED;
static const CUstreamCaptureMode THREAD_LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
static const CUstreamCaptureMode GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* Two streams, two events and some words of memory for each test. */
static CUstream a, b;
static CUevent forked, joined;
static uint32_t *word;

static int set_up(void **state)
{
	(void)state;
	ok(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	ok(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	ok(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
	ok(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
	ok(cuMemHostAlloc((void **)&word, 64, 0));
	memset(word, 0, 64);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ok(cuStreamDestroy(a));
	ok(cuStreamDestroy(b));
	ok(cuEventDestroy(forked));
	ok(cuEventDestroy(joined));
	ok(cuMemFreeHost(word));
	return 0;
}

static void put(CUstream s, uint32_t *where, uint32_t value)
{
	CUdeviceptr p = (uintptr_t)where;
	void *params[] = { &p, &value };

	launch(get_kernel("put"), 1, 1, s, params);
}

static void count(CUstream s, uint32_t *where, unsigned threads)
{
	CUdeviceptr p = (uintptr_t)where;
	void *params[] = { &p };

	launch(get_kernel("count"), 1, threads, s, params);
}

static void copy_word(CUstream s, uint32_t *to, uint32_t *from)
{
	ok(cuMemcpyDtoDAsync((uintptr_t)to, (uintptr_t)from, 4, s));
}

static CUgraphExec end_and_instantiate(CUstream s)
{
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;

	ok(cuStreamEndCapture(s, &graph));
	assert_non_null(graph);
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphDestroy(graph)); /* the executable graph does not need the graph */
	return exec;
}

static void run_and_destroy(CUgraphExec exec, CUstream s)
{
	ok(cuGraphLaunch(exec, s));
	ok(cuStreamSynchronize(s));
	ok(cuGraphExecDestroy(exec));
}

static CUstreamCaptureStatus status_of(CUstream s)
{
	CUstreamCaptureStatus status;

	ok(cuStreamIsCapturing(s, &status));
	return status;
}

/* End an invalid capture. */
static void end_invalid(CUstream s)
{
	CUgraph graph = (CUgraph)(uintptr_t)1;

	assert_int_equal(status_of(s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	fails(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_null(graph);
	assert_int_equal(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
}

static void set_word_2(void *user)
{
	((uint32_t *)user)[2] = 7;
}

static void captured_work_runs_when_the_graph_is_launched(void **state)
{
	CUgraphExec exec;

	(void)state;
	ok(cuStreamBeginCapture(a, GLOBAL));
	assert_int_equal(status_of(a), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	put(a, &word[0], 5); /* captures a kernel, a copy, a function and a fill, in this order */
	copy_word(a, &word[1], &word[0]);
	ok(cuLaunchHostFunc(a, set_word_2, word));
	ok(cuMemsetD32Async((uintptr_t)&word[0], 9, 1, a));
	exec = end_and_instantiate(a);
	assert_int_equal(status_of(a), CU_STREAM_CAPTURE_STATUS_NONE);
	assert_int_equal(word[0] | word[1] | word[2], 0);
	run_and_destroy(exec, b);
	assert_int_equal(word[0], 9);
	assert_int_equal(word[1], 5);
	assert_int_equal(word[2], 7);
}

static void arguments_are_copied_at_capture(void **state)
{
	CUgraphExec exec;
	uint32_t value = 3;
	CUdeviceptr p = (uintptr_t)word;
	void *params[] = { &p, &value };

	(void)state;
	ok(cuStreamBeginCapture(a, GLOBAL));
	launch(get_kernel("put"), 1, 1, a, params);
	value = 4;
	p = 0;
	exec = end_and_instantiate(a);
	run_and_destroy(exec, a);
	assert_int_equal(word[0], 3);
}

static void a_graph_is_launched_many_times_in_stream_order(void **state)
{
	CUgraphExec exec;

	(void)state;
	ok(cuStreamBeginCapture(a, THREAD_LOCAL));
	count(a, &word[0], 32);
	copy_word(a, &word[1], &word[0]);
	exec = end_and_instantiate(a);
	put(a, &word[0], 100);
	for (int i = 0; i < 10000; i++)
		ok(cuGraphLaunch(exec, a));
	copy_word(a, &word[2], &word[1]);
	ok(cuGraphExecDestroy(exec)); /* the launches of the destroyed graph are still running */
	ok(cuStreamSynchronize(a));
	assert_int_equal(word[0], 320100);
	assert_int_equal(word[2], 320100);
}

static void launches_of_one_graph_in_two_streams_run_one_after_another(void **state)
{
	CUgraphExec exec;
	uint32_t *flag = make_flag();
	CUdeviceptr f = (uintptr_t)flag, o = (uintptr_t)&word[0];
	void *params[] = { &f, &o };

	(void)state;
	ok(cuStreamBeginCapture(a, GLOBAL));
	launch(get_kernel("spin"), 1, 1, a, params);
	count(a, &word[1], 1);
	exec = end_and_instantiate(a);
	ok(cuGraphLaunch(exec, a));
	ok(cuGraphLaunch(exec, b));
	put(b, &word[2], 1);
	fails(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	fails(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	assert_int_equal(word[2], 0);
	raise_flag(flag);
	ok(cuStreamSynchronize(b));
	assert_int_equal(word[1], 2);
	ok(cuGraphExecDestroy(exec));
	ok(cuMemFreeHost(flag));
}

static void branches_of_a_graph_run_at_the_same_time(void **state)
{
	CUgraphExec exec;
	uint32_t *flag = make_flag();
	CUdeviceptr f = (uintptr_t)flag, o = (uintptr_t)&word[0];
	void *params[] = { &f, &o };

	(void)state;
	ok(cuStreamBeginCapture(a, GLOBAL));
	ok(cuEventRecord(forked, a));
	ok(cuStreamWaitEvent(b, forked, 0));
	assert_int_equal(status_of(b), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	launch(get_kernel("spin"), 1, 1, a, params); /* this kernel polls a flag that the other branch of the graph sets */
	put(b, flag, 6);
	ok(cuEventRecord(joined, b));
	ok(cuStreamWaitEvent(a, joined, 0));
	copy_word(a, &word[1], &word[0]);
	exec = end_and_instantiate(a);
	assert_int_equal(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
	run_and_destroy(exec, a);
	assert_int_equal(word[1], 6);
	ok(cuMemFreeHost(flag));
}

static void an_empty_capture_gives_an_empty_graph(void **state)
{
	CUgraph graph;
	CUgraphExec exec;
	size_t n = 7;

	(void)state;
	ok(cuStreamBeginCapture(a, GLOBAL));
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphGetNodes(graph, NULL, &n));
	assert_int_equal(n, 0);
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphDestroy(graph));
	run_and_destroy(exec, a);
}

static void a_launch_is_captured_as_a_child_graph(void **state)
{
	CUgraphExec inner, outer;
	CUgraph graph;
	CUgraphNode node[4];
	CUgraphNodeType type;
	size_t n = 4;

	(void)state;
	ok(cuStreamBeginCapture(a, GLOBAL));
	count(a, &word[0], 1);
	copy_word(a, &word[1], &word[0]);
	inner = end_and_instantiate(a);
	ok(cuStreamBeginCapture(a, GLOBAL));
	put(a, &word[0], 10);
	ok(cuGraphLaunch(inner, a));
	copy_word(a, &word[2], &word[1]);
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphGetNodes(graph, node, &n));
	assert_int_equal(n, 3);
	ok(cuGraphNodeGetType(node[1], &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_GRAPH);
	ok(cuGraphInstantiate(&outer, graph, 0));
	ok(cuGraphDestroy(graph));
	ok(cuGraphExecDestroy(inner));
	run_and_destroy(outer, a);
	assert_int_equal(word[2], 11);
}

static void the_legacy_stream_cannot_be_captured(void **state)
{
	CUgraph graph;

	(void)state;
	fails(cuStreamBeginCapture(NULL, GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	fails(cuStreamBeginCapture(CU_STREAM_LEGACY, RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	ok(cuStreamBeginCapture(CU_STREAM_PER_THREAD, RELAXED));
	ok(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
	ok(cuGraphDestroy(graph));
	fails(cuStreamEndCapture(a, &graph), CUDA_ERROR_ILLEGAL_STATE);
	ok(cuStreamBeginCapture(a, GLOBAL));
	fails(cuStreamBeginCapture(a, GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphDestroy(graph));
	fails(cuStreamBeginCapture(a, (CUstreamCaptureMode)3), CUDA_ERROR_INVALID_VALUE);
}

static void waiting_for_a_capturing_stream_makes_the_capture_invalid(void **state)
{
	(void)state;
	ok(cuStreamBeginCapture(a, RELAXED));
	fails(cuStreamSynchronize(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	fails(cuMemsetD32Async((uintptr_t)word, 1, 1, a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	end_invalid(a);
	ok(cuStreamBeginCapture(a, RELAXED));
	fails(cuStreamQuery(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a);
	ok(cuStreamBeginCapture(a, RELAXED));
	fails(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a);
	put(a, &word[0], 2); /* the stream is usable again */
	ok(cuStreamSynchronize(a));
	assert_int_equal(word[0], 2);
}

static void a_captured_event_cannot_be_waited_for(void **state)
{
	(void)state;
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(cuEventRecord(forked, a));
	fails(cuEventQuery(forked), CUDA_ERROR_CAPTURED_EVENT);
	end_invalid(a);
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(cuEventRecord(forked, a));
	fails(cuEventSynchronize(forked), CUDA_ERROR_CAPTURED_EVENT);
	end_invalid(a);
	ok(cuEventRecord(forked, a));
	ok(cuEventSynchronize(forked));
}

static void a_fork_must_be_joined(void **state)
{
	CUgraph graph = (CUgraph)(uintptr_t)1;

	(void)state;
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(cuEventRecord(forked, a));
	ok(cuStreamWaitEvent(b, forked, 0));
	put(b, &word[0], 1);
	fails(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	assert_null(graph);
	assert_int_equal(status_of(a), CU_STREAM_CAPTURE_STATUS_NONE);
	assert_int_equal(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
	ok(cuStreamSynchronize(b));
	assert_int_equal(word[0], 0);
}

static void a_capture_ends_in_the_stream_where_it_began(void **state)
{
	CUgraph graph;

	(void)state;
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(cuEventRecord(forked, a));
	ok(cuStreamWaitEvent(b, forked, 0));
	fails(cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	end_invalid(a);
	assert_int_equal(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
}

static void a_capture_waits_only_for_its_own_events(void **state)
{
	CUgraph graph;

	(void)state;
	ok(cuEventRecord(forked, b));
	ok(cuStreamBeginCapture(a, RELAXED));
	fails(cuStreamWaitEvent(a, forked, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	end_invalid(a);
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(cuStreamBeginCapture(b, RELAXED));
	ok(cuEventRecord(forked, a));
	fails(cuStreamWaitEvent(b, forked, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
	end_invalid(a);
	end_invalid(b);
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(cuEventRecord(forked, a));
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphDestroy(graph));
	ok(cuStreamBeginCapture(b, RELAXED));
	fails(cuStreamWaitEvent(b, forked, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	end_invalid(b);
	ok(cuStreamBeginCapture(a, GLOBAL));
	ok(cuStreamWaitEvent(a, joined, 0)); /* this event was never recorded, so it counts as complete */
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphDestroy(graph));
}

static void the_legacy_stream_includes_capturing_blocking_streams(void **state)
{
	CUstream blocking;
	CUgraph graph;

	(void)state;
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(cuMemsetD32Async((uintptr_t)word, 1, 1, NULL)); /* permitted, because a is a non-blocking stream */
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphDestroy(graph));
	ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	ok(cuStreamBeginCapture(blocking, RELAXED));
	fails(cuMemsetD32Async((uintptr_t)word, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	end_invalid(blocking);
	ok(cuStreamDestroy(blocking));
}

/* cuda.h, cuStreamIsCapturing: "The blocking stream capture is not invalidated."  An H200 does the same in each mode. */
static void a_query_of_the_legacy_stream_leaves_the_capture_valid(void **state)
{
	CUstreamCaptureStatus status;
	CUstream blocking;
	CUgraph graph;

	(void)state;
	ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	for (CUstreamCaptureMode mode = GLOBAL; mode <= RELAXED; mode++) {
		ok(cuStreamBeginCapture(blocking, mode));
		fails(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
		fails(cuStreamIsCapturing(CU_STREAM_LEGACY, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
#if CUDA_VERSION >= 13000
		fails(cuStreamGetCaptureInfo(NULL, &status, NULL, NULL, NULL, NULL, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
#endif
		ok(cuStreamIsCapturing(CU_STREAM_PER_THREAD, &status));
		assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
		ok(cuStreamIsCapturing(blocking, &status));
		assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
		ok(cuStreamEndCapture(blocking, &graph));
		ok(cuGraphDestroy(graph));
	}
	ok(cuStreamBeginCapture(blocking, RELAXED));
	fails(cuStreamQuery(NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT); /* cuStreamQuery of the legacy stream does invalidate the capture */
	end_invalid(blocking);
	ok(cuStreamDestroy(blocking));
}

static void the_mode_decides_about_calls_that_can_wait(void **state)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUgraph graph;
	CUdeviceptr p;

	(void)state;
	ok(cuStreamBeginCapture(a, GLOBAL));
	fails(cuMemAlloc(&p, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a);
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(cuMemAlloc(&p, 16));
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphDestroy(graph));
	ok(cuMemFree(p));
	ok(cuStreamBeginCapture(a, GLOBAL));
	ok(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, GLOBAL);
	ok(cuMemAlloc(&p, 16));
	ok(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, RELAXED);
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphDestroy(graph));
	ok(cuMemFree(p));
}

struct call { /* a call that another thread makes */
	CUcontext ctx;
	CUresult result;
};

static void *allocate(void *arg)
{
	struct call *c = arg;
	CUdeviceptr p;

	ok(cuCtxSetCurrent(c->ctx));
	c->result = cuMemAlloc(&p, 16);
	if (!c->result)
		ok(cuMemFree(p));
	return NULL;
}

static void *end_capture(void *arg)
{
	struct call *c = arg;
	CUgraph graph;

	ok(cuCtxSetCurrent(c->ctx));
	c->result = cuStreamEndCapture(a, &graph);
	return NULL;
}

static CUresult call_in_thread(void *(*function)(void *), CUcontext ctx)
{
	struct call c = { ctx, CUDA_ERROR_UNKNOWN };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, function, &c), 0);
	pthread_join(thread, NULL);
	return c.result;
}

static void other_threads_are_bound_by_a_global_capture(void **state)
{
	CUgraph graph;

	ok(cuStreamBeginCapture(a, GLOBAL));
	fails(call_in_thread(allocate, *state), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a);
	ok(cuStreamBeginCapture(a, THREAD_LOCAL));
	ok(call_in_thread(allocate, *state));
	fails(call_in_thread(end_capture, *state), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	(void)cuStreamEndCapture(a, &graph);
	ok(cuStreamBeginCapture(a, RELAXED));
	ok(call_in_thread(end_capture, *state));
}

static void calls_that_a_graph_cannot_contain_are_refused(void **state)
{
	(void)state;
	ok(cuStreamBeginCapture(a, RELAXED));
	fails(cuStreamAddCallback(a, (CUstreamCallback)(uintptr_t)1, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a);
}

static void a_stream_is_destroyed_while_it_captures(void **state)
{
	CUstream s;
	CUstreamCaptureStatus status;

	(void)state;
	if (!on_software_driver()) /* NVIDIA does not document this case */
		skip();
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuStreamBeginCapture(s, GLOBAL));
	put(s, &word[0], 1);
	ok(cuEventRecord(forked, s));
	ok(cuStreamWaitEvent(b, forked, 0));
	ok(cuStreamDestroy(s));
	fails(cuStreamIsCapturing(s, &status), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(status_of(b), CU_STREAM_CAPTURE_STATUS_NONE);
	put(b, &word[0], 2);
	ok(cuStreamSynchronize(b));
	assert_int_equal(word[0], 2);
}

static void a_fault_in_a_graph_fails_the_context(void **state)
{
	CUcontext second;
	CUstream s;
	CUgraphExec exec;

	if (!on_software_driver()) /* on NVIDIA's driver the process could create no context after the fault */
		skip();
	ok(cuCtxCreate(&second, NULL, 0, 0));
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuStreamBeginCapture(s, GLOBAL));
	launch(get_kernel("fall"), 1, 1, s, NULL);
	put(s, &word[0], 1);
	exec = end_and_instantiate(s);
	ok(cuGraphLaunch(exec, s));
	fails(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
	fails(cuGraphLaunch(exec, s), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(word[0], 0);
	ok(cuCtxDestroy(second));
	ok(cuGraphExecDestroy(exec));
	ok(cuCtxSetCurrent(*state));
}

static void memory_that_was_freed_faults_when_the_graph_runs(void **state)
{
	CUcontext second;
	CUdeviceptr p;
	CUstream s;
	CUgraphExec exec;

	if (!on_software_driver())
		skip();
	ok(cuCtxCreate(&second, NULL, 0, 0));
	ok(cuMemAlloc(&p, 4));
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuStreamBeginCapture(s, RELAXED));
	ok(cuMemsetD32Async(p, 1, 1, s));
	exec = end_and_instantiate(s);
	ok(cuMemFree(p));
	ok(cuGraphLaunch(exec, s));
	fails(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
	ok(cuGraphExecDestroy(exec));
	ok(cuCtxDestroy(second));
	ok(cuCtxSetCurrent(*state));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(captured_work_runs_when_the_graph_is_launched),
		CASE(arguments_are_copied_at_capture),
		CASE(a_graph_is_launched_many_times_in_stream_order),
		CASE(launches_of_one_graph_in_two_streams_run_one_after_another),
		CASE(branches_of_a_graph_run_at_the_same_time),
		CASE(an_empty_capture_gives_an_empty_graph),
		CASE(a_launch_is_captured_as_a_child_graph),
		CASE(the_legacy_stream_cannot_be_captured),
		CASE(waiting_for_a_capturing_stream_makes_the_capture_invalid),
		CASE(a_captured_event_cannot_be_waited_for),
		CASE(a_fork_must_be_joined),
		CASE(a_capture_ends_in_the_stream_where_it_began),
		CASE(a_capture_waits_only_for_its_own_events),
		CASE(the_legacy_stream_includes_capturing_blocking_streams),
		CASE(a_query_of_the_legacy_stream_leaves_the_capture_valid),
		CASE(the_mode_decides_about_calls_that_can_wait),
		CASE(other_threads_are_bound_by_a_global_capture),
		CASE(calls_that_a_graph_cannot_contain_are_refused),
		CASE(a_stream_is_destroyed_while_it_captures),
		CASE(a_fault_in_a_graph_fails_the_context),
		CASE(memory_that_was_freed_faults_when_the_graph_runs),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
