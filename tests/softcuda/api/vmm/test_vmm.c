/* test_vmm.c — addresses, memory and access rights: the virtual memory management calls in one process. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

enum { M2 = 2 << 20 };
#define FD        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define NONE      CU_MEM_ACCESS_FLAGS_PROT_NONE
#define RO        CU_MEM_ACCESS_FLAGS_PROT_READ
#define RW        CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define DEVICE    CU_MEM_LOCATION_TYPE_DEVICE
#define HOST      CU_MEM_LOCATION_TYPE_HOST
#define HOST_NUMA CU_MEM_LOCATION_TYPE_HOST_NUMA

static CUmemAllocationProp prop_of(CUmemLocationType type, int id, CUmemAllocationHandleType handle_types)
{
	return (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { .type = type, .id = id },
				      .requestedHandleTypes = handle_types };
}

static CUmemGenericAllocationHandle create(CUmemLocationType type, size_t bytes)
{
	CUmemAllocationProp prop = prop_of(type, 0, FD);
	CUmemGenericAllocationHandle h;

	ok(cuMemCreate(&h, bytes, &prop, 0));
	return h;
}

static CUresult try_create(CUmemLocationType type, int id, CUmemAllocationHandleType handle_types, size_t bytes)
{
	CUmemAllocationProp prop = prop_of(type, id, handle_types);
	CUmemGenericAllocationHandle h;
	CUresult r = cuMemCreate(&h, bytes, &prop, 0);

	if (!r)
		ok(cuMemRelease(h));
	return r;
}

static CUdeviceptr reserve(size_t bytes)
{
	CUdeviceptr a;

	ok(cuMemAddressReserve(&a, bytes, 0, 0, 0));
	assert_int_equal(a % M2, 0);
	return a;
}

static CUresult allow(CUdeviceptr a, size_t bytes, CUmemLocationType type, int id, CUmemAccess_flags flags)
{
	CUmemAccessDesc d = { .location = { .type = type, .id = id }, .flags = flags };

	return cuMemSetAccess(a, bytes, &d, 1);
}

/* Create a mapping that the device and, for host memory, the CPU may access. */
static CUdeviceptr make_mapping(CUmemLocationType type, size_t bytes)
{
	CUmemGenericAllocationHandle h = create(type, bytes);
	CUdeviceptr a = reserve(bytes);

	ok(cuMemMap(a, bytes, 0, h, 0));
	ok(cuMemRelease(h)); /* the mapping keeps the memory */
	ok(allow(a, bytes, DEVICE, 0, RW));
	if (type == HOST_NUMA)
		ok(allow(a, bytes, HOST_NUMA, 0, RW));
	return a;
}

static void drop_mapping(CUdeviceptr a, size_t bytes)
{
	ok(cuMemUnmap(a, bytes));
	ok(cuMemAddressFree(a, bytes));
}

static sigjmp_buf fault;

static void on_signal(int number)
{
	siglongjmp(fault, number);
}

/* Access the memory with the CPU; return the signal that the access raised, or 0. */
static int touch(CUdeviceptr a, bool write)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER }, old;
	volatile unsigned char *byte = (unsigned char *)(uintptr_t)a;
	int number;

	sigaction(SIGSEGV, &action, &old);
	number = sigsetjmp(fault, 1);
	if (!number && write)
		*byte = 5;
	else if (!number)
		(void)*byte;
	sigaction(SIGSEGV, &old, NULL);
	return number;
}

static void reports_the_granularity_of_each_kind_of_memory(void **state)
{
	static const CUmemLocationType types[] = { DEVICE, HOST, HOST_NUMA };
	size_t bytes = 0;

	(void)state;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		CUmemAllocationProp prop = prop_of(types[i], 0, FD);

		ok(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
		assert_int_equal(bytes, M2);
		ok(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
		fails(cuMemGetAllocationGranularity(&bytes, &prop, 2), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemGetAllocationGranularity(NULL, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	}
}

static void refuses_impossible_memory_requests(void **state)
{
	CUmemAllocationProp prop = prop_of(DEVICE, 0, FD);
	CUmemGenericAllocationHandle h;

	(void)state;
	fails(try_create(DEVICE, 0, FD, 4096), CUDA_ERROR_INVALID_VALUE);
	fails(try_create(DEVICE, 0, FD, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemCreate(&h, M2, &prop, 1), CUDA_ERROR_INVALID_VALUE);
	fails(try_create(DEVICE, 99, FD, M2), CUDA_ERROR_INVALID_DEVICE);
	fails(try_create(DEVICE, -1, FD, M2), CUDA_ERROR_INVALID_DEVICE);
	fails(try_create(DEVICE, 0, 4, M2), CUDA_ERROR_INVALID_VALUE);
	fails(try_create(DEVICE, 0, FD, 1ull << 50), CUDA_ERROR_OUT_OF_MEMORY);
	fails(try_create(HOST, 0, FD, M2), CUDA_ERROR_INVALID_VALUE);
	ok(try_create(HOST, 0, 0, M2));
	ok(try_create(HOST_NUMA, 0, FD, M2));
	fails(try_create(HOST_NUMA, -1, FD, M2), CUDA_ERROR_INVALID_VALUE);
	fails(try_create(HOST_NUMA, 999, FD, M2), CUDA_ERROR_INVALID_VALUE);
	fails(try_create(HOST_NUMA, 0, FD, 1ull << 45), CUDA_ERROR_OUT_OF_MEMORY);
	fails(try_create(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0, FD, M2), CUDA_ERROR_INVALID_VALUE);
	fails(try_create(0, 0, FD, M2), CUDA_ERROR_INVALID_VALUE);
	fails(try_create(9, 0, FD, M2), CUDA_ERROR_INVALID_VALUE);
	if (on_software_driver()) /* NVIDIA's driver crashes on invalid and stale handles */
		fails(cuMemRelease(12345), CUDA_ERROR_INVALID_VALUE);
}

static void reserves_addresses_at_a_hint_and_alignment(void **state)
{
	CUdeviceptr a, b;

	(void)state;
	fails(cuMemAddressReserve(&a, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAddressReserve(&a, 4096, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAddressReserve(&a, M2, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemAddressReserve(&a, M2, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemAddressReserve(&a, M2, 1 << 30, 0, 0));
	assert_int_equal(a % (1 << 30), 0);
	fails(cuMemAddressReserve(&b, M2, 0, a + 4096, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemAddressReserve(&b, M2, 0, a, 0)); /* the hinted addresses are in use, so others are returned */
	assert_true(a != b);
	ok(cuMemAddressFree(b, M2));
	ok(cuMemAddressFree(a, M2));
	ok(cuMemAddressReserve(&b, M2, 0, a, 0)); /* the hinted addresses are free now, but a driver may ignore a hint */
	if (on_software_driver())
		assert_true(a == b);
	fails(cuMemAddressFree(b, 2 * M2), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemAddressFree(b, M2));
	fails(cuMemAddressFree(b, M2), CUDA_ERROR_INVALID_VALUE);
}

static void maps_whole_allocations_into_reservations(void **state)
{
	CUmemGenericAllocationHandle h = create(DEVICE, 2 * M2), g = create(DEVICE, M2);
	CUdeviceptr a = reserve(8 * M2);

	(void)state;
	fails(cuMemMap(a, M2, 0, h, 0), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuMemMap(a, 4 * M2, 0, h, 0), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuMemMap(a, M2, M2, h, 0), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuMemMap(a + 4096, 2 * M2, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemMap(a, 2 * M2, 0, h, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemMap(a, 0, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemMap(0x10000000000, 2 * M2, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemMap(a, 2 * M2, 0, h, 0));
	fails(cuMemMap(a + M2, M2, 0, g, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemMap(a + 2 * M2, M2, 0, g, 0));
	fails(cuMemAddressFree(a, 8 * M2), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemUnmap(a, M2), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemUnmap(a + M2, 2 * M2), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemUnmap(a, 3 * M2));
	ok(cuMemRelease(h));
	if (on_software_driver()) {
		fails(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemMap(a, M2, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
	}
	ok(cuMemRelease(g));
	ok(cuMemAddressFree(a, 8 * M2));
}

static void unmaps_only_addresses_that_are_reserved(void **state)
{
	const size_t step = 2 << 20;
	CUdeviceptr a, p;
	CUcontext ctx;
	char on_the_stack[16];

	(void)state;
	ok(cuCtxCreate(&ctx, NULL, 0, 0));
	ok(cuMemAlloc(&p, step));
	fails(cuMemUnmap(p, step), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemUnmap(p + 10, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemUnmap((uintptr_t)on_the_stack, 4096), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemUnmap(0x10000, step), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemsetD8(p, 1, step)); /* the refused call has not unmapped the memory */
	ok(cuMemFree(p));
	ok(cuMemAddressReserve(&a, 2 * step, 0, 0, 0));
	ok(cuMemUnmap(a, 2 * step)); /* nothing is mapped in the whole range */
	fails(cuMemUnmap(a, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemAddressFree(a, 2 * step));
	fails(cuMemUnmap(a, 2 * step), CUDA_ERROR_INVALID_VALUE);
	ok(cuCtxDestroy(ctx));
}

static void one_handle_mapped_twice_is_the_same_memory(void **state)
{
	CUmemGenericAllocationHandle h = create(DEVICE, M2);
	CUdeviceptr a = reserve(M2), b = reserve(M2);
	uint32_t in = 41, out = 0;

	(void)state;
	ok(cuMemMap(a, M2, 0, h, 0));
	ok(cuMemMap(b, M2, 0, h, 0));
	ok(allow(a, M2, DEVICE, 0, RW));
	ok(allow(b, M2, DEVICE, 0, RW));
	ok(cuMemRelease(h));
	ok(cuMemcpyHtoD(a + 8, &in, 4));
	ok(cuMemcpyDtoH(&out, b + 8, 4));
	assert_int_equal(out, 41);
	drop_mapping(a, M2);
	ok(cuMemcpyDtoH(&out, b + 8, 4));
	drop_mapping(b, M2);
	fails(cuMemcpyDtoH(&out, b + 8, 4), CUDA_ERROR_INVALID_VALUE);
}

static void sets_access_of_whole_mappings_only(void **state)
{
	CUdeviceptr a = reserve(4 * M2);
	CUmemGenericAllocationHandle h = create(DEVICE, 2 * M2), g = create(DEVICE, M2);
	CUmemLocation device = { .type = DEVICE };
	unsigned long long flags = 9;
	char byte;

	(void)state;
	ok(cuMemMap(a, 2 * M2, 0, h, 0));
	ok(cuMemMap(a + 2 * M2, M2, 0, g, 0));
	ok(cuMemGetAccess(&flags, &device, a));
	assert_int_equal(flags, NONE);
	fails(cuMemcpyDtoH(&byte, a, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD8(a, 1, 1), CUDA_ERROR_INVALID_VALUE);
	fails(allow(a, M2, DEVICE, 0, RW), CUDA_ERROR_INVALID_VALUE);
	fails(allow(a, 4096, DEVICE, 0, RW), CUDA_ERROR_INVALID_VALUE);
	fails(allow(a, 4 * M2, DEVICE, 0, RW), CUDA_ERROR_INVALID_VALUE);
	fails(allow(a, 2 * M2, DEVICE, 99, RW), CUDA_ERROR_INVALID_VALUE);
	fails(allow(a, 2 * M2, DEVICE, 0, 2), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemSetAccess(a, 2 * M2, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemSetAccess(a, 2 * M2, &(CUmemAccessDesc){ 0 }, 0), CUDA_ERROR_INVALID_VALUE);
	ok(allow(a, 3 * M2, DEVICE, 0, RW));
	ok(cuMemGetAccess(&flags, &device, a + 2 * M2));
	assert_int_equal(flags, RW);
	ok(cuMemsetD8(a, 3, 3 * M2)); /* the fill extends across two mappings */
	ok(cuMemcpyDtoH(&byte, a + 3 * M2 - 1, 1));
	assert_int_equal(byte, 3);
	fails(cuMemsetD8(a, 3, 3 * M2 + 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemGetAccess(&flags, &device, 0x1234000), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemRelease(h));
	ok(cuMemRelease(g));
	ok(cuMemUnmap(a, 3 * M2));
	ok(cuMemAddressFree(a, 4 * M2));
}

static void the_cpu_has_the_rights_of_the_mapping(void **state)
{
	CUdeviceptr a = make_mapping(HOST_NUMA, M2);
	CUmemLocation host = { .type = HOST }, numa = { .type = HOST_NUMA };
	unsigned long long by_host, by_numa;

	(void)state;
	assert_int_equal(touch(a, true), 0);
	ok(allow(a, M2, DEVICE, 0, NONE));
	assert_int_equal(touch(a, true), 0);
	fails(cuMemsetD8(a, 7, 64), CUDA_ERROR_INVALID_VALUE);
	ok(allow(a, M2, HOST, 0, RO));
	assert_int_equal(touch(a, false), 0);
	assert_int_equal(touch(a, true), SIGSEGV);
	ok(cuMemGetAccess(&by_host, &host, a));
	ok(cuMemGetAccess(&by_numa, &numa, a));
	assert_true(by_host == RO && by_numa == RO);
	ok(allow(a, M2, HOST_NUMA, 9, NONE)); /* location.id is ignored */
	assert_int_equal(touch(a, false), SIGSEGV);
	fails(allow(a, M2, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0, RW), CUDA_ERROR_INVALID_VALUE);
	drop_mapping(a, M2);
	assert_int_equal(touch(a, false), SIGSEGV);
	a = make_mapping(DEVICE, M2);
	fails(allow(a, M2, HOST, 0, RW), CUDA_ERROR_NOT_SUPPORTED);
	fails(allow(a, M2, HOST_NUMA, 0, RW), CUDA_ERROR_NOT_SUPPORTED);
	drop_mapping(a, M2);
}

static void a_kernel_and_the_cpu_share_host_memory(void **state)
{
	CUdeviceptr a = make_mapping(HOST_NUMA, 2 * M2), word = a + 2 * M2 - 4;
	uint32_t *there = (uint32_t *)(uintptr_t)word, value = 77;
	void *params[] = { &word, &value };

	(void)state;
	*there = 1;
	launch(get_kernel("put"), 1, 1, NULL, params);
	ok(cuCtxSynchronize());
	assert_int_equal(*there, 77);
	drop_mapping(a, 2 * M2);
}

static void retains_a_handle_by_an_address_inside_a_mapping(void **state)
{
	CUdeviceptr a = make_mapping(DEVICE, M2), plain;
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp prop;

	(void)state;
	ok(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)(a + 100)));
	ok(cuMemGetAllocationPropertiesFromHandle(&prop, h));
	assert_true(prop.location.type == DEVICE && prop.location.id == 0);
	assert_int_equal(prop.requestedHandleTypes, FD);
	ok(cuMemRelease(h));
	ok(cuMemsetD8(a, 1, M2));
	ok(cuMemAlloc(&plain, 4096));
	fails(cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)plain), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(plain));
	drop_mapping(a, M2);
	if (on_software_driver())
		fails(cuMemGetAllocationPropertiesFromHandle(&prop, 12345), CUDA_ERROR_INVALID_VALUE);
}

/* cuda.h: "The handle is guaranteed to be the same handle value used to map the memory"; an H200 returns it also after all releases. */
static void a_retained_handle_is_the_one_that_was_mapped(void **state)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location.type = DEVICE };
	CUmemGenericAllocationHandle made, h[3], again;
	CUmemAllocationProp got;
	CUdeviceptr a;

	(void)state;
	ok(cuMemCreate(&made, M2, &prop, 0));
	ok(cuMemAddressReserve(&a, 2 * M2, 0, 0, 0));
	ok(cuMemMap(a, M2, 0, made, 0));
	ok(cuMemMap(a + M2, M2, 0, made, 0));
	for (int k = 0; k < 3; k++) {
		ok(cuMemRetainAllocationHandle(&h[k], (void *)(uintptr_t)(a + (CUdeviceptr)k * (M2 - 1))));
		assert_true(h[k] == made);
	}
	for (int k = 0; k < 4; k++) {
		ok(cuMemGetAllocationPropertiesFromHandle(&got, made));
		ok(cuMemRelease(made));
	}
	if (on_software_driver()) {
		fails(cuMemGetAllocationPropertiesFromHandle(&got, made), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemRelease(made), CUDA_ERROR_INVALID_VALUE);
	}
	ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a));
	assert_true(again == made);
	ok(cuMemUnmap(a, 2 * M2));
	ok(cuMemMap(a, M2, 0, again, 0));
	ok(cuMemRelease(again));
	ok(cuMemUnmap(a, M2));
	fails(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemAddressFree(a, 2 * M2));
}

static unsigned long long attribute(CUpointer_attribute which, CUdeviceptr a)
{
	unsigned long long value = 0;

	ok(cuPointerGetAttribute(&value, which, a));
	return value;
}

static void pointer_attributes_describe_mappings(void **state)
{
	CUdeviceptr a = reserve(4 * M2), base;
	CUmemGenericAllocationHandle h = create(DEVICE, M2), g = create(HOST_NUMA, M2);
	unsigned long long value;
	size_t bytes;

	(void)state;
	fails(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemMap(a + M2, M2, 0, h, 0));
	ok(cuMemMap(a + 2 * M2, M2, 0, g, 0));
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a + M2), 0);
	fails(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a + M2), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemGetAddressRange(&base, &bytes, a + M2), CUDA_ERROR_NOT_FOUND);
	ok(allow(a + M2, 2 * M2, DEVICE, 0, RW));
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + M2 + 8), CU_MEMORYTYPE_DEVICE);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a + M2 + 8), a + M2 + 8);
	fails(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_HOST_POINTER, a + M2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_CONTEXT, a + M2), 0);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + M2 + 8), a);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + M2 + 8), 4 * M2);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, a + M2 + 8), a + M2);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, a + M2 + 8), M2);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a + M2), FD);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a + M2), 3);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, a + M2), 0);
	ok(cuMemGetAddressRange(&base, &bytes, a + M2 + 8));
	assert_true(base == a + M2 && bytes == M2);
	ok(allow(a + 2 * M2, M2, HOST, 0, RW));
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 2 * M2), CU_MEMORYTYPE_HOST);
	assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_HOST_POINTER, a + 2 * M2 + 8), a + 2 * M2 + 8);
	assert_true(attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, a + M2) != attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, a + 2 * M2));
	ok(cuMemRelease(h));
	ok(cuMemRelease(g));
	ok(cuMemUnmap(a, 4 * M2));
	ok(cuMemAddressFree(a, 4 * M2));
}

static void device_memory_is_counted_until_its_last_reference(void **state)
{
	size_t before, during, after, total;
	CUdeviceptr a;

	(void)state;
	ok(cuMemGetInfo(&before, &total));
	a = make_mapping(DEVICE, 8 * M2);
	ok(cuMemGetInfo(&during, &total));
	assert_int_equal(before - during, 8 * M2);
	drop_mapping(a, 8 * M2);
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before, after);
}

static void other_calls_refuse_mappings(void **state)
{
	CUdeviceptr a = make_mapping(HOST_NUMA, M2), p;
	unsigned flags;

	(void)state;
	fails(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemFreeHost((void *)(uintptr_t)a), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemHostRegister((void *)(uintptr_t)a, M2, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemHostGetDevicePointer(&p, (void *)(uintptr_t)(a + 64), 0));
	if (on_software_driver())
		assert_true(p == a + 64);
	ok(cuMemHostGetFlags(&flags, (void *)(uintptr_t)a));
	drop_mapping(a, M2);
}

static void works_without_a_context(void **state)
{
	CUcontext current;
	CUdeviceptr a;

	(void)state;
	ok(cuCtxPopCurrent(&current));
	a = make_mapping(DEVICE, M2);
	fails(cuMemsetD8(a, 1, 4), CUDA_ERROR_INVALID_CONTEXT);
	drop_mapping(a, M2);
	ok(cuCtxPushCurrent(current));
}

/* Run last: after the fault the context is unusable. */
static void a_kernel_with_read_access_faults_at_a_store(void **state)
{
	CUdeviceptr a = make_mapping(DEVICE, M2);
	uint32_t value = 1, out;
	void *params[] = { &a, &value };
	CUfunction put = get_kernel("put");

	(void)state;
	ok(allow(a, M2, DEVICE, 0, RO));
	fails(cuMemcpyHtoD(a, &value, 4), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemcpyDtoH(&out, a, 4));
	launch(put, 1, 1, NULL, params);
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	drop_mapping(a, M2); /* after the fault, the calls for virtual memory still work */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_the_granularity_of_each_kind_of_memory),
		cmocka_unit_test(refuses_impossible_memory_requests),
		cmocka_unit_test(reserves_addresses_at_a_hint_and_alignment),
		cmocka_unit_test(maps_whole_allocations_into_reservations),
		cmocka_unit_test(unmaps_only_addresses_that_are_reserved),
		cmocka_unit_test(one_handle_mapped_twice_is_the_same_memory),
		cmocka_unit_test(sets_access_of_whole_mappings_only),
		cmocka_unit_test(the_cpu_has_the_rights_of_the_mapping),
		cmocka_unit_test(a_kernel_and_the_cpu_share_host_memory),
		cmocka_unit_test(retains_a_handle_by_an_address_inside_a_mapping),
		cmocka_unit_test(a_retained_handle_is_the_one_that_was_mapped),
		cmocka_unit_test(pointer_attributes_describe_mappings),
		cmocka_unit_test(device_memory_is_counted_until_its_last_reference),
		cmocka_unit_test(other_calls_refuse_mappings),
		cmocka_unit_test(works_without_a_context),
		cmocka_unit_test(a_kernel_with_read_access_faults_at_a_store),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
