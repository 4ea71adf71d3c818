/* test_gpu_memory.c — GPU memory of the send path on a real driver: kinds of memory, and dma-bufs.
 *
 * It accepts every driver.  Where the device does not export dma-bufs, the refusal is checked, and the tests of dma-bufs are
 * reported as skipped, with the driver's reason. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "rdma/gpu/dmabuf.h"
#include "rdma/gpu/pointer.h"
#include "tests/rdma/gpu/support.h"

static int attribute(CUdevice_attribute which)
{
	int value = 0;

	MUST(cuDeviceGetAttribute(&value, which, context.device));
	return value;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void device_memory_is_made_for_nics_where_the_device_says_so(void **state)
{
	const bool supported = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0;
	gpul_mem *device = create_memory(GPUL_MEM_DEVICE, 4096), *host = create_memory(GPUL_MEM_AUTO, 4096);
	gpul_rdma_pointer p = { 0 };

	(void)state;
	printf("device 0 of the %s driver: memory for NICs %s, dma-buf %s, GPUDirect RDMA %s, flush options %d, ordering %d\n", drv->name,
	       supported ? "yes" : "no", attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) ? "yes" : "no",
	       attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED) ? "yes" : "no",
	       attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
	       attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING));
	if (supported && !gpul_mem_about(device)->rdma_capable)
		printf("the driver refuses memory for NICs, although the device reports that it supports it\n");
	assert_true(supported || !gpul_mem_about(device)->rdma_capable);
	assert_false(gpul_mem_about(host)->rdma_capable);
	assert_int_equal(gpul_rdma_pointer_find(drv, gpul_mem_gpu(device), &p, NULL), GPUL_OK);
	assert_int_equal(p.rdma_capable, gpul_mem_about(device)->rdma_capable);
	gpul_mem_destroy(host);
	gpul_mem_destroy(device);
}

static void assert_kind(uint64_t at, gpul_rdma_pointer_kind kind, bool mapped, const char *what)
{
	gpul_rdma_pointer p = { 0 };
	gpul_error err = { 0 };

	if (gpul_rdma_pointer_find(drv, at, &p, &err))
		fail_msg("%s: %s", what, err.text);
	if (p.kind != kind || p.mapped != mapped || p.device != (kind == GPUL_RDMA_DEVICE ? 0 : -1))
		fail_msg("%s: %s memory of device %d, %smapped", what, gpul_rdma_pointer_kind_name(p.kind), p.device,
			 p.mapped ? "" : "not ");
}

static void finds_the_kind_of_memory(void **state)
{
	static const struct {
		gpul_mem_kind made;
		gpul_rdma_pointer_kind kind;
		bool mapped;
	} kinds[] = {
		{ GPUL_MEM_DEVICE, GPUL_RDMA_DEVICE, true },       { GPUL_MEM_DEVICE_IPC, GPUL_RDMA_DEVICE, false },
		{ GPUL_MEM_HOST_NUMA, GPUL_RDMA_HOST_NUMA, true }, { GPUL_MEM_MEMFD, GPUL_RDMA_PINNED, false },
		{ GPUL_MEM_PINNED, GPUL_RDMA_PINNED, false },
	};
	void *heap = malloc(10000);
	gpul_mem *m = NULL;

	(void)state;
	assert_kind((uintptr_t)heap, GPUL_RDMA_PAGEABLE, false, "malloc");
	assert_kind((uintptr_t)&m, GPUL_RDMA_PAGEABLE, false, "stack");
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		static const int device = 0;
		const gpul_mem_desc desc = {
			.kind = kinds[i].made, .bytes = 100000, .node = GPUL_MEM_NODE_OF_GPU, .devices = &device, .n_devices = 1
		};
		gpul_error err = { 0 };

		if (gpul_mem_create(drv, &desc, &m, &err)) { /* host-numa memory can be forbidden in a container */
			assert_int_equal(kinds[i].made, GPUL_MEM_HOST_NUMA);
			printf("host-numa memory: %s\n", err.text);
			continue;
		}
		assert_kind(gpul_mem_gpu(m) + 5000, kinds[i].kind, kinds[i].mapped, gpul_mem_kind_name(kinds[i].made));
		gpul_mem_destroy(m);
	}
	free(heap);
}

/* ---- dma-bufs ---------------------------------------------------------------------------------------------------- */

/* If the device cannot export dma-bufs, check the error of an export, and skip the test. */
static void skip_without_dmabuf(void)
{
	gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
	gpul_error err = { 0 };
	unsigned n = 0;
	gpul_mem *m;

	if (attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED))
		return;
	m = create_memory(GPUL_MEM_DEVICE, 4096);
	assert_int_equal(gpul_rdma_dmabuf_export(drv, gpul_mem_gpu(m), 4096, GPUL_RDMA_DMABUF_DEFAULT, d, &n, &err), GPUL_EUNSUPPORTED);
	gpul_mem_destroy(m);
	assert_int_equal(n, 0);
	assert_non_null(strstr(err.text, "does not export its memory as dma-buf"));
	printf("skipped: %s\n", err.text);
	skip();
}

/* Check that a descriptor is a dma-buf by its link in /proc, and its size by lseek(). */
static void assert_dmabuf(const gpul_rdma_dmabuf *d)
{
	char path[64], is[64] = "";

	snprintf(path, sizeof path, "/proc/self/fd/%d", d->fd);
	assert_true(readlink(path, is, sizeof is - 1) > 0);
	if (!strstr(is, "dmabuf"))
		fail_msg("descriptor %d is %s, not a dma-buf", d->fd, is);
	assert_true(fcntl(d->fd, F_GETFD) & FD_CLOEXEC);
	if (lseek(d->fd, 0, SEEK_END) < (off_t)d->dmabuf_bytes)
		fail_msg("a dma-buf of %llu bytes was expected: lseek: %lld", (unsigned long long)d->dmabuf_bytes,
			 (long long)lseek(d->fd, 0, SEEK_END));
	assert_true(d->offset + d->bytes <= d->dmabuf_bytes);
}

/* Export a range and check each dma-buf; returns the number of dma-bufs. */
static unsigned export_and_check(uint64_t at, uint64_t bytes, gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES])
{
	gpul_error err = { 0 };
	unsigned n = 0;
	uint64_t next = at;

	if (gpul_rdma_dmabuf_export(drv, at, bytes, GPUL_RDMA_DMABUF_DEFAULT, d, &n, &err))
		fail_msg("%llu bytes: %s", (unsigned long long)bytes, err.text);
	for (unsigned i = 0; i < n; i++) {
		assert_dmabuf(&d[i]);
		assert_int_equal(d[i].at, next);
		next += d[i].bytes;
	}
	assert_int_equal(next, at + bytes);
	return n;
}

static void exports_device_memory_as_dmabuf(void **state)
{
	static const uint64_t starts[] = { 0, 1, 4095, 4096, 1000000 }, sizes[] = { 1, 4096, 4097, 3000000 };
	gpul_rdma_dmabuf first[GPUL_RDMA_MAX_PIECES];
	gpul_mem *m;
	unsigned fds;

	(void)state;
	skip_without_dmabuf();
	m = create_memory(GPUL_MEM_DEVICE, 4 << 20);
	/* Count after a first export, because a driver may open files of its own then. */
	gpul_rdma_dmabuf_close(first, export_and_check(gpul_mem_gpu(m), 4096, first));
	fds = count_fds();
	for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
		for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
			gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
			unsigned n = export_and_check(gpul_mem_gpu(m) + starts[i], sizes[j], d);

			assert_int_equal(n, 1);
			gpul_rdma_dmabuf_close(d, n);
		}
	}
	assert_int_equal(count_fds(), fds);
	gpul_mem_destroy(m);
}

static void exports_memory_of_cu_mem_alloc_as_dmabuf(void **state)
{
	gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
	CUdeviceptr small[3];

	(void)state;
	skip_without_dmabuf();
	for (int i = 0; i < 3; i++)
		MUST(cuMemAlloc(&small[i], 3000));
	for (int i = 0; i < 3; i++)
		gpul_rdma_dmabuf_close(d, export_and_check(small[i] + 100, 2900, d));
	for (int i = 0; i < 3; i++)
		MUST(cuMemFree(small[i]));
}

/* A range of n allocations of 1, 2, ... times the granularity, mapped next to each other. */
struct mapped_range {
	CUdeviceptr at;
	size_t grain, bytes;
	size_t reserved_bytes; /* the last granule is reserved, but not mapped */
	unsigned n;
	CUmemGenericAllocationHandle handles[12];
};

static void map_range(struct mapped_range *r, unsigned n)
{
	const bool for_nics = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0;
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
					   .allocFlags.gpuDirectRDMACapable = for_nics };
	const CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr at;

	*r = (struct mapped_range){ .n = n };
	MUST(cuMemGetAllocationGranularity(&r->grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	r->bytes = r->grain * n * (n + 1) / 2;
	r->reserved_bytes = r->bytes + r->grain;
	MUST(cuMemAddressReserve(&r->at, r->reserved_bytes, 0, 0, 0));
	at = r->at;
	for (unsigned i = 0; i < n; at += ++i * r->grain) {
		MUST(cuMemCreate(&r->handles[i], (i + 1) * r->grain, &prop, 0));
		MUST(cuMemMap(at, (i + 1) * r->grain, 0, r->handles[i], 0));
		MUST(cuMemSetAccess(at, (i + 1) * r->grain, &access, 1));
	}
}

static void unmap_range(struct mapped_range *r)
{
	CUdeviceptr at = r->at;

	for (unsigned i = 0; i < r->n; at += ++i * r->grain) {
		MUST(cuMemUnmap(at, (i + 1) * r->grain));
		MUST(cuMemRelease(r->handles[i]));
	}
	MUST(cuMemAddressFree(r->at, r->reserved_bytes));
}

static void exports_each_allocation_by_itself(void **state)
{
	gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
	struct mapped_range r;
	unsigned n;

	(void)state;
	skip_without_dmabuf();
	map_range(&r, 3);
	n = export_and_check(r.at + r.grain / 2 + 5, 5 * r.grain, d); /* ends inside the third allocation */
	assert_int_equal(n, 3);
	assert_int_equal(d[0].bytes, r.grain / 2 - 5);
	assert_int_equal(d[1].bytes, 2 * r.grain);
	gpul_rdma_dmabuf_close(d, n);
	unmap_range(&r);
}

/* If a range has more allocations than an export may have pieces, the driver exports it as one dma-buf, or the error gives the reason. */
static void exports_many_allocations_as_one_dmabuf_or_says_why_not(void **state)
{
	gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
	gpul_error err = { 0 };
	struct mapped_range r;
	unsigned n = 0;

	(void)state;
	skip_without_dmabuf();
	map_range(&r, GPUL_RDMA_MAX_PIECES + 1);
	if (gpul_rdma_dmabuf_export(drv, r.at, r.bytes, GPUL_RDMA_DMABUF_DEFAULT, d, &n, &err)) {
		assert_int_equal(err.status, GPUL_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "9 allocations"));
		printf("not as one dma-buf: %s\n", err.text);
	} else {
		assert_int_equal(n, 1);
		assert_dmabuf(&d[0]);
		assert_int_equal(d[0].bytes, r.bytes);
		printf("one dma-buf covers %u allocations\n", r.n);
	}
	gpul_rdma_dmabuf_close(d, n);
	unmap_range(&r);
}

static void refuses_what_is_not_mapped_device_memory(void **state)
{
	gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
	gpul_mem *host = create_memory(GPUL_MEM_AUTO, 4096);
	struct mapped_range r;
	gpul_error err[3] = { 0 };
	unsigned n = 0;
	int word;

	(void)state;
	assert_int_equal(gpul_rdma_dmabuf_export(drv, (uintptr_t)&word, 4, 0, d, &n, &err[0]), GPUL_EINVAL);
	assert_non_null(strstr(err[0].text, "host memory, which needs no dma-buf, or not mapped"));
	assert_int_equal(gpul_rdma_dmabuf_export(drv, gpul_mem_gpu(host), 4096, 0, d, &n, &err[1]), GPUL_EINVAL);
	assert_non_null(strstr(err[1].text, "register it without a dma-buf"));
	gpul_mem_destroy(host);
	/* An export beyond the mapped range must fail; drivers without dma-bufs fail earlier, with another error. */
	map_range(&r, 1);
	assert_true(gpul_rdma_dmabuf_export(drv, r.at, r.bytes + 1, 0, d, &n, &err[2]) != GPUL_OK);
	printf("partly mapped: %s\n", err[2].text);
	unmap_range(&r);
	assert_int_equal(n, 0);
}

/* Only newer drivers can export a mapping over PCIe, so both results are valid; the test prints which one it got. */
static void exports_by_pcie_or_says_why_not(void **state)
{
	gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
	gpul_error err = { 0 };
	unsigned n = 0;
	gpul_mem *m;

	(void)state;
	skip_without_dmabuf();
	m = create_memory(GPUL_MEM_DEVICE, 4096);
	if (gpul_rdma_dmabuf_export(drv, gpul_mem_gpu(m), 4096, GPUL_RDMA_DMABUF_PCIE, d, &n, &err)) {
		assert_non_null(strstr(err.text, "use the default path"));
		printf("no mapping by PCIe: %s\n", err.text);
	} else {
		assert_int_equal(n, 1);
		assert_dmabuf(&d[0]);
		printf("mapping by PCIe: yes\n");
	}
	gpul_rdma_dmabuf_close(d, n);
	gpul_mem_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_memory_is_made_for_nics_where_the_device_says_so),
		cmocka_unit_test(finds_the_kind_of_memory),
		cmocka_unit_test(exports_device_memory_as_dmabuf),
		cmocka_unit_test(exports_memory_of_cu_mem_alloc_as_dmabuf),
		cmocka_unit_test(exports_each_allocation_by_itself),
		cmocka_unit_test(exports_many_allocations_as_one_dmabuf_or_says_why_not),
		cmocka_unit_test(refuses_what_is_not_mapped_device_memory),
		cmocka_unit_test(exports_by_pcie_or_says_why_not),
	};
	int n_failed;

	if (!open_gpu())
		return 77;
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	gpul_context_close(&context);
	return n_failed;
}
