/* test_mem.c — each kind of memory on a driver: created, seen by CPU and GPU, mapped by another process. */
#include "tests/memalloc/support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 3 * 4096 + 123 };

static const gpul_driver *drv;
static gpul_context context;
static struct peer *peer;

static const gpul_mem_kind all[] = { GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_PINNED };
enum { N_ALL = sizeof all / sizeof all[0] };

static gpul_mem *create(const gpul_mem_desc *desc)
{
	gpul_mem *m = NULL;
	gpul_error err = { 0 };

	if (gpul_mem_create(drv, desc, &m, &err))
		fail_msg("%s: %s", gpul_mem_kind_name(desc->kind), err.text);
	return m;
}

static gpul_mem_offer offer_of(const gpul_mem *m)
{
	const gpul_mem_info *is = gpul_mem_about(m);

	return (gpul_mem_offer){ .kind = is->kind, .bytes = is->bytes, .mapped_bytes = is->mapped_bytes,
				 .owner_device = is->device };
}

static void cpu_and_gpu_see_the_same_bytes(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], BYTES);
		gpul_mem *m = create(&desc);
		const gpul_mem_info *is = gpul_mem_about(m);
		unsigned char *cpu = gpul_mem_cpu(m);

		assert_int_equal(is->kind, all[i]);
		assert_int_equal(is->bytes, BYTES);
		assert_int_equal(is->mapped_bytes % is->granularity_bytes, 0);
		assert_true(is->mapped_bytes >= BYTES);
		assert_int_equal((uintptr_t)cpu % is->alignment_bytes, 0);
		assert_int_equal(gpul_mem_gpu(m) % is->alignment_bytes, 0);
		assert_int_equal(is->n_devices, 1);
		gpu_fill(drv, gpul_mem_gpu(m), BYTES, 5);
		assert_true(gpu_sees(drv, gpul_mem_gpu(m), BYTES, 5));
		assert_int_equal(cpu != NULL, all[i] != GPUL_MEM_DEVICE && all[i] != GPUL_MEM_DEVICE_IPC);
		if (cpu) {
			assert_true(cpu_sees(cpu, BYTES, 5));
			cpu_fill(cpu, BYTES, 6);
			assert_true(gpu_sees(drv, gpul_mem_gpu(m), BYTES, 6));
		}
		gpul_mem_destroy(m);
	}
}

/* Its descriptor or handle, and the other process' answer. */
static peer_answer shared(gpul_mem *m, bool read_only, unsigned seed)
{
	gpul_mem_offer offer = offer_of(m);
	gpul_mem_handle handle;
	int fd = -1;

	if (offer.kind == GPUL_MEM_DEVICE_IPC) {
		assert_int_equal(gpul_mem_export_handle(m, &handle, NULL), GPUL_OK);
		return peer_import(peer, &offer, -1, &handle, read_only, seed);
	}
	assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_OK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return peer_import(peer, &offer, fd, NULL, read_only, seed);
}

static void another_process_sees_and_writes_them(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], BYTES);
		gpul_mem *m;
		peer_answer a;

		if (all[i] == GPUL_MEM_PINNED)
			continue;
		m = create(&desc);
		for (unsigned round = 0; round < 3; round++) {
			gpu_fill(drv, gpul_mem_gpu(m), BYTES, round);
			a = shared(m, false, round);
			if (a.err.status)
				fail_msg("%s: %s", gpul_mem_kind_name(all[i]), a.err.text);
			assert_true(a.cpu_saw && a.gpu_saw);
			assert_int_equal(a.leaked_fds, 0);
			assert_true(gpu_sees(drv, gpul_mem_gpu(m), BYTES, round + 1));
		}
		gpul_mem_destroy(m);
	}
}

static int setup(void **state)
{
	(void)state;
	peer = peer_start();
	drv = open_driver(&context);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	peer_stop(peer);
	gpul_context_close(&context);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_and_gpu_see_the_same_bytes),
		cmocka_unit_test(another_process_sees_and_writes_them),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
