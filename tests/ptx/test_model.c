/* test_model.c — the parser's model of single declarations and instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/module.h"

/* Parse declarations that follow .version, .target and .address_size. */
static gpul_ptx_module *module_of(const char *declarations)
{
	char text[4096];
	int n = snprintf(text, sizeof text, ".version 8.4\n.target sm_90a, debug\n.address_size 64\n%s\n", declarations);
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	assert_in_range(n, 1, sizeof text - 1);
	if (gpul_ptx_parse(text, (size_t)n, "model.ptx", &m, &err))
		fail_msg("%s", err.text);
	return m;
}

/* Parse a kernel k with this body; its registers %r<9>, %rd<9>, %p<3> are numbered from 0 on. */
static gpul_ptx_module *kernel_of(const char *body)
{
	char text[3072];

	snprintf(text, sizeof text,
		 ".visible .entry k(.param .u64 in, .param .align 8 .b8 s[24])\n{\n"
		 "\t.reg .b32 %%r<9>;\n\t.reg .b64 %%rd<9>;\n\t.reg .pred %%p<3>;\n%s\n}\n",
		 body);
	return module_of(text);
}

static const gpul_ptx_operand *operand(const gpul_ptx_module *m, unsigned inst, unsigned i)
{
	const gpul_ptx_func *f = &m->funcs[0];

	assert_true(inst < f->n_insts && i < f->insts[inst].n_operands);
	return &f->operands[f->insts[inst].first_operand + i];
}

static const gpul_ptx_operand *child(const gpul_ptx_module *m, const gpul_ptx_operand *o, unsigned i)
{
	assert_true(i < o->n_children);
	return &m->funcs[0].operands[o->first_child + i];
}

static void keeps_version_target_and_address_size(void **state)
{
	(void)state;
	gpul_ptx_module *m = module_of("");

	assert_int_equal(m->version_major, 8);
	assert_int_equal(m->version_minor, 4);
	assert_int_equal(m->sm, 90);
	assert_int_equal(m->sm_suffix, 'a');
	assert_true(m->debug);
	assert_int_equal(m->address_size, 64);
	assert_string_equal(gpul_ptx_name(m, m->target), "sm_90a, debug");
	gpul_ptx_module_destroy(m);
	gpul_ptx_module_destroy(NULL);
}

static void the_text_of_an_instruction_has_its_modifiers_and_is_cut_at_the_end_of_the_buffer(void **state)
{
	(void)state;
	gpul_ptx_module *m = kernel_of("\tld.acquire.gpu.global.u32 %r0, [%rd0];\n\tret;\n");
	const gpul_ptx_func *f = &m->funcs[0];
	char text[40], small[8];

	assert_string_equal(gpul_ptx_inst_text(m, &f->insts[0], text, sizeof text), "ld.acquire.gpu.global.u32");
	assert_string_equal(gpul_ptx_inst_text(m, &f->insts[0], small, sizeof small), "ld.acqu");
	assert_string_equal(gpul_ptx_inst_text(m, &f->insts[1], text, sizeof text), "ret");
	gpul_ptx_module_destroy(m);
}

static void a_range_of_registers_is_one_row_with_flat_numbers(void **state)
{
	(void)state;
	gpul_ptx_module *m = kernel_of("\t.reg .v4 .f32 v<2>;\n\t.reg .b32 last;\n"
				       "\tmov.b32 %r8, %r0;\n\tmov.b64 %rd0, %rd8;\n\tmov.f32 v1.z, v0.y;\n"
				       "\tmov.b32 last, 1;\n");
	const gpul_ptx_func *f = &m->funcs[0];

	assert_int_equal(f->n_regs, 5);
	assert_int_equal(f->n_flat_regs, 9 + 9 + 3 + 8 + 1);
	assert_int_equal(operand(m, 0, 0)->index, 8);
	assert_int_equal(operand(m, 0, 1)->index, 0);
	assert_int_equal(operand(m, 1, 0)->index, 9);
	assert_int_equal(operand(m, 1, 1)->index, 17);
	assert_int_equal(operand(m, 2, 0)->index, 21 + 4 + 2);
	assert_int_equal(operand(m, 2, 0)->selector, GPUL_PTX_SEL_Z);
	assert_int_equal(operand(m, 3, 0)->index, 29);
	for (uint32_t i = 0; i < f->n_flat_regs; i++) {
		const gpul_ptx_regs *row = gpul_ptx_reg_row(f, i);

		assert_in_range(i, row->first, row->first + row->count * row->vector - 1);
	}
	gpul_ptx_module_destroy(m);
}

static void finds_registers_by_prefix_and_number_for_every_prefix(void **state)
{
	(void)state;
	gpul_ptx_module *m = kernel_of("\t.reg .b32 a1<3>, a5;\n"
				       "\tmov.b32 a10, a12;\n\tmov.b32 a5, %r5;\n"
				       "\t{\n\t.reg .b32 %r5;\n\tmov.b32 %r5, %r6;\n\t}\n\tmov.b32 %r5, 0;\n");

	assert_int_equal(operand(m, 0, 0)->index, 21);
	assert_int_equal(operand(m, 0, 1)->index, 23);
	assert_int_equal(operand(m, 1, 0)->index, 24);
	assert_int_equal(operand(m, 1, 1)->index, 5);
	assert_int_equal(operand(m, 2, 0)->index, 25); /* the register of the inner scope */
	assert_int_equal(operand(m, 2, 1)->index, 6);  /* the register of the outer scope */
	assert_int_equal(operand(m, 3, 0)->index, 5);
	gpul_ptx_module_destroy(m);
}

static void constants_have_the_values_that_ptx_defines(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} rows[] = {
		{ "42", 42 },
		{ "0x2A", 42 },
		{ "052", 42 },
		{ "0b101010", 42 },
		{ "42U", 42 },
		{ "0", 0 },
		{ "-42", -42 },
		{ "- 42", -42 },
		{ "~0", -1 },
		{ "!7", 0 },
		{ "!0", 1 },
		{ "+5", 5 },
		{ "2 + 3 * 4", 14 },
		{ "(2 + 3) * 4", 20 },
		{ "10 - 3 - 2", 5 },
		{ "7 / 2 * 2", 6 },
		{ "7 % 4", 3 },
		{ "-7 / 2", -3 },
		{ "1 << 2 << 1", 8 },
		{ "-8 >> 1", -4 },
		{ "0x8000000000000000 >> 63", 1 },
		{ "1 << 64", 0 },
		{ "-1 >> 100", -1 },
		{ "0xF0 & 0x3C | 1 ^ 3", 0x32 },
		{ "3 > 2", 1 },
		{ "-1 < 1", 1 },
		{ "-1 < 1U", 0 },
		{ "2 <= 1", 0 },
		{ "1 != 2", 1 },
		{ "1 == 2", 0 },
		{ "1 && 0", 0 },
		{ "0 || 3", 1 },
		{ "1 ? 10 : 20", 10 },
		{ "0 ? 1 : 0 ? 2 : 3", 3 },
		{ "(.s64) 5 - 6", -1 },
		{ "(.s64) -1 < 0", 1 },
		{ "(.u64) -1 < 0", 0 },
		{ "WARP_SZ * 2", 64 },
		{ "-9223372036854775808", INT64_MIN },
		{ "0xFFFFFFFFFFFFFFFF", -1 },
		{ "(-9223372036854775807 - 1) / -1", INT64_MIN },
		{ "-5 % -1", 0 },
		{ "1.5 > 1.0", 1 },
		{ "1.5 == 1.5 && 2.0 != 3.0", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char body[128];

		snprintf(body, sizeof body, "\tmov.b64 %%rd0, %s;\n", rows[i].text);
		gpul_ptx_module *m = kernel_of(body);
		if (operand(m, 0, 1)->kind != GPUL_PTX_OP_INT || operand(m, 0, 1)->value.i != rows[i].value)
			fail_msg("%s is %lld", rows[i].text, (long long)operand(m, 0, 1)->value.i);
		gpul_ptx_module_destroy(m);
	}
}

static void floats_keep_their_bits(void **state)
{
	static const struct {
		const char *text;
		int kind;
		uint64_t bits;
	} rows[] = {
		{ "0f3F800000", GPUL_PTX_OP_F32, 0x3F800000 },
		{ "0F7fc00001", GPUL_PTX_OP_F32, 0x7FC00001 },
		{ "0d7FF0000000000001", GPUL_PTX_OP_F64, 0x7FF0000000000001 },
		{ "1.5", GPUL_PTX_OP_F64, 0x3FF8000000000000 },
		{ ".5", GPUL_PTX_OP_F64, 0x3FE0000000000000 },
		{ "2.", GPUL_PTX_OP_F64, 0x4000000000000000 },
		{ "1e3", GPUL_PTX_OP_F64, 0x408F400000000000 },
		{ "-0.0", GPUL_PTX_OP_F64, 0x8000000000000000 },
		{ "1.0 + 0.5", GPUL_PTX_OP_F64, 0x3FF8000000000000 },
		{ "1.0E+3", GPUL_PTX_OP_F64, 0x408F400000000000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char body[128];

		snprintf(body, sizeof body, "\tmov.b64 %%rd0, %s;\n", rows[i].text);
		gpul_ptx_module *m = kernel_of(body);
		assert_int_equal(operand(m, 0, 1)->kind, rows[i].kind);
		assert_true(operand(m, 0, 1)->value.f64 == rows[i].bits);
		gpul_ptx_module_destroy(m);
	}
}

static void addresses_have_a_base_and_an_offset(void **state)
{
	(void)state;
	gpul_ptx_module *m = kernel_of("\t.shared .u32 tile[4];\n"
				       "\tld.global.u32 %r1, [%rd2+-16];\n\tld.param.u32 %r1, [s + 4 * 2];\n"
				       "\tld.shared.u32 %r1, [tile];\n\tld.local.u32 %r1, [64];\n\tmov.b64 %rd1, tile "
				       "+ 8;\n"
				       "\tmov.b64 %rd1, tile[3];\n\tprefetch.tensormap [%rd1, {%r2, -1}];\n");
	const gpul_ptx_operand *a = operand(m, 0, 1);

	assert_int_equal(a->kind, GPUL_PTX_OP_ADDRESS);
	assert_int_equal(a->value.i, -16);
	assert_int_equal(child(m, a, 0)->index, 9 + 2);
	a = operand(m, 1, 1);
	assert_int_equal(a->value.i, 8);
	assert_int_equal(child(m, a, 0)->ref_kind, GPUL_PTX_REF_PARAM);
	assert_int_equal(child(m, a, 0)->index, 1);
	assert_int_equal(child(m, operand(m, 2, 1), 0)->ref_kind, GPUL_PTX_REF_FUNC_VAR);
	a = operand(m, 3, 1);
	assert_int_equal(child(m, a, 0)->kind, GPUL_PTX_OP_INT);
	assert_int_equal(child(m, a, 0)->value.i, 64);
	assert_int_equal(operand(m, 4, 1)->kind, GPUL_PTX_OP_SYMBOL);
	assert_int_equal(operand(m, 4, 1)->value.i, 8);
	assert_int_equal(operand(m, 5, 1)->value.i, 12);
	a = operand(m, 6, 0);
	assert_int_equal(a->n_children, 2);
	assert_int_equal(child(m, a, 1)->kind, GPUL_PTX_OP_VECTOR);
	assert_int_equal(child(m, child(m, a, 1), 1)->value.i, -1);
	gpul_ptx_module_destroy(m);
}

static void parses_pairs_sinks_guards_and_negation(void **state)
{
	(void)state;
	gpul_ptx_module *m = kernel_of("\t@!%p1 setp.eq.and.s32 %p0|_, %r1, %r2, !%p2;\n"
				       "\tvmad.u32.u32.u32 %r0, %r1.b3, %r2.h1, -%r3;\n"
				       "\tvadd4.s32.s32.s32 %r0.b10, %r1.b7654, %r2, %r3;\n");
	const gpul_ptx_inst *in = &m->funcs[0].insts[0];

	assert_int_equal(in->guard, 19);
	assert_true(in->guard_negated);
	assert_int_equal(in->line, 9);
	assert_int_equal(in->column, 8);
	assert_true(gpul_ptx_has_mod(in, GPUL_PTX_MOD_AND));
	assert_false(gpul_ptx_has_mod(in, GPUL_PTX_MOD_OR));
	assert_int_equal(operand(m, 0, 0)->kind, GPUL_PTX_OP_PAIR);
	assert_int_equal(child(m, operand(m, 0, 0), 0)->index, 18);
	assert_int_equal(child(m, operand(m, 0, 0), 1)->kind, GPUL_PTX_OP_SINK);
	assert_true(operand(m, 0, 3)->negated);
	assert_int_equal(m->funcs[0].insts[1].guard, GPUL_PTX_NONE);
	assert_int_equal(operand(m, 1, 1)->selector, GPUL_PTX_SEL_B3);
	assert_int_equal(operand(m, 1, 2)->selector, GPUL_PTX_SEL_H1);
	assert_true(operand(m, 1, 3)->negated);
	assert_int_equal(operand(m, 2, 0)->selector, GPUL_PTX_SEL_BYTES);
	assert_true(operand(m, 2, 0)->value.i == (INT64_C(2) << 32 | 0x10));
	assert_true(operand(m, 2, 1)->value.i == (INT64_C(4) << 32 | 0x7654));
	gpul_ptx_module_destroy(m);
}

static void a_label_refers_to_the_instruction_after_it(void **state)
{
	(void)state;
	gpul_ptx_module *m = kernel_of("\tbra end;\nloop:\n\tmov.b32 %r1, 1;\n\t{\n\tinner: bra "
				       "inner;\n\t\tbra loop;\n\t}\n"
				       "t: .branchtargets loop, end;\n\tbrx.idx %r1, t;\nend:\n");
	const gpul_ptx_func *f = &m->funcs[0];

	assert_int_equal(f->n_labels, 4);
	assert_int_equal(f->labels[0].inst, 1);
	assert_int_equal(f->labels[1].inst, 2);
	assert_int_equal(f->labels[1].scope, 1);
	assert_int_equal(f->labels[3].inst, f->n_insts);
	assert_int_equal(operand(m, 0, 0)->index, 3);
	assert_int_equal(operand(m, 2, 0)->index, 1);
	assert_int_equal(operand(m, 3, 0)->index, 0);
	assert_int_equal(f->labels[2].kind, GPUL_PTX_LABEL_BRANCHTARGETS);
	assert_int_equal(f->labels[2].n_targets, 2);
	assert_int_equal(f->operands[f->labels[2].first_target + 1].index, 3);
	assert_int_equal(operand(m, 4, 1)->index, 2);
	assert_int_equal(f->n_scopes, 2);
	assert_int_equal(f->scopes[1].parent, 0);
	assert_int_equal(f->items[f->scopes[1].open].kind, GPUL_PTX_ITEM_OPEN);
	assert_int_equal(f->items[f->scopes[1].close].kind, GPUL_PTX_ITEM_CLOSE);
	gpul_ptx_module_destroy(m);
}

static void variables_have_their_size_and_initializer(void **state)
{
	(void)state;
	gpul_ptx_module *m = module_of(".global .align 16 .b8 a[3][5];\n.const .v2 .f32 b[] = "
				       "{{1.0, 2.0}, {3.0, 4.0}};\n"
				       ".extern .shared .b8 c[];\n.weak .global "
				       ".attribute(.managed) .u64 d = generic(a) + 4;\n"
				       ".global .u8 e = 0xFF00(a);\n");

	assert_int_equal(m->n_vars, 5);
	assert_int_equal(m->vars[0].bytes, 15);
	assert_int_equal(m->vars[0].align, 16);
	assert_int_equal(m->dims[m->vars[0].first_dim + 1], 5);
	assert_int_equal(m->vars[1].bytes, 16);
	assert_int_equal(m->vars[1].n_inits, 4 + 6);
	assert_int_equal(m->inits[m->vars[1].first_init].kind, GPUL_PTX_INIT_OPEN);
	assert_int_equal(m->vars[2].bytes, 0);
	assert_int_equal(m->vars[2].linkage, GPUL_PTX_EXTERN);
	assert_int_equal(m->vars[3].linkage, GPUL_PTX_WEAK);
	assert_int_equal(m->vars[3].attributes, GPUL_PTX_ATTRIBUTE_MANAGED);
	const gpul_ptx_init *i = &m->inits[m->vars[3].first_init];
	assert_int_equal(i->kind, GPUL_PTX_INIT_SYMBOL);
	assert_true(i->generic);
	assert_int_equal(i->i, 4);
	assert_int_equal(i->index, 0);
	assert_int_equal(m->inits[m->vars[4].first_init].mask_byte, 2);
	gpul_ptx_module_destroy(m);
}

static void strings_may_be_empty_and_have_no_escapes(void **state)
{
	(void)state;
	gpul_ptx_module *m = module_of(".file 1 \"\"\n.file 2 \"c:\\\"\n.pragma \"\";\n.section .debug_x {}\n");

	assert_string_equal(gpul_ptx_name(m, m->files[0].path), "");
	assert_string_equal(gpul_ptx_name(m, m->files[1].path), "c:\\");
	assert_string_equal(gpul_ptx_name(m, m->pragmas[0]), "");
	assert_string_equal(gpul_ptx_name(m, m->sections[0].text), "");
	gpul_ptx_module_destroy(m);
}

static void functions_have_their_definition_and_tuning_directives(void **state)
{
	(void)state;
	gpul_ptx_module *m = module_of(".func (.reg .b32 r) f(.reg .b64 a);\n"
				       ".entry k(.param .u64 .ptr .global .align 8 p) .maxntid 64, 2 "
				       ".minnctapersm 3 { ret; }\n"
				       ".func (.reg .b32 r) f(.reg .b64 a) { mov.b32 r, 1; ret; }\n");

	assert_int_equal(m->funcs[0].definition, 2);
	assert_int_equal(m->funcs[2].definition, 2);
	assert_ptr_equal(gpul_ptx_find_func(m, "f"), &m->funcs[2]);
	assert_null(gpul_ptx_find_func(m, "g"));
	assert_int_equal(m->funcs[2].rets[0].space, GPUL_PTX_MOD_REG);
	assert_int_equal(m->funcs[2].params[0].reg, 1);
	assert_int_equal(m->funcs[1].params[0].ptr_space, GPUL_PTX_MOD_GLOBAL);
	assert_int_equal(m->funcs[1].params[0].ptr_align, 8);
	assert_int_equal(m->funcs[1].tuning.maxntid[0], 64);
	assert_int_equal(m->funcs[1].tuning.maxntid[1], 2);
	assert_int_equal(m->funcs[1].tuning.maxntid[2], 1);
	assert_int_equal(m->funcs[1].tuning.minnctapersm, 3);
	assert_int_equal(m->funcs[1].tuning.maxnreg, -1);
	gpul_ptx_module_destroy(m);
}

static void printing_an_instruction_truncates_like_snprintf(void **state)
{
	static const char whole[] = "@!%p1 fma.rn.newly_invented.f32 %r1, %r2, 0f3F800000, -%r3;";
	(void)state;
	gpul_ptx_module *m = kernel_of("\t@!%p1 fma.rn.newly_invented.f32 %r1,%r2,0f3f800000,-%r3;\n");
	const gpul_ptx_func *f = &m->funcs[0];
	char buf[128];

	for (size_t room = 0; room <= sizeof buf; room++) {
		memset(buf, 'x', sizeof buf);
		assert_int_equal(gpul_ptx_print_inst(m, f, &f->insts[0], buf, room), strlen(whole));
		if (room > 0) {
			size_t n = room - 1 < strlen(whole) ? room - 1 : strlen(whole);

			assert_memory_equal(buf, whole, n);
			assert_int_equal(buf[n], 0);
		}
		if (room < sizeof buf)
			assert_int_equal(buf[room], 'x');
	}
	gpul_ptx_module_destroy(m);
}

static void modules_with_any_difference_are_not_equal(void **state)
{
	static const char *const bodies[] = {
		"\tmov.b32 %r1, 1;\n",
		"\tmov.b32 %r1, 2;\n",
		"\tmov.b32 %r2, 1;\n",
		"\tmov.u32 %r1, 1;\n",
		"\tmov.b32 %r1, %r2;\n",
		"\tmov.b32 %r1, %tid.x;\n",
		"\t@%p1 mov.b32 %r1, 1;\n",
		"\t@!%p1 mov.b32 %r1, 1;\n",
		"\t{\n\tmov.b32 %r1, 1;\n\t}\n",
		"l:\tmov.b32 %r1, 1;\n",
		"\tmov.b32 %r1, 1;\nl:\n",
		"\t.loc 1 2 3\n\tmov.b32 %r1, 1;\n",
		"\t.loc 1 2 4\n\tmov.b32 %r1, 1;\n",
		"\t.reg .b32 x;\n\tmov.b32 %r1, 1;\n",
		"\t.reg .f32 x;\n\tmov.b32 %r1, 1;\n",
		"\t.local .u32 x;\n\tmov.b32 %r1, 1;\n",
		"\t.local .u32 x[2];\n\tmov.b32 %r1, 1;\n",
		"\t.pragma \"nounroll\";\n\tmov.b32 %r1, 1;\n",
		"\tnot.b32 %r1, 1;\n",
		"\tmov.foo %r1, 1;\n",
		"\tmov.bar %r1, 1;\n",
		"",
	};
	enum { N = sizeof bodies / sizeof *bodies };

	(void)state;
	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j < N; j++) {
			gpul_ptx_module *a = kernel_of(bodies[i]), *b = kernel_of(bodies[j]);

			if (gpul_ptx_module_equal(a, b) != (i == j))
				fail_msg("%s and %s", bodies[i], bodies[j]);
			gpul_ptx_module_destroy(a);
			gpul_ptx_module_destroy(b);
		}
}

static void old_texts_have_the_address_size_of_their_parameters(void **state)
{
	static const struct {
		const char *version, *type;
		unsigned want;
	} rows[] = { { "1.4", "u64", 64 },
		     { "2.2", "u32", 32 },
		     { "2.3", "u32", 64 } }; /* PTX 2.3 introduces .address_size; without the directive ptxas assumes 64 */

	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		char text[200];
		gpul_ptx_module *m;

		snprintf(text, sizeof text, ".version %s\n.target sm_10\n.entry k(.param .s32 n, .param .%s p) { exit; }\n",
			 rows[k].version, rows[k].type);
		assert_int_equal(gpul_ptx_parse(text, strlen(text), "old.ptx", &m, NULL), GPUL_OK);
		assert_int_equal(m->address_size, rows[k].want);
		gpul_ptx_module_destroy(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_version_target_and_address_size),
		cmocka_unit_test(the_text_of_an_instruction_has_its_modifiers_and_is_cut_at_the_end_of_the_buffer),
		cmocka_unit_test(a_range_of_registers_is_one_row_with_flat_numbers),
		cmocka_unit_test(finds_registers_by_prefix_and_number_for_every_prefix),
		cmocka_unit_test(constants_have_the_values_that_ptx_defines),
		cmocka_unit_test(floats_keep_their_bits),
		cmocka_unit_test(addresses_have_a_base_and_an_offset),
		cmocka_unit_test(parses_pairs_sinks_guards_and_negation),
		cmocka_unit_test(a_label_refers_to_the_instruction_after_it),
		cmocka_unit_test(variables_have_their_size_and_initializer),
		cmocka_unit_test(strings_may_be_empty_and_have_no_escapes),
		cmocka_unit_test(functions_have_their_definition_and_tuning_directives),
		cmocka_unit_test(printing_an_instruction_truncates_like_snprintf),
		cmocka_unit_test(old_texts_have_the_address_size_of_their_parameters),
		cmocka_unit_test(modules_with_any_difference_are_not_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
