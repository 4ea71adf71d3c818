/* test_launch.c — launches: the two ways to pass arguments, limits, and when the driver copies the arguments. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>

static CUdeviceptr make_word(uint32_t value)
{
	CUdeviceptr p;

	ok(cuMemAlloc(&p, 4));
	ok(cuMemcpyHtoD(p, &value, 4));
	return p;
}

static uint32_t take_word(CUdeviceptr p)
{
	uint32_t value;

	ok(cuMemcpyDtoH(&value, p, 4));
	ok(cuMemFree(p));
	return value;
}

static void adds_two_vectors(void **state)
{
	enum { N = 1000 };
	static double a[N], b[N], c[N];
	CUfunction f = get_kernel("vecadd");
	CUdeviceptr da, db, dc;
	unsigned n = N;
	void *params[] = { &dc, &da, &db, &n };

	(void)state;
	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 0.5 * i;
	}
	ok(cuMemAlloc(&da, sizeof a));
	ok(cuMemAlloc(&db, sizeof b));
	ok(cuMemAlloc(&dc, sizeof c));
	ok(cuMemcpyHtoD(da, a, sizeof a));
	ok(cuMemcpyHtoD(db, b, sizeof b));
	launch(f, 4, 256, NULL, params);
	ok(cuMemcpyDtoH(c, dc, sizeof c));
	for (int i = 0; i < N; i++)
		assert_true(c[i] == 1.5 * i);
	ok(cuMemFree(da));
	ok(cuMemFree(db));
	ok(cuMemFree(dc));
}

static void accepts_arguments_as_a_list_or_a_buffer(void **state)
{
	CUfunction f = get_kernel("put");
	CUdeviceptr word = make_word(0);
	struct {
		CUdeviceptr word;
		uint32_t value;
	} buffer = { word, 42 };
	size_t bytes = 12;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END };
	void *wrong_key[] = { (void *)7, &buffer, CU_LAUNCH_PARAM_END };
	void *params[] = { &buffer.word, &buffer.value }, *with_null[] = { &buffer.word, NULL };

	(void)state;
	ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	buffer.value = 43; /* has no effect on the launch, which has already copied the arguments */
	ok(cuCtxSynchronize());
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	if (on_software_driver()) /* NVIDIA's driver would dereference the NULL argument */
		fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, with_null, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, wrong_key), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(take_word(word), 42);
}

/* On an H200 the kernel may read bytes of an earlier launch in place of the missing ones; on the software driver they are 0. */
static void a_buffer_of_arguments_can_be_shorter_than_the_parameters(void **state)
{
	CUfunction f = get_kernel("put"), nothing = get_kernel("bump");
	CUdeviceptr word = make_word(7);
	struct {
		CUdeviceptr word;
		uint32_t value, behind;
	} buffer = { word, 0x01020304, 5 };
	size_t bytes;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END };
	void *size_only[] = { CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END };
	void *empty[] = { CU_LAUNCH_PARAM_END }, *params[] = { &buffer.word, &buffer.value };
	const struct {
		size_t bytes;
		uint32_t seen;
	} cases[] = { { 12, 0x01020304 }, { 11, 0x020304 }, { 9, 4 }, { 8, 0 } };
	CUDA_KERNEL_NODE_PARAMS node = {
		.func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .extra = extra
	};
	uint32_t seen;
	CUgraphNode n;
	CUgraph graph;

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		bytes = cases[k].bytes;
		ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
		ok(cuMemcpyDtoH(&seen, word, 4));
		if (on_software_driver() || bytes == 12)
			assert_int_equal(seen, cases[k].seen);
	}
	ok(cuGraphCreate(&graph, 0));
	bytes = 9;
	ok(cuGraphAddKernelNode(&n, graph, NULL, 0, &node));
	for (bytes = 13; bytes <= 16; bytes++) {
		fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
		fails(cuGraphAddKernelNode(&n, graph, NULL, 0, &node), CUDA_ERROR_INVALID_VALUE);
		fails(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	}
	bytes = 0;
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, empty), CUDA_ERROR_INVALID_VALUE);
	ok(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	bytes = 12;
	fails(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, size_only), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra), CUDA_ERROR_INVALID_VALUE);
	ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, empty));
	ok(cuGraphDestroy(graph));
	take_word(word);
}

static void refuses_launches_beyond_the_limits_of_a_gpu(void **state)
{
	CUfunction f = get_kernel("bump"), small = get_kernel("at_most_64");

	(void)state;
	fails(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1, 1, 1, 32, 33, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1, 1, 1, 0, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1u << 31, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 48 * 1024 + 1, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuLaunchKernel(small, 1, 1, 1, 65, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuLaunchKernel(small, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
	fails(cuLaunchCooperativeKernel(f, 100000, 1, 1, 1, 1, 1, 0, NULL, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	fails(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	if (on_software_driver()) /* NVIDIA's driver would dereference the invalid handles */
		fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, (CUstream)f, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	ok(cuCtxSynchronize()); /* the refused launches leave the context usable */
}

static void allows_more_shared_memory_after_setting_the_attribute(void **state)
{
	CUfunction f = get_kernel("shared_end");
	CUdeviceptr out = make_word(0);
	unsigned bytes = 200 * 1024;
	void *params[] = { &out, &bytes };

	(void)state;
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024 + 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes));
	ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes, NULL, params, NULL));
	assert_int_equal(take_word(out), 77);
}

static void launches_with_launch_attributes(void **state)
{
	CUfunction f = get_kernel("count");
	CUdeviceptr sum = make_word(0);
	void *params[] = { &sum };
	CUlaunchAttribute attributes[2] = { { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE }, { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION } };
	CUlaunchConfig config = { .gridDimX = 2,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 64,
				  .blockDimY = 1,
				  .blockDimZ = 1,
				  .attrs = attributes,
				  .numAttrs = 2 };

	(void)state;
	attributes[0].value.cooperative = 1;
	attributes[1].value.clusterDim.x = attributes[1].value.clusterDim.y = attributes[1].value.clusterDim.z = 1;
	ok(cuLaunchKernelEx(&config, f, params, NULL));
	attributes[1].value.clusterDim.x = 2;
	ok(cuLaunchKernelEx(&config, f, params, NULL));
	attributes[1].value.clusterDim.x = 64;
	fails(cuLaunchKernelEx(&config, f, params, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	fails(cuLaunchKernelEx(NULL, f, params, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuLaunchCooperativeKernel(f, 2, 1, 1, 32, 1, 1, 0, NULL, params));
	assert_int_equal(take_word(sum), 320);
}

static void counts_the_clusters_that_fit(void **state)
{
	CUfunction f = get_kernel("count");
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
	CUlaunchConfig config = { .gridDimX = 8,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 1024,
				  .blockDimY = 1,
				  .blockDimZ = 1,
				  .attrs = &attribute,
				  .numAttrs = 1 };
	int n = 0, alone = 0, value = -1;

	(void)state;
	attribute.value.clusterDim.x = 2;
	attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
	ok(cuOccupancyMaxActiveClusters(&alone, f, &config));
	attribute.value.clusterDim.x = 8;
	ok(cuOccupancyMaxActiveClusters(&n, f, &config));
	assert_true(n > 0 && n < alone);
	ok(cuOccupancyMaxPotentialClusterSize(&n, f, &config));
	assert_int_equal(n, 8);
	ok(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, f));
	assert_int_equal(value, 1);
	ok(cuOccupancyMaxPotentialClusterSize(&n, f, &config));
	assert_int_equal(n, 16);
	ok(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0));
	fails(cuOccupancyMaxActiveClusters(NULL, f, &config), CUDA_ERROR_INVALID_VALUE);
}

static void keeps_the_code_until_the_launch_has_ended(void **state)
{
	CUmodule module;
	CUfunction f;
	CUdeviceptr sum = make_word(0);
	void *params[] = { &sum };

	(void)state;
	ok(cuModuleLoadData(&module, kernels_ptx));
	ok(cuModuleGetFunction(&f, module, "count"));
	launch(f, 1000, 32, NULL, params);
	ok(cuModuleUnload(module));
	assert_int_equal(take_word(sum), 32000);
	fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
}

/* Impossible configurations must not cause a division by zero, nor a product that overflows to a valid block size. */
static void occupancy_of_impossible_blocks_and_clusters_is_refused_or_0(void **state)
{
	static const unsigned wrong[][3] = { { 0, 1, 1 },         { 1, 0, 1 },
					     { 1, 1, 0 },         { 0, 0, 0 },
					     { 65536, 65536, 1 }, { 1u << 31, 2, 1 },
					     { 65537, 65536, 1 }, { UINT32_MAX, UINT32_MAX, UINT32_MAX },
					     { 1025, 1, 1 },      { 32, 33, 1 } };
	static const size_t shared[] = { 0xfffffc00u, 0xffffffffu, (size_t)1 << 32, SIZE_MAX, SIZE_MAX - 1023 };
	CUlaunchConfig config;
	CUlaunchAttribute cluster;
	CUfunction f = get_kernel("fall");
	size_t bytes;
	int n, block;

	(void)state;
	for (unsigned k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
		memset(&config, 0, sizeof config);
		config.blockDimX = wrong[k][0];
		config.blockDimY = wrong[k][1];
		config.blockDimZ = wrong[k][2];
		fails(cuOccupancyMaxActiveClusters(&n, f, &config), CUDA_ERROR_INVALID_VALUE);
		fails(cuOccupancyMaxPotentialClusterSize(&n, f, &config), CUDA_ERROR_INVALID_VALUE);
		memset(&cluster, 0, sizeof cluster);
		cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
		cluster.value.clusterDim.x = wrong[k][0];
		cluster.value.clusterDim.y = wrong[k][1];
		cluster.value.clusterDim.z = wrong[k][2];
		config.blockDimX = config.blockDimY = config.blockDimZ = 1;
		config.attrs = &cluster;
		config.numAttrs = 1;
		fails(cuOccupancyMaxActiveClusters(&n, f, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	}
	config.numAttrs = 0;
	for (unsigned k = 0; k < sizeof shared / sizeof shared[0]; k++) {
		config.sharedMemBytes = (unsigned)shared[k];
		n = -1;
		ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, shared[k]));
		assert_int_equal(n, 0);
		ok(cuOccupancyMaxPotentialBlockSize(&n, &block, f, NULL, shared[k], 0));
		assert_int_equal(block, 0);
		if (config.sharedMemBytes) {
			ok(cuOccupancyMaxActiveClusters(&n, f, &config));
			assert_int_equal(n, 0);
		}
	}
	for (int threads = -1; threads <= 0; threads++) {
		fails(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, threads, 0), CUDA_ERROR_INVALID_VALUE);
		fails(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, threads), CUDA_ERROR_INVALID_VALUE);
		fails(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, threads, 32), CUDA_ERROR_INVALID_VALUE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_two_vectors),
		cmocka_unit_test(occupancy_of_impossible_blocks_and_clusters_is_refused_or_0),
		cmocka_unit_test(accepts_arguments_as_a_list_or_a_buffer),
		cmocka_unit_test(a_buffer_of_arguments_can_be_shorter_than_the_parameters),
		cmocka_unit_test(refuses_launches_beyond_the_limits_of_a_gpu),
		cmocka_unit_test(allows_more_shared_memory_after_setting_the_attribute),
		cmocka_unit_test(launches_with_launch_attributes),
		cmocka_unit_test(counts_the_clusters_that_fit),
		cmocka_unit_test(keeps_the_code_until_the_launch_has_ended),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
