/* test_managed.c — managed memory and managed variables: access by the CPU and kernels, advice, prefetches and attributes. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>

enum { PAGE = 4096, BYTES = 4 * PAGE };

static const CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE };

static CUdeviceptr allocate(void)
{
	CUdeviceptr p;

	ok(cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_GLOBAL));
	return p;
}

static int attribute(CUmem_range_attribute a, CUdeviceptr p, size_t bytes)
{
	int value = -77;

	ok(cuMemRangeGetAttribute(&value, sizeof value, a, p, bytes));
	return value;
}

static void the_cpu_and_kernels_share_the_memory(void **state)
{
	CUdeviceptr p = allocate(), both;
	unsigned *word = (unsigned *)(uintptr_t)p, value = 5, managed;
	void *params[] = { &p, &value };

	(void)state;
	*word = 3;
	launch(get_kernel("put"), 1, 1, NULL, params);
	ok(cuCtxSynchronize());
	assert_int_equal(*word, 5);
	ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p + 100));
	assert_int_equal(managed, 1);
	ok(cuPointerGetAttribute(&both, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
	assert_int_equal(both, p);
	ok(cuMemFree(p));
	fails(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
}

static void advice_applies_to_whole_pages_of_a_range(void **state)
{
	const CUmemLocation cpu = { .type = CU_MEM_LOCATION_TYPE_HOST };
	CUdeviceptr p = allocate();
	int users[3];

	(void)state;
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, BYTES), CU_DEVICE_INVALID);
	ok(cuMemAdvise(p + PAGE + 1, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p + PAGE, 2 * PAGE), 1);
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, BYTES), 0);
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p + 3 * PAGE, 1), 0);
	ok(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, BYTES), 0);
	ok(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, device));
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, PAGE), CU_DEVICE_INVALID);
	ok(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
	ok(cuMemRangeGetAttribute(users, sizeof users, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, BYTES));
	assert_true(users[0] == 0 && users[1] == CU_DEVICE_INVALID && users[2] == CU_DEVICE_INVALID);
	ok(cuMemAdvise(p, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, cpu));
	ok(cuMemRangeGetAttribute(users, sizeof users, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, BYTES));
	assert_true(users[0] == 0 && users[1] == CU_DEVICE_CPU && users[2] == CU_DEVICE_INVALID);
	fails(cuMemRangeGetAttribute(users, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, BYTES), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAdvise(p, BYTES + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, device), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAdvise(p, BYTES, (CUmem_advise)99, device), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
}

static void the_last_prefetch_is_remembered(void **state)
{
	CUmemLocation cpu = { .type = CU_MEM_LOCATION_TYPE_HOST }, nowhere = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99 };
	CUdeviceptr p = allocate(), plain;
	CUstream stream;

	(void)state;
	ok(cuStreamCreate(&stream, 0));
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, BYTES), CU_DEVICE_INVALID);
	ok(cuMemPrefetchAsync(p, BYTES, device, 0, stream));
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, BYTES), 0);
	ok(cuMemPrefetchAsync(p, PAGE, cpu, 0, NULL));
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, PAGE), CU_DEVICE_CPU);
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, p + PAGE, PAGE), CU_MEM_LOCATION_TYPE_DEVICE);
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, BYTES), CU_DEVICE_INVALID);
	fails(cuMemPrefetchAsync(p, PAGE, nowhere, 0, stream), CUDA_ERROR_INVALID_DEVICE);
	fails(cuMemPrefetchAsync(p, PAGE, cpu, 1, stream), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemAlloc(&plain, PAGE));
	fails(cuMemPrefetchAsync(plain, PAGE, cpu, 0, stream), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(plain));
	ok(cuMemFree(p));
	ok(cuStreamDestroy(stream));
}

static void a_batch_has_a_location_for_each_part_of_it(void **state)
{
	CUmemLocation to[2] = { device, { .type = CU_MEM_LOCATION_TYPE_HOST } };
	CUdeviceptr p = allocate(), at[3] = { p, p + PAGE, p + 2 * PAGE };
	size_t bytes[3] = { PAGE, PAGE, PAGE }, index[2] = { 0, 2 }, wrong[2] = { 0, 3 };
	CUstream stream;

	(void)state;
	ok(cuStreamCreate(&stream, 0));
	ok(cuMemPrefetchBatchAsync(at, bytes, 3, to, index, 2, 0, stream));
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 2 * PAGE), 0);
	assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p + 2 * PAGE, PAGE), CU_DEVICE_CPU);
	fails(cuMemPrefetchBatchAsync(at, bytes, 3, to, wrong, 2, 0, stream), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemDiscardBatchAsync(at, bytes, 3, 0, stream));
	fails(cuMemDiscardBatchAsync(at, bytes, 3, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemDiscardAndPrefetchBatchAsync(at, bytes, 3, to, index, 2, 0, stream));
	ok(cuStreamAttachMemAsync(stream, p, 0, CU_MEM_ATTACH_SINGLE));
	fails(cuStreamAttachMemAsync(stream, p + 4, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamDestroy(stream));
	ok(cuMemFree(p));
}

static const char managed_ptx[] = ".version 7.5\n"
				  ".target sm_75\n"
				  ".address_size 64\n"
				  ".visible .global .attribute(.managed) .align 4 .u32 shared_word = 7;\n"
				  ".visible .global .align 4 .u32 plain;\n"
				  ".visible .entry add_one()\n"
				  "{\n"
				  "	.reg .b32 %r1;\n"
				  "	ld.global.u32 %r1, [shared_word];\n"
				  "	add.u32 %r1, %r1, 1;\n"
				  "	st.global.u32 [shared_word], %r1;\n"
				  "	ret;\n"
				  "}\n";

static void the_cpu_uses_a_managed_variable(void **state)
{
	CUlibrary library;
	CUkernel kernel;
	CUdeviceptr p, again;
	unsigned managed;
	size_t bytes;

	(void)state;
	ok(cuLibraryLoadData(&library, managed_ptx, NULL, NULL, 0, NULL, NULL, 0));
	ok(cuLibraryGetManaged(&p, &bytes, library, "shared_word"));
	assert_int_equal(bytes, 4);
	ok(cuLibraryGetGlobal(&again, &bytes, library, "shared_word"));
	assert_int_equal(again, p);
	fails(cuLibraryGetManaged(&again, &bytes, library, "plain"), CUDA_ERROR_NOT_FOUND);
	ok(cuLibraryGetKernel(&kernel, library, "add_one"));
	launch((CUfunction)kernel, 1, 1, NULL, NULL);
	ok(cuCtxSynchronize());
	assert_int_equal(*(unsigned *)(uintptr_t)p, 8);
	ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	assert_int_equal(managed, 1);
	ok(cuMemAdvise(p, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
	catch_stderr();
	fails(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	if (on_software_driver())
		assert_int_equal(lines_with(" is a __managed__ variable, which the program cannot free"), 1);
	release_stderr();
	ok(cuLibraryUnload(library));
	fails(cuMemAdvise(p, 4, CU_MEM_ADVISE_SET_READ_MOSTLY, device), CUDA_ERROR_INVALID_VALUE);
}

/* A GPU maps whole blocks, so a kernel that overruns an allocation by a few bytes does not fault. */
static void a_kernel_may_overrun_an_allocation_within_its_block(void **state)
{
	CUfunction put = get_kernel("put");
	CUdeviceptr p, past, base;
	size_t bytes;
	unsigned value = 1;
	void *params[] = { &past, &value };

	(void)state;
	ok(cuMemAlloc(&p, 10));
	past = p + 508;
	launch(put, 1, 1, NULL, params);
	ok(cuCtxSynchronize());
	ok(cuMemGetAddressRange(&base, &bytes, p + 9));
	assert_int_equal(bytes, 10);
	fails(cuMemGetAddressRange(&base, &bytes, p + 10), CUDA_ERROR_NOT_FOUND);
	ok(cuMemFree(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_context, destroy_context)
		TEST(the_cpu_and_kernels_share_the_memory), TEST(advice_applies_to_whole_pages_of_a_range),
		TEST(the_last_prefetch_is_remembered),      TEST(a_batch_has_a_location_for_each_part_of_it),
		TEST(the_cpu_uses_a_managed_variable),      TEST(a_kernel_may_overrun_an_allocation_within_its_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
