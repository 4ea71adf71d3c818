/* test_nodes.c — conditional nodes, memory nodes, event nodes and the calls for nodes of every type. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUstream s;
static CUgraph graph;
static CUcontext ctx;
static uint32_t *word;

/* Kernel set assigns a value to the condition; kernel count_down decrements *word and assigns it to the condition. */
static const char condition_ptx[] = ".version 8.4\n.target sm_90\n.address_size 64\n"
				    ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
				    ".visible .entry set(.param .u64 handle, .param .u32 value) {\n"
				    ".reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
				    "ld.param.u64 %rd1, [handle]; ld.param.u32 %r1, [value];\n"
				    "{ .param .b64 p0; st.param.b64 [p0], %rd1; .param .b32 p1; st.param.b32 [p1], %r1;\n"
				    "call.uni cudaGraphSetConditional, (p0, p1); }\nret;\n}\n"
				    ".visible .entry count_down(.param .u64 handle, .param .u64 at) {\n"
				    ".reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
				    "ld.param.u64 %rd1, [handle]; ld.param.u64 %rd2, [at];\n"
				    "ld.global.u32 %r1, [%rd2]; sub.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1;\n"
				    "{ .param .b64 p0; st.param.b64 [p0], %rd1; .param .b32 p1; st.param.b32 [p1], %r1;\n"
				    "call.uni cudaGraphSetConditional, (p0, p1); }\nret;\n}\n";

static CUmodule condition_module;

static int set_up(void **state)
{
	(void)state;
	ok(cuCtxGetCurrent(&ctx));
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuGraphCreate(&graph, 0));
	ok(cuMemHostAlloc((void **)&word, 64, 0));
	memset(word, 0, 64);
	ok(cuModuleLoadData(&condition_module, condition_ptx));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ok(cuStreamDestroy(s));
	if (graph)
		ok(cuGraphDestroy(graph));
	ok(cuMemFreeHost(word));
	ok(cuModuleUnload(condition_module));
	return 0;
}

static CUdeviceptr address(const uint32_t *w)
{
	return (CUdeviceptr)(uintptr_t)w;
}

static CUgraphNode add_node(CUgraph g, CUgraphNodeParams *p, const CUgraphNode *after)
{
	CUgraphNode node = NULL;

	ok(cuGraphAddNode(&node, g, after, NULL, after != NULL, p));
	return node;
}

static CUgraphNode add_kernel(CUgraph g, const char *name, void **params, const CUgraphNode *after)
{
	CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_KERNEL };

	if (cuModuleGetFunction(&p.kernel.func, condition_module, name))
		p.kernel.func = get_kernel(name);
	p.kernel.gridDimX = p.kernel.gridDimY = p.kernel.gridDimZ = 1;
	p.kernel.blockDimX = p.kernel.blockDimY = p.kernel.blockDimZ = 1;
	p.kernel.kernelParams = params;
	return add_node(g, &p, after);
}

/* Add a node whose kernel stores value to *where. */
static CUgraphNode add_put(CUgraph g, CUdeviceptr where, uint32_t value, const CUgraphNode *after)
{
	return add_kernel(g, "put", (void *[]){ &where, &value }, after);
}

static CUgraphNode add_set(CUgraph g, CUgraphConditionalHandle handle, uint32_t value)
{
	return add_kernel(g, "set", (void *[]){ &handle, &value }, NULL);
}

static CUgraphNode add_conditional(CUgraph g, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size,
				   const CUgraphNode *after, CUgraph *bodies)
{
	CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraphNode node;

	p.conditional.handle = handle;
	p.conditional.type = type;
	p.conditional.size = size;
	p.conditional.ctx = ctx;
	node = add_node(g, &p, after);
	memcpy(bodies, p.conditional.phGraph_out, size * sizeof *bodies);
	return node;
}

static CUgraphExec instantiate(void)
{
	CUgraphExec x = NULL;

	ok(cuGraphInstantiate(&x, graph, 0));
	return x;
}

static void run(CUgraphExec x)
{
	ok(cuGraphLaunch(x, s));
	ok(cuStreamSynchronize(s));
}

/* ---- conditional nodes ------------------------------------------------------------------------------------ */

static void a_branch_is_chosen_by_a_kernel(void **state)
{
	CUgraphConditionalHandle handle;
	CUgraphNode set, node;
	CUgraphNodeType type;
	CUgraph body[2];
	CUgraphExec x;

	(void)state;
	for (uint32_t value = 0; value < 2; value++) {
		ok(cuGraphConditionalHandleCreate(&handle, graph, ctx, 0, 0));
		set = add_set(graph, handle, value);
		node = add_conditional(graph, handle, CU_GRAPH_COND_TYPE_IF, 2, &set, body);
		add_put(body[0], address(&word[value]), 10, NULL);
		add_put(body[1], address(&word[value]), 20, NULL);
		ok(cuGraphNodeGetType(node, &type));
		assert_int_equal(type, CU_GRAPH_NODE_TYPE_CONDITIONAL);
	}
	x = instantiate();
	run(x);
	assert_int_equal(word[0], 20);
	assert_int_equal(word[1], 10);
	ok(cuGraphExecDestroy(x));
}

static void a_loop_runs_until_its_kernel_ends_it(void **state)
{
	CUgraphConditionalHandle handle;
	CUgraphNode node;
	CUgraph body;
	CUgraphExec x;
	CUdeviceptr at = address(word);

	(void)state;
	ok(cuGraphConditionalHandleCreate(&handle, graph, ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	node = add_conditional(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, NULL, &body);
	add_kernel(body, "count_down", (void *[]){ &handle, &at }, NULL);
	add_put(graph, address(&word[1]), 5, &node);
	x = instantiate();
	for (int k = 0; k < 2; k++) { /* each launch sets the condition to its default value */
		word[0] = 50;
		word[1] = 0;
		run(x);
		assert_int_equal(word[0], 0);
		assert_int_equal(word[1], 5);
	}
	ok(cuGraphExecDestroy(x));
}

static void a_switch_runs_one_body_or_none(void **state)
{
	CUgraphConditionalHandle handle;
	CUgraphNode set;
	CUgraph body[3];
	CUgraphExec x;

	(void)state;
	ok(cuGraphConditionalHandleCreate(&handle, graph, ctx, 0, 0));
	set = add_set(graph, handle, 2);
	add_conditional(graph, handle, CU_GRAPH_COND_TYPE_SWITCH, 3, &set, body);
	for (uint32_t k = 0; k < 3; k++)
		add_put(body[k], address(word), 100 + k, NULL);
	x = instantiate();
	run(x);
	assert_int_equal(word[0], 102);
	CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	uint32_t value = 7;

	ok(cuModuleGetFunction(&p.kernel.func, condition_module, "set"));
	p.kernel.gridDimX = p.kernel.gridDimY = p.kernel.gridDimZ = 1;
	p.kernel.blockDimX = p.kernel.blockDimY = p.kernel.blockDimZ = 1;
	p.kernel.kernelParams = (void *[]){ &handle, &value };
	ok(cuGraphExecNodeSetParams(x, set, &p));
	word[0] = 0;
	run(x);
	assert_int_equal(word[0], 0);
	ok(cuGraphExecDestroy(x));
}

static void conditional_nodes_that_make_no_sense_are_refused(void **state)
{
	CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraphConditionalHandle handle;
	CUgraph body, copy, other;
	CUgraphNode node;
	CUgraphExec x;

	(void)state;
	ok(cuGraphConditionalHandleCreate(&handle, graph, ctx, 0, 0));
	fails(cuGraphInstantiate(&x, graph, 0), CUDA_ERROR_INVALID_VALUE); /* the graph has a conditional handle that no node uses */
	p.conditional.handle = handle;
	p.conditional.ctx = ctx;
	p.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
	p.conditional.size = 2;
	fails(cuGraphAddNode(&node, graph, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
	p.conditional.size = 1;
	ok(cuGraphCreate(&other, 0));
	assert_int_not_equal(cuGraphAddNode(&node, other, NULL, NULL, 0, &p), CUDA_SUCCESS); /* the handle belongs to another graph */
	ok(cuGraphDestroy(other));
	p.conditional.handle = address(word);
	assert_int_not_equal(cuGraphAddNode(&node, graph, NULL, NULL, 0, &p), CUDA_SUCCESS);
	add_conditional(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, NULL, &body);
	fails(cuGraphClone(&copy, graph), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuGraphDestroy(body), CUDA_ERROR_INVALID_VALUE);
}

/* ---- memory nodes ------------------------------------------------------------------------------------------- */

static CUdeviceptr add_alloc(CUgraphNode *node, size_t bytes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
							.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } },
					 .bytesize = bytes };

	ok(cuGraphAddMemAllocNode(node, graph, NULL, 0, &p));
	assert_true(p.dptr);
	return p.dptr;
}

static uint64_t used(CUgraphMem_attribute attribute)
{
	uint64_t bytes = 0;

	ok(cuDeviceGetGraphMemAttribute(0, attribute, &bytes));
	return bytes;
}

static void memory_is_allocated_and_freed_in_a_graph(void **state)
{
	CUgraphNode alloc, put, copy, freed;
	CUdeviceptr p = add_alloc(&alloc, 4096), at = 0;
	CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			    .srcDevice = p,
			    .dstMemoryType = CU_MEMORYTYPE_HOST,
			    .dstHost = word,
			    .WidthInBytes = 4,
			    .Height = 1,
			    .Depth = 1 };
	CUgraphExec x, second;

	(void)state;
	put = add_put(graph, p, 77, &alloc);
	ok(cuGraphAddMemcpyNode(&copy, graph, &put, 1, &c, ctx));
	ok(cuGraphAddMemFreeNode(&freed, graph, &copy, 1, p));
	fails(cuGraphAddMemFreeNode(&freed, graph, &copy, 1, p), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphAddMemFreeNode(&freed, graph, &copy, 1, address(word)), CUDA_ERROR_INVALID_VALUE);
	ok(cuGraphMemFreeNodeGetParams(freed, &at));
	assert_int_equal(at, p);
	x = instantiate();
	fails(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	for (int k = 0; k < 3; k++) {
		word[0] = 0;
		run(x);
		assert_int_equal(word[0], 77);
	}
	assert_true(used(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= 4096);
	assert_true(used(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) % (32 << 20) == 0); /* an H200 reserves units of 32 MiB, too */
	ok(cuDeviceGraphMemTrim(0));
	assert_int_equal(used(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	assert_int_equal(used(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
	ok(cuGraphExecDestroy(x));
}

static void memory_outlives_its_graph_until_it_is_freed(void **state)
{
	CUgraphNode alloc;
	CUdeviceptr p = add_alloc(&alloc, 64);
	CUgraphExec x;

	(void)state;
	add_put(graph, p, 5, &alloc);
	x = instantiate();
	run(x);
	fails(cuGraphLaunch(x, s), CUDA_ERROR_INVALID_VALUE); /* the memory of the previous launch has not been freed */
	ok(cuGraphExecDestroy(x));
	ok(cuGraphDestroy(graph));
	graph = NULL;
	ok(cuMemcpyDtoH(word, p, 4));
	assert_int_equal(word[0], 5);
	ok(cuMemFreeAsync(p, s));
	ok(cuStreamSynchronize(s));
	assert_true(used(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= 64); /* the memory stays mapped */
	ok(cuDeviceGraphMemTrim(0));
	assert_int_equal(used(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	assert_true(used(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= 64);
	fails(cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
}

static void memory_is_freed_by_the_next_launch_on_request(void **state)
{
	CUgraphNode alloc;
	CUdeviceptr p = add_alloc(&alloc, 64);
	CUgraphExec x;

	(void)state;
	add_put(graph, p, 9, &alloc);
	ok(cuGraphInstantiate(&x, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	run(x);
	run(x);
	ok(cuGraphExecDestroy(x));
	ok(cuMemFree(p));
}

static void captured_allocations_become_nodes(void **state)
{
	CUgraphNode nodes[4];
	size_t n = 4;
	CUdeviceptr p;
	CUgraph captured;
	CUgraphNodeType type;

	(void)state;
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ok(cuMemAllocAsync(&p, 0, s)); /* an allocation of 0 bytes adds no node */
	assert_int_equal(p, 0);
	ok(cuMemFreeAsync(p, s));
	ok(cuMemAllocAsync(&p, 256, s));
	ok(cuMemsetD8Async(p, 1, 256, s));
	ok(cuMemFreeAsync(p, s));
	ok(cuStreamEndCapture(s, &captured));
	ok(cuGraphGetNodes(captured, nodes, &n));
	assert_int_equal(n, 3);
	ok(cuGraphNodeGetType(nodes[0], &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	ok(cuGraphNodeGetType(nodes[2], &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
	fails(cuGraphDestroyNode(nodes[2]), CUDA_ERROR_NOT_SUPPORTED);
	ok(cuGraphDestroy(captured));
}

/* ---- event nodes ---------------------------------------------------------------------------------------------- */

static void nodes_record_events_and_wait_for_them(void **state)
{
	CUgraphNode put, record, wait;
	uint32_t *flag = make_flag(), *seen = &word[1];
	CUgraphExec x;
	CUevent e, got;
	CUstream other;

	(void)state;
	ok(cuEventCreate(&e, 0));
	ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	put = add_put(graph, address(word), 1, NULL);
	ok(cuGraphAddEventRecordNode(&record, graph, &put, 1, e));
	ok(cuGraphEventRecordNodeGetEvent(record, &got));
	assert_ptr_equal(got, e);
	x = instantiate();
	run(x);
	ok(cuEventQuery(e));
	ok(cuGraphExecDestroy(x));
	ok(cuGraphDestroy(graph));
	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, e));
	add_put(graph, address(word), 2, &wait);
	x = instantiate();
	launch(get_kernel("spin"), 1, 1, other, (void *[]){ &flag, &seen });
	ok(cuEventRecord(e, other));
	ok(cuGraphLaunch(x, s));
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	assert_int_equal(word[0], 1);
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	assert_int_equal(word[0], 2);
	ok(cuGraphExecDestroy(x));
	ok(cuStreamDestroy(other));
	ok(cuEventDestroy(e));
	ok(cuMemFreeHost(flag));
}

/* ---- other calls for graphs --------------------------------------------------------------------------------------- */

static void data_of_dependencies_is_kept(void **state)
{
	CUgraphEdgeData data = { .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };
	CUgraphEdgeData got = { 0 };
	CUgraphNode a = add_put(graph, address(word), 1, NULL), b = add_put(graph, address(word), 2, NULL), from;
	size_t n = 1;

	(void)state;
	ok(cuGraphAddDependencies(graph, &a, &b, &data, 1));
	ok(cuGraphNodeGetDependencies(b, &from, &got, &n));
	assert_memory_equal(&got, &data, sizeof data);
	fails(cuGraphNodeGetDependencies(b, &from, NULL, &n), CUDA_ERROR_LOSSY_QUERY);
	if (on_software_driver()) /* NVIDIA's driver accepts the missing data */
		fails(cuGraphRemoveDependencies(graph, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuGraphRemoveDependencies(graph, &a, &b, &data, 1));
	data.to_port = 1;
	fails(cuGraphAddDependencies(graph, &a, &b, &data, 1), CUDA_ERROR_INVALID_VALUE);
}

static void an_update_names_the_node_that_differs(void **state)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphNode put, fill;
	CUDA_MEMSET_NODE_PARAMS p = { .dst = address(word), .elementSize = 4, .width = 1, .height = 1 };
	CUgraph other;
	CUgraphExec x;

	(void)state;
	put = add_put(graph, address(word), 1, NULL);
	x = instantiate();
	ok(cuGraphCreate(&other, 0));
	ok(cuGraphAddMemsetNode(&fill, other, NULL, 0, &p, ctx));
	fails(cuGraphExecUpdate(x, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
	assert_ptr_equal(info.errorNode, fill);
	ok(cuGraphAddEmptyNode(&put, graph, &put, 1));
	fails(cuGraphExecUpdate(x, graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	ok(cuGraphDestroy(other));
	ok(cuGraphExecDestroy(x));
}

static void a_child_of_an_executable_graph_is_replaced(void **state)
{
	CUgraph child[2];
	CUgraphNode node, in_child;
	CUgraphExec x;

	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		ok(cuGraphCreate(&child[k], 0));
		add_put(child[k], address(word), 40 + k, NULL);
	}
	ok(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child[0]));
	x = instantiate();
	run(x);
	assert_int_equal(word[0], 40);
	ok(cuGraphExecChildGraphNodeSetParams(x, node, child[1]));
	run(x);
	assert_int_equal(word[0], 41);
	ok(cuGraphAddEmptyNode(&in_child, child[1], NULL, 0));
	fails(cuGraphExecChildGraphNodeSetParams(x, node, child[1]), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	for (uint32_t k = 0; k < 2; k++)
		ok(cuGraphDestroy(child[k]));
	ok(cuGraphExecDestroy(x));
}

static void the_host_launches_a_graph_that_kernels_could_launch(void **state)
{
	const cuuint64_t flag = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
	CUDA_GRAPH_INSTANTIATE_PARAMS p = { .flags = flag };
	CUgraphNode put = add_put(graph, address(word), 21, NULL), empty;
	cuuint64_t flags;
	CUgraphExec x;

	(void)state;
	ok(cuGraphInstantiateWithParams(&x, graph, &p));
	assert_int_equal(p.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
	ok(cuGraphExecGetFlags(x, &flags));
	assert_int_equal(flags, flag);
	ok(cuGraphUpload(x, s));
	run(x);
	assert_int_equal(word[0], 21);
	ok(cuGraphExecDestroy(x));
	p.flags = flag | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	assert_int_not_equal(cuGraphInstantiateWithParams(&x, graph, &p), CUDA_SUCCESS);
	p.flags = flag;
	ok(cuGraphAddEmptyNode(&empty, graph, &put, 1));
	assert_int_not_equal(cuGraphInstantiateWithParams(&x, graph, &p), CUDA_SUCCESS);
	assert_int_equal(p.result_out, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
}

static void attributes_of_kernels_are_kept_and_copied(void **state)
{
	CUgraphNode a = add_put(graph, address(word), 1, NULL), b = add_put(graph, address(word), 2, &a);
	CUkernelNodeAttrValue v = { .priority = -3 }, got = { 0 };

	(void)state;
	ok(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
	v = (CUkernelNodeAttrValue){ .cooperative = 1 };
	ok(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
	ok(cuGraphKernelNodeCopyAttributes(b, a));
	ok(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
	assert_int_equal(got.priority, -3);
	ok(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
	assert_int_equal(got.cooperative, 1);
}

static void a_graph_is_printed_for_graphviz(void **state)
{
	char path[] = "/tmp/gpuload-dot-XXXXXX", text[4096] = "";
	int fd = mkstemp(path);
	CUgraphNode put = add_put(graph, address(word), 1, NULL), empty;
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	ok(cuGraphAddEmptyNode(&empty, graph, &put, 1));
	ok(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof text - 1, f) > 0);
	fclose(f);
	unlink(path);
	assert_non_null(strstr(text, "digraph"));
	assert_non_null(strstr(text, "->"));
	assert_non_null(strstr(text, "put"));
	fails(cuGraphDebugDotPrint(graph, "/nowhere/x.dot", 0), CUDA_ERROR_OPERATING_SYSTEM);
}

static void a_stream_captures_into_a_graph_of_the_program(void **state)
{
	CUgraphNode put = add_put(graph, address(word), 1, NULL), nodes[3];
	CUdeviceptr p = address(word);
	uint32_t value = 6;
	CUgraph got;
	size_t n = 3;
	CUgraphExec x;

	(void)state;
	ok(cuStreamBeginCaptureToGraph(s, graph, &put, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch(get_kernel("put"), 1, 1, s, (void *[]){ &p, &value });
	ok(cuStreamEndCapture(s, &got));
	assert_ptr_equal(got, graph);
	ok(cuGraphGetNodes(graph, nodes, &n));
	assert_int_equal(n, 2);
	n = 3;
	ok(cuGraphNodeGetDependencies(nodes[1], nodes, NULL, &n));
	assert_int_equal(n, 1);
	x = instantiate();
	run(x);
	assert_int_equal(word[0], 6);
	ok(cuGraphExecDestroy(x));
}

#define with_graph(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_graph(a_branch_is_chosen_by_a_kernel),
		with_graph(a_loop_runs_until_its_kernel_ends_it),
		with_graph(a_switch_runs_one_body_or_none),
		with_graph(conditional_nodes_that_make_no_sense_are_refused),
		with_graph(memory_is_allocated_and_freed_in_a_graph),
		with_graph(memory_outlives_its_graph_until_it_is_freed),
		with_graph(memory_is_freed_by_the_next_launch_on_request),
		with_graph(captured_allocations_become_nodes),
		with_graph(nodes_record_events_and_wait_for_them),
		with_graph(data_of_dependencies_is_kept),
		with_graph(an_update_names_the_node_that_differs),
		with_graph(a_child_of_an_executable_graph_is_replaced),
		with_graph(the_host_launches_a_graph_that_kernels_could_launch),
		with_graph(attributes_of_kernels_are_kept_and_copied),
		with_graph(a_graph_is_printed_for_graphviz),
		with_graph(a_stream_captures_into_a_graph_of_the_program),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
