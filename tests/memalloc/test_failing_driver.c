/* test_failing_driver.c — every call of the driver fails in turn, with every error: nothing
 * stays behind. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "memalloc/probe.h"
#include "tests/fake/fake_memory.h"
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
enum { N_ERRORS = sizeof errors / sizeof errors[0], BYTES = 100000 };

static const gpul_mem_kind all[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE, GPUL_MEM_MEMFD,
				     GPUL_MEM_SHM,       GPUL_MEM_PINNED, GPUL_MEM_DEVICE_IPC };
enum { N_ALL = sizeof all / sizeof all[0] };

/* The fake with two devices, device 0's context current, no failure planned; what is alive then
 * is ours. */
static const gpul_driver *fresh(gpul_context *c)
{
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);

	fake_behave()->n_devices = 2;
	assert_int_equal(gpul_context_open(drv, 0, c, NULL), GPUL_OK);
	assert_int_equal(fake_alive(), 1);
	return drv;
}

static gpul_mem_desc for_two(gpul_mem_kind kind)
{
	static const int devices[] = { 0, 1 };
	gpul_mem_desc desc = wanted(kind, BYTES);

	desc.devices = devices;
	desc.n_devices = 2;
	desc.fabric = kind == GPUL_MEM_DEVICE;
	return desc;
}

struct counts {
	size_t fds, mappings;
	int alive;
};

static struct counts count(void)
{
	return (struct counts){ count_fds(), count_mappings(), fake_alive() };
}

static void assert_as_before(struct counts before, const char *what, CUresult error)
{
	struct counts now = count();

	if (now.fds != before.fds || now.mappings != before.mappings ||
	    now.alive != before.alive)
		fail_msg("%s, error %d: %zu fds, %zu mappings, %d objects became %zu, %zu, %d",
			 what, (int)error, before.fds, before.mappings, before.alive, now.fds,
			 now.mappings, now.alive);
}

/* One thing done to memory, with the n-th call in it failing. */
typedef gpul_status act(const gpul_driver *drv, gpul_mem_kind kind, int n, CUresult error,
			gpul_error *err);

static gpul_status creating(const gpul_driver *drv, gpul_mem_kind kind, int n, CUresult error,
			    gpul_error *err)
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

static gpul_status exporting(const gpul_driver *drv, gpul_mem_kind kind, int n, CUresult error,
			     gpul_error *err)
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
		if (!st) {  /* made once, and kept */
			int calls = fake_calls();

			assert_int_equal(gpul_mem_export_fd(m, &again, NULL), GPUL_OK);
			assert_int_equal(again, fd);
			assert_int_equal(fake_calls(), calls);
		}
	}
	gpul_mem_destroy(m);
	return st;
}

static gpul_status importing(const gpul_driver *drv, gpul_mem_kind kind, int n, CUresult error,
			     gpul_error *err)
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

static void fails_in_turn(act *what, const char *name, gpul_mem_kind kind, CUresult error)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fresh(&c);
	struct counts before;
	int last = 0;

	/* Now what is set up once is there. */
	assert_int_equal(what(drv, kind, 0, error, NULL), GPUL_OK);
	before = count();
	for (int n = 1; !last; n++) {
		gpul_error err = { 0 };
		gpul_status st = what(drv, kind, n, error, &err);

		assert_as_before(before, name, error);
		if (st) {
			assert_int_equal(err.status, st);
			assert_int_equal(err.native, error);
			assert_non_null(strstr(err.text, gpul_mem_kind_name(kind)));
			assert_true(st == GPUL_ECUDA || st == GPUL_EUNSUPPORTED ||
				    st == GPUL_EFORMAT);
		} else {
			last = error != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED || n > 20;
		}
		assert_true(n < 40);
	}
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

static void every_failing_call_is_undone_when_creating(void **state)
{
	(void)state;
	for (int k = 0; k < N_ALL; k++)
		for (int e = 0; e < N_ERRORS; e++)
			fails_in_turn(creating, "creating", all[k], errors[e]);
}

static void every_failing_call_is_undone_when_exporting(void **state)
{
	(void)state;
	for (int k = 0; k < N_ALL; k++)
		for (int e = 0; e < N_ERRORS; e++)
			if (all[k] != GPUL_MEM_PINNED)
				fails_in_turn(exporting, "exporting", all[k], errors[e]);
}

static void every_failing_call_is_undone_when_importing(void **state)
{
	(void)state;
	for (int k = 0; k < N_ALL; k++)
		for (int e = 0; e < N_ERRORS; e++)
			if (all[k] != GPUL_MEM_PINNED)
				fails_in_turn(importing, "importing", all[k], errors[e]);
}

/* A kind of memory that works makes one with the n-th call failing; what AUTO takes instead
 * says why. */
static void auto_takes_the_next_kind_and_says_why(void **state)
{
	static const int device = 0;
	int n_memfd = 0, n_shm = 0;

	(void)state;
	for (int n = 1; n < 40; n++) {
		gpul_context c = { 0 };
		const gpul_driver *drv = fresh(&c);
		gpul_mem_desc desc = {
			.bytes = BYTES, .devices = &device, .n_devices = 1, .exportable = true
		};
		gpul_mem *m = NULL;
		const gpul_mem_info *is;

		fake_fail_next(n, CUDA_ERROR_NOT_PERMITTED);
		/* One failure leaves two kinds. */
		assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
		is = gpul_mem_about(m);
		n_memfd += is->kind == GPUL_MEM_MEMFD;
		n_shm += is->kind == GPUL_MEM_SHM;
		assert_int_equal(is->kind == GPUL_MEM_HOST_NUMA, is->why[0] == '\0');
		if (is->kind == GPUL_MEM_MEMFD)
			assert_non_null(strstr(is->why, "host-numa memory"));
		gpul_mem_destroy(m);
		gpul_context_close(&c);
		assert_int_equal(fake_alive(), 0);
	}
	assert_in_range(n_memfd, 5, 20);
	assert_int_equal(n_shm, 0);
}

static CUresult refuse_create(CUmemGenericAllocationHandle *out, size_t bytes,
			      const CUmemAllocationProp *prop, unsigned long long flags)
{
	(void)out, (void)bytes, (void)prop, (void)flags;
	return CUDA_ERROR_NOT_PERMITTED;
}

static CUresult refuse_register(void *at, size_t bytes, unsigned flags)
{
	(void)at, (void)bytes, (void)flags;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void auto_tells_of_every_kind_when_none_works(void **state)
{
	gpul_context c = { 0 };
	gpul_driver drv = *fresh(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_AUTO, BYTES);
	gpul_error err = { 0 };
	gpul_mem *m = NULL;
	struct counts before = count();

	(void)state;
	drv.cuMemCreate = refuse_create;
	drv.cuMemHostRegister = refuse_register;
	assert_int_equal(gpul_mem_create(&drv, &desc, &m, &err), GPUL_EUNSUPPORTED);
	assert_null(m);
	assert_non_null(strstr(err.text, "host-numa memory"));
	assert_non_null(strstr(err.text, "memfd memory"));
	assert_non_null(strstr(err.text, "shm memory"));
	assert_as_before(before, "auto", 0);
	gpul_context_close(&c);
}

static int n_creates;

static CUresult count_and_refuse_create(CUmemGenericAllocationHandle *out, size_t bytes,
					const CUmemAllocationProp *prop,
					unsigned long long flags)
{
	n_creates++;
	return refuse_create(out, bytes, prop, flags);
}

static void auto_skips_what_a_probe_has_seen_fail(void **state)
{
	static gpul_driver drv;  /* the report is kept by its address */
	gpul_context c = { 0 };
	gpul_mem_desc desc = wanted(GPUL_MEM_AUTO, BYTES);
	const gpul_mem_probe_report *report;
	gpul_mem *m = NULL;

	(void)state;
	setenv("GPULOAD_PROBE", "/nonexistent", 1);  /* this process asks itself */
	drv = *fresh(&c);
	drv.cuMemCreate = count_and_refuse_create;
	assert_int_equal(gpul_mem_probe(&drv, 0, &report, NULL), GPUL_OK);
	assert_int_equal(report->taken, GPUL_MEM_MEMFD);
	assert_true(n_creates > 0);
	n_creates = 0;
	assert_int_equal(gpul_mem_create(&drv, &desc, &m, NULL), GPUL_OK);
	assert_int_equal(n_creates, 0);
	assert_int_equal(gpul_mem_about(m)->kind, GPUL_MEM_MEMFD);
	assert_non_null(strstr(gpul_mem_about(m)->why, "CUresult"));
	gpul_mem_destroy(m);
	gpul_context_close(&c);
	unsetenv("GPULOAD_PROBE");
}

static void names_the_devices_without_peer_access(void **state)
{
	static const gpul_mem_kind on_device[] = { GPUL_MEM_DEVICE, GPUL_MEM_DEVICE_IPC };

	(void)state;
	for (int i = 0; i < 2; i++) {
		gpul_context c = { 0 };
		const gpul_driver *drv = fresh(&c);
		gpul_mem_desc desc = for_two(on_device[i]);
		gpul_error err = { 0 };
		gpul_mem *m = NULL;

		fake_behave()->no_peer_access = 1;
		assert_int_equal(gpul_mem_create(drv, &desc, &m, &err), GPUL_EUNSUPPORTED);
		assert_non_null(strstr(
			err.text, "device 1 cannot reach device 0's memory: no peer access"));
		gpul_context_close(&c);
		assert_int_equal(fake_alive(), 0);
	}
}

static void says_how_a_container_gets_host_numa_memory(void **state)
{
	gpul_context c = { 0 };
	gpul_driver drv = *fresh(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_HOST_NUMA, BYTES);
	gpul_error err = { 0 };
	gpul_mem *m = NULL;

	(void)state;
	drv.cuMemCreate = refuse_create;
	assert_int_equal(gpul_mem_create(&drv, &desc, &m, &err), GPUL_ECUDA);
	assert_int_equal(err.native, CUDA_ERROR_NOT_PERMITTED);
	assert_non_null(strstr(err.text, "--cap-add SYS_NICE"));
	gpul_context_close(&c);
}

static void clamps_the_node_of_a_gpu_that_has_none(void **state)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fresh(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_MEMFD, BYTES);
	gpul_mem *m = NULL;

	(void)state;
	fake_behave()->host_numa_id = -1;
	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
	assert_true(gpul_mem_about(m)->node_clamped);
	assert_int_equal(gpul_mem_about(m)->node, 0);
	gpul_mem_destroy(m);
	gpul_context_close(&c);
}

static void a_size_that_overflows_when_rounded_is_refused(void **state)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 4094, SIZE_MAX - 1 };

	(void)state;
	for (int k = 0; k < N_ALL; k++) {
		for (int i = 0; i < 3; i++) {
			gpul_context c = { 0 };
			const gpul_driver *drv = fresh(&c);
			gpul_mem_desc desc = wanted(all[k], sizes[i]);
			gpul_error err = { 0 };
			gpul_mem *m = NULL;

			assert_int_equal(gpul_mem_create(drv, &desc, &m, &err), GPUL_EINVAL);
			gpul_context_close(&c);
			assert_int_equal(fake_alive(), 0);
		}
	}
}

static void a_driver_without_a_granularity_is_refused(void **state)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fresh(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_DEVICE, BYTES);
	gpul_mem *m = NULL;

	(void)state;
	fake_behave()->granularity_bytes = 0;
	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_EINVAL);
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

/* The import of freshly made memory of a kind, about which the driver or the owner says what is
 * not so. */
static gpul_status import_with(gpul_mem_kind kind,
			       void (*lie)(gpul_mem_offer *offer, gpul_mem_desc *desc),
			       gpul_error *err)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fresh(&c);
	gpul_mem_desc desc = wanted(kind, BYTES);
	gpul_mem_offer offer = { .kind = kind };
	gpul_mem *m = NULL, *twin = NULL;
	gpul_mem_handle handle;
	gpul_status st;
	int fd = -1;

	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
	offer.bytes = BYTES;
	offer.mapped_bytes = gpul_mem_about(m)->mapped_bytes;
	if (kind == GPUL_MEM_DEVICE_IPC)
		assert_int_equal(gpul_mem_export_handle(m, &handle, NULL), GPUL_OK);
	else
		assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_OK);
	lie(&offer, &desc);
	st = gpul_mem_import(drv, &offer, fd, fd < 0 ? &handle : NULL, &desc, &twin, err);
	gpul_mem_destroy(twin);
	gpul_mem_destroy(m);
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
	return st;
}

static void larger(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)desc;
	offer->mapped_bytes += 65536;
}

static void smaller(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)desc;
	offer->mapped_bytes -= 65536;
	offer->bytes = 1;
}

static void an_import_of_another_size_is_refused(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE, GPUL_MEM_MEMFD, GPUL_MEM_SHM };

	(void)state;
	for (int i = 0; i < 4; i++) {
		gpul_error err[2] = { 0 };

		assert_int_equal(import_with(kinds[i], larger, &err[0]), GPUL_EFORMAT);
		assert_non_null(strstr(err[0].text, "but its file has"));
		assert_int_equal(import_with(kinds[i], smaller, &err[1]), GPUL_EFORMAT);
		assert_non_null(strstr(err[1].text, "but its file has"));
	}
}

/* NVIDIA's descriptors are a device's, and tell no size: its driver does, at the mapping. */
static void a_descriptor_for_nvidias_driver_is_a_device(void **state)
{
	gpul_context c = { 0 };
	gpul_driver drv = *fresh(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_DEVICE, BYTES);
	gpul_mem_offer offer = { .kind = GPUL_MEM_DEVICE, .bytes = BYTES };
	gpul_mem *m = NULL, *twin = NULL;
	gpul_error err[2] = { 0 };
	int fd = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	drv.name = "nvidia";
	assert_int_equal(gpul_mem_create(&drv, &desc, &m, NULL), GPUL_OK);
	assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_OK);
	offer.mapped_bytes = gpul_mem_about(m)->mapped_bytes;
	assert_int_equal(gpul_mem_import(&drv, &offer, fd, NULL, &desc, &twin, &err[0]), GPUL_EFORMAT);
	assert_non_null(strstr(err[0].text, "the descriptor is of no NVIDIA device"));
	assert_int_equal(gpul_mem_import(&drv, &offer, null, NULL, &desc, &twin, &err[1]), GPUL_EFORMAT);
	assert_true(strstr(err[1].text, "not of that size") || strstr(err[1].text, "no NVIDIA device"));
	assert_null(twin);
	gpul_mem_destroy(m);
	close(null);
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

static void what_has_no_descriptor_or_no_handle_says_what_it_has(void **state)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fresh(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_DEVICE_IPC, BYTES);
	gpul_error err[2] = { 0 };
	gpul_mem_handle handle;
	gpul_mem *m = NULL;
	int fd = -1;

	(void)state;
	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
	assert_int_equal(gpul_mem_export_fd(m, &fd, &err[0]), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err[0].text, "gpul_mem_export_handle()"));
	gpul_mem_destroy(m);
	desc.kind = GPUL_MEM_DEVICE;
	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
	assert_int_equal(gpul_mem_export_handle(m, &handle, &err[1]), GPUL_EINVAL);
	assert_non_null(strstr(err[1].text, "gpul_mem_export_fd()"));
	gpul_mem_destroy(m);
	gpul_context_close(&c);
}

static void other_location(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)offer, (void)desc;
	fake_behave()->location = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST, .id = 0 };
}

static void other_device(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)desc;
	offer->owner_device = 1;
}

static void small_range(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)offer, (void)desc;
	fake_behave()->range_bytes = 4096;
}

static void read_only(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)offer;
	fake_behave()->no_read_only_register = 1;
	desc->read_only = true;
}

static void an_import_that_is_not_what_was_offered_is_refused(void **state)
{
	gpul_error err[4] = { 0 };

	(void)state;
	assert_int_equal(import_with(GPUL_MEM_HOST_NUMA, other_location, &err[0]),
			 GPUL_EFORMAT);
	assert_non_null(strstr(err[0].text, "lies elsewhere"));
	assert_int_equal(import_with(GPUL_MEM_DEVICE, other_location, NULL), GPUL_EFORMAT);
	assert_int_equal(import_with(GPUL_MEM_DEVICE, other_device, &err[1]), GPUL_EFORMAT);
	assert_non_null(
		strstr(err[1].text, "of device 1 was offered, but it lies on device 0"));
	assert_int_equal(import_with(GPUL_MEM_DEVICE_IPC, small_range, &err[2]), GPUL_EFORMAT);
	assert_int_equal(import_with(GPUL_MEM_MEMFD, read_only, &err[3]), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err[3].text, "cannot map read-only pages"));
	assert_int_equal(import_with(GPUL_MEM_DEVICE_IPC, read_only, NULL), GPUL_EUNSUPPORTED);
}

static void device_memory_goes_by_fabric_handle_too(void **state)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fresh(&c);
	gpul_mem_desc desc = for_two(GPUL_MEM_DEVICE);
	gpul_mem_offer offer = { .kind = GPUL_MEM_DEVICE, .bytes = BYTES, .fabric = true };
	gpul_mem_handle handle;
	gpul_mem *m = NULL, *twin = NULL;

	(void)state;
	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
	assert_int_equal(gpul_mem_export_handle(m, &handle, NULL), GPUL_OK);
	offer.mapped_bytes = gpul_mem_about(m)->mapped_bytes;
	assert_int_equal(gpul_mem_import(drv, &offer, -1, &handle, &desc, &twin, NULL),
			 GPUL_OK);
	cpu_fill((void *)(uintptr_t)gpul_mem_gpu(m), BYTES, 9);
	assert_true(cpu_sees((const void *)(uintptr_t)gpul_mem_gpu(twin), BYTES, 9));
	gpul_mem_destroy(twin);
	gpul_mem_destroy(m);
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_call_is_undone_when_creating),
		cmocka_unit_test(every_failing_call_is_undone_when_exporting),
		cmocka_unit_test(every_failing_call_is_undone_when_importing),
		cmocka_unit_test(auto_takes_the_next_kind_and_says_why),
		cmocka_unit_test(auto_tells_of_every_kind_when_none_works),
		cmocka_unit_test(auto_skips_what_a_probe_has_seen_fail),
		cmocka_unit_test(names_the_devices_without_peer_access),
		cmocka_unit_test(says_how_a_container_gets_host_numa_memory),
		cmocka_unit_test(clamps_the_node_of_a_gpu_that_has_none),
		cmocka_unit_test(a_size_that_overflows_when_rounded_is_refused),
		cmocka_unit_test(a_driver_without_a_granularity_is_refused),
		cmocka_unit_test(an_import_of_another_size_is_refused),
		cmocka_unit_test(a_descriptor_for_nvidias_driver_is_a_device),
		cmocka_unit_test(what_has_no_descriptor_or_no_handle_says_what_it_has),
		cmocka_unit_test(an_import_that_is_not_what_was_offered_is_refused),
		cmocka_unit_test(device_memory_goes_by_fabric_handle_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
