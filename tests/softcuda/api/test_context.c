/* test_context.c — contexts: the stack of current contexts, primary contexts, and stale handles. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>

static CUcontext create(void)
{
	CUcontext ctx;

	ok(cuCtxCreate(&ctx, NULL, 0, 0));
	return ctx;
}

static CUcontext get_current(void)
{
	CUcontext ctx;

	ok(cuCtxGetCurrent(&ctx));
	return ctx;
}

static void makes_a_new_context_current(void **state)
{
	CUcontext a, b, popped;
	CUdevice dev = -1;

	(void)state;
	ok(cuInit(0));
	assert_null(get_current());
	fails(cuCtxGetDevice(&dev), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
	a = create();
	assert_ptr_equal(get_current(), a);
	b = create();
	assert_ptr_equal(get_current(), b);
	ok(cuCtxGetDevice(&dev));
	assert_int_equal(dev, 0);
	ok(cuCtxPopCurrent(&popped));
	assert_ptr_equal(popped, b);
	assert_ptr_equal(get_current(), a);
	ok(cuCtxSetCurrent(b));
	assert_ptr_equal(get_current(), b);
	ok(cuCtxDestroy(a));
	ok(cuCtxDestroy(b));
	assert_null(get_current());
}

static void distinguishes_a_destroyed_context_from_an_invalid_handle(void **state)
{
	CUcontext a = create();
	CUdeviceptr p;

	(void)state;
	ok(cuCtxPushCurrent(a));
	ok(cuCtxDestroy(a)); /* pops one of the two contexts */
	assert_ptr_equal(get_current(), a);
	fails(cuMemAlloc(&p, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	fails(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	fails(cuCtxDestroy(a), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ok(cuCtxPushCurrent(a)); /* pushing a destroyed context succeeds, but calls in it fail */
	fails(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ok(cuCtxSetCurrent(NULL));
	ok(cuCtxSetCurrent(NULL));
	assert_null(get_current());
	fails(cuCtxDestroy(NULL), CUDA_ERROR_INVALID_VALUE);
	if (on_software_driver()) /* NVIDIA's driver dereferences invalid handles */
		fails(cuCtxSetCurrent((CUcontext)(uintptr_t)0xdeadbee0), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuMemAlloc(&p, 16), CUDA_ERROR_INVALID_CONTEXT);
}

static void counts_the_users_of_the_primary_context(void **state)
{
	CUcontext a, b;
	unsigned flags;
	CUdeviceptr p;
	int active;

	(void)state;
	ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_false(active);
	fails(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuDevicePrimaryCtxRetain(&a, 0));
	ok(cuDevicePrimaryCtxRetain(&b, 0));
	assert_ptr_equal(a, b);
	ok(cuCtxSetCurrent(a));
	ok(cuMemAlloc(&p, 64));
	fails(cuCtxDestroy(a), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuDevicePrimaryCtxRelease(0));
	ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_true(active);
	ok(cuDevicePrimaryCtxRelease(0));
	ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_false(active);
	fails(cuMemFree(p), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ok(cuDevicePrimaryCtxRetain(&b, 0));
	assert_ptr_equal(a, b); /* the handle of the primary context never changes */
	fails(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	ok(cuDevicePrimaryCtxReset(0));
	fails(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ok(cuCtxSetCurrent(NULL));
}

static void stores_the_supported_limits(void **state)
{
	CUcontext ctx = create();
	size_t value;

	(void)state;
	ok(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	assert_int_equal(value, 1024);
	ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	ok(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	assert_int_equal(value, 4096);
	ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
	ok(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	assert_int_equal(value, 16 << 20);
	ok(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
	assert_int_equal(value, 2048);
	ok(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4096));
	ok(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
	assert_int_equal(value, 4096);
	fails(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), CUDA_ERROR_UNSUPPORTED_LIMIT);
	fails(cuCtxGetLimit(&value, (CUlimit)99), CUDA_ERROR_INVALID_VALUE);
	fails(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
	ok(cuCtxDestroy(ctx));
}

static void reports_the_properties_of_a_context(void **state)
{
	CUcontext ctx = create();
	unsigned flags, version;
	unsigned long long id, other;
	CUfunc_cache config;
	int least = 1, greatest = 1;

	(void)state;
	ok(cuCtxGetFlags(&flags));
	assert_false(flags & CU_CTX_MAP_HOST); /* this flag has no effect: host memory is always mapped */
	ok(cuCtxGetApiVersion(ctx, &version));
	assert_int_equal(version, 3020);
	ok(cuCtxGetId(NULL, &id));
	ok(cuCtxGetId(ctx, &other));
	assert_true(id == other);
	ok(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
	ok(cuCtxGetCacheConfig(&config));
	assert_int_equal(config, CU_FUNC_CACHE_PREFER_L1);
	ok(cuCtxGetStreamPriorityRange(&least, &greatest));
	assert_int_equal(least, 0);
	assert_true(on_software_driver() ? greatest == -5 : greatest <= 0);
	fails(cuCtxSetFlags(0x10000), CUDA_ERROR_INVALID_VALUE);
	ok(cuCtxDestroy(ctx));
}

static void a_thread_can_make_any_number_of_contexts_current(void **state)
{
	enum { N = 200 };
	CUcontext ctx[N], popped;
	CUdevice device;

	(void)state;
	ok(cuDeviceGet(&device, 0));
	for (int k = 0; k < N; k++)
		ok(cuCtxCreate(&ctx[k], NULL, 0, device));
	for (int k = 0; k < N; k++)
		ok(cuCtxPushCurrent(ctx[k]));
	for (int k = 2 * N - 1; k >= 0; k--) {
		ok(cuCtxPopCurrent(&popped));
		assert_ptr_equal(popped, ctx[k % N]);
	}
	fails(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
	for (int k = 0; k < N; k++)
		ok(cuCtxDestroy(ctx[k]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_a_new_context_current),
		cmocka_unit_test(distinguishes_a_destroyed_context_from_an_invalid_handle),
		cmocka_unit_test(counts_the_users_of_the_primary_context),
		cmocka_unit_test(stores_the_supported_limits),
		cmocka_unit_test(reports_the_properties_of_a_context),
		cmocka_unit_test(a_thread_can_make_any_number_of_contexts_current),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
