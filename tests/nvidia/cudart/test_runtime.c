/* test_runtime.c — registration and runtime calls with a driver that fails on request; needs neither nvcc nor a GPU,
 * because this file contains the calls that nvcc would generate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "nvidia/cudart/rt_calls_internal.h"
#include "tests/fake/fake_runtime.h"

static const unsigned long long fatbin[] = { 0x0010000100000000ull + 0xba55ed50u, 0 };
static gpul_rt_wrapper wrapper = { GPUL_RT_WRAPPER_MAGIC, GPUL_RT_WHOLE, fatbin, NULL };

static char stub, host_variable[64]; /* only their addresses are used: they are registered */
static char variable_name[] = "variable", kernel_name[] = "_Z6kernelv";

static void **registered(void)
{
	void **handle = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterFunction(handle, &stub, &stub, kernel_name, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, host_variable, host_variable, variable_name, 0, sizeof host_variable, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
	return handle;
}

/* Begin a test with a driver whose call number fail_at fails; 0: no call fails. */
static void begin(int fail_at)
{
	gpul_rt_use(fake_runtime_driver(fail_at));
	fake_behave()->global = host_variable;
	gpul_rt_forget_fault();
	(void)cudaGetLastError();
}

/* ---- each runtime call, with each of its driver calls failing ------------------------------ */

/* Return the first error of two calls; the arguments are evaluated, so both calls are made. */
static cudaError_t first_error(cudaError_t a, cudaError_t b)
{
	return a ? a : b;
}

static cudaError_t allocate_copy_free(void)
{
	char here[16] = "bytes", back[16] = "";
	void *p = NULL;
	cudaError_t e = cudaMalloc(&p, 16);

	if (e)
		return e;
	e = cudaMemcpy(p, here, 16, cudaMemcpyHostToDevice);
	e = first_error(e, cudaMemcpy(back, p, 16, cudaMemcpyDefault));
	e = first_error(e, cudaMemcpy(back, p, 16, cudaMemcpyDeviceToHost));
	e = first_error(e, cudaMemset(p, 0, 16));
	e = first_error(e, cudaMemset2D(p, 4, 0, 4, 4));
	e = first_error(e, cudaMemcpy2D(p, 4, here, 4, 4, 4, cudaMemcpyHostToDevice));
	return first_error(cudaFree(p), e);
}

static cudaError_t allocate_on_the_host(void)
{
	void *p = NULL, *d;
	cudaError_t e = cudaMallocHost(&p, 16);

	if (e)
		return e;
	e = cudaHostGetDevicePointer(&d, p, 0);
	return first_error(cudaFreeHost(p), e);
}

static cudaError_t allocate_in_order(void)
{
	cudaStream_t s = NULL;
	void *p = NULL;
	cudaError_t e = cudaStreamCreate(&s);

	if (e)
		return e;
	e = cudaMallocAsync(&p, 16, s);
	if (!e) {
		e = cudaMemsetAsync(p, 0, 16, s);
		e = first_error(e, cudaFreeAsync(p, s));
	}
	e = first_error(e, cudaStreamSynchronize(s));
	return first_error(cudaStreamDestroy(s), e);
}

static cudaError_t record_events(void)
{
	cudaEvent_t event = NULL;
	float ms;
	cudaError_t e = cudaEventCreate(&event);

	if (e)
		return e;
	e = cudaEventRecord(event, NULL);
	e = first_error(e, cudaEventSynchronize(event));
	e = first_error(e, cudaStreamWaitEvent(NULL, event, 0));
	e = first_error(e, cudaEventElapsedTime(&ms, event, event));
	return first_error(cudaEventDestroy(event), e);
}

static cudaError_t launch_each_way(void)
{
	cudaLaunchConfig_t config = { .gridDim = { 1, 1, 1 }, .blockDim = { 1, 1, 1 } };
	dim3 one = { 1, 1, 1 };
	cudaFunction_t f;
	cudaKernel_t k;
	cudaError_t e = __cudaGetKernel(&k, &stub);

	e = first_error(e, __cudaLaunchKernel(k, one, one, NULL, 0, NULL));
	e = first_error(e, __cudaLaunchKernel_ptsz(k, one, one, NULL, 0, NULL));
	e = first_error(e, cudaLaunchKernel(&stub, one, one, NULL, 0, NULL));
	e = first_error(e, cudaLaunchCooperativeKernel(&stub, one, one, NULL, 0, NULL));
	e = first_error(e, cudaLaunchKernelExC(&config, &stub, NULL));
	return first_error(e, cudaGetFuncBySymbol(&f, &stub));
}

static cudaError_t query_a_kernel(void)
{
	const char *name;
	int n = 0;
	cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &stub, 32, 0);

	e = first_error(e, cudaFuncSetAttribute(&stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 9));
	return first_error(e, cudaFuncGetName(&name, &stub));
}

static cudaError_t use_a_variable(void)
{
	int value = 7, back = 0;
	void *address;
	size_t bytes = 0;
	cudaError_t e = cudaMemcpyToSymbol(host_variable, &value, sizeof value, 8, cudaMemcpyHostToDevice);

	e = first_error(e, cudaMemcpyFromSymbol(&back, host_variable, sizeof back, 8, cudaMemcpyDeviceToHost));
	e = first_error(e, cudaGetSymbolAddress(&address, host_variable));
	e = first_error(e, cudaGetSymbolSize(&bytes, host_variable));
	if (!e && (back != 7 || address != host_variable || bytes != sizeof host_variable))
		fail_msg("the copies did not access the variable");
	return e;
}

static cudaError_t query_devices(void)
{
	int n = 0, device = -1;
	unsigned flags;
	size_t free_bytes, total;
	cudaError_t e = cudaGetDeviceCount(&n);

	e = first_error(e, cudaSetDevice(0));
	e = first_error(e, cudaGetDevice(&device));
	e = first_error(e, cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 0));
	e = first_error(e, cudaGetDeviceFlags(&flags));
	e = first_error(e, cudaMemGetInfo(&free_bytes, &total));
	e = first_error(e, cudaDeviceSynchronize());
	return first_error(e, cudaDeviceReset());
}

static void reports_every_failing_driver_call(void **state)
{
	static cudaError_t (*const scenarios[])(void) = {
		allocate_copy_free, allocate_on_the_host, allocate_in_order, record_events,
		launch_each_way,    query_a_kernel,       use_a_variable,    query_devices,
	};

	(void)state;
	for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
		for (int n = 1;; n++) {
			void **handle = registered();
			cudaError_t e;
			int calls;

			begin(n);
			e = scenarios[i]();
			calls = fake_calls();
			__cudaUnregisterFatBinary(handle);
			assert_int_equal(fake_alive_of(FAKE_LIBRARY), 0);
			assert_int_equal(fake_alive_of(FAKE_MEMORY), 0);
			assert_int_equal(fake_alive_of(FAKE_HOST_MEMORY), 0);
			assert_int_equal(fake_alive_of(FAKE_STREAM), 0);
			assert_int_equal(fake_alive_of(FAKE_EVENT), 0);
			if (e == cudaSuccess) {
				assert_int_equal(n, calls + 1); /* each driver call has failed once */
				assert_int_equal(cudaGetLastError(), cudaSuccess);
				break;
			}
			assert_int_equal(e, cudaErrorMemoryAllocation);
			assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
			assert_int_equal(cudaGetLastError(), cudaSuccess);
		}
	}
}

/* ---- registration ------------------------------------------------------------------------ */

static const dim3 one = { 1, 1, 1 };

static void an_unregistered_kernel_is_unknown(void **state)
{
	void **handle;
	cudaFunction_t f;

	(void)state;
	begin(0);
	handle = registered();
	assert_int_equal(cudaLaunchKernel(&stub, one, one, NULL, 0, NULL), cudaSuccess);
	assert_int_equal(fake_alive_of(FAKE_LIBRARY), 1);
	__cudaUnregisterFatBinary(handle);
	assert_int_equal(fake_alive_of(FAKE_LIBRARY), 0);
	assert_int_equal(cudaGetFuncBySymbol(&f, &stub), cudaErrorInvalidDeviceFunction);
	assert_int_equal(cudaMemcpyToSymbol(host_variable, "", 1, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
}

static void an_image_is_loaded_once_and_only_when_needed(void **state)
{
	void **a, **b;

	(void)state;
	begin(0);
	a = registered();
	b = __cudaRegisterFatBinary(&wrapper); /* no symbol of this image is used */
	assert_int_equal(fake_calls(), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cudaLaunchKernel(&stub, one, one, NULL, 0, NULL), cudaSuccess);
	assert_int_equal(fake_alive_of(FAKE_LIBRARY), 1);
	__cudaUnregisterFatBinary(b);
	__cudaUnregisterFatBinary(a);
	__cudaUnregisterFatBinary(a); /* the image is no longer registered: the call does nothing */
	assert_int_equal(fake_alive_of(FAKE_LIBRARY), 0);
}

static void finds_each_of_many_kernels_in_many_images(void **state)
{
	enum { IMAGES = 50, EACH = 100 };
	static char stubs[IMAGES][EACH];
	void **handle[IMAGES];
	cudaFunction_t f;

	(void)state;
	begin(0);
	for (int i = 0; i < IMAGES; i++) {
		handle[i] = __cudaRegisterFatBinary(&wrapper);
		for (int k = 0; k < EACH; k++)
			__cudaRegisterFunction(handle[i], &stubs[i][k], NULL, kernel_name, -1, NULL, NULL, NULL, NULL, NULL);
	}
	for (int i = 0; i < IMAGES; i += 2)
		__cudaUnregisterFatBinary(handle[i]);
	for (int i = 0; i < IMAGES; i++)
		for (int k = 0; k < EACH; k++)
			assert_int_equal(cudaGetFuncBySymbol(&f, &stubs[i][k]), i % 2 ? cudaSuccess : cudaErrorInvalidDeviceFunction);
	assert_int_equal(fake_alive_of(FAKE_LIBRARY), IMAGES / 2);
	for (int i = 1; i < IMAGES; i += 2)
		__cudaUnregisterFatBinary(handle[i]);
	assert_int_equal(fake_alive_of(FAKE_LIBRARY), 0);
}

static void the_first_launch_reports_an_invalid_fat_binary(void **state)
{
	gpul_rt_wrapper broken[] = { { 0x12345678, 1, fatbin, NULL },
				     { GPUL_RT_WRAPPER_MAGIC, 3, fatbin, NULL },
				     { GPUL_RT_WRAPPER_MAGIC, 0, NULL, NULL } };

	(void)state;
	for (int i = 0; i < 3; i++) {
		void **handle = __cudaRegisterFatBinary(&broken[i]);

		begin(0);
		__cudaRegisterFunction(handle, &stub, &stub, kernel_name, -1, NULL, NULL, NULL, NULL, NULL);
		assert_int_equal(cudaLaunchKernel(&stub, one, one, NULL, 0, NULL), cudaErrorInvalidKernelImage);
		assert_int_equal(cudaGetLastError(), cudaErrorInvalidKernelImage);
		__cudaUnregisterFatBinary(handle);
	}
}

static void every_launch_reports_a_kernel_that_the_image_lacks(void **state)
{
	void **handle = registered();

	(void)state;
	begin(0);
	fake_behave()->absent_kernel = kernel_name;
	for (int i = 0; i < 2; i++) { /* every launch reports the missing kernel, not only the first */
		cudaKernel_t k;

		assert_int_equal(__cudaGetKernel(&k, &stub), cudaSuccess);
		assert_int_equal(__cudaLaunchKernel(k, one, one, NULL, 0, NULL), cudaErrorInvalidDeviceFunction);
	}
	__cudaUnregisterFatBinary(handle);
}

/* ---- managed memory ---------------------------------------------------------------------- */

static char managed_bytes[16];
static int n_placed;

static CUresult get_managed(CUdeviceptr *out, size_t *bytes, CUlibrary l, const char *name)
{
	(void)l, (void)bytes;
	assert_string_equal(name, variable_name);
	*out = (CUdeviceptr)(uintptr_t)managed_bytes;
	n_placed++;
	return CUDA_SUCCESS;
}

static void the_first_use_sets_the_pointers_to_managed_variables(void **state)
{
	gpul_driver driver = *fake_runtime_driver(0);
	void **handle, *pointer = NULL, *address = NULL;
	size_t bytes = 0;

	(void)state;
	begin(0);
	driver.cuLibraryGetManaged = get_managed;
	gpul_rt_use(&driver);
	n_placed = 0;
	handle = registered();
	__cudaRegisterManagedVar(handle, &pointer, NULL, variable_name, 0, sizeof managed_bytes, 0, 0);
	assert_null(pointer);
	assert_int_equal(__cudaInitModule(handle), 1);
	assert_ptr_equal(pointer, managed_bytes);
	assert_int_equal(__cudaInitModule(handle), 1);
	assert_int_equal(n_placed, 1);
	assert_int_equal(cudaGetSymbolAddress(&address, pointer), cudaSuccess);
	assert_ptr_equal(address, managed_bytes);
	assert_int_equal(cudaGetSymbolSize(&bytes, pointer), cudaSuccess);
	assert_int_equal(bytes, sizeof managed_bytes);
	__cudaUnregisterFatBinary(handle);
	assert_int_equal(cudaGetSymbolSize(&bytes, pointer), cudaErrorInvalidSymbol);
	gpul_rt_use(fake_runtime_driver(0));
}

/* ---- separate compilation, when the linked image has nothing for the device --------------- */

static gpul_driver linker; /* the fake driver, with a linker that counts its calls */
static int parts_added, linkers_alive;
static const char linked_image[] = "linked";

static CUresult load_only_linked(CUlibrary *l, const void *image, CUjit_option *jit, void **values, unsigned n, CUlibraryOption *options,
				 void **option_values, unsigned n_options)
{
	if (image != linked_image)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	return fake_runtime_driver(0)->cuLibraryLoadData(l, image, jit, values, n, options, option_values, n_options);
}

static CUresult link_create(unsigned n, CUjit_option *options, void **values, CUlinkState *out)
{
	(void)n, (void)options, (void)values;
	*out = (CUlinkState)(void *)&linker;
	linkers_alive++;
	return CUDA_SUCCESS;
}

static CUresult link_add(CUlinkState l, CUjitInputType type, void *data, size_t bytes, const char *name, unsigned n, CUjit_option *options,
			 void **values)
{
	(void)l, (void)data, (void)name, (void)n, (void)options, (void)values;
	if (type != CU_JIT_INPUT_FATBINARY || bytes != sizeof fatbin)
		return CUDA_ERROR_INVALID_VALUE;
	parts_added++;
	return CUDA_SUCCESS;
}

static CUresult link_complete(CUlinkState l, void **image, size_t *bytes)
{
	(void)l;
	memcpy(image, &(const void *){ linked_image }, sizeof *image);
	*bytes = sizeof linked_image;
	return parts_added == 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

static CUresult link_destroy(CUlinkState l)
{
	(void)l;
	linkers_alive--;
	return CUDA_SUCCESS;
}

static void links_the_parts_if_the_image_has_nothing_for_this_device(void **state)
{
	const void *two[] = { fatbin, fatbin, NULL }, *one_part[] = { fatbin, NULL };
	gpul_rt_wrapper separate = { GPUL_RT_WRAPPER_MAGIC, GPUL_RT_LINKED, fatbin, NULL };

	(void)state;
	begin(0);
	linker = *fake_runtime_driver(0);
	linker.cuLibraryLoadData = load_only_linked;
	linker.cuLinkCreate = link_create;
	linker.cuLinkAddData = link_add;
	linker.cuLinkComplete = link_complete;
	linker.cuLinkDestroy = link_destroy;
	for (int i = 0; i < 3; i++) {
		void **handle = __cudaRegisterFatBinary(&separate);

		gpul_rt_use(&linker);
		parts_added = 0;
		separate.parts = i == 0 ? two : i == 1 ? one_part : NULL;
		__cudaRegisterFunction(handle, &stub, &stub, kernel_name, -1, NULL, NULL, NULL, NULL, NULL);
		assert_int_equal(cudaLaunchKernel(&stub, one, one, NULL, 0, NULL), i == 0   ? cudaSuccess
										   : i == 1 ? cudaErrorInvalidPtx
											    : cudaErrorNoKernelImageForDevice);
		assert_int_equal(linkers_alive, 0);
		__cudaUnregisterFatBinary(handle);
	}
	(void)cudaGetLastError();
}

/* ---- <<<>>> ------------------------------------------------------------------------------ */

static void nested_launch_configurations_form_a_stack(void **state)
{
	cudaStream_t stream = NULL;
	size_t shared_bytes = 0;
	dim3 grid, block;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(__cudaPushCallConfiguration((dim3){ i, 2, 3 }, one, i, NULL), 0);
	for (unsigned i = 3; i-- > 0;) {
		assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), cudaSuccess);
		assert_int_equal(grid.x, i);
		assert_int_equal(shared_bytes, i);
	}
	assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), cudaErrorMissingConfiguration);
	assert_int_equal(cudaGetLastError(), cudaErrorMissingConfiguration);
}

static void refuses_too_many_nested_launch_configurations(void **state)
{
	size_t shared_bytes;
	cudaStream_t stream;
	dim3 grid, block;
	int n = 0;

	(void)state;
	while (n < 1000 && !__cudaPushCallConfiguration(one, one, 0, NULL))
		n++;
	assert_in_range(n, 16, 999);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchMaxDepthExceeded);
	while (n--)
		assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), cudaSuccess);
}

/* ---- errors, threads --------------------------------------------------------------------- */

/* tests/nvidia/cudart/test_shared.py compares names and texts with those of NVIDIA's runtime. */
static void every_error_has_a_name_and_a_text(void **state)
{
	static const char unknown[] = "unrecognized error code";

	(void)state;
	assert_string_equal(cudaGetErrorName(cudaSuccess), "cudaSuccess");
	assert_string_equal(cudaGetErrorString(cudaSuccess), "no error");
	assert_string_equal(cudaGetErrorName((cudaError_t)-1), unknown);
	for (int number = 0; number < 1100; number++) {
		const char *name = cudaGetErrorName((cudaError_t)number);

		assert_int_equal(strcmp(name, unknown) == 0, strcmp(cudaGetErrorString((cudaError_t)number), unknown) == 0);
		assert_true(strcmp(name, unknown) == 0 || strncmp(name, "cuda", 4) == 0);
	}
}

static void *synchronize_in_a_thread(void *unused)
{
	(void)unused;
	if (cudaGetLastError() != cudaSuccess)
		return NULL;
	return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? &stub : NULL;
}

static void each_thread_has_its_own_last_error(void **state)
{
	pthread_t thread;
	void *good = NULL;

	(void)state;
	gpul_rt_use(fake_runtime_driver(0));
	assert_int_equal(gpul_rt_fail(cudaErrorInvalidValue, "of this thread"), cudaErrorInvalidValue);
	(void)fake_driver_failing(4, CUDA_ERROR_ILLEGAL_ADDRESS); /* the call after device count, device get and context retain */
	assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidValue);
	assert_int_equal(pthread_create(&thread, NULL, synchronize_in_a_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, &good), 0);
	assert_ptr_equal(good, &stub);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
}

static void every_call_reports_an_invalid_choice_of_driver(void **state)
{
	char *before = getenv("GPULOAD_DRIVER") ? strdup(getenv("GPULOAD_DRIVER")) : NULL;
	int version = -1, n;
	void *p;

	(void)state;
	gpul_rt_use(NULL);
	setenv("GPULOAD_DRIVER", "neither", 1);
	assert_int_equal(cudaMalloc(&p, 16), cudaErrorInitializationError);
	assert_int_equal(cudaGetDeviceCount(&n), cudaErrorInitializationError);
	assert_int_equal(cudaDriverGetVersion(&version), cudaSuccess);
	assert_int_equal(version, 0);
	if (before)
		setenv("GPULOAD_DRIVER", before, 1);
	else
		unsetenv("GPULOAD_DRIVER");
	free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_every_failing_driver_call),
		cmocka_unit_test(an_unregistered_kernel_is_unknown),
		cmocka_unit_test(an_image_is_loaded_once_and_only_when_needed),
		cmocka_unit_test(finds_each_of_many_kernels_in_many_images),
		cmocka_unit_test(the_first_launch_reports_an_invalid_fat_binary),
		cmocka_unit_test(every_launch_reports_a_kernel_that_the_image_lacks),
		cmocka_unit_test(the_first_use_sets_the_pointers_to_managed_variables),
		cmocka_unit_test(links_the_parts_if_the_image_has_nothing_for_this_device),
		cmocka_unit_test(nested_launch_configurations_form_a_stack),
		cmocka_unit_test(refuses_too_many_nested_launch_configurations),
		cmocka_unit_test(every_error_has_a_name_and_a_text),
		cmocka_unit_test(each_thread_has_its_own_last_error),
		cmocka_unit_test(every_call_reports_an_invalid_choice_of_driver),
	};

	return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}
