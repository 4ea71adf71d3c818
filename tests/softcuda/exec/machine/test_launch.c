/* test_launch.c — launches: concurrent, aborted, persistent and invalid ones; and programs that are refused. */
#include "tests/softcuda/exec/engine_rig.h"

#include <sched.h>
#include <stdatomic.h>

#include <cmocka.h>

static const char kernels[] = PTX_HEADER
	KERNEL_OUT("number") "st.global.u32 [%mine], %t; ret; }\n" KERNEL_OUT("endless") "L: add.u32 %r1, %r1, 1; bra L; }\n" KERNEL_OUT(
		"waits") "L: ld.acquire.sys.global.u32 %r1, [%x]; setp.eq.u32 %p1, "
			 "%r1, 0; @%p1 bra L; st.global.u32 [%mine], %r1; ret; "
			 "}\n" KERNEL_OUT("sleeps") "L: nanosleep.u32 100; "
						    "ld.acquire.sys.global.u32 %r1, "
						    "[%x]; setp.eq.u32 %p1, %r1, 0; "
						    "@%p1 bra L; st.global.u32 "
						    "[%mine], %r1; ret; }\n" KERNEL_OUT(
							    "sets") "st.release.sys.global.u32 [%x], 7; ret; }\n"
	/* Block b waits for block b + 1; the last block does not wait. */
	KERNEL_OUT("chain") "mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1; setp.eq.u32 %p2, %t, "
			    "%r2; @%p2 bra GO;\n"
			    "L: ld.acquire.gpu.global.u32 %r1, [%mine+4]; setp.eq.u32 %p1, "
			    "%r1, 0; @%p1 bra L;\n"
			    "GO: st.release.gpu.global.u32 [%mine], 1; ret; }\n"
	/* Sends x numbers to the host in word 0; the host acknowledges each in word 1. */
	KERNEL_OUT("pushes") "cvt.u32.u64 %r9, %x; mov.u32 %r1, 0;\n"
			     "NEXT: add.u32 %r1, %r1, 1; st.release.sys.global.u32 [%o], %r1;\n"
			     "ACK: nanosleep.u32 20; ld.acquire.sys.global.u32 %r2, [%o+4]; "
			     "setp.ne.u32 %p1, %r2, %r1; @%p1 bra ACK;\n"
			     "setp.lt.u32 %p2, %r1, %r9; @%p2 bra NEXT; ret; }\n"
			     ".visible .entry small(.param .u64 out, .param .u64 x) .maxntid "
			     "64, 1, 1 { ret; }\n"
			     ".visible .entry exact(.param .u64 out, .param .u64 x) .reqntid "
			     "32, 2 { ret; }\n";

static const char endless[] = PTX_HEADER KERNEL_OUT("plain") "L: add.u32 %r1, %r1, 1; bra L; }\n"
	/* Two groups of lanes branch backward in turn: each group yields to the other one. */
	KERNEL_OUT("divided") "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 0;\n"
			      "A: add.u32 %r2, %r2, 1; @%p1 bra C;\n"
			      "B: add.u32 %r2, %r2, 1; bra A;\n"
			      "C: add.u32 %r2, %r2, 1; bra A; }\n"
	/* Every branch diverges. */
	KERNEL_OUT("scattered") "T: .branchtargets A, B; A: and.b32 %r1, %t, 1; add.u32 %t, "
				"%t, %r1; brx.idx %r1, T; B: add.u32 %t, %t, 1; and.b32 %r1, "
				"%t, 1; brx.idx %r1, T; }\n"
	/* The barrier of a block with one warp completes immediately. */
	KERNEL_OUT("alone") "L: bar.sync 0; bra L; }\n";

static void blocks_of_a_grid_all_run(void **state)
{
	struct rig *r = rig_open(kernels);
	uint32_t *out = rig_memory(r, 100000 * 4);
	gpul_exec_launch *l;

	(void)state;
	rig_expect_ok(r, "number", 1000, 100, out, 0);
	for (unsigned n = 0; n < 100000; n++)
		assert_int_equal(out[n], n);
	l = rig_start(r, "number", 3, 100, 0, out, 0);
	assert_true(gpul_exec_launch_wait(l, -1, NULL));
	/* the 9 instructions of the kernel: ld.param twice, mov, mov, mov, mad, mad, st, ret */
	assert_int_equal(gpul_exec_launch_instructions(l), 9 * 300);
	gpul_exec_launch_release(l);
	rig_close(r);
}

static void an_endless_kernel_can_be_aborted(void **state)
{
	static const char *const names[] = { "plain", "divided", "scattered", "alone" };
	struct rig *r = rig_open(endless);

	(void)state;
	for (unsigned k = 0; k < sizeof names / sizeof names[0]; k++) {
		gpul_exec_launch *l = rig_start(r, names[k], 1000, 32, 0, NULL, 0);

		assert_false(gpul_exec_launch_wait(l, 20, &r->fault));
		gpul_exec_launch_abort(l);
		assert_int_equal(rig_finish(r, l), GPUL_EXEC_ABORTED);
	}
	rig_close(r);
}

static void destroying_the_machine_aborts_running_launches(void **state)
{
	struct rig *r = rig_open(kernels);
	gpul_exec_launch *l = rig_start(r, "endless", 1000, 64, 0, NULL, 0), *m = rig_start(r, "number", 10, 64, 0, NULL, 0);

	(void)state;
	gpul_exec_machine_destroy(r->machine);
	r->machine = NULL;
	assert_true(gpul_exec_launch_wait(l, 0, &r->fault));
	assert_int_equal(r->fault.kind, GPUL_EXEC_ABORTED);
	assert_true(gpul_exec_launch_wait(m, 0, NULL));
	gpul_exec_launch_release(l);
	gpul_exec_launch_release(m);
	rig_close(r);
}

static void one_launch_may_wait_for_another(void **state)
{
	static const char *const waiters[] = { "waits", "sleeps" };

	(void)state;
	for (unsigned workers = 1; workers <= 2; workers++)
		for (unsigned k = 0; k < 2; k++) {
			struct rig *r = rig_open_with(kernels, workers, 0);
			uint32_t *out = rig_memory(r, 8 * 64 * 4), *flag = rig_memory(r, 4);
			gpul_exec_launch *waiting = rig_start(r, waiters[k], 8, 64, 0, out, (uintptr_t)flag);

			rig_expect_ok(r, "sets", 1, 1, NULL, (uintptr_t)flag);
			assert_int_equal(rig_finish(r, waiting), GPUL_EXEC_OK);
			for (unsigned n = 0; n < 8 * 64; n++)
				assert_int_equal(out[n], 7);
			rig_close(r);
		}
}

static void a_block_may_wait_for_a_later_block(void **state)
{
	struct rig *r = rig_open_with(kernels, 1, 64);
	uint32_t *out = rig_memory(r, 65 * 4);

	(void)state;
	rig_expect_ok(r, "chain", 64, 1, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 1);
	rig_close(r);
}

static void a_kernel_and_a_host_thread_exchange_messages(void **state)
{
	struct rig *r = rig_open_with(kernels, 1, 0);
	_Atomic uint32_t *word = rig_memory(r, 8);
	gpul_exec_launch *l = rig_start(r, "pushes", 1, 1, 0, (const void *)word, 2000);
	uint32_t seen = 0;

	(void)state;
	while (seen < 2000) {
		uint32_t now = atomic_load_explicit(&word[0], memory_order_acquire);

		if (now == seen) {
			sched_yield();
			continue;
		}
		assert_int_equal(now, seen + 1);
		seen = now;
		atomic_store_explicit(&word[1], now, memory_order_release);
	}
	assert_int_equal(rig_finish(r, l), GPUL_EXEC_OK);
	rig_close(r);
}

static void count_done(void *user, const gpul_exec_fault *fault)
{
	assert_int_equal(fault->kind, GPUL_EXEC_OK);
	atomic_fetch_add((_Atomic int *)user, 1);
}

static void done_is_called_once_for_each_launch(void **state)
{
	struct rig *r = rig_open(kernels);
	uint32_t *out = rig_memory(r, 200 * 64 * 4);
	uint64_t params[2] = { 0 };
	_Atomic int n_done = 0;
	gpul_exec_launch_config c = { .kernel = gpul_exec_find_kernel(r->program, "number"),
				      .grid = { 2, 1, 1 },
				      .block = { 32, 1, 1 },
				      .params = params,
				      .done = count_done,
				      .done_user = &n_done };
	gpul_exec_launch *l[200];

	(void)state;
	for (unsigned n = 0; n < 200; n++) {
		params[0] = (uintptr_t)(out + 64 * n);
		assert_int_equal(gpul_exec_launch_start(r->machine, &c, &l[n], NULL), GPUL_OK);
	}
	for (unsigned n = 0; n < 200; n++) {
		assert_true(gpul_exec_launch_wait(l[n], 20000, NULL));
		gpul_exec_launch_release(l[n]);
	}
	assert_int_equal(n_done, 200);
	for (unsigned n = 0; n < 200 * 64; n++)
		assert_int_equal(out[n], n % 64);
	rig_close(r);
}

static void launches_beyond_the_limits_are_refused(void **state)
{
	static const struct {
		const char *kernel;
		uint32_t grid[3], block[3], shared;
		bool cooperative;
		const char *text;
	} rows[] = {
		{ "number", { 1, 1, 1 }, { 2048, 1, 1 }, 0, false, "2048" },
		{ "number", { 1, 0, 1 }, { 32, 1, 1 }, 0, false, "may be 0" },
		{ "number", { 1, 1, 1 }, { 32, 32, 2 }, 0, false, "2048 threads" },
		{ "number", { 1, 1, 1 }, { 1, 1, 65 }, 0, false, "65" },
		{ "number", { 1, 65536, 1 }, { 32, 1, 1 }, 0, false, "65535" },
		{ "number", { 0x80000000, 1, 1 }, { 32, 1, 1 }, 0, false, "2147483647" },
		{ "number", { 1, 1, 1 }, { 32, 1, 1 }, 227 * 1024 + 1, false, "shared memory" },
		{ "small", { 1, 1, 1 }, { 65, 1, 1 }, 0, false, "at most 64" },
		{ "exact", { 1, 1, 1 }, { 64, 1, 1 }, 0, false, ".reqntid" },
		{ "number", { 132 * 32 + 1, 1, 1 }, { 32, 1, 1 }, 0, true, "only 4224 can be resident" },
		{ "number", { 132 * 2 + 1, 1, 1 }, { 1024, 1, 1 }, 0, true, "only 264 can be resident" },
		{ "number", { 132 + 1, 1, 1 }, { 32, 1, 1 }, 200 * 1024, true, "only 132 can be resident" },
	};
	struct rig *r = rig_open(kernels);
	uint64_t params[2] = { 0 };

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		gpul_exec_launch_config c = { .kernel = gpul_exec_find_kernel(r->program, rows[k].kernel),
					      .params = params,
					      .dynamic_shared_bytes = rows[k].shared,
					      .cooperative = rows[k].cooperative };
		gpul_exec_launch *l = NULL;
		gpul_error err = { 0 };

		memcpy(c.grid, rows[k].grid, sizeof c.grid);
		memcpy(c.block, rows[k].block, sizeof c.block);
		assert_int_equal(gpul_exec_launch_start(r->machine, &c, &l, &err), GPUL_EINVAL);
		assert_null(l);
		if (!strstr(err.text, rows[k].text))
			fail_msg("\"%s\" does not contain \"%s\"", err.text, rows[k].text);
	}
	rig_close(r);
}

static void a_block_has_three_dimensions(void **state)
{
	struct rig *r = rig_open(PTX_HEADER ".visible .entry k(.param .u64 out) { .reg .b32 %r<16>; .reg .b64 %d<4>; "
					    "ld.param.u64 %d1, [out];\n"
					    "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, "
					    "%ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;\n"
					    "mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1; mov.u32 %r8, "
					    "%ctaid.x; mov.u32 %r9, %ctaid.y; mov.u32 %r10, %ctaid.z;\n"
					    "mov.u32 %r11, %nctaid.x; mov.u32 %r12, %nctaid.y; mad.lo.u32 %r13, %r10, "
					    "%r12, %r9; mad.lo.u32 %r13, %r13, %r11, %r8;\n"
					    "mul.lo.u32 %r14, %r4, %r5; mul.lo.u32 %r14, %r14, %r6; mad.lo.u32 %r13, %r13, "
					    "%r14, %r7; mad.wide.u32 %d2, %r13, 4, %d1; add.u32 %r13, %r13, 1;\n"
					    "st.global.u32 [%d2], %r13; ret; }");
	uint32_t *out = rig_memory(r, 24 * 105 * 4);
	uint64_t params[1] = { (uintptr_t)out };
	gpul_exec_launch_config c = {
		.kernel = gpul_exec_find_kernel(r->program, "k"), .grid = { 2, 3, 4 }, .block = { 7, 5, 3 }, .params = params
	};
	gpul_exec_launch *l;

	(void)state;
	assert_int_equal(gpul_exec_launch_start(r->machine, &c, &l, NULL), GPUL_OK);
	assert_int_equal(rig_finish(r, l), GPUL_EXEC_OK);
	for (unsigned n = 0; n < 24 * 105; n++)
		assert_int_equal(out[n], n + 1);
	rig_close(r);
}

static void invalid_programs_are_refused_with_a_line_number(void **state)
{
	static const struct {
		const char *text;
		gpul_status status;
		const char *message;
	} rows[] = {
		{ ".extern .func nowhere; .visible .entry k() { call nowhere; ret; }", GPUL_EFORMAT, "nowhere" },
		{ ".extern .global .u32 nothing; .visible .entry k() { .reg .b32 %r; "
		  "ld.global.u32 %r, [nothing]; ret; }",
		  GPUL_EFORMAT, "nothing" },
		{ ".visible .entry k() {\n.reg .b32 %r; .reg .b64 %d;\nadd.u32 %r, %r, "
		  "%d;\nret; }",
		  GPUL_EFORMAT, "test.ptx:6" },
		{ ".visible .entry k() { .reg .b64 %d; ld.global.u64 %d, [%d]; ld.param.u32 "
		  "%d, [%d]; .reg .b16 %h; ld.global.u32 %h, [%d]; ret; }",
		  GPUL_EFORMAT, "too narrow" },
		{ ".visible .entry k(.param .u32 p) { .reg .b64 %d; ld.param.u64 %d, [p]; ret; "
		  "}",
		  GPUL_EFORMAT, "4 bytes of parameters" },
		{ ".visible .entry k() { .local .b8 a[1000000]; ret; }", GPUL_EFORMAT, "local" },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		char text[1024];
		struct rig r = { 0 };
		gpul_error err = { 0 };
		gpul_status st;

		snprintf(text, sizeof text, PTX_HEADER "%s\n", rows[k].text);
		assert_int_equal(gpul_exec_memory_create(&r.memory, &err), GPUL_OK);
		st = rig_load(&r, text, &err);
		if (st != rows[k].status || !strstr(err.text, rows[k].message))
			fail_msg("%s: status %d, \"%s\" does not contain \"%s\"", rows[k].text, st, err.text, rows[k].message);
		gpul_exec_memory_destroy(r.memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_of_a_grid_all_run),
		cmocka_unit_test(an_endless_kernel_can_be_aborted),
		cmocka_unit_test(destroying_the_machine_aborts_running_launches),
		cmocka_unit_test(one_launch_may_wait_for_another),
		cmocka_unit_test(a_block_may_wait_for_a_later_block),
		cmocka_unit_test(a_kernel_and_a_host_thread_exchange_messages),
		cmocka_unit_test(done_is_called_once_for_each_launch),
		cmocka_unit_test(launches_beyond_the_limits_are_refused),
		cmocka_unit_test(a_block_has_three_dimensions),
		cmocka_unit_test(invalid_programs_are_refused_with_a_line_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
