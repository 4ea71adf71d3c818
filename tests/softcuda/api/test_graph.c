/* test_graph.c — graphs that are built node by node, and executable graphs that are changed. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>

static CUstream s;
static CUgraph graph;
static uint32_t *word;

static int set_up(void **state)
{
	(void)state;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuGraphCreate(&graph, 0));
	ok(cuMemHostAlloc((void **)&word, 64, 0));
	memset(word, 0, 64);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ok(cuStreamDestroy(s));
	if (graph)
		ok(cuGraphDestroy(graph));
	ok(cuMemFreeHost(word));
	return 0;
}

static CUdeviceptr address(const uint32_t *w)
{
	return (CUdeviceptr)(uintptr_t)w;
}

/* The parameters of a node that stores *value at *where.  The node copies both arguments, which params points to. */
static CUDA_KERNEL_NODE_PARAMS put(void *params[2], CUdeviceptr *where, uint32_t *value)
{
	params[0] = where;
	params[1] = value;
	return (CUDA_KERNEL_NODE_PARAMS){ .func = get_kernel("put"),
					  .gridDimX = 1,
					  .gridDimY = 1,
					  .gridDimZ = 1,
					  .blockDimX = 1,
					  .blockDimY = 1,
					  .blockDimZ = 1,
					  .kernelParams = params };
}

static CUgraphNode add_put(uint32_t *where, uint32_t value, const CUgraphNode *waits_for, size_t n)
{
	CUdeviceptr p = address(where);
	void *params[2];
	CUDA_KERNEL_NODE_PARAMS k = put(params, &p, &value);
	CUgraphNode node = NULL;

	ok(cuGraphAddKernelNode(&node, graph, waits_for, n, &k));
	return node;
}

static CUDA_MEMCPY3D copy_of(uint32_t *to, uint32_t *from, size_t words)
{
	return (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
				.srcDevice = address(from),
				.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
				.dstDevice = address(to),
				.WidthInBytes = 4 * words,
				.Height = 1,
				.Depth = 1 };
}

static CUgraphNode add_copy(uint32_t *to, uint32_t *from, const CUgraphNode *waits_for, size_t n)
{
	CUDA_MEMCPY3D c = copy_of(to, from, 1);
	CUgraphNode node = NULL;
	CUcontext ctx;

	ok(cuCtxGetCurrent(&ctx));
	ok(cuGraphAddMemcpyNode(&node, graph, waits_for, n, &c, ctx));
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
	memset(word, 0, 64);
	ok(cuGraphLaunch(x, s));
	ok(cuStreamSynchronize(s));
}

static void add_to(void *user)
{
	*(uint32_t *)user += 1;
}

static void nodes_of_every_type_run_in_the_order_of_their_edges(void **state)
{
	CUDA_MEMSET_NODE_PARAMS fill = { .dst = address(word), .value = 4, .elementSize = 4, .width = 8, .height = 1 };
	CUDA_HOST_NODE_PARAMS call = { .fn = add_to, .userData = &word[1] };
	CUgraphNode node[5];
	CUgraphExec x;

	/* fill ─> put word[0] ─> empty ─> copy word[2] = word[0]
	 *      └> word[1] += 1 ─┘                                    */
	ok(cuGraphAddMemsetNode(&node[0], graph, NULL, 0, &fill, *state));
	node[1] = add_put(&word[0], 9, &node[0], 1);
	ok(cuGraphAddHostNode(&node[2], graph, &node[0], 1, &call));
	ok(cuGraphAddEmptyNode(&node[3], graph, &node[1], 2));
	node[4] = add_copy(&word[2], &word[0], &node[3], 1);
	x = instantiate();
	for (int i = 0; i < 2; i++) {
		run(x);
		assert_int_equal(word[0], 9);
		assert_int_equal(word[1], 5);
		assert_int_equal(word[2], 9);
		assert_int_equal(word[7], 4);
	}
	ok(cuGraphExecDestroy(x));
}

static void edges_are_added_listed_and_removed(void **state)
{
	CUgraphNode a = add_put(&word[0], 1, NULL, 0), b = add_copy(&word[1], &word[0], NULL, 0), root[3], from[3], to[3];
	CUgraphExec x;
	size_t n = 3;

	(void)state;
	ok(cuGraphGetRootNodes(graph, root, &n));
	assert_int_equal(n, 2);
	ok(cuGraphAddDependencies(graph, &a, &b, NULL, 1));
	fails(cuGraphAddDependencies(graph, &a, &a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	n = 3;
	ok(cuGraphGetRootNodes(graph, root, &n));
	assert_int_equal(n, 1);
	assert_ptr_equal(root[0], a);
	ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	assert_int_equal(n, 1);
	n = 3;
	ok(cuGraphGetEdges(graph, from, to, NULL, &n));
	assert_int_equal(n, 1);
	assert_ptr_equal(from[0], a);
	assert_ptr_equal(to[0], b);
	n = 3;
	ok(cuGraphNodeGetDependencies(b, from, NULL, &n));
	assert_int_equal(n, 1);
	n = 3;
	ok(cuGraphNodeGetDependentNodes(a, to, NULL, &n));
	assert_int_equal(n, 1);
	assert_ptr_equal(to[0], b);
	n = SIZE_MAX; /* NVIDIA's Warp only wants the number, and leaves n uninitialised */
	ok(cuGraphNodeGetDependentNodes(a, NULL, NULL, &n));
	assert_int_equal(n, 1);
	n = SIZE_MAX;
	ok(cuGraphNodeGetDependencies(a, NULL, NULL, &n));
	assert_int_equal(n, 0);
	n = SIZE_MAX;
	ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	assert_int_equal(n, 1);
	n = SIZE_MAX;
	ok(cuGraphGetNodes(graph, NULL, &n));
	assert_int_equal(n, 2);
	x = instantiate();
	run(x);
	assert_int_equal(word[1], 1);
	ok(cuGraphExecDestroy(x));
	ok(cuGraphRemoveDependencies(graph, &a, &b, NULL, 1));
	ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	assert_int_equal(n, 0);
	ok(cuGraphAddDependencies(graph, &a, &b, NULL, 1));
	ok(cuGraphDestroyNode(a));
	n = 3;
	ok(cuGraphGetNodes(graph, root, &n));
	assert_int_equal(n, 1);
	ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	assert_int_equal(n, 0);
	if (on_software_driver()) /* the handle of a destroyed node is a dangling pointer in NVIDIA's driver */
		fails(cuGraphDestroyNode(a), CUDA_ERROR_INVALID_VALUE);
}

static void a_cycle_cannot_be_instantiated(void **state)
{
	CUgraphNode a = add_put(&word[0], 1, NULL, 0), b = add_put(&word[1], 1, &a, 1);
	CUgraphExec x;

	(void)state;
	if (!on_software_driver()) /* NVIDIA's driver may refuse the edge */
		skip();
	ok(cuGraphAddDependencies(graph, &b, &a, NULL, 1));
	fails(cuGraphInstantiate(&x, graph, 0), CUDA_ERROR_INVALID_VALUE);
}

static void parameters_are_read_and_changed(void **state)
{
	CUgraphNode k = add_put(&word[0], 1, NULL, 0);
	CUDA_KERNEL_NODE_PARAMS got;
	CUdeviceptr p = address(&word[3]);
	uint32_t value = 8;
	void *params[2];
	CUDA_KERNEL_NODE_PARAMS changed = put(params, &p, &value);
	CUgraphExec before = instantiate(), x;

	(void)state;
	ok(cuGraphKernelNodeGetParams(k, &got));
	assert_int_equal(got.blockDimX, 1);
	assert_int_equal(*(uint32_t *)got.kernelParams[1], 1);
	ok(cuGraphKernelNodeSetParams(k, &changed));
	ok(cuGraphKernelNodeGetParams(k, &got));
	assert_int_equal(*(uint32_t *)got.kernelParams[1], 8);
	x = instantiate();
	run(x);
	assert_int_equal(word[0], 0);
	assert_int_equal(word[3], 8);
	run(before); /* a change of the graph does not change the executable graph */
	assert_int_equal(word[0], 1);
	value = 12;
	ok(cuGraphExecKernelNodeSetParams(before, k, &changed));
	run(before);
	assert_int_equal(word[0], 0);
	assert_int_equal(word[3], 12);
	ok(cuGraphExecDestroy(before));
	ok(cuGraphExecDestroy(x));
}

static void nodes_of_an_executable_graph_are_disabled(void **state)
{
	CUgraphNode a = add_put(&word[0], 1, NULL, 0), b = add_put(&word[1], 2, &a, 1);
	CUgraphExec x = instantiate();
	unsigned enabled = 7;

	(void)state;
	ok(cuGraphNodeSetEnabled(x, a, 0));
	ok(cuGraphNodeGetEnabled(x, a, &enabled));
	assert_int_equal(enabled, 0);
	run(x);
	assert_int_equal(word[0], 0);
	assert_int_equal(word[1], 2);
	ok(cuGraphNodeSetEnabled(x, a, 1));
	ok(cuGraphNodeGetEnabled(x, b, &enabled));
	assert_int_equal(enabled, 1);
	run(x);
	assert_int_equal(word[0], 1);
	ok(cuGraphExecDestroy(x));
}

static void an_executable_graph_takes_over_the_work_of_another_graph(void **state)
{
	CUgraphNode a = add_put(&word[0], 1, NULL, 0);
	CUgraphExec x = instantiate();
	CUgraph other;
	CUgraphExecUpdateResultInfo info;

	(void)state;
	(void)a;
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	{
		CUdeviceptr p = address(&word[5]);
		uint32_t value = 6;
		void *params[2] = { &p, &value };

		launch(get_kernel("put"), 1, 1, s, params);
	}
	ok(cuStreamEndCapture(s, &other));
	ok(cuGraphExecUpdate(x, other, &info));
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	run(x);
	assert_int_equal(word[0], 0);
	assert_int_equal(word[5], 6);
	(void)add_put(&word[1], 1, NULL, 0);
	fails(cuGraphExecUpdate(x, graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	ok(cuGraphDestroy(other));
	ok(cuGraphExecDestroy(x));
}

static void a_clone_is_independent(void **state)
{
	CUgraphNode a = add_put(&word[0], 1, NULL, 0), found, in_graph;
	CUgraphNode b = add_copy(&word[1], &word[0], &a, 1);
	CUgraph clone, parent, child;
	CUgraphExec x;
	size_t n = 0;

	(void)state;
	ok(cuGraphClone(&clone, graph));
	ok(cuGraphNodeFindInClone(&found, b, clone));
	assert_ptr_not_equal(found, b);
	ok(cuGraphCreate(&parent, 0));
	ok(cuGraphAddChildGraphNode(&in_graph, parent, NULL, 0, clone));
	ok(cuGraphChildGraphNodeGetGraph(in_graph, &child));
	ok(cuGraphGetNodes(child, NULL, &n));
	assert_int_equal(n, 2);
	ok(cuGraphDestroy(clone));
	ok(cuGraphDestroy(graph));
	graph = NULL;
	ok(cuGraphInstantiate(&x, parent, 0));
	ok(cuGraphDestroy(parent));
	run(x);
	assert_int_equal(word[1], 1);
	ok(cuGraphExecDestroy(x));
}

static void a_node_is_inserted_in_a_capture(void **state)
{
	CUgraph captured;
	const CUgraphNode *tips;
	CUstreamCaptureStatus status;
	CUgraphNode node, end;
	CUgraphExec x;
	size_t n;

	(void)state;
	ok(cuGraphDestroy(graph));
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	ok(cuMemsetD32Async(address(word), 3, 1, s));
	ok(cuStreamGetCaptureInfo(s, &status, NULL, &graph, &tips, NULL, &n));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	assert_int_equal(n, 1);
	node = add_copy(&word[1], &word[0], tips, n);
	if (on_software_driver()) /* NVIDIA does not document this case */
		fails(cuGraphDestroyNode(node), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamUpdateCaptureDependencies(s, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	ok(cuMemcpyDtoDAsync(address(&word[2]), address(&word[1]), 4, s));
	ok(cuStreamGetCaptureInfo(s, &status, NULL, NULL, &tips, NULL, &n));
	end = tips[0];
	add_put(&word[3], 8, &end, 1); /* no later node waits for this node, which the program added */
	ok(cuStreamEndCapture(s, &captured));
	assert_ptr_equal(captured, graph);
	x = instantiate();
	run(x);
	assert_int_equal(word[2], 3);
	assert_int_equal(word[3], 8);
	ok(cuGraphExecDestroy(x));
	fails(cuStreamUpdateCaptureDependencies(s, &node, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES), CUDA_ERROR_ILLEGAL_STATE);
}

/* A forked stream need not be joined if its last node (tip) was added by the program itself, as in the captures of NCCL. */
static void a_tip_that_the_program_added_need_not_be_joined(void **state)
{
	CUgraph captured;
	CUstreamCaptureStatus status;
	CUgraphNode node;
	CUgraphExec x;
	CUstream side;
	CUevent forked;

	(void)state;
	ok(cuGraphDestroy(graph));
	ok(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	ok(cuEventCreate(&forked, 0));
	ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	ok(cuEventRecord(forked, s));
	ok(cuStreamWaitEvent(side, forked, 0));
	ok(cuMemsetD32Async(address(word), 3, 1, side));
	ok(cuEventRecord(forked, side));
	ok(cuStreamWaitEvent(s, forked, 0));
	ok(cuStreamGetCaptureInfo(side, &status, NULL, &graph, NULL, NULL, NULL));
	node = add_put(&word[1], 8, NULL, 0);
	ok(cuStreamUpdateCaptureDependencies(side, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	ok(cuStreamEndCapture(s, &captured));
	x = instantiate();
	run(x);
	assert_int_equal(word[0], 3);
	assert_int_equal(word[1], 8);
	ok(cuGraphExecDestroy(x));
	ok(cuEventDestroy(forked));
	ok(cuStreamDestroy(side));
}

static void stale_handles_are_refused(void **state)
{
	CUgraphExec x = instantiate();
	CUgraphNodeType type;

	(void)state;
	if (!on_software_driver()) /* NVIDIA's driver crashes here */
		skip();
	ok(cuGraphExecDestroy(x));
	fails(cuGraphExecDestroy(x), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphLaunch(x, s), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphNodeGetType((CUgraphNode)(uintptr_t)0x1234, &type), CUDA_ERROR_INVALID_VALUE);
	fails(cuGraphDestroy((CUgraph)(uintptr_t)0x1234), CUDA_ERROR_INVALID_VALUE);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nodes_of_every_type_run_in_the_order_of_their_edges),
		CASE(edges_are_added_listed_and_removed),
		CASE(a_cycle_cannot_be_instantiated),
		CASE(parameters_are_read_and_changed),
		CASE(nodes_of_an_executable_graph_are_disabled),
		CASE(an_executable_graph_takes_over_the_work_of_another_graph),
		CASE(a_clone_is_independent),
		CASE(a_node_is_inserted_in_a_capture),
		CASE(a_tip_that_the_program_added_need_not_be_joined),
		CASE(stale_handles_are_refused),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
