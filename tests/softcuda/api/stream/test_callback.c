/* test_callback.c — driver calls inside callbacks: which are permitted, and which return CUDA_ERROR_NOT_PERMITTED.
 *
 * The expected results are those of an H200 (driver of CUDA 13.0), unless a test says otherwise. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>

static struct answer { /* result of a call; the test's thread checks it later, because cmocka's assertions fail in other threads */
	const char *call;
	CUresult got, expected;
} answers[256];
static size_t n_answers;

#define EXPECT(result, made) (answers[n_answers] = (struct answer){ #made, made, result }, n_answers++)
#define PERMITTED(made)      EXPECT(CUDA_SUCCESS, made)
#define FORBIDDEN(made)      EXPECT(CUDA_ERROR_NOT_PERMITTED, made)

static void check_answers(size_t n)
{
	assert_int_equal(n_answers, n);
	for (size_t i = 0; i < n; i++)
		if (answers[i].got != answers[i].expected)
			fail_msg("%s: %d, not %d", answers[i].call, (int)answers[i].got, (int)answers[i].expected);
	n_answers = 0;
}

/* Used by the callbacks; `own` is the stream that runs the callbacks. */
static CUstream own, s;
static CUevent before, after;
static CUdeviceptr words;
static CUgraph graph;
static CUgraphExec exec;
static CUfunction put;
static CUcontext context;
static unsigned n_called;

static uint32_t word(unsigned i)
{
	uint32_t value;

	ok(cuMemcpyDtoH(&value, words + 4 * i, 4));
	return value;
}

static void capture_a_kernel(void)
{
	CUdeviceptr where = words + 4 * 5;
	uint32_t value = 5;
	void *params[] = { &where, &value };
	CUgraph kernel;

	put = get_kernel("put");
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch(put, 1, 1, s, params);
	ok(cuStreamEndCapture(s, &kernel));
	ok(cuGraphInstantiate(&exec, kernel, 0));
	ok(cuGraphDestroy(kernel));
}

static int set_up(void **state)
{
	(void)state;
	ok(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuEventCreate(&before, 0));
	ok(cuEventCreate(&after, 0));
	ok(cuMemAlloc(&words, 64));
	ok(cuMemsetD32(words, 0, 16));
	ok(cuGraphCreate(&graph, 0));
	capture_a_kernel();
	ok(cuCtxSynchronize());
	ok(cuCtxGetCurrent(&context));
	n_called = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
	ok(cuMemFree(words));
	ok(cuEventDestroy(before));
	ok(cuEventDestroy(after));
	ok(cuStreamDestroy(s));
	ok(cuStreamDestroy(own));
	return 0;
}

static void CUDA_CB run_calls(void *calls)
{
	(*(void (*const *)(void))calls)();
}

static void CUDA_CB run_calls_in_callback(CUstream stream, CUresult r, void *calls)
{
	(void)stream, (void)r;
	(*(void (*const *)(void))calls)();
}

/* Run calls() in a callback of cuStreamAddCallback and in one of cuLaunchHostFunc; n: the number of driver calls that it makes. */
static void call_from_the_driver(void (*calls)(void), size_t n)
{
	ok(cuStreamAddCallback(own, run_calls_in_callback, &calls, 0));
	ok(cuStreamSynchronize(own));
	check_answers(n);
	ok(cuCtxSynchronize());
	ok(cuLaunchHostFunc(own, run_calls, &calls));
	ok(cuStreamSynchronize(own));
	check_answers(n);
	ok(cuCtxSynchronize());
}

/* ---- calls that are forbidden in callbacks -------------------------------------------------------------------- */

static void forbidden_calls(void)
{
	CUcontext ctx;
	CUdevice device;
	CUdeviceptr p;
	CUevent event;
	size_t bytes;
	void *host;
	int n = 0;

	FORBIDDEN(cuDeviceGet(&device, 0));
	FORBIDDEN(cuDeviceGetCount(&n));
	FORBIDDEN(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	FORBIDDEN(cuDevicePrimaryCtxRetain(&ctx, 0));
	FORBIDDEN(cuCtxGetCurrent(&ctx));
	FORBIDDEN(cuCtxSetCurrent(NULL));
	FORBIDDEN(cuCtxPopCurrent(&ctx));
	FORBIDDEN(cuCtxGetDevice(&device));
	FORBIDDEN(cuCtxSynchronize());
	FORBIDDEN(cuMemAlloc(&p, 4));
	FORBIDDEN(cuMemFree(words));
	FORBIDDEN(cuMemFree(0));
	FORBIDDEN(cuMemAllocHost(&host, 4));
	FORBIDDEN(cuMemGetInfo(&bytes, &bytes));
	FORBIDDEN(cuMemGetAddressRange(&p, &bytes, words));
	FORBIDDEN(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, words));
	FORBIDDEN(cuMemcpyDtoH(&n, words, 4));
	FORBIDDEN(cuMemcpyDtoDAsync(words, words + 4, 4, s));
	FORBIDDEN(cuMemcpyDtoHAsync(&n, words, 4, s));
	FORBIDDEN(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	FORBIDDEN(cuMemAllocAsync(&p, 64, s));
	FORBIDDEN(cuMemFreeAsync(0, s));
	FORBIDDEN(cuEventCreate(&event, 0));
}

static void forbidden_calls_of_graphs(void)
{
	const CUDA_MEMSET_NODE_PARAMS fill = { .dst = words, .elementSize = 4, .width = 1, .height = 1 };
	size_t n = 0;
	CUgraph g;
	CUgraphExec x;
	CUgraphNode node;

	FORBIDDEN(cuGraphCreate(&g, 0));
	FORBIDDEN(cuGraphClone(&g, graph));
	FORBIDDEN(cuGraphGetNodes(graph, NULL, &n));
	FORBIDDEN(cuGraphAddChildGraphNode(&node, graph, NULL, 0, graph));
	FORBIDDEN(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
	FORBIDDEN(cuGraphInstantiate(&x, graph, 0));
	FORBIDDEN(cuGraphExecDestroy(exec));
	FORBIDDEN(cuGraphDestroy(graph));
}

static void forbidden_calls_of_default_streams(void)
{
	CUstreamCaptureStatus status;
	unsigned long long id;

	FORBIDDEN(cuMemsetD32(words, 0, 1));
	FORBIDDEN(cuMemsetD8Async(words, 0, 4, NULL));
	FORBIDDEN(cuStreamQuery(NULL));
	FORBIDDEN(cuStreamQuery(CU_STREAM_PER_THREAD));
	FORBIDDEN(cuStreamSynchronize(NULL));
	FORBIDDEN(cuStreamIsCapturing(NULL, &status));
	FORBIDDEN(cuStreamGetId(NULL, &id));
	FORBIDDEN(cuEventRecord(after, NULL));
	FORBIDDEN(cuGraphLaunch(exec, NULL));
}

static void calls_are_not_permitted_in_callbacks(void **state)
{
	(void)state;
	call_from_the_driver(forbidden_calls, 23);
	call_from_the_driver(forbidden_calls_of_graphs, 8);
	call_from_the_driver(forbidden_calls_of_default_streams, 9);
}

/* ---- calls that are permitted in callbacks -------------------------------------------------------------------- */

static void calls_without_a_stream(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	const char *text;
	int n;

	PERMITTED(cuGetErrorName(CUDA_SUCCESS, &text));
	PERMITTED(cuGetErrorString(CUDA_SUCCESS, &text));
	PERMITTED(cuDriverGetVersion(&n));
	PERMITTED(cuInit(0));
	PERMITTED(cuThreadExchangeStreamCaptureMode(&mode));
}

static void queries(void)
{
	CUstreamAttrValue value;
	CUstreamCaptureStatus status;
	unsigned long long id;
	unsigned flags;
	CUcontext ctx;
	int priority;

	PERMITTED(cuStreamQuery(s));
	EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(own));
	PERMITTED(cuStreamGetFlags(s, &flags));
	PERMITTED(cuStreamGetPriority(s, &priority));
	PERMITTED(cuStreamGetId(s, &id));
	PERMITTED(cuStreamGetCtx(s, &ctx));
	PERMITTED(cuStreamIsCapturing(s, &status));
	PERMITTED(cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	PERMITTED(cuStreamCopyAttributes(s, own));
}

static void queries_are_permitted(void **state)
{
	(void)state;
	call_from_the_driver(calls_without_a_stream, 5);
	call_from_the_driver(queries, 9);
}

static void CUDA_CB count_call(void *user)
{
	(void)user;
	n_called++;
}

static void CUDA_CB count_callback(CUstream stream, CUresult r, void *user)
{
	(void)stream, (void)user;
	n_called += r == CUDA_SUCCESS;
}

static void work(void)
{
	float ms;

	PERMITTED(cuEventRecord(before, s));
	PERMITTED(cuMemsetD8Async(words, 1, 4, s));
	PERMITTED(cuMemsetD32Async(words + 4, 2, 1, s));
	PERMITTED(cuMemsetD2D32Async(words + 8, 4, 3, 1, 2, s));
	PERMITTED(cuStreamWriteValue32(s, words + 16, 4, 0));
	PERMITTED(cuStreamWaitValue32(s, words + 16, 4, CU_STREAM_WAIT_VALUE_EQ));
	PERMITTED(cuGraphUpload(exec, s));
	PERMITTED(cuGraphLaunch(exec, s));
	PERMITTED(cuEventRecord(after, s));
	PERMITTED(cuStreamWaitEvent(own, after, 0));
	PERMITTED(cuEventSynchronize(after));
	PERMITTED(cuEventQuery(after));
	PERMITTED(cuEventElapsedTime(&ms, before, after));
	PERMITTED(cuStreamSynchronize(s));
	PERMITTED(cuStreamAddCallback(s, count_callback, NULL, 0));
	PERMITTED(cuLaunchHostFunc(s, count_call, NULL));
	PERMITTED(cuLaunchHostFunc(own, count_call, NULL));
}

static void work_for_a_stream_of_the_program_is_permitted(void **state)
{
	(void)state;
	call_from_the_driver(work, 17);
	ok(cuStreamSynchronize(own));
	assert_int_equal(n_called, 2 * 3);
	assert_int_equal(word(0), 0x01010101);
	for (unsigned i = 1; i < 6; i++)
		assert_int_equal(word(i), i < 3 ? i + 1 : i == 3 ? 3 : i);
}

static CUgraph captured[2];
static unsigned n_captured;

static void build(void)
{
	CUDA_HOST_NODE_PARAMS host = { .fn = count_call };
	CUgraphNode node, record;
	CUevent event;

	PERMITTED(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	PERMITTED(cuMemsetD32Async(words, 1, 1, s));
	PERMITTED(cuStreamEndCapture(s, &captured[n_captured++]));
	PERMITTED(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	PERMITTED(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
	PERMITTED(cuGraphHostNodeGetParams(node, &host));
	PERMITTED(cuGraphHostNodeSetParams(node, &host));
	PERMITTED(cuGraphAddEventRecordNode(&record, graph, NULL, 0, after));
	PERMITTED(cuGraphEventRecordNodeGetEvent(record, &event));
	PERMITTED(cuGraphAddEventWaitNode(&node, graph, &record, 1, after));
	FORBIDDEN(cuGraphDestroyNode(node));
}

static void a_capture_and_some_nodes_are_permitted(void **state)
{
	size_t n = 0;

	(void)state;
	call_from_the_driver(build, 11);
	for (unsigned i = 0; i < 2; i++) {
		ok(cuGraphGetNodes(captured[i], NULL, &n));
		assert_int_equal(n, 1);
		ok(cuGraphDestroy(captured[i]));
	}
	ok(cuGraphGetNodes(graph, NULL, &n));
	assert_int_equal(n, 2 * 4);
	assert_int_equal(word(0), 0);
}

static void destroy(void)
{
	PERMITTED(cuEventDestroy(after));
	PERMITTED(cuStreamDestroy(s));
	PERMITTED(cuStreamDestroy(own));
}

static void streams_and_events_are_destroyed_in_a_callback(void **state)
{
	void (*const calls)(void) = destroy;

	(void)state;
	ok(cuLaunchHostFunc(own, run_calls, (void *)&calls));
	ok(cuCtxSynchronize());
	check_answers(3);
	ok(cuEventCreate(&after, 0)); /* tear_down() destroys it */
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
}

/* ---- callbacks that wait for themselves ----------------------------------------------------------------------- */

/* The calls of a callback in stream `own`, while s waits for the event `after`, which is recorded after the callback: waiting would
 * be a deadlock. */
static void wait_for_itself(void)
{
	FORBIDDEN(cuStreamSynchronize(own));
	FORBIDDEN(cuStreamSynchronize(s));
	FORBIDDEN(cuEventSynchronize(after));
	PERMITTED(cuEventSynchronize(before));
	EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(after));
}

static void a_callback_that_would_wait_for_itself_is_refused(void **state)
{
	void (*const calls)(void) = wait_for_itself;
	uint32_t *flag = make_flag();
	CUdeviceptr f = (uintptr_t)flag, seen = words;
	void *params[] = { &f, &seen };

	(void)state;
	if (!on_software_driver()) /* an H200 hangs here */
		skip();
	ok(cuEventRecord(before, s));
	launch(get_kernel("spin"), 1, 1, own, params);
	ok(cuLaunchHostFunc(own, run_calls, (void *)&calls));
	ok(cuEventRecord(after, own));
	ok(cuStreamWaitEvent(s, after, 0));
	ok(cuMemsetD32Async(words + 4, 1, 1, s));
	raise_flag(flag);
	ok(cuCtxSynchronize());
	check_answers(5);
	assert_int_equal(word(1), 1);
	ok(cuMemFreeHost(flag));
}

static void wait_for_another_function(void)
{
	FORBIDDEN(cuStreamSynchronize(s));
}

static void a_callback_that_would_wait_for_another_one_is_refused(void **state)
{
	void (*const calls)(void) = wait_for_another_function;
	uint32_t *flag = make_flag();
	CUdeviceptr f = (uintptr_t)flag, seen = words;
	void *params[] = { &f, &seen };

	(void)state;
	if (!on_software_driver()) /* an H200 hangs here */
		skip();
	launch(get_kernel("spin"), 1, 1, own, params);
	ok(cuLaunchHostFunc(own, run_calls, (void *)&calls));
	ok(cuStreamWaitValue32(s, words + 4, 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuLaunchHostFunc(s, count_call, NULL));
	raise_flag(flag);
	ok(cuStreamSynchronize(own));
	check_answers(1);
	ok(cuStreamWriteValue32(own, words + 4, 1, 0));
	ok(cuStreamSynchronize(s));
	assert_int_equal(n_called, 1);
	ok(cuMemFreeHost(flag));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(calls_are_not_permitted_in_callbacks),
		CASE(queries_are_permitted),
		CASE(work_for_a_stream_of_the_program_is_permitted),
		CASE(a_capture_and_some_nodes_are_permitted),
		CASE(streams_and_events_are_destroyed_in_a_callback),
		CASE(a_callback_that_would_wait_for_itself_is_refused),
		CASE(a_callback_that_would_wait_for_another_one_is_refused),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
