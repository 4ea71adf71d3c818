/* test_fast_math.c — the results of kernels depend neither on the floating-point environment nor on the signals of the program that
 * starts them.  -ffast-math makes the CPU treat subnormal numbers as 0 in this program, which also changes the rounding mode. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <dirent.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/* Stores results that would differ with another rounding mode, or if subnormal numbers were treated as 0. */
static const char results_ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
				  ".visible .global .f32 tenths[2] = { 0.7, 1e-40 };\n"
				  ".visible .entry results(.param .u64 out, .param .u64 in)\n"
				  "{\n"
				  "	.reg .b32 %r<4>; .reg .b64 %o, %i, %t; .reg .f32 %f<8>; .reg .f64 %d<8>;\n"
				  "	ld.param.u64 %o, [out]; ld.param.u64 %i, [in];\n"
				  "	ld.global.f32 %f1, [%i]; ld.global.f32 %f2, [%i+4];\n" /* 3 and 5, each times 2^-149 */
				  "	add.rn.f32 %f3, %f1, %f2; st.global.f32 [%o], %f3;\n"
				  "	mul.rn.f32 %f3, %f2, 0f3F000000; st.global.f32 [%o+4], %f3;\n" /* 2.5 rounds to 2 */
				  "	ld.global.f32 %f1, [%i+8]; ld.global.f32 %f2, [%i+12];\n"      /* the values are 1 and 2^-30 */
				  "	add.rn.f32 %f3, %f1, %f2; st.global.f32 [%o+8], %f3;\n"
				  "	fma.rn.f32 %f3, %f1, %f1, %f2; st.global.f32 [%o+12], %f3;\n"
				  "	div.rn.f32 %f3, %f1, 0f40400000; st.global.f32 [%o+16], %f3;\n" /* 1 / 3 */
				  "	sqrt.rn.f32 %f3, 0f40000000; st.global.f32 [%o+20], %f3;\n"
				  "	cvt.f64.f32 %d1, %f1; cvt.f64.f32 %d2, %f2; mul.rn.f64 %d2, %d2, %d2; add.rn.f64 %d3, %d1, %d2;\n"
				  "	st.global.f64 [%o+24], %d3;\n"
				  "	mov.f32 %f3, 0.7; st.global.f32 [%o+32], %f3; mov.f32 %f3, 1e-40; st.global.f32 [%o+36], %f3;\n"
				  "	mov.u64 %t, tenths; ld.global.f32 %f3, [%t]; st.global.f32 [%o+40], %f3;\n"
				  "	ld.global.f32 %f3, [%t+4]; st.global.f32 [%o+44], %f3;\n"
				  "	mov.f64 %d1, 0.3; st.global.f64 [%o+48], %d1;\n"
				  "	add.rm.f32 %f3, %f1, %f2; add.rn.f32 %f3, %f1, %f2; st.global.f32 [%o+56], %f3;\n"
				  "	ret;\n"
				  "}\n";
static const uint32_t in_bits[4] = { 3, 5, 0x3f800000, 0x30800000 };
static const uint32_t expected[15] = { 8,          2,     0x3f800000, 0x3f800000, 0x3eaaaaab, 0x3fb504f3, 0,         0x3ff00000,
				       0x3f333333, 71362, 0x3f333333, 71362,      0x33333333, 0x3fd33333, 0x3f800000 };

static void assert_subnormal_numbers_are_zero_here(void)
{
#ifdef __x86_64__
	assert_int_equal(_mm_getcsr() & 0x8040, 0x8040);
#endif
}

static void check_results(void)
{
	uint32_t out[15];
	CUdeviceptr to, from;
	CUmodule module;
	CUfunction f;
	void *params[] = { &to, &from };

	ok(cuModuleLoadData(&module, results_ptx));
	ok(cuModuleGetFunction(&f, module, "results"));
	ok(cuMemAlloc(&to, sizeof out));
	ok(cuMemAlloc(&from, sizeof in_bits));
	ok(cuMemcpyHtoD(from, in_bits, sizeof in_bits));
	launch(f, 1, 32, NULL, params);
	ok(cuMemcpyDtoH(out, to, sizeof out));
	for (int i = 0; i < 15; i++)
		if (out[i] != expected[i])
			fail_msg("result %d is %#x, not %#x", i, out[i], expected[i]);
	ok(cuMemFree(to));
	ok(cuMemFree(from));
	ok(cuModuleUnload(module));
}

/* The first launch creates the driver's threads; later launches run on the existing threads. */
static void results_do_not_depend_on_the_programs_environment(void **state)
{
	static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_UPWARD };

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(fesetround(modes[i]), 0);
		assert_subnormal_numbers_are_zero_here();
		check_results();
		assert_int_equal(fegetround(), modes[i]); /* the driver has not changed the program's rounding mode */
		assert_subnormal_numbers_are_zero_here();
	}
}

static void CUDA_CB do_nothing(void *user)
{
	(void)user;
}

/* Read the signal mask from the line "SigBlk:\t0123456789abcdef" of a thread's status file; bit 0 is signal 1. */
static unsigned long long blocked_signals(const char *task)
{
	unsigned long long mask = 0;
	char path[320], line[256];
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "SigBlk:", 7))
			mask = strtoull(line + 7, NULL, 16);
	fclose(f);
	return mask;
}

static bool named_by_the_driver(const char *task)
{
	char path[320], name[32] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(name, sizeof name, f));
	fclose(f);
	return !strncmp(name, "gpul-worker-", 12) || !strcmp(name, "gpul-callback\n");
}

static void the_drivers_threads_have_names_and_receive_no_signals(void **state)
{
	/* not blocked: SIGKILL and SIGSTOP (impossible), 32 and 33 (used by glibc), SIGBUS and SIGSEGV (raised by the thread itself) */
	const unsigned long long cannot = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 3ull << 31 | 1ull << (SIGBUS - 1) |
					  1ull << (SIGSEGV - 1);
	unsigned n_threads = 0;
	struct dirent *e;
	DIR *tasks;

	(void)state;
	check_results();
	ok(cuLaunchHostFunc(NULL, do_nothing, NULL));
	ok(cuCtxSynchronize());
	tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	while ((e = readdir(tasks))) {
		if (*e->d_name == '.' || !named_by_the_driver(e->d_name))
			continue;
		assert_int_equal(~blocked_signals(e->d_name) & ~cannot, 0);
		n_threads++;
	}
	closedir(tasks);
	assert_true(n_threads >= 2); /* at least one worker, and the thread that runs callbacks */
}

static int make_context_rounding_upward(void **state)
{
	return fesetround(FE_UPWARD) ? -1 : make_context(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(results_do_not_depend_on_the_programs_environment, make_context_rounding_upward,
						destroy_context),
		cmocka_unit_test_setup_teardown(the_drivers_threads_have_names_and_receive_no_signals, make_context_rounding_upward,
						destroy_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
