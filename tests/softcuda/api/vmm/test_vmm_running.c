/* test_vmm_running.c — mappings that are used at the same time: by kernels of two devices, queued copies and other threads. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { M2 = 2 << 20 };
#define DEVICE    CU_MEM_LOCATION_TYPE_DEVICE
#define HOST_NUMA CU_MEM_LOCATION_TYPE_HOST_NUMA
#define NONE      CU_MEM_ACCESS_FLAGS_PROT_NONE
#define RO        CU_MEM_ACCESS_FLAGS_PROT_READ
#define RW        CU_MEM_ACCESS_FLAGS_PROT_READWRITE

static CUresult allow(CUdeviceptr a, size_t bytes, CUmemLocationType type, int id, CUmemAccess_flags flags)
{
	CUmemAccessDesc d = { .location = { .type = type, .id = id }, .flags = flags };

	return cuMemSetAccess(a, bytes, &d, 1);
}

static void map_new(CUdeviceptr a, CUmemLocationType type)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = type } };
	CUmemGenericAllocationHandle h;

	ok(cuMemCreate(&h, M2, &prop, 0));
	ok(cuMemMap(a, M2, 0, h, 0));
	ok(cuMemRelease(h));
	ok(allow(a, M2, DEVICE, 0, RW));
	if (type == HOST_NUMA)
		ok(allow(a, M2, HOST_NUMA, 0, RW));
}

/* Create n adjacent mappings of 2 MiB, and return the first address. */
static CUdeviceptr make(CUmemLocationType type, unsigned n)
{
	CUdeviceptr a;

	ok(cuMemAddressReserve(&a, n * (size_t)M2, 0, 0, 0));
	for (unsigned i = 0; i < n; i++)
		map_new(a + i * (size_t)M2, type);
	return a;
}

static void drop(CUdeviceptr a, unsigned n)
{
	ok(cuMemUnmap(a, n * (size_t)M2));
	ok(cuMemAddressFree(a, n * (size_t)M2));
}

static const char *last_fault(void)
{
	void *symbol = dlsym(RTLD_DEFAULT, "gpuloadSoftLastFault");
	const char *(*call)(void);

	memcpy(&call, &symbol, sizeof call);
	return call();
}

static CUresult put_on(int ordinal, CUdeviceptr word, uint32_t value)
{
	void *params[] = { &word, &value };
	CUcontext ctx;
	CUresult r;

	ok(cuCtxCreate(&ctx, NULL, 0, ordinal));
	launch(get_kernel("put"), 1, 1, NULL, params);
	r = cuCtxSynchronize();
	cuCtxDestroy(ctx);
	return r;
}

static void skip_unless_two_devices(void)
{
	int n = 0;

	ok(cuDeviceGetCount(&n));
	if (n < 2)
		skip();
}

/* On NVIDIA's driver a process cannot create a context after a fault. */
static void skip_where_a_fault_is_for_ever(void)
{
	if (!on_software_driver())
		skip();
}

static void each_device_has_separate_rights(void **state)
{
	CUdeviceptr a = make(DEVICE, 1);
	uint32_t word = 0;

	(void)state;
	skip_unless_two_devices();
	skip_where_a_fault_is_for_ever();
	fails(put_on(1, a, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	if (on_software_driver())
		assert_non_null(strstr(last_fault(), "device 1 has no access: see cuMemSetAccess"));
	ok(put_on(0, a, 2));
	ok(allow(a, M2, DEVICE, 1, RO));
	fails(put_on(1, a, 3), CUDA_ERROR_ILLEGAL_ADDRESS);
	if (on_software_driver())
		assert_non_null(strstr(last_fault(), "device 1 may only read: see cuMemSetAccess"));
	ok(allow(a, M2, DEVICE, 1, RW));
	ok(put_on(1, a, 4));
	ok(cuMemcpyDtoH(&word, a, 4));
	assert_int_equal(word, 4);
	drop(a, 1);
}

static void refuses_a_fill_by_a_device_without_write_access(void **state)
{
	CUdeviceptr a = make(DEVICE, 1);
	CUcontext ctx;

	(void)state;
	skip_unless_two_devices();
	ok(cuCtxCreate(&ctx, NULL, 0, 1));
	fails(cuMemsetD8(a, 1, 4), CUDA_ERROR_INVALID_VALUE);
	ok(allow(a, M2, DEVICE, 1, RW));
	ok(cuMemsetD8(a, 1, 4));
	ok(cuCtxDestroy(ctx));
	drop(a, 1);
}

static void a_kernel_can_use_adjacent_mappings_as_one_array(void **state)
{
	enum { N = 1000 };
	CUdeviceptr a = make(DEVICE, 2), from = a + M2 - 8 * 17;
	static double in[N], out[N];
	uint32_t n = N;
	void *params[] = { &from, &from, &from, &n };

	(void)state;
	for (int i = 0; i < N; i++)
		in[i] = i;
	ok(cuMemcpyHtoD(from, in, sizeof in));
	launch(get_kernel("vecadd"), 8, 128, NULL, params);
	ok(cuMemcpyDtoH(out, from, sizeof out));
	for (int i = 0; i < N; i++)
		assert_true(out[i] == 2.0 * i);
	drop(a, 2);
}

/* A kernel polls memory while the program unmaps it: the kernel faults, the process continues, and no call waits for the end of
 * the kernel. */
static void a_kernel_faults_when_its_memory_is_unmapped(void **state)
{
	(void)state;
	skip_where_a_fault_is_for_ever();
	for (int i = 0; i < 100; i++) {
		CUdeviceptr a = make(HOST_NUMA, 1), seen = a + 4;
		void *params[] = { &a, &seen };
		CUcontext ctx;

		ok(cuCtxCreate(&ctx, NULL, 0, 0));
		launch(get_kernel("spin"), 2, 32, NULL, params);
		ok(cuMemUnmap(a, M2));
		fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
		cuCtxDestroy(ctx);
		ok(cuMemAddressFree(a, M2));
	}
}

static void a_running_kernel_faults_when_its_access_is_removed(void **state)
{
	CUdeviceptr a = make(HOST_NUMA, 1), seen = a + 4;
	void *params[] = { &a, &seen };
	CUcontext ctx;

	(void)state;
	skip_where_a_fault_is_for_ever();
	ok(cuCtxCreate(&ctx, NULL, 0, 0));
	launch(get_kernel("spin"), 2, 32, NULL, params);
	ok(allow(a, M2, DEVICE, 0, NONE));
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	cuCtxDestroy(ctx);
	drop(a, 1);
}

static void mapping_does_not_wait_for_a_kernel(void **state)
{
	uint32_t *flag = make_flag(), *seen = make_flag();
	CUdeviceptr flag_there = (CUdeviceptr)(uintptr_t)flag, seen_there = (CUdeviceptr)(uintptr_t)seen;
	void *params[] = { &flag_there, &seen_there };
	CUstream stream;

	(void)state;
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	launch(get_kernel("spin"), 1, 32, stream, params);
	for (int i = 0; i < 10; i++)
		drop(make(DEVICE, 2), 2);
	fails(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	raise_flag(flag);
	ok(cuStreamSynchronize(stream));
	ok(cuStreamDestroy(stream));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(seen));
}

static void a_queued_copy_fails_when_its_memory_is_unmapped(void **state)
{
	uint32_t *flag, *seen;
	CUdeviceptr a = make(HOST_NUMA, 2), flag_there, seen_there;
	void *params[] = { &flag_there, &seen_there };
	CUcontext ctx;

	(void)state;
	if (!on_software_driver())
		skip();
	ok(cuCtxCreate(&ctx, NULL, 0, 0));
	flag = make_flag();
	seen = make_flag();
	flag_there = (CUdeviceptr)(uintptr_t)flag;
	seen_there = (CUdeviceptr)(uintptr_t)seen;
	launch(get_kernel("spin"), 1, 1, NULL, params);
	ok(cuMemcpyDtoDAsync(a, a + M2, 4096, NULL));
	ok(cuMemUnmap(a, M2));
	raise_flag(flag);
	fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	cuCtxDestroy(ctx);
	ok(cuMemUnmap(a, 2 * M2));
	ok(cuMemAddressFree(a, 2 * M2));
}

static atomic_bool stop;

/* This thread needs its own stream: a fill that waits for the other thread's fill could run after the unmapping, and fault. */
static void *copy_on(void *user)
{
	CUcontext ctx = ((void **)user)[0];
	CUdeviceptr a = *(CUdeviceptr *)((void **)user)[1];
	char *from = calloc(1, M2);
	CUstream own = NULL;
	unsigned n = 0;

	cuCtxSetCurrent(ctx);
	n += cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
	while (from && !stop) {
		CUresult r = cuMemcpyHtoDAsync(a, from, M2 / 2, own);

		n += r != CUDA_SUCCESS && r != CUDA_ERROR_INVALID_VALUE;
	}
	cuStreamDestroy(own);
	free(from);
	return (void *)(uintptr_t)n;
}

static void unmapping_waits_for_a_running_copy(void **state)
{
	CUdeviceptr a;
	void *user[2] = { NULL, &a }, *n_other_errors;
	pthread_t thread;

	(void)state;
	if (!on_software_driver())
		skip();
	ok(cuCtxGetCurrent((CUcontext *)&user[0]));
	ok(cuMemAddressReserve(&a, M2, 0, 0, 0));
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, copy_on, user), 0);
	for (int i = 0; i < 100; i++) {
		map_new(a, DEVICE);
		ok(cuMemsetD8(a + M2 / 2, 1, M2 / 2)); /* fill the other half, because two fills of the same bytes would race */
		ok(cuMemUnmap(a, M2));
	}
	stop = true;
	pthread_join(thread, &n_other_errors);
	assert_null(n_other_errors);
	ok(cuMemAddressFree(a, M2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_device_has_separate_rights),
		cmocka_unit_test(refuses_a_fill_by_a_device_without_write_access),
		cmocka_unit_test(a_kernel_can_use_adjacent_mappings_as_one_array),
		cmocka_unit_test(a_kernel_faults_when_its_memory_is_unmapped),
		cmocka_unit_test(a_running_kernel_faults_when_its_access_is_removed),
		cmocka_unit_test(mapping_does_not_wait_for_a_kernel),
		cmocka_unit_test(a_queued_copy_fails_when_its_memory_is_unmapped),
		cmocka_unit_test(unmapping_waits_for_a_running_copy),
	};

	setenv("GPULOAD_SOFT_DEVICES", "2", 1);
	setenv("GPULOAD_SOFT_QUIET", "1", 1);
	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
