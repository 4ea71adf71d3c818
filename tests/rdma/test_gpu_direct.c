/* test_gpu_direct.c — GPU memory that the fabric accesses itself, or does not: gpul_rdma_desc.gpu_direct.
 *
 * The software driver's device memory is CPU memory, so that every fabric can access it.  On
 * another driver, it depends on the fabric and the device, and a refusal must have a reason. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "driver/context.h"
#include "tests/rdma/two_ends.h"

enum { BYTES = 100000, AT = 4096, END_MS = 20000 };

static const gpul_driver *drv;
static gpul_context context;

static gpul_rdma_desc with(gpul_rdma_gpu_direct gpu_direct)
{
	return (gpul_rdma_desc){ .device = { .drv = drv, .gpu = 0, .gid_index = -1 }, .gpu_direct = gpu_direct };
}

static gpul_mem *device_memory(unsigned char value)
{
	static const int device = 0;
	const gpul_mem_desc desc = { .kind = GPUL_MEM_DEVICE, .bytes = BYTES, .devices = &device, .n_devices = 1 };
	gpul_mem *m = NULL;
	gpul_error err = { 0 };

	if (gpul_mem_create(drv, &desc, &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(drv->cuMemsetD8Async(gpul_mem_gpu(m), value, BYTES, NULL), CUDA_SUCCESS);
	assert_int_equal(drv->cuCtxSynchronize(), CUDA_SUCCESS);
	return m;
}

static bool is_staged(const gpul_rdma_conn *conn)
{
	gpul_rdma_conn_info info;

	gpul_rdma_conn_about(conn, &info);
	return info.staged;
}

/* Put from device memory to device memory with a step, then flush. */
static void put_and_flush(struct two_ends *e, gpul_rdma_region *const regions[2], gpul_mem *const memory[2])
{
	static uint64_t step;
	gpul_rdma_put_desc put = {
		.from = { .at = gpul_mem_gpu(memory[1]), .bytes = BYTES - AT, .area = gpul_rdma_region_area(regions[1]) }, .signal_value = 7
	};
	const gpul_rdma_buffer slots = { .region = regions[0], .at = gpul_mem_gpu(memory[0]) + AT, .bytes = 8 };
	gpul_rdma_request request = 0;
	gpul_rdma_region *words = NULL;
	unsigned char found[BYTES];
	gpul_error err = { 0 };

	step = 0;
	if (gpul_rdma_register(e->r[0], &step, sizeof step, GPUL_RDMA_STEPS, &words, &err) ||
	    gpul_rdma_offer(words, (uintptr_t)&step, sizeof step, &put.signal, &err) ||
	    gpul_rdma_offer(regions[0], gpul_mem_gpu(memory[0]) + AT, BYTES - AT, &put.to, &err) ||
	    gpul_rdma_put(e->conn[1], &put, END_MS, &request, &err) || two_ends_wait(e->conn, 1, request, NULL, &err))
		fail_msg("put: %s", err.text);
	while (*(volatile uint64_t *)&step != 7)
		assert_int_equal(gpul_rdma_progress(e->conn[0], NULL, &err), GPUL_OK);
	if (gpul_rdma_iflush(e->conn[0], &slots, END_MS, &request, &err) || two_ends_wait(e->conn, 0, request, NULL, &err))
		fail_msg("flush: %s", err.text);
	assert_int_equal(drv->cuMemcpyDtoH(found, gpul_mem_gpu(memory[0]), BYTES), CUDA_SUCCESS);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(found[i], i < AT ? 1 : 2);
	gpul_rdma_unregister(words);
}

static void the_fabric_accesses_gpu_memory_or_the_refusal_says_why(void **state)
{
	const gpul_rdma_desc desc = with(GPUL_RDMA_GPU_DIRECT_YES);
	gpul_mem *memory[2] = { device_memory(1), device_memory(2) };
	gpul_rdma_region *regions[2] = { NULL };
	gpul_error err = { 0 };
	struct two_ends e;

	(void)state;
	two_ends_open(&desc, &e);
	assert_false(is_staged(e.conn[0]));
	if (gpul_rdma_register_mem(e.r[0], memory[0], GPUL_RDMA_DATA, &regions[0], &err)) {
		assert_false(drv->interprets);
		assert_non_null(strstr(err.text, "GPU memory"));
		printf("not possible here: %s\n", err.text);
	} else {
		assert_int_equal(gpul_rdma_register_mem(e.r[1], memory[1], GPUL_RDMA_DATA, &regions[1], &err), GPUL_OK);
		assert_false(gpul_rdma_region_area(regions[0])->staged);
		assert_true(gpul_rdma_region_area(regions[0])->on_device);
		put_and_flush(&e, regions, memory);
	}
	for (int i = 0; i < 2; i++) {
		gpul_rdma_unregister(regions[i]);
		gpul_mem_destroy(memory[i]);
	}
	two_ends_close(&e);
}

static void the_user_can_choose_staging(void **state)
{
	const gpul_rdma_desc desc = with(GPUL_RDMA_GPU_DIRECT_NO);
	gpul_mem *memory = device_memory(1);
	gpul_rdma_region *region = NULL;
	gpul_rdma_remote remote;
	gpul_error err = { 0 };
	struct two_ends e;

	(void)state;
	two_ends_open(&desc, &e);
	assert_true(is_staged(e.conn[0]) && is_staged(e.conn[1]));
	assert_int_equal(gpul_rdma_register_mem(e.r[0], memory, GPUL_RDMA_DATA, &region, &err), GPUL_OK);
	assert_true(gpul_rdma_region_area(region)->staged);
	assert_int_equal(gpul_rdma_offer(region, gpul_mem_gpu(memory), BYTES, &remote, &err), GPUL_EUNSUPPORTED);
	gpul_rdma_unregister(region);
	gpul_mem_destroy(memory);
	two_ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fabric_accesses_gpu_memory_or_the_refusal_says_why),
		cmocka_unit_test(the_user_can_choose_staging),
	};
	gpul_error err = { 0 };
	int n_failed;

	if (gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err) || gpul_context_open(drv, 0, &context, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 77;
	}
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	gpul_context_close(&context);
	return n_failed;
}
