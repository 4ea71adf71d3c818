/* test_drain.c — detaching while kernels run: the memory is not unmapped while they use it. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/file/file.h"
#include "ipc/control.h"
#include "tests/ipc/support.h"

enum { MEMORY_BYTES = 1 << 16, ABORTED = 2, SHORT_MS = 50 };

static const unsigned long long kernel_limit_ns = 60000000000; /* time-out of the kernel, so that the test ends in any case */

struct work {
	CUlibrary library;
	CUstream stream;
	unsigned *result; /* in pinned host memory */
	gpul_mem *mem;
	gpul_ipc_server *s;
	gpul_ipc_client *c;
	gpul_mem *elsewhere; /* memory with a control page that is not offered */
};

#define must(call) assert_int_equal((call), 0)

static struct work begin_work(gpul_mem_kind kind)
{
	const gpul_driver *drv = the_driver();
	struct work w = { .mem = make_memory(kind, MEMORY_BYTES), .elsewhere = make_memory(GPUL_MEM_MEMFD, MEMORY_BYTES) };
	void *result;
	gpul_file ptx;

	must(gpul_file_open(GPUL_KERNELS "/tests/ipc/control.ptx", &ptx, NULL));
	must(drv->cuLibraryLoadData(&w.library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0));
	gpul_file_close(&ptx);
	must(drv->cuStreamCreate(&w.stream, CU_STREAM_NON_BLOCKING));
	must(drv->cuMemHostAlloc(&result, sizeof *w.result, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	w.result = result;
	*w.result = 99;
	gpul_ipc_control_reset(gpul_mem_cpu(w.elsewhere), 1);
	w.s = offer(w.mem, "drain");
	w.c = attach_here(w.s, "drain");
	return w;
}

static void finish_work(struct work *w)
{
	const gpul_driver *drv = the_driver();

	must(drv->cuCtxSynchronize());
	gpul_ipc_server_destroy(w->s);
	gpul_mem_destroy(w->mem);
	gpul_mem_destroy(w->elsewhere);
	must(drv->cuMemFreeHost(w->result));
	must(drv->cuStreamDestroy(w->stream));
	must(drv->cuLibraryUnload(w->library));
}

/* Start a kernel that waits on v's control page for a step that is never posted; returns when the kernel is running. */
static void start_waiting_kernel(struct work *w, const gpul_ipc_view *v)
{
	const gpul_driver *drv = the_driver();
	CUdeviceptr control = v->control_gpu, result = (CUdeviceptr)(uintptr_t)w->result;
	unsigned long long timeout_ns = kernel_limit_ns;
	void *args[] = { &control, &timeout_ns, &result };
	CUkernel kernel;
	CUfunction function;

	must(drv->cuLibraryGetKernel(&kernel, w->library, "wait_for"));
	must(drv->cuKernelGetFunction(&function, kernel));
	must(drv->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, w->stream, args, NULL));
	must(gpul_ipc_step_wait(v, 62, 1, PATIENCE_MS, NULL));
}

static void a_waiting_kernel_is_aborted_after_the_time_out(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_MEMFD, GPUL_MEM_DEVICE };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct work w = begin_work(kinds[i]);

		start_waiting_kernel(&w, gpul_ipc_client_view(w.c));
		assert_int_equal(gpul_ipc_client_close(w.c, SHORT_MS, NULL), GPUL_OK);
		assert_int_equal(*w.result, ABORTED);
		expect_event(w.s, GPUL_IPC_DETACHED);
		finish_work(&w);
	}
}

static void kernels_are_aborted_at_once_when_the_owner_has_ended(void **state)
{
	struct work w = begin_work(GPUL_MEM_MEMFD);
	int device = 0, pair[2];
	gpul_ipc_client_options options = { .devices = &device, .n_devices = 1 };
	gpul_ipc_client *orphan;

	(void)state;
	/* The client uses a socket pair, so that this process can shut down the owner's end without sending the message BYE. */
	assert_int_equal(gpul_ipc_client_close(w.c, -1, NULL), GPUL_OK);
	expect_event(w.s, GPUL_IPC_DETACHED);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	options.fd = pair[1];
	must(gpul_ipc_client_open(the_driver(), &options, &orphan, NULL));
	must(gpul_ipc_server_add(w.s, pair[0], NULL));
	expect_event(w.s, GPUL_IPC_NONE);
	expect_client_event(orphan, GPUL_IPC_ATTACHED);
	expect_event(w.s, GPUL_IPC_ATTACHED);
	must(shutdown(pair[0], SHUT_RDWR));
	expect_client_event(orphan, GPUL_IPC_OWNER_DIED);
	start_waiting_kernel(&w, gpul_ipc_client_view(orphan));
	assert_int_equal(gpul_ipc_client_close(orphan, -1, NULL), GPUL_OK); /* returns only because the kernel was aborted */
	assert_int_equal(*w.result, ABORTED);
	expect_event(w.s, GPUL_IPC_PEER_DIED);
	finish_work(&w);
}

static void a_kernel_that_ignores_the_abort_word_keeps_the_memory(void **state)
{
	struct work w = begin_work(GPUL_MEM_MEMFD);
	struct gpul_ipc_control *page = gpul_mem_cpu(w.elsewhere);
	const gpul_ipc_view elsewhere = { .drv = the_driver(), .control = page, .control_gpu = gpul_mem_gpu(w.elsewhere) };
	unsigned fds = count_fds();
	char *bytes = gpul_ipc_client_view(w.c)->cpu;
	gpul_error err = { 0 };

	(void)state;
	strcpy(bytes, "still here");
	start_waiting_kernel(&w, &elsewhere);
	assert_int_equal(gpul_ipc_client_close(w.c, SHORT_MS, &err), GPUL_ESYS);
	assert_int_equal(err.native, ETIMEDOUT);
	assert_string_equal(bytes, "still here");
	assert_int_equal(count_fds(), fds); /* the client keeps mapping and connection, because the kernel still runs */
	expect_event(w.s, GPUL_IPC_NONE);
	assert_int_equal(gpul_ipc_abort(&elsewhere, 1, NULL), GPUL_OK);
	finish_work(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_waiting_kernel_is_aborted_after_the_time_out),
		cmocka_unit_test(kernels_are_aborted_at_once_when_the_owner_has_ended),
		cmocka_unit_test(a_kernel_that_ignores_the_abort_word_keeps_the_memory),
	};

	return cmocka_run_group_tests(tests, set_up_folder_and_driver, tear_down_folder_and_driver);
}
