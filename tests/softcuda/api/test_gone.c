/* test_gone.c — memory that disappears after it was checked: registered memory that the program unmaps or protects, and memory
 * that is freed before a graph is launched.  The call or the context fails, but the process and other contexts continue. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES ((size_t)64 << 10)

/* A whole warp loads, computes and stores, so that the instructions are compiled where the CPU has AVX-512. */
static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			  ".visible .entry add(.param .u64 at)\n"
			  "{\n"
			  "	.reg .b32 %r<4>; .reg .b64 %d<4>;\n"
			  "	ld.param.u64 %d1, [at];\n"
			  "	mov.u32 %r1, %tid.x;\n"
			  "	mul.wide.u32 %d2, %r1, 4;\n"
			  "	add.u64 %d1, %d1, %d2;\n"
			  "	ld.global.u32 %r2, [%d1];\n"
			  "	add.u32 %r2, %r2, %r1;\n"
			  "	mul.lo.u32 %r2, %r2, 5;\n"
			  "	st.global.u32 [%d1], %r2;\n"
			  "	ret;\n"
			  "}\n";

static CUstream stream;
static char *memory;

static char *map_memory(void)
{
	return map_apart(BYTES);
}

static void unmap(void *p)
{
	munmap(p, BYTES);
}
static void protect(void *p)
{
	mprotect(p, BYTES, PROT_READ);
}
static void (*const removals[])(void *p) = { unmap, protect };

/* Create a context and register `memory` in it; then unmap or protect the memory if removal is 0 or 1. */
static CUcontext begin(unsigned removal)
{
	CUcontext ctx;

	ok(cuCtxCreate(&ctx, NULL, 0, 0));
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	memory = map_memory();
	ok(cuMemHostRegister(memory, BYTES, 0));
	if (removal < 2)
		removals[removal](memory);
	return ctx;
}

static void end(CUcontext ctx)
{
	CUdeviceptr p;

	ok(cuCtxDestroy(ctx));
	munmap(memory, BYTES);
	ok(cuMemAlloc(&p, BYTES)); /* the test's own context works */
	ok(cuMemsetD8(p, 1, BYTES));
	ok(cuMemFree(p));
}

static CUfunction load_add(void)
{
	CUfunction f;
	CUmodule m;

	ok(cuModuleLoadData(&m, ptx));
	ok(cuModuleGetFunction(&f, m, "add"));
	return f;
}

static void launch_add(CUfunction f)
{
	void *arguments[] = { &memory };

	ok(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

static void a_kernel_that_accesses_it_fails_its_context(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		CUcontext ctx = begin(2);
		CUfunction f = load_add();

		launch_add(f); /* all memory of the driver is mapped by now, so no new mapping gets the removed addresses */
		ok(cuStreamSynchronize(stream));
		removals[k](memory);
		launch_add(f);
		fails(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
		end(ctx);
	}
}

static void CUDA_CB remove_memory(void *removal)
{
	removals[*(unsigned *)removal](memory);
}

static void a_kernel_after_a_host_node_that_unmaps_it_fails_its_context(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		CUcontext ctx = begin(2);
		CUfunction f = load_add();
		CUgraphExec exec;
		CUgraph graph;

		launch_add(f);
		ok(cuStreamSynchronize(stream));
		ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		launch_add(f);
		ok(cuLaunchHostFunc(stream, remove_memory, &k));
		launch_add(f);
		ok(cuStreamEndCapture(stream, &graph));
		ok(cuGraphInstantiate(&exec, graph, 0));
		ok(cuGraphLaunch(exec, stream));
		fails(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
		end(ctx);
	}
}

static void fills_and_copies_of_it_are_refused(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		CUcontext ctx = begin(k);
		CUdeviceptr p, gone = (uintptr_t)memory;

		ok(cuMemAlloc(&p, BYTES));
		fails(cuMemsetD8(gone, 1, BYTES), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemsetD32Async(gone, 1, 1, stream), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemcpyDtoH(memory, p, BYTES), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemcpyDtoHAsync(memory, p, 4, stream), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemcpy(gone, p, BYTES), CUDA_ERROR_INVALID_VALUE);
		if (!k)
			fails(cuMemcpyHtoD(p, memory, BYTES), CUDA_ERROR_INVALID_VALUE);
		ok(cuCtxSynchronize());
		ok(cuMemHostUnregister(memory));
		end(ctx);
	}
}

static void queued_work_that_reaches_it_fails_its_context(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 6; k++) {
		CUcontext ctx = begin(2);
		CUdeviceptr p, gone = (uintptr_t)memory;
		unsigned removal = k % 2;
		CUgraphExec exec;
		CUgraph graph;

		ok(cuMemAlloc(&p, BYTES));
		ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		ok(cuLaunchHostFunc(stream, remove_memory, &removal));
		if (k < 2)
			ok(cuMemsetD8Async(gone, 1, BYTES, stream));
		else if (k < 4)
			ok(cuMemcpyDtoHAsync(memory, p, BYTES, stream));
		else
			ok(cuStreamWriteValue32(stream, gone, 1, 0));
		ok(cuStreamEndCapture(stream, &graph));
		ok(cuGraphInstantiate(&exec, graph, 0));
		ok(cuGraphLaunch(exec, stream));
		fails(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
		end(ctx);
	}
}

/* No call waits for a captured copy, so only its context can report the failure. */
static void a_captured_copy_to_unmapped_memory_fails_its_context(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		CUcontext ctx = begin(2);
		CUgraphExec exec;
		CUgraph graph;
		CUdeviceptr p;
		char *gone = map_memory();

		removals[k](gone);
		ok(cuMemAlloc(&p, BYTES));
		ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		ok(k ? cuMemcpyDtoHAsync(gone, p, BYTES, stream) : cuMemcpyAsync((uintptr_t)gone, p, BYTES, stream));
		ok(cuStreamEndCapture(stream, &graph));
		ok(cuGraphInstantiate(&exec, graph, 0));
		ok(cuGraphLaunch(exec, stream));
		fails(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
		munmap(gone, BYTES);
		end(ctx);
	}
}

/* Page-locked and managed memory belongs to the driver, but a program knows its addresses, and can call mprotect() on it. */
static void copies_of_the_drivers_memory_that_the_program_protects_are_refused(void **state)
{
	CUdeviceptr p, q;

	(void)state;
	ok(cuMemAlloc(&q, BYTES));
	for (unsigned k = 0; k < 2; k++) {
		void *at;

		ok(k ? cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_GLOBAL) : cuMemHostAlloc((void **)&p, BYTES, 0));
		at = (void *)(uintptr_t)p;
		assert_int_equal(mprotect(at, BYTES, PROT_NONE), 0);
		fails(cuMemcpyHtoD(q, at, BYTES), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemcpy(p, q, BYTES), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemsetD8(p, 1, 1), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(mprotect(at, BYTES, PROT_READ | PROT_WRITE), 0);
		ok(cuMemcpy(p, q, BYTES));
		ok(k ? cuMemFree(p) : cuMemFreeHost(at));
	}
	ok(cuMemFree(q));
}

static void a_stream_that_waits_for_a_word_of_it_fails(void **state)
{
	CUcontext ctx = begin(2);
	const struct timespec ms = { .tv_nsec = 2000000 };

	(void)state;
	ok(cuStreamWaitValue32(stream, (uintptr_t)memory, 1, CU_STREAM_WAIT_VALUE_EQ));
	nanosleep(&ms, NULL);
	unmap(memory);
	fails(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	end(ctx);
}

static void a_graph_whose_memory_was_freed_fails_its_context(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		CUcontext ctx = begin(2);
		CUdeviceptr p, q;
		CUgraphExec exec;
		CUgraph graph;

		ok(cuMemAlloc(&p, BYTES));
		ok(cuMemAlloc(&q, BYTES));
		ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		if (k == 0)
			ok(cuMemcpyAsync(p, q, BYTES, stream));
		else if (k == 1)
			ok(cuMemsetD8Async(p, 1, BYTES, stream));
		else
			ok(cuMemcpyAsync((uintptr_t)memory, p, BYTES, stream));
		ok(cuStreamEndCapture(stream, &graph));
		ok(cuGraphInstantiate(&exec, graph, 0));
		ok(cuGraphLaunch(exec, stream));
		ok(cuStreamSynchronize(stream));
		ok(cuMemFree(p));
		ok(cuGraphLaunch(exec, stream));
		fails(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
		end(ctx);
	}
}

static void memory_that_is_not_mapped_cannot_be_registered(void **state)
{
	const unsigned flags[] = { 0, CU_MEMHOSTREGISTER_IOMEMORY, CU_MEMHOSTREGISTER_READ_ONLY };
	char *p = map_memory();

	(void)state;
	munmap(p + BYTES / 2, BYTES / 2);
	for (unsigned k = 0; k < 3; k++) {
		fails(cuMemHostRegister(p, BYTES, flags[k]), CUDA_ERROR_INVALID_VALUE);
		fails(cuMemHostRegister(p + BYTES / 2, BYTES / 4, flags[k]), CUDA_ERROR_INVALID_VALUE);
	}
	ok(cuMemHostRegister(p, BYTES / 2, CU_MEMHOSTREGISTER_IOMEMORY));
	ok(cuMemHostUnregister(p));
	munmap(p, BYTES / 2);
}

static int set_up(void **state)
{
	return make_context(state);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test##_after_a_tick, set_up, destroy_context)
AFTER_A_TICK(a_kernel_that_accesses_it_fails_its_context)
AFTER_A_TICK(a_kernel_after_a_host_node_that_unmaps_it_fails_its_context)
AFTER_A_TICK(fills_and_copies_of_it_are_refused)
AFTER_A_TICK(queued_work_that_reaches_it_fails_its_context)
AFTER_A_TICK(a_captured_copy_to_unmapped_memory_fails_its_context)
AFTER_A_TICK(copies_of_the_drivers_memory_that_the_program_protects_are_refused)
AFTER_A_TICK(a_stream_that_waits_for_a_word_of_it_fails)
AFTER_A_TICK(a_graph_whose_memory_was_freed_fails_its_context)
AFTER_A_TICK(memory_that_is_not_mapped_cannot_be_registered)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kernel_that_accesses_it_fails_its_context),
		TEST(a_kernel_after_a_host_node_that_unmaps_it_fails_its_context),
		TEST(fills_and_copies_of_it_are_refused),
		TEST(queued_work_that_reaches_it_fails_its_context),
		TEST(a_captured_copy_to_unmapped_memory_fails_its_context),
		TEST(copies_of_the_drivers_memory_that_the_program_protects_are_refused),
		TEST(a_stream_that_waits_for_a_word_of_it_fails),
		TEST(a_graph_whose_memory_was_freed_fails_its_context),
		TEST(memory_that_is_not_mapped_cannot_be_registered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
