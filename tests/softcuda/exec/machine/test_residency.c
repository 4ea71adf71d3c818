/* test_residency.c — blocks that wait for blocks that have not started, and the limits of resident blocks. */
#include "tests/softcuda/exec/engine_rig.h"

#include <stdatomic.h>

#include <cmocka.h>

#include "core/log.h"

static const char kernels[] = PTX_HEADER
	KERNEL_OUT("number") "st.global.u32 [%mine], %t; ret; }\n" KERNEL_OUT("endless") "L: add.u32 %r1, %r1, 1; bra L; }\n" KERNEL_OUT(
		"sets") "st.release.sys.global.u32 [%x], 7; ret; }\n" KERNEL_OUT("waits") "L: ld.acquire.sys.global.u32 %r1, [%x]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;\n"
											  "st.global.u32 [%mine], %r1; ret; }\n"
	/* Every block waits for the last one. */
	KERNEL_OUT("gathers") "mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1; mov.u32 %r3, %ctaid.x; setp.eq.u32 %p2, %r3, %r2;\n"
			      "@%p2 st.release.gpu.global.u32 [%x], 7;\n"
			      "L: ld.acquire.gpu.global.u32 %r1, [%x]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;\n"
			      "st.global.u32 [%mine], %r1; ret; }\n";

/* A worker starts up to 256 blocks soon; the last block of a larger grid starts later, although all other blocks wait for it. */
static void many_blocks_may_wait_for_the_last_one(void **state)
{
	static const struct {
		unsigned workers, blocks, threads;
	} rows[] = { { 1, 600, 32 }, { 2, 600, 32 }, { 2, 2000, 1 } };

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		const unsigned n = rows[k].blocks * rows[k].threads;
		struct rig *r = rig_open_with(kernels, rows[k].workers, 0);
		uint32_t *out = rig_memory(r, n * 4), *flag = rig_memory(r, 4);

		gpul_exec_launch *l = rig_start(r, "gathers", rows[k].blocks, rows[k].threads, 0, out, (uintptr_t)flag);

		gpul_exec_launch_wait(l, 200000, NULL); /* waits longer than rig_finish() does, because ThreadSanitizer is slow */
		assert_int_equal(rig_finish(r, l), GPUL_EXEC_OK);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(out[i], 7);
		rig_close(r);
	}
}

/* A launch that has reached its limit of resident blocks must not delay computing blocks, nor blocks of other launches. */
static void a_full_launch_does_not_delay_another(void **state)
{
	struct rig *r = rig_open_with(kernels, 2, 8);
	uint32_t *out = rig_memory(r, 1000 * 4), *flag = rig_memory(r, 8);
	gpul_exec_launch *waiting = rig_start(r, "waits", 100, 1, 0, out, (uintptr_t)flag);

	(void)state;
	rig_expect_ok(r, "number", 1000, 1, rig_memory(r, 1000 * 4), 0);
	assert_false(gpul_exec_launch_wait(waiting, 0, NULL));
	rig_expect_ok(r, "sets", 1, 1, NULL, (uintptr_t)flag);
	assert_int_equal(rig_finish(r, waiting), GPUL_EXEC_OK);
	for (unsigned n = 0; n < 100; n++)
		assert_int_equal(out[n], 7);
	waiting = rig_start(r, "waits", 100, 1, 0, out, (uintptr_t)(flag + 1));
	assert_false(gpul_exec_launch_wait(waiting, 20, NULL));
	gpul_exec_launch_abort(waiting); /* also ends the blocks that never became resident */
	assert_int_equal(rig_finish(r, waiting), GPUL_EXEC_ABORTED);
	rig_close(r);
}

struct notices {
	_Atomic unsigned n;
	char text[512];
};

static void keep_notice(void *user, gpul_log_level level, const char *module, const char *line)
{
	struct notices *seen = user;

	assert_int_equal(level, GPUL_LOG_NOTICE);
	assert_string_equal(module, "softcuda");
	snprintf(seen->text, sizeof seen->text, "%s", line);
	atomic_fetch_add(&seen->n, 1);
}

static void blocks_that_cannot_start_are_reported_once(void **state)
{
	struct rig *r = rig_open_options(kernels, (gpul_exec_machine_options){ .n_workers = 2, .max_resident_blocks = 64, .stuck_ms = 30 });
	uint32_t *out = rig_memory(r, 70 * 32 * 4), *flag = rig_memory(r, 8);
	struct notices seen = { 0 };
	gpul_exec_launch *l;

	(void)state;
	gpul_log_set_level(GPUL_LOG_NOTICE);
	gpul_log_to(keep_notice, &seen);
	l = rig_start(r, "waits", 64, 32, 0, out, (uintptr_t)flag); /* all blocks are resident */
	assert_false(gpul_exec_launch_wait(l, 200, NULL));
	assert_int_equal(seen.n, 0);
	__atomic_store_n(flag, 7, __ATOMIC_RELEASE);
	assert_int_equal(rig_finish(r, l), GPUL_EXEC_OK);
	l = rig_start(r, "endless", 70, 32, 0, NULL, 0); /* the resident blocks compute without waiting */
	assert_false(gpul_exec_launch_wait(l, 200, NULL));
	assert_int_equal(seen.n, 0);
	gpul_exec_launch_abort(l);
	assert_int_equal(rig_finish(r, l), GPUL_EXEC_ABORTED);
	l = rig_start(r, "gathers", 70, 32, 0, out, (uintptr_t)(flag + 1));
	for (int ms = 0; !seen.n && ms < 20000; ms += 10)
		assert_false(gpul_exec_launch_wait(l, 10, NULL));
	assert_false(gpul_exec_launch_wait(l, 200, NULL));
	assert_int_equal(seen.n, 1);
	assert_non_null(
		strstr(seen.text, "kernel gathers: for 0.03 s all 64 resident blocks have only waited, and 6 blocks have not started"));
	__atomic_store_n(flag + 1, 7, __ATOMIC_RELEASE);
	assert_int_equal(rig_finish(r, l), GPUL_EXEC_OK);
	gpul_log_to(NULL, NULL);
	rig_close(r);
}

static void a_multiprocessor_holds_as_many_blocks_as_a_gpus(void **state)
{
	static const struct {
		uint32_t threads, shared;
		unsigned blocks;
	} rows[] = { { 1, 0, 32 },   { 64, 0, 32 },        { 65, 0, 21 },         { 256, 0, 8 },
		     { 1024, 0, 2 }, { 32, 48 * 1024, 4 }, { 32, 227 * 1024, 1 }, { 32, 227 * 1024 + 1, 0 } };

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++)
		assert_int_equal(gpul_exec_blocks_per_sm(rows[k].threads, rows[k].shared), rows[k].blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_blocks_may_wait_for_the_last_one),
		cmocka_unit_test(a_full_launch_does_not_delay_another),
		cmocka_unit_test(blocks_that_cannot_start_are_reported_once),
		cmocka_unit_test(a_multiprocessor_holds_as_many_blocks_as_a_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
