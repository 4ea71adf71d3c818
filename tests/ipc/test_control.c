/* test_control.c — the control page between processes, and between a CPU and kernels. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "driver/context.h"
#include "ipc/control.h"
#include "tests/fake/fake_driver.h"

/* ---- CPU and CPU ----------------------------------------------------------------------------- */

static gpul_ipc_view shared_page(void)
{
	struct gpul_ipc_control *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	memset(page, 0xff, sizeof *page);
	gpul_ipc_control_reset(page, 7);
	return (gpul_ipc_view){ .control = page };
}

static void drop(gpul_ipc_view *v)
{
	munmap(v->control, sizeof *v->control);
}

static void a_page_that_was_reset_holds_its_magic_its_generation_and_zeros(void **state)
{
	gpul_ipc_view v = shared_page();
	const unsigned char *bytes = (const unsigned char *)v.control;

	(void)state;
	assert_memory_equal(bytes, "GUPL\0\0\0\0\7\0\0\0\0\0\0\0", 16);
	for (size_t i = 16; i < sizeof *v.control; i++)
		assert_int_equal(bytes[i], 0);
	drop(&v);
}

/* The child adds one to each number that it is handed; exit code 0: all went well. */
static int answer(const gpul_ipc_view *v, volatile unsigned *shared, unsigned rounds)
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

static void what_was_written_before_a_post_is_seen_behind_the_wait(void **state)
{
	enum { ROUNDS = 20000 };
	gpul_ipc_view v = shared_page();
	/* Not atomic: only the counters order it. */
	volatile unsigned *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(answer(&v, shared, ROUNDS));
	for (unsigned i = 1; i <= ROUNDS; i++) {
		*shared = i * 10;
		assert_int_equal(gpul_ipc_step_post(&v, 0, i, NULL), GPUL_OK);
		assert_int_equal(gpul_ipc_step_wait(&v, 1, i, 10000, NULL), GPUL_OK);
		assert_int_equal(*shared, i * 10 + 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	munmap((void *)(uintptr_t)shared, 4096);
	drop(&v);
}

static void a_wait_that_takes_too_long_says_how_far_it_got(void **state)
{
	gpul_ipc_view v = shared_page();
	gpul_error err = { 0 };

	(void)state;
	gpul_ipc_step_post(&v, 5, 41, NULL);
	assert_int_equal(gpul_ipc_step_wait(&v, 5, 42, 3, &err), GPUL_ESYS);
	assert_int_equal(err.native, ETIMEDOUT);
	assert_non_null(strstr(err.text, "step 5 is 41 after 3 ms, not 42"));
	assert_int_equal(gpul_ipc_step_wait(&v, 5, 41, 0, NULL), GPUL_OK);
	drop(&v);
}

static void the_abort_word_ends_every_wait_with_its_first_code(void **state)
{
	gpul_ipc_view v = shared_page();
	gpul_error err = { 0 };
	uint32_t code;
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)  /* waits for ever, but for the abort word */
		_exit(gpul_ipc_step_wait(&v, 9, 1, -1, &err) == GPUL_ESYS && err.native == ECANCELED ? 0 : 1);
	assert_int_equal(gpul_ipc_aborted(&v, &code, NULL), GPUL_OK);
	assert_int_equal(code, 0);
	assert_int_equal(gpul_ipc_abort(&v, 12, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_abort(&v, 13, NULL), GPUL_OK);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(gpul_ipc_step_wait(&v, 9, 1, -1, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "raised with code 12"));
	gpul_ipc_aborted(&v, &code, NULL);
	assert_int_equal(code, 12);
	drop(&v);
}

static void refuses_what_is_not_there_or_not_allowed(void **state)
{
	gpul_ipc_view v = shared_page(), none = { 0 }, reader = v;
	gpul_error err = { 0 };
	uint64_t value;
	uint32_t code;

	(void)state;
	reader.read_only = true;
	assert_int_equal(gpul_ipc_step_post(&v, GPUL_IPC_N_STEPS, 1, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "no step counter 63: there are 0 to 62"));
	assert_int_equal(gpul_ipc_step_read(&v, GPUL_IPC_N_STEPS, &value, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_step_wait(&v, GPUL_IPC_N_STEPS, 1, 0, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_abort(&v, 0, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_abort(&reader, 1, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_step_post(&reader, 0, 1, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_step_read(&reader, 62, &value, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_abort(&none, 1, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_aborted(&none, &code, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_ipc_step_wait(&none, 0, 1, 0, NULL), GPUL_EINVAL);
	drop(&v);
}

/* ---- device memory, by copies ------------------------------------------------------------------ */

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

static void gives_its_stream_back_whichever_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) {
		struct gpul_ipc_control page;  /* the fake driver's device memory is host memory */
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

#define must(call) assert_int_equal((call), 0)

static void *pinned(const gpul_driver *drv, size_t bytes)
{
	void *p = NULL;

	must(drv->cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	memset(p, 0, bytes);
	return p;
}

/* by_copies: the page lies in device memory, where the CPU does not see it. */
static void gpu_open(struct gpu *g, bool by_copies)
{
	const char *path = getenv("GPULOAD_TEST_CONTROL_PTX");
	struct gpul_ipc_control *page;
	gpul_file ptx;

	*g = (struct gpu){ 0 };
	must(gpul_file_open(path ? path : "tests/ipc/control.ptx", &ptx, NULL));
	must(gpul_driver_open(GPUL_DRIVER_AUTO, &g->drv, NULL));
	must(gpul_context_open(g->drv, 0, &g->context, NULL));
	must(g->drv->cuLibraryLoadData(&g->library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0));
	gpul_file_close(&ptx);
	must(g->drv->cuStreamCreate(&g->stream, CU_STREAM_NON_BLOCKING));
	must(g->drv->cuMemAlloc(&g->data, 4096));
	must(g->drv->cuMemAlloc(&g->result, 64));
	page = pinned(g->drv, sizeof *page);
	gpul_ipc_control_reset(page, 1);
	g->page = (CUdeviceptr)(uintptr_t)page;
	g->view = (gpul_ipc_view){ .drv = g->drv, .control = page, .control_gpu = g->page };
	if (by_copies) {
		must(g->drv->cuMemAlloc(&g->view.control_gpu, sizeof *page));
		must(g->drv->cuMemcpyHtoD(g->view.control_gpu, page, sizeof *page));
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

	must(g->drv->cuLibraryGetKernel(&kernel, g->library, name));
	must(g->drv->cuKernelGetFunction(&function, kernel));
	must(g->drv->cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, g->stream, args, NULL));
}

static unsigned result(struct gpu *g)
{
	unsigned value = ~0u;

	must(g->drv->cuStreamSynchronize(g->stream));
	must(g->drv->cuMemcpyDtoH(&value, g->result, sizeof value));
	return value;
}

static void the_device_compiler_lays_the_page_out_as_the_host_does(void **state)
{
	struct gpu g;
	uint64_t at[5];

	(void)state;
	gpu_open(&g, false);
	launch(&g, "layout", 1, (void *[]){ &g.data });
	must(g.drv->cuStreamSynchronize(g.stream));
	must(g.drv->cuMemcpyDtoH(at, g.data, sizeof at));
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
	must(g.drv->cuMemcpyHtoD(g.data, data, sizeof data));
	launch(&g, "echo", THREADS, (void *[]){ &g.view.control_gpu, &g.data, &rounds, &g.result });
	for (unsigned i = 1; i <= rounds; i++) {
		must(gpul_ipc_step_post(&g.view, 0, i, NULL));
		must(gpul_ipc_step_wait(&g.view, 1, i, 20000, NULL));
	}
	assert_int_equal(result(&g), 0);
	must(g.drv->cuMemcpyDtoH(data, g.data, sizeof data));
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(data[i], rounds);
	gpu_close(&g);
}

static void a_cpu_and_a_kernel_take_turns(void **state)
{
	(void)state;
	echo(false, 2000);
}

static void a_cpu_and_a_kernel_take_turns_by_copies_while_the_kernel_runs(void **state)
{
	(void)state;
	echo(true, 100);
}

static void a_kernel_s_wait_ends_after_its_time(void **state)
{
	struct gpu g;
	unsigned long long timeout_ns = 2000000;

	(void)state;
	gpu_open(&g, false);
	launch(&g, "wait_for", 1, (void *[]){ &g.view.control_gpu, &timeout_ns, &g.result });
	assert_int_equal(result(&g), 1 /* GPUL_IPC_TIMED_OUT */);
	gpu_close(&g);
}

static void the_cpu_aborts_a_kernel_that_waits_for_ever(void **state)
{
	unsigned long long for_ever = ~0ull;

	(void)state;
	for (int by_copies = 0; by_copies <= 1; by_copies++) {
		struct gpu g;

		gpu_open(&g, by_copies);
		launch(&g, "wait_for", 1, (void *[]){ &g.view.control_gpu, &for_ever, &g.result });
		must(gpul_ipc_step_wait(&g.view, 62, 1, 20000, NULL));  /* it runs */
		must(gpul_ipc_abort(&g.view, 77, NULL));
		assert_int_equal(result(&g), 2 /* GPUL_IPC_ABORTED */);
		gpu_close(&g);
	}
}

static void a_kernel_aborts_the_cpu(void **state)
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
	assert_int_equal(result(&g), 5);  /* the first stays */
	gpu_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_that_was_reset_holds_its_magic_its_generation_and_zeros),
		cmocka_unit_test(what_was_written_before_a_post_is_seen_behind_the_wait),
		cmocka_unit_test(a_wait_that_takes_too_long_says_how_far_it_got),
		cmocka_unit_test(the_abort_word_ends_every_wait_with_its_first_code),
		cmocka_unit_test(refuses_what_is_not_there_or_not_allowed),
		cmocka_unit_test(gives_its_stream_back_whichever_call_fails),
		cmocka_unit_test(the_device_compiler_lays_the_page_out_as_the_host_does),
		cmocka_unit_test(a_cpu_and_a_kernel_take_turns),
		cmocka_unit_test(a_cpu_and_a_kernel_take_turns_by_copies_while_the_kernel_runs),
		cmocka_unit_test(a_kernel_s_wait_ends_after_its_time),
		cmocka_unit_test(the_cpu_aborts_a_kernel_that_waits_for_ever),
		cmocka_unit_test(a_kernel_aborts_the_cpu),
	};

	return cmocka_run_group_tests_name("ipc/control", tests, NULL, NULL);
}
