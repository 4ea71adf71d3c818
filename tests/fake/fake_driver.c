/* fake_driver.c — a driver for tests whose n-th call fails, and that counts the objects not yet released. */
#include "tests/fake/fake_driver.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int calls, fail_at, alive[FAKE_N_KINDS];
static CUresult fail_with;
static fake_behaviour behaviour;
static CUcontext current;
static char handles[FAKE_N_KINDS]; /* the addresses of these bytes are the handles */

static CUresult count_call(void)
{
	return ++calls == fail_at ? fail_with : CUDA_SUCCESS;
}

/* Create an object: count it and set its handle, unless this call fails. */
static CUresult create_object(fake_kind kind, void **handle)
{
	CUresult r = count_call();

	if (r == CUDA_SUCCESS) {
		*handle = &handles[kind];
		alive[kind]++;
	}
	return r;
}

static CUresult release_object(fake_kind kind)
{
	alive[kind]--;
	return CUDA_SUCCESS;
}

static CUresult init(unsigned flags)
{
	return (void)flags, count_call();
}

static CUresult driver_version(int *version)
{
	*version = CUDA_VERSION;
	return count_call();
}

static CUresult error_name(CUresult r, const char **name)
{
	switch (r) {
#define NAME(x) \
	case x: \
		*name = #x; \
		return CUDA_SUCCESS;
		NAME(CUDA_ERROR_OUT_OF_MEMORY)
		NAME(CUDA_ERROR_INVALID_VALUE)
		NAME(CUDA_ERROR_INVALID_PTX)
		NAME(CUDA_ERROR_NO_BINARY_FOR_GPU)
		NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
		NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
		NAME(CUDA_ERROR_NOT_FOUND)
		NAME(CUDA_ERROR_NOT_SUPPORTED)
#undef NAME
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult error_string(CUresult r, const char **text)
{
	*text = r == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "some error";
	return CUDA_SUCCESS;
}

static CUresult device_count(int *n)
{
	*n = behaviour.n_devices;
	return count_call();
}

static CUresult device_get(CUdevice *d, int ordinal)
{
	*d = ordinal;
	return ordinal < behaviour.n_devices ? count_call() : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult device_name(char *name, int n, CUdevice d)
{
	snprintf(name, (size_t)n, "fake GPU %d", d);
	return count_call();
}

static CUresult device_total_mem(size_t *bytes, CUdevice d)
{
	(void)d;
	*bytes = (size_t)1 << 30;
	return count_call();
}

static CUresult device_uuid(CUuuid *uuid, CUdevice d)
{
	memset(uuid, d, sizeof *uuid);
	return count_call();
}

static CUresult device_bus_id(char *text, int n, CUdevice d)
{
	snprintf(text, (size_t)n, "0000:%02x:00.0", (unsigned)d);
	return count_call();
}

static CUresult context_retain(CUcontext *c, CUdevice d)
{
	(void)d;
	return create_object(FAKE_CONTEXT, (void **)c);
}

static CUresult context_release(CUdevice d)
{
	(void)d;
	return release_object(FAKE_CONTEXT);
}

static CUresult context_set(CUcontext c)
{
	CUresult r = c ? count_call() : CUDA_SUCCESS; /* c NULL releases the current context; releases are not counted */

	if (r == CUDA_SUCCESS)
		current = c;
	return r;
}

static CUresult context_get(CUcontext *c)
{
	*c = current;
	return CUDA_SUCCESS;
}

static CUresult context_synchronize(void)
{
	return count_call();
}

static CUresult limit_get(size_t *value, CUlimit which)
{
	(void)which;
	*value = 0;
	return count_call();
}

static CUresult limit_set(CUlimit which, size_t value)
{
	return (void)which, (void)value, count_call();
}

static CUresult library_load(CUlibrary *l, const void *image, CUjit_option *jit, void **values, unsigned n, CUlibraryOption *options,
			     void **option_values, unsigned n_options)
{
	CUresult r = create_object(FAKE_LIBRARY, (void **)l);
	size_t room = 0;
	char *log = NULL;

	(void)options, (void)option_values, (void)n_options;
	if (behaviour.loading)
		behaviour.loading(image, n, jit, values);
	for (unsigned i = 0; i < n; i++) {
		if (jit[i] == CU_JIT_ERROR_LOG_BUFFER)
			log = values[i];
		else if (jit[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			room = (size_t)(uintptr_t)values[i];
	}
	if (r != CUDA_SUCCESS && log && room && behaviour.jit_log)
		snprintf(log, room, "%s", behaviour.jit_log);
	return r;
}

static CUresult library_unload(CUlibrary l)
{
	(void)l;
	return release_object(FAKE_LIBRARY);
}

static CUresult library_kernel(CUkernel *k, CUlibrary l, const char *name)
{
	(void)l;
	if (behaviour.absent_kernel && strcmp(name, behaviour.absent_kernel) == 0)
		return CUDA_ERROR_NOT_FOUND;
	*k = (CUkernel)(void *)&handles[FAKE_LIBRARY];
	return count_call();
}

static CUresult library_global(CUdeviceptr *p, size_t *bytes, CUlibrary l, const char *name)
{
	(void)l, (void)name;
	if (p)
		*p = behaviour.global ? (CUdeviceptr)(uintptr_t)behaviour.global : 4096;
	if (bytes)
		*bytes = behaviour.global_bytes;
	return count_call();
}

static CUresult library_module(CUmodule *m, CUlibrary l)
{
	(void)l;
	*m = (CUmodule)(void *)&handles[FAKE_MODULE];
	return count_call();
}

static CUresult kernel_function(CUfunction *f, CUkernel k)
{
	*f = (CUfunction)(void *)k;
	return count_call();
}

static CUresult kernel_count(unsigned *n, CUlibrary l)
{
	(void)l;
	*n = 1;
	return count_call();
}

static CUresult enumerate_kernels(CUkernel *kernels, unsigned n, CUlibrary l)
{
	(void)l;
	for (unsigned i = 0; i < n; i++)
		kernels[i] = (CUkernel)(void *)&handles[FAKE_LIBRARY];
	return count_call();
}

static CUresult kernel_name(const char **name, CUkernel k)
{
	(void)k;
	*name = "fake_kernel";
	return count_call();
}

static CUresult module_load(CUmodule *m, const void *image)
{
	(void)image;
	return create_object(FAKE_MODULE, (void **)m);
}

static CUresult module_unload(CUmodule m)
{
	(void)m;
	return release_object(FAKE_MODULE);
}

static CUresult module_function(CUfunction *f, CUmodule m, const char *name)
{
	CUkernel k = NULL;
	CUresult r = library_kernel(&k, (CUlibrary)(void *)m, name);

	*f = (CUfunction)(void *)k;
	return r;
}

static CUresult module_global(CUdeviceptr *p, size_t *bytes, CUmodule m, const char *name)
{
	return library_global(p, bytes, (CUlibrary)(void *)m, name);
}

static CUresult function_name(const char **name, CUfunction f)
{
	(void)f;
	*name = "_Z4fakePdi";
	return count_call();
}

static CUresult context_device(CUdevice *d)
{
	*d = 0;
	return count_call();
}

static CUresult function_attribute(int *value, CUfunction_attribute which, CUfunction f)
{
	(void)f;
	*value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? behaviour.max_threads_per_block : 0;
	return count_call();
}

static CUresult function_set_attribute(CUfunction f, CUfunction_attribute which, int value)
{
	(void)f, (void)which, (void)value;
	return count_call();
}

static CUresult function_param(CUfunction f, size_t i, size_t *offset, size_t *bytes)
{
	(void)f;
	if (i >= (size_t)behaviour.n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 8 * i;
	if (bytes)
		*bytes = 8;
	return count_call();
}

static CUresult memory_alloc(CUdeviceptr *p, size_t bytes)
{
	CUresult r = count_call();
	void *memory = r == CUDA_SUCCESS ? malloc(bytes ? bytes : 1) : NULL;

	if (!memory)
		return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
	alive[FAKE_MEMORY]++;
	*p = (CUdeviceptr)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

static CUresult memory_free(CUdeviceptr p)
{
	free((void *)(uintptr_t)p);
	return release_object(FAKE_MEMORY);
}

static CUresult memory_info(size_t *free_bytes, size_t *total)
{
	*free_bytes = *total = (size_t)1 << 30;
	return count_call();
}

static CUresult memory_set(CUdeviceptr p, unsigned char byte, size_t n, CUstream s)
{
	CUresult r = count_call();

	(void)s;
	if (r == CUDA_SUCCESS)
		memset((void *)(uintptr_t)p, byte, n);
	return r;
}

static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes)
{
	CUresult r = count_call();

	if (r == CUDA_SUCCESS)
		memcpy((void *)(uintptr_t)to, from, bytes);
	return r;
}

static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes)
{
	CUresult r = count_call();

	if (r == CUDA_SUCCESS)
		memcpy(to, (const void *)(uintptr_t)from, bytes);
	return r;
}

static CUresult copy_in_async(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
	(void)s;
	return copy_in(to, from, bytes);
}

static CUresult copy_out_async(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
	(void)s;
	return copy_out(to, from, bytes);
}

static CUresult host_alloc(void **p, size_t bytes, unsigned flags)
{
	CUresult r = count_call();

	(void)flags;
	if (r != CUDA_SUCCESS)
		return r;
	*p = aligned_alloc(4096, (bytes / 4096 + 1) * 4096); /* aligned to pages, as a real driver does */
	if (!*p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alive[FAKE_HOST_MEMORY]++;
	return CUDA_SUCCESS;
}

static CUresult host_free(void *p)
{
	free(p);
	return release_object(FAKE_HOST_MEMORY);
}

/* This call is not counted, and so never fails, because no caller depends on its success. */
static CUresult exchange_capture_mode(CUstreamCaptureMode *mode)
{
	*mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *s, unsigned flags)
{
	(void)flags;
	return create_object(FAKE_STREAM, (void **)s);
}

static CUresult stream_destroy(CUstream s)
{
	(void)s;
	return release_object(FAKE_STREAM);
}

static CUresult stream_step(CUstream s)
{
	(void)s;
	return count_call();
}

static CUresult event_create(CUevent *e, unsigned flags)
{
	(void)flags;
	return create_object(FAKE_EVENT, (void **)e);
}

static CUresult event_destroy(CUevent e)
{
	(void)e;
	return release_object(FAKE_EVENT);
}

static CUresult event_record(CUevent e, CUstream s)
{
	(void)e, (void)s;
	return count_call();
}

static CUresult event_step(CUevent e)
{
	(void)e;
	return count_call();
}

static CUresult event_elapsed(float *ms, CUevent from, CUevent to)
{
	(void)from, (void)to;
	*ms = 1.0f;
	return count_call();
}

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
		       CUstream s, void **params, void **extra)
{
	CUresult r = count_call();

	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
	(void)shared_bytes, (void)s, (void)extra;
	if (r == CUDA_SUCCESS && behaviour.launched)
		behaviour.launched(params);
	return r;
}

static CUresult launch_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
				   unsigned shared_bytes, CUstream s, void **params)
{
	return launch(f, gx, gy, gz, bx, by, bz, shared_bytes, s, params, NULL);
}

static CUresult occupancy(int *n, CUfunction f, int block, size_t shared_bytes)
{
	(void)f, (void)block, (void)shared_bytes;
	return *n = 1, count_call();
}

static const gpul_driver table = {
	.name = "fake",
	.version = CUDA_VERSION,
	.runs_machine_code = true,
	.fds_are_files = true,
	.cuInit = init,
	.cuDriverGetVersion = driver_version,
	.cuGetErrorName = error_name,
	.cuGetErrorString = error_string,
	.cuDeviceGetCount = device_count,
	.cuDeviceGet = device_get,
	.cuDeviceGetName = device_name,
	.cuDeviceGetAttribute = fake_device_attribute,
	.cuDeviceTotalMem = device_total_mem,
	.cuDeviceGetUuid = device_uuid,
	.cuDeviceGetPCIBusId = device_bus_id,
	.cuDevicePrimaryCtxRetain = context_retain,
	.cuDevicePrimaryCtxRelease = context_release,
	.cuCtxSetCurrent = context_set,
	.cuCtxGetCurrent = context_get,
	.cuCtxSynchronize = context_synchronize,
	.cuCtxGetLimit = limit_get,
	.cuCtxSetLimit = limit_set,
	.cuLibraryLoadData = library_load,
	.cuLibraryUnload = library_unload,
	.cuLibraryGetKernel = library_kernel,
	.cuLibraryGetGlobal = library_global,
	.cuLibraryGetModule = library_module,
	.cuKernelGetFunction = kernel_function,
	.cuKernelGetName = kernel_name,
	.cuLibraryGetKernelCount = kernel_count,
	.cuLibraryEnumerateKernels = enumerate_kernels,
	.cuModuleLoadData = module_load,
	.cuModuleUnload = module_unload,
	.cuModuleGetFunction = module_function,
	.cuModuleGetGlobal = module_global,
	.cuFuncGetAttribute = function_attribute,
	.cuFuncSetAttribute = function_set_attribute,
	.cuFuncGetParamInfo = function_param,
	.cuFuncGetName = function_name,
	.cuCtxGetDevice = context_device,
	.cuMemAlloc = memory_alloc,
	.cuMemFree = memory_free,
	.cuMemGetInfo = memory_info,
	.cuMemsetD8Async = memory_set,
	.cuMemcpyHtoD = copy_in,
	.cuMemcpyDtoH = copy_out,
	.cuMemcpyHtoDAsync = copy_in_async,
	.cuMemcpyDtoHAsync = copy_out_async,
	.cuMemHostAlloc = host_alloc,
	.cuMemFreeHost = host_free,
	.cuStreamCreate = stream_create,
	.cuStreamDestroy = stream_destroy,
	.cuStreamSynchronize = stream_step,
	.cuStreamQuery = stream_step,
	.cuEventCreate = event_create,
	.cuEventDestroy = event_destroy,
	.cuEventRecord = event_record,
	.cuEventSynchronize = event_step,
	.cuEventQuery = event_step,
	.cuEventElapsedTime = event_elapsed,
	.cuLaunchKernel = launch,
	.cuLaunchCooperativeKernel = launch_cooperative,
	.cuOccupancyMaxActiveBlocksPerMultiprocessor = occupancy,
	.cuThreadExchangeStreamCaptureMode = exchange_capture_mode,
};

const gpul_driver *fake_driver_failing(int n, CUresult with)
{
	behaviour = (fake_behaviour){ .n_devices = 1,
				      .major = 9,
				      .max_threads_per_block = 1024,
				      .max_shared_bytes = 232448,
				      .global_bytes = 8,
				      .granularity_bytes = 65536,
				      .range_bytes = SIZE_MAX / 2 };
	memset(alive, 0, sizeof alive);
	current = NULL;
	calls = 0;
	fail_at = n;
	fail_with = with;
	return &table;
}

const gpul_driver *fake_driver(int n)
{
	return fake_driver_failing(n, CUDA_ERROR_OUT_OF_MEMORY);
}

void fake_fail_next(int n, CUresult with)
{
	fail_at = n ? calls + n : 0;
	fail_with = with;
}

CUresult fake_step(void)
{
	return count_call();
}

void fake_count(fake_kind kind, int more)
{
	alive[kind] += more;
}

fake_behaviour *fake_behave(void)
{
	return &behaviour;
}

int fake_calls(void)
{
	return calls;
}

int fake_alive_of(fake_kind kind)
{
	return alive[kind];
}

int fake_alive(void)
{
	int n = 0;

	for (int i = 0; i < FAKE_N_KINDS; i++)
		n += alive[i];
	return n;
}
