/* test_fifo_create.c — creating a FIFO in each kind of memory, on a fake driver that fails at each call in turn. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/open_files.h"
#include "driver/context.h"
#include "proxy/fifo.h"
#include "tests/fake/fake_memory.h"
#include "tests/proxy/fifo/pusher.h"

static const gpul_mem_kind kinds[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_PINNED, GPUL_MEM_AUTO };
enum { N_KINDS = sizeof(kinds) / sizeof(*kinds) };
static const gpul_fifo_shape shape = { .slots = 256, .lanes = 128 };

/* Numbers of resources, which must not change. */
struct counts {
	int alive;
	unsigned fds, mappings;
};

static struct counts count(void)
{
	return (struct counts){ .alive = fake_alive(), .fds = count_fds(), .mappings = count_mappings() };
}

static void expect_counts(struct counts before, const char *kind, int n)
{
	const struct counts now = count();

	if (now.alive != before.alive || now.fds != before.fds || now.mappings != before.mappings)
		fail_msg("%s, call %d: %d objects, %u fds, %u mappings became %d, %u, %u", kind, n, before.alive, before.fds,
			 before.mappings, now.alive, now.fds, now.mappings);
}

static const gpul_driver *open_fake(gpul_context *c)
{
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);

	assert_int_equal(gpul_context_open(drv, 0, c, NULL), GPUL_OK);
	return drv;
}

static CUdeviceptr address(const volatile void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/* Check the addresses of the FIFO's two ends, and that the CPU receives a trigger. */
static void expect_works(gpul_fifo *f, gpul_mem_kind kind)
{
	const gpul_mem *mem = gpul_fifo_mem_of(f);
	const struct gpul_fifo_device *d = gpul_fifo_gpu_param(gpul_fifo_gpu_of(f));
	const ptrdiff_t offset = (ptrdiff_t)(gpul_mem_gpu(mem) - address(gpul_mem_cpu(mem)));
	struct pusher p = pusher_of(gpul_mem_cpu(mem), 127);
	gpul_fifo_item item;

	assert_true(kind == GPUL_MEM_AUTO || gpul_mem_about(mem)->kind == kind);
	assert_true(gpul_mem_about(mem)->bytes >= gpul_fifo_area_bytes(&shape));
	assert_int_equal(gpul_fifo_shape_of(f).slots, shape.slots);
	assert_int_equal(gpul_fifo_shape_of(f).lanes, shape.lanes);
	assert_int_equal(d->n_lanes, 128);
	assert_int_equal(d->lane_shift, 1);
	assert_int_equal(address(d->slots + 2 * 127) - (CUdeviceptr)offset, address(p.slots));
	assert_int_equal(address(d->lines + 127) - (CUdeviceptr)offset, address(p.line));
	assert_int_equal(address(d->raised), gpul_mem_gpu(mem) + offsetof(struct gpul_fifo_header, raised));
	assert_true(pusher_push(&p, 1, 2));
	assert_int_equal(gpul_fifo_poll(f, &item, 1), 1);
	assert_int_equal(item.lane, 127);
	assert_int_equal(item.word[1], 2);
}

static void fifo_works_in_every_kind_of_host_memory(void **state)
{
	(void)state;
	for (int k = 0; k < N_KINDS; k++) {
		gpul_context c = { 0 };
		const gpul_driver *drv = open_fake(&c);
		gpul_fifo *f = NULL;
		gpul_error err = { 0 };

		if (gpul_fifo_create(drv, kinds[k], 0, &shape, &f, &err))
			fail_msg("%s", err.text);
		expect_works(f, kinds[k]);
		gpul_fifo_close(f);
		gpul_context_close(&c);
		assert_int_equal(fake_alive(), 0);
	}
}

static void create_undoes_everything_whichever_call_fails(void **state)
{
	(void)state;
	for (int k = 0; k < N_KINDS; k++) {
		const char *name = gpul_mem_kind_name(kinds[k]);
		gpul_context c = { 0 };
		const gpul_driver *drv = open_fake(&c);
		int n_calls, n_failed = 0;
		gpul_fifo *f = NULL;

		/* count only after a first call, because it also makes allocations that last as long as the process */
		assert_int_equal(gpul_fifo_create(drv, kinds[k], 0, &shape, &f, NULL), GPUL_OK);
		gpul_fifo_close(f);
		const struct counts before = count();

		n_calls = fake_calls();
		fake_fail_next(0, CUDA_SUCCESS);
		assert_int_equal(gpul_fifo_create(drv, kinds[k], 0, &shape, &f, NULL), GPUL_OK);
		n_calls = fake_calls() - n_calls;
		gpul_fifo_close(f);
		for (int n = 1; n <= n_calls; n++) {
			gpul_error err = { 0 };

			f = NULL;
			fake_fail_next(n, CUDA_ERROR_OUT_OF_MEMORY);
			if (gpul_fifo_create(drv, kinds[k], 0, &shape, &f, &err)) {
				assert_null(f);
				assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
				assert_non_null(strstr(err.text, "cu"));
				n_failed++;
			} else {
				assert_true(kinds[k] == GPUL_MEM_AUTO); /* only AUTO succeeds, because it tries the next kind of memory */
				expect_works(f, GPUL_MEM_AUTO);
				gpul_fifo_close(f);
			}
			expect_counts(before, name, n);
		}
		assert_true(n_calls >= 3 && n_failed >= 3);
		gpul_context_close(&c);
		assert_int_equal(fake_alive(), 0);
	}
}

static void creating_the_kernels_end_undoes_everything_whichever_call_fails(void **state)
{
	(void)state;
	static _Alignas(512) unsigned char area[16384];
	gpul_context c = { 0 };
	const gpul_driver *drv = open_fake(&c);

	assert_int_equal(gpul_fifo_area_format(area, sizeof(area), &shape, NULL), GPUL_OK);
	const int before = fake_alive();

	for (int n = 1;; n++) {
		gpul_fifo_gpu *g = NULL;
		gpul_error err = { 0 };

		fake_fail_next(n, CUDA_ERROR_LAUNCH_FAILED);
		if (gpul_fifo_gpu_create(drv, area, address(area), sizeof(area), &g, &err) == GPUL_OK) {
			assert_int_equal(n, 4); /* allocate, copy and wait have each failed once */
			gpul_fifo_gpu_destroy(g);
			break;
		}
		assert_null(g);
		assert_int_equal(err.native, CUDA_ERROR_LAUNCH_FAILED);
		assert_int_equal(fake_alive(), before);
	}
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

static void reset_reports_driver_errors_and_can_be_repeated(void **state)
{
	(void)state;
	gpul_context c = { 0 };
	const gpul_driver *drv = open_fake(&c);
	gpul_fifo *f = NULL;

	assert_int_equal(gpul_fifo_create(drv, GPUL_MEM_MEMFD, 0, &shape, &f, NULL), GPUL_OK);
	const struct gpul_fifo_device param = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(f));
	struct gpul_fifo_lane *lanes = param.lanes; /* the fake driver's device memory is host memory */

	expect_works(f, GPUL_MEM_MEMFD);
	gpul_fifo_abort(f, 1);
	lanes[127].head = 1;
	lanes[127].owner = 1;
	for (int n = 1; n <= 2; n++) {
		gpul_error err = { 0 };

		fake_fail_next(n, CUDA_ERROR_LAUNCH_FAILED);
		assert_int_equal(gpul_fifo_reset(f, &err), GPUL_ECUDA);
		assert_int_equal(err.native, CUDA_ERROR_LAUNCH_FAILED);
	}
	fake_fail_next(0, CUDA_SUCCESS);
	assert_int_equal(gpul_fifo_reset(f, NULL), GPUL_OK);
	assert_int_equal(lanes[127].head, 0);
	assert_int_equal(lanes[127].owner, 0);
	assert_memory_equal(&param, gpul_fifo_gpu_param(gpul_fifo_gpu_of(f)), sizeof(param));
	assert_int_equal(gpul_fifo_aborted(f), 0);
	expect_works(f, GPUL_MEM_MEMFD);
	gpul_fifo_close(f);
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

static void refuses_memory_that_the_cpu_cannot_access(void **state)
{
	(void)state;
	static const gpul_mem_kind wrong[] = { GPUL_MEM_DEVICE, GPUL_MEM_DEVICE_IPC, (gpul_mem_kind)GPUL_MEM_N_KINDS };
	gpul_context c = { 0 };
	const gpul_driver *drv = open_fake(&c);

	for (int i = 0; i < 3; i++) {
		gpul_fifo *f = NULL;
		gpul_error err = { 0 };

		assert_int_equal(gpul_fifo_create(drv, wrong[i], 0, &shape, &f, &err), GPUL_EINVAL);
		assert_null(f);
		assert_true(err.text[0] != '\0');
	}
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

static void invalid_shape_allocates_nothing(void **state)
{
	(void)state;
	static const gpul_fifo_shape wrong[] = { { 0, 1 }, { 1, 0 }, { 3, 1 }, { 4, 3 }, { 2, 4 }, { 1u << 25, 1 }, { 8192, 8192 } };
	gpul_context c = { 0 };
	const gpul_driver *drv = open_fake(&c);
	const int calls = fake_calls();

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		gpul_fifo *f = NULL;
		gpul_error err = { 0 };

		assert_int_equal(gpul_fifo_create(drv, GPUL_MEM_AUTO, 0, &wrong[i], &f, &err), GPUL_EINVAL);
		assert_non_null(strstr(err.text, "powers of two"));
		assert_null(f);
	}
	assert_int_equal(fake_calls(), calls);
	gpul_context_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifo_works_in_every_kind_of_host_memory),
		cmocka_unit_test(create_undoes_everything_whichever_call_fails),
		cmocka_unit_test(creating_the_kernels_end_undoes_everything_whichever_call_fails),
		cmocka_unit_test(reset_reports_driver_errors_and_can_be_repeated),
		cmocka_unit_test(refuses_memory_that_the_cpu_cannot_access),
		cmocka_unit_test(invalid_shape_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
