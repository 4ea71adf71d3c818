/* test_mistakes.c — the driver explains each mistake of the program once on stderr, but no error that programs provoke on purpose. */
#include "tests/softcuda/api/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void each_mistake_is_explained_once(void **state)
{
	CUfunction f = get_kernel("bump");
	CUdeviceptr p;
	CUstream s;

	(void)state;
	ok(cuMemAlloc(&p, 48));
	ok(cuStreamCreate(&s, 0));
	ok(cuStreamDestroy(s));
	catch_stderr();
	for (int k = 0; k < 2; k++) {
		(void)cuLaunchKernel(f, 1, 1, 1, 32, 33, 1, 0, NULL, NULL, NULL);
		(void)cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL);
		(void)cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 48 * 1024 + 4, NULL, NULL, NULL);
		(void)cuMemFree(p + 16);
		(void)cuMemFree(p);
		(void)cuStreamSynchronize(s);
	}
	assert_int_equal(lines_with("a block of 32x33x1 threads has 1056 threads; a block can have at most 1024"), 1);
	assert_int_equal(lines_with("z is 65, and can be at most 64"), 1);
	assert_int_equal(lines_with("49156 bytes of dynamic shared memory requested; this kernel can have 49152"), 1);
	assert_int_equal(lines_with("is 16 bytes past the start of a 48-byte allocation of cuMemAlloc"), 1);
	assert_int_equal(lines_with("the 48 bytes of cuMemAlloc at "), 1);
	assert_int_equal(lines_with("were freed before (double free)"), 1);
	assert_int_equal(lines_with("was destroyed before"), 1);
	release_stderr();
}

/* The names are those that nvcc gives to template <typename T> void copy(T *) and void add(float *, int).  A process explains at
 * most ten mistakes, so this test makes only two. */
static void kernels_are_named_as_in_cxx(void **state)
{
#define ENTRY(name) ".visible .entry " name "(.param .u64 p, .param .u32 n) {ret;}\n"
	static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n" ENTRY("_Z3addPfi") ENTRY("_Z4copyIfEvPT_i");
	CUmodule module;
	CUfunction f;

	(void)state;
	ok(cuModuleLoadData(&module, ptx));
	catch_stderr();
	ok(cuModuleGetFunction(&f, module, "_Z3addPfi"));
	(void)cuLaunchKernel(f, 1, 1, 1, 1024, 2, 1, 0, NULL, NULL, NULL);
	ok(cuModuleGetFunction(&f, module, "_Z4copyIfEvPT_i"));
	(void)cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	assert_int_equal(lines_with(": add(float*, int): a block of 1024x2x1 threads"), 1);
	assert_int_equal(lines_with(": void copy<float>(float*, int): the launch has no arguments"), 1);
	assert_int_equal(lines_with("_Z"), 0);
	release_stderr();
	ok(cuModuleUnload(module));
}

static void answers_and_quiet_programs_get_no_lines(void **state)
{
	CUdeviceptr p;
	CUmodule module;
	CUfunction f;
	size_t bytes;
	char log[256];
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)(uintptr_t)sizeof log };

	(void)state;
	ok(cuModuleLoadData(&module, kernels_ptx));
	catch_stderr();
	(void)cuMemAlloc(&p, (size_t)1 << 60);
	(void)cuModuleGetFunction(&f, module, "none");
	(void)cuMemGetAddressRange(&p, &bytes, 0x1234);
	(void)cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&p);
	(void)cuModuleLoadDataEx(&module, "not PTX", 2, options, values);
	setenv("GPULOAD_SOFT_QUIET", "1", 1);
	(void)cuMemFree(0x4000);
	unsetenv("GPULOAD_SOFT_QUIET");
	assert_int_equal(lines_with("gpuload"), 0);
	release_stderr();
}

static void CUDA_CB query_an_address(void *result)
{
	CUdeviceptr p;

	*(CUresult *)result = cuMemGetAddressRange(&p, NULL, 0x1234);
}

static void CUDA_CB allocate(void *result)
{
	CUdeviceptr p;

	*(CUresult *)result = cuMemAlloc(&p, 4);
}

/* libgomp calls cuMemGetAddressRange() in callbacks on purpose: the error shows libgomp that the code runs in a callback. */
static void a_forbidden_call_in_a_callback_is_explained_but_not_the_query_of_libgomp(void **state)
{
	CUresult query = CUDA_SUCCESS, allocation = CUDA_SUCCESS;

	(void)state;
	catch_stderr();
	ok(cuLaunchHostFunc(NULL, query_an_address, &query));
	ok(cuCtxSynchronize());
	assert_int_equal(query, CUDA_ERROR_NOT_PERMITTED);
	assert_int_equal(lines_with("gpuload"), 0);
	ok(cuLaunchHostFunc(NULL, allocate, &allocation));
	ok(cuCtxSynchronize());
	assert_int_equal(allocation, CUDA_ERROR_NOT_PERMITTED);
	assert_int_equal(lines_with("must not call this CUDA function"), 1);
	release_stderr();
}

static void only_ten_lines_are_printed(void **state)
{
	(void)state;
	catch_stderr();
	for (unsigned k = 0; k < 40; k++)
		(void)cuMemFree(0x10000 + 16 * k);
	assert_in_range(lines_with("gpuload: "), 1, 11);
	assert_int_equal(lines_with("GPULOAD_LOG=info"), 1);
	release_stderr();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mistake_is_explained_once),
		cmocka_unit_test(kernels_are_named_as_in_cxx),
		cmocka_unit_test(answers_and_quiet_programs_get_no_lines),
		cmocka_unit_test(a_forbidden_call_in_a_callback_is_explained_but_not_the_query_of_libgomp),
		cmocka_unit_test(only_ten_lines_are_printed),
	};

	unsetenv("GPULOAD_LOG");
	unsetenv("GPULOAD_SOFT_QUIET");
	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
