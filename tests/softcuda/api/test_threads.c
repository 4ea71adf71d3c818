/* test_threads.c — many threads at once: separate and shared contexts and streams. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

enum { N_THREADS = 4, N_ROUNDS = 10, N_WORDS = 64 };

struct job {
	CUcontext shared; /* NULL: create a context */
	CUfunction count; /* a kernel in the shared context */
	CUdeviceptr total;
	CUresult result;
	unsigned wrong;
};

/* Threads only count their failed calls; the main thread asserts that there is none. */
#define must(call) \
	do { \
		if (!job->result) \
			job->result = (call); \
	} while (0)

static void one_round(struct job *job)
{
	uint32_t in[N_WORDS], out[N_WORDS];
	CUdeviceptr p = 0;
	CUstream s = NULL;
	CUevent e = NULL;
	CUmodule module = NULL;
	CUfunction count = job->count;
	void *params[] = { &p };

	for (unsigned i = 0; i < N_WORDS; i++)
		in[i] = i * 77;
	must(cuMemAlloc(&p, sizeof in));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, 0));
	if (!count) {
		must(cuModuleLoadData(&module, kernels_ptx));
		must(cuModuleGetFunction(&count, module, "count"));
	}
	must(cuMemcpyHtoDAsync(p, in, sizeof in, s));
	must(cuLaunchKernel(count, 2, 1, 1, 32, 1, 1, 0, s, params, NULL)); /* the kernel adds 64 to in[0] */
	must(cuEventRecord(e, s));
	must(cuMemcpyDtoHAsync(out, p, sizeof out, s));
	must(cuStreamSynchronize(s));
	must(cuEventSynchronize(e));
	in[0] += 64;
	job->wrong += memcmp(in, out, sizeof in) != 0;
	must(cuMemFreeAsync(p, s));
	must(cuStreamSynchronize(s));
	must(cuEventDestroy(e));
	must(cuStreamDestroy(s));
	if (module)
		must(cuModuleUnload(module));
}

static void *work(void *arg)
{
	struct job *job = arg;
	CUcontext mine = NULL;
	void *params[] = { &job->total };

	if (job->shared)
		must(cuCtxSetCurrent(job->shared));
	else
		must(cuCtxCreate(&mine, NULL, 0, 0));
	for (int i = 0; i < N_ROUNDS; i++)
		one_round(job);
	if (job->shared) {
		must(cuLaunchKernel(job->count, 1, 1, 1, 32, 1, 1, 0, CU_STREAM_PER_THREAD, params, NULL));
		must(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	}
	if (mine)
		must(cuCtxDestroy(mine));
	return NULL;
}

static void run(struct job *jobs)
{
	pthread_t threads[N_THREADS];

	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(jobs[i].result, CUDA_SUCCESS);
		assert_int_equal(jobs[i].wrong, 0);
	}
}

static void threads_can_use_separate_contexts(void **state)
{
	struct job jobs[N_THREADS] = { 0 };

	(void)state;
	run(jobs);
}

static void threads_can_share_a_context(void **state)
{
	struct job jobs[N_THREADS] = { 0 };
	CUfunction count = get_kernel("count");
	CUdeviceptr total;
	uint32_t sum;

	ok(cuMemAlloc(&total, 4));
	ok(cuMemsetD32(total, 0, 1));
	ok(cuCtxSynchronize());
	for (int i = 0; i < N_THREADS; i++) {
		jobs[i].shared = *state;
		jobs[i].count = count;
		jobs[i].total = total;
	}
	run(jobs);
	ok(cuMemcpyDtoH(&sum, total, 4));
	assert_int_equal(sum, N_THREADS * 32);
}

static void *take_current(void *out)
{
	if (cuCtxGetCurrent(out))
		*(CUcontext *)out = (CUcontext)out;
	return NULL;
}

static void a_new_thread_has_no_current_context(void **state)
{
	CUcontext seen = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, take_current, &seen), 0);
	pthread_join(thread, NULL);
	assert_null(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_can_use_separate_contexts),
		cmocka_unit_test(threads_can_share_a_context),
		cmocka_unit_test(a_new_thread_has_no_current_context),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
