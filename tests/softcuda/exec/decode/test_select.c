/* test_select.c — which operation is selected for an instruction, and which forms are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/exec/engine_internal.h"
#include "softcuda/exec/exec_select_internal.h"

/* Parse one instruction, in a kernel that declares registers of every width. */
static gpul_ptx_module *parse_one(const char *instruction)
{
	char text[1024];
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };
	const int n = snprintf(text, sizeof(text),
			       ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k()\n{\n"
			       ".reg .pred %%p<9>; .reg .b16 %%h<9>; .reg .b32 %%r<9>; .reg .b64 %%d<9>; .reg "
			       ".b128 %%q<9>;\n"
			       ".reg .f32 %%f<9>; .reg .f64 %%g<9>;\n%s\nret;\n}\n",
			       instruction);
	if (gpul_ptx_parse(text, (size_t)n, "one.ptx", &m, &err) != GPUL_OK)
		fail_msg("%s: %s", instruction, err.text);
	return m;
}

static bool select_one(const char *instruction, struct selection *out, char *why, size_t why_bytes)
{
	gpul_ptx_module *m = parse_one(instruction);
	memset(out, 0, sizeof(*out));
	why[0] = 0;
	const bool ok = gpul_select_alu(m, &m->funcs[0], &m->funcs[0].insts[0], out, why, why_bytes);
	gpul_ptx_module_destroy(m);
	return ok;
}

static const struct {
	const char *text;
	unsigned op, flags, n, n_sources;
} accepted[] = {
	{ "add.s32 %r1, %r2, 7;", OP_ADD_32, 0, 0, 2 },
	{ "add.sat.s32 %r1, %r2, %r3;", OP_ADD_SAT_S32, FLAG_SAT, 0, 2 },
	{ "add.cc.u64 %d1, %d2, %d3;", OP_ADDC_64, CARRY_OUT, 0, 2 },
	{ "addc.u32 %r1, %r2, %r3;", OP_ADDC_32, CARRY_IN, 0, 2 },
	{ "mad.lo.cc.u32 %r1, %r2, %r3, %r4;", OP_MADC_LO_32, CARRY_OUT, 0, 3 },
	{ "madc.hi.cc.s64 %d1, %d2, %d3, %d4;", OP_MADC_HI_S64, CARRY_IN | CARRY_OUT, 0, 3 },
	{ "add.f32 %f1, %f2, 0f3F800000;", OP_ADD_F32, 0, 0, 2 },
	{ "add.rn.ftz.f32 %f1, %f2, %f3;", OP_ADD_F32_FTZ, FLAG_FTZ, 0, 2 },
	{ "fma.rz.ftz.sat.f32 %f1, %f2, %f3, %f4;", OP_FMA_F32_ANY, ROUND_RZ | FLAG_FTZ | FLAG_SAT, 0, 3 },
	{ "fma.rn.f64 %g1, %g2, %g3, %g4;", OP_FMA_F64, 0, 0, 3 },
	{ "fma.rn.relu.bf16x2 %r1, %r2, %r3, %r4;", OP_FMA_BF16X2, FLAG_RELU, 0, 3 },
	{ "div.full.ftz.f32 %f1, %f2, %f3;", OP_DIV_FULL, FLAG_FTZ, 0, 2 },
	{ "min.NaN.xorsign.abs.f32 %f1, %f2, %f3;", OP_MIN_F32_ANY, FLAG_NAN | FLAG_XORSIGN, 0, 2 },
	{ "max.f32 %f1, %f2, %f3, %f4;", OP_MAX3_F32, 0, 0, 3 },
	{ "mul.wide.s32 %d1, %r2, -4;", OP_MUL_WIDE_S32, 0, 0, 2 },
	{ "bfind.shiftamt.u64 %r1, %d2;", OP_BFIND_U64, BFIND_SHIFTAMT, 0, 1 },
	{ "prmt.b32.rc16 %r1, %r2, %r3, %r4;", OP_PRMT_MODE, 0, PRMT_RC16, 3 },
	{ "lop3.b32 %r1, %r2, %r3, %r4, 0x96;", OP_LOP3, 0, 0, 3 },
	{ "lop3.and.b32 %r1|%p1, %r2, %r3, %r4, 0x3f, %p2;", OP_LOP3_AND, 0, 0, 4 },
	{ "dp4a.s32.u32 %r1, %r2, %r3, %r4;", OP_DP4A, DP_A_SIGNED, 0, 3 },
	{ "dp2a.hi.u32.s32 %r1, %r2, %r3, %r4;", OP_DP2A, DP_B_SIGNED | DP_HI, 0, 3 },
	{ "setp.lt.s32 %p1, %r1, %r2;", OP_SETP_LT_S32, COMPARE_SIGNED, CMP_LT, 2 },
	{ "setp.hs.u64 %p1, %d1, %d2;", OP_SETP_GE_U64, 0, CMP_GE, 2 },
	{ "setp.neu.f32 %p1, %f1, %f2;", OP_SETP_ANY_32, COMPARE_FLOAT, CMP_NEU, 2 },
	{ "setp.gt.and.s16 %p1|%p2, %h1, %h2, !%p3;", OP_SETP_ANY_16, COMPARE_SIGNED | COMBINE_AND | COMPARE_HAS_Q, CMP_GT, 3 },
	{ "setp.nan.ftz.f32 %p1, %f1, %f2;", OP_SETP_ANY_32, COMPARE_FLOAT | FLAG_FTZ, CMP_NAN, 2 },
	{ "setp.ge.f16x2 %p1|%p2, %r1, %r2;", OP_SETP_F16X2, COMPARE_FLOAT | COMPARE_HAS_Q, CMP_GE, 2 },
	{ "set.eq.or.f32.u32 %f1, %r1, %r2, %p1;", OP_SET_ANY_32, COMBINE_OR | SET_FLOAT, CMP_EQ, 3 },
	{ "selp.f64 %g1, %g2, %g3, %p1;", OP_SELP_64, 0, 0, 3 },
	{ "slct.u64.f32 %d1, %d2, %d3, %f1;", OP_SLCT_F32_64, 0, 0, 3 },
	{ "mov.b64 {%r1, %r2}, %d1;", OP_UNPACK_2X32, 0, 0, 1 },
	{ "mov.b32 %r1, {%h1, %h2};", OP_PACK_2X16, 0, 0, 1 },
	{ "mov.b128 %q1, {%d1, %d2};", OP_PACK_2X64, 0, 0, 1 },
	{ "mov.u32 %r1, %tid.x;", OP_MOV_32, 0, 0, 1 },
	{ "mov.pred %p1, %p2;", OP_MOV_PRED, 0, 0, 1 },
	{ "not.pred %p1, %p2;", OP_NOT_PRED, 0, 0, 1 },
	{ "cvt.s64.s32 %d1, %r1;", OP_CVT_S64_S32, 0, 0, 1 },
	{ "cvt.rzi.s32.f32 %r1, %f1;", OP_CVT_RZI_S32_F32, 0, 0, 1 },
	{ "cvt.rn.f16.f32 %h1, %f1;", OP_CVT_F16_F32, 0, 0, 1 },
	{ "cvt.sat.u8.s32 %r1, %r2;", OP_CVT_ANY, 0, 0, 1 },
	{ "cvt.rna.tf32.f32 %r1, %f2;", OP_CVT_ANY, 0, 0, 1 },
	{ "cvt.rn.relu.bf16x2.f32 %r1, %f1, %f2;", OP_CVT_PAIR, 0, 0, 2 },
	{ "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;", OP_CVT_F8X2, 0, 0, 2 },
	{ "cvt.rn.satfinite.relu.e5m2x2.f16x2 %h1, %r1;", OP_CVT_F8X2, 0, 0, 1 },
	{ "cvt.rn.f16x2.f32 %r1, %f1, %f2;", OP_CVT_F16X2_F32, 0, 0, 2 },
	{ "cvt.rz.bf16x2.f32 %r1, %f1, %f2;", OP_CVT_PAIR, 0, 0, 2 },
	{ "cvt.rn.f16x2.e5m2x2 %r1, %h1;", OP_CVT_F16X2_E5M2X2, 0, 0, 1 },
	{ "cvt.rn.f16x2.e4m3x2 %r1, %h1;", OP_CVT_F16X2_E4M3X2, 0, 0, 1 },
	{ "cvt.rn.relu.f16x2.e4m3x2 %r1, %h1;", OP_CVT_UNPAIR, 0, 0, 1 },
	{ "cvt.rni.ftz.f32.f32 %f1, %f2;", OP_CVT_RNI_F32_F32, 0, 0, 1 },
	{ "cvt.rmi.ftz.f32.f32 %f1, %f2;", OP_CVT_RMI_FTZ_F32_F32, 0, 0, 1 },
	{ "cvt.rmi.ftz.s32.f32 %r1, %f2;", OP_CVT_ANY, 0, 0, 1 },
	{ "cvt.sat.f32.f32 %f1, %f2;", OP_CVT_SAT_F32_F32, 0, 0, 1 },
	{ "cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4;", OP_CVT_PACK, 0, 8, 3 },
	{ "cvt.pack.sat.s16.s32 %r1, %r2, %r3;", OP_CVT_PACK, 0, 16, 2 },
	{ "cvt.pack.sat.u4.s32.b32 %r1, %r2, %r3, %r4;", OP_CVT_PACK, 0, 4, 3 },
	{ "cvt.pack.sat.s2.s32.b32 %r1, %r2, %r3, %r4;", OP_CVT_PACK, 0, 2, 3 },
	{ "vadd.s32.u32.s32.sat %r1, %r2.b0, %r3.h1;", OP_VIDEO, 0, 0, 2 },
	{ "vmad.s32.s32.u32.shr7 %r1, %r2, %r3, -%r4;", OP_VIDEO, 0, 0, 3 },
	{ "vadd4.u32.u32.u32.add %r1, %r2, %r3, %r4;", OP_VIDEO_SIMD, 0, 4, 3 },
	{ "add.f32.bf16 %f1, %h1, %f2;", OP_ADD_MIXED, 128, 0, 2 },
	{ "tanh.approx.f16x2 %r1, %r2;", OP_TANH_F16X2, 0, 0, 1 },
	{ "rcp.approx.ftz.f64 %g1, %g2;", OP_RCP_APPROX_F64, FLAG_FTZ, 0, 1 },
	{ "testp.subnormal.f64 %p1, %g1;", OP_TESTP_F64, 0, TEST_SUBNORMAL, 1 },
};

static void forms_select_their_operation_and_flags(void **state)
{
	(void)state;
	for (unsigned k = 0; k < sizeof(accepted) / sizeof(accepted[0]); k++) {
		struct selection s;
		char why[160];
		if (!select_one(accepted[k].text, &s, why, sizeof(why)))
			fail_msg("%s: %s", accepted[k].text, why);
		if (s.op != accepted[k].op || s.flags != accepted[k].flags || s.n != accepted[k].n || s.n_sources != accepted[k].n_sources)
			fail_msg("%s: op %u flags %#x n %u sources %u", accepted[k].text, s.op, s.flags, s.n, s.n_sources);
	}
}

static void forms_that_ptx_lacks_are_refused_with_a_reason(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} refused[] = {
		{ "add.ftz.s32 %r1, %r2, %r3;", "add does not support this combination of modifiers with .s32" },
		{ "add.b32 %r1, %r2, %r3;", "add does not support .b32" },
		{ "setp.equ.s32 %p1, %r1, %r2;", "unordered comparisons are for floating point" },
		{ "setp.lo.s32 %p1, %r1, %r2;", "this comparison or type is not supported" },
		{ "cvt.s32.f32 %r1, %f1;", "float to integer needs .rni, .rzi, .rmi or .rpi" },
		{ "mov.b128 %q1, {%r1, %r2, %r3, %r4};", "16 bytes cannot be divided into 4 equal parts" },
		{ "lop3.b32 %r1, %r2, %r3, %r4, %r5;", "operand 5 must be an integer constant" },
		{ "vadd.u32.u32.u32 %r1.b10, %r2, %r3, %r4;", "operand 1 selects more than one byte or half" },
		{ "cvt.rna.tf32.f64 %r1, %g1;", "only .f32 can be converted to .tf32" },
		{ "sin.f32 %f1, %f2;", "sin does not support this combination of modifiers with .f32" },
	};
	for (unsigned k = 0; k < sizeof(refused) / sizeof(refused[0]); k++) {
		struct selection s;
		char why[160];
		const bool ok = select_one(refused[k].text, &s, why, sizeof(why));
		if (ok || strcmp(why, refused[k].why) != 0)
			fail_msg("%s: %s", refused[k].text, ok ? "accepted" : why);
	}
}

static void lop3_reads_the_predicate_after_its_table(void **state)
{
	(void)state;
	struct selection s;
	char why[160];
	assert_true(select_one("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x3f, %p2;", &s, why, sizeof(why)));
	assert_int_equal(s.skip, 1 << 3);
	assert_int_equal(s.imm, 0x3f);
	assert_int_equal(s.d2_type, GPUL_PTX_MOD_PRED);
	assert_int_equal(s.source_type[3], GPUL_PTX_MOD_PRED);
}

static void video_selectors_are_encoded_for_the_handler(void **state)
{
	(void)state;
	struct selection s;
	char why[160];
	struct video_simd v;
	assert_true(select_one("vadd4.u32.u32.u32 %r1.b31, %r2.b0123, %r3.b7654, %r4;", &s, why, sizeof(why)));
	memcpy(&v, &s.imm, sizeof(v));
	assert_int_equal(v.parts, 1 << 3 | 1 << 1);
	assert_int_equal(v.picks[0] | v.picks[1] << 8 | v.picks[2] << 16, (3 | 2 << 3 | 1 << 6 | 0 << 9) | (4 | 5 << 3 | 6 << 6 | 7 << 9)
														   << 12);
	struct video scalar;
	assert_true(select_one("vset.u32.s32.ge %r1.h1, %r2.b3, %r3.h0, %r4;", &s, why, sizeof(why)));
	memcpy(&scalar, &s.imm, sizeof(scalar));
	assert_int_equal(scalar.a_selector, GPUL_PTX_SEL_B3);
	assert_int_equal(scalar.b_selector, GPUL_PTX_SEL_H0);
	assert_int_equal(scalar.d_selector, GPUL_PTX_SEL_H1);
	assert_int_equal(scalar.second, VIDEO_MERGE);
	assert_int_equal(scalar.compare, CMP_GE);
	assert_int_equal(scalar.flags, VIDEO_B_SIGNED);
}

/* False: the opcode is not arithmetic, so selection does not handle it. */
static bool is_arithmetic(unsigned opcode)
{
	static const uint16_t others[] = {
		GPUL_PTX_LD,         GPUL_PTX_LDU,       GPUL_PTX_ST,         GPUL_PTX_BRA,      GPUL_PTX_BRX,     GPUL_PTX_RET,
		GPUL_PTX_EXIT,       GPUL_PTX_CALL,      GPUL_PTX_CVTA,       GPUL_PTX_BAR,      GPUL_PTX_BARRIER, GPUL_PTX_SHFL,
		GPUL_PTX_VOTE,       GPUL_PTX_MATCH,     GPUL_PTX_ATOM,       GPUL_PTX_RED,      GPUL_PTX_REDUX,   GPUL_PTX_MEMBAR,
		GPUL_PTX_FENCE,      GPUL_PTX_NANOSLEEP, GPUL_PTX_ACTIVEMASK, GPUL_PTX_TRAP,     GPUL_PTX_BRKPT,   GPUL_PTX_ISSPACEP,
		GPUL_PTX_PMEVENT,    GPUL_PTX_ALLOCA,    GPUL_PTX_CP,         GPUL_PTX_MBARRIER, GPUL_PTX_ELECT,   GPUL_PTX_MAPA,
		GPUL_PTX_GETCTARANK,
	};
	for (unsigned k = 0; k < sizeof(others) / sizeof(others[0]); k++)
		if (others[k] == opcode)
			return false;
	return true;
}

static unsigned select_all(const gpul_ptx_module *m, const char *name)
{
	unsigned n = 0;
	for (uint32_t f = 0; f < m->n_funcs; f++)
		for (uint32_t k = 0; k < m->funcs[f].n_insts; k++) {
			const gpul_ptx_inst *in = &m->funcs[f].insts[k];
			struct selection s = { 0 };
			char why[160] = "";
			if (!is_arithmetic(in->opcode))
				continue;
			if (!gpul_select_alu(m, &m->funcs[f], in, &s, why, sizeof(why)))
				fail_msg("%s:%u: %s", name, in->line, why);
			assert_in_range(s.op, OP_ALU_FIRST, N_OPS - 1);
			n++;
		}
	return n;
}

static unsigned select_all_of(const char *where)
{
	DIR *folder = opendir(where);
	assert_non_null(folder);
	unsigned n = 0;
	for (struct dirent *e; (e = readdir(folder));) {
		char path[512];
		snprintf(path, sizeof(path), "%s/%s", where, e->d_name);
		FILE *f = strstr(e->d_name, ".ptx") ? fopen(path, "rb") : NULL;
		if (!f)
			continue;
		static char text[1 << 20];
		const size_t bytes = fread(text, 1, sizeof(text), f);
		fclose(f);
		gpul_ptx_module *m = NULL;
		gpul_error err = { 0 };
		assert_int_equal(gpul_ptx_parse(text, bytes, path, &m, &err), GPUL_OK);
		n += select_all(m, path);
		gpul_ptx_module_destroy(m);
	}
	closedir(folder);
	return n;
}

static void finds_an_operation_for_all_arithmetic_of_the_compiled_kernels(void **state)
{
	(void)state;
	assert_true(select_all_of("tests/corpus/ptx") > 300);
	assert_true(select_all_of(GPUL_KERNELS "/tests/corpus") > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_select_their_operation_and_flags),
		cmocka_unit_test(forms_that_ptx_lacks_are_refused_with_a_reason),
		cmocka_unit_test(lop3_reads_the_predicate_after_its_table),
		cmocka_unit_test(video_selectors_are_encoded_for_the_handler),
		cmocka_unit_test(finds_an_operation_for_all_arithmetic_of_the_compiled_kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
