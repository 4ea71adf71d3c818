/* test_refused.c — calls that the driver exports but does not implement, and queries that correctly answer "none". */
#include "tests/softcuda/api/support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "softcuda/api/cu_refused_internal.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* old programs use deprecated calls */

static const char *const symbols[] = {
#define CALL(name, since, symbol, why)             #symbol,
#define PTDS(name, since, symbol, per_thread, why) #symbol, #per_thread,
	SOFT_REFUSED(CALL, PTDS)
#undef CALL
#undef PTDS
};
enum { N_SYMBOLS = sizeof symbols / sizeof *symbols };

static CUresult call(const char *symbol)
{
	CUresult (*f)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
	void *p = dlsym(RTLD_DEFAULT, symbol);

	if (!p)
		fail_msg("%s is not exported", symbol);
	memcpy(&f, &p, sizeof f);
	return f(0, 0, 0, 0, 0, 0);
}

/* Count the lines of the file that start with the name and a colon. */
static int count_lines(FILE *f, const char *name)
{
	char line[512], want[128];
	int n = 0;

	snprintf(want, sizeof want, " %s: ", name);
	rewind(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, want) != NULL;
	return n;
}

static void refuses_each_call_and_logs_its_name_once(void **state)
{
	FILE *log = tmpfile();
	int screen = dup(STDERR_FILENO);

	(void)state;
	assert_non_null(log);
	for (int i = 0; i < N_SYMBOLS; i++)
		if (strncmp(symbols[i], "cuCheckpoint", 12) != 0) /* these calls are about another process, and do not require cuInit() */
			fails(call(symbols[i]), CUDA_ERROR_NOT_INITIALIZED);
	ok(cuInit(0));
	dup2(fileno(log), STDERR_FILENO);
	for (int i = 0; i < 2 * N_SYMBOLS; i++) {
		if (call(symbols[i / 2]) != CUDA_ERROR_NOT_SUPPORTED) {
			dup2(screen, STDERR_FILENO);
			fail_msg("%s is not refused", symbols[i / 2]);
		}
	}
	dup2(screen, STDERR_FILENO);
	close(screen);
	for (int i = 0; i < N_SYMBOLS; i++)
		if (count_lines(log, symbols[i]) != 1)
			fail_msg("%s is in %d lines of the log", symbols[i], count_lines(log, symbols[i]));
	fclose(log);
}

static void *get(const char *name, int version, cuuint64_t flags)
{
	void *p = NULL;

	ok(cuGetProcAddress(name, &p, version, flags, NULL));
	return p;
}

static void cuGetProcAddress_finds_refused_calls(void **state)
{
	const cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	(void)state;
	assert_ptr_equal(get("cuArrayCreate", 13000, 0), dlsym(RTLD_DEFAULT, "cuArrayCreate_v2"));
	assert_ptr_equal(get("cuMemAlloc", 3000, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc"));
	assert_ptr_equal(get("cuGraphLaunch", 12000, 0), dlsym(RTLD_DEFAULT, "cuGraphLaunch"));
	assert_ptr_equal(get("cuGraphLaunch", 12000, per_thread), dlsym(RTLD_DEFAULT, "cuGraphLaunch_ptsz"));
	assert_null(get("cuGraphLaunch", 9000, 0));
}

/* ---- queries that succeed -------------------------------------------------------------------------------- */

static cuuint64_t pool_number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value = 99;

	ok(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void reports_the_attributes_of_the_default_pool(void **state)
{
	const CUmemPool_attribute settings[] = { CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
						 CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES };
	CUmemoryPool pool;
	CUdeviceptr p;
	cuuint64_t value = UINT64_MAX;
	int on = -1;

	(void)state;
	ok(cuDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < 3; i++) {
		ok(cuMemPoolGetAttribute(pool, settings[i], &on));
		assert_int_equal(on, 1);
		on = 0;
		ok(cuMemPoolSetAttribute(pool, settings[i], &on));
		on = -1;
		ok(cuMemPoolGetAttribute(pool, settings[i], &on));
		assert_int_equal(on, 0);
	}
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
	ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), UINT64_MAX);
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	ok(cuMemAllocAsync(&p, 1 << 20, 0));
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1 << 20);
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >> 20, 1);
	ok(cuMemFreeAsync(p, 0));
	ok(cuStreamSynchronize(0));
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1 << 20);
	fails(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value), CUDA_ERROR_INVALID_VALUE);
	value = 0;
	ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
	assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
	fails(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)77, &value), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemPoolGetAttribute((CUmemoryPool)&pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value), CUDA_ERROR_INVALID_VALUE);
}

static void answers_that_nothing_is_captured_and_no_graph_has_memory(void **state)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	cuuint64_t used = 99;
	CUcontext ctx, same;
	int supported = -1;

	(void)state;
#if CUDA_VERSION >= 13000
	ok(cuStreamGetCaptureInfo(0, &status, NULL, NULL, NULL, NULL, NULL));
#else
	ok(cuStreamGetCaptureInfo(0, &status, NULL, NULL, NULL, NULL));
#endif
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	ok(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	ok(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
	ok(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
	assert_int_equal(used, 0);
	fails(cuDeviceGetGraphMemAttribute(0, (CUgraphMem_attribute)9, &used), CUDA_ERROR_INVALID_VALUE);
	ok(cuDeviceGraphMemTrim(0));
	ok(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
	assert_int_equal(supported, 0);
	ok(cuCtxGetCurrent(&ctx));
	ok(cuCtxAttach(&same, 0));
	assert_ptr_equal(ctx, same);
	ok(cuCtxDetach(ctx));
	ok(cuCtxSynchronize()); /* the refused calls leave the context usable */
}

/* PyCUDA launches this way: it sets the shape of the block before each launch. */
static void launches_with_the_calls_of_cuda_3(void **state)
{
	CUfunction f;
	CUdeviceptr p[3];
	double in[64], out[64];
	int n = 64;

	(void)state;
	f = get_kernel("vecadd");
	for (int i = 0; i < 64; i++)
		in[i] = i;
	for (int i = 0; i < 3; i++)
		ok(cuMemAlloc(&p[i], sizeof in));
	ok(cuMemsetD8(p[0], 0, sizeof in));
	ok(cuMemcpyHtoD(p[1], in, sizeof in));
	ok(cuMemcpyHtoD(p[2], in, sizeof in));
	fails(cuLaunchGrid(f, 2, 1), CUDA_ERROR_INVALID_VALUE); /* cuFuncSetBlockShape() was not called */
	fails(cuFuncSetBlockShape(f, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuFuncSetBlockShape(f, 32, 1, 1));
	for (int i = 0; i < 3; i++)
		ok(cuParamSetv(f, 8 * i, &p[i], sizeof p[i]));
	ok(cuParamSeti(f, 24, (unsigned)n));
	fails(cuParamSeti(f, 4094, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuParamSetSize(f, 28));
	ok(cuLaunchGrid(f, 2, 1));
	ok(cuMemcpyDtoH(out, p[0], sizeof out));
	for (int i = 0; i < 64; i++)
		assert_true(out[i] == 2 * in[i]);
	for (int i = 0; i < 3; i++)
		ok(cuMemFree(p[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_each_call_and_logs_its_name_once),
		cmocka_unit_test(cuGetProcAddress_finds_refused_calls),
		cmocka_unit_test_setup_teardown(reports_the_attributes_of_the_default_pool, make_context, destroy_context),
		cmocka_unit_test_setup_teardown(answers_that_nothing_is_captured_and_no_graph_has_memory, make_context, destroy_context),
		cmocka_unit_test_setup_teardown(launches_with_the_calls_of_cuda_3, make_context, destroy_context),
	};

	setenv("GPULOAD_LOG", "info", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
