/* test_many_cpus.c — the software driver on a machine with more than 256 CPUs, simulated by a replaced sched_getaffinity(). */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <errno.h>
#include <sched.h>

enum { CPUS = 1100 }; /* more than a cpu_set_t can hold */

/* This definition replaces the C library's function, in the driver too. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	(void)pid;
	if (bytes * 8 < CPUS) {
		errno = EINVAL;
		return -1;
	}
	CPU_ZERO_S(bytes, set);
	for (size_t n = 0; n < CPUS; n++)
		CPU_SET_S(n, bytes, set);
	return 0;
}

/* Each block waits until all blocks have arrived, so the kernel ends only if all blocks are resident at the same time. */
static const char meets_ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
				".visible .entry meets(.param .u64 count)\n"
				"{\n"
				"	.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %c;\n"
				"	ld.param.u64 %c, [count]; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ntid.x; mul.lo.u32 %r1, %r1, %r2;\n"
				"	atom.global.add.u32 %r2, [%c], 1;\n"
				"AGAIN:	ld.acquire.gpu.global.u32 %r3, [%c]; setp.lt.u32 %p, %r3, %r1; @%p bra AGAIN;\n"
				"	ret;\n"
				"}\n";

static void occupancy_does_not_depend_on_the_number_of_cpus(void **state)
{
	int sms = 0, n = 0, grid = 0, block = 0;
	uint32_t count = 0;
	CUdeviceptr p;
	CUmodule module;
	CUfunction f;
	void *params[] = { &p };

	(void)state;
	ok(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	assert_int_equal(sms, CPUS);
	ok(cuModuleLoadData(&module, meets_ptx));
	ok(cuModuleGetFunction(&f, module, "meets"));
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 0));
	assert_int_equal(n, 32);
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 1024, 0));
	assert_int_equal(n, 2);
	ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
	assert_int_equal(grid, 2 * CPUS);
	assert_int_equal(block, 1024);
	ok(cuMemAlloc(&p, 4));
	ok(cuMemcpyHtoD(p, &count, 4));
	fails(cuLaunchCooperativeKernel(f, 2 * CPUS + 1, 1, 1, 1024, 1, 1, 0, NULL, params), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	ok(cuLaunchCooperativeKernel(f, CPUS, 1, 1, 32, 1, 1, 0, NULL, params));
	ok(cuMemcpyDtoH(&count, p, 4));
	assert_int_equal(count, CPUS * 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(occupancy_does_not_depend_on_the_number_of_cpus, make_context, destroy_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
