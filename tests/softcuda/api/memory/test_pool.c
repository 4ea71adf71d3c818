/* test_pool.c — memory pools: locations, attributes, limits, access by other devices, and export to other processes. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

static const CUmemPoolProps on_device = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };

static CUmemoryPool create(CUmemPoolProps props)
{
	CUmemoryPool pool;

	ok(cuMemPoolCreate(&pool, &props));
	return pool;
}

static CUdeviceptr allocate(CUmemoryPool pool, size_t bytes)
{
	CUdeviceptr p;

	ok(cuMemAllocFromPoolAsync(&p, bytes, pool, NULL));
	return p;
}

static cuuint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value;

	ok(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void counts_what_is_allocated_from_each_pool(void **state)
{
	CUmemoryPool a = create(on_device), b = create(on_device);
	CUdeviceptr p = allocate(a, 1 << 20), q = allocate(a, 1 << 20), r = allocate(b, 1 << 20);
	cuuint64_t zero = 0;
	CUmemoryPool of_p;

	(void)state;
	ok(cuPointerGetAttribute(&of_p, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	assert_ptr_equal(of_p, a);
	assert_int_equal(number(a, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 2 << 20);
	assert_int_equal(number(b, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1 << 20);
	ok(cuMemFreeAsync(q, NULL));
	ok(cuCtxSynchronize());
	assert_int_equal(number(a, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1 << 20);
	assert_int_equal(number(a, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 2 << 20);
	ok(cuMemPoolSetAttribute(a, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
	assert_int_equal(number(a, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1 << 20);
	ok(cuMemFree(p));
	ok(cuMemFree(r));
	ok(cuMemAllocFromPoolAsync(&p, 0, a, NULL));
	assert_int_equal(p, 0);
	ok(cuMemFreeAsync(p, NULL));
	ok(cuMemPoolDestroy(a));
	ok(cuMemPoolDestroy(b));
	fails(cuMemPoolDestroy(b), CUDA_ERROR_INVALID_VALUE);
}

static void the_current_pool_of_a_device_serves_its_allocations(void **state)
{
	CUmemoryPool own = create(on_device), by_default, now;
	CUmemLocation here = on_device.location;
	CUdeviceptr p;

	(void)state;
	ok(cuDeviceGetDefaultMemPool(&by_default, 0));
	ok(cuDeviceSetMemPool(0, own));
	ok(cuDeviceGetMemPool(&now, 0));
	assert_ptr_equal(now, own);
	ok(cuMemGetMemPool(&now, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
	assert_ptr_equal(now, own);
	ok(cuMemAllocAsync(&p, 64, NULL));
	ok(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	assert_ptr_equal(now, own);
	ok(cuMemPoolDestroy(own)); /* the memory allocated from the pool stays valid */
	ok(cuMemsetD8(p, 1, 64));
	ok(cuDeviceGetMemPool(&now, 0));
	assert_ptr_equal(now, by_default);
	ok(cuMemFree(p));
	fails(cuMemPoolDestroy(by_default), CUDA_ERROR_INVALID_VALUE);
}

static void a_pool_can_have_a_largest_size(void **state)
{
	CUmemPoolProps props = on_device;
	CUmemoryPool pool;
	CUdeviceptr p, q;

	(void)state;
	props.maxSize = 64 << 20; /* NVIDIA's driver rounds a limit up: with a limit of 4 MiB it allocates 5 MiB */
	pool = create(props);
	p = allocate(pool, 48 << 20);
	fails(cuMemAllocFromPoolAsync(&q, 256 << 20, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	q = allocate(pool, 16 << 20);
	ok(cuMemFree(p));
	ok(cuMemFree(q));
	ok(cuMemPoolDestroy(pool));
}

static void memory_of_the_host_needs_access_for_a_device(void **state)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = CU_MEM_LOCATION_TYPE_HOST } };
	CUmemAccessDesc rw = { .location = on_device.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemLocation device = on_device.location;
	CUmemAccess_flags flags;
	CUmemoryPool pool = create(props);
	CUdeviceptr p = allocate(pool, 64);
	unsigned value = 7, type;
	void *params[] = { &p, &value };

	(void)state;
	memset((void *)(uintptr_t)p, 0, 64);
	ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	assert_int_equal(type, CU_MEMORYTYPE_HOST);
	ok(cuMemPoolGetAccess(&flags, pool, &device));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	ok(cuMemPoolSetAccess(pool, &rw, 1));
	ok(cuMemPoolGetAccess(&flags, pool, &device));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	launch(get_kernel("put"), 1, 1, NULL, params);
	ok(cuCtxSynchronize());
	assert_int_equal(*(unsigned *)(uintptr_t)p, 7);
	ok(cuMemFree(p));
	ok(cuMemPoolDestroy(pool));
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	fails(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	pool = create(props);
	ok(cuMemPoolDestroy(pool));
}

/* Normally another process imports the pool; here the same process does, with the exported descriptor and pointer data. */
static void an_imported_pointer_is_the_same_memory(void **state)
{
	CUmemPoolProps props = on_device;
	CUmemPoolPtrExportData data, stale;
	CUmemoryPool pool, imported;
	CUdeviceptr p, q, other;
	unsigned word;
	int fd = -1;

	(void)state;
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	pool = create(props);
	fails(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_NONE, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	close(fd);
	other = allocate(pool, 5000);
	p = allocate(pool, 5000);
	ok(cuMemPoolExportPointer(&data, p));
	fails(cuMemPoolImportPointer(&q, pool, &data), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemPoolImportPointer(&q, imported, &data));
	assert_true(q != p);
	ok(cuMemsetD32(p, 11, 1250));
	ok(cuMemcpyDtoH(&word, q + 4996, 4));
	assert_int_equal(word, 11);
	fails(cuMemAllocFromPoolAsync(&other, 64, imported, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFreeAsync(q, NULL));
	ok(cuMemFreeAsync(p, NULL));
	ok(cuCtxSynchronize());
	if (on_software_driver()) /* NVIDIA's driver imports freed memory */
		fails(cuMemPoolImportPointer(&q, imported, &data), CUDA_ERROR_INVALID_VALUE);
	memset(&stale, 0xff, sizeof stale);
	fails(cuMemPoolImportPointer(&q, imported, &stale), CUDA_ERROR_INVALID_VALUE);
	p = allocate(pool, 5000);
	ok(cuMemcpyDtoH(&word, p, 4));
	if (on_software_driver())
		assert_int_equal(word, 0); /* freed pages were returned to the system, so new memory is zero */
	ok(cuMemFree(p));
	ok(cuMemFree(other));
	ok(cuMemPoolDestroy(imported));
	ok(cuMemPoolDestroy(pool));
}

/* cuda-core uses this data as a key to find allocations that it has already imported. */
static void the_data_of_equal_allocations_of_two_pools_differs(void **state)
{
	CUmemPoolProps props = on_device;
	CUmemPoolPtrExportData data[2];
	CUmemoryPool pools[2], imported;
	CUdeviceptr at[2], q;
	int fd = -1;

	(void)state;
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	for (int i = 0; i < 2; i++) {
		pools[i] = create(props);
		at[i] = allocate(pools[i], 64);
		ok(cuMemPoolExportPointer(&data[i], at[i]));
	}
	assert_memory_not_equal(&data[0], &data[1], sizeof data[0]);
	ok(cuMemPoolExportToShareableHandle(&fd, pools[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	close(fd);
	if (on_software_driver())
		fails(cuMemPoolImportPointer(&q, imported, &data[1]), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemPoolImportPointer(&q, imported, &data[0]));
	ok(cuMemFree(q));
	ok(cuMemPoolDestroy(imported));
	for (int i = 0; i < 2; i++) {
		ok(cuMemFree(at[i]));
		ok(cuMemPoolDestroy(pools[i]));
	}
}

/* A process that unpickles its arguments imports them before it makes a context current. */
static void a_thread_without_a_context_imports_pointers(void **state)
{
	CUmemPoolProps props = on_device;
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, imported;
	CUcontext ctx;
	CUdeviceptr p, q;
	unsigned word;
	int fd = -1;

	(void)state;
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	pool = create(props);
	p = allocate(pool, 4096);
	ok(cuMemsetD32(p, 13, 1024));
	ok(cuMemPoolExportPointer(&data, p));
	ok(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	ok(cuCtxPopCurrent(&ctx));
	ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	close(fd);
	ok(cuMemPoolImportPointer(&q, imported, &data));
	ok(cuCtxPushCurrent(ctx));
	ok(cuMemcpyDtoH(&word, q + 4092, 4));
	assert_int_equal(word, 13);
	ok(cuMemFree(q));
	ok(cuMemFree(p));
	ok(cuMemPoolDestroy(imported));
	ok(cuMemPoolDestroy(pool));
}

static void refuses_descriptors_that_are_not_pools(void **state)
{
	CUmemoryPool pool;
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_not_equal(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)pipes[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
								0),
			     CUDA_SUCCESS);
	assert_int_not_equal(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)-1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			     CUDA_SUCCESS);
	close(pipes[0]);
	close(pipes[1]);
}

static void refuses_properties_that_no_pool_has(void **state)
{
	CUmemPoolProps props = on_device;
	CUmemoryPool pool;

	(void)state;
	props.location.id = 100;
	fails(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.type = (CUmemLocationType)77;
	fails(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props = on_device;
	props.allocType = (CUmemAllocationType)9;
	fails(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemPoolCreate(&pool, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemPoolCreate(NULL, &on_device), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_context, destroy_context)
		TEST(counts_what_is_allocated_from_each_pool),
		TEST(the_current_pool_of_a_device_serves_its_allocations),
		TEST(a_pool_can_have_a_largest_size),
		TEST(memory_of_the_host_needs_access_for_a_device),
		TEST(an_imported_pointer_is_the_same_memory),
		TEST(the_data_of_equal_allocations_of_two_pools_differs),
		TEST(a_thread_without_a_context_imports_pointers),
		TEST(refuses_descriptors_that_are_not_pools),
		TEST(refuses_properties_that_no_pool_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
