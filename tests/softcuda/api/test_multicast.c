/* test_multicast.c — multicast objects of two devices in one process: the calls, what kernels see, and what is refused.
 *
 * Never run this test on NVIDIA's driver, whose multicast objects use the NVLink switch that all GPUs of the machine share. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { M2 = 2 << 20 };
#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

/* Kernel sum stores the reduction of all copies of [x]; put stores a value to each copy; count adds 1 to each copy. */
static const char ptx[] =
	".version 9.0\n.target sm_90\n.address_size 64\n"
	".visible .entry sum(.param .u64 x, .param .u64 out) { .reg .b64 %d<3>; .reg .f32 %f;\n"
	"ld.param.u64 %d1, [x]; ld.param.u64 %d2, [out]; multimem.ld_reduce.relaxed.sys.global.add.f32 %f, [%d1]; st.global.f32 [%d2], %f; ret; }\n"
	".visible .entry put(.param .u64 x, .param .f32 value) { .reg .b64 %d<3>; .reg .f32 %f;\n"
	"ld.param.u64 %d1, [x]; ld.param.f32 %f, [value]; multimem.st.relaxed.sys.global.f32 [%d1], %f; ret; }\n"
	".visible .entry load(.param .u64 x) { .reg .b64 %d<3>; .reg .f32 %f; ld.param.u64 %d1, [x]; ld.global.f32 %f, [%d1]; ret; }\n";

static CUcontext context;

static int init_two(void **state)
{
	(void)state;
	setenv("GPULOAD_SOFT_DEVICES", "2", 1);
	setenv("GPULOAD_SOFT_QUIET", "1", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	if (cuInit(0))
		return -1;
	if (!on_software_driver())
		exit(77);
	return 0;
}

static int make_one(void **state)
{
	(void)state;
	return cuCtxCreate(&context, NULL, 0, 0) ? -1 : 0;
}

static int drop_one(void **state)
{
	(void)state;
	return cuCtxDestroy(context) ? -1 : 0;
}

/* ---- a team of two devices with 2 MiB each ------------------------------------------------- */

struct team {
	CUmemGenericAllocationHandle object, memory[2];
	CUdeviceptr at[2], multicast;
};

static CUmemGenericAllocationHandle make_object(unsigned n_devices, size_t bytes, CUmemAllocationHandleType type)
{
	CUmemGenericAllocationHandle h;

	ok(cuMulticastCreate(&h, &(CUmulticastObjectProp){ .numDevices = n_devices, .size = bytes, .handleTypes = type }));
	return h;
}

static CUmemGenericAllocationHandle make_memory(int device, CUmemAllocationHandleType type)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .requestedHandleTypes = type,
					   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } };
	CUmemGenericAllocationHandle h;

	ok(cuMemCreate(&h, M2, &prop, 0));
	return h;
}

static CUdeviceptr map(CUmemGenericAllocationHandle h, size_t bytes)
{
	const CUmemAccessDesc to[2] = {
		{ .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
		{ .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE }
	};
	CUdeviceptr p;

	ok(cuMemAddressReserve(&p, bytes, 0, 0, 0));
	ok(cuMemMap(p, bytes, 0, h, 0));
	ok(cuMemSetAccess(p, bytes, to, 2));
	return p;
}

static void unmap(CUdeviceptr p, size_t bytes)
{
	ok(cuMemUnmap(p, bytes));
	ok(cuMemAddressFree(p, bytes));
}

static struct team make_team(void)
{
	struct team t = { .object = make_object(2, M2, CU_MEM_HANDLE_TYPE_NONE) };

	for (int d = 0; d < 2; d++) {
		ok(cuMulticastAddDevice(t.object, d));
		t.memory[d] = make_memory(d, CU_MEM_HANDLE_TYPE_NONE);
		t.at[d] = map(t.memory[d], M2);
		ok(cuMemsetD32(t.at[d], 0, M2 / 4));
	}
	ok(cuMulticastBindMem(t.object, 0, t.memory[0], 0, M2, 0));
	ok(cuMulticastBindAddr(t.object, 0, t.at[1], M2, 0));
	t.multicast = map(t.object, M2);
	return t;
}

static void drop_team(const struct team *t)
{
	unmap(t->multicast, M2);
	ok(cuMemRelease(t->object));
	for (int d = 0; d < 2; d++) {
		unmap(t->at[d], M2);
		ok(cuMemRelease(t->memory[d]));
	}
}

static float value_at(CUdeviceptr p)
{
	float x = 0;

	ok(cuMemcpyDtoH(&x, p, sizeof x));
	return x;
}

static void store(CUdeviceptr p, float x)
{
	ok(cuMemcpyHtoD(p, &x, sizeof x));
}

static CUresult run(const char *name, CUdeviceptr x, void *second)
{
	CUmodule m;
	CUfunction f;
	CUresult r;

	ok(cuModuleLoadData(&m, ptx));
	ok(cuModuleGetFunction(&f, m, name));
	launch(f, 1, 1, NULL, (void *[]){ &x, second });
	r = cuCtxSynchronize();
	if (!r)
		ok(cuModuleUnload(m));
	return r;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void kernels_reduce_and_store_the_memory_of_all_devices(void **state)
{
	struct team t = make_team();
	CUdeviceptr out, where;

	(void)state;
	ok(cuMemAlloc(&out, 4));
	store(t.at[0] + 64, 1);
	store(t.at[1] + 64, 2.5f);
	ok(run("sum", t.multicast + 64, &out));
	assert_true(value_at(out) == 3.5f);
	ok(run("put", t.multicast + M2 - 4, &(float){ 7 }));
	assert_true(value_at(t.at[0] + M2 - 4) == 7 && value_at(t.at[1] + M2 - 4) == 7);
	ok(cuPointerGetAttribute(&where, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, t.multicast + 100));
	assert_true(where == t.multicast);
	ok(cuMemFree(out));
	drop_team(&t);
}

static void the_beginning_of_an_object_can_be_mapped(void **state)
{
	const CUmemGenericAllocationHandle object = make_object(1, 3 * M2, CU_MEM_HANDLE_TYPE_NONE);
	const CUmemGenericAllocationHandle memory = make_memory(0, CU_MEM_HANDLE_TYPE_NONE);
	const CUdeviceptr at = map(memory, M2);
	CUdeviceptr p;
	size_t bytes;

	(void)state;
	ok(cuMulticastAddDevice(object, 0));
	ok(cuMulticastBindAddr(object, M2, at, M2, 0));
	p = map(object, 2 * M2);
	ok(run("put", p + M2, &(float){ 4 }));
	ok(run("put", p + 2 * M2 - 4, &(float){ 5 }));
	assert_true(value_at(at) == 4 && value_at(at + M2 - 4) == 5);
	ok(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
	assert_int_equal(bytes, 2 * M2);
	unmap(p, 2 * M2);
	ok(cuMemAddressReserve(&p, 4 * M2, 0, 0, 0));
	fails(cuMemMap(p, M2 + 4096, 0, object, 0), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuMemMap(p, 4 * M2, 0, object, 0), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuMemMap(p, M2, M2, object, 0), CUDA_ERROR_NOT_SUPPORTED);
	ok(cuMemAddressFree(p, 4 * M2));
	unmap(at, M2);
	ok(cuMemRelease(memory));
	ok(cuMemRelease(object));
}

static void memory_that_is_unbound_is_no_longer_reached(void **state)
{
	struct team t = make_team();
	const CUmemGenericAllocationHandle other = make_memory(1, CU_MEM_HANDLE_TYPE_NONE);
	const CUdeviceptr at = map(other, M2);

	(void)state;
	ok(run("put", t.multicast, &(float){ 1 }));
	fails(cuMulticastUnbind(t.object, 1, 0, M2 / 2), CUDA_ERROR_INVALID_VALUE);
	ok(cuMulticastUnbind(t.object, 1, 0, M2));
	fails(cuMulticastUnbind(t.object, 1, 0, M2), CUDA_ERROR_INVALID_VALUE);
	ok(cuMulticastBindMem(t.object, 0, other, 0, M2, 0));
	ok(run("put", t.multicast, &(float){ 2 }));
	assert_true(value_at(t.at[0]) == 2 && value_at(t.at[1]) == 1 && value_at(at) == 2);
	unmap(at, M2);
	ok(cuMemRelease(other));
	ok(run("put", t.multicast, &(float){ 3 })); /* the multicast object keeps the released memory */
	drop_team(&t);
}

static void a_kernel_faults_where_a_device_has_no_memory(void **state)
{
	struct team t = make_team();

	(void)state;
	ok(cuMulticastUnbind(t.object, 0, 0, M2));
	fails(run("put", t.multicast, &(float){ 1 }), CUDA_ERROR_ILLEGAL_ADDRESS);
	ok(cuCtxDestroy(context));
	ok(cuCtxCreate(&context, NULL, 0, 0));
	drop_team(&t);
}

static void a_kernel_cannot_load_from_a_multicast_address(void **state)
{
	struct team t = make_team();

	(void)state;
	fails(run("load", t.multicast, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	ok(cuCtxDestroy(context));
	ok(cuCtxCreate(&context, NULL, 0, 0));
	drop_team(&t);
}

static void copies_of_multicast_addresses_are_refused(void **state)
{
	struct team t = make_team();
	float x = 0;

	(void)state;
	fails(cuMemcpyDtoH(&x, t.multicast, sizeof x), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemsetD8(t.multicast, 0, 4), CUDA_ERROR_INVALID_VALUE);
	drop_team(&t);
}

static void refuses_requests_that_break_a_limit(void **state)
{
	CUmulticastObjectProp p = { .numDevices = 2, .size = M2 };
	CUmemGenericAllocationHandle h;

	(void)state;
	fails(cuMulticastCreate(NULL, &p), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastCreate(&h, NULL), CUDA_ERROR_INVALID_VALUE);
	p.size = M2 - 1;
	fails(cuMulticastCreate(&h, &p), CUDA_ERROR_INVALID_VALUE);
	p = (CUmulticastObjectProp){ .numDevices = 0, .size = M2 };
	fails(cuMulticastCreate(&h, &p), CUDA_ERROR_INVALID_VALUE);
	p = (CUmulticastObjectProp){ .numDevices = 17, .size = M2 };
	fails(cuMulticastCreate(&h, &p), CUDA_ERROR_INVALID_VALUE);
	p = (CUmulticastObjectProp){ .numDevices = 2, .size = M2, .flags = 1 };
	fails(cuMulticastCreate(&h, &p), CUDA_ERROR_INVALID_VALUE);
	p = (CUmulticastObjectProp){ .numDevices = 2, .size = M2, .handleTypes = CU_MEM_HANDLE_TYPE_FABRIC };
	fails(cuMulticastCreate(&h, &p), CUDA_ERROR_NOT_PERMITTED);
}

static void refuses_bindings_that_do_not_fit(void **state)
{
	const CUmemGenericAllocationHandle object = make_object(1, 2 * M2, CU_MEM_HANDLE_TYPE_NONE);
	const CUmemGenericAllocationHandle of_0 = make_memory(0, CU_MEM_HANDLE_TYPE_NONE), of_1 = make_memory(1, CU_MEM_HANDLE_TYPE_NONE);

	(void)state;
	fails(cuMulticastAddDevice(of_0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastAddDevice(object, 2), CUDA_ERROR_INVALID_DEVICE);
	ok(cuMulticastAddDevice(object, 0));
	fails(cuMulticastAddDevice(object, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastAddDevice(object, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastBindMem(object, 0, of_1, 0, M2, 0), CUDA_ERROR_INVALID_DEVICE);
	fails(cuMulticastBindMem(object, 1, of_0, 0, M2, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastBindMem(object, 2 * M2, of_0, 0, M2, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastBindMem(object, 0, of_0, M2, M2, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastBindMem(object, 0, of_0, 0, M2, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastBindMem(object, 0, object, 0, M2, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastBindAddr(object, 0, 4096, M2, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMulticastBindMem(object, M2, of_0, 0, M2, 0));
	fails(cuMulticastBindMem(object, M2, of_0, 0, M2, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMulticastUnbind(object, 1, M2, M2), CUDA_ERROR_INVALID_DEVICE);
	ok(cuMulticastUnbind(object, 0, M2, M2));
	ok(cuMemRelease(object));
	ok(cuMemRelease(of_0));
	ok(cuMemRelease(of_1));
}

static void a_shareable_object_needs_shareable_memory(void **state)
{
	const CUmemGenericAllocationHandle object = make_object(1, M2, FD), plain = make_memory(0, CU_MEM_HANDLE_TYPE_NONE),
					   shareable = make_memory(0, FD);

	(void)state;
	ok(cuMulticastAddDevice(object, 0));
	fails(cuMulticastBindMem(object, 0, plain, 0, M2, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMulticastBindMem(object, 0, shareable, 0, M2, 0));
	ok(cuMemRelease(object));
	ok(cuMemRelease(plain));
	ok(cuMemRelease(shareable));
}

static void the_device_supports_multicast(void **state)
{
	const CUmulticastObjectProp p = { .numDevices = 2, .size = M2 };
	size_t least = 0, best = 0;
	int supported = 0;

	(void)state;
	ok(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 1));
	assert_int_equal(supported, 1);
	ok(cuMulticastGetGranularity(&least, &p, CU_MULTICAST_GRANULARITY_MINIMUM));
	ok(cuMulticastGetGranularity(&best, &p, CU_MULTICAST_GRANULARITY_RECOMMENDED));
	assert_int_equal(least, M2);
	assert_int_equal(best, M2);
}

/* ---- calls without a free file descriptor ---------------------------------------------------- */

static rlim_t most_descriptors;

/* Lower RLIMIT_NOFILE, so that this process can open no further descriptor. */
static void use_up_descriptors(void)
{
	struct rlimit limit;
	const int lowest = dup(0);

	assert_true(lowest >= 0 && !getrlimit(RLIMIT_NOFILE, &limit));
	close(lowest);
	most_descriptors = limit.rlim_cur;
	limit.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void allow_descriptors(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most_descriptors;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void access_is_refused_without_descriptors_and_given_with_them(void **state)
{
	const CUmemAccessDesc to = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	const struct team t = make_team();
	CUdeviceptr again;

	(void)state;
	ok(cuMulticastUnbind(t.object, 1, 0, M2));
	use_up_descriptors();
	ok(cuMulticastBindMem(t.object, 0, t.memory[1], 0, M2, 0));
	ok(cuMemAddressReserve(&again, M2, 0, 0, 0));
	ok(cuMemMap(again, M2, 0, t.object, 0));
	assert_int_equal(cuMemSetAccess(again, M2, &to, 1), CUDA_ERROR_OUT_OF_MEMORY);
	allow_descriptors();
	ok(cuMemSetAccess(again, M2, &to, 1));
	unmap(again, M2);
	drop_team(&t);
}

static void a_kernel_finds_memory_that_could_not_be_mapped_before(void **state)
{
	const struct team t = make_team();
	CUdeviceptr out;

	(void)state;
	store(t.at[0], 1);
	store(t.at[1], 2);
	ok(cuMulticastUnbind(t.object, 1, 0, M2));
	use_up_descriptors();
	ok(cuMulticastBindMem(t.object, 0, t.memory[1], 0, M2, 0));
	allow_descriptors();
	ok(cuMemAlloc(&out, 4));
	ok(run("sum", t.multicast, &out));
	assert_true(value_at(out) == 3);
	ok(cuMemFree(out));
	drop_team(&t);
}

/* The fault makes the context unusable, but not the multicast object. */
static void a_kernel_without_descriptors_faults_and_a_later_one_does_not(void **state)
{
	const struct team t = make_team();
	CUdeviceptr out;

	(void)state;
	ok(cuMemAlloc(&out, 4));
	ok(run("sum", t.multicast, &out)); /* starts the threads that run kernels */
	ok(cuMulticastUnbind(t.object, 1, 0, M2));
	use_up_descriptors();
	ok(cuMulticastBindMem(t.object, 0, t.memory[1], 0, M2, 0));
	assert_int_equal(run("sum", t.multicast, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	allow_descriptors();
	ok(cuCtxDestroy(context));
	ok(cuCtxCreate(&context, NULL, 0, 0));
	ok(cuMemAlloc(&out, 4));
	ok(run("sum", t.multicast, &out));
	assert_true(value_at(out) == 0);
	ok(cuMemFree(out));
	drop_team(&t);
}

#define IN_A_CONTEXT(test) cmocka_unit_test_setup_teardown(test, make_one, drop_one)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_A_CONTEXT(kernels_reduce_and_store_the_memory_of_all_devices),
		IN_A_CONTEXT(the_beginning_of_an_object_can_be_mapped),
		IN_A_CONTEXT(memory_that_is_unbound_is_no_longer_reached),
		IN_A_CONTEXT(a_kernel_faults_where_a_device_has_no_memory),
		IN_A_CONTEXT(a_kernel_cannot_load_from_a_multicast_address),
		IN_A_CONTEXT(copies_of_multicast_addresses_are_refused),
		IN_A_CONTEXT(refuses_requests_that_break_a_limit),
		IN_A_CONTEXT(refuses_bindings_that_do_not_fit),
		IN_A_CONTEXT(a_shareable_object_needs_shareable_memory),
		IN_A_CONTEXT(the_device_supports_multicast),
		IN_A_CONTEXT(access_is_refused_without_descriptors_and_given_with_them),
		IN_A_CONTEXT(a_kernel_finds_memory_that_could_not_be_mapped_before),
		IN_A_CONTEXT(a_kernel_without_descriptors_faults_and_a_later_one_does_not),
	};

	return cmocka_run_group_tests(tests, init_two, NULL);
}
