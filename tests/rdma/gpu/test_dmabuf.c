/* test_dmabuf.c — tests on a fake driver: the kind of memory of an address, and exports as dma-buf. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/support/open_files.h"
#include "driver/context.h"
#include "rdma/gpu/dmabuf.h"
#include "tests/rdma/gpu/fake_gpu.h"

#define BASE UINT64_C(0x7f0000000000)
enum { GRAIN = 2 << 20 };

static gpul_context context;

/* Return a new fake driver with n adjacent allocations from address BASE; allocation i has (i + 1) * GRAIN bytes. */
static const gpul_driver *with_segments(unsigned n)
{
	const gpul_driver *drv = fake_gpu_driver(0, CUDA_SUCCESS);
	uint64_t at = BASE;

	for (unsigned i = 0; i < n; i++) {
		fake_gpu_state()->segments[i] = (fake_segment){ at, (i + 1) * (uint64_t)GRAIN, GPUL_RDMA_DEVICE, true, false };
		at += (i + 1) * (uint64_t)GRAIN;
	}
	fake_gpu_state()->n_segments = n;
	assert_int_equal(gpul_context_open(drv, 0, &context, NULL), GPUL_OK);
	return drv;
}

static void done(void)
{
	gpul_context_close(&context);
	assert_int_equal(fake_alive(), 0);
}

static void finds_the_kind_of_memory(void **state)
{
	static const struct {
		fake_segment segment;
		gpul_rdma_pointer expected;
	} cases[] = {
		{ { BASE, 8, GPUL_RDMA_PINNED, false, false }, { GPUL_RDMA_PINNED, -1, false, false } },
		{ { BASE, 8, GPUL_RDMA_HOST_NUMA, true, false }, { GPUL_RDMA_HOST_NUMA, -1, true, false } },
		{ { BASE, 8, GPUL_RDMA_DEVICE, true, false }, { GPUL_RDMA_DEVICE, 0, true, true } },
		{ { BASE, 8, GPUL_RDMA_DEVICE, true, true }, { GPUL_RDMA_DEVICE, 0, true, false } },
		{ { BASE, 8, GPUL_RDMA_DEVICE, false, false }, { GPUL_RDMA_DEVICE, 0, false, true } },
		{ { BASE, 8, GPUL_RDMA_MANAGED, false, false }, { GPUL_RDMA_MANAGED, -1, false, false } },
		{ { BASE + 64, 8, GPUL_RDMA_DEVICE, false, false }, { GPUL_RDMA_PAGEABLE, -1, false, false } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const gpul_driver *drv = with_segments(0);
		gpul_rdma_pointer p = { 0 };

		fake_gpu_state()->segments[0] = cases[i].segment;
		fake_gpu_state()->n_segments = 1;
		assert_int_equal(gpul_rdma_pointer_find(drv, BASE + 4, &p, NULL), GPUL_OK);
		assert_int_equal(p.kind, cases[i].expected.kind);
		assert_int_equal(p.device, cases[i].expected.device);
		assert_int_equal(p.mapped, cases[i].expected.mapped);
		assert_int_equal(p.rdma_capable, cases[i].expected.rdma_capable);
		assert_string_not_equal(gpul_rdma_pointer_kind_name(p.kind), "?");
		done();
	}
}

static void without_a_driver_all_memory_is_pageable(void **state)
{
	gpul_rdma_pointer p = { .kind = GPUL_RDMA_DEVICE };

	(void)state;
	assert_int_equal(gpul_rdma_pointer_find(NULL, BASE, &p, NULL), GPUL_OK);
	assert_int_equal(p.kind, GPUL_RDMA_PAGEABLE);
}

static void exports_whole_pages_and_the_offset(void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	static const struct {
		uint64_t at, bytes;
	} ranges[] = {
		{ 0, 1 }, { 0, 4096 }, { 1, 1 }, { 4095, 2 }, { 4097, 100000 }, { 0, GRAIN }, { GRAIN - 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
		const gpul_driver *drv = with_segments(1);
		gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
		unsigned n = 0;
		struct stat is;

		assert_int_equal(gpul_rdma_dmabuf_export(drv, BASE + ranges[i].at, ranges[i].bytes, GPUL_RDMA_DMABUF_DEFAULT, d, &n, NULL),
				 GPUL_OK);
		assert_int_equal(n, 1);
		assert_true(d[0].at == BASE + ranges[i].at && d[0].bytes == ranges[i].bytes);
		assert_int_equal(d[0].offset, ranges[i].at % page);
		assert_int_equal(fake_gpu_state()->export_at + d[0].offset, d[0].at);
		assert_int_equal(fake_gpu_state()->export_bytes, d[0].dmabuf_bytes);
		assert_true(d[0].offset + d[0].bytes <= d[0].dmabuf_bytes);
		assert_true(d[0].dmabuf_bytes < d[0].offset + d[0].bytes + page);
		assert_int_equal(fake_gpu_state()->export_flags, 0);
		assert_int_equal(fstat(d[0].fd, &is), 0);
		assert_int_equal(is.st_size, d[0].dmabuf_bytes);
		assert_true(fcntl(d[0].fd, F_GETFD) & FD_CLOEXEC);
		gpul_rdma_dmabuf_close(d, n);
		done();
	}
}

static void exports_each_allocation_by_itself(void **state)
{
	const unsigned fds = count_fds();
	const gpul_driver *drv = with_segments(4); /* allocations of 1, 2, 3 and 4 times GRAIN bytes */
	gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
	const uint64_t bytes = 6 * (uint64_t)GRAIN;
	unsigned n = 0;

	(void)state;
	/* Export from the middle of the first allocation to the middle of the last one. */
	assert_int_equal(gpul_rdma_dmabuf_export(drv, BASE + GRAIN / 2 + 3, bytes, GPUL_RDMA_DMABUF_PCIE, d, &n, NULL), GPUL_OK);
	assert_int_equal(n, 4);
	assert_int_equal(fake_gpu_state()->export_flags, 1);
	assert_int_equal(d[0].offset, 3);
	assert_int_equal(d[0].bytes, GRAIN / 2 - 3);
	for (unsigned i = 1; i < n; i++) {
		assert_int_equal(d[i].at, d[i - 1].at + d[i - 1].bytes);
		assert_int_equal(d[i].offset, 0);
	}
	assert_int_equal(d[1].bytes, 2 * GRAIN);
	assert_int_equal(d[2].bytes, 3 * GRAIN);
	assert_int_equal(d[3].at + d[3].bytes, BASE + GRAIN / 2 + 3 + bytes);
	gpul_rdma_dmabuf_close(d, n);
	assert_int_equal(count_fds(), fds);
	done();
}

/* A range of many allocations is exported as one dma-buf, if the size of the dma-buf shows that it contains all of them. */
static void exports_many_allocations_as_one_dmabuf(void **state)
{
	const unsigned fds = count_fds();

	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		const gpul_driver *drv = with_segments(GPUL_RDMA_MAX_PIECES + 1);
		const uint64_t bytes = 45 * (uint64_t)GRAIN;
		gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
		gpul_error err = { 0 };
		unsigned n = 0;
		gpul_status st;

		fake_gpu_state()->dmabuf_bytes = whole ? 0 : GRAIN;
		st = gpul_rdma_dmabuf_export(drv, BASE, bytes, GPUL_RDMA_DMABUF_DEFAULT, d, &n, &err);
		assert_int_equal(st, whole ? GPUL_OK : GPUL_EUNSUPPORTED);
		assert_int_equal(fake_gpu_state()->n_exports, 1);
		if (whole) {
			assert_int_equal(n, 1);
			assert_int_equal(d[0].bytes, bytes);
			gpul_rdma_dmabuf_close(d, n);
		} else {
			assert_non_null(strstr(err.text, "9 allocations"));
		}
		assert_int_equal(count_fds(), fds);
		done();
	}
}

static gpul_status export_at(const gpul_driver *drv, uint64_t at, uint64_t bytes, gpul_rdma_dmabuf_path path, gpul_error *err)
{
	gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
	unsigned n = 77;
	gpul_status st = gpul_rdma_dmabuf_export(drv, at, bytes, path, d, &n, err);

	assert_true(st != GPUL_OK);
	assert_int_equal(n, 77);
	done();
	return st;
}

static void refuses_what_is_not_device_memory(void **state)
{
	gpul_error err[6] = { 0 };
	const gpul_driver *drv = with_segments(1);

	(void)state;
	assert_int_equal(export_at(drv, BASE, 0, 0, &err[0]), GPUL_EINVAL);
	drv = with_segments(1);
	assert_int_equal(export_at(drv, UINT64_MAX - 4096, 8192, 0, &err[1]), GPUL_EINVAL);
	drv = with_segments(1);
	assert_int_equal(export_at(drv, BASE - GRAIN, 1, 0, &err[2]), GPUL_EINVAL);
	assert_non_null(strstr(err[2].text, "host memory, which needs no dma-buf, or not mapped"));
	drv = with_segments(1);
	fake_gpu_state()->segments[0].kind = GPUL_RDMA_HOST_NUMA;
	assert_int_equal(export_at(drv, BASE, 1, 0, &err[3]), GPUL_EINVAL);
	assert_non_null(strstr(err[3].text, "is host-numa memory, not device memory: register it without"));
	drv = with_segments(1);
	fake_gpu_state()->segments[0] = (fake_segment){ BASE, GRAIN, GPUL_RDMA_MANAGED, false, false };
	assert_int_equal(export_at(drv, BASE, 1, 0, &err[4]), GPUL_EINVAL);
	assert_non_null(strstr(err[4].text, "its pages move"));
	drv = with_segments(2);
	fake_gpu_state()->segments[1].at += GRAIN; /* leaves an unmapped hole before this allocation */
	assert_int_equal(export_at(drv, BASE + 1, 2 * GRAIN, 0, &err[5]), GPUL_EINVAL);
	assert_non_null(strstr(err[5].text, "2097151 bytes into the range"));
}

static void says_why_the_driver_refuses(void **state)
{
	gpul_error err[5] = { 0 };
	const gpul_driver *drv = with_segments(1);

	(void)state;
	fake_behave()->no_dmabuf = 1;
	assert_int_equal(export_at(drv, BASE, 1, 0, &err[0]), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err[0].text, "open kernel modules"));
	assert_int_equal(fake_gpu_state()->n_exports, 0);
	drv = with_segments(1);
	fake_gpu_state()->export_result = CUDA_ERROR_NOT_SUPPORTED;
	assert_int_equal(export_at(drv, BASE, 1, 0, &err[1]), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err[1].text, "a kernel with dma-buf"));
	drv = with_segments(1);
	fake_gpu_state()->export_result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(export_at(drv, BASE, 1, GPUL_RDMA_DMABUF_PCIE, &err[2]), GPUL_ECUDA);
	assert_non_null(strstr(err[2].text, "no dma-buf mapping by PCIe"));
	drv = with_segments(1);
	fake_gpu_state()->export_result = CUDA_ERROR_INVALID_VALUE;
	fake_gpu_state()->segments[0].not_for_nics = true;
	assert_int_equal(export_at(drv, BASE, 1, 0, &err[3]), GPUL_ECUDA);
	assert_non_null(strstr(err[3].text, "without gpuDirectRDMACapable"));
	drv = with_segments(1);
	fake_gpu_state()->bad_fd = 250;
	assert_int_equal(export_at(drv, BASE, 1, 0, &err[4]), GPUL_ESYS);
	assert_non_null(strstr(err[4].text, "descriptor 250"));
}

static void closes_everything_whichever_call_fails(void **state)
{
	const unsigned fds = count_fds();

	(void)state;
	for (int n = 1;; n++) {
		const gpul_driver *drv = with_segments(3);
		gpul_rdma_dmabuf d[GPUL_RDMA_MAX_PIECES];
		gpul_error err = { 0 };
		unsigned n_pieces = 0;
		gpul_status st;
		int calls;

		fake_fail_next(n, CUDA_ERROR_OUT_OF_MEMORY);
		calls = fake_calls();
		st = gpul_rdma_dmabuf_export(drv, BASE, 6 * GRAIN, 0, d, &n_pieces, &err);
		if (st == GPUL_OK) {
			assert_int_equal(n, fake_calls() - calls + 1);
			gpul_rdma_dmabuf_close(d, n_pieces);
			assert_true(n > 8);
			done();
			return;
		}
		assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
		assert_int_equal(n_pieces, 0);
		assert_int_equal(count_fds(), fds);
		done();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_kind_of_memory),
		cmocka_unit_test(without_a_driver_all_memory_is_pageable),
		cmocka_unit_test(exports_whole_pages_and_the_offset),
		cmocka_unit_test(exports_each_allocation_by_itself),
		cmocka_unit_test(exports_many_allocations_as_one_dmabuf),
		cmocka_unit_test(refuses_what_is_not_device_memory),
		cmocka_unit_test(says_why_the_driver_refuses),
		cmocka_unit_test(closes_everything_whichever_call_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
