/* test_control.c — the control page (step counters and an abort word) between processes, and between a CPU and kernels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/file/file.h"
#include "driver/context.h"
#include "ipc/control.h"
#include "tests/fake/fake_driver.h"

/* ---- CPU and CPU ----------------------------------------------------------------------------- */

static gpul_ipc_view map_page(void)
{
	struct gpul_ipc_control *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	memset(page, 0xff, sizeof *page);
	gpul_ipc_control_reset(page, 7);
	return (gpul_ipc_view){ .control = page };
}

static void unmap_page(gpul_ipc_view *v)
{
	munmap(v->control, sizeof *v->control);
}

static void a_reset_page_has_magic_generation_and_zeros(void **state)
{
	gpul_ipc_view v = map_page();
	const unsigned char *bytes = (const unsigned char *)v.control;

	(void)state;
	assert_memory_equal(bytes, "GUPL\0\0\0\0\7\0\0\0\0\0\0\0", 16);
	for (size_t i = 16; i < sizeof *v.control; i++)
		assert_int_equal(bytes[i], 0);
	unmap_page(&v);
}

/* The child adds one to each number that it receives; returns its exit status, 0 for success. */
static int run_child(const gpul_ipc_view *v, volatile unsigned *shared, unsigned rounds)
{
	for (unsigned i = 1; i <= rounds; i++) {
		if (gpul_ipc_step_wait(v, 0, i, 10000, NULL))
			return 1;
		*shared += 1;
		if (gpul_ipc_step_post(v, 1, i, NULL))
			return 2;
	}
	return 0;
}

static void writes_before_a_post_are_visible_after_the_wait(void **state)
{
	enum { ROUNDS = 20000 };
	gpul_ipc_view v = map_page();
	/* The array has no atomic elements, because the step counters alone must order the accesses. */
	volatile unsigned *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(run_child(&v, shared, ROUNDS));
	for (unsigned i = 1; i <= ROUNDS; i++) {
		*shared = i * 10;
		assert_int_equal(gpul_ipc_step_post(&v, 0, i, NULL), GPUL_OK);
		assert_int_equal(gpul_ipc_step_wait(&v, 1, i, 10000, NULL), GPUL_OK);
		assert_int_equal(*shared, i * 10 + 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	munmap((void *)(uintptr_t)shared, 4096);
	unmap_page(&v);
}

static void a_wait_that_times_out_reports_the_counter(void **state)
{
	gpul_ipc_view v = map_page();
	gpul_error err = { 0 };

	(void)state;
	gpul_ipc_step_post(&v, 5, 41, NULL);
	assert_int_equal(gpul_ipc_step_wait(&v, 5, 42, 3, &err), GPUL_ESYS);
	assert_int_equal(err.native, ETIMEDOUT);
	assert_non_null(strstr(err.text, "step counter 5 is 41 after 3 ms, not 42"));
	assert_int_equal(gpul_ipc_step_wait(&v, 5, 41, 0, NULL), GPUL_OK);
	unmap_page(&v);
}

static void the_abort_word_ends_every_wait_with_the_first_code(void **state)
{
	gpul_ipc_view v = map_page();
	gpul_error err = { 0 };
	uint32_t code;
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) /* ends only when the parent sets the abort word */
		_exit(gpul_ipc_step_wait(&v, 9, 1, -1, &err) == GPUL_ESYS && err.native == ECANCELED ? 0 : 1);
	assert_int_equal(gpul_ipc_aborted(&v, &code, NULL), GPUL_OK);
	assert_int_equal(code, 0);
	assert_int_equal(gpul_ipc_abort(&v, 12, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_abort(&v, 13, NULL), GPUL_OK);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(gpul_ipc_step_wait(&v, 9, 1, -1, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "aborted the wait with code 12"));
	gpul_ipc_aborted(&v, &code, NULL);
	assert_int_equal(code, 12);
	unmap_page(&v);
}

static void refuses_invalid_steps_codes_and_read_only_pages(void **state)
{
	gpul_ipc_view v = map_page(), none = { 0 }, reader = v;
	gpul_error err = { 0 };
	uint64_t value;
	uint32_t code;

	(void)state;
	reader.read_only = true;
	assert_int_equal(gpul_ipc_step_post(&v, GPUL_IPC_N_STEPS, 1, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "step counter 63 does not exist: the step counters are 0 to 62"));
	assert_int_equal(gpul_ipc_step_read(&v, GPUL_IPC_N_STEPS, &value, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_step_wait(&v, GPUL_IPC_N_STEPS, 1, 0, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_abort(&v, 0, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_abort(&reader, 1, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_step_post(&reader, 0, 1, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_step_read(&reader, 62, &value, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_abort(&none, 1, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_aborted(&none, &code, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_step_wait(&none, 0, 1, 0, NULL), GPUL_EINVAL);
	unmap_page(&v);
}

/* ---- device memory, accessed by copies --------------------------------------------------------- */

static gpul_status use_every_word(const gpul_ipc_view *v, gpul_error *err)
{
	uint64_t value = 0;
	uint32_t code = 0;
	gpul_status st = gpul_ipc_step_post(v, 62, 5, err);

	st = st ? st : gpul_ipc_step_read(v, 62, &value, err);
	st = st ? st : gpul_ipc_step_wait(v, 62, 5, 0, err);
	st = st ? st : gpul_ipc_abort(v, 3, err);
	st = st ? st : gpul_ipc_abort(v, 4, err);
	st = st ? st : gpul_ipc_aborted(v, &code, err);
	if (!st && (value != 5 || code != 3))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "step %d, code %d", (int)value, (int)code);
	return st;
}

static void the_stream_is_destroyed_whichever_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) {
		struct gpul_ipc_control page; /* the fake driver's device memory is host memory */
		gpul_ipc_view v = { .drv = fake_driver(n), .control_gpu = (CUdeviceptr)(uintptr_t)&page };
		gpul_error err = { 0 };

		gpul_ipc_control_reset(&page, 1);
		if (use_every_word(&v, &err) == GPUL_OK) {
			assert_int_equal(n, fake_calls() + 1);
			assert_int_equal(fake_alive(), 0);
			return;
		}
		assert_int_equal(err.status, GPUL_ECUDA);
		assert_int_equal(fake_alive(), 0);
	}
}

/* ---- CPU and kernel ---------------------------------------------------------------------------- */

struct gpu {
	const gpul_driver *drv;
	gpul_context context;
	CUlibrary library;
	CUstream stream;
	CUdeviceptr page, data, result;
	gpul_ipc_view view;
};

#define assert_ok(call) assert_int_equal((call), 0)

static void *pinned(const gpul_driver *drv, size_t bytes)
{
	void *p = NULL;

	assert_ok(drv->cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	memset(p, 0, bytes);
	return p;
}

/* Open the driver and a control page.  by_copies: the page is in device memory, which the CPU cannot access. */
static void gpu_open(struct gpu *g, bool by_copies)
{
	const char *path = getenv("GPULOAD_TEST_CONTROL_PTX");
	struct gpul_ipc_control *page;
	gpul_file ptx;

	*g = (struct gpu){ 0 };
	assert_ok(gpul_file_open(path ? path : GPUL_KERNELS "/tests/ipc/control.ptx", &ptx, NULL));
	assert_ok(gpul_driver_open(GPUL_DRIVER_AUTO, &g->drv, NULL));
	assert_ok(gpul_context_open(g->drv, 0, &g->context, NULL));
	assert_ok(g->drv->cuLibraryLoadData(&g->library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0));
	gpul_file_close(&ptx);
	assert_ok(g->drv->cuStreamCreate(&g->stream, CU_STREAM_NON_BLOCKING));
	assert_ok(g->drv->cuMemAlloc(&g->data, 4096));
	assert_ok(g->drv->cuMemAlloc(&g->result, 64));
	page = pinned(g->drv, sizeof *page);
	gpul_ipc_control_reset(page, 1);
	g->page = (CUdeviceptr)(uintptr_t)page;
	g->view = (gpul_ipc_view){ .drv = g->drv, .control = page, .control_gpu = g->page };
	if (by_copies) {
		assert_ok(g->drv->cuMemAlloc(&g->view.control_gpu, sizeof *page));
		assert_ok(g->drv->cuMemcpyHtoD(g->view.control_gpu, page, sizeof *page));
		g->view.control = NULL;
	}
}

static void gpu_close(struct gpu *g)
{
	g->drv->cuCtxSynchronize();
	if (g->view.control_gpu != g->page)
		g->drv->cuMemFree(g->view.control_gpu);
	g->drv->cuMemFreeHost((void *)(uintptr_t)g->page);
	g->drv->cuMemFree(g->data);
	g->drv->cuMemFree(g->result);
	g->drv->cuStreamDestroy(g->stream);
	g->drv->cuLibraryUnload(g->library);
	gpul_context_close(&g->context);
}

static void launch(struct gpu *g, const char *name, unsigned threads, void **args)
{
	CUkernel kernel;
	CUfunction function;

	assert_ok(g->drv->cuLibraryGetKernel(&kernel, g->library, name));
	assert_ok(g->drv->cuKernelGetFunction(&function, kernel));
	assert_ok(g->drv->cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, g->stream, args, NULL));
}

static unsigned result(struct gpu *g)
{
	unsigned value = ~0u;

	assert_ok(g->drv->cuStreamSynchronize(g->stream));
	assert_ok(g->drv->cuMemcpyDtoH(&value, g->result, sizeof value));
	return value;
}

static void the_page_has_the_same_layout_on_host_and_device(void **state)
{
	struct gpu g;
	uint64_t at[5];

	(void)state;
	gpu_open(&g, false);
	launch(&g, "layout", 1, (void *[]){ &g.data });
	assert_ok(g.drv->cuStreamSynchronize(g.stream));
	assert_ok(g.drv->cuMemcpyDtoH(at, g.data, sizeof at));
	assert_int_equal(at[0], sizeof(struct gpul_ipc_control));
	assert_int_equal(at[1], offsetof(struct gpul_ipc_control, abort));
	assert_int_equal(at[2], offsetof(struct gpul_ipc_control, generation));
	assert_int_equal(at[3], offsetof(struct gpul_ipc_control, step[0].value));
	assert_int_equal(at[4], offsetof(struct gpul_ipc_control, step[1].value));
	gpu_close(&g);
}

static void echo(bool by_copies, unsigned long long rounds)
{
	enum { THREADS = 64 };
	struct gpu g;
	unsigned data[THREADS] = { 0 };

	gpu_open(&g, by_copies);
	assert_ok(g.drv->cuMemcpyHtoD(g.data, data, sizeof data));
	launch(&g, "echo", THREADS, (void *[]){ &g.view.control_gpu, &g.data, &rounds, &g.result });
	for (unsigned i = 1; i <= rounds; i++) {
		assert_ok(gpul_ipc_step_post(&g.view, 0, i, NULL));
		assert_ok(gpul_ipc_step_wait(&g.view, 1, i, 20000, NULL));
	}
	assert_int_equal(result(&g), 0);
	assert_ok(g.drv->cuMemcpyDtoH(data, g.data, sizeof data));
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(data[i], rounds);
	gpu_close(&g);
}

static void a_cpu_and_a_kernel_take_turns(void **state)
{
	(void)state;
	echo(false, 2000);
}

static void a_cpu_and_a_running_kernel_take_turns_by_copies(void **state)
{
	(void)state;
	echo(true, 100);
}

static void a_kernels_wait_ends_after_its_time_out(void **state)
{
	struct gpu g;
	unsigned long long timeout_ns = 2000000;

	(void)state;
	gpu_open(&g, false);
	launch(&g, "wait_for", 1, (void *[]){ &g.view.control_gpu, &timeout_ns, &g.result });
	assert_int_equal(result(&g), 1 /* GPUL_IPC_TIMED_OUT */);
	gpu_close(&g);
}

static void the_cpu_aborts_a_kernel_that_waits_without_time_out(void **state)
{
	unsigned long long for_ever = ~0ull;

	(void)state;
	for (int by_copies = 0; by_copies <= 1; by_copies++) {
		struct gpu g;

		gpu_open(&g, by_copies);
		launch(&g, "wait_for", 1, (void *[]){ &g.view.control_gpu, &for_ever, &g.result });
		assert_ok(gpul_ipc_step_wait(&g.view, 62, 1, 20000, NULL)); /* the kernel has started */
		assert_ok(gpul_ipc_abort(&g.view, 77, NULL));
		assert_int_equal(result(&g), 2 /* GPUL_IPC_ABORTED */);
		gpu_close(&g);
	}
}

static void a_kernel_aborts_a_wait_of_the_cpu(void **state)
{
	struct gpu g;
	unsigned code = 5, other = 6;
	gpul_error err = { 0 };

	(void)state;
	gpu_open(&g, false);
	launch(&g, "raise", 1, (void *[]){ &g.view.control_gpu, &code, &g.result });
	assert_int_equal(gpul_ipc_step_wait(&g.view, 3, 1, 20000, &err), GPUL_ESYS);
	assert_int_equal(err.native, ECANCELED);
	launch(&g, "raise", 1, (void *[]){ &g.view.control_gpu, &other, &g.result });
	assert_int_equal(result(&g), 5); /* the code of the first abort is kept */
	gpu_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_page_has_magic_generation_and_zeros),
		cmocka_unit_test(writes_before_a_post_are_visible_after_the_wait),
		cmocka_unit_test(a_wait_that_times_out_reports_the_counter),
		cmocka_unit_test(the_abort_word_ends_every_wait_with_the_first_code),
		cmocka_unit_test(refuses_invalid_steps_codes_and_read_only_pages),
		cmocka_unit_test(the_stream_is_destroyed_whichever_call_fails),
		cmocka_unit_test(the_page_has_the_same_layout_on_host_and_device),
		cmocka_unit_test(a_cpu_and_a_kernel_take_turns),
		cmocka_unit_test(a_cpu_and_a_running_kernel_take_turns_by_copies),
		cmocka_unit_test(a_kernels_wait_ends_after_its_time_out),
		cmocka_unit_test(the_cpu_aborts_a_kernel_that_waits_without_time_out),
		cmocka_unit_test(a_kernel_aborts_a_wait_of_the_cpu),
	};

	return cmocka_run_group_tests_name("ipc/control", tests, NULL, NULL);
}
