/* test_choices.c — tests on a fake driver: the kind of memory that AUTO uses, and the messages of refused requests. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/log.h"
#include "memalloc/probe.h"
#include "tests/fake/fake_memory.h"
#include "tests/memalloc/fresh_fake.h"
#include "tests/memalloc/support.h"

/* When the n-th driver call fails, AUTO uses the next kind, and its reasons name the failed kind. */
static void auto_uses_the_next_kind_and_reports_why(void **state)
{
	static const int device = 0;
	int n_memfd = 0, n_shm = 0;

	(void)state;
	for (int n = 1; n < 40; n++) {
		gpul_context c = { 0 };
		const gpul_driver *drv = fresh_fake(&c);
		gpul_mem_desc desc = { .bytes = BYTES, .devices = &device, .n_devices = 1, .exportable = true };
		gpul_mem *m = NULL;
		const gpul_mem_info *is;

		fake_fail_next(n, CUDA_ERROR_NOT_PERMITTED);
		/* Only one call fails, so two of the three kinds still work. */
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

static CUresult refuse_create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
{
	(void)out, (void)bytes, (void)prop, (void)flags;
	return CUDA_ERROR_NOT_PERMITTED;
}

static CUresult refuse_register(void *at, size_t bytes, unsigned flags)
{
	(void)at, (void)bytes, (void)flags;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void auto_reports_every_kind_when_none_works(void **state)
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

static CUresult count_and_refuse_create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
					unsigned long long flags)
{
	n_creates++;
	return refuse_create(out, bytes, prop, flags);
}

static void auto_skips_kinds_that_failed_in_a_probe(void **state)
{
	static gpul_driver drv; /* static, because probe reports are cached under the address of the driver table */
	gpul_context c = { 0 };
	gpul_mem_desc desc = wanted(GPUL_MEM_AUTO, BYTES);
	const gpul_mem_probe_report *report;
	gpul_mem *m = NULL;

	(void)state;
	setenv("GPULOAD_PROBE", "/nonexistent", 1); /* without the program gpuload-probe, the probe imports the memory in this process */
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

static void names_the_devices_that_lack_peer_access(void **state)
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
		assert_non_null(strstr(err.text, "device 1 cannot access the memory of device 0: no peer access"));
		gpul_context_close(&c);
		assert_int_equal(fake_alive(), 0);
	}
}

static CUmemAllocationProp created_with;
static __typeof__(cuMemCreate) *create_of_fake;
static int n_refusals; /* number of the next calls of cuMemCreate that are refused */

static CUresult create_and_keep(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
{
	created_with = *prop;
	return n_refusals-- > 0 ? CUDA_ERROR_NOT_SUPPORTED : create_of_fake(out, bytes, prop, flags);
}

static void device_memory_is_made_for_nics(void **state)
{
	static const struct {
		gpul_mem_kind kind;
		bool supported;
		int n_refusals;
		bool wanted, capable;
	} cases[] = {
		{ GPUL_MEM_DEVICE, true, 0, true, true },
		{ GPUL_MEM_DEVICE, false, 0, false, false },
		{ GPUL_MEM_DEVICE, true, 1, false, false }, /* created in a second call, without gpuDirectRDMACapable */
		{ GPUL_MEM_HOST_NUMA, true, 0, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		gpul_context c = { 0 };
		gpul_driver drv = *fresh_fake(&c);
		gpul_mem_desc desc = wanted(cases[i].kind, BYTES);
		gpul_mem *m = NULL;

		create_of_fake = drv.cuMemCreate;
		drv.cuMemCreate = create_and_keep;
		n_refusals = cases[i].n_refusals;
		fake_behave()->no_rdma_memory = !cases[i].supported;
		assert_int_equal(gpul_mem_create(&drv, &desc, &m, NULL), GPUL_OK);
		assert_int_equal(created_with.allocFlags.gpuDirectRDMACapable, cases[i].wanted);
		assert_int_equal(gpul_mem_about(m)->rdma_capable, cases[i].capable);
		gpul_mem_destroy(m);
		gpul_context_close(&c);
		assert_int_equal(fake_alive(), 0);
	}
}

static char logged[400];

static void keep_line(void *user, gpul_log_level level, const char *module, const char *line)
{
	(void)user, (void)level, (void)module;
	snprintf(logged, sizeof logged, "%s", line);
}

static void a_refused_flag_is_logged_and_other_errors_are_returned(void **state)
{
	gpul_context c = { 0 };
	gpul_driver drv = *fresh_fake(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_DEVICE, BYTES);
	gpul_error err = { 0 };
	gpul_mem *m = NULL;

	(void)state;
	gpul_log_to(keep_line, NULL);
	gpul_log_set_level(GPUL_LOG_INFO);
	create_of_fake = drv.cuMemCreate;
	drv.cuMemCreate = create_and_keep;
	n_refusals = 1;
	assert_int_equal(gpul_mem_create(&drv, &desc, &m, NULL), GPUL_OK);
	assert_non_null(strstr(logged, "cannot allocate gpuDirectRDMACapable memory"));
	gpul_mem_destroy(m);
	n_refusals = 2;
	m = NULL;
	assert_int_equal(gpul_mem_create(&drv, &desc, &m, &err), GPUL_EUNSUPPORTED);
	assert_null(m);
	gpul_log_to(NULL, NULL);
	gpul_log_set_level(GPUL_LOG_NOTICE);
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

static void advises_sys_nice_in_a_container(void **state)
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

static void uses_node_0_for_a_gpu_without_a_node(void **state)
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

static void refuses_a_size_that_overflows_when_rounded(void **state)
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

static void refuses_a_granularity_of_0(void **state)
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

/* Create and export memory of a kind, then import it after change() has changed the offer or the results of the driver's calls. */
static gpul_status import_with(gpul_mem_kind kind, void (*change)(gpul_mem_offer *offer, gpul_mem_desc *desc), gpul_error *err)
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
	change(&offer, &desc);
	st = gpul_mem_import(drv, &offer, fd, fd < 0 ? &handle : NULL, &desc, &twin, err);
	gpul_mem_destroy(twin);
	gpul_mem_destroy(m);
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
	return st;
}

static void offer_larger(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)desc;
	offer->mapped_bytes += 65536;
}

static void offer_smaller(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)desc;
	offer->mapped_bytes -= 65536;
	offer->bytes = 1;
}

static void refuses_an_offer_of_another_size(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE, GPUL_MEM_MEMFD, GPUL_MEM_SHM };

	(void)state;
	for (int i = 0; i < 4; i++) {
		gpul_error err[2] = { 0 };

		assert_int_equal(import_with(kinds[i], offer_larger, &err[0]), GPUL_EFORMAT);
		assert_non_null(strstr(err[0].text, "but its file has"));
		assert_int_equal(import_with(kinds[i], offer_smaller, &err[1]), GPUL_EFORMAT);
		assert_non_null(strstr(err[1].text, "but its file has"));
	}
}

/* NVIDIA's descriptors are character devices without a size; the driver reports a wrong size when it maps them. */
static void opaque_descriptors_must_be_nvidia_devices(void **state)
{
	gpul_context c = { 0 };
	gpul_driver drv = *fresh_fake(&c);
	gpul_mem_desc desc = wanted(GPUL_MEM_DEVICE, BYTES);
	gpul_mem_offer offer = { .kind = GPUL_MEM_DEVICE, .bytes = BYTES };
	gpul_mem *m = NULL, *twin = NULL;
	gpul_error err[2] = { 0 };
	int fd = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	drv.fds_are_files = false;
	assert_int_equal(gpul_mem_create(&drv, &desc, &m, NULL), GPUL_OK);
	assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_OK);
	offer.mapped_bytes = gpul_mem_about(m)->mapped_bytes;
	assert_int_equal(gpul_mem_import(&drv, &offer, fd, NULL, &desc, &twin, &err[0]), GPUL_EFORMAT);
	assert_non_null(strstr(err[0].text, "its file descriptor is not a NVIDIA device"));
	assert_int_equal(gpul_mem_import(&drv, &offer, null, NULL, &desc, &twin, &err[1]), GPUL_EFORMAT);
	assert_true(strstr(err[1].text, "the driver reports a different size") || strstr(err[1].text, "not a NVIDIA device"));
	assert_null(twin);
	gpul_mem_destroy(m);
	close(null);
	gpul_context_close(&c);
	assert_int_equal(fake_alive(), 0);
}

static void a_failed_export_names_the_function_to_use_instead(void **state)
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

static void change_location(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)offer, (void)desc;
	fake_behave()->location = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST, .id = 0 };
}

static void change_device(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)desc;
	offer->owner_device = 1;
}

static void shrink_range(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)offer, (void)desc;
	fake_behave()->range_bytes = 4096;
}

static void import_read_only(gpul_mem_offer *offer, gpul_mem_desc *desc)
{
	(void)offer;
	fake_behave()->no_read_only_register = 1;
	desc->read_only = true;
}

static void refuses_memory_that_differs_from_the_offer(void **state)
{
	gpul_error err[4] = { 0 };

	(void)state;
	assert_int_equal(import_with(GPUL_MEM_HOST_NUMA, change_location, &err[0]), GPUL_EFORMAT);
	assert_non_null(strstr(err[0].text, "reports that its location type"));
	assert_int_equal(import_with(GPUL_MEM_DEVICE, change_location, NULL), GPUL_EFORMAT);
	assert_int_equal(import_with(GPUL_MEM_DEVICE, change_device, &err[1]), GPUL_EFORMAT);
	assert_non_null(strstr(err[1].text, "memory of device 1, but the memory is on device 0"));
	assert_int_equal(import_with(GPUL_MEM_DEVICE_IPC, shrink_range, &err[2]), GPUL_EFORMAT);
	assert_int_equal(import_with(GPUL_MEM_MEMFD, import_read_only, &err[3]), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err[3].text, "cannot map read-only pages"));
	assert_int_equal(import_with(GPUL_MEM_DEVICE_IPC, import_read_only, NULL), GPUL_EUNSUPPORTED);
}

static void imports_device_memory_by_fabric_handle(void **state)
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
	assert_int_equal(gpul_mem_import(drv, &offer, -1, &handle, &desc, &twin, NULL), GPUL_OK);
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
		cmocka_unit_test(auto_uses_the_next_kind_and_reports_why),
		cmocka_unit_test(auto_reports_every_kind_when_none_works),
		cmocka_unit_test(auto_skips_kinds_that_failed_in_a_probe),
		cmocka_unit_test(names_the_devices_that_lack_peer_access),
		cmocka_unit_test(device_memory_is_made_for_nics),
		cmocka_unit_test(a_refused_flag_is_logged_and_other_errors_are_returned),
		cmocka_unit_test(advises_sys_nice_in_a_container),
		cmocka_unit_test(uses_node_0_for_a_gpu_without_a_node),
		cmocka_unit_test(refuses_a_size_that_overflows_when_rounded),
		cmocka_unit_test(refuses_a_granularity_of_0),
		cmocka_unit_test(refuses_an_offer_of_another_size),
		cmocka_unit_test(opaque_descriptors_must_be_nvidia_devices),
		cmocka_unit_test(a_failed_export_names_the_function_to_use_instead),
		cmocka_unit_test(refuses_memory_that_differs_from_the_offer),
		cmocka_unit_test(imports_device_memory_by_fabric_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
