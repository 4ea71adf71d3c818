/* test_barrier.c — barriers of a block, of some of its warps, and of a warp. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

static void stores_before_a_barrier_are_visible_to_all_threads_after_it(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") ".shared .u32 s[256]; .reg .b32 %a;\n"
							    "mov.u32 %a, s; mad.lo.u32 %r1, %t, 4, %a; st.shared.u32 [%r1], %t;\n"
							    "bar.sync 0;\n"
							    "sub.u32 %r2, 255, %t; mad.lo.u32 %r1, %r2, 4, %a; ld.shared.u32 %r3, [%r1];\n"
							    "st.global.u32 [%mine], %r3; ret; }");
	uint32_t *out = rig_memory(r, 256 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 256, out, 0);
	for (unsigned n = 0; n < 256; n++)
		assert_int_equal(out[n], 255 - n);
	rig_close(r);
}

static void exited_threads_do_not_delay_a_barrier(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "setp.ge.u32 %p1, %t, 70; @%p1 exit;\n"
							    "bar.sync 0; st.global.u32 [%mine], 1; bar.sync 0; ret; }");
	uint32_t *out = rig_memory(r, 128 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 128, out, 0);
	for (unsigned n = 0; n < 128; n++)
		assert_int_equal(out[n], n < 70);
	rig_close(r);
}

/* Warps 0 and 1 consume what warp 2 produces; warp 2 arrives at the barrier (bar.arrive), but does not wait. */
static void bar_arrive_does_not_wait(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") ".shared .u32 s;\n"
							    "setp.ge.u32 %p1, %t, 64; @%p1 bra PRODUCE;\n"
							    "bar.sync 1, 96; ld.shared.u32 %r1, [s]; "
							    "st.global.u32 [%mine], %r1; ret;\n"
							    "PRODUCE: st.shared.u32 [s], 42; barrier.arrive 1, "
							    "96; st.global.u32 [%mine], 7; ret; }");
	uint32_t *out = rig_memory(r, 96 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 96, out, 0);
	for (unsigned n = 0; n < 96; n++)
		assert_int_equal(out[n], n < 64 ? 42 : 7);
	rig_close(r);
}

static void bar_red_combines_predicates(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "setp.lt.u32 %p1, %t, 33; setp.lt.u32 %p2, %t, 1000;\n"
							    "bar.red.popc.u32 %r1, 0, %p1; bar.red.popc.u32 %r2, 0, !%p1;\n"
							    "bar.red.or.pred %p3, 3, 128, %p1; bar.red.and.pred %p4, 0, %p1; "
							    "bar.red.and.pred %p5, 0, %p2;\n"
							    "selp.u32 %r3, 1, 0, %p3; selp.u32 %r4, 2, 0, %p4; selp.u32 %r5, 4, 0, "
							    "%p5;\n"
							    "add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5;\n"
							    "mad.lo.u32 %r1, %r1, 1000, %r2; mad.lo.u32 %r1, %r1, 10, %r3; "
							    "st.global.u32 [%mine], %r1; ret; }");
	uint32_t *out = rig_memory(r, 128 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 128, out, 0);
	for (unsigned n = 0; n < 128; n++)
		assert_int_equal(out[n], (33 * 1000 + 95) * 10 + 1 + 4);
	rig_close(r);
}

static void a_barrier_that_cannot_complete_is_a_fault(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "setp.ge.u32 %p1, %t, 64; @%p1 exit;\n"
							    "bar.sync 1, 96; ret; }");

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 96, NULL, 0), GPUL_EXEC_TRAP);
	assert_non_null(strstr(r->fault.text, "barrier 1 waits for 96 threads, but only 64 have arrived"));
	rig_close(r);
}

static void diverged_lanes_synchronise_at_different_instructions(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") ".shared .u32 s[32]; .reg .b32 %a; mov.u32 %a, s; mad.lo.u32 %r1, %t, 4, "
							    "%a;\n"
							    "and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;\n"
							    "st.shared.u32 [%r1], 11; bar.warp.sync -1; ld.shared.u32 %r3, [%r1+-4]; "
							    "bra DONE;\n"
							    "EVEN: st.shared.u32 [%r1], 22; bar.warp.sync -1; ld.shared.u32 %r3, "
							    "[%r1+4];\n"
							    "DONE: st.global.u32 [%mine], %r3; ret; }");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 0);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], n % 2 ? 22 : 11);
	rig_close(r);
}

static void lanes_that_wait_for_each_other_at_different_barriers_fault(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "setp.eq.u32 %p1, %t, 0; @%p1 bra ONE; bar.sync 0; ret;\n"
							    "ONE: bar.warp.sync 0xff; bar.sync 0; ret; }");

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 32, NULL, 0), GPUL_EXEC_TRAP);
	assert_non_null(strstr(r->fault.text, "wait"));
	rig_close(r);
}

/* Four groups of lanes take separate paths to the label MEET and arrive one after another, because the code of these paths comes
 * after the rest of the kernel. */
#define SEPARATE_WAYS \
	"and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 1; @%p1 bra WAY1; setp.eq.u32 %p1, %r1, 2; @%p1 bra WAY2;\n" \
	"setp.eq.u32 %p1, %r1, 3; @%p1 bra WAY3;\n"
#define END_OF_WAYS \
	"mad.lo.u32 %r2, %r2, 100, %r5; st.global.u32 [%mine], %r2; ret;\n" \
	"WAY1: add.u32 %r5, %r5, 0; bra MEET; WAY2: add.u32 %r5, %r5, 0; bra MEET; WAY3: add.u32 %r5, %r5, 0; bra MEET; }"

static void lanes_that_arrive_apart_continue_together(void **state)
{
	static const struct {
		const char *barrier;
		unsigned result;
	} rows[] = {
		{ "bar.sync 0;", 0 },
		{ "barrier.sync 3;", 0 },
		{ "barrier.sync 1, 64;", 0 },
		{ "bar.red.popc.u32 %r5, 0, %p5;", 40 },
		{ "barrier.red.popc.u32 %r5, 2, 64, %p5;", 40 },
		{ "bar.red.or.pred %p6, 0, %p5; @%p6 mov.u32 %r5, 7;", 7 },
		{ "bar.red.and.pred %p6, 0, %p5; @%p6 mov.u32 %r5, 7;", 0 },
		{ "bar.arrive 4, 64; bar.sync 0;", 0 },
		{ "barrier.cluster.arrive; barrier.cluster.wait;", 0 },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		char text[4096];
		struct rig *r;
		uint32_t *out;

		snprintf(text, sizeof text, "%s%s%s%s",
			 PTX_HEADER KERNEL_OUT("k") "mov.u32 %r5, 0; setp.lt.u32 %p5, %t, 40;\n" SEPARATE_WAYS "MEET: ", rows[k].barrier,
			 " activemask.b32 %r2; popc.b32 %r2, %r2;\n", END_OF_WAYS);
		r = rig_open(text);
		out = rig_memory(r, 64 * 4);
		rig_expect_ok(r, "k", 1, 64, out, 0);
		for (unsigned n = 0; n < 64; n++)
			if (out[n] != 3200 + rows[k].result)
				fail_msg("%s: thread %u: %u lanes, result %u", rows[k].barrier, n, out[n] / 100, out[n] % 100);
		rig_close(r);
	}
}

/* Warp 1 exits while warp 0 waits, which releases the barrier. */
static void an_exit_releases_lanes_that_arrived_apart_together(void **state)
{
	struct rig *r = rig_open(
		PTX_HEADER KERNEL_OUT("k") "mov.u32 %r5, 0; setp.lt.u32 %p2, %t, 32; @%p2 bra STAY;\n"
					   "L: nanosleep.u32 10; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 20; @%p3 bra L; exit;\n"
					   "STAY:" SEPARATE_WAYS "MEET: bar.sync 0; activemask.b32 %r2; popc.b32 %r2, %r2;\n" END_OF_WAYS);
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], n < 32 ? 3200 : 0);
	rig_close(r);
}

/* The lower lanes of both warps skip the barrier, and wait at the instruction where the released lanes continue. */
static void released_lanes_meet_lanes_that_did_not_need_the_barrier(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") "mov.u32 %r5, 0; and.b32 %r1, %t, 16; setp.eq.u32 %p1, %r1, 0; @%p1 bra BEHIND;\n"
		     "barrier.sync 1, 32;\n"
		     "BEHIND: bar.warp.sync -1; activemask.b32 %r2; popc.b32 %r2, %r2; st.global.u32 [%mine], %r2; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 32);
	rig_close(r);
}

/* Two barrier.red.popc instructions use the same barrier, so each result counts the true predicates of both instructions. */
static void diverged_lanes_arrive_at_different_instructions(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") "mov.u32 %r5, 0; setp.lt.u32 %p5, %t, 50; and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 0; @%p1 bra OTHER;\n"
		     "barrier.red.popc.u32 %r5, 1, %p5; bra DONE;\n"
		     "OTHER: barrier.red.popc.u32 %r5, 1, !%p5; add.u32 %r5, %r5, 1000;\n"
		     "DONE: activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %r5, %r2, 10000, %r5; st.global.u32 [%mine], %r5; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4), yes = 0;

	(void)state;
	for (unsigned n = 0; n < 64; n++)
		yes += n % 4 ? n < 50 : n >= 50;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 320000 + yes + (n % 4 ? 0 : 1000));
	rig_close(r);
}

/* Lanes 16 to 31 skip the barrier, and come back to the instruction after it while lanes 0 to 15 wait there. */
static void lanes_that_wait_at_a_barrier_are_not_joined_by_others(void **state)
{
	struct rig *r = rig_open(
		PTX_HEADER KERNEL_OUT("k") ".shared .u32 s;\n"
					   "mov.u32 %r5, 0; st.shared.u32 [s], 7; bar.sync 0; setp.ge.u32 %p1, %t, 32; @%p1 bra PRODUCE;\n"
					   "setp.ge.u32 %p1, %t, 16; @%p1 bra AWAY; barrier.sync 1;\n"
					   "BEHIND: ld.shared.u32 %r1, [s]; st.global.u32 [%mine], %r1; ret;\n"
					   "AWAY: add.u32 %r5, %r5, 1; bra BEHIND;\n"
					   "PRODUCE: nanosleep.u32 10; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 20; @%p3 bra PRODUCE;\n"
					   "st.shared.u32 [s], 42; barrier.sync 1; st.global.u32 [%mine], 1; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], n < 16 ? 42 : n < 32 ? 7 : 1);
	rig_close(r);
}

/* The results are those of an H200, on which 26 cases of unusual barrier operands were tried. */
static void the_lower_four_bits_of_a_barrier_number_count(void **state)
{
	static const char *const barriers[] = { "barrier.sync %r1;", "barrier.sync %r1, 64;", "barrier.red.popc.u32 %r2, %r1, %p2;",
						"barrier.red.or.pred %p3, %r1, 64, %p2;", "bar.sync %r1;" };

	(void)state;
	for (unsigned k = 0; k < sizeof barriers / sizeof barriers[0]; k++) {
		char text[2048];
		struct rig *r;

		/* lane 9 of each warp uses barrier x, and the other lanes barrier 1: all 64 threads meet at one barrier, or wait
		 * for ever */
		snprintf(text, sizeof text, "%s%s ret; }",
			 PTX_HEADER KERNEL_OUT("k") "cvt.u32.u64 %r3, %x; and.b32 %r4, %t, 31; setp.eq.u32 %p2, %r4, 9;\n"
						    "selp.u32 %r1, %r3, 1, %p2;",
			 barriers[k]);
		r = rig_open(text);
		rig_expect_ok(r, "k", 1, 64, NULL, 17);
		rig_expect_ok(r, "k", 1, 64, NULL, 0xfffffff1);
		rig_expect_ok(r, "k", 1, 64, NULL, 1);
		rig_close(r);
	}
}

/* barrier.red.popc: even lanes use barrier 1 or 3, of 32 threads each; odd lanes use barrier 2, of 64 threads. */
static void each_lane_names_its_own_barrier(void **state)
{
	struct rig *r = rig_open(
		PTX_HEADER KERNEL_OUT("k") "and.b32 %r1, %t, 1; add.u32 %r2, %r1, 1; setp.lt.u32 %p2, %t, 20; setp.eq.u32 %p3, %r1, 0;\n"
					   "setp.ge.u32 %p4, %t, 64; and.pred %p4, %p4, %p3; @%p4 mov.u32 %r2, 3;\n"
					   "selp.u32 %r3, 32, 64, %p3; barrier.red.popc.u32 %r4, %r2, %r3, %p2;\n"
					   "bar.sync 0; st.global.u32 [%mine], %r4; ret; }");
	uint32_t *out = rig_memory(r, 128 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 128, out, 0);
	for (unsigned n = 0; n < 128; n++)
		assert_int_equal(out[n], n % 2 || n < 64 ? 10 : 0);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stores_before_a_barrier_are_visible_to_all_threads_after_it),
		cmocka_unit_test(exited_threads_do_not_delay_a_barrier),
		cmocka_unit_test(bar_arrive_does_not_wait),
		cmocka_unit_test(bar_red_combines_predicates),
		cmocka_unit_test(a_barrier_that_cannot_complete_is_a_fault),
		cmocka_unit_test(diverged_lanes_synchronise_at_different_instructions),
		cmocka_unit_test(lanes_that_wait_for_each_other_at_different_barriers_fault),
		cmocka_unit_test(lanes_that_arrive_apart_continue_together),
		cmocka_unit_test(an_exit_releases_lanes_that_arrived_apart_together),
		cmocka_unit_test(released_lanes_meet_lanes_that_did_not_need_the_barrier),
		cmocka_unit_test(diverged_lanes_arrive_at_different_instructions),
		cmocka_unit_test(lanes_that_wait_at_a_barrier_are_not_joined_by_others),
		cmocka_unit_test(the_lower_four_bits_of_a_barrier_number_count),
		cmocka_unit_test(each_lane_names_its_own_barrier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
