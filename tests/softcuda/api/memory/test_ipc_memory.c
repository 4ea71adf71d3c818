/* test_ipc_memory.c — cuIpcGetMemHandle, cuIpcOpenMemHandle and cuIpcCloseMemHandle: cuMemAlloc memory in two processes. */
#include "tests/softcuda/api/pair.h"
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_WORDS = 100000, LAZY = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS };

static CUdeviceptr filled(unsigned value, size_t n_words)
{
	CUdeviceptr p;

	must_ok(cuMemAlloc(&p, 4 * n_words));
	must_ok(cuMemsetD32(p, value, n_words));
	return p;
}

static unsigned word_at(CUdeviceptr p, size_t i)
{
	unsigned word;

	must_ok(cuMemcpyDtoH(&word, p + 4 * i, 4));
	return word;
}

static void send_handle(int peer, CUdeviceptr p)
{
	CUipcMemHandle h;

	must_ok(cuIpcGetMemHandle(&h, p));
	send_bytes(peer, &h, sizeof h);
}

static CUdeviceptr receive_handle(int peer)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	receive_bytes(peer, &h, sizeof h);
	must_ok(cuIpcOpenMemHandle(&p, h, LAZY));
	return p;
}

/* ---- both processes see the same bytes -------------------------------------------------- */

static void owner_of_words(int peer)
{
	CUcontext ctx = init_process(0);
	CUdeviceptr p = filled(17, N_WORDS);

	send_handle(peer, p);
	await_turn(peer);
	must(word_at(p, 0) == 18 && word_at(p, N_WORDS - 1) == 19);
	if (on_software_driver()) /* NVIDIA does not define this case */
		must_ok(cuMemFree(p));
	pass_turn(peer);
	await_turn(peer);
	must_ok(cuCtxDestroy(ctx));
}

static void writer_of_words(int peer)
{
	CUcontext ctx = init_process(0);
	int before;
	CUdeviceptr p, base;
	size_t bytes;
	unsigned value = 18;

	before = open_descriptors();
	p = receive_handle(peer);
	must(open_descriptors() == before); /* no descriptor is open: a mapping does not need one */
	must(word_at(p, 0) == 17 && word_at(p, N_WORDS - 1) == 17);
	must_ok(cuMemGetAddressRange(&base, &bytes, p + 4));
	must(base == p && bytes == 4 * N_WORDS);
	launch(get_kernel("put"), 1, 1, NULL, (void *[]){ &p, &value });
	must_ok(cuCtxSynchronize());
	must_ok(cuMemsetD32(p + 4 * (N_WORDS - 1), 19, 1));
	pass_turn(peer);
	await_turn(peer);
	must(word_at(p, 0) == 18); /* the owner has freed the memory; it is still mapped here */
	must_ok(cuIpcCloseMemHandle(p));
	pass_turn(peer);
	must_ok(cuCtxDestroy(ctx));
}

static void both_processes_see_the_same_bytes(void **state)
{
	(void)state;
	run_pair(owner_of_words, writer_of_words);
}

/* ---- handles of memory ------------------------------------------------------------------ */

static void owner_of_three(int peer)
{
	CUcontext ctx = init_process(0);
	CUdeviceptr small = filled(1, 16), next = filled(2, 16), third = filled(3, 1 << 18), p;
	CUipcMemHandle h, again;
	unsigned capable = 0;

	must_ok(cuIpcGetMemHandle(&h, small));
	must_be(cuIpcOpenMemHandle(&p, h, LAZY), CUDA_ERROR_INVALID_CONTEXT);
	must_ok(cuIpcGetMemHandle(&again, small + 20)); /* any address of the allocation gives the same handle */
	must(!memcmp(&h, &again, sizeof h));
	must_ok(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, small));
	must(capable == 1);
	must_be(cuIpcGetMemHandle(&h, 0x1000), CUDA_ERROR_INVALID_VALUE);
	must_be(cuIpcCloseMemHandle(small), CUDA_ERROR_INVALID_VALUE);
	send_handle(peer, small);
	send_handle(peer, next);
	send_handle(peer, third);
	await_turn(peer);
	must(word_at(small, 0) == 1 && word_at(next, 0) == 22 && word_at(third, 0) == 3);
	must_ok(cuMemFree(small));
	must_ok(cuMemFree(next));
	must_ok(cuMemFree(third));
	must_ok(cuCtxDestroy(ctx));
}

static void opener_of_three(int peer)
{
	CUcontext ctx = init_process(0);
	CUdeviceptr p[3], again;
	CUipcMemHandle h[3], made = { { 0 } };
	unsigned capable = 1;

	receive_bytes(peer, h, sizeof h);
	for (int i = 0; i < 3; i++)
		must_ok(cuIpcOpenMemHandle(&p[i], h[i], LAZY));
	must(word_at(p[0], 15) == 1 && word_at(p[1], 15) == 2 && word_at(p[2], 15) == 3);
	must_ok(cuMemsetD32(p[1], 22, 1));
	must_ok(cuIpcOpenMemHandle(&again, h[0], LAZY));
	must(again == p[0]);
	must_ok(cuIpcCloseMemHandle(p[0]));
	must(word_at(p[0], 0) == 1); /* still open: it was opened twice and closed once */
	must_ok(cuIpcCloseMemHandle(p[0]));
	must_be(cuIpcCloseMemHandle(p[0]), CUDA_ERROR_INVALID_VALUE);
	must_ok(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p[1]));
	must(capable == 0);
	must_be(cuIpcGetMemHandle(&h[0], p[1]), CUDA_ERROR_INVALID_VALUE);
	must_be(cuMemFree(p[1]), CUDA_ERROR_INVALID_VALUE);
	must_be(cuIpcOpenMemHandle(&again, h[2], 0), CUDA_ERROR_INVALID_VALUE);
	must_be(cuIpcOpenMemHandle(&again, made, LAZY), CUDA_ERROR_INVALID_VALUE);
	memset(&made, 0xa5, sizeof made);
	must_be(cuIpcOpenMemHandle(&again, made, LAZY), CUDA_ERROR_INVALID_VALUE);
	pass_turn(peer);
	must_ok(cuCtxDestroy(ctx)); /* p[1] and p[2] are still open: the context closes them */
}

static void handles_are_checked_counted_and_refused_in_their_own_process(void **state)
{
	(void)state;
	run_pair(owner_of_three, opener_of_three);
}

static void owner_of_one(int peer)
{
	init_process(0);
	send_handle(peer, filled(5, 64));
	await_turn(peer);
}

/* Invert each bit of a handle in turn, and try to open the result. */
static void forger(int peer)
{
	CUipcMemHandle h, forged;
	CUdeviceptr p;
	int before;

	init_process(0);
	receive_bytes(peer, &h, sizeof h);
	before = open_descriptors();
	for (size_t bit = 0; bit < 8 * sizeof h; bit++) {
		if (bit / 32 == 2)
			continue; /* the process id: with an inverted bit it may be that of another thread of the owner */
		forged = h;
		forged.reserved[bit / 8] = (char)(forged.reserved[bit / 8] ^ 1 << bit % 8);
		/* The forged handle names another process or file or, in its last bytes, a device that does not exist: it is refused. */
		must(cuIpcOpenMemHandle(&p, forged, LAZY) != CUDA_SUCCESS);
	}
	must(open_descriptors() == before);
	must_ok(cuIpcOpenMemHandle(&p, h, LAZY));
	must(word_at(p, 63) == 5);
	pass_turn(peer);
}

static void a_forged_handle_is_refused(void **state)
{
	(void)state;
	if (!on_software_driver())
		skip(); /* NVIDIA's handles contain unused bytes, whose change has no effect */
	run_pair(owner_of_one, forger);
}

/* ---- owners that exit -------------------------------------------------------------------- */

static void owner_that_exits(int peer)
{
	CUdeviceptr p;

	init_process(0);
	p = filled(6, 4096);
	send_handle(peer, p);
	send_handle(peer, filled(7, 4096));
	await_turn(peer);
	must_ok(cuMemFree(p));
	pass_turn(peer);
	await_turn(peer);
	kill(getpid(), SIGKILL);
}

static void survivor(int peer)
{
	CUipcMemHandle h[2];
	CUdeviceptr p;
	char end;

	init_process(0);
	receive_bytes(peer, h, sizeof h);
	must_ok(cuIpcOpenMemHandle(&p, h[1], LAZY));
	pass_turn(peer);
	await_turn(peer);
	must(cuIpcOpenMemHandle(&p, h[0], LAZY) != CUDA_SUCCESS); /* the owner has freed this memory */
	pass_turn(peer);
	must(read(peer, &end, 1) == 0); /* the owner has ended */
	must(word_at(p, 4095) == 7);
	must_ok(cuMemsetD32(p, 8, 4096));
	must(word_at(p, 4095) == 8);
	must_ok(cuIpcCloseMemHandle(p));
	must(cuIpcOpenMemHandle(&p, h[1], LAZY) != CUDA_SUCCESS);
}

static void opened_memory_remains_valid_after_its_owner_has_ended(void **state)
{
	pid_t owner, other;
	int fd[2], status = 0;

	(void)state;
	if (!on_software_driver())
		skip(); /* NVIDIA does not define this case */
	make_sockets(fd);
	owner = start_side(owner_that_exits, fd[0], fd[1]);
	other = start_side(survivor, fd[1], fd[0]);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(waitpid(owner, &status, 0), owner);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	end_side(other);
}

/* ---- sharing while kernels use the memory --------------------------------------------------------- */

/* The first cuIpcGetMemHandle() moves the memory to a shared file; a running kernel that uses the memory must not be disturbed. */
static void owner_of_a_running_kernel(int peer)
{
	CUcontext ctx = init_process(0);
	CUdeviceptr flag, seen;
	CUstream stream, other;
	unsigned word = 0, zero = 0;

	must_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must_ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must_ok(cuMemAlloc(&flag, 4));
	must_ok(cuMemAlloc(&seen, 4));
	must_ok(cuMemcpyHtoD(flag, &zero, 4));
	launch(get_kernel("spin"), 1, 32, stream, (void *[]){ &flag, &seen });
	send_handle(peer, flag);
	send_handle(peer, seen);
	await_turn(peer); /* the other process has raised the flag */
	must_ok(cuStreamSynchronize(stream));
	must_ok(cuMemcpyDtoH(&word, seen, 4));
	must(word == 99);
	must_ok(cuCtxDestroy(ctx));
}

static void raiser_of_the_flag(int peer)
{
	CUcontext ctx = init_process(0);
	CUdeviceptr flag = receive_handle(peer), seen = receive_handle(peer);
	unsigned raised = 99;

	must_ok(cuMemcpyHtoD(flag, &raised, 4));
	pass_turn(peer);
	while (word_at(seen, 0) != 99)
		usleep(1000);
	must_ok(cuCtxDestroy(ctx));
}

static void memory_can_be_shared_while_a_kernel_uses_it(void **state)
{
	(void)state;
	run_pair(owner_of_a_running_kernel, raiser_of_the_flag);
}

/* Every thread of a running kernel adds 1 while cuIpcGetMemHandle moves the memory: no addition may be lost. */
static void owner_that_moves_what_is_counted(int peer)
{
	enum { BLOCKS = 20000, THREADS = 128, WORDS = 4 << 20, ROUNDS = 4 };
	CUcontext ctx = init_process(0);
	CUfunction count = get_kernel("count");
	CUstream stream;

	must_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int round = 0; round < ROUNDS; round++) {
		CUdeviceptr sum = filled(0, WORDS);
		CUipcMemHandle h;

		launch(count, BLOCKS, THREADS, stream, (void *[]){ &sum });
		while (!word_at(sum, 0))
			usleep(100);
		must_ok(cuIpcGetMemHandle(&h, sum));
		must_ok(cuStreamSynchronize(stream));
		must(word_at(sum, 0) == BLOCKS * THREADS);
		must_ok(cuMemFree(sum));
	}
	must_ok(cuCtxDestroy(ctx));
	pass_turn(peer);
}

static void owner_that_leaks_nothing(int peer)
{
	CUcontext ctx = init_process(0);
	CUipcMemHandle h;
	CUdeviceptr p;
	int before = open_descriptors();

	for (int i = 0; i < 500; i++) {
		must_ok(cuMemAlloc(&p, 1 + 1000 * (size_t)i));
		must_ok(cuIpcGetMemHandle(&h, p));
		must_ok(cuMemFree(p));
	}
	if (on_software_driver())
		must(open_descriptors() == before);
	must(!has_line("/proc/self/maps", "gpuload-ipc"));
	must_ok(cuMemAlloc(&p, 64));
	must_ok(cuIpcGetMemHandle(&h, p));
	must_ok(cuCtxDestroy(ctx)); /* the context still has an allocation, which this call frees */
	if (on_software_driver())
		must(open_descriptors() == before);
	pass_turn(peer);
}

static void listener(int peer)
{
	await_turn(peer);
}

static void no_atomic_addition_is_lost_while_memory_moves(void **state)
{
	(void)state;
	run_pair(owner_that_moves_what_is_counted, listener);
}

static void freed_memory_leaves_no_descriptor_or_mapping(void **state)
{
	(void)state;
	run_pair(owner_that_leaks_nothing, listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_processes_see_the_same_bytes),
		cmocka_unit_test(handles_are_checked_counted_and_refused_in_their_own_process),
		cmocka_unit_test(a_forged_handle_is_refused),
		cmocka_unit_test(opened_memory_remains_valid_after_its_owner_has_ended),
		cmocka_unit_test(memory_can_be_shared_while_a_kernel_uses_it),
		cmocka_unit_test(no_atomic_addition_is_lost_while_memory_moves),
		cmocka_unit_test(freed_memory_leaves_no_descriptor_or_mapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
