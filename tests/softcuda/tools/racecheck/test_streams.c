/* test_streams.c — launches in different streams race unless an event, the host, the legacy stream or a graph orders them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <cuda.h>

#include "softcuda/tools/tool_internal.h"

/* The kernels first and second, in which each thread adds 1 to its word. */
#define KERNEL(name) \
	".visible .entry " name "(.param .u64 p) { .reg .b64 %d<4>; .reg .b32 %r<4>; ld.param.u64 %d1, [p];\n" \
	"mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; ld.global.u32 %r2, [%d1];\n" \
	"add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2; ret; }\n"
static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n" KERNEL("first") KERNEL("second");

static CUcontext context;
static CUstream a, b, blocking; /* a and b are non-blocking */
static CUevent event;
static CUfunction first, second; /* each case loads the module again, because a pair of instructions is reported only once */
static CUdeviceptr memory;

static void ok(CUresult r)
{
	assert_int_equal(r, CUDA_SUCCESS);
}

static void run(CUfunction f, CUstream s)
{
	void *params[] = { &memory };

	ok(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, s, params, NULL));
}

/* ---- operations between the two kernels ---------------------------------------------------------------------------- */

static void nothing(void)
{
}

static void waits_for_the_event(void)
{
	ok(cuEventRecord(event, a));
	ok(cuStreamWaitEvent(b, event, 0));
}

static void waits_for_an_older_record(void)
{
	ok(cuStreamWaitEvent(b, event, 0));
}

static void synchronises_the_stream(void)
{
	ok(cuStreamSynchronize(a));
}

static void synchronises_the_other_stream(void)
{
	ok(cuStreamSynchronize(b));
}

static void synchronises_the_context(void)
{
	ok(cuCtxSynchronize());
}

static void synchronises_the_event(void)
{
	ok(cuEventRecord(event, a));
	ok(cuEventSynchronize(event));
}

static void queries_the_event(void)
{
	ok(cuEventRecord(event, a));
	while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
		;
}

static void queries_the_stream(void)
{
	while (cuStreamQuery(a) == CUDA_ERROR_NOT_READY)
		;
}

static void copies_in_the_stream(void)
{
	uint32_t word;

	ok(cuMemcpyDtoHAsync(&word, memory, sizeof word, a));
	ok(cuStreamSynchronize(a));
}

static void records_all_streams(void)
{
	ok(cuCtxRecordEvent(context, event));
	ok(cuStreamWaitEvent(b, event, 0));
}

static void set_flag(void *flag)
{
	__atomic_store_n((int *)flag, 1, __ATOMIC_RELEASE);
}

static void runs_a_host_function(void)
{
	int flag = 0;

	ok(cuLaunchHostFunc(a, set_flag, &flag));
	while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
		;
}

static const struct order_case {
	const char *name;
	void (*between)(void);
	CUstream *from, *to; /* NULL: the legacy stream */
	unsigned n_races;
} cases[] = {
	{ "nothing", nothing, &a, &b, 1 },
	{ "one stream", nothing, &a, &a, 0 },
	{ "event", waits_for_the_event, &a, &b, 0 },
	{ "older record", waits_for_an_older_record, &a, &b, 1 },
	{ "stream synchronised", synchronises_the_stream, &a, &b, 0 },
	{ "other stream synchronised", synchronises_the_other_stream, &a, &b, 1 },
	{ "context synchronised", synchronises_the_context, &a, &b, 0 },
	{ "event synchronised", synchronises_the_event, &a, &b, 0 },
	{ "event queried", queries_the_event, &a, &b, 0 },
	{ "stream queried", queries_the_stream, &a, &b, 0 },
	{ "copy", copies_in_the_stream, &a, &b, 0 },
	{ "all streams recorded", records_all_streams, &a, &b, 0 },
	{ "host function", runs_a_host_function, &a, &b, 0 },
	{ "blocking, then legacy", nothing, &blocking, NULL, 0 },
	{ "legacy, then blocking", nothing, NULL, &blocking, 0 },
	{ "legacy, then non-blocking", nothing, NULL, &b, 1 },
	{ "non-blocking, then blocking", nothing, &a, &blocking, 1 },
};

/* Load the kernels, and wait for the work of earlier cases. */
static CUmodule begin_case(void)
{
	CUmodule m;

	ok(cuCtxSynchronize());
	ok(cuModuleLoadData(&m, image));
	ok(cuModuleGetFunction(&first, m, "first"));
	ok(cuModuleGetFunction(&second, m, "second"));
	return m;
}

/* Unload the module; return whether racecheck has reported a race since `before`. */
static unsigned end_case(CUmodule m, unsigned before)
{
	ok(cuCtxSynchronize());
	ok(cuModuleUnload(m));
	return gpul_tool_n_reported("racecheck") > before;
}

static void streams_race_unless_they_are_ordered(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		const struct order_case *c = &cases[k];
		const unsigned before = gpul_tool_n_reported("racecheck");
		CUmodule m = begin_case();
		unsigned n;

		run(first, c->from ? *c->from : NULL);
		c->between();
		run(second, c->to ? *c->to : NULL);
		n = end_case(m, before);
		if (n != c->n_races)
			fail_msg("%s: %u races, expected %u", c->name, n, c->n_races);
	}
}

/* ---- copies and fills --------------------------------------------------------------------------------------------------- */

enum { LARGE = 3 << 16 };
static CUdeviceptr large; /* large enough for several pages of shadow memory, most of them for bytes that no kernel accesses */
static uint32_t *pinned;

static void runs_first(CUstream s)
{
	run(first, s);
}
static void copies_in(CUstream s)
{
	ok(cuMemcpyHtoDAsync(memory, pinned, 256, s));
}
static void copies_out(CUstream s)
{
	ok(cuMemcpyDtoHAsync(pinned, memory, 256, s));
}
static void copies_a_byte(CUstream s)
{
	ok(cuMemcpyHtoDAsync(memory + 5, pinned, 1, s));
}
static void copies_behind(CUstream s)
{
	ok(cuMemcpyHtoDAsync(memory + 256, pinned, 64, s));
}
static void copies_rows(CUstream s)
{
	const CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
				  .srcDevice = large,
				  .srcPitch = 512,
				  .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				  .dstDevice = memory,
				  .dstPitch = 128,
				  .WidthInBytes = 64,
				  .Height = 4 };

	ok(cuMemcpy2DAsync(&c, s));
}
static void copies_between_rows(CUstream s) /* copies bytes 256 to 320 and 512 to 576 */
{
	const CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
				  .srcDevice = large,
				  .srcPitch = 512,
				  .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				  .dstDevice = memory + 256,
				  .dstPitch = 256,
				  .WidthInBytes = 64,
				  .Height = 2 };

	ok(cuMemcpy2DAsync(&c, s));
}
static void fills(CUstream s)
{
	ok(cuMemsetD32Async(memory, 7, 64, s));
}
static void fills_all(CUstream s)
{
	ok(cuMemsetD8Async(large, 1, LARGE, s));
}
static void reads_all(CUstream s)
{
	ok(cuMemcpyDtoDAsync(large + LARGE, large, LARGE, s));
}
static void reads_all_again(CUstream s)
{
	ok(cuMemcpyDtoDAsync(large + 2 * LARGE, large, LARGE, s));
}
static void fills_a_part(CUstream s)
{
	ok(cuMemsetD8Async(large + 70000, 2, 100, s));
}
static void waits_and_fills(CUstream s)
{
	ok(cuStreamSynchronize(a));
	fills(s);
}
static void copies_and_waits(CUstream s)
{
	copies_in(s);
	ok(cuStreamSynchronize(s));
}

/* Two operations in streams a and b, and whether they race without an event between them; with an event, none does. */
static const struct copy_case {
	const char *name;
	void (*one)(CUstream s), (*other)(CUstream s);
	bool races;
} copy_cases[] = {
	{ "kernel, copy in", runs_first, copies_in, true },
	{ "copy in, kernel", copies_in, runs_first, true },
	{ "kernel, copy out", runs_first, copies_out, true },
	{ "copy out, kernel", copies_out, runs_first, true },
	{ "kernel, fill", runs_first, fills, true },
	{ "fill, kernel", fills, runs_first, true },
	{ "kernel, one byte", runs_first, copies_a_byte, true },
	{ "one byte, kernel", copies_a_byte, runs_first, true },
	{ "kernel, rows", runs_first, copies_rows, true },
	{ "kernel, copy behind", runs_first, copies_behind, false },
	{ "rows behind, kernel", copies_between_rows, runs_first, false },
	{ "two copies out", copies_out, copies_out, true }, /* both copy to the same host buffer */
	{ "fill, copy out", fills, copies_out, true },
	{ "large fills", fills_all, fills_all, true },
	{ "large fill, read", fills_all, reads_all, true },
	{ "large read, fill of a part", reads_all, fills_a_part, true },
	{ "two large reads", reads_all, reads_all_again, false },
	{ "kernel, synchronised fill", runs_first, waits_and_fills, false },
	{ "synchronised copy, kernel", copies_and_waits, runs_first, false },
};

static unsigned run_copies(const struct copy_case *c, bool ordered)
{
	unsigned before;
	CUmodule m = begin_case();

	ok(cuMemAlloc(&memory, 1024)); /* never freed, because a race of two copies to one address is reported only once */
	ok(cuMemAlloc(&large, 3 * LARGE));
	ok(cuMemAllocHost((void **)&pinned, 256));
	before = gpul_tool_n_reported("racecheck");
	c->one(a);
	if (ordered)
		waits_for_the_event();
	c->other(b);
	return end_case(m, before);
}

static void copies_race_unless_they_are_ordered(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof copy_cases / sizeof copy_cases[0]; k++) {
		const struct copy_case *c = &copy_cases[k];

		if (run_copies(c, false) != c->races)
			fail_msg("%s: %s", c->name, c->races ? "no race found" : "a race found");
		if (run_copies(c, true))
			fail_msg("%s: a race found, although an event orders them", c->name);
	}
}

/* Launch a graph twice whose nodes are `first` and `second`, with an edge between them if `ordered`. */
static unsigned run_graph(int ordered)
{
	const unsigned before = gpul_tool_n_reported("racecheck");
	CUmodule m = begin_case();
	CUgraphExec exec;
	CUgraph graph;
	unsigned n;

	ok(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ok(cuEventRecord(event, a));
	ok(cuStreamWaitEvent(b, event, 0));
	run(first, a);
	if (ordered) {
		ok(cuEventRecord(event, a));
		ok(cuStreamWaitEvent(b, event, 0));
	}
	run(second, b);
	ok(cuEventRecord(event, b));
	ok(cuStreamWaitEvent(a, event, 0));
	ok(cuStreamEndCapture(a, &graph));
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphLaunch(exec, a));
	ok(cuGraphLaunch(exec, a));
	run(first, a);
	ok(cuCtxSynchronize());
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
	n = end_case(m, before);
	return n;
}

static void nodes_of_a_graph_race_unless_an_edge_orders_them(void **state)
{
	(void)state;
	assert_int_equal(run_graph(1), 0);
	assert_int_equal(run_graph(0), 1);
}

static int start(void **state)
{
	CUdevice device;

	(void)state;
	if (setenv("GPULOAD_SOFT_TOOLS", "racecheck", 1))
		return -1;
	ok(cuInit(0));
	ok(cuDeviceGet(&device, 0));
	ok(cuDevicePrimaryCtxRetain(&context, device));
	ok(cuCtxSetCurrent(context));
	ok(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	ok(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	ok(cuMemAlloc(&memory, 256));
	ok(cuMemAlloc(&large, 256));
	ok(cuMemAllocHost((void **)&pinned, 256));
	ok(cuMemsetD8(memory, 0, 256));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_race_unless_they_are_ordered),
		cmocka_unit_test(copies_race_unless_they_are_ordered),
		cmocka_unit_test(nodes_of_a_graph_race_unless_an_edge_orders_them),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
