/* calls.c — checks the error codes that a CUDA driver returns for unusual and invalid calls.
 *
 *     calls            prints `call: CUDA_ERROR_NAME`, and `FAIL` for an unexpected error code
 *
 * Uses the driver API without gpuload: LD_LIBRARY_PATH selects the driver.  Each expectation names its source:
 *   SEEN    NVIDIA's driver 580.159 (CUDA 13.0) returned it on an H200
 *   MANUAL  the CUDA 13.0 Driver API manual documents it
 *   OURS    the software driver returns it, and NVIDIA's result is not known: with NVIDIA's driver, a
 *           difference is printed and counted as skipped, not as failed
 * DIFFERS lists the results of both drivers where the software driver's result differs on purpose (softcuda/api/README.md).  No call here
 * has an invalid handle, or NULL as the name of an entry point, because NVIDIA's driver dereferences these pointers.  The name is printed
 * before the call, so that the output shows which call crashed. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum source { SEEN, MANUAL, OURS };

static int n_passed, n_failed, n_skipped, is_soft;

static const char *name_of(CUresult r)
{
	const char *name = NULL;

	return cuGetErrorName(r, &name) == CUDA_SUCCESS && name ? name : "an unknown error";
}

static void print_call(const char *call)
{
	printf("%s: ", call);
	fflush(stdout);
}

static void compare_result(const char *call, CUresult got, CUresult nvidia, CUresult soft, enum source source)
{
	CUresult wanted = is_soft ? soft : nvidia;

	printf("%s\n", name_of(got));
	if (got == wanted) {
		n_passed++;
	} else if (source == OURS && !is_soft) {
		printf("skip %s: %s, the software driver returns %s\n", call, name_of(got), name_of(soft));
		n_skipped++;
	} else {
		printf("FAIL %s: %s, expected %s\n", call, name_of(got), name_of(wanted));
		n_failed++;
	}
}

/* IS: the call must return error.  DIFFERS: NVIDIA's driver must return nvidia, the software driver soft. */
#define IS(call, error, source)             DIFFERS(call, error, error, source)
#define DIFFERS(call, nvidia, soft, source) (print_call(#call), compare_result(#call, (call), CUDA_##nvidia, CUDA_##soft, source))
/* Like IS(), for a call with a freed handle.  NVIDIA's driver is not called: it reads freed memory, and crashed in two of nine runs. */
#define FREED(call, error) \
	do { \
		if (is_soft) \
			IS(call, error, OURS); \
		else \
			printf("skip %s: a freed handle\n", #call), n_skipped++; \
	} while (0)
#define CUDA_OK CUDA_SUCCESS

/* Check a call that must succeed because later calls depend on it. */
static int check_success(CUresult r, const char *call)
{
	if (r == CUDA_SUCCESS)
		return 1;
	printf("FAIL %s: %s; later calls depend on it\n", call, name_of(r));
	n_failed++;
	return 0;
}
#define NEED(call) check_success((call), #call)

static const char ptx[] = ".version 7.5\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .u32 counter = 7;\n"
			  ".visible .entry put(.param .u64 word, .param .u32 value)\n"
			  "{\n"
			  "	.reg .b64 %rd1;\n"
			  "	.reg .b32 %r1;\n"
			  "	ld.param.u64 %rd1, [word];\n"
			  "	ld.param.u32 %r1, [value];\n"
			  "	st.global.u32 [%rd1], %r1;\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry nothing() { ret; }\n"
			  ".visible .entry at_most_64() .maxntid 64 { ret; }\n";

static void before_init(void)
{
	CUdeviceptr p;
	CUcontext ctx;
	CUlibrary library;
	int n;

	IS(cuDeviceGetCount(&n), ERROR_NOT_INITIALIZED, SEEN);
	IS(cuMemAlloc(&p, 16), ERROR_NOT_INITIALIZED, SEEN);
	IS(cuCtxGetCurrent(&ctx), ERROR_NOT_INITIALIZED, SEEN);
	IS(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), ERROR_NOT_INITIALIZED, SEEN);
	IS(cuDriverGetVersion(NULL), ERROR_INVALID_VALUE, SEEN);
	IS(cuInit(1), ERROR_INVALID_VALUE, SEEN);
}

static void devices(void)
{
	CUdevice dev;
	char name[8];
	int n;

	IS(cuDeviceGet(&dev, -1), ERROR_INVALID_DEVICE, SEEN);
	IS(cuDeviceGet(&dev, 99), ERROR_INVALID_DEVICE, MANUAL);
	IS(cuDeviceGetName(name, sizeof name, 99), ERROR_INVALID_DEVICE, MANUAL);
	IS(cuDeviceGetAttribute(&n, (CUdevice_attribute)9999, 0), ERROR_INVALID_VALUE, MANUAL);
	IS(cuDeviceGetByPCIBusId(&dev, "0000:00:00.0"), ERROR_INVALID_DEVICE, OURS);
}

static void entry_points(void)
{
	CUdriverProcAddressQueryResult status;
	const CUuuid id = { { 1, 2, 3 } };
	const void *table;
	void *p;

	IS(cuGetProcAddress("cuNoSuchCall", &p, 13000, 0, &status), OK, MANUAL);
	IS(cuGetProcAddress("cuNoSuchCall", &p, 13000, 0, NULL), OK, MANUAL);
	IS(cuGetProcAddress("cuLibraryLoadData", &p, 11080, 0, &status), OK, MANUAL);
	IS(cuGetProcAddress("cuInit", &p, 14000, 0, &status), ERROR_INVALID_VALUE, OURS);
	DIFFERS(cuGetProcAddress("cuInit", &p, 13000, 3, &status), OK, ERROR_INVALID_VALUE, SEEN);
	IS(cuGetExportTable(&table, &id), ERROR_INVALID_VALUE, SEEN);
}

static void without_a_context(void)
{
	CUcontext ctx;
	CUdevice dev;
	CUlibrary library;
	CUkernel kernel;
	CUfunction f;
	CUmodule module;
	CUdeviceptr p;

	IS(cuCtxGetCurrent(&ctx), OK, SEEN);
	IS(cuCtxGetDevice(&dev), ERROR_INVALID_CONTEXT, SEEN);
	IS(cuCtxSynchronize(), ERROR_INVALID_CONTEXT, SEEN);
	IS(cuCtxPopCurrent(&ctx), ERROR_INVALID_CONTEXT, SEEN);
	IS(cuCtxDestroy(NULL), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemAlloc(&p, 16), ERROR_INVALID_CONTEXT, MANUAL);
	DIFFERS(cuMemFree(0), OK, ERROR_INVALID_CONTEXT, SEEN);
	IS(cuModuleLoadData(&module, ptx), ERROR_INVALID_CONTEXT, MANUAL);
	IS(cuDevicePrimaryCtxRelease(0), ERROR_INVALID_CONTEXT, SEEN);
	IS(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), OK, MANUAL);
	IS(cuLibraryGetKernel(&kernel, library, "nothing"), OK, MANUAL);
	IS(cuLibraryGetKernel(&kernel, library, "none"), ERROR_NOT_FOUND, MANUAL);
	if (NEED(cuLibraryGetKernel(&kernel, library, "put"))) {
		IS(cuKernelGetFunction(&f, kernel), ERROR_INVALID_CONTEXT, MANUAL);
	}
	IS(cuLibraryUnload(library), OK, MANUAL);
}

static void primary_context(void)
{
	CUcontext ctx;
	CUdeviceptr p;
	unsigned flags;
	int active;

	if (!NEED(cuDevicePrimaryCtxRetain(&ctx, 0)) || !NEED(cuCtxSetCurrent(ctx)) || !NEED(cuMemAlloc(&p, 64)))
		return;
	IS(cuDevicePrimaryCtxGetState(0, &flags, &active), OK, SEEN);
	IS(cuCtxDestroy(ctx), ERROR_INVALID_CONTEXT, SEEN);
	IS(cuDevicePrimaryCtxRelease(0), OK, SEEN);
	IS(cuMemFree(p), ERROR_CONTEXT_IS_DESTROYED, SEEN);
	IS(cuDevicePrimaryCtxRetain(&ctx, 0), OK, SEEN);
	IS(cuMemFree(p), ERROR_INVALID_VALUE, SEEN);
	IS(cuDevicePrimaryCtxReset(0), OK, SEEN);
	IS(cuCtxSynchronize(), ERROR_CONTEXT_IS_DESTROYED, SEEN);
	IS(cuCtxSetCurrent(NULL), OK, SEEN);
}

static void destroyed_context(void)
{
	CUcontext a;
	CUdeviceptr p;

	if (!NEED(cuCtxCreate(&a, NULL, 0, 0)) || !NEED(cuCtxPushCurrent(a)))
		return;
	IS(cuCtxDestroy(a), OK, SEEN);
	IS(cuMemAlloc(&p, 16), ERROR_CONTEXT_IS_DESTROYED, SEEN);
	IS(cuCtxDestroy(a), ERROR_CONTEXT_IS_DESTROYED, SEEN);
	IS(cuCtxPushCurrent(a), OK, SEEN);
	IS(cuCtxSynchronize(), ERROR_CONTEXT_IS_DESTROYED, OURS);
	IS(cuCtxSetCurrent(NULL), OK, MANUAL);
	IS(cuCtxSetCurrent(NULL), OK, MANUAL);
}

static void limits(void)
{
	size_t value;
	unsigned flags;

	IS(cuCtxGetLimit(&value, (CUlimit)99), ERROR_INVALID_VALUE, SEEN);
	IS(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), ERROR_UNSUPPORTED_LIMIT, SEEN);
	IS(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE), ERROR_INVALID_VALUE, SEEN);
	IS(cuCtxSetFlags(0x10000), ERROR_INVALID_VALUE, OURS);
	IS(cuCtxGetFlags(&flags), OK, SEEN);
}

static void memory(void)
{
	CUdeviceptr p, base;
	char host[64] = "";
	size_t bytes;
	void *pinned;

	if (!NEED(cuMemAlloc(&p, 16)))
		return;
	IS(cuMemAlloc(&base, 0), ERROR_INVALID_VALUE, MANUAL);
	IS(cuMemAlloc(&base, SIZE_MAX), ERROR_OUT_OF_MEMORY, OURS);
	IS(cuMemAlloc(NULL, 16), ERROR_INVALID_VALUE, MANUAL);
	DIFFERS(cuMemHostAlloc(&pinned, 0, 0), OK, ERROR_INVALID_VALUE, SEEN);
	IS(cuMemHostAlloc(&pinned, 64, 0x80), ERROR_INVALID_VALUE, OURS);
	IS(cuMemcpyHtoD(p, NULL, 0), OK, SEEN);
	IS(cuMemcpyHtoD(p, host, 17), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemcpyHtoD(p + 8, host, 9), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemcpyDtoH(host, p - 1, 4), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemcpyDtoH(host, p, SIZE_MAX), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemcpyHtoD(0, host, 4), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemcpyHtoD(p, NULL, 4), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemcpyDtoD(p, p + 12, 8), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemsetD8(p, 0, 17), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemsetD8(p, 0, 0), OK, OURS);
	IS(cuMemsetD16(p + 1, 0, 1), ERROR_INVALID_VALUE, OURS);
	IS(cuMemsetD32(p + 2, 0, 1), ERROR_INVALID_VALUE, MANUAL);
	IS(cuMemGetAddressRange(&base, &bytes, 16), ERROR_NOT_FOUND, MANUAL);
	IS(cuMemFreeHost((void *)(uintptr_t)p), ERROR_INVALID_VALUE, OURS);
	IS(cuMemFree(p + 4), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemFree((CUdeviceptr)(uintptr_t)host), ERROR_INVALID_VALUE, SEEN);
	IS(cuMemFree(0), OK, SEEN);
	IS(cuMemFree(p), OK, MANUAL);
	IS(cuMemFree(p), ERROR_INVALID_VALUE, MANUAL);
	IS(cuMemcpyHtoD(p, host, 4), ERROR_INVALID_VALUE, OURS);
}

static void modules(void)
{
	CUmodule module;
	CUfunction f;
	CUdeviceptr p;
	size_t bytes;

	IS(cuModuleLoadData(&module, ".version 7.5\n.target sm_75\nnonsense\n"), ERROR_INVALID_PTX, MANUAL);
	IS(cuModuleLoadData(&module, ".version 99.0\n.target sm_75\n.address_size 64\n"), ERROR_UNSUPPORTED_PTX_VERSION, MANUAL);
	IS(cuModuleLoadData(&module, ".version 9.0\n.target sm_20\n.address_size 64\n"), OK, SEEN);
	IS(cuModuleLoadData(&module, ""), ERROR_INVALID_IMAGE, OURS);
	IS(cuModuleLoadData(&module, "\001\002\003"), ERROR_INVALID_IMAGE, OURS);
	IS(cuModuleLoadData(&module, "hello"), ERROR_INVALID_IMAGE, OURS);
	IS(cuModuleLoadData(&module, NULL), ERROR_INVALID_VALUE, MANUAL);
	IS(cuModuleLoad(&module, "no/such/file.ptx"), ERROR_FILE_NOT_FOUND, MANUAL);
	if (!NEED(cuModuleLoadData(&module, ptx)))
		return;
	IS(cuModuleGetFunction(&f, module, "none"), ERROR_NOT_FOUND, SEEN);
	IS(cuModuleGetFunction(&f, module, NULL), ERROR_INVALID_VALUE, SEEN);
	IS(cuModuleGetFunction(&f, NULL, "put"), ERROR_INVALID_HANDLE, OURS);
	IS(cuModuleGetGlobal(&p, &bytes, module, "none"), ERROR_NOT_FOUND, SEEN);
	IS(cuModuleGetGlobal(NULL, NULL, module, "counter"), ERROR_INVALID_VALUE, OURS);
	IS(cuModuleUnload(module), OK, SEEN);
	FREED(cuModuleUnload(module), ERROR_INVALID_HANDLE);
	FREED(cuModuleGetFunction(&f, module, "put"), ERROR_INVALID_HANDLE);
	IS(cuModuleUnload(NULL), ERROR_INVALID_HANDLE, OURS);
}

static CUresult launch_1d(CUfunction f, unsigned blocks, unsigned threads, unsigned shared_bytes, void **params, void **extra)
{
	return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared_bytes, NULL, params, extra);
}

static void launches(CUmodule module, CUdeviceptr word)
{
	CUfunction put, nothing, small;
	size_t offset, bytes, few_bytes = 8;
	struct {
		CUdeviceptr word;
		uint32_t value;
	} buffer = { word, 42 };
	void *params[] = { &buffer.word, &buffer.value };
	void *few[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &few_bytes, CU_LAUNCH_PARAM_END };
	int n;

	if (!NEED(cuModuleGetFunction(&put, module, "put")) || !NEED(cuModuleGetFunction(&nothing, module, "nothing")) ||
	    !NEED(cuModuleGetFunction(&small, module, "at_most_64")))
		return;
	IS(launch_1d(nothing, 1, 1025, 0, NULL, NULL), ERROR_INVALID_VALUE, MANUAL);
	IS(launch_1d(nothing, 0, 1, 0, NULL, NULL), ERROR_INVALID_VALUE, OURS);
	IS(launch_1d(nothing, 1, 0, 0, NULL, NULL), ERROR_INVALID_VALUE, OURS);
	IS(launch_1d(nothing, 1u << 31, 1, 0, NULL, NULL), ERROR_INVALID_VALUE, MANUAL);
	IS(cuLaunchKernel(nothing, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), ERROR_INVALID_VALUE, MANUAL);
	IS(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL), ERROR_INVALID_VALUE, MANUAL);
	IS(launch_1d(nothing, 1, 1, 200 * 1024, NULL, NULL), ERROR_INVALID_VALUE, SEEN);
	IS(launch_1d(small, 1, 65, 0, NULL, NULL), ERROR_INVALID_VALUE, MANUAL);
	IS(cuLaunchCooperativeKernel(nothing, 1000000, 1, 1, 1, 1, 1, 0, NULL, NULL), ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, MANUAL);
	IS(launch_1d(put, 1, 1, 0, params, few), ERROR_INVALID_VALUE, SEEN);
	IS(launch_1d(put, 1, 1, 0, NULL, NULL), ERROR_INVALID_VALUE, SEEN);
	IS(launch_1d(put, 1, 1, 0, NULL, few), OK, SEEN);
	few_bytes = 13;
	IS(launch_1d(put, 1, 1, 0, NULL, few), ERROR_LAUNCH_OUT_OF_RESOURCES, SEEN);
	few_bytes = 0;
	IS(launch_1d(put, 1, 1, 0, NULL, few), ERROR_INVALID_VALUE, SEEN);
	IS(launch_1d(NULL, 1, 1, 0, NULL, NULL), ERROR_INVALID_HANDLE, OURS);
	IS(cuCtxSynchronize(), OK, OURS); /* the context is still usable */
	IS(cuFuncGetParamInfo(put, 1, &offset, &bytes), OK, MANUAL);
	IS(cuFuncGetParamInfo(put, 2, &offset, &bytes), ERROR_INVALID_VALUE, MANUAL);
	IS(cuFuncGetAttribute(&n, (CUfunction_attribute)77, put), ERROR_INVALID_VALUE, MANUAL);
	IS(cuFuncSetAttribute(put, CU_FUNC_ATTRIBUTE_NUM_REGS, 4), ERROR_INVALID_VALUE, MANUAL);
	IS(cuFuncSetAttribute(put, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20), ERROR_INVALID_VALUE, SEEN);
	IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, put, 0, 0), ERROR_INVALID_VALUE, OURS);
}

static void functions(void)
{
	CUmodule module;
	CUfunction nothing;
	CUdeviceptr word;

	if (!NEED(cuModuleLoadData(&module, ptx)) || !NEED(cuMemAlloc(&word, 4)) || !NEED(cuModuleGetFunction(&nothing, module, "nothing")))
		return;
	launches(module, word);
	IS(cuMemFree(word), OK, MANUAL);
	IS(cuModuleUnload(module), OK, SEEN);
	FREED(launch_1d(nothing, 1, 1, 0, NULL, NULL), ERROR_INVALID_HANDLE);
}

static void streams_and_events(void)
{
	CUstream s;
	CUevent a, b, silent;
	float ms;

	IS(cuStreamCreate(&s, 0x40), ERROR_INVALID_VALUE, OURS);
	IS(cuStreamQuery(NULL), OK, MANUAL);
	IS(cuStreamDestroy(NULL), ERROR_INVALID_HANDLE, OURS);
	IS(cuEventDestroy(NULL), ERROR_INVALID_HANDLE, OURS);
	if (!NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING)) || !NEED(cuEventCreate(&a, 0)) || !NEED(cuEventCreate(&b, 0)) ||
	    !NEED(cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING)))
		return;
	IS(cuEventQuery(a), OK, MANUAL);
	IS(cuEventSynchronize(a), OK, MANUAL);
	IS(cuStreamWaitEvent(s, a, 0), OK, MANUAL);
	IS(cuEventElapsedTime(&ms, a, b), ERROR_INVALID_HANDLE, MANUAL);
	IS(cuEventRecord(a, s), OK, MANUAL);
	IS(cuEventElapsedTime(&ms, a, b), ERROR_INVALID_HANDLE, MANUAL);
	IS(cuEventRecord(silent, s), OK, MANUAL);
	IS(cuStreamSynchronize(s), OK, MANUAL);
	IS(cuEventElapsedTime(&ms, a, silent), ERROR_INVALID_HANDLE, MANUAL);
	IS(cuStreamQuery(s), OK, MANUAL);
	IS(cuEventDestroy(a), OK, MANUAL);
	IS(cuEventDestroy(b), OK, MANUAL);
	IS(cuEventDestroy(silent), OK, MANUAL);
	IS(cuStreamDestroy(s), OK, MANUAL);
}

static void in_a_context(void)
{
	CUcontext ctx;

	if (!NEED(cuCtxCreate(&ctx, NULL, 0, 0)))
		return;
	limits();
	memory();
	modules();
	functions();
	streams_and_events();
	IS(cuCtxDestroy(ctx), OK, SEEN);
}

int main(void)
{
	char name[64] = "";

	before_init(); /* calls before cuInit() */
	if (cuInit(0) != CUDA_SUCCESS) {
		printf("0 passed, 0 failed, 1 skipped\n");
		return 77;
	}
	(void)cuDeviceGetName(name, sizeof name, 0);
	is_soft = strncmp(name, "gpuload", 7) == 0;
	devices();
	entry_points();
	without_a_context();
	primary_context();
	destroyed_context();
	in_a_context();
	printf("%d passed, %d failed, %d skipped\n", n_passed, n_failed, n_skipped);
	return n_failed != 0;
}
