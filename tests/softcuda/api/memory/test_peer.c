/* test_peer.c — several devices: access to the memory of another device, and copies between devices.
 *
 * On the software driver the tests use three devices.  On NVIDIA's driver they need two, and skip faults and stale
 * handles, after which no context of the process can be used there. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static CUcontext first, second; /* the contexts of devices 0 and 1 */

static int make_two(void **state)
{
	int n = 0;

	(void)state;
	setenv("GPULOAD_SOFT_DEVICES", "3", 1);
	setenv("GPULOAD_SOFT_QUIET", "1", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	if (cuInit(0) || cuDeviceGetCount(&n))
		return -1;
	if (n < 2)
		exit(77);
	return 0;
}

static int make_contexts(void **state)
{
	(void)state;
	return cuCtxCreate(&first, NULL, 0, 0) || cuCtxCreate(&second, NULL, 0, 1) ? -1 : 0;
}

static int drop_contexts(void **state)
{
	(void)state;
	return cuCtxDestroy(second) || cuCtxDestroy(first) ? -1 : 0;
}

static CUdeviceptr filled_in(CUcontext ctx, unsigned value, size_t n_words)
{
	CUdeviceptr p;

	ok(cuCtxSetCurrent(ctx));
	ok(cuMemAlloc(&p, 4 * n_words));
	ok(cuMemsetD32(p, value, n_words));
	ok(cuCtxSynchronize());
	return p;
}

static unsigned word_at(CUdeviceptr p)
{
	unsigned word = 0;

	ok(cuMemcpyDtoH(&word, p, 4));
	return word;
}

static CUresult put(CUcontext ctx, CUdeviceptr p, unsigned value)
{
	ok(cuCtxSetCurrent(ctx));
	launch(get_kernel("put"), 1, 1, NULL, (void *[]){ &p, &value });
	return cuCtxSynchronize();
}

static void every_device_can_access_every_other_device(void **state)
{
	int can = -1, value = -1;

	(void)state;
	ok(cuDeviceCanAccessPeer(&can, 0, 1));
	assert_int_equal(can, 1);
	ok(cuDeviceCanAccessPeer(&can, 1, 1));
	assert_int_equal(can, 0);
	ok(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 0));
	assert_int_equal(value, 1);
	ok(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1, 0));
	assert_int_equal(value, 0);
	fails(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1), CUDA_ERROR_INVALID_DEVICE);
	fails(cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)99, 0, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuDeviceCanAccessPeer(&can, 0, 99), CUDA_ERROR_INVALID_DEVICE);
}

static void peer_access_can_be_enabled_and_disabled(void **state)
{
	(void)state;
	ok(cuCtxSetCurrent(second));
	fails(cuCtxEnablePeerAccess(first, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	fails(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuCtxDisablePeerAccess(first), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	ok(cuCtxEnablePeerAccess(first, 0));
	fails(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	ok(cuCtxDisablePeerAccess(first));
	fails(cuCtxDisablePeerAccess(first), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

static void kernels_write_to_a_peer(void **state)
{
	CUdeviceptr before, after;

	(void)state;
	before = filled_in(first, 1, 4);
	ok(cuCtxSetCurrent(second));
	ok(cuCtxEnablePeerAccess(first, 0));
	after = filled_in(first, 2, 4);
	ok(put(second, before, 11));
	ok(put(second, after, 22));
	ok(cuMemsetD32(before + 4, 33, 1));
	ok(cuCtxSetCurrent(first));
	assert_int_equal(word_at(before), 11);
	assert_int_equal(word_at(before + 4), 33);
	assert_int_equal(word_at(after), 22);
	ok(cuMemFree(before));
	ok(cuMemFree(after));
}

static void copies_need_no_peer_access(void **state)
{
	CUdeviceptr theirs = filled_in(first, 5, 4), mine, pointer;
	unsigned word = 0, value = 6;

	(void)state;
	mine = filled_in(second, 7, 4);
	ok(cuMemcpyDtoH(&word, theirs, 4));
	assert_int_equal(word, 5);
	ok(cuMemcpyDtoD(mine, theirs, 4));
	ok(cuMemcpyHtoD(theirs, &value, 4));
	assert_int_equal(word_at(theirs), 6);
	fails(cuMemsetD32(theirs, 0, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, theirs), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(word_at(mine), 5);
	ok(cuMemFree(mine));
}

static void without_peer_access_a_kernel_faults_with_a_reason(void **state)
{
	CUdeviceptr theirs = filled_in(first, 5, 4);
	const char *(*last_fault)(void);
	void *symbol = dlsym(RTLD_DEFAULT, "gpuloadSoftLastFault");

	(void)state;
	if (!symbol)
		skip();
	fails(put(second, theirs, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	memcpy(&last_fault, &symbol, sizeof symbol);
	assert_non_null(strstr(last_fault(), "device 1"));
	assert_non_null(strstr(last_fault(), "cuCtxEnablePeerAccess"));
	ok(cuCtxSetCurrent(first));
	assert_int_equal(word_at(theirs), 5);
}

static void a_kernel_faults_after_peer_access_is_disabled(void **state)
{
	CUdeviceptr theirs = filled_in(first, 5, 4);

	(void)state;
	ok(cuCtxSetCurrent(second));
	ok(cuCtxEnablePeerAccess(first, 0));
	ok(put(second, theirs, 1));
	ok(cuCtxDisablePeerAccess(first));
	if (on_software_driver())
		fails(put(second, theirs, 2), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void only_kernels_of_its_device_can_access_a_variable(void **state)
{
	CUmodule module;
	CUdeviceptr counter;
	size_t bytes;

	(void)state;
	ok(cuCtxSetCurrent(first));
	ok(cuModuleLoadData(&module, kernels_ptx));
	ok(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
	ok(put(first, counter, 1));
	ok(cuCtxSetCurrent(second));
	ok(cuCtxEnablePeerAccess(first, 0));
	if (on_software_driver()) /* NVIDIA's driver reports this fault as well, but then the process can use no context any more */
		fails(put(second, counter, 2), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUresult let(CUmemoryPool pool, int device, CUmemAccess_flags flags)
{
	CUmemAccessDesc d = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
		.flags = flags,
	};

	return cuMemPoolSetAccess(pool, &d, 1);
}

static void the_pool_controls_which_devices_access_its_memory(void **state)
{
	CUmemLocation one = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 };
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	CUmemoryPool pool;
	CUdeviceptr p;

	(void)state;
	ok(cuDeviceGetDefaultMemPool(&pool, 0));
	ok(cuMemPoolGetAccess(&flags, pool, &one));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	ok(let(pool, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	ok(cuMemPoolGetAccess(&flags, pool, &one));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	ok(cuCtxSetCurrent(first));
	ok(cuMemAllocAsync(&p, 64, NULL));
	ok(cuCtxSynchronize());
	ok(put(second, p, 3));
	ok(cuCtxSetCurrent(first));
	assert_int_equal(word_at(p), 3);
	fails(let(pool, 0, CU_MEM_ACCESS_FLAGS_PROT_NONE), CUDA_ERROR_INVALID_DEVICE);
	fails(let(pool, 99, CU_MEM_ACCESS_FLAGS_PROT_READ), CUDA_ERROR_INVALID_DEVICE);
	ok(let(pool, 1, CU_MEM_ACCESS_FLAGS_PROT_NONE)); /* the new access also applies to existing allocations */
	if (on_software_driver())
		fails(put(second, p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void all_devices_can_access_page_locked_memory(void **state)
{
	void *host;

	(void)state;
	ok(cuCtxSetCurrent(first));
	ok(cuMemHostAlloc(&host, 4, CU_MEMHOSTALLOC_PORTABLE));
	ok(put(second, (CUdeviceptr)(uintptr_t)host, 9));
	assert_int_equal(*(unsigned *)host, 9);
}

static void copies_between_contexts(void **state)
{
	CUdeviceptr a = filled_in(first, 1, 8), b = filled_in(second, 2, 8);
	CUstream stream;
	CUDA_MEMCPY3D_PEER box = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = a,
		.srcContext = first,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = b + 16,
		.dstContext = second,
		.WidthInBytes = 8,
		.Height = 1,
		.Depth = 1,
	};

	(void)state;
	ok(cuMemcpyPeer(b, second, a, first, 4));
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuMemcpyPeerAsync(b + 8, second, a, first, 4, stream));
	ok(cuStreamSynchronize(stream));
	ok(cuMemcpy3DPeer(&box));
	ok(cuMemcpy3DPeerAsync(&box, stream));
	ok(cuCtxSynchronize());
	assert_int_equal(word_at(b), 1);
	assert_int_equal(word_at(b + 4), 2);
	assert_int_equal(word_at(b + 8), 1);
	assert_int_equal(word_at(b + 20), 1);
	if (!on_software_driver())
		return;
	fails(cuMemcpyPeer(b, second, a, NULL, 4), CUDA_ERROR_INVALID_CONTEXT);
	fails(cuMemcpyPeer(b, second, a, first, 400), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemcpy3DPeer(NULL), CUDA_ERROR_INVALID_VALUE);
}

/* The copy waits for the kernel in the context of the source.  Later work in the context of the destination waits for the copy. */
static void a_copy_waits_for_its_source_and_delays_its_destination(void **state)
{
	CUdeviceptr flag_seen = filled_in(first, 0, 1), copy, again;
	uint32_t *flag = make_flag();
	void *params[] = { &flag, &flag_seen };

	(void)state;
	if (!on_software_driver())
		skip(); /* NVIDIA's driver may copy through the host, and wait for the kernel in the call */
	launch(get_kernel("spin"), 1, 1, NULL, params);
	copy = filled_in(second, 0, 1);
	again = filled_in(second, 0, 1);
	ok(cuMemcpyPeer(copy, second, flag_seen, first, 4));
	ok(cuMemcpyDtoDAsync(again, copy, 4, NULL));
	fails(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	raise_flag(flag);
	ok(cuCtxSynchronize());
	assert_int_equal(word_at(again), 1);
}

static void an_event_of_a_context_waits_for_all_its_streams(void **state)
{
	CUdeviceptr seen = filled_in(first, 0, 1);
	uint32_t *flag = make_flag();
	CUstream busy;
	CUevent event, legacy;
	void *params[] = { &flag, &seen };

	(void)state;
	ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	ok(cuEventCreate(&legacy, CU_EVENT_DISABLE_TIMING));
	ok(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	launch(get_kernel("spin"), 1, 1, busy, params);
	ok(cuEventRecord(legacy, NULL));
	ok(cuCtxRecordEvent(first, event));
	ok(cuEventSynchronize(legacy)); /* the legacy stream does not wait for non-blocking streams */
	fails(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	raise_flag(flag);
	ok(cuEventSynchronize(event));
	assert_int_equal(word_at(seen), 1);
	fails(cuCtxRecordEvent(second, event), CUDA_ERROR_INVALID_HANDLE);
	if (on_software_driver())
		fails(cuCtxRecordEvent(first, (CUevent)(uintptr_t)0x1234560), CUDA_ERROR_INVALID_HANDLE);
}

static void a_context_waits_for_an_event_of_another_context(void **state)
{
	CUdeviceptr seen = filled_in(first, 0, 1), late = filled_in(second, 0, 1);
	uint32_t *flag;
	CUstream other;
	CUevent event;

	(void)state;
	ok(cuCtxSetCurrent(first));
	flag = make_flag();
	ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	launch(get_kernel("spin"), 1, 1, NULL, (void *[]){ &flag, &seen });
	ok(cuEventRecord(event, NULL));
	ok(cuCtxWaitEvent(second, event));
	ok(cuCtxSetCurrent(second));
	ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING)); /* this stream is created after the wait, and does not wait either */
	ok(cuMemsetD32Async(late, 4, 1, other));
	fails(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	raise_flag(flag);
	ok(cuStreamSynchronize(other));
	assert_int_equal(word_at(late), 4);
	fails(cuCtxWaitEvent(second, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void a_destroyed_context_is_removed_as_a_peer(void **state)
{
	CUcontext third;
	CUdeviceptr theirs;

	(void)state;
	ok(cuCtxCreate(&third, NULL, 0, 0));
	ok(cuCtxSetCurrent(second));
	ok(cuCtxEnablePeerAccess(third, 0));
	ok(cuCtxDestroy(third));
	if (on_software_driver())
		fails(cuCtxDisablePeerAccess(third), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuCtxEnablePeerAccess(first, 0));
	theirs = filled_in(first, 1, 1);
	ok(put(second, theirs, 3));
}

/* A kernel runs in the context of its function; the memory of each device is not accessible to the other. */
static void the_kernels_of_one_graph_run_on_several_devices(void **state)
{
	unsigned values[] = { 11, 22 };
	CUcontext contexts[] = { first, second };
	CUdeviceptr at[2];
	CUgraphNode node[2];
	CUgraphExec exec;
	CUgraph graph;

	(void)state;
	ok(cuGraphCreate(&graph, 0));
	for (int i = 0; i < 2; i++) {
		CUDA_KERNEL_NODE_PARAMS p = { .gridDimX = 1,
					      .gridDimY = 1,
					      .gridDimZ = 1,
					      .blockDimX = 1,
					      .blockDimY = 1,
					      .blockDimZ = 1,
					      .kernelParams = (void *[]){ &at[i], &values[i] } };

		at[i] = filled_in(contexts[i], 0, 1);
		p.func = get_kernel("put");
		ok(cuCtxSetCurrent(first));
		ok(cuGraphAddKernelNode(&node[i], graph, node, (size_t)i, &p));
	}
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphLaunch(exec, NULL));
	ok(cuCtxSynchronize());
	for (int i = 0; i < 2; i++) {
		assert_int_equal(word_at(at[i]), values[i]);
		ok(cuMemFree(at[i]));
	}
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
}

/* tinygrad adds nodes with an empty grid if the grid depends on a variable, and sets the grid before the launch. */
static void an_empty_grid_of_a_node_is_refused_at_launch_and_can_be_set_before(void **state)
{
	unsigned value = 5;
	CUdeviceptr at;
	CUDA_KERNEL_NODE_PARAMS p = {
		.gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = (void *[]){ &at, &value }
	};
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	(void)state;
	if (!on_software_driver())
		skip(); /* it is not known what NVIDIA's driver does */
	at = filled_in(first, 0, 1);
	p.func = get_kernel("put");
	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &p));
	ok(cuGraphInstantiate(&exec, graph, 0));
	fails(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(p.func, 0, 1, 1, 1, 1, 1, 0, NULL, p.kernelParams, NULL), CUDA_ERROR_INVALID_VALUE);
	p.gridDimX = 1;
	ok(cuGraphExecKernelNodeSetParams(exec, node, &p));
	ok(cuGraphLaunch(exec, NULL));
	assert_int_equal(word_at(at), 5);
	ok(cuMemFree(at));
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
}

#define test(f) cmocka_unit_test_setup_teardown(f, make_contexts, drop_contexts)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(every_device_can_access_every_other_device),
		test(peer_access_can_be_enabled_and_disabled),
		test(kernels_write_to_a_peer),
		test(copies_need_no_peer_access),
		test(without_peer_access_a_kernel_faults_with_a_reason),
		test(a_kernel_faults_after_peer_access_is_disabled),
		test(only_kernels_of_its_device_can_access_a_variable),
		test(the_pool_controls_which_devices_access_its_memory),
		test(all_devices_can_access_page_locked_memory),
		test(copies_between_contexts),
		test(a_copy_waits_for_its_source_and_delays_its_destination),
		test(an_event_of_a_context_waits_for_all_its_streams),
		test(a_context_waits_for_an_event_of_another_context),
		test(a_destroyed_context_is_removed_as_a_peer),
		test(the_kernels_of_one_graph_run_on_several_devices),
		test(an_empty_grid_of_a_node_is_refused_at_launch_and_can_be_set_before),
	};

	return cmocka_run_group_tests(tests, make_two, NULL);
}
