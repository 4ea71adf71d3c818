/* test_reach.c — an instruction that is not interpreted refuses the kernels that reach it, and
 * no others. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

/* TCGEN05 is not interpreted; line 4 of every text. */
#define TCGEN05 ".func (.param .b32 r) wide(.param .b64 x) { tcgen05.wait::ld.sync.aligned; ret; }\n"
#define PROTOTYPES                                                                             \
	".func (.param .b32 r) same(.param .b64 x) { ret; }\n"                                 \
	".func (.param .b32 r) narrow(.param .b32 x) { ret; }\n"
/* Calls the function at address f, whose parameter has `bits` bits. */
#define CALL_POINTER(f, bits)                                                                  \
	"{ .reg .b64 f; .param .b32 r; .param .b" bits " x; " f                                \
	" p: .callprototype (.param .b32 _) _ (.param .b" bits " _); call (r), f, (x), p; }"

static void expect(const char *text, const char *kernel, const char *refusal)
{
	struct rig *r = rig_open(text);
	const char *why = gpul_exec_kernel_refusal(gpul_exec_find_kernel(r->program, kernel));

	if (refusal ? !why || strcmp(why, refusal) != 0 : why != NULL)
		fail_msg("%s: \"%s\", expected \"%s\"", kernel, why ? why : "",
			 refusal ? refusal : "");
	rig_close(r);
}

static const char refusal_of_k[] =
	"test.ptx:4: tcgen05.wait::ld.sync.aligned: tcgen05 is not interpreted; kernel k reaches it";

static void a_kernel_is_refused_for_what_its_calls_reach(void **state)
{
	static const char text[] = PTX_HEADER TCGEN05
		".func middle() { .param .b32 r; .param .b64 x; call (r), wide, (x); ret; }\n"
		".func again(); .func loop() { call again; ret; } .func again() { call loop; "
		"call middle; ret; }\n" KERNEL_OUT("k") "call loop; ret; }\n" KERNEL_OUT(
			"fine") "st.global.u32 [%mine], 3; ret; }\n";
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

static void a_pointer_reaches_functions_of_its_prototype(void **state)
{
	(void)state;
	expect(PTX_HEADER TCGEN05 PROTOTYPES KERNEL_OUT("k")
		       CALL_POINTER("mov.b64 f, wide;", "64") " ret; }\n",
	       "k", refusal_of_k);
	expect(PTX_HEADER TCGEN05 PROTOTYPES
	       ".global .b64 table[2] = { same, wide };\n" KERNEL_OUT("k")
		       CALL_POINTER("ld.global.b64 f, [table];", "64") " ret; }\n",
	       "k", refusal_of_k);
	expect(PTX_HEADER TCGEN05 PROTOTYPES
	       ".global .b64 table[2] = { narrow, wide };\n" KERNEL_OUT("k")
		       CALL_POINTER("ld.global.b64 f, [table];", "32") " ret; }\n",
	       "k", NULL);
	/* The address of wide is never taken. */
	expect(PTX_HEADER TCGEN05 PROTOTYPES KERNEL_OUT("k")
		       CALL_POINTER("mov.b64 f, same;", "64") " ret; }\n",
	       "k", NULL);
}

static void calltargets_limit_what_a_pointer_reaches(void **state)
{
#define CALL_TARGETS(list)                                                                     \
	"{ .reg .b64 f; .param .b32 r; .param .b64 x; mov.b64 f, same; t: .calltargets " list  \
	"; call (r), f, (x), t; } ret; }\n"
	(void)state;
	expect(PTX_HEADER TCGEN05 PROTOTYPES ".global .b64 taken = wide;\n" KERNEL_OUT("k")
		       CALL_TARGETS("same"),
	       "k", NULL);
	expect(PTX_HEADER TCGEN05 PROTOTYPES KERNEL_OUT("k") CALL_TARGETS("same, wide"), "k",
	       refusal_of_k);
}

/* cp.async.bulk with .ignore_oob (PTX 9.2) has two more operands. */
static void an_unknown_modifier_refuses_only_its_kernel(void **state)
{
	char *why = rig_refusal(PTX_HEADER KERNEL_OUT("k")
				"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob "
				"[%r1], [%o], 16, 0, 4, [%r2]; ret; }\n",
				"k");

	(void)state;
	assert_non_null(strstr(why, ".ignore_oob"));
	free(why);
}

static void a_refused_kernel_cannot_be_launched(void **state)
{
	struct rig *r =
		rig_open(PTX_HEADER ".visible .entry k() { tcgen05.wait::ld.sync.aligned; ret; }\n");
	gpul_exec_launch_config c = { .kernel = gpul_exec_find_kernel(r->program, "k"),
				      .grid = { 1, 1, 1 },
				      .block = { 1, 1, 1 } };
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
		cmocka_unit_test(a_pointer_reaches_functions_of_its_prototype),
		cmocka_unit_test(calltargets_limit_what_a_pointer_reaches),
		cmocka_unit_test(an_unknown_modifier_refuses_only_its_kernel),
		cmocka_unit_test(a_refused_kernel_cannot_be_launched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
