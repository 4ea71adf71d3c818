/* test_init.c — calls before cuInit, the error table, and the attributes of the device. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>

static void refuses_every_call_before_cuInit(void **state)
{
	int n;
	CUdevice dev;
	CUcontext ctx;
	CUdeviceptr p;
	CUstream stream;
	CUlibrary library;

	(void)state;
	fails(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	fails(cuDeviceGet(&dev, 0), CUDA_ERROR_NOT_INITIALIZED);
	fails(cuCtxCreate(&ctx, NULL, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
	fails(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_ERROR_NOT_INITIALIZED);
	fails(cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
	fails(cuMemAlloc(&p, 16), CUDA_ERROR_NOT_INITIALIZED);
	fails(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_INITIALIZED);
	fails(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_NOT_INITIALIZED);
}

static void reports_version_and_error_names_before_cuInit(void **state)
{
	const char *text;
	int version;

	(void)state;
	ok(cuDriverGetVersion(&version));
	assert_int_equal(version, 13000);
	fails(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuGetErrorName(CUDA_ERROR_INVALID_PTX, &text));
	assert_string_equal(text, "CUDA_ERROR_INVALID_PTX");
	ok(cuGetErrorString(CUDA_SUCCESS, &text));
	assert_string_equal(text, "no error");
}

static void accepts_repeated_initialisation_and_refuses_flags(void **state)
{
	(void)state;
	fails(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	ok(cuInit(0));
	ok(cuInit(0));
}

static void only_the_numbers_of_errors_have_names(void **state)
{
	int n = 0;

	(void)state;
	for (int code = 0; code < 1100; code++) {
		const char *name = "?", *text = "?";
		CUresult r = cuGetErrorName((CUresult)code, &name);

		assert_int_equal(r, cuGetErrorString((CUresult)code, &text));
		if (r == CUDA_SUCCESS) {
			n++;
			assert_int_equal(strncmp(name, "CUDA_", 5), 0);
			assert_true(strlen(text) > 4);
		} else {
			assert_int_equal(r, CUDA_ERROR_INVALID_VALUE);
			assert_null(name);
			assert_null(text);
		}
	}
	assert_int_equal(n, 101); /* the number of errors of CUDA 13.0 */
	if (on_software_driver()) /* NVIDIA's driver would write to NULL */
		fails(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

static int attribute(CUdevice_attribute a)
{
	int value = -2;

	ok(cuDeviceGetAttribute(&value, a, 0));
	return value;
}

static void presents_one_device_with_the_limits_of_a_gpu(void **state)
{
	int n;
	CUdevice dev;
	char name[64], cut[8];
	size_t bytes;

	(void)state;
	ok(cuDeviceGetCount(&n));
	assert_int_equal(n, 1);
	ok(cuDeviceGet(&dev, 0));
	ok(cuDeviceGetName(name, sizeof name, dev));
	if (on_software_driver())
		assert_string_equal(name, "gpuload software GPU");
	ok(cuDeviceGetName(cut, sizeof cut, dev));
	assert_int_equal(strncmp(cut, name, 7), 0);
	assert_int_equal(cut[7], 0);
	ok(cuDeviceTotalMem(&bytes, dev));
	assert_true(bytes > 1 << 20);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
	assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH), 131072);
	assert_true(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) > 0);
	fails(cuDeviceGetAttribute(&n, (CUdevice_attribute)9999, 0), CUDA_ERROR_INVALID_VALUE);
}

static void finds_a_device_by_its_bus_id(void **state)
{
	char id[16];
	CUdevice dev = -1;
	CUuuid uuid;

	(void)state;
	ok(cuDeviceGetPCIBusId(id, sizeof id, 0));
	ok(cuDeviceGetByPCIBusId(&dev, id));
	assert_int_equal(dev, 0);
	fails(cuDeviceGetByPCIBusId(&dev, "0000:01:00.0"), CUDA_ERROR_INVALID_DEVICE);
	fails(cuDeviceGetPCIBusId(id, 4, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuDeviceGetUuid(&uuid, 0));
	if (on_software_driver())
		assert_memory_equal(uuid.bytes, "\1gpuload-softgpu", 16);
}

static void refuses_a_device_that_does_not_exist(void **state)
{
	CUdevice dev;
	CUcontext ctx;
	char name[8];
	int value;

	(void)state;
	fails(cuDeviceGet(&dev, 1), CUDA_ERROR_INVALID_DEVICE);
	fails(cuDeviceGet(&dev, -1), CUDA_ERROR_INVALID_DEVICE);
	fails(cuDeviceGetName(name, sizeof name, 7), CUDA_ERROR_INVALID_DEVICE);
	fails(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 7), CUDA_ERROR_INVALID_DEVICE);
	fails(cuDevicePrimaryCtxRetain(&ctx, 7), CUDA_ERROR_INVALID_DEVICE);
	fails(cuCtxCreate(&ctx, NULL, 0, 7), CUDA_ERROR_INVALID_DEVICE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_every_call_before_cuInit),
		cmocka_unit_test(reports_version_and_error_names_before_cuInit),
		cmocka_unit_test(accepts_repeated_initialisation_and_refuses_flags),
		cmocka_unit_test(only_the_numbers_of_errors_have_names),
		cmocka_unit_test(presents_one_device_with_the_limits_of_a_gpu),
		cmocka_unit_test(finds_a_device_by_its_bus_id),
		cmocka_unit_test(refuses_a_device_that_does_not_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
