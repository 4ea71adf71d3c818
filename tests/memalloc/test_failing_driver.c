/* test_failing_driver.c — every driver call fails in turn, with every error: nothing may leak. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/fake/fake_memory.h"
#include "tests/memalloc/fresh_fake.h"
#include "tests/memalloc/support.h"

static const CUresult errors[] = {
	CUDA_ERROR_INVALID_VALUE,
	CUDA_ERROR_OUT_OF_MEMORY,
	CUDA_ERROR_NOT_INITIALIZED,
	CUDA_ERROR_DEINITIALIZED,
	CUDA_ERROR_STUB_LIBRARY,
	CUDA_ERROR_DEVICE_UNAVAILABLE,
	CUDA_ERROR_NO_DEVICE,
	CUDA_ERROR_INVALID_DEVICE,
	CUDA_ERROR_INVALID_CONTEXT,
	CUDA_ERROR_MAP_FAILED,
	CUDA_ERROR_UNMAP_FAILED,
	CUDA_ERROR_ALREADY_MAPPED,
	CUDA_ERROR_NOT_MAPPED,
	CUDA_ERROR_ECC_UNCORRECTABLE,
	CUDA_ERROR_UNSUPPORTED_LIMIT,
	CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
	CUDA_ERROR_OPERATING_SYSTEM,
	CUDA_ERROR_INVALID_HANDLE,
	CUDA_ERROR_ILLEGAL_STATE,
	CUDA_ERROR_NOT_FOUND,
	CUDA_ERROR_NOT_READY,
	CUDA_ERROR_ILLEGAL_ADDRESS,
	CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
	CUDA_ERROR_LAUNCH_TIMEOUT,
	CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
	CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
	CUDA_ERROR_CONTEXT_IS_DESTROYED,
	CUDA_ERROR_ASSERT,
	CUDA_ERROR_TOO_MANY_PEERS,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
	CUDA_ERROR_LAUNCH_FAILED,
	CUDA_ERROR_NOT_PERMITTED,
	CUDA_ERROR_NOT_SUPPORTED,
	CUDA_ERROR_SYSTEM_NOT_READY,
	CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
	CUDA_ERROR_EXTERNAL_DEVICE,
	CUDA_ERROR_UNKNOWN,
};
enum { N_ERRORS = sizeof errors / sizeof errors[0] };

struct counts {
	size_t fds, mappings;
	int alive;
};

static struct counts count_all(void)
{
	return (struct counts){ count_fds(), count_mappings(), fake_alive() };
}

static void assert_as_before(struct counts before, const char *what, CUresult error)
{
	struct counts now = count_all();

	if (now.fds != before.fds || now.mappings != before.mappings || now.alive != before.alive)
		fail_msg("%s, error %d: %zu fds, %zu mappings, %d objects became %zu, %zu, %d", what, (int)error, before.fds,
			 before.mappings, before.alive, now.fds, now.mappings, now.alive);
}

/* Performs an operation on memory, during which driver call number n fails. */
typedef gpul_status operation(const gpul_driver *drv, gpul_mem_kind kind, int n, CUresult error, gpul_error *err);

static gpul_status try_create(const gpul_driver *drv, gpul_mem_kind kind, int n, CUresult error, gpul_error *err)
{
	gpul_mem_desc desc = for_two(kind);
	gpul_mem *m = NULL;
	gpul_status st;

	fake_fail_next(n, error);
	st = gpul_mem_create(drv, &desc, &m, err);
	assert_int_equal(m == NULL, st != GPUL_OK);
	gpul_mem_destroy(m);
	return st;
}

static gpul_status try_export(const gpul_driver *drv, gpul_mem_kind kind, int n, CUresult error, gpul_error *err)
{
	gpul_mem_desc desc = for_two(kind);
	gpul_mem_handle handle;
	gpul_mem *m = NULL;
	gpul_status st;
	int fd = -1, again = -1;

	fake_fail_next(0, error);
	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
	fake_fail_next(n, error);
	if (kind == GPUL_MEM_DEVICE_IPC) {
		st = gpul_mem_export_handle(m, &handle, err);
	} else {
		st = gpul_mem_export_fd(m, &fd, err);
		assert_int_equal(fd >= 0, st == GPUL_OK);
		if (!st) { /* the descriptor is created once and kept */
			int calls = fake_calls();

			assert_int_equal(gpul_mem_export_fd(m, &again, NULL), GPUL_OK);
			assert_int_equal(again, fd);
			assert_int_equal(fake_calls(), calls);
		}
	}
	gpul_mem_destroy(m);
	return st;
}

static gpul_status try_import(const gpul_driver *drv, gpul_mem_kind kind, int n, CUresult error, gpul_error *err)
{
	gpul_mem_desc desc = for_two(kind);
	gpul_mem *m = NULL, *twin = NULL;
	gpul_mem_offer offer = { .kind = kind };
	gpul_mem_handle handle;
	gpul_status st;
	int fd = -1;

	fake_fail_next(0, error);
	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
	offer.bytes = gpul_mem_about(m)->bytes;
	offer.mapped_bytes = gpul_mem_about(m)->mapped_bytes;
	if (kind == GPUL_MEM_DEVICE_IPC)
		assert_int_equal(gpul_mem_export_handle(m, &handle, NULL), GPUL_OK);
	else
		assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_OK);
	desc.read_only = kind == GPUL_MEM_MEMFD || kind == GPUL_MEM_HOST_NUMA;
	fake_fail_next(n, error);
	st = gpul_mem_import(drv, &offer, fd, fd < 0 ? &handle : NULL, &desc, &twin, err);
	assert_int_equal(twin == NULL, st != GPUL_OK);
	gpul_mem_destroy(twin);
	gpul_mem_destroy(m);
	return st;
}

/* Errors of a single call after which an operation can still succeed: peer access is on already, or cuMemCreate
 * succeeds without the flag for NICs. */
static bool can_be_overcome(CUresult error)
{
	return error == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED || error == CUDA_ERROR_INVALID_VALUE || error == CUDA_ERROR_NOT_SUPPORTED ||
	       error == CUDA_ERROR_NOT_PERMITTED;
}

static void fail_each_call(operation *what, const char *name, gpul_mem_kind kind, CUresult error)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fresh_fake(&c);
	struct counts before;
	int last = 0;

	/* One-time initialisation has ended, so count from here. */
	assert_int_equal(what(drv, kind, 0, error, NULL), GPUL_OK);
	before = count_all();
	for (int n = 1; !last; n++) {
		gpul_error err = { 0 };
		gpul_status st = what(drv, kind, n, error, &err);

		assert_as_before(before, name, error);
		if (st) {
			assert_int_equal(err.status, st);
			assert_int_equal(err.native, error);
			assert_non_null(strstr(err.text, gpul_mem_kind_name(kind)));
			assert_true(st == GPUL_ECUDA || st == GPUL_EUNSUPPORTED || st == GPUL_EFORMAT);
		} else {
			last = !can_be_overcome(error) || n > 20;
		}
		assert_true(n < 40);
	}
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

static void a_failed_create_leaks_nothing(void **state)
{
	(void)state;
	for (int k = 0; k < N_ALL_KINDS; k++)
		for (int e = 0; e < N_ERRORS; e++)
			fail_each_call(try_create, "creating", all_kinds[k], errors[e]);
}

static void a_failed_export_leaks_nothing(void **state)
{
	(void)state;
	for (int k = 0; k < N_ALL_KINDS; k++)
		for (int e = 0; e < N_ERRORS; e++)
			if (all_kinds[k] != GPUL_MEM_PINNED)
				fail_each_call(try_export, "exporting", all_kinds[k], errors[e]);
}

static void a_failed_import_leaks_nothing(void **state)
{
	(void)state;
	for (int k = 0; k < N_ALL_KINDS; k++)
		for (int e = 0; e < N_ERRORS; e++)
			if (all_kinds[k] != GPUL_MEM_PINNED)
				fail_each_call(try_import, "importing", all_kinds[k], errors[e]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_create_leaks_nothing),
		cmocka_unit_test(a_failed_export_leaks_nothing),
		cmocka_unit_test(a_failed_import_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
