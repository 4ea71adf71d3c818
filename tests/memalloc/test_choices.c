/* test_choices.c — on a driver that says what the test has it say: what AUTO takes, and what is refused why. */
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
#include "tests/memalloc/fresh_fake.h"
#include "tests/memalloc/support.h"

/* A kind of memory that works makes one with the n-th call failing; what AUTO takes instead
 * says why. */
static void auto_takes_the_next_kind_and_says_why(void **state)
{
	static const int device = 0;
	int n_memfd = 0, n_shm = 0;

	(void)state;
	for (int n = 1; n < 40; n++) {
		gpul_context c = { 0 };
		const gpul_driver *drv = fresh_fake(&c);
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
	gpul_driver drv = *fresh_fake(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_AUTO, BYTES);
	gpul_error err = { 0 };
	gpul_mem *m = NULL;
	size_t fds = count_fds(), mappings = count_mappings();

	(void)state;
	drv.cuMemCreate = refuse_create;
	drv.cuMemHostRegister = refuse_register;
	assert_int_equal(gpul_mem_create(&drv, &desc, &m, &err), GPUL_EUNSUPPORTED);
	assert_null(m);
	assert_non_null(strstr(err.text, "host-numa memory"));
	assert_non_null(strstr(err.text, "memfd memory"));
	assert_non_null(strstr(err.text, "shm memory"));
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_mappings(), mappings);
	assert_int_equal(fake_alive(), 1);
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
	drv = *fresh_fake(&c);
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
		const gpul_driver *drv = fresh_fake(&c);
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
	gpul_driver drv = *fresh_fake(&c);
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
	const gpul_driver *drv = fresh_fake(&c);
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
	for (int k = 0; k < N_ALL_KINDS; k++) {
		for (int i = 0; i < 3; i++) {
			gpul_context c = { 0 };
			const gpul_driver *drv = fresh_fake(&c);
			gpul_mem_desc desc = wanted(all_kinds[k], sizes[i]);
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
	const gpul_driver *drv = fresh_fake(&c);
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
	const gpul_driver *drv = fresh_fake(&c);
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
	gpul_driver drv = *fresh_fake(&c);
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
	const gpul_driver *drv = fresh_fake(&c);
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
	const gpul_driver *drv = fresh_fake(&c);
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
