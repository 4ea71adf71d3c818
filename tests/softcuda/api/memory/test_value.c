/* test_value.c — words that streams wait for and write, and batches of copies. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

enum { HANGS_AFTER_S = 120, BYTES = 2 << 20 };

static CUstream make_stream(void)
{
	CUstream s;

	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return s;
}

static CUdeviceptr address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

static void a_stream_waits_until_the_cpu_writes_the_word(void **state)
{
	uint32_t *flag = make_flag(), *done = make_flag();
	CUstream s = make_stream();

	(void)state;
	ok(cuStreamWaitValue32(s, address(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuStreamWriteValue32(s, address(done), 42, 0));
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	assert_int_equal(__atomic_load_n(done, __ATOMIC_ACQUIRE), 0);
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	assert_int_equal(*done, 42);
	ok(cuStreamDestroy(s));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(done));
}

static void another_stream_can_write_the_word(void **state)
{
	CUstream waits = make_stream(), writes = make_stream();
	CUdeviceptr word;
	uint64_t seen;

	(void)state;
	ok(cuMemAlloc(&word, 8));
	ok(cuMemsetD8(word, 0, 8));
	ok(cuCtxSynchronize());
	ok(cuStreamWaitValue64(waits, word, UINT64_C(1) << 40, CU_STREAM_WAIT_VALUE_GEQ));
	ok(cuStreamWriteValue64(waits, word, 3, 0));
	ok(cuStreamWriteValue64(writes, word, (UINT64_C(1) << 40) + 5, 0));
	ok(cuStreamSynchronize(waits));
	ok(cuMemcpyDtoH(&seen, word, 8));
	assert_int_equal(seen, 3);
	ok(cuMemFree(word));
	ok(cuStreamDestroy(waits));
	ok(cuStreamDestroy(writes));
}

/* Each condition is already true for the first value, and false for the second. */
static void each_condition_compares_as_documented(void **state)
{
	static const struct {
		unsigned flags;
		uint32_t word, holds, fails;
	} rows[] = {
		{ CU_STREAM_WAIT_VALUE_GEQ, 5, 5, 6 },
		{ CU_STREAM_WAIT_VALUE_GEQ, 2, 0xfffffff0, 3 }, /* the counter wrapped around */
		{ CU_STREAM_WAIT_VALUE_EQ, 5, 5, 4 },
		{ CU_STREAM_WAIT_VALUE_AND, 6, 2, 1 },
		{ CU_STREAM_WAIT_VALUE_NOR, 0xfffffff0, 7, 15 },
	};
	uint32_t *word = make_flag(), *done = make_flag();
	CUstream s = make_stream();

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		*word = rows[i].word;
		*done = 0;
		ok(cuStreamWaitValue32(s, address(word), rows[i].holds, rows[i].flags));
		ok(cuStreamSynchronize(s));
		ok(cuStreamWaitValue32(s, address(word), rows[i].fails, rows[i].flags));
		ok(cuStreamWriteValue32(s, address(done), 1, 0));
		fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
		__atomic_store_n(word, rows[i].flags == CU_STREAM_WAIT_VALUE_NOR ? 0 : rows[i].fails, __ATOMIC_RELEASE);
		ok(cuStreamSynchronize(s));
		assert_int_equal(*done, 1);
	}
	ok(cuMemFreeHost(word));
	ok(cuMemFreeHost(done));
	ok(cuStreamDestroy(s));
}

static void a_batch_runs_in_order(void **state)
{
	uint32_t *words;
	CUstreamBatchMemOpParams list[4];
	CUstream s = make_stream();

	(void)state;
	ok(cuMemHostAlloc((void **)&words, 16, 0));
	memset(words, 0, 16);
	memset(list, 0, sizeof list);
	list[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	list[0].writeValue.address = address(&words[0]);
	list[0].writeValue.value = 9;
	list[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	list[1].waitValue.address = address(&words[0]);
	list[1].waitValue.value = 9;
	list[2].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
	list[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	list[3].writeValue.address = address(&words[2]);
	list[3].writeValue.value64 = UINT64_C(0x100000002);
	ok(cuStreamBatchMemOp(s, 4, list, 0));
	ok(cuStreamSynchronize(s));
	assert_true(words[0] == 9 && words[2] == 2 && words[3] == 1);
	fails(cuStreamBatchMemOp(s, 257, list, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamBatchMemOp(s, 1, list, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamWaitValue32(s, address(words) + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamWaitValue32(s, address(list), 0, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamWaitValue32(s, address(words), 0, 4), CUDA_ERROR_INVALID_VALUE);
	fails(cuStreamWriteValue32(s, address(words), 0, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFreeHost(words));
	ok(cuStreamDestroy(s));
}

static void words_that_may_not_be_used_are_refused(void **state)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemAccessDesc access = { .location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READ };
	CUmemGenericAllocationHandle handle;
	CUstreamBatchMemOpParams list[2];
	CUstream s = make_stream();
	CUdeviceptr p;

	(void)state;
	ok(cuMemAddressReserve(&p, BYTES, 0, 0, 0));
	fails(cuStreamWriteValue32(s, p, 1, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemCreate(&handle, BYTES, &prop, 0));
	ok(cuMemMap(p, BYTES, 0, handle, 0));
	fails(cuStreamWriteValue32(s, p, 1, 0),
	      CUDA_ERROR_INVALID_VALUE); /* the mapping has no access rights: cuMemSetAccess was not called */
	fails(cuStreamWaitValue64(s, p, 0, CU_STREAM_WAIT_VALUE_GEQ), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemSetAccess(p, BYTES, &access, 1));
	ok(cuStreamWaitValue64(s, p, 0, CU_STREAM_WAIT_VALUE_GEQ));
	fails(cuStreamWriteValue64(s, p, 1, 0), CUDA_ERROR_INVALID_VALUE);
	memset(list, 0, sizeof list);
	for (unsigned k = 0; k < 2; k++) {
		list[k].operation = k ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
		list[k].waitValue.address = p;
	}
	fails(cuStreamBatchMemOp(s, 2, list, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamBatchMemOp(s, 1, list, 0));
	ok(cuStreamSynchronize(s));
	ok(cuStreamDestroy(s));
	ok(cuMemUnmap(p, BYTES));
	ok(cuMemRelease(handle));
	ok(cuMemAddressFree(p, BYTES));
}

#undef cuStreamWriteValue32
#undef cuStreamBatchMemOp
CUresult cuStreamWriteValue32(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags);
CUresult cuStreamBatchMemOp(CUstream s, unsigned n, CUstreamBatchMemOpParams *list, unsigned flags);

/* A device attribute tells whether the versions of these calls without the suffix _v2 are supported. */
static void the_first_interface_is_refused(void **state)
{
	CUstreamBatchMemOpParams one = { .operation = CU_STREAM_MEM_OP_BARRIER };
	uint32_t *word = make_flag();
	CUstream s = make_stream();
	int supported;

	(void)state;
	ok(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 0));
	assert_int_equal(supported, 0);
	fails(cuStreamWriteValue32(s, address(word), 1, 0), CUDA_ERROR_NOT_SUPPORTED);
	if (on_software_driver())
		fails(cuStreamBatchMemOp(s, 1, &one, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(*word, 0);
	ok(cuMemFreeHost(word));
	ok(cuStreamDestroy(s));
}

static void a_destroyed_context_ends_its_waits(void **state)
{
	CUcontext ctx, *own = (CUcontext *)state;
	uint32_t *flag = make_flag();

	if (!on_software_driver()) /* on NVIDIA's driver, cuCtxDestroy may wait for the word */
		skip();
	ok(cuCtxCreate(&ctx, NULL, 0, 0));
	ok(cuStreamWaitValue32(make_stream(), address(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuCtxDestroy(ctx));
	ok(cuCtxSetCurrent(*own));
	ok(cuMemFreeHost(flag));
}

/* ---- batches of copies -------------------------------------------------------------------------- */

static void a_batch_copies_each_part(void **state)
{
	CUmemcpyAttributes attributes[2] = { { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
					     { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL } };
	size_t bytes[3] = { 4, 8, 4 }, index[2] = { 0, 2 }, wrong[2] = { 1, 2 };
	uint32_t *flag = make_flag(), in[4] = { 1, 2, 3, 4 }, out[4];
	CUdeviceptr p, dst[3], src[3];
	CUstream s = make_stream();

	(void)state;
	ok(cuMemAlloc(&p, 16));
	for (int i = 0; i < 3; i++) {
		size_t at = i == 0 ? 0 : i == 1 ? 4 : 12;

		dst[i] = p + at;
		src[i] = address(in) + at;
	}
	if (on_software_driver()) /* on NVIDIA's driver a copy from pageable memory would wait for the stream during the call */
		ok(cuStreamWaitValue32(s, address(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuMemcpyBatchAsync(dst, src, bytes, 3, attributes, index, 2, s));
	in[3] = 99; /* has no effect, because the call has already read the source */
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	ok(cuMemcpyDtoH(out, p, 16));
	assert_true(out[0] == 1 && out[1] == 2 && out[2] == 3 && out[3] == 4);
	fails(cuMemcpyBatchAsync(dst, src, bytes, 3, attributes, wrong, 2, s), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpyBatchAsync(dst, src, bytes, 3, attributes, index, 2, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
	ok(cuMemFreeHost(flag));
	ok(cuStreamDestroy(s));
}

static void a_batch_copies_boxes(void **state)
{
	unsigned char in[32], out[12];
	CUDA_MEMCPY3D_BATCH_OP op = { .extent = { .width = 4, .height = 3, .depth = 1 },
				      .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	CUstream s = make_stream();
	CUdeviceptr p;

	(void)state;
	for (unsigned char i = 0; i < sizeof in; i++)
		in[i] = i;
	ok(cuMemAlloc(&p, 12));
	op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.src.op.ptr.ptr = address(in);
	op.src.op.ptr.rowLength = 8;
	op.dst.op.ptr.ptr = p;
	ok(cuMemcpy3DBatchAsync(1, &op, 0, s));
	ok(cuStreamSynchronize(s));
	ok(cuMemcpyDtoH(out, p, 12));
	for (int i = 0; i < 12; i++)
		assert_int_equal(out[i], i / 4 * 8 + i % 4);
	op.extent.depth = 0;
	fails(cuMemcpy3DBatchAsync(1, &op, 0, s), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
	ok(cuStreamDestroy(s));
}

static void nodes_of_a_graph_wait_for_words_and_write_them(void **state)
{
	uint32_t *flag = make_flag(), *done = make_flag();
	CUstreamBatchMemOpParams list[2] = {
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
				 .address = address(flag),
				 .value = 1,
				 .flags = CU_STREAM_WAIT_VALUE_EQ } },
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = address(done), .value = 42 } },
	};
	CUDA_BATCH_MEM_OP_NODE_PARAMS p = { .ctx = *state, .count = 2, .paramArray = list }, got;
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = { .ctx = *state, .count = 1, .paramArray = &list[1] } };
	CUstream s = make_stream();
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec x;

	ok(cuGraphCreate(&graph, 0));
	p.count = 0;
	fails(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
	p.count = 2;
	ok(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &p));
	ok(cuGraphBatchMemOpNodeGetParams(node, &got));
	assert_int_equal(got.count, 2);
	assert_int_equal(got.paramArray[1].writeValue.value, 42);
	ok(cuGraphInstantiate(&x, graph, 0));
	ok(cuGraphLaunch(x, s));
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	assert_int_equal(__atomic_load_n(done, __ATOMIC_ACQUIRE), 0);
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	assert_int_equal(*done, 42);
	list[1].writeValue.value = 43;
	ok(cuGraphExecBatchMemOpNodeSetParams(x, node, &p));
	ok(cuGraphLaunch(x, s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(*done, 43);
	list[1].writeValue.value = 44;
	ok(cuGraphBatchMemOpNodeSetParams(node, &p));
	ok(cuGraphExecNodeSetParams(x, node, &any));
	ok(cuGraphLaunch(x, s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(*done, 44);
	ok(cuGraphBatchMemOpNodeGetParams(node, &got));
	assert_int_equal(got.paramArray[1].writeValue.value, 44);
	ok(cuGraphExecDestroy(x));
	ok(cuGraphDestroy(graph));
	ok(cuStreamDestroy(s));
	ok(cuMemFreeHost(flag));
	ok(cuMemFreeHost(done));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_context, destroy_context)
		TEST(a_stream_waits_until_the_cpu_writes_the_word),
		TEST(another_stream_can_write_the_word),
		TEST(each_condition_compares_as_documented),
		TEST(a_batch_runs_in_order),
		TEST(words_that_may_not_be_used_are_refused),
		TEST(the_first_interface_is_refused),
		TEST(nodes_of_a_graph_wait_for_words_and_write_them),
		TEST(a_destroyed_context_ends_its_waits),
		TEST(a_batch_copies_each_part),
		TEST(a_batch_copies_boxes),
	};

	alarm(HANGS_AFTER_S); /* kills the test if a wait never ends */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
