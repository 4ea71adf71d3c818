/* test_capture_threads.c — captures and launches of graphs in several threads, and the calls for per-thread default streams. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

struct capturer { /* a thread that captures and launches its own graphs, and launches a graph that all threads share */
	CUcontext ctx;
	CUfunction count;
	CUgraphExec shared;
	uint32_t *own;
	CUresult result;
};

/* Threads only count their failed checks; the main thread asserts that there is none. */
#define must(call) \
	do { \
		if (!c->result) \
			c->result = (call); \
	} while (0)

static void *capture_and_launch(void *arg)
{
	struct capturer *c = arg;
	CUdeviceptr p = (uintptr_t)c->own;
	void *params[] = { &p };
	CUstream s = NULL;

	must(cuCtxSetCurrent(c->ctx));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 50; i++) {
		CUgraph graph = NULL;
		CUgraphExec exec = NULL;

		must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		must(cuLaunchKernel(c->count, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
		must(cuStreamEndCapture(s, &graph));
		must(cuGraphInstantiate(&exec, graph, 0));
		must(cuGraphDestroy(graph));
		must(cuGraphLaunch(exec, s));
		must(cuGraphLaunch(c->shared, s));
		must(cuGraphExecDestroy(exec));
	}
	must(cuStreamSynchronize(s));
	must(cuStreamDestroy(s));
	return NULL;
}

static void threads_capture_and_launch_at_the_same_time(void **state)
{
	enum { THREADS = 4 };
	struct capturer c[THREADS];
	pthread_t thread[THREADS];
	CUgraphExec shared;
	CUgraph graph;
	CUstream s;
	CUdeviceptr p;
	void *params[] = { &p };
	uint32_t *word;

	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuMemHostAlloc((void **)&word, 64, 0));
	memset(word, 0, 64);
	p = (uintptr_t)&word[8];
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch(get_kernel("count"), 1, 1, s, params);
	ok(cuMemcpyDtoDAsync((uintptr_t)&word[9], p, 4, s));
	ok(cuStreamEndCapture(s, &graph));
	ok(cuGraphInstantiate(&shared, graph, 0));
	ok(cuGraphDestroy(graph));
	for (int i = 0; i < THREADS; i++) {
		c[i] = (struct capturer){ *state, get_kernel("count"), shared, &word[i], CUDA_SUCCESS };
		assert_int_equal(pthread_create(&thread[i], NULL, capture_and_launch, &c[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		ok(c[i].result);
		assert_int_equal(word[i], 50 * 32);
	}
	assert_int_equal(word[9], THREADS * 50); /* launches of one executable graph do not overlap */
	ok(cuGraphExecDestroy(shared));
	ok(cuStreamDestroy(s));
	ok(cuMemFreeHost(word));
}

static void per_thread_calls_capture_the_stream_of_the_thread(void **state)
{
	const cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	CUresult (*begin)(CUstream, CUstreamCaptureMode), (*end)(CUstream, CUgraph *);
	CUstreamCaptureStatus status;
	void *p = NULL;
	CUgraph graph;

	(void)state;
	ok(cuGetProcAddress("cuStreamBeginCapture", &p, 12000, per_thread, NULL));
	memcpy(&begin, &p, sizeof p);
	ok(cuGetProcAddress("cuStreamEndCapture", &p, 12000, per_thread, NULL));
	memcpy(&end, &p, sizeof p);
	ok(begin(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
	ok(cuStreamIsCapturing(CU_STREAM_PER_THREAD, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	ok(end(NULL, &graph));
	ok(cuGraphDestroy(graph));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_capture_and_launch_at_the_same_time),
		cmocka_unit_test(per_thread_calls_capture_the_stream_of_the_thread),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
