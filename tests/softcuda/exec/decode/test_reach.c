/* test_reach.c — if a function contains an instruction that is not interpreted, kernels that call it by name fail to load; other kernels
 * load, and a call through a pointer fails when it executes the instruction. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

/* A function with a tcgen05 instruction, which is not interpreted; it is line 4 of every text. */
#define TCGEN05 ".func (.param .b32 r) wide(.param .b64 x) { tcgen05.wait::ld.sync.aligned; ret; }\n"
/* Kernel that calls table[x]: `same` returns, `wide` executes an instruction that is not interpreted. */
#define TABLE \
	".func (.param .b32 r) same(.param .b64 x) { st.param.b32 [r], 5; ret; }\n" \
	".func caller(.param .b64 x) { .param .b32 r; call (r), wide, (x); ret; }\n" \
	".global .b64 table[3] = { same, wide, caller };\n"
#define LOAD_POINTER \
	"{ .reg .b64 f, a; .reg .b32 u; .param .b32 r; .param .b64 x; st.param.b64 [x], 0; mad.lo.u64 a, %x, 8, table; " \
	"ld.global.b64 f, [a]; "

static void expect(const char *text, const char *kernel, const char *refusal)
{
	struct rig *r = rig_open(text);
	const char *why = gpul_exec_kernel_refusal(gpul_exec_find_kernel(r->program, kernel));

	if (refusal ? !why || strcmp(why, refusal) != 0 : why != NULL)
		fail_msg("%s: \"%s\", expected \"%s\"", kernel, why ? why : "", refusal ? refusal : "");
	rig_close(r);
}

static const char refusal_of_k[] =
	"test.ptx:4: tcgen05.wait::ld.sync.aligned: tcgen05 is not supported by the software driver; kernel k reaches it";

static void a_kernel_is_refused_for_what_its_calls_reach(void **state)
{
	static const char text[] = PTX_HEADER TCGEN05
		".func middle() { .param .b32 r; .param .b64 x; call (r), wide, (x); ret; }\n"
		".func again(); .func loop() { call again; ret; } .func again() { call loop; "
		"call middle; ret; }\n" KERNEL_OUT("k") "call loop; ret; }\n" KERNEL_OUT("fine") "st.global.u32 [%mine], 3; ret; }\n";
	struct rig *r;
	uint32_t *out;

	(void)state;
	expect(text, "k", refusal_of_k);
	expect(text, "fine", NULL);
	r = rig_open(text);
	out = rig_memory(r, 4);
	rig_expect_ok(r, "fine", 1, 1, out, 0);
	assert_int_equal(*out, 3);
	rig_close(r);
}

static void a_call_through_a_pointer_fails_when_the_instruction_is_executed(void **state)
{
	static const char text[] = PTX_HEADER TCGEN05 TABLE KERNEL_OUT("k") LOAD_POINTER
		"p: .callprototype (.param .b32 _) _ (.param .b64 _); call (r), f, (x), p; ld.param.b32 u, [r]; st.global.u32 [%mine], u; } ret; }\n";
	struct rig *r = rig_open(text);
	uint32_t *out = rig_memory(r, 4);

	(void)state;
	expect(text, "k", NULL);
	rig_expect_ok(r, "k", 1, 1, out, 0);
	assert_int_equal(*out, 5);
	assert_int_equal(rig_run(r, "k", 1, 1, out, 1), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_string_equal(
		r->fault.text,
		"test.ptx:4: tcgen05.wait::ld.sync.aligned: tcgen05 is not supported by the software driver, in wide, which is called through a "
		"pointer; run this on a GPU, or avoid the call; k, block 0, thread 0");
	rig_close(r);
}

/* A function that is called through a pointer calls `wide` by name. */
static void so_does_a_call_by_name_behind_the_pointer(void **state)
{
	struct rig *r = rig_open(PTX_HEADER TCGEN05 TABLE KERNEL_OUT("k") LOAD_POINTER
				 "p: .callprototype _ (.param .b64 _); call f, (x), p; } ret; }\n");

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 64, rig_memory(r, 4), 2), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "tcgen05 is not supported by the software driver, in wide"));
	rig_close(r);
}

static void calltargets_are_pointers_too(void **state)
{
	struct rig *r = rig_open(PTX_HEADER TCGEN05 TABLE KERNEL_OUT("k") LOAD_POINTER
				 "t: .calltargets same, wide; call (r), f, (x), t; } ret; }\n");

	(void)state;
	rig_expect_ok(r, "k", 1, 1, rig_memory(r, 4), 0);
	assert_int_equal(rig_run(r, "k", 1, 1, rig_memory(r, 4), 1), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	rig_close(r);
}

/* Only lanes whose guard is true execute the refused instruction; the code after it is decoded. */
static void a_guarded_instruction_fails_if_its_guard_is_true(void **state)
{
	struct rig *r = rig_open(PTX_HEADER
				 ".func f(.param .b32 x) { .reg .pred p; .reg .b32 a; ld.param.b32 a, [x]; setp.eq.u32 p, a, 1;\n"
				 "@p tcgen05.wait::ld.sync.aligned; @!p bra out; @p tcgen05.wait::ld.sync.aligned; out: ret; }\n"
				 ".global .b64 table[1] = { f };\n" KERNEL_OUT(
					 "k") "{ .reg .b64 f; .param .b32 x; st.param.b32 [x], %x; ld.global.b64 f, [table]; "
					      "p: .callprototype _ (.param .b32 _); call f, (x), p; st.global.u32 [%mine], 9; } ret; }\n");
	uint32_t *out = rig_memory(r, 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 1, out, 0);
	assert_int_equal(*out, 9);
	assert_int_equal(rig_run(r, "k", 1, 1, out, 1), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	rig_close(r);
}

/* cp.async.bulk with .ignore_oob (PTX 9.2) has two operands more, and is not interpreted. */
static void an_unknown_modifier_refuses_only_its_kernel(void **state)
{
	char *why = rig_refusal(PTX_HEADER KERNEL_OUT("k") "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob "
							   "[%r1], [%o], 16, 0, 4, [%r2]; ret; }\n",
				"k");

	(void)state;
	assert_non_null(strstr(why, ".ignore_oob"));
	free(why);
}

static void a_refused_kernel_cannot_be_launched(void **state)
{
	struct rig *r = rig_open(PTX_HEADER ".visible .entry k() { tcgen05.wait::ld.sync.aligned; ret; }\n");
	gpul_exec_launch_config c = { .kernel = gpul_exec_find_kernel(r->program, "k"), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
	gpul_exec_launch *l = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_exec_launch_start(r->machine, &c, &l, &err), GPUL_EUNSUPPORTED);
	assert_string_equal(err.text, refusal_of_k);
	assert_null(l);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_is_refused_for_what_its_calls_reach),
		cmocka_unit_test(a_call_through_a_pointer_fails_when_the_instruction_is_executed),
		cmocka_unit_test(so_does_a_call_by_name_behind_the_pointer),
		cmocka_unit_test(calltargets_are_pointers_too),
		cmocka_unit_test(a_guarded_instruction_fails_if_its_guard_is_true),
		cmocka_unit_test(an_unknown_modifier_refuses_only_its_kernel),
		cmocka_unit_test(a_refused_kernel_cannot_be_launched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
