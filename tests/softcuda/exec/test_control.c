/* test_control.c — divergence, loops, calls, switches: what decides which lanes run where. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

static void lanes_that_part_meet_again(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k")
		"and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 100;\n"
		"@%p1 bra EVEN;\n"
		"add.u32 %r2, %r2, 1; bra DONE;\n"
		"EVEN: add.u32 %r2, %r2, 2;\n"
		"DONE: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %r2, %r3, 1000, %r2;\n"
		"st.global.u32 [%mine], %r2; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 2, 32, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 32000 + 100 + (n % 2 ? 1 : 2));
	rig_close(r);
}

static void each_lane_loops_as_often_as_it_should(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k")
		"mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
		"LOOP: setp.gt.u32 %p1, %r1, %t; @%p1 bra END;\n"
		"add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra LOOP;\n"
		"END: st.global.u32 [%mine], %r2; ret; }");
	uint32_t *out = rig_memory(r, 96 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 96, out, 0);
	for (unsigned n = 0; n < 96; n++)
		assert_int_equal(out[n], n * (n + 1) / 2);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_that_part_meet_again),
		cmocka_unit_test(each_lane_loops_as_often_as_it_should),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
