/* memcheck_program.c — a driver API program with one fault, which its argument selects.
 * tests/softcuda/tools/memcheck/test_memcheck_program.py runs it. */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			  ".visible .entry copy(.param .u64 to, .param .u64 from)\n"
			  "{\n"
			  "	.reg .b32 %r<4>; .reg .b64 %d<8>;\n"
			  "	ld.param.u64 %d1, [to];\n"
			  "	ld.param.u64 %d2, [from];\n"
			  "	mov.u32 %r1, %tid.x;\n"
			  "	mul.wide.u32 %d3, %r1, 4;\n"
			  "	add.u64 %d1, %d1, %d3;\n"
			  "	add.u64 %d2, %d2, %d3;\n"
			  "	ld.global.u32 %r2, [%d2];\n"
			  "	st.global.u32 [%d1], %r2;\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .global .align 4 .b8 variable[250];\n"
			  ".visible .const .align 4 .b8 constant[250];\n"
			  ".visible .global .align 4 .b8 whole_variable[1024];\n"
			  ".visible .const .align 4 .b8 whole_constant[1024];\n";

enum { N = 64, BYTES = 4 * N };

static CUcontext ctx;
static CUmodule module;
static CUfunction copy;
static CUdeviceptr a, b;

__attribute__((noinline)) static void make_buffers(void)
{
	if (cuMemAlloc(&a, BYTES) || cuMemAlloc(&b, BYTES))
		exit(2);
}

__attribute__((noinline)) static void free_buffer(CUdeviceptr p)
{
	printf("cuMemFree: %d\n", (int)cuMemFree(p));
}

static CUresult copy_on_gpu(CUdeviceptr to, CUdeviceptr from)
{
	void *args[] = { &to, &from };

	cuLaunchKernel(copy, 1, 1, 1, N, 1, 1, 0, NULL, args, NULL);
	return cuCtxSynchronize();
}

static void free_all(void)
{
	cuMemFree(a);
	cuMemFree(b);
}

/* ---- faults, and programs without one ------------------------------------------------------------------------------ */

static void double_free(void)
{
	free_buffer(a);
	free_buffer(a);
	cuMemFree(b);
}

static void invalid_free(void)
{
	free_buffer(a + 16);
	free_buffer(12345);
	free_all();
}

static void use_after_free(void)
{
	cuMemsetD8(a, 1, BYTES);
	free_buffer(a);
	copy_on_gpu(b, a);
}

static void use_after_free_async(void)
{
	CUdeviceptr p = 0;

	cuMemAllocAsync(&p, BYTES, NULL);
	cuMemsetD8(p, 1, BYTES);
	cuMemFreeAsync(p, NULL);
	copy_on_gpu(b, p);
}

static void double_free_async(void)
{
	CUdeviceptr p = 0;

	cuMemAllocAsync(&p, BYTES, NULL);
	cuMemFreeAsync(p, NULL);
	cuStreamSynchronize(NULL);
	printf("cuMemFreeAsync: %d\n", (int)cuMemFreeAsync(p, NULL));
	free_all();
}

/* Makes copies whose end or start is outside of all allocations. */
static void wrong_copies(void)
{
	char text[2 * BYTES] = "";

	printf("cuMemcpy: %d\n", (int)cuMemcpy(a, (uintptr_t)text, 2 * BYTES));
	printf("cuMemsetD8: %d\n", (int)cuMemsetD8(a + 16, 1, BYTES));
	free_buffer(a);
	printf("cuMemcpyDtoD: %d\n", (int)cuMemcpyDtoD(b, a, BYTES));
	cuMemFree(b);
}

static void copies_of_lost_memory(void)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cuMemHostRegister(p, BYTES, 0);
	munmap(p, BYTES);
	printf("cuMemcpyHtoD: %d\n", (int)cuMemcpyHtoD(a, p, BYTES));
	printf("cuMemcpyDtoH: %d\n", (int)cuMemcpyDtoH((void *)(uintptr_t)4096, a, BYTES));
	cuMemHostUnregister(p);
	free_all();
}

static void leak(void)
{
	cuMemFree(a);
}

static void leak_in_context(void)
{
	cuMemFree(a);
	cuCtxDestroy(ctx);
}

static void unwritten(void)
{
	copy_on_gpu(b, a);
	free_all();
}

static void partly_unwritten(void)
{
	cuMemsetD8(a, 1, BYTES / 2);
	copy_on_gpu(b, a);
	free_all();
}

/* Copying unwritten memory is not an error, but reading the copy is. */
static void copy_of_unwritten(void)
{
	CUdeviceptr c = 0;

	cuMemAlloc(&c, BYTES);
	cuMemcpyDtoD(a, c, BYTES);
	cuMemFree(c);
	copy_on_gpu(b, a);
	free_all();
}

static void written_by_copies(void)
{
	unsigned host[N] = { 0 };
	CUDA_MEMCPY2D rows = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			       .srcHost = host,
			       .srcPitch = 32,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = a,
			       .dstPitch = 64,
			       .WidthInBytes = 32,
			       .Height = 4 };

	cuMemcpy2D(&rows); /* copies the even rows of 32 bytes */
	rows.dstDevice = a + 32;
	cuMemcpy2D(&rows); /* copies the odd rows */
	copy_on_gpu(b, a);
	cuMemcpyDtoD(a, b, BYTES);
	copy_on_gpu(b, a);
	free_all();
}

static void written_by_graph(void)
{
	CUgraph g = NULL;
	CUgraphExec e = NULL;
	CUstream s = NULL;

	cuStreamCreate(&s, 0);
	cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
	cuMemsetD32Async(a, 7, N, s);
	cuStreamEndCapture(s, &g);
	cuGraphInstantiate(&e, g, 0);
	cuGraphLaunch(e, s);
	cuStreamSynchronize(s);
	copy_on_gpu(b, a);
	cuGraphExecDestroy(e);
	cuGraphDestroy(g);
	cuStreamDestroy(s);
	free_all();
}

static void written_by_cpu(void)
{
	unsigned *host = NULL;

	cuMemAllocHost((void **)&host, BYTES);
	copy_on_gpu(b, (CUdeviceptr)(uintptr_t)host);
	cuMemFreeHost(host);
	free_all();
}

static void allocates_much(void)
{
	for (int k = 0; k < 20000; k++) {
		CUdeviceptr p = 0;

		cuMemAlloc(&p, 100000);
		cuMemFree(p);
	}
	for (int k = 0; k < 64; k++) {
		CUdeviceptr p = 0;

		cuMemAlloc(&p, 256 << 20);
		cuMemsetD8(p, 0, 1 << 20);
		cuMemFree(p);
	}
	free_all();
}

/* ---- overruns: the last lanes of copy() access 6 bytes after an allocation of ODD bytes -------------------------------------- */

enum { ODD = BYTES - 6 };

static void overrun(CUdeviceptr p)
{
	cuMemsetD8(b, 1, BYTES);
	printf("copy to it: %d\n", (int)copy_on_gpu(p, b));
}

static void overrun_device(void)
{
	CUdeviceptr p;

	if (!cuMemAlloc(&p, ODD))
		overrun(p);
}

static void overrun_pitch(void)
{
	CUdeviceptr p;
	size_t pitch;

	if (!cuMemAllocPitch(&p, &pitch, ODD, 3, 4))
		overrun(p + 2 * pitch);
}

static void overrun_async(void)
{
	CUdeviceptr p;

	if (!cuMemAllocAsync(&p, ODD, NULL))
		overrun(p);
}

static void overrun_pool(void)
{
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemoryPool pool;
	CUdeviceptr p;

	if (!cuMemPoolCreate(&pool, &properties) && !cuMemAllocFromPoolAsync(&p, ODD, pool, NULL))
		overrun(p);
}

static void overrun_shared_pool(void)
{
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
				      .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				      .maxSize = 1 << 22 };
	CUmemoryPool pool;
	CUdeviceptr p;

	if (!cuMemPoolCreate(&pool, &properties) && !cuMemAllocFromPoolAsync(&p, ODD, pool, NULL))
		overrun(p);
}

static void overrun_managed(void)
{
	CUdeviceptr p;

	if (!cuMemAllocManaged(&p, ODD, CU_MEM_ATTACH_GLOBAL))
		overrun(p);
}

static void overrun_host(void)
{
	CUdeviceptr p;
	void *host;

	if (!cuMemHostAlloc(&host, ODD, 0) && !cuMemHostGetDevicePointer(&p, host, 0))
		overrun(p);
}

static void overrun_variable(void)
{
	CUdeviceptr p;

	if (!cuModuleGetGlobal(&p, NULL, module, "variable"))
		overrun(p);
}

static void overrun_constant(void)
{
	CUdeviceptr p;

	if (!cuModuleGetGlobal(&p, NULL, module, "constant"))
		printf("copy to it: %d\n", (int)copy_on_gpu(b, p));
}

static void store_to_constant(void)
{
	CUdeviceptr p;

	cuMemsetD32(a, 1, N);
	if (!cuModuleGetGlobal(&p, NULL, module, "whole_constant"))
		printf("copy to it: %d\n", (int)copy_on_gpu(p, a));
	free_all();
}

static void host_pointer(void)
{
	unsigned *words = calloc(N, sizeof *words);

	copy_on_gpu(b, (uintptr_t)words);
	free(words);
}

/* The arrays end at the end of an allocation unit; the kernel reads the words after them. */
static void read_behind(const char *name)
{
	CUdeviceptr p;

	if (!cuModuleGetGlobal(&p, NULL, module, name))
		printf("copy from behind it: %d\n", (int)copy_on_gpu(b, p + 1024));
}

static void overrun_whole_variable(void)
{
	read_behind("whole_variable");
}

static void overrun_whole_constant(void)
{
	read_behind("whole_constant");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "double_free", double_free },
	{ "invalid_free", invalid_free },
	{ "use_after_free", use_after_free },
	{ "use_after_free_async", use_after_free_async },
	{ "double_free_async", double_free_async },
	{ "wrong_copies", wrong_copies },
	{ "copies_of_lost_memory", copies_of_lost_memory },
	{ "leak", leak },
	{ "leak_in_context", leak_in_context },
	{ "unwritten", unwritten },
	{ "partly_unwritten", partly_unwritten },
	{ "copy_of_unwritten", copy_of_unwritten },
	{ "written_by_copies", written_by_copies },
	{ "written_by_graph", written_by_graph },
	{ "written_by_cpu", written_by_cpu },
	{ "allocates_much", allocates_much },
	{ "overrun_device", overrun_device },
	{ "overrun_pitch", overrun_pitch },
	{ "overrun_async", overrun_async },
	{ "overrun_pool", overrun_pool },
	{ "overrun_shared_pool", overrun_shared_pool },
	{ "overrun_managed", overrun_managed },
	{ "overrun_host", overrun_host },
	{ "overrun_variable", overrun_variable },
	{ "overrun_constant", overrun_constant },
	{ "store_to_constant", store_to_constant },
	{ "host_pointer", host_pointer },
	{ "overrun_whole_variable", overrun_whole_variable },
	{ "overrun_whole_constant", overrun_whole_constant },
};

int main(int argc, char **argv)
{
	CUdevice device;

	if (argc != 2 || cuInit(0) || cuDeviceGet(&device, 0) || cuCtxCreate_v4(&ctx, NULL, 0, device) || cuModuleLoadData(&module, ptx) ||
	    cuModuleGetFunction(&copy, module, "copy"))
		return 2;
	make_buffers();
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		if (!strcmp(cases[k].name, argv[1])) {
			cases[k].run();
			return 0;
		}
	}
	return 2;
}
