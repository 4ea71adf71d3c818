/* test_stream.c — the order of operations: streams, events, callbacks, and a kernel that runs until the program raises a flag. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

static CUstream make_stream(unsigned flags)
{
	CUstream s;

	ok(cuStreamCreate(&s, flags));
	return s;
}

/* Start the kernel that waits for flag and then writes *seen. */
static void start_spinning(CUstream s, uint32_t *flag, uint32_t *seen)
{
	CUdeviceptr f = (uintptr_t)flag, o = (uintptr_t)seen;
	void *params[] = { &f, &o };

	launch(get_kernel("spin"), 1, 1, s, params);
}

static void a_launch_returns_while_its_kernel_runs(void **state)
{
	CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = make_flag(), *seen = make_flag();

	(void)state;
	start_spinning(s, flag, seen);
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	ok(cuStreamQuery(s));
	assert_int_equal(*seen, 1);
	ok(cuStreamDestroy(s));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
}

static void a_copy_in_another_stream_overtakes_a_running_kernel(void **state)
{
	CUstream a = make_stream(CU_STREAM_NON_BLOCKING), b = make_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = make_flag(), *seen = make_flag(), one = 1, got = 0;
	CUdeviceptr p = (uintptr_t)flag;

	(void)state;
	start_spinning(a, flag, seen);
	ok(cuMemcpyDtoHAsync(&got, p, 4, b));
	ok(cuStreamSynchronize(b));
	assert_int_equal(got, 0);
	ok(cuMemcpyHtoDAsync(p, &one, 4, b)); /* raises the flag, which ends the kernel */
	ok(cuStreamSynchronize(a));
	assert_int_equal(*seen, 1);
	ok(cuStreamDestroy(a));
	ok(cuStreamDestroy(b));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
}

static void operations_of_one_stream_run_in_order(void **state)
{
	CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = make_flag(), *seen = make_flag(), *copy = make_flag(), *source = make_flag();
	CUdeviceptr o = (uintptr_t)seen, c = (uintptr_t)copy;

	(void)state;
	*source = 9;
	start_spinning(s, flag, seen);
	ok(cuMemcpyDtoDAsync(c, o, 4, s)); /* copies the word that the kernel writes */
	ok(cuMemcpyHtoDAsync(o, source, 4, s));
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	assert_int_equal(*copy, 0);
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	assert_int_equal(*copy, 1);
	assert_int_equal(*seen, 9);
	ok(cuStreamDestroy(s));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
	ok(cuMemFreeHost(copy));
	ok(cuMemFreeHost(source));
}

static void pageable_memory_is_staged(void **state)
{
	CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = make_flag(), *seen = make_flag(), source = 9;

	(void)state;
	if (!on_software_driver()) /* on NVIDIA's driver the copy would wait for the kernel, which waits for the flag */
		skip();
	start_spinning(s, flag, seen);
	ok(cuMemcpyHtoDAsync((uintptr_t)seen, &source, 4, s));
	source = 10;
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	assert_int_equal(*seen, 9);
	ok(cuStreamDestroy(s));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
}

static void the_legacy_stream_waits_for_blocking_streams(void **state)
{
	CUstream blocking = make_stream(CU_STREAM_DEFAULT), free_one = make_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = make_flag(), *seen = make_flag(), *copy = make_flag(), *later = make_flag();
	CUdeviceptr o = (uintptr_t)seen, c = (uintptr_t)copy, l = (uintptr_t)later;

	(void)state;
	start_spinning(blocking, flag, seen);
	ok(cuMemcpyDtoDAsync(c, o, 4, NULL));     /* the legacy stream waits for the kernel */
	ok(cuMemcpyDtoDAsync(l, c, 4, blocking)); /* the blocking stream waits for the legacy stream */
	ok(cuMemsetD32Async(l, 5, 1, free_one));  /* the non-blocking stream does not wait */
	ok(cuStreamSynchronize(free_one));
	assert_int_equal(*later, 5);
	assert_int_equal(*copy, 0);
	fails(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	raise_flag(flag);
	ok(cuStreamSynchronize(NULL));
	assert_int_equal(*copy, 1);
	ok(cuStreamSynchronize(blocking));
	assert_int_equal(*later, 1);
	ok(cuStreamDestroy(blocking));
	ok(cuStreamDestroy(free_one));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
	ok(cuMemFreeHost(copy));
	ok(cuMemFreeHost(later));
}

static void an_event_orders_two_streams(void **state)
{
	CUstream a = make_stream(CU_STREAM_NON_BLOCKING), b = make_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = make_flag(), *seen = make_flag(), *copy = make_flag();
	CUdeviceptr o = (uintptr_t)seen, c = (uintptr_t)copy;
	CUevent done;

	(void)state;
	ok(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
	ok(cuEventQuery(done)); /* the event was never recorded, so nothing waits */
	start_spinning(a, flag, seen);
	ok(cuEventRecord(done, a));
	fails(cuEventQuery(done), CUDA_ERROR_NOT_READY);
	ok(cuStreamWaitEvent(b, done, 0));
	ok(cuMemcpyDtoDAsync(c, o, 4, b));
	fails(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	ok(cuEventDestroy(done)); /* the stream still waits for the destroyed event */
	raise_flag(flag);
	ok(cuStreamSynchronize(b));
	assert_int_equal(*copy, 1);
	fails(cuEventQuery(done), CUDA_ERROR_INVALID_HANDLE);
	ok(cuStreamDestroy(a));
	ok(cuStreamDestroy(b));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
	ok(cuMemFreeHost(copy));
}

static void events_measure_the_time_between_them(void **state)
{
	CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = make_flag(), *seen = make_flag();
	CUevent before, after, silent;
	float ms = -1;

	(void)state;
	ok(cuEventCreate(&before, 0));
	ok(cuEventCreate(&after, 0));
	ok(cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING));
	fails(cuEventElapsedTime(&ms, before, after), CUDA_ERROR_INVALID_HANDLE);
	ok(cuEventRecord(before, s));
	start_spinning(s, flag, seen);
	ok(cuEventRecord(after, s));
	fails(cuEventElapsedTime(&ms, before, after), CUDA_ERROR_NOT_READY);
	raise_flag(flag);
	ok(cuEventSynchronize(after));
	ok(cuEventElapsedTime(&ms, before, after));
	assert_true(ms > 0);
	ok(cuEventElapsedTime(&ms, after, before));
	assert_true(ms < 0);
	ok(cuEventRecord(silent, s));
	fails(cuEventElapsedTime(&ms, before, silent), CUDA_ERROR_INVALID_HANDLE);
	fails(cuEventElapsedTime(NULL, before, after), CUDA_ERROR_INVALID_VALUE);
	fails(cuEventCreate(&silent, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	ok(cuEventDestroy(before));
	ok(cuEventDestroy(after));
	ok(cuEventDestroy(silent));
	fails(cuEventRecord(silent, s), CUDA_ERROR_INVALID_HANDLE);
	ok(cuStreamDestroy(s));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
}

static void note(void *user)
{
	*(pthread_t *)user = pthread_self();
}

static void note_status(CUstream stream, CUresult status, void *user)
{
	(void)stream;
	*(CUresult *)user = status;
}

static void callbacks_run_in_order_on_another_thread(void **state)
{
	CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = make_flag(), *seen = make_flag();
	pthread_t caller = pthread_self();
	CUresult status = CUDA_ERROR_UNKNOWN;

	(void)state;
	start_spinning(s, flag, seen);
	ok(cuLaunchHostFunc(s, note, &caller));
	ok(cuStreamAddCallback(s, note_status, &status, 0));
	fails(cuLaunchHostFunc(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_true(pthread_equal(caller, pthread_self()));
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	assert_false(pthread_equal(caller, pthread_self()));
	assert_int_equal(status, CUDA_SUCCESS);
	ok(cuStreamDestroy(s));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
}

static void a_destroyed_stream_finishes_its_work(void **state)
{
	CUstream s = make_stream(CU_STREAM_DEFAULT);
	uint32_t *flag = make_flag(), *seen = make_flag();

	(void)state;
	start_spinning(s, flag, seen);
	ok(cuStreamDestroy(s));
	fails(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
	fails(cuStreamDestroy(s), CUDA_ERROR_INVALID_HANDLE);
	raise_flag(flag);
	ok(cuCtxSynchronize());
	assert_int_equal(*seen, 1);
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
}

static void a_destroyed_context_stops_its_kernels(void **state)
{
	uint32_t *flag = make_flag();
	CUcontext second;
	CUstream s;

	ok(cuCtxCreate(&second, NULL, 0, 0));
	s = make_stream(CU_STREAM_DEFAULT);
	start_spinning(s, flag, flag);
	ok(cuMemsetD32Async((uintptr_t)flag, 3, 1, s));
	ok(cuCtxDestroy(second));
	assert_int_equal(*flag, 0); /* the operation queued after the kernel did not run */
	ok(cuCtxSetCurrent(*state));
	fails(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
	ok(cuMemFreeHost(flag));
}

static void reports_the_properties_of_a_stream(void **state)
{
	CUstream s = make_stream(CU_STREAM_NON_BLOCKING), t;
	unsigned flags;
	unsigned long long id, other;
	CUcontext ctx;
	int priority = 9;
	CUstreamCaptureStatus capture;

	ok(cuStreamGetFlags(s, &flags));
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	ok(cuStreamGetFlags(NULL, &flags));
	assert_int_equal(flags, CU_STREAM_DEFAULT);
	ok(cuStreamGetId(s, &id));
	ok(cuStreamGetId(CU_STREAM_PER_THREAD, &other));
	assert_true(id != other);
	ok(cuStreamGetCtx(s, &ctx));
	assert_ptr_equal(ctx, *state);
	ok(cuStreamCreateWithPriority(&t, 0, -5));
	ok(cuStreamGetPriority(t, &priority));
	assert_int_equal(priority, -5);
	ok(cuStreamIsCapturing(t, &capture));
	assert_int_equal(capture, CU_STREAM_CAPTURE_STATUS_NONE);
	ok(cuStreamDestroy(s));
	ok(cuStreamDestroy(t));
	fails(cuStreamCreate(&s, 0x40), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamDestroy(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
	fails(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
	fails(cuStreamGetFlags((CUstream)(uintptr_t)0x1234560, &flags), CUDA_ERROR_INVALID_HANDLE);
}

static void attributes_are_kept_and_copied(void **state)
{
	CUstreamAttrValue value = { .syncPolicy = CU_SYNC_POLICY_YIELD }, got;
	CUstream from, to;

	(void)state;
	ok(cuStreamCreate(&from, 0));
	ok(cuStreamCreateWithPriority(&to, 0, -2));
	ok(cuStreamGetAttribute(from, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
	assert_int_equal(got.syncPolicy, CU_SYNC_POLICY_AUTO);
	ok(cuStreamSetAttribute(from, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	ok(cuStreamCopyAttributes(to, from));
	ok(cuStreamGetAttribute(to, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
	assert_int_equal(got.syncPolicy, CU_SYNC_POLICY_YIELD);
	ok(cuStreamGetAttribute(to, CU_STREAM_ATTRIBUTE_PRIORITY, &got));
	assert_int_equal(got.priority, -2);
	value.syncPolicy = (CUsynchronizationPolicy)77;
	fails(cuStreamSetAttribute(from, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamGetAttribute(from, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamDestroy(from));
	ok(cuStreamDestroy(to));
}

/* Streams, events, functions and modules know their context: on an H200 these calls work without a current context. */
static void objects_of_a_context_need_no_current_context(void **state)
{
	CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
	CUevent a, b;
	CUdeviceptr p, q;
	CUfunction f = get_kernel("bump");
	CUmodule module;
	CUcontext ctx;
	size_t bytes;
	uint32_t word = 0;
	float ms;
	int n;

	(void)state;
	ok(cuEventCreate(&a, 0));
	ok(cuEventCreate(&b, 0));
	ok(cuMemAlloc(&p, 64));
	ok(cuFuncGetModule(&module, f));
	ok(cuCtxPopCurrent(&ctx));
	ok(cuEventRecord(a, s));
	ok(cuMemsetD32Async(p, 5, 16, s));
	ok(cuMemcpyDtoHAsync(&word, p, 4, s));
	ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	ok(cuMemAllocAsync(&q, 64, s));
	ok(cuMemFreeAsync(q, s));
	ok(cuEventRecord(b, s));
	ok(cuStreamWaitEvent(s, a, 0));
	ok(cuStreamSynchronize(s));
	ok(cuStreamQuery(s));
	assert_int_equal(word, 5);
	ok(cuEventQuery(a));
	ok(cuEventSynchronize(b));
	ok(cuEventElapsedTime(&ms, a, b));
	ok(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
	ok(cuModuleGetGlobal(&q, &bytes, module, "counter"));
	fails(cuEventRecord(a, NULL), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuStreamQuery(NULL), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuMemsetD32(p, 5, 16), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuMemAlloc(&q, 64), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuEventCreate(&a, 0), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuCtxPushCurrent(ctx));
	ok(cuEventDestroy(a));
	ok(cuEventDestroy(b));
	ok(cuMemFree(p));
	ok(cuStreamDestroy(s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_returns_while_its_kernel_runs),
		cmocka_unit_test(a_copy_in_another_stream_overtakes_a_running_kernel),
		cmocka_unit_test(operations_of_one_stream_run_in_order),
		cmocka_unit_test(pageable_memory_is_staged),
		cmocka_unit_test(the_legacy_stream_waits_for_blocking_streams),
		cmocka_unit_test(an_event_orders_two_streams),
		cmocka_unit_test(events_measure_the_time_between_them),
		cmocka_unit_test(callbacks_run_in_order_on_another_thread),
		cmocka_unit_test(objects_of_a_context_need_no_current_context),
		cmocka_unit_test(a_destroyed_stream_finishes_its_work),
		cmocka_unit_test(a_destroyed_context_stops_its_kernels),
		cmocka_unit_test(reports_the_properties_of_a_stream),
		cmocka_unit_test(attributes_are_kept_and_copied),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
