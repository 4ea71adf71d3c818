/* test_turns.c — a CPU thread of one process and a kernel of another process take turns on a shared buffer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/file/file.h"
#include "ipc/control.h"
#include "tests/ipc/child.h"
#include "tests/ipc/support.h"

enum { THREADS = 64, ROUNDS = 200, MEMORY_BYTES = 1 << 16 };

#define assert_ok(call) assert_int_equal((call), 0)

/* ---- the peer process: a kernel that adds one to each number in its turn ----------------------------- */

static void launch_echo(const gpul_driver *drv, const gpul_ipc_view *v, CUdeviceptr result)
{
	unsigned long long rounds = ROUNDS;
	CUdeviceptr control = v->control_gpu, data = v->gpu;
	void *args[] = { &control, &data, &rounds, &result };
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	gpul_file ptx;

	assert_ok(gpul_file_open(GPUL_KERNELS "/tests/ipc/control.ptx", &ptx, NULL));
	assert_ok(drv->cuLibraryLoadData(&library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0));
	gpul_file_close(&ptx);
	assert_ok(drv->cuLibraryGetKernel(&kernel, library, "echo"));
	assert_ok(drv->cuKernelGetFunction(&function, kernel));
	assert_ok(drv->cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL));
}

/* The peer runs the kernel, and prints how the kernel's last wait ended. */
static int play_kernel(const char *name)
{
	const gpul_driver *drv = the_driver();
	int device = 0;
	gpul_ipc_client_options options = { .name = name, .devices = &device, .n_devices = 1 };
	gpul_ipc_client *c;
	CUdeviceptr result;
	unsigned waited = ~0u;

	assert_ok(gpul_ipc_attach(drv, &options, PATIENCE_MS, &c, NULL));
	assert_ok(drv->cuMemAlloc(&result, sizeof waited));
	launch_echo(drv, gpul_ipc_client_view(c), result);
	say("running");
	assert_ok(drv->cuMemcpyDtoH(&waited, result, sizeof waited));
	say("waited %u", waited);
	return gpul_ipc_client_close(c, PATIENCE_MS, NULL) ? 1 : 0;
}

/* ---- the test's process ------------------------------------------------------------------------------ */

static void read_numbers(const gpul_ipc_view *v, unsigned numbers[THREADS])
{
	if (v->cpu)
		memcpy(numbers, v->cpu, THREADS * sizeof *numbers);
	else
		assert_ok(v->drv->cuMemcpyDtoH(numbers, v->gpu, THREADS * sizeof *numbers));
}

/* Check that each side reads the numbers that the other side wrote: each turn adds one to each number. */
static void take_turns(const gpul_ipc_view *v)
{
	unsigned numbers[THREADS];

	for (unsigned round = 1; round <= ROUNDS; round++) {
		assert_ok(gpul_ipc_step_post(v, 0, round, NULL));
		assert_ok(gpul_ipc_step_wait(v, 1, round, PATIENCE_MS, NULL));
		read_numbers(v, numbers);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(numbers[i], 1000 * i + round);
	}
}

static void write_numbers(const gpul_ipc_view *v)
{
	unsigned numbers[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		numbers[i] = 1000 * i;
	if (v->cpu)
		memcpy(v->cpu, numbers, sizeof numbers);
	else
		assert_ok(v->drv->cuMemcpyHtoD(v->gpu, numbers, sizeof numbers));
}

static void two_processes_take_turns_on_each_kind_of_memory(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_DEVICE, GPUL_MEM_DEVICE_IPC };

	(void)state;
	for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		gpul_mem *mem = make_memory(kinds[k], MEMORY_BYTES);
		gpul_ipc_server *s = offer(mem, "turns");
		struct child other;

		write_numbers(gpul_ipc_server_view(s));
		other = start_child("kernel", "turns");
		expect_event(s, GPUL_IPC_ATTACHED);
		assert_string_equal(receive_from_child(&other), "running");
		take_turns(gpul_ipc_server_view(s));
		assert_string_equal(receive_from_child(&other), "waited 0");
		end_child(&other, 0);
		expect_event(s, GPUL_IPC_DETACHED);
		gpul_ipc_server_destroy(s);
		gpul_mem_destroy(mem);
	}
}

static void the_owner_aborts_the_kernel_of_another_process(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, MEMORY_BYTES);
	gpul_ipc_server *s = offer(mem, "turns");
	struct child other = start_child("kernel", "turns");

	(void)state;
	expect_event(s, GPUL_IPC_ATTACHED);
	assert_string_equal(receive_from_child(&other), "running");
	assert_ok(gpul_ipc_abort(gpul_ipc_server_view(s), 42, NULL));
	assert_string_equal(receive_from_child(&other), "waited 2"); /* GPUL_IPC_ABORTED */
	end_child(&other, 0);
	gpul_ipc_server_destroy(s);
	gpul_mem_destroy(mem);
}

static int set_up(void **state)
{
	(void)state;
	make_runtime_folder();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct role_entry roles[] = { { "kernel", play_kernel }, { 0 } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_take_turns_on_each_kind_of_memory),
		cmocka_unit_test(the_owner_aborts_the_kernel_of_another_process),
	};

	play_role(argc, argv, roles);
	return cmocka_run_group_tests_name("ipc/turns", tests, set_up, tear_down_folder_and_driver);
}
