/* test_memory.c — allocation, copies in one to three dimensions, fills, and attributes of addresses. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static CUdeviceptr allocate(size_t bytes)
{
	CUdeviceptr p;

	ok(cuMemAlloc(&p, bytes));
	assert_int_equal(p % 256, 0);
	return p;
}

static void allocates_and_counts_the_bytes(void **state)
{
	size_t before, after, total, bytes;
	CUdeviceptr p, base;

	(void)state;
	ok(cuMemGetInfo(&before, &total));
	p = allocate(1000);
	ok(cuMemGetInfo(&after, &total));
	if (on_software_driver()) /* NVIDIA's driver counts blocks of 2 MiB */
		assert_int_equal(before - after, 1000);
	ok(cuMemGetAddressRange(&base, &bytes, p + 999));
	assert_true(base == p && bytes == 1000);
	fails(cuMemGetAddressRange(&base, &bytes, p + 1000), CUDA_ERROR_NOT_FOUND);
	ok(cuMemFree(p));
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before, after);
	fails(cuMemAlloc(&p, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
	fails(cuMemAlloc(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	fails(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAlloc(NULL, 16), CUDA_ERROR_INVALID_VALUE);
}

static void copies_into_a_modules_constants(void **state)
{
	const unsigned in[4] = { 1, 2, 3, 4 };
	unsigned out[4] = { 0 };
	CUmodule module;
	CUdeviceptr table;
	size_t bytes;

	(void)state;
	ok(cuModuleLoadData(&module, kernels_ptx));
	ok(cuModuleGetGlobal(&table, &bytes, module, "table"));
	assert_int_equal(bytes, sizeof in);
	ok(cuMemcpyHtoD(table, in, sizeof in));
	ok(cuMemsetD32(table, 9, 1));
	ok(cuMemcpyDtoH(out, table, sizeof out));
	assert_true(out[0] == 9 && out[1] == 2 && out[3] == 4);
	ok(cuModuleUnload(module));
}

/* An H200 gives the same result, except that its kernel may still read the old value from the constant cache. */
static void a_kernel_stores_to_a_constant_by_its_global_address(void **state)
{
	CUmodule module;
	CUfunction put, bump;
	CUdeviceptr table, counter;
	uint32_t value = 7, counted = 0;
	size_t bytes;
	void *params[] = { &table, &value };

	(void)state;
	ok(cuModuleLoadData(&module, kernels_ptx));
	ok(cuModuleGetGlobal(&table, &bytes, module, "table"));
	ok(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
	ok(cuMemsetD32(counter, 0, 1));
	ok(cuModuleGetFunction(&put, module, "put"));
	ok(cuModuleGetFunction(&bump, module, "bump"));
	table += 4;
	launch(put, 1, 1, NULL, params);
	launch(bump, 1, 1, NULL, NULL); /* this kernel reads table[1] by ld.const */
	ok(cuMemcpyDtoH(&counted, counter, 4));
	assert_int_equal(counted, 7);
	ok(cuMemcpyDtoH(&value, table, 4));
	assert_int_equal(value, 7);
	ok(cuModuleUnload(module));
}

static void frees_only_the_start_of_an_allocation_once(void **state)
{
	CUdeviceptr p = allocate(64);
	int on_the_stack = 0;

	(void)state;
	fails(cuMemFree(p + 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemFree((CUdeviceptr)(uintptr_t)&on_the_stack), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(0)); /* allowed, like free(NULL) */
	fails(cuMemFreeHost((void *)(uintptr_t)p), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
	fails(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

static void copies_to_from_and_within_the_device(void **state)
{
	CUdeviceptr a = allocate(16), b = allocate(16);
	char in[16] = "fifteen letters", out[16] = "";

	(void)state;
	ok(cuMemcpyHtoD(a, in, 16));
	ok(cuMemcpyDtoD(b, a, 16));
	ok(cuMemcpyDtoH(out, b, 16));
	assert_memory_equal(in, out, 16);
	memset(out, 0, 16);
	ok(cuMemcpy((CUdeviceptr)(uintptr_t)out, a, 16));
	assert_memory_equal(in, out, 16);
	ok(cuMemcpyHtoD(a, NULL, 0));
	ok(cuMemFree(a));
	ok(cuMemFree(b));
}

static void refuses_a_copy_beyond_the_end_of_its_allocation(void **state)
{
	CUdeviceptr a = allocate(16);
	char host[32] = "";

	(void)state;
	fails(cuMemcpyHtoD(a, host, 17), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyHtoD(a + 8, host, 9), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyDtoH(host, a - 1, 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyDtoH(host, a, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyHtoD(0, host, 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyHtoD(a, NULL, 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyDtoD(a, a + 12, 8), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD8(a, 0, 17), CUDA_ERROR_INVALID_VALUE);
	if (on_software_driver()) /* on NVIDIA's driver the byte count overflows, and the fill faults */
		fails(cuMemsetD32(a, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(a));
	fails(cuMemcpyHtoD(a, host, 4), CUDA_ERROR_INVALID_VALUE);
}

static void fills_with_one_two_and_four_bytes(void **state)
{
	CUdeviceptr p = allocate(16);
	unsigned char out[16];

	(void)state;
	ok(cuMemsetD8(p, 0x11, 16));
	ok(cuMemsetD16(p + 2, 0x2233, 2));
	ok(cuMemsetD32(p + 8, 0x44556677, 1));
	ok(cuMemcpyDtoH(out, p, 16));
	assert_memory_equal(out, "\x11\x11\x33\x22\x33\x22\x11\x11\x77\x66\x55\x44\x11\x11\x11\x11", 16);
	fails(cuMemsetD16(p + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD32(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
}

static void copies_and_fills_rectangles(void **state)
{
	size_t pitch;
	CUdeviceptr p;
	char in[3][8] = { "row 0..", "row 1..", "row 2.." }, out[3][8];

	(void)state;
	ok(cuMemAllocPitch(&p, &pitch, 8, 3, 4));
	assert_true(pitch >= 8 && pitch % 4 == 0);
	CUDA_MEMCPY2D to = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 8,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = p,
		.dstPitch = pitch,
		.WidthInBytes = 8,
		.Height = 3,
	};
	CUDA_MEMCPY2D from = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = p,
		.srcPitch = pitch,
		.srcXInBytes = 4,
		.srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 8,
		.dstXInBytes = 1,
		.WidthInBytes = 3,
		.Height = 2,
	};

	ok(cuMemcpy2D(&to));
	ok(cuMemsetD2D8(p + 6, pitch, '!', 1, 3));
	memset(out, '-', sizeof out);
	ok(cuMemcpy2D(&from));
	assert_memory_equal(out,
			    "-1.!----"
			    "-2.!----"
			    "--------",
			    24);
	to.dstPitch = 4;
	fails(cuMemcpy2D(&to), CUDA_ERROR_INVALID_VALUE);
	to.dstPitch = pitch;
	to.Height = 4000;
	fails(cuMemcpy2D(&to), CUDA_ERROR_INVALID_VALUE);
	to.Height = 3;
	to.dstXInBytes = SIZE_MAX - 4095; /* the sum of this offset and the address overflows */
	to.dstDevice = p + 4096;
	fails(cuMemcpy2D(&to), CUDA_ERROR_INVALID_VALUE); /* an H200 returns this error, too */
	to.dstPitch = 0;
	to.Height = 1;
	fails(cuMemcpy2D(&to), CUDA_ERROR_INVALID_VALUE);
	to.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	fails(cuMemcpy2D(&to), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAllocPitch(&p, &pitch, 8, 3, 5), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(from.srcDevice));
}

static void copies_three_dimensional_boxes(void **state)
{
	CUdeviceptr p = allocate(4 * 3 * 2);
	char out[2][2][2];
	CUDA_MEMCPY3D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = p,
		.srcPitch = 4,
		.srcHeight = 3,
		.srcXInBytes = 1,
		.srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 2,
		.dstHeight = 2,
		.WidthInBytes = 2,
		.Height = 2,
		.Depth = 2,
	};

	(void)state;
	ok(cuMemcpyHtoD(p, "abcdefghijklmnopqrstuvwx", 24));
	ok(cuMemcpy3D(&c));
	assert_memory_equal(out, "fgjkrsvw", 8);
	c.srcHeight = 2;
	fails(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
	c.srcHeight = 3;
	c.Depth = SIZE_MAX / 8;
	fails(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
}

static void shares_page_locked_memory_with_the_device(void **state)
{
	void *host;
	CUdeviceptr p;
	unsigned flags;

	(void)state;
	ok(cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_PORTABLE));
	ok(cuMemHostGetDevicePointer(&p, host, 0));
	ok(cuMemsetD8(p, 'x', 64));
	ok(cuCtxSynchronize());
	assert_int_equal(((char *)host)[63], 'x');
	ok(cuMemHostGetFlags(&flags, host));
	assert_true(flags & CU_MEMHOSTALLOC_PORTABLE);
	fails(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFreeHost(host));
	fails(cuMemHostGetDevicePointer(&p, host, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemHostAlloc(&host, 64, 0x80), CUDA_ERROR_INVALID_VALUE);
	if (on_software_driver()) /* NVIDIA's driver accepts 0 bytes */
		fails(cuMemHostAlloc(&host, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

static void registers_memory_of_the_program(void **state)
{
	char *mine = malloc(4096);
	CUdeviceptr p;

	(void)state;
	fails(cuMemHostGetDevicePointer(&p, mine, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostRegister(mine, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	ok(cuMemHostGetDevicePointer(&p, mine + 8, 0));
	assert_true(p == (uintptr_t)mine + 8);
	fails(cuMemHostRegister(mine + 100, 16, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	ok(cuMemHostUnregister(mine));
	fails(cuMemHostUnregister(mine), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	fails(cuMemHostRegister(NULL, 16, 0), CUDA_ERROR_INVALID_VALUE);
	free(mine);
}

static CUresult register_it(void *memory, size_t bytes, unsigned flags)
{
	CUresult r = cuMemHostRegister(memory, bytes, flags);

	if (!r)
		ok(cuMemHostUnregister(memory));
	return r;
}

static void registers_only_mapped_memory(void **state)
{
	enum { PAGE = 4096, N = 8 };
	char *pages = mmap(NULL, N * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr p;

	(void)state;
	assert_true(pages != MAP_FAILED);
	ok(register_it(pages + 100, 1000, 0));
	assert_int_equal(munmap(pages + 4 * PAGE, 4 * PAGE), 0);
	fails(register_it(pages, N * PAGE, 0), CUDA_ERROR_INVALID_VALUE);
	fails(register_it(pages + 4 * PAGE, PAGE, 0), CUDA_ERROR_INVALID_VALUE);
	fails(register_it(pages, SIZE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostRegister(pages, 4 * PAGE, 0));
	ok(cuMemHostGetDevicePointer(&p, pages + 100, 0));
	assert_true(p == (CUdeviceptr)(uintptr_t)pages + 100);
	fails(cuMemHostUnregister(pages + PAGE), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostUnregister(pages));
	fails(cuMemHostUnregister(pages), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	assert_int_equal(mprotect(pages, 4 * PAGE, PROT_READ), 0);
	fails(register_it(pages, 4 * PAGE, 0), CUDA_ERROR_INVALID_VALUE);
	ok(register_it(pages, 4 * PAGE, CU_MEMHOSTREGISTER_READ_ONLY));
	munmap(pages, 4 * PAGE);
}

static void reports_the_attributes_of_an_address(void **state)
{
	CUdeviceptr p = allocate(100), start;
	CUmemorytype type;
	CUcontext ctx;
	size_t bytes;
	unsigned managed = 9;
	void *host;
	int stack_word = 0, yes = 1;
	CUpointer_attribute both[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE };
	void *data[] = { &type, &bytes };

	ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 50));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	ok(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	assert_ptr_equal(ctx, *state);
	ok(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 50));
	assert_true(start == p);
	ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	assert_int_equal(managed, 0);
	fails(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p), CUDA_ERROR_INVALID_VALUE);
	fails(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&stack_word),
	      CUDA_ERROR_INVALID_VALUE);
	ok(cuPointerGetAttributes(2, both, data, p));
	assert_int_equal(bytes, 100);
	bytes = 0; /* for an unknown address, NVIDIA's driver does not write the range's size */
	ok(cuPointerGetAttributes(2, both, data, (CUdeviceptr)(uintptr_t)&stack_word));
	assert_int_equal(type, 0);
	assert_int_equal(bytes, 0);
	ok(cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	ok(cuMemFree(p));
	ok(cuMemHostAlloc(&host, 8, 0));
	ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
	assert_int_equal(type, CU_MEMORYTYPE_HOST);
	ok(cuMemFreeHost(host));
}

static void an_address_is_queried_without_a_current_context(void **state)
{
	CUdeviceptr p = allocate(100);
	CUcontext ctx, popped;
	size_t bytes = 0;
	int device = -1;
	unsigned access;
	CUpointer_attribute both[] = { CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	void *data[] = { &bytes, &device };

	ok(cuCtxPopCurrent(&popped));
	ok(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
	assert_int_equal(bytes, 100);
	ok(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	assert_ptr_equal(ctx, *state);
	bytes = 0;
	ok(cuPointerGetAttributes(2, both, data, p));
	assert_int_equal(bytes, 100);
	assert_int_equal(device, 0);
	fails(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuCtxPushCurrent(popped));
	ok(cuMemFree(p));
}

static void frees_in_stream_order(void **state)
{
	CUdeviceptr p;
	CUstream s;
	CUmemoryPool pool, again;

	(void)state;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuMemAllocAsync(&p, 256, s));
	ok(cuMemsetD8Async(p, 1, 256, s));
	ok(cuMemFreeAsync(p, s));
	ok(cuStreamSynchronize(s));
	fails(cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
	ok(cuDeviceGetDefaultMemPool(&pool, 0));
	ok(cuDeviceGetMemPool(&again, 0));
	assert_ptr_equal(pool, again);
	ok(cuMemAllocFromPoolAsync(&p, 16, pool, s));
	ok(cuMemFree(p));
	fails(cuMemAllocFromPoolAsync(&p, 16, (CUmemoryPool)s, s), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamDestroy(s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocates_and_counts_the_bytes),
		cmocka_unit_test(copies_into_a_modules_constants),
		cmocka_unit_test(a_kernel_stores_to_a_constant_by_its_global_address),
		cmocka_unit_test(frees_only_the_start_of_an_allocation_once),
		cmocka_unit_test(copies_to_from_and_within_the_device),
		cmocka_unit_test(refuses_a_copy_beyond_the_end_of_its_allocation),
		cmocka_unit_test(fills_with_one_two_and_four_bytes),
		cmocka_unit_test(copies_and_fills_rectangles),
		cmocka_unit_test(copies_three_dimensional_boxes),
		cmocka_unit_test(shares_page_locked_memory_with_the_device),
		cmocka_unit_test(registers_memory_of_the_program),
		cmocka_unit_test(registers_only_mapped_memory),
		cmocka_unit_test(reports_the_attributes_of_an_address),
		cmocka_unit_test(an_address_is_queried_without_a_current_context),
		cmocka_unit_test(frees_in_stream_order),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
