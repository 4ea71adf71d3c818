/* test_warp.c — shuffles, votes, matches and reductions, with whole and partial masks. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

/* Run a kernel with the instructions `body`, whose result is in %r9; thread t stores it to to[t]. */
static void run(const char *body, unsigned threads, uint32_t *to)
{
	char text[4096];
	struct rig *r;
	uint32_t *out;

	snprintf(text, sizeof text, "%s%s st.global.u32 [%%mine], %%r9; ret; }", PTX_HEADER KERNEL_OUT("k"), body);
	r = rig_open(text);
	out = rig_memory(r, threads * 4);
	rig_expect_ok(r, "k", 1, threads, out, 0);
	memcpy(to, out, threads * 4);
	rig_close(r);
}

/* Return the result of one lane of shfl by the pseudocode of the PTX ISA. */
static uint32_t shuffled(char mode, unsigned lane, unsigned b, unsigned c, bool *in_range)
{
	unsigned clamp = c & 31, segment = c >> 8 & 31, max = (lane & segment) | (clamp & ~segment & 31);
	int j = 0;

	switch (mode) {
	case 'u':
		j = (int)lane - (int)b;
		*in_range = j >= (int)max;
		break;
	case 'd':
		j = (int)(lane + b);
		*in_range = j <= (int)max;
		break;
	case 'b':
		j = (int)(lane ^ b);
		*in_range = j <= (int)max;
		break;
	default:
		j = (int)((lane & segment) | (b & ~segment & 31));
		*in_range = j <= (int)max;
		break;
	}
	return *in_range ? (uint32_t)j : lane;
}

static void a_shuffle_moves_values_as_the_isa_specifies(void **state)
{
	static const char *const modes[] = { "up", "down", "bfly", "idx" };
	static const unsigned clamps[] = { 0, 31, 0x1c1f, 0x101f, 0x1807, 15 };
	uint32_t got[32];

	(void)state;
	for (unsigned m = 0; m < 4; m++)
		for (unsigned k = 0; k < sizeof clamps / sizeof clamps[0]; k++)
			for (unsigned b = 0; b < 32; b += 5) {
				char body[256];

				snprintf(body, sizeof body,
					 "add.u32 %%r1, %%t, 1000; shfl.sync.%s.b32 %%r9|%%p1, "
					 "%%r1, %u, %u, -1; @%%p1 add.u32 %%r9, %%r9, 5000;",
					 modes[m], b, clamps[k]);
				run(body, 32, got);
				for (unsigned l = 0; l < 32; l++) {
					bool ok;
					uint32_t from = shuffled(modes[m][0], l, b, clamps[k], &ok);

					assert_int_equal(got[l], 1000 + from + (ok ? 5000 : 0));
				}
			}
}

static void a_vote_combines_the_lanes_of_its_mask(void **state)
{
	uint32_t got[64];

	(void)state;
	run("setp.gt.u32 %p1, %t, 3; vote.sync.ballot.b32 %r9, %p1, 0xffffffff;", 64, got);
	assert_int_equal(got[0], 0xfffffff0);
	assert_int_equal(got[32], 0xffffffff);
	run("setp.gt.u32 %p1, %t, 3; setp.lt.u32 %p2, %t, 8; @!%p2 bra X; vote.sync.ballot.b32 "
	    "%r9, !%p1, 0xff; X:",
	    32, got);
	assert_int_equal(got[5], 0x0f);
	run("setp.lt.u32 %p1, %t, 40; vote.sync.all.pred %p2, %p1, -1; vote.sync.any.pred %p3, "
	    "%p1, -1; vote.sync.uni.pred %p4, %p1, -1;"
	    "selp.u32 %r1, 1, 0, %p2; selp.u32 %r2, 2, 0, %p3; selp.u32 %r3, 4, 0, %p4; "
	    "add.u32 %r9, %r1, %r2; add.u32 %r9, %r9, %r3;",
	    64, got);
	assert_int_equal(got[0], 7);
	assert_int_equal(got[63], 2);
}

static void a_sync_vote_waits_for_diverged_lanes(void **state)
{
	uint32_t got[32];

	(void)state;
	run("mov.u32 %r1, 0; setp.lt.u32 %p1, %t, 16; @%p1 bra LOW;\n"
	    "LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, %t; @%p2 bra LOOP;\n"
	    "bra MEET;\n"
	    "LOW: mov.u32 %r1, 1000;\n"
	    "MEET: setp.ge.u32 %p3, %r1, 20; vote.sync.ballot.b32 %r9, %p3, -1;",
	    32, got);
	for (unsigned l = 0; l < 32; l++)
		assert_int_equal(got[l], 0xfff0ffff);
}

/* Lane 31 has exited; the mask still contains it. */
static void a_sync_does_not_wait_for_exited_lanes(void **state)
{
	uint32_t got[32];

	(void)state;
	run("mov.u32 %r9, 0; setp.eq.u32 %p1, %t, 31; @%p1 exit; shfl.sync.bfly.b32 %r9, %t, "
	    "1, 31, -1;",
	    32, got);
	for (unsigned l = 0; l < 30; l++)
		assert_int_equal(got[l], l ^ 1);
}

static void matches_find_equal_values(void **state)
{
	uint32_t got[32];

	(void)state;
	run("and.b32 %r1, %t, 3; match.any.sync.b32 %r9, %r1, -1;", 32, got);
	for (unsigned l = 0; l < 32; l++)
		assert_int_equal(got[l], 0x11111111u << (l % 4));
	run("cvt.u64.u32 %d1, %t; shr.u64 %d1, %d1, 4; shl.b64 %d1, %d1, 40; "
	    "match.any.sync.b64 %r9, %d1, -1;",
	    32, got);
	for (unsigned l = 0; l < 32; l++)
		assert_int_equal(got[l], l < 16 ? 0xffff : 0xffff0000);
	run("shr.u32 %r1, %t, 5; match.all.sync.b32 %r9|%p1, %r1, -1; @!%p1 mov.u32 %r9, 1;", 32, got);
	assert_int_equal(got[7], 0xffffffff);
	run("match.all.sync.b32 %r9|%p1, %t, -1; @!%p1 add.u32 %r9, %r9, 1;", 32, got);
	assert_int_equal(got[7], 1);
}

static void reductions_include_all_lanes_of_the_mask(void **state)
{
	static const struct {
		const char *op;
		uint32_t want;
	} rows[] = {
		{ "add.u32", 31 * 16 - 10 * 32 },
		{ "min.s32", (uint32_t)-10 },
		{ "max.s32", 21 },
		{ "min.u32", 0 },
		{ "max.u32", 0xffffffff },
		{ "and.b32", 0 },
		{ "or.b32", 0xffffffff },
		{ "xor.b32", 0 },
	};
	uint32_t got[32], bits = 0;

	(void)state;
	for (uint32_t l = 0; l < 32; l++)
		bits ^= l - 10;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		char body[128];

		snprintf(body, sizeof body, "sub.u32 %%r1, %%t, 10; redux.sync.%s %%r9, %%r1, -1;", rows[k].op);
		run(body, 32, got);
		assert_int_equal(got[3], k == 7 ? bits : rows[k].want);
		assert_int_equal(got[31], got[3]);
	}
}

/* Two groups of lanes with the member masks 0xffff and 0xffff0000 execute an instruction at the same time.  Lane l of a group has
 * the value x[l]; lanes 4 to 7 and 20 to 23 have another predicate than the others. */
static void groups_of_lanes_with_their_own_masks_exchange_no_data(void **state)
{
	static const struct {
		const char *body;
		uint32_t low, high;
	} rows[] = {
		{ "redux.sync.add.u32 %r9, %r1, %r8;", 120, 376 },
		{ "redux.sync.min.u32 %r9, %r1, %r8;", 0, 16 },
		{ "redux.sync.max.u32 %r9, %r1, %r8;", 15, 31 },
		{ "redux.sync.min.s32 %r9, %r2, %r8;", (uint32_t)-15, (uint32_t)-31 },
		{ "redux.sync.max.s32 %r9, %r2, %r8;", 0, (uint32_t)-16 },
		{ "redux.sync.and.b32 %r9, %r3, %r8;", 0x100, 0x200 },
		{ "redux.sync.or.b32 %r9, %r3, %r8;", 0x10f, 0x20f },
		{ "redux.sync.xor.b32 %r9, %r4, %r8;", 0, 0 },
		{ "match.all.sync.b32 %r9|%p2, %r5, %r8; @!%p2 mov.u32 %r9, 1;", 0xffff, 0xffff0000 },
		{ "match.all.sync.b32 %r9|%p2, %r6, %r8; @!%p2 add.u32 %r9, %r9, 1;", 1, 0xffff0000 },
		{ "match.all.sync.b64 %r9|%p2, %d5, %r8; @!%p2 mov.u32 %r9, 1;", 0xffff, 0xffff0000 },
		{ "match.any.sync.b32 %r9, 5, %r8;", 0xffff, 0xffff0000 },
		{ "match.any.sync.b64 %r9, 5, %r8;", 0xffff, 0xffff0000 },
		{ "vote.sync.ballot.b32 %r9, %p1, %r8;", 0xf0, 0xf00000 },
		{ "vote.sync.all.pred %p2, %p3, %r8; selp.u32 %r9, 1, 0, %p2;", 1, 0 },
		{ "vote.sync.any.pred %p2, %p3, %r8; selp.u32 %r9, 1, 0, %p2;", 1, 0 },
		{ "vote.sync.uni.pred %p2, %p3, %r8; selp.u32 %r9, 1, 0, %p2;", 1, 1 },
		{ "elect.sync %r9|%p2, %r8;", 0, 16 },
	};
	uint32_t got[32];

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		char body[1024];

		snprintf(body, sizeof body,
			 "setp.lt.u32 %%p3, %%t, 16; selp.b32 %%r8, 0xffff, 0xffff0000, %%p3; and.b32 %%r7, %%t, 12;\n"
			 "setp.eq.u32 %%p1, %%r7, 4; mov.u32 %%r1, %%t; neg.s32 %%r2, %%t; and.b32 %%r3, %%t, 15;\n"
			 "selp.b32 %%r5, 0x100, 0x200, %%p3; or.b32 %%r3, %%r3, %%r5; and.b32 %%r4, %%t, 1;\n"
			 "cvt.u64.u32 %%d5, %%r5; shl.b64 %%d5, %%d5, 32; min.u32 %%r6, %%t, 9; selp.b32 %%r6, %%r6, 3, %%p3;\n%s",
			 rows[k].body);
		run(body, 32, got);
		for (unsigned l = 0; l < 32; l++)
			if (got[l] != (l < 16 ? rows[k].low : rows[k].high))
				fail_msg("%s lane %u has %#x", rows[k].body, l, got[l]);
	}
	/* Each group elects a lane: p is true in lanes 0 and 16. */
	run("and.b32 %r1, %t, 16; setp.eq.u32 %p3, %r1, 0; selp.b32 %r8, 0xffff, 0xffff0000, %p3;\n"
	    "elect.sync %r1|%p1, %r8; selp.u32 %r9, 1, 0, %p1;",
	    32, got);
	for (unsigned l = 0; l < 32; l++)
		assert_int_equal(got[l], l % 16 == 0);
}

/* Lanes 0 to 7 (A) wait in a vote for lanes 8 to 15 (B), which vote inside a function.  When B arrives, A may continue, but other
 * lanes of the warp reach A's instruction first: lanes 17, 19, 21 and 23 of C, which wait for the rest of C and for D. */
static void lanes_do_not_join_lanes_whose_vote_is_complete(void **state)
{
	static const char ptx[] = PTX_HEADER
		".func function(.reg .b32 %member) { .reg .b32 %r; .reg .pred %p; setp.eq.u32 %p, %member, %member;\n"
		"vote.sync.ballot.b32 %r, %p, %member; ret; }\n" KERNEL_OUT(
			"k") "mov.u32 %r9, 0; setp.lt.u32 %p1, %t, 16; selp.b32 %r8, 0xffff, 0xffff0000, %p1; shr.u32 %r1, %t, 3;\n"
			     "setp.ne.u32 %p5, %t, 99; and.b32 %r2, %t, 1; setp.eq.u32 %p6, %r2, 1;\n"
			     "setp.eq.u32 %p1, %r1, 1; @%p1 bra B; setp.eq.u32 %p1, %r1, 2; @%p1 bra C; setp.eq.u32 %p1, %r1, 3; @%p1 bra D;\n"
			     "bra VOTE;\n"
			     "B: nanosleep.u32 10; call function, (%r8); bra END;\n"
			     "C: nanosleep.u32 10; add.u32 %r3, %r3, 1; @%p6 bra VOTE; bra FAR;\n"
			     "VOTE: vote.sync.ballot.b32 %r9, %p5, %r8;\n"
			     "END: st.global.u32 [%mine], %r9; ret;\n"
			     "D: nanosleep.u32 10; nanosleep.u32 10; nanosleep.u32 10; bra VOTE;\n"
			     "FAR: add.u32 %r3, %r3, 1; bra VOTE; }";
	struct rig *r = rig_open(ptx);
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 0);
	for (unsigned n = 16; n < 32; n++)
		assert_int_equal(out[n], 0xffff0000);
	rig_close(r);
}

static void one_lane_is_elected(void **state)
{
	uint32_t got[32];

	(void)state;
	run("elect.sync %r1|%p1, 0xfffffff0; selp.u32 %r9, 1, 0, %p1;", 32, got);
	for (unsigned l = 0; l < 32; l++)
		assert_int_equal(got[l], l == 4);
}

static void special_registers_contain_the_position_of_the_lane(void **state)
{
	uint32_t got[96];

	(void)state;
	run("mov.u32 %r1, %laneid; mov.u32 %r2, %warpid; mad.lo.u32 %r9, %r2, 100, %r1;", 96, got);
	for (unsigned n = 0; n < 96; n++)
		assert_int_equal(got[n], n / 32 * 100 + n % 32);
	run("mov.u32 %r1, %lanemask_lt; mov.u32 %r2, %lanemask_ge; xor.b32 %r9, %r1, %r2; "
	    "mov.u32 %r3, %lanemask_eq; and.b32 %r3, %r3, %r1; add.u32 %r9, %r9, %r3;",
	    32, got);
	for (unsigned l = 0; l < 32; l++)
		assert_int_equal(got[l], 0xffffffff);
	run("mov.u64 %d1, %clock64; mov.u64 %d2, %globaltimer; mov.u64 %d3, %clock64; "
	    "setp.ge.u64 %p1, %d3, %d1; setp.ne.u64 %p2, %d2, 0; and.pred %p1, %p1, %p2; "
	    "selp.u32 %r9, 1, 0, %p1;",
	    32, got);
	assert_int_equal(got[0], 1);
}

/* redux of f32: lane l contributes the f32 with the bits value[l % 4]; the member mask is all lanes. */
static void redux_of_floats_orders_zeros_and_skips_nan(void **state)
{
	static const struct {
		const char *op;
		uint32_t value[4], want;
	} rows[] = {
		{ "max", { 0x3f800000, 0xc0000000, 0x40400000, 0 }, 0x40400000 }, /* the values are 1, -2, 3 and 0 */
		{ "min", { 0x3f800000, 0xc0000000, 0x40400000, 0 }, 0xc0000000 },
		{ "max.abs", { 0x3f800000, 0xc0800000, 0x40400000, 0 }, 0x40800000 },
		{ "min.abs", { 0x3f800000, 0xc0800000, 0xc0400000, 0x40000000 }, 0x3f800000 },
		{ "max", { 0x80000000, 0, 0x80000000, 0x80000000 }, 0 }, /* -0 is less than +0 */
		{ "min", { 0x80000000, 0, 0, 0 }, 0x80000000 },
		{ "max", { 0x7fc00001, 0xbf800000, 0xffc00000, 0xc0000000 }, 0xbf800000 }, /* NaNs are ignored */
		{ "min", { 0x7fc00001, 0x7fc00001, 0x7fc00001, 0xffc00000 }, 0x7fffffff }, /* all values are NaN, so the result is NaN */
		{ "max.NaN", { 0x3f800000, 0x3f800000, 0x7f800001, 0x3f800000 }, 0x7fffffff },
		{ "min.abs.NaN", { 0x3f800000, 0xbf000000, 0x40000000, 0x3f800000 }, 0x3f000000 },
		{ "max", { 0x7f800000, 0x7f7fffff, 0xff800000, 0 }, 0x7f800000 }, /* the values include both infinities */
	};

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		char text[1024];
		struct rig *r;
		uint32_t *out;

		snprintf(text, sizeof text,
			 "%sand.b32 %%r1, %%t, 3; mad.wide.u32 %%d1, %%r1, 4, %%o; ld.global.f32 %%f1, [%%d1+128];\n"
			 "redux.sync.%s.f32 %%f2, %%f1, -1; st.global.f32 [%%mine], %%f2; ret; }",
			 PTX_HEADER KERNEL_OUT("k"), rows[k].op);
		r = rig_open(text);
		out = rig_memory(r, 36 * 4);
		memcpy(out + 32, rows[k].value, 16);
		rig_expect_ok(r, "k", 1, 32, out, 0);
		for (unsigned l = 0; l < 32; l++)
			if (out[l] != rows[k].want)
				fail_msg("%s, row %u: lane %u has 0x%08x", rows[k].op, k, l, out[l]);
		rig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redux_of_floats_orders_zeros_and_skips_nan),
		cmocka_unit_test(a_shuffle_moves_values_as_the_isa_specifies),
		cmocka_unit_test(a_vote_combines_the_lanes_of_its_mask),
		cmocka_unit_test(a_sync_vote_waits_for_diverged_lanes),
		cmocka_unit_test(a_sync_does_not_wait_for_exited_lanes),
		cmocka_unit_test(matches_find_equal_values),
		cmocka_unit_test(reductions_include_all_lanes_of_the_mask),
		cmocka_unit_test(groups_of_lanes_with_their_own_masks_exchange_no_data),
		cmocka_unit_test(lanes_do_not_join_lanes_whose_vote_is_complete),
		cmocka_unit_test(one_lane_is_elected),
		cmocka_unit_test(special_registers_contain_the_position_of_the_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
