/* test_user_objects.c — user objects: the program's objects that graphs, executable graphs and running launches keep alive. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <sched.h>

static int n_destroyed[2];
static CUcontext ctx;
static CUstream s;

static int set_up(void **state)
{
	(void)state;
	n_destroyed[0] = n_destroyed[1] = 0;
	ok(cuCtxGetCurrent(&ctx));
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ok(cuStreamDestroy(s));
	return 0;
}

static void count_destroyed(void *user)
{
	__atomic_add_fetch((int *)user, 1, __ATOMIC_RELEASE);
}

static void await_destroyed(const int *n, int wanted)
{
	while (__atomic_load_n(n, __ATOMIC_ACQUIRE) != wanted)
		sched_yield();
}

static int destroyed(int k)
{
	return __atomic_load_n(&n_destroyed[k], __ATOMIC_ACQUIRE);
}

/* Create an object, and transfer it to the graph; n_destroyed[k] counts its destruction. */
static CUuserObject give_object(CUgraph graph, int k)
{
	CUuserObject o;

	ok(cuUserObjectCreate(&o, &n_destroyed[k], count_destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	if (on_software_driver()) /* NVIDIA's driver accepts this call, and its reference count is wrong afterwards */
		fails(cuUserObjectRelease(o, 2), CUDA_ERROR_INVALID_VALUE);
	ok(cuGraphRetainUserObject(graph, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
	return o;
}

/* A graph with one kernel, which waits until the flag is raised. */
static CUgraph waiting_graph(const uint32_t *flag)
{
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)flag;
	CUDA_KERNEL_NODE_PARAMS p = { .func = get_kernel("spin"),
				      .gridDimX = 1,
				      .gridDimY = 1,
				      .gridDimZ = 1,
				      .blockDimX = 1,
				      .blockDimY = 1,
				      .blockDimZ = 1,
				      .kernelParams = (void *[]){ &at, &at } };
	CUgraphNode node;
	CUgraph graph;

	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &p));
	return graph;
}

static void an_object_lives_as_long_as_its_graphs(void **state)
{
	uint32_t *flag = make_flag();
	CUgraph graph = waiting_graph(flag), clone;
	CUuserObject o = give_object(graph, 0);
	CUgraphExec x;

	(void)state;
	ok(cuGraphClone(&clone, graph));
	ok(cuGraphInstantiate(&x, graph, 0));
	ok(cuGraphReleaseUserObject(graph, o, 1));
	ok(cuGraphDestroy(graph));
	ok(cuGraphDestroy(clone));
	ok(cuGraphLaunch(x, s));
	ok(cuGraphExecDestroy(x));
	assert_int_equal(destroyed(0), 0); /* the launch has not ended */
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	await_destroyed(&n_destroyed[0], 1);
	if (on_software_driver()) /* in NVIDIA's driver the handle is a dangling pointer */
		fails(cuUserObjectRetain(o, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFreeHost(flag));
}

static void an_update_replaces_the_objects_once_launches_have_ended(void **state)
{
	uint32_t *flag = make_flag();
	CUgraph first = waiting_graph(flag), second = waiting_graph(flag);
	CUgraphExecUpdateResultInfo info;
	CUgraphExec x;

	(void)state;
	give_object(first, 0);
	give_object(second, 1);
	ok(cuGraphInstantiate(&x, first, 0));
	ok(cuGraphDestroy(first));
	ok(cuGraphLaunch(x, s));
	ok(cuGraphExecUpdate(x, second, &info));
	ok(cuGraphDestroy(second));
	assert_int_equal(destroyed(0), 0);
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	await_destroyed(&n_destroyed[0], 1);
	ok(cuGraphLaunch(x, s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(destroyed(1), 0);
	ok(cuGraphExecDestroy(x));
	await_destroyed(&n_destroyed[1], 1);
	ok(cuMemFreeHost(flag));
}

/* Update from a graph without objects to a graph with an object, and back; a refused update replaces no object. */
static void an_update_brings_and_removes_objects(void **state)
{
	uint32_t *flag = make_flag();
	CUgraph bare = waiting_graph(flag), owner = waiting_graph(flag), other = waiting_graph(flag);
	CUgraphExecUpdateResultInfo info;
	CUgraphNode empty;
	CUgraphExec x;

	(void)state;
	give_object(owner, 0);
	give_object(other, 1);
	ok(cuGraphAddEmptyNode(&empty, other, NULL, 0));
	ok(cuGraphInstantiate(&x, bare, 0));
	ok(cuGraphExecUpdate(x, owner, &info));
	ok(cuGraphDestroy(owner));
	fails(cuGraphExecUpdate(x, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	ok(cuGraphDestroy(other));
	await_destroyed(&n_destroyed[1], 1);
	assert_int_equal(destroyed(0), 0);
	ok(cuGraphLaunch(x, s));
	ok(cuGraphExecUpdate(x, bare, &info));
	assert_int_equal(destroyed(0), 0); /* the launch has not ended */
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	await_destroyed(&n_destroyed[0], 1);
	ok(cuGraphLaunch(x, s));
	ok(cuGraphExecDestroy(x));
	ok(cuGraphDestroy(bare));
	ok(cuStreamSynchronize(s));
	ok(cuMemFreeHost(flag));
}

static void a_new_child_of_an_executable_graph_adds_its_objects(void **state)
{
	uint32_t *flag = make_flag();
	CUgraph child[2] = { waiting_graph(flag), waiting_graph(flag) }, graph;
	CUgraphNode node;
	CUgraphExec x;

	(void)state;
	raise_flag(flag);
	ok(cuGraphCreate(&graph, 0));
	give_object(graph, 0);
	give_object(child[1], 1);
	ok(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child[0]));
	ok(cuGraphInstantiate(&x, graph, 0));
	ok(cuGraphExecChildGraphNodeSetParams(x, node, child[1]));
	for (int k = 0; k < 2; k++)
		ok(cuGraphDestroy(child[k]));
	ok(cuGraphDestroy(graph));
	ok(cuGraphLaunch(x, s));
	ok(cuStreamSynchronize(s));
	assert_int_equal(destroyed(0) + destroyed(1), 0);
	ok(cuGraphExecDestroy(x));
	await_destroyed(&n_destroyed[0], 1);
	await_destroyed(&n_destroyed[1], 1);
	ok(cuMemFreeHost(flag));
}

#define with_stream(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_stream(an_object_lives_as_long_as_its_graphs),
		with_stream(an_update_replaces_the_objects_once_launches_have_ended),
		with_stream(an_update_brings_and_removes_objects),
		with_stream(a_new_child_of_an_executable_graph_adds_its_objects),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
