/* test_unreadable.c — calls whose argument lists, images or batch lists are unreadable fail, and the process continues. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, BLOCK = 256 };

static char *last_page; /* the addresses after this page are not mapped */
static CUstream stream;

static void *before_end(size_t bytes)
{
	return last_page + PAGE - bytes;
}

static void *nowhere(void)
{
	return last_page + PAGE;
}

/* A kernel with parameters of 4, 8 and many bytes, and a kernel without parameters. */
static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			  ".visible .entry k(.param .u64 a, .param .align 8 .b8 b[256], .param .u32 c) { ret; }\n"
			  ".visible .entry none() { ret; }\n";

static CUresult launch_with(CUfunction f, void **params, void **extra)
{
	return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, extra);
}

static void arguments_of_launches(void **state)
{
	char block[BLOCK] = "";
	uint64_t a = 0, bytes = 268;
	uint32_t c = 0;
	void *good[] = { &a, block, &c };
	CUDA_KERNEL_NODE_PARAMS node;
	CUfunction f, none;
	CUgraphNode added;
	CUmodule module;
	CUgraph graph;

	(void)state;
	ok(cuModuleLoadData(&module, ptx));
	ok(cuModuleGetFunction(&f, module, "k"));
	ok(cuModuleGetFunction(&none, module, "none"));
	ok(launch_with(f, good, NULL));
	memcpy(before_end(16), good, 16);
	void **const short_list = before_end(16), **const no_list = nowhere();
	void *stray[][3] = { { nowhere(), block, &c }, { &a, before_end(BLOCK - 1), &c }, { &a, block, (void *)16 }, { &a, NULL, &c } };
	void *no_buffer[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, before_end(200), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END };
	void *no_size[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, nowhere(), CU_LAUNCH_PARAM_END };

	memset(&node, 0, sizeof node);
	node.func = f;
	node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1;
	ok(cuGraphCreate(&graph, 0));
	for (unsigned k = 0; k < 4; k++) {
		fails(launch_with(f, stray[k], NULL), CUDA_ERROR_INVALID_VALUE);
		node.kernelParams = stray[k];
		fails(cuGraphAddKernelNode(&added, graph, NULL, 0, &node), CUDA_ERROR_INVALID_VALUE);
	}
	fails(launch_with(f, short_list, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(launch_with(f, no_list, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(launch_with(f, NULL, no_list), CUDA_ERROR_INVALID_VALUE);
	fails(launch_with(f, NULL, no_buffer), CUDA_ERROR_INVALID_VALUE);
	fails(launch_with(f, NULL, no_size), CUDA_ERROR_INVALID_VALUE);
	ok(launch_with(none, no_list, NULL)); /* a kernel without parameters does not read the list */
	ok(cuStreamSynchronize(stream));
	ok(cuGraphDestroy(graph));
	ok(cuModuleUnload(module));
}

static void images(void **state)
{
	static const unsigned char fatbin[16] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0, 1 };
	const struct {
		unsigned magic, version;
		const void *data, *more;
	} wrapper = { 0x466243B1, 1, nowhere(), NULL };
	CUlinkState linker;
	CUlibrary library;
	CUmodule module;

	(void)state;
	memcpy(before_end(sizeof ptx - 1), ptx, sizeof ptx - 1); /* the text without its terminating NUL */
	fails(cuModuleLoadData(&module, before_end(sizeof ptx - 1)), CUDA_ERROR_INVALID_VALUE);
	memcpy(before_end(sizeof ptx), ptx, sizeof ptx);
	ok(cuModuleLoadData(&module, before_end(sizeof ptx)));
	ok(cuModuleUnload(module));
	fails(cuModuleLoadData(&module, nowhere()), CUDA_ERROR_INVALID_VALUE);
	fails(cuLibraryLoadData(&library, nowhere(), NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuModuleLoadFatBinary(&module, &wrapper), CUDA_ERROR_INVALID_VALUE);
	memcpy(before_end(sizeof fatbin), fatbin, sizeof fatbin);
	fails(cuModuleLoadFatBinary(&module, before_end(sizeof fatbin)), CUDA_ERROR_INVALID_VALUE);
	ok(cuLinkCreate(0, NULL, NULL, &linker));
	fails(cuLinkAddData(linker, CU_JIT_INPUT_PTX, before_end(sizeof ptx), sizeof ptx + 1, "late", 0, NULL, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	fails(cuLinkAddData(linker, CU_JIT_INPUT_PTX, before_end(sizeof ptx), SIZE_MAX, "long", 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuLinkDestroy(linker));
}

static void lists_of_batches(void **state)
{
	(void)state;
	fails(cuStreamBatchMemOp(stream, 2, before_end(sizeof(CUstreamBatchMemOpParams)), 0), CUDA_ERROR_INVALID_VALUE);
#if CUDA_VERSION >= 13000
	CUmemcpyAttributes plain;
	CUdeviceptr p;
	size_t bytes = 4, index = 0;

	memset(&plain, 0, sizeof plain);
	plain.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	ok(cuMemAlloc(&p, 8));
	fails(cuMemcpyBatchAsync(nowhere(), &p, &bytes, 1, &plain, &index, 1, stream), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyBatchAsync(&p, nowhere(), &bytes, 1, &plain, &index, 1, stream), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyBatchAsync(&p, &p, nowhere(), 1, &plain, &index, 1, stream), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyBatchAsync(&p, &p, &bytes, 1, nowhere(), &index, 1, stream), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyBatchAsync(&p, &p, &bytes, 1, &plain, nowhere(), 1, stream), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyBatchAsync(&p, &p, &bytes, SIZE_MAX, &plain, &index, 1, stream), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpy3DBatchAsync(1, nowhere(), 0, stream), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
#endif
}

static int set_up(void **state)
{
	last_page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(last_page + PAGE, PAGE, PROT_NONE);
	if (make_context(state))
		return -1;
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return 0;
}

static int tear_down(void **state)
{
	munmap(last_page, 2 * PAGE);
	return destroy_context(state);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test##_after_a_tick, set_up, tear_down)
AFTER_A_TICK(arguments_of_launches)
AFTER_A_TICK(images)
AFTER_A_TICK(lists_of_batches)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(arguments_of_launches), TEST(images), TEST(lists_of_batches) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
