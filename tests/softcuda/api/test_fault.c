/* test_fault.c — a fault of a kernel makes the kernel's context unusable, and is reported to the user.
 *
 * Each test creates its contexts, because a context cannot be used after a fault. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int make_quiet_context(void **state)
{
	return setenv("GPULOAD_SOFT_QUIET", "1", 1) || make_context(state) ? -1 : 0;
}

static const char *last_fault(void)
{
	const char *(*get)(void);
	void *symbol = dlsym(RTLD_DEFAULT, "gpuloadSoftLastFault");

	assert_non_null(symbol);
	memcpy(&get, &symbol, sizeof get);
	return get();
}

static void every_later_call_returns_the_fault(void **state)
{
	CUfunction put = get_kernel("put");
	CUdeviceptr nowhere = 0x1000, p, mine;
	unsigned value = 1;
	void *params[] = { &nowhere, &value };
	CUstream stream;
	CUevent event;
	CUmodule module;

	(void)state;
	ok(cuMemAlloc(&mine, 64));
	ok(cuStreamCreate(&stream, 0));
	ok(cuEventCreate(&event, 0));
	launch(put, 1, 1, stream, params); /* the launch call succeeds */
	fails(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuMemAlloc(&p, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuMemFree(mine), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuMemcpyDtoH(&value, mine, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuModuleLoadData(&module, kernels_ptx), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	if (on_software_driver())
		assert_non_null(strstr(last_fault(), "0x1000"));
}

static void a_fault_contains_the_image_name_that_the_program_set(void **state)
{
	CUdeviceptr nowhere = 0x1000;
	unsigned value = 1;
	void *params[] = { &nowhere, &value };
	void (*name_images)(const char *);
	void *symbol = dlsym(RTLD_DEFAULT, "gpuloadSoftNameImages");
	CUmodule module;
	CUfunction put;

	(void)state;
	assert_non_null(symbol);
	memcpy(&name_images, &symbol, sizeof name_images);
	name_images("mine.ptx");
	ok(cuModuleLoadData(&module, kernels_ptx));
	name_images(NULL);
	ok(cuModuleGetFunction(&put, module, "put"));
	launch(put, 1, 1, NULL, params);
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_ptr_equal(strstr(last_fault(), "mine.ptx:"), last_fault());
}

static void the_kernel_is_named_as_in_cxx(void **state)
{
	static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry _Z3addPfi() { trap; }\n";
	CUmodule module;
	CUfunction add;

	(void)state;
	ok(cuModuleLoadData(&module, ptx));
	ok(cuModuleGetFunction(&add, module, "_Z3addPfi"));
	launch(add, 1, 1, NULL, NULL);
	fails(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	assert_non_null(strstr(last_fault(), "; add(float*, int), block 0, thread 0"));
}

static void a_store_past_the_end_names_the_allocation(void **state)
{
	CUfunction put = get_kernel("put");
	CUdeviceptr p, past;
	unsigned value = 1;
	void *params[] = { &past, &value };

	(void)state;
	ok(cuMemAlloc(&p, 64));
	past = p + 512; /* a GPU allocates blocks of 512 bytes, so this address is the first outside */
	launch(put, 1, 1, NULL, params);
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_non_null(strstr(last_fault(), "cuMemAlloc"));
}

static void a_large_allocation_ends_at_a_page_of_the_device(void **state)
{
	enum { PAGE = 2 << 20, BYTES = 3 * PAGE + 8 };
	CUfunction put = get_kernel("put");
	CUdeviceptr p, at;
	unsigned value = 1;
	void *params[] = { &at, &value };

	(void)state;
	ok(cuMemAlloc(&p, BYTES));
	at = p + 4 * PAGE - 4;
	launch(put, 1, 1, NULL, params);
	ok(cuCtxSynchronize());
	at = p + 4 * PAGE;
	launch(put, 1, 1, NULL, params);
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_non_null(strstr(last_fault(), "cuMemAlloc"));
}

static void a_trap_is_a_failed_launch(void **state)
{
	(void)state;
	launch(get_kernel("fall"), 1, 32, NULL, NULL);
	fails(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

static void a_misaligned_access_has_its_own_error(void **state)
{
	CUfunction put = get_kernel("put");
	CUdeviceptr p, odd;
	unsigned value = 1;
	void *params[] = { &odd, &value };

	(void)state;
	ok(cuMemAlloc(&p, 64));
	odd = p + 2;
	launch(put, 1, 1, NULL, params);
	fails(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
}

static void other_contexts_remain_usable_after_a_fault(void **state)
{
	CUcontext other;
	CUdeviceptr p;
	unsigned value = 3;
	void *params[] = { &p, &value };

	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuMemAlloc(&p, 4));
	CUfunction put = get_kernel("put");

	ok(cuCtxSetCurrent(*state));
	launch(get_kernel("fall"), 1, 1, NULL, NULL);
	fails(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	ok(cuCtxSetCurrent(other));
	launch(put, 1, 1, NULL, params);
	value = 0;
	ok(cuMemcpyDtoH(&value, p, 4));
	assert_int_equal(value, 3);
	ok(cuCtxDestroy(other));
	ok(cuCtxSetCurrent(*state));
}

static void work_queued_behind_a_fault_does_not_run(void **state)
{
	uint32_t *word = make_flag();
	CUdeviceptr w = (uintptr_t)word;
	CUstream s;

	(void)state;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	uint32_t *flag = make_flag();
	CUdeviceptr f = (uintptr_t)flag, nowhere = 0x1000;
	void *params[] = { &f, &nowhere };

	launch(get_kernel("spin"), 1, 1, s, params);
	ok(cuMemsetD32Async(w, 8, 1, s));
	raise_flag(flag);
	fails(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(*word, 0);
}

static void resetting_the_primary_context_makes_it_usable_again(void **state)
{
	CUcontext primary;
	CUdeviceptr p;

	(void)state;
	ok(cuDevicePrimaryCtxRetain(&primary, 0));
	ok(cuCtxSetCurrent(primary));
	launch(get_kernel("fall"), 1, 1, NULL, NULL);
	fails(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	ok(cuDevicePrimaryCtxReset(0));
	ok(cuDevicePrimaryCtxRetain(&primary, 0));
	ok(cuMemAlloc(&p, 16));
	ok(cuMemFree(p));
	ok(cuDevicePrimaryCtxRelease(0));
	ok(cuCtxSetCurrent(*state));
}

int main(void)
{
	const struct CMUnitTest first[] = {
		cmocka_unit_test_setup(every_later_call_returns_the_fault, make_quiet_context),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_later_call_returns_the_fault, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(a_fault_contains_the_image_name_that_the_program_set, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(the_kernel_is_named_as_in_cxx, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(a_store_past_the_end_names_the_allocation, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(a_large_allocation_ends_at_a_page_of_the_device, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(a_trap_is_a_failed_launch, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(a_misaligned_access_has_its_own_error, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(other_contexts_remain_usable_after_a_fault, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(work_queued_behind_a_fault_does_not_run, make_quiet_context, destroy_context),
		cmocka_unit_test_setup_teardown(resetting_the_primary_context_makes_it_usable_again, make_quiet_context, destroy_context),
	};

	if (!on_software_driver()) /* on NVIDIA's driver this process could create no context after the fault */
		return cmocka_run_group_tests(first, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
