/* test_control.c — divergence, loops, calls, branch tables. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

static void diverged_lanes_reconverge(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 100;\n"
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

static void each_lane_runs_its_own_number_of_iterations(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
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

static void brx_sends_each_lane_to_its_own_target(void **state)
{
	struct rig *r = rig_open(
		PTX_HEADER KERNEL_OUT("k") "and.b32 %r1, %t, 3;\n"
					   "TABLE: .branchtargets A, B, C, A;\n"
					   "brx.idx %r1, TABLE;\n"
					   "A: mov.u32 %r2, 10; bra DONE;\n"
					   "B: mov.u32 %r2, 20; bra DONE;\n"
					   "C: mov.u32 %r2, 30;\n"
					   "DONE: st.global.u32 [%mine], %r2; ret; }" KERNEL_OUT("beyond") "TABLE: .branchtargets A;\n"
													   "brx.idx %t, TABLE;\n"
													   "A: ret; }");
	static const uint32_t want[4] = { 10, 20, 30, 10 };
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], want[n % 4]);
	assert_int_equal(rig_run(r, "beyond", 1, 2, out, 0), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "the index is 1"));
	rig_close(r);
}

static void a_guard_restricts_one_instruction(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "mov.u32 %r2, 7; setp.lt.u32 %p1, %t, 5;\n"
							    "@%p1 mov.u32 %r2, 8;\n"
							    "@!%p1 add.u32 %r2, %r2, 100;\n"
							    "setp.eq.u32 %p2, %t, 9; @%p2 ret;\n"
							    "@%p1 st.global.u32 [%mine], %r2;\n"
							    "@!%p1 st.global.u32 [%mine], %r2; ret; }");
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 40, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], n >= 40 || n == 9 ? 0 : n < 5 ? 8 : 107);
	rig_close(r);
}

/* ---- calls ----------------------------------------------------------------------------------- */

#define CALL1(result, function, argument) \
	"{ .param .b32 a; .param .b32 v; st.param.b32 [a], " argument ";\n" \
	"call (v), " function ", (a); ld.param.b32 " result ", [v]; }\n"

static const char recursive[] = PTX_HEADER
	".func (.param .b32 v) fib(.param .b32 n) {\n"
	".reg .pred %p; .reg .b32 %n; .reg .b32 %a; .reg .b32 %b;\n"
	"ld.param.u32 %n, [n]; setp.lt.s32 %p, %n, 2; @%p bra SMALL;\n"
	"sub.s32 %a, %n, 1;\n" CALL1("%b", "fib", "%a") "sub.s32 %a, %n, 2;\n" CALL1(
		"%a", "fib",
		"%a") "add.s32 %n, %a, %b;\n"
		      "SMALL: st.param.b32 [v], %n; ret; }\n"
		      ".func (.param .b32 v) for_ever(.param .b32 n) {\n"
		      ".reg .b32 %n; ld.param.u32 %n, [n]; add.u32 %n, %n, 1;\n" CALL1("%n", "for_ever", "%n") "st.param.b32 [v], %n; ret; }\n" KERNEL_OUT(
			      "k") "and.b32 %r1, %t, 15;\n" CALL1("%r2", "fib", "%r1") "st.global.u32 "
										       "[%mine], %r2; ret; "
										       "}\n" KERNEL_OUT("dee"
													"p") CALL1("%r2",
														   "for_"
														   "ever",
														   "%t") "s"
															 "t"
															 "."
															 "g"
															 "l"
															 "o"
															 "b"
															 "a"
															 "l"
															 "."
															 "u"
															 "3"
															 "2"
															 " "
															 "["
															 "%"
															 "m"
															 "i"
															 "n"
															 "e"
															 "]"
															 ","
															 " "
															 "%"
															 "r"
															 "2"
															 ";"
															 " "
															 "r"
															 "e"
															 "t"
															 ";"
															 " "
															 "}"
															 "\n";

static void a_function_may_call_itself(void **state)
{
	static const uint32_t fib[16] = { 0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610 };
	struct rig *r = rig_open(recursive);
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 0);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], fib[n % 16]);
	rig_close(r);
}

/* Each of 200,000 functions calls the previous one; one kernel calls the last function, another kernel one in the middle. */
static void loads_a_call_chain_of_any_length(void **state)
{
	enum { CHAIN = 200000, EACH = 64 };
	char *text = malloc(sizeof PTX_HEADER + (size_t)CHAIN * EACH + 2 * EACH), *end = text;
	struct rig *r;

	(void)state;
	assert_non_null(text);
	end += sprintf(end, PTX_HEADER ".func f0() { ret; }\n");
	for (unsigned i = 1; i < CHAIN; i++)
		end += sprintf(end, ".func f%u() { call f%u; ret; }\n", i, i - 1);
	end += sprintf(end, ".entry far() { call f%u; ret; }\n", CHAIN - 1);
	sprintf(end, ".entry near() { call f100; ret; }\n");
	r = rig_open(text);
	assert_int_equal(rig_run(r, "near", 1, 32, NULL, 0), GPUL_EXEC_OK);
	assert_int_equal(rig_run(r, "far", 1, 1, NULL, 0), GPUL_EXEC_STACK);
	rig_close(r);
	free(text);
}

static void unlimited_recursion_is_a_fault(void **state)
{
	struct rig *r = rig_open(recursive);
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	assert_int_equal(rig_run(r, "deep", 1, 64, out, 0), GPUL_EXEC_STACK);
	assert_non_null(strstr(r->fault.text, "call stack too deep"));
	rig_close(r);
}

static const char pointers[] = PTX_HEADER ".func (.param .b32 v) twice(.param .b32 n) {\n"
					  ".reg .b32 %n; ld.param.u32 %n, [n]; add.u32 %n, %n, %n; st.param.b32 [v], %n; ret; }\n"
					  ".func (.param .b32 v) square(.param .b32 n) {\n"
					  ".reg .b32 %n; ld.param.u32 %n, [n]; mul.lo.u32 %n, %n, %n; st.param.b32 [v], %n; ret; "
					  "}\n"
					  ".global .u64 table[3] = { twice, square, 0 };\n" KERNEL_OUT(
						  "k") "cvt.u32.u64 %r3, %x; rem.u32 %r1, %t, %r3; mov.u64 %d1, table; "
						       "mad.wide.u32 %d1, %r1, 8, %d1; ld.global.u64 %d2, [%d1];\n"
						       "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %t;\n"
						       "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
						       "call (v), %d2, (a), P; ld.param.b32 %r2, [v]; }\n"
						       "activemask.b32 %r4; popc.b32 %r4, %r4; mad.lo.u32 %r2, %r4, 100000, "
						       "%r2;\n"
						       "st.global.u32 [%mine], %r2; ret; }\n";

static void each_lane_calls_the_function_of_its_pointer(void **state)
{
	struct rig *r = rig_open(pointers);
	uint32_t *out = rig_memory(r, 64 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 64, out, 2);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 3200000 + (n % 2 ? n * n : 2 * n));
	assert_int_equal(rig_run(r, "k", 1, 64, out, 3), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_int_equal(r->fault.thread[0], 2);
	rig_close(r);
}

static void registers_may_be_arguments_and_results(void **state)
{
	struct rig *r = rig_open(PTX_HEADER ".func (.reg .b32 %v) sum(.reg .b32 %a, .reg .b64 %b) {\n"
					    ".reg .b32 %c; cvt.u32.u64 %c, %b; add.u32 %v, %a, %c; ret; }\n" KERNEL_OUT(
						    "k") "call (%r1), sum, (%t, %x); call (%r2), sum, (%r1, 1000);\n"
							 "st.global.u32 [%mine], %r2; ret; }");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 50);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], n + 1050);
	rig_close(r);
}

/* Some lanes return early from a function, others exit the thread inside it. */
static void lanes_may_leave_a_function_at_different_times(void **state)
{
	struct rig *r = rig_open(PTX_HEADER ".func (.param .b32 v) f(.param .b32 n) {\n"
					    ".reg .pred %p; .reg .b32 %n; .reg .b32 %i; ld.param.u32 %n, [n]; "
					    "st.param.b32 [v], %n;\n"
					    "setp.eq.u32 %p, %n, 3; @%p exit;\n"
					    "mov.u32 %i, 0;\n"
					    "L: setp.ge.u32 %p, %i, %n; @%p ret; add.u32 %i, %i, 1; st.param.b32 "
					    "[v], %i; bra L; }\n" KERNEL_OUT("k")
						    CALL1("%r1", "f", "%t") "activemask.b32 %r2; popc.b32 %r2, "
									    "%r2; mad.lo.u32 %r1, %r2, 100, %r1;\n"
									    "st.global.u32 [%mine], %r1; ret; }");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 0);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], n == 3 ? 0 : 3100 + n);
	rig_close(r);
}

/* ---- lanes that wait for other lanes ------------------------------------------------------------------ */

static void a_lane_may_wait_for_a_lock_that_its_warp_holds(void **state)
{
	struct rig *r = rig_open(PTX_HEADER ".global .u32 lock; .global .u32 count;\n" KERNEL_OUT(
		"k") "mov.u64 %d1, lock; mov.u64 %d2, count;\n"
		     "AGAIN: atom.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, "
		     "%r1, 0; @%p1 bra AGAIN;\n"
		     "ld.volatile.global.u32 %r2, [%d2]; add.u32 %r2, %r2, 1; "
		     "st.volatile.global.u32 [%d2], %r2;\n"
		     "membar.gl; atom.global.exch.b32 %r1, [%d1], 0; st.global.u32 "
		     "[%mine], %r2; ret; }");
	uint32_t *out = rig_memory(r, 256 * 4);
	uint64_t sum = 0;

	(void)state;
	rig_expect_ok(r, "k", 2, 128, out, 0);
	for (unsigned n = 0; n < 256; n++)
		sum += out[n];
	assert_int_equal(sum, 256 * 257 / 2);
	rig_close(r);
}

static void a_lane_may_wait_for_a_later_lane_of_its_warp(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "setp.eq.u32 %p1, %t, 31; @%p1 bra LAST;\n"
							    "WAIT: ld.relaxed.gpu.global.u32 %r1, [%o+124]; setp.eq.u32 %p2, %r1, 0; "
							    "@%p2 bra WAIT;\n"
							    "st.global.u32 [%mine], %r1; ret;\n"
							    "LAST: mov.u32 %r1, 5; st.relaxed.gpu.global.u32 [%o+124], %r1; ret; }");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 0);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], 5);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diverged_lanes_reconverge),
		cmocka_unit_test(each_lane_runs_its_own_number_of_iterations),
		cmocka_unit_test(brx_sends_each_lane_to_its_own_target),
		cmocka_unit_test(a_guard_restricts_one_instruction),
		cmocka_unit_test(a_function_may_call_itself),
		cmocka_unit_test(loads_a_call_chain_of_any_length),
		cmocka_unit_test(unlimited_recursion_is_a_fault),
		cmocka_unit_test(each_lane_calls_the_function_of_its_pointer),
		cmocka_unit_test(registers_may_be_arguments_and_results),
		cmocka_unit_test(lanes_may_leave_a_function_at_different_times),
		cmocka_unit_test(a_lane_may_wait_for_a_lock_that_its_warp_holds),
		cmocka_unit_test(a_lane_may_wait_for_a_later_lane_of_its_warp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
