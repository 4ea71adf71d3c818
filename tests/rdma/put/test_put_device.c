/* test_put_device.c — a kernel pushes puts whose values do not fit into a trigger: none of them arrives.  Runs on any driver. */
#include "tests/support/cmocka.h"
#include "core/file/file.h"
#include "driver/context.h"
#include "proxy/fifo.h"
#include "rdma/put/put_layout.h"
#include "tests/rdma/put/work.h"

#define GIB (1ull << 30)

struct attempt {
	struct way_push put;
	bool refused;
};

static const struct attempt attempts[] = {
	{ { 0, 0, 0, 0, 0, 0 }, false },
	{ { 16, 32, 64, 1, 2, 3 }, false },
	{ { 64 * GIB - 32, 32 * GIB - 32, 2 * GIB - 2, 1023, GPUL_RDMA_PUT_NO_STEP, 15 }, false },
	{ { 1, 0, 64, 0, 0, 0 }, true },
	{ { 0, 8, 64, 0, 0, 0 }, true },
	{ { 15, 15, 64, 0, 0, 0 }, true },
	{ { 64 * GIB - 16, 0, 0, 0, 0, 0 }, true },
	{ { 64 * GIB, 0, 64, 0, 0, 0 }, true },
	{ { 128 * GIB + 16, 0, 64, 0, 0, 0 }, true },
	{ { 0, 32 * GIB - 16, 0, 0, 0, 0 }, true },
	{ { 0, 32 * GIB, 64, 0, 0, 0 }, true },
	{ { 0, 64 * GIB, 64, 0, 0, 0 }, true },
	{ { 0, ~15ull, 64, 0, 0, 0 }, true },
	{ { ~15ull, 0, 64, 0, 0, 0 }, true },
	{ { 0, 0, 2 * GIB - 1, 0, 0, 0 }, true },
	{ { 0, 0, 2 * GIB, 0, 0, 0 }, true },
	{ { 0, 0, 4 * GIB + 16, 0, 0, 0 }, true },
	{ { 0, 0, 64, 1024, 0, 0 }, true },
	{ { 0, 0, 64, ~0ull, 0, 0 }, true },
	{ { 0, 0, 64, 0, GPUL_RDMA_PUT_NO_STEP + 1, 0 }, true },
	{ { 0, 0, 64, 0, 1ull << 32, 0 }, true },
	{ { 0, 0, 64, 0, 0, 16 }, true },
	{ { 48, 16, 1, 5, 6, 0 }, false },
};
enum { N = sizeof attempts / sizeof *attempts };

static void must(gpul_status st, const gpul_error *err)
{
	if (st)
		fail_msg("%s", err->text);
}

/* Run push_all over the attempts, and return its results. */
static void push_all(const gpul_driver *drv, gpul_fifo *fifo, unsigned results[N])
{
	struct way_push pushes[N];
	CUdeviceptr from, to;
	unsigned n = N;
	void *arguments[] = { (void *)(uintptr_t)gpul_fifo_gpu_param(gpul_fifo_gpu_of(fifo)), &from, &n, &to };
	gpul_file ptx;
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	gpul_error err = { 0 };

	for (unsigned i = 0; i < N; i++)
		pushes[i] = attempts[i].put;
	must(gpul_file_open(GPUL_KERNELS "/tests/rdma/put/kernels.ptx", &ptx, &err), &err);
	must(gpul_cu(drv, &err, cuLibraryLoadData(&library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0)), &err);
	gpul_file_close(&ptx);
	must(gpul_cu(drv, &err, cuLibraryGetKernel(&kernel, library, "push_all")), &err);
	must(gpul_cu(drv, &err, cuKernelGetFunction(&function, kernel)), &err);
	must(gpul_cu(drv, &err, cuMemAlloc(&from, sizeof pushes)), &err);
	must(gpul_cu(drv, &err, cuMemAlloc(&to, N * sizeof *results)), &err);
	must(gpul_cu(drv, &err, cuMemcpyHtoD(from, pushes, sizeof pushes)), &err);
	must(gpul_cu(drv, &err, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL)), &err);
	must(gpul_cu(drv, &err, cuCtxSynchronize()), &err);
	must(gpul_cu(drv, &err, cuMemcpyDtoH(results, to, N * sizeof *results)), &err);
	must(gpul_cu(drv, &err, cuMemFree(from)), &err);
	must(gpul_cu(drv, &err, cuMemFree(to)), &err);
	must(gpul_cu(drv, &err, cuLibraryUnload(library)), &err);
}

static void a_kernel_cannot_push_a_value_that_does_not_fit(void **state)
{
	const gpul_fifo_shape shape = { .slots = 64, .lanes = 1 };
	const gpul_driver *drv = NULL;
	gpul_context ctx = { 0 };
	gpul_fifo *fifo = NULL;
	gpul_fifo_item items[N];
	unsigned results[N], n, next = 0;
	gpul_error err = { 0 };

	(void)state;
	must(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err), &err);
	must(gpul_context_open(drv, 0, &ctx, &err), &err);
	must(gpul_fifo_create(drv, GPUL_MEM_AUTO, 0, &shape, &fifo, &err), &err);
	push_all(drv, fifo, results);
	n = gpul_fifo_poll(fifo, items, N);
	for (unsigned i = 0; i < N; i++) {
		const struct way_push *p = &attempts[i].put;
		const uint64_t *word = items[next].word;

		if (results[i] != (attempts[i].refused ? GPUL_FIFO_REFUSED : GPUL_FIFO_OK))
			fail_msg("attempt %u: result %u", i, results[i]);
		if (attempts[i].refused)
			continue;
		assert_true(next < n);
		assert_true(GPUL_RDMA_PUT_FROM(word[0]) == p->from && GPUL_RDMA_PUT_TO(word[0]) == p->to);
		assert_true(GPUL_RDMA_PUT_BYTES(word[1]) == p->bytes && GPUL_RDMA_PUT_ROUTE(word[1]) == p->route);
		assert_true(GPUL_RDMA_PUT_STEP(word[1]) == p->step && gpul_fifo_kind(&items[next]) == p->kind);
		next++;
	}
	assert_int_equal(n, next);
	gpul_fifo_close(fifo);
	gpul_context_close(&ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_kernel_cannot_push_a_value_that_does_not_fit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
