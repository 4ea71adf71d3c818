/* test_need.c — functions that are decoded when they are needed: for the first request of a kernel, or while a kernel that calls them
 * through a pointer runs. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

/* A table of functions that the kernel does not call by name; each uses constants and special registers that the kernel does not use. */
#define TABLE \
	".func (.param .b32 r) helper() { .reg .b32 a; mov.u32 a, %warpid; add.u32 a, a, 40000; st.param.b32 [r], a; ret; }\n" \
	".func (.param .b32 r) lane() { .reg .b32 a; mov.u32 a, %laneid; add.u32 a, a, 10000; st.param.b32 [r], a; ret; }\n" \
	".func (.param .b32 r) block() { .reg .b32 a; mov.u32 a, %nctaid.x; add.u32 a, a, 20000; st.param.b32 [r], a; ret; }\n" \
	".func (.param .b32 r) nested() { .param .b32 s; .reg .b32 a; call (s), helper; ld.param.b32 a, [s]; st.param.b32 [r], a; ret; }\n" \
	".func (.param .b32 r) own() { .shared .b32 s; .global .b32 g = 30000; .reg .b32 a, b; ld.global.b32 a, [g]; mov.u32 b, s; " \
	"add.u32 a, a, b; st.param.b32 [r], a; ret; }\n" \
	".func (.param .b32 r) wide() { .reg .b64 a; .reg .b32 b; add.u32 b, a, 1; ret; }\n" \
	".global .b64 table[5] = { lane, block, nested, own, wide };\n" \
	".shared .b32 first[25];\n"
/* Calls table[%x]() through a prototype that this body declares, and stores the result. */
#define CALL \
	"{ .reg .b64 f, a; .reg .b32 u; .param .b32 r; mad.lo.u64 a, %x, 8, table; ld.global.b64 f, [a]; " \
	"p: .callprototype (.param .b32 _) _ (); call (r), f, (), p; ld.param.b32 u, [r]; st.global.u32 [%mine], u; } "

static const char text[] = PTX_HEADER TABLE KERNEL_OUT("k") CALL "ret; }\n" KERNEL_OUT("other") CALL "ret; }\n";

static void functions_behind_pointers_get_constants_and_special_registers(void **state)
{
	enum { BLOCKS = 3, THREADS = 70 };
	struct rig *r = rig_open(text);
	uint32_t *out = rig_memory(r, BLOCKS * THREADS * 4);

	(void)state;
	for (unsigned f = 0; f < 4; f++) {
		rig_expect_ok(r, f % 2 ? "other" : "k", BLOCKS, THREADS, out, f);
		for (uint32_t i = 0; i < BLOCKS * THREADS; i++) {
			const uint32_t in_block = i % THREADS,
				       expected[] = { 10000 + in_block % 32, 20000 + BLOCKS, 40000 + in_block / 32, 30000 + 100 };

			assert_int_equal(out[i], expected[f]);
		}
	}
	rig_close(r);
}

static void lanes_of_a_warp_need_different_functions(void **state)
{
	static const char lanes[] = PTX_HEADER TABLE KERNEL_OUT(
		"k") "{ .reg .b32 l; mov.u32 l, %tid.x; and.b32 l, l, 3; cvt.u64.u32 %x, l; }\n" CALL "ret; }\n";
	struct rig *r = rig_open(lanes);
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 0);
	for (uint32_t i = 0; i < 32; i++) {
		const uint32_t expected[] = { 10000 + i, 20001, 40000, 30100 };

		assert_int_equal(out[i], expected[i & 3]);
	}
	rig_close(r);
}

static void a_function_that_cannot_be_decoded_faults_its_caller(void **state)
{
	struct rig *r = rig_open(text);
	uint32_t *out = rig_memory(r, 4);

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 1, out, 4), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "cannot be decoded: test.ptx:9: add.u32: a 32-bit operand is expected"));
	rig_expect_ok(r, "k", 1, 1, out, 0);
	assert_int_equal(*out, 10000);
	rig_close(r);
}

static void a_kernel_that_cannot_be_decoded_is_refused(void **state)
{
	static const char bad[] = PTX_HEADER ".func callee() { .reg .b64 a; .reg .b32 b; add.u32 b, a, 1; ret; }\n" KERNEL_OUT(
		"bad") "call callee; ret; }\n" KERNEL_OUT("good") "st.global.u32 [%mine], 7; ret; }\n";
	struct rig *r = rig_open(bad);
	uint32_t *out = rig_memory(r, 4);
	const char *why = gpul_exec_kernel_refusal(gpul_exec_find_kernel(r->program, "bad"));

	(void)state;
	assert_non_null(why);
	assert_non_null(strstr(why, "test.ptx:4: add.u32: a 32-bit operand is expected"));
	rig_expect_ok(r, "good", 1, 1, out, 0);
	assert_int_equal(*out, 7);
	rig_close(r);
}

static void a_kernel_is_described_when_it_is_prepared(void **state)
{
	static const char described[] = PTX_HEADER
		".visible .entry k(.param .u64 a, .param .u32 b) .maxntid 64 { .shared .b8 s[20]; .local .b8 l[48]; "
		".reg .b32 %r<100>; ret; }\n";
	struct rig *r = rig_open(described);
	const gpul_exec_kernel *k = gpul_exec_find_kernel(r->program, "k");
	const gpul_exec_kernel_info *info = gpul_exec_kernel_info_of(k);

	(void)state;
	assert_int_equal(info->n_params, 2);
	assert_int_equal(info->param_bytes, 12);
	assert_int_equal(info->max_threads, 64);
	assert_int_equal(info->local_bytes, 0);
	assert_int_equal(gpul_exec_kernel_prepare(k, NULL), GPUL_OK);
	assert_int_equal(info->shared_bytes, 20);
	assert_int_equal(info->local_bytes, 48);
	assert_int_equal(info->n_regs, 100);
	rig_close(r);
}

static void two_programs_share_a_module(void **state)
{
	struct rig *a = rig_open(text), *b = rig_open("" PTX_HEADER);
	uint32_t *out_a = rig_memory(a, 4), *out_b = rig_memory(b, 4);
	gpul_ptx_module *m = NULL;
	gpul_exec_launch *la, *lb;

	(void)state;
	gpul_exec_program_destroy(a->program);
	gpul_exec_program_destroy(b->program);
	assert_int_equal(gpul_ptx_parse_lazy(text, sizeof text - 1, "test.ptx", &m, NULL), GPUL_OK);
	assert_int_equal(gpul_exec_program_create(a->memory, gpul_ptx_module_share(m), "a", &a->program, NULL), GPUL_OK);
	assert_int_equal(gpul_exec_program_create(b->memory, m, "b", &b->program, NULL), GPUL_OK);
	la = rig_start(a, "k", 1, 1, 0, out_a, 2);
	lb = rig_start(b, "k", 1, 1, 0, out_b, 3);
	assert_int_equal(rig_finish(a, la), GPUL_EXEC_OK);
	assert_int_equal(rig_finish(b, lb), GPUL_EXEC_OK);
	assert_int_equal(*out_a, 40000);
	assert_int_equal(*out_b, 30100);
	rig_close(a);
	rig_close(b);
}

static void another_program_of_a_decoded_module_has_its_own_variables(void **state)
{
	static const char with_variable[] = PTX_HEADER
		".visible .global .b32 sum;\n" KERNEL_OUT("k") "{ .shared .b8 s[20]; .reg .b32 v; atom.global.add.u32 v, [sum], 3; st.global.u32 [%mine], v; ret; } }\n" KERNEL_OUT(
			"refused") "{ .reg .b32 t; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [t], 32; ret; } }\n";
	struct rig *r;
	gpul_exec_program *first, *again;
	uint32_t *out;

	(void)state;
	setenv("GPULOAD_SOFT_LAZY", "0", 1);
	r = rig_open(with_variable);
	setenv("GPULOAD_SOFT_LAZY", "1", 1);
	out = rig_memory(r, 4);
	first = r->program;
	assert_int_equal(gpul_exec_program_again(first, &again, NULL), GPUL_OK);
	for (int i = 0; i < 2; i++) {
		r->program = i ? again : first;
		assert_int_equal(gpul_exec_kernel_info_of(gpul_exec_find_kernel(r->program, "k"))->shared_bytes, 20);
		assert_int_equal(gpul_exec_kernel_is_decoded_later(gpul_exec_find_kernel(r->program, "k")), i);
		assert_false(gpul_exec_kernel_is_decoded_later(gpul_exec_find_kernel(r->program, "refused")));
		rig_expect_ok(r, "k", 1, 1, out, 0);
		assert_int_equal(*out, 0);
		rig_expect_ok(r, "k", 1, 1, out, 0);
		assert_int_equal(*out, 3);
		assert_string_equal(gpul_exec_kernel_refusal(gpul_exec_find_kernel(r->program, "refused")),
				    gpul_exec_kernel_refusal(gpul_exec_find_kernel(first, "refused")));
	}
	gpul_exec_program_destroy(first);
	rig_close(r);
}

static void a_running_kernel_sees_what_another_launch_decodes(void **state)
{
	/* kernel `waits` waits until kernel `other` has run, then calls functions that the launch of `other` has decoded */
	static const char waiting[] = PTX_HEADER TABLE ".visible .global .b32 go;\n" KERNEL_OUT(
		"waits") "wait: { .reg .b32 g; .reg .pred p; ld.relaxed.gpu.global.b32 g, [go]; setp.eq.u32 p, g, 0; @p bra wait; }\n" CALL
			 "ret; }\n" KERNEL_OUT("other") CALL "{ .reg .b32 g; mov.u32 g, 1; st.relaxed.gpu.global.b32 [go], g; } ret; }\n";
	struct rig *r = rig_open(waiting);
	uint32_t *out = rig_memory(r, 33 * 4), *out_of_other = rig_memory(r, 4);
	gpul_exec_launch *l = rig_start(r, "waits", 1, 33, 0, out, 2), *o = rig_start(r, "other", 1, 1, 0, out_of_other, 2);

	(void)state;
	assert_int_equal(rig_finish(r, o), GPUL_EXEC_OK);
	assert_int_equal(rig_finish(r, l), GPUL_EXEC_OK);
	assert_int_equal(out[0], 40000);
	assert_int_equal(out[32], 40001);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_behind_pointers_get_constants_and_special_registers),
		cmocka_unit_test(lanes_of_a_warp_need_different_functions),
		cmocka_unit_test(a_function_that_cannot_be_decoded_faults_its_caller),
		cmocka_unit_test(a_kernel_that_cannot_be_decoded_is_refused),
		cmocka_unit_test(a_kernel_is_described_when_it_is_prepared),
		cmocka_unit_test(two_programs_share_a_module),
		cmocka_unit_test(another_program_of_a_decoded_module_has_its_own_variables),
		cmocka_unit_test(a_running_kernel_sees_what_another_launch_decodes),
	};

	setenv("GPULOAD_SOFT_LAZY", "1", 1); /* rig_open() reads it */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
