/* test_proc.c — cuGetProcAddress returns the symbol with the interface of the requested CUDA version. */
#include "softcuda/api/cu_refused_table.h"
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <dlfcn.h>

static void *get(const char *name, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	void *p = NULL;

	ok(cuGetProcAddress(name, &p, version, flags, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
	return p;
}

static void returns_the_newest_symbol_of_the_version(void **state)
{
	(void)state;
	assert_ptr_equal(get("cuMemAlloc", 12000, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	assert_ptr_equal(get("cuCtxCreate", 11000, 0), dlsym(RTLD_DEFAULT, "cuCtxCreate_v2"));
	assert_ptr_equal(get("cuCtxCreate", 12000, 0), dlsym(RTLD_DEFAULT, "cuCtxCreate_v3"));
	assert_ptr_equal(get("cuCtxCreate", 13000, 0), dlsym(RTLD_DEFAULT, "cuCtxCreate_v4"));
	assert_ptr_equal(get("cuGetProcAddress", 12000, 0), dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"));
}

static void returns_the_per_thread_symbol_when_the_flag_is_set(void **state)
{
	cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	(void)state;
	assert_ptr_equal(get("cuLaunchKernel", 12000, per_thread), dlsym(RTLD_DEFAULT, "cuLaunchKernel_ptsz"));
	assert_ptr_equal(get("cuMemcpyHtoD", 12000, per_thread), dlsym(RTLD_DEFAULT, "cuMemcpyHtoD_v2_ptds"));
	assert_ptr_equal(get("cuMemAlloc", 12000, per_thread), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	assert_ptr_equal(get("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM), dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
}

static void distinguishes_unknown_calls_from_too_new_calls(void **state)
{
	CUdriverProcAddressQueryResult status;
	void *p = &p;

	(void)state;
	ok(cuGetProcAddress("cuNoSuchCall", &p, 13000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	assert_null(p);
	p = &p;
	ok(cuGetProcAddress("cuLibraryLoadData", &p, 11080, 0, &status));
	assert_null(p);
	assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	fails(cuGetProcAddress("cuInit", &p, 14000, 0, &status), CUDA_ERROR_INVALID_VALUE);
	fails(cuGetProcAddress("cuInit", &p, 13000, 3, &status), CUDA_ERROR_INVALID_VALUE);
	fails(cuGetProcAddress(NULL, &p, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
	fails(cuGetProcAddress("cuInit", NULL, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

/* The expected results are those of an H200 (driver 580.159). */
static void answers_by_version_as_a_gpu(void **state)
{
	static const struct {
		const char *name;
		int version;
		CUdriverProcAddressQueryResult status;
	} rows[] = {
		{ "cuLogsCurrent", 12080, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT },
		{ "cuLogsCurrent", 12090, CU_GET_PROC_ADDRESS_SUCCESS },
		{ "cuMemAlloc", 2000, CU_GET_PROC_ADDRESS_SUCCESS },
		{ "cuMemAlloc", 3010, CU_GET_PROC_ADDRESS_SUCCESS },
		{ "cuMemcpyBatchAsync", 12080, CU_GET_PROC_ADDRESS_SUCCESS },
		{ "cuGraphAddNode", 12000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT },
		{ "", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND },
	};

	(void)state;
	for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
		CUdriverProcAddressQueryResult status;
		void *p = &p;

		ok(cuGetProcAddress(rows[n].name, &p, rows[n].version, 0, &status));
		assert_int_equal(status, rows[n].status);
		assert_int_equal(p != NULL, status == CU_GET_PROC_ADDRESS_SUCCESS);
	}
}

static void refuses_every_export_table(void **state)
{
	const CUuuid id = { { 1, 2, 3 } };
	const void *table = NULL;

	(void)state;
	fails(cuGetExportTable(&table, &id), CUDA_ERROR_INVALID_VALUE);
	fails(cuGetExportTable(NULL, &id), CUDA_ERROR_INVALID_VALUE);
	fails(cuGetExportTable(&table, NULL), CUDA_ERROR_INVALID_VALUE);
}

static const void *refused_caller;

static void keep_caller(const void *caller)
{
	refused_caller = caller;
}

static void reports_the_caller_of_a_refused_table(void **state)
{
	const CUuuid id = { { 1, 2, 3 } };
	const void *table = NULL;
	Dl_info own, callers;

	(void)state;
	gpuloadSoftRefusedTable = keep_caller;
	fails(cuGetExportTable(&table, &id), CUDA_ERROR_INVALID_VALUE);
	gpuloadSoftRefusedTable = NULL;
	assert_int_not_equal(dladdr(&refused_caller, &own), 0);
	assert_int_not_equal(dladdr(refused_caller, &callers), 0);
	assert_ptr_equal(callers.dli_fbase, own.dli_fbase);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(returns_the_newest_symbol_of_the_version),
		cmocka_unit_test(returns_the_per_thread_symbol_when_the_flag_is_set),
		cmocka_unit_test(distinguishes_unknown_calls_from_too_new_calls),
		cmocka_unit_test(answers_by_version_as_a_gpu),
		cmocka_unit_test(refuses_every_export_table),
		cmocka_unit_test(reports_the_caller_of_a_refused_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
