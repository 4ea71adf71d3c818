/* test_heads.c — gpul_ptx_parse_heads() gives the same declarations as the whole parser, whatever bodies contain. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/module.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static gpul_ptx_module *heads_of(const char *text, gpul_error *err)
{
	gpul_ptx_module *m = NULL;

	gpul_ptx_parse_heads(text, strlen(text), "k.ptx", &m, err);
	return m;
}

static void same_variable(const gpul_ptx_module *a, const gpul_ptx_var *x, const gpul_ptx_module *b, const gpul_ptx_var *y)
{
	if (x->space != GPUL_PTX_MOD_PARAM) /* gpul_ptx_parse_heads() drops parameters' names */
		assert_string_equal(gpul_ptx_name(a, x->name), gpul_ptx_name(b, y->name));
	assert_int_equal(x->type, y->type);
	assert_int_equal(x->space, y->space);
	assert_int_equal(x->align, y->align);
	assert_int_equal(x->vector, y->vector);
	assert_int_equal(x->bytes, y->bytes);
}

static bool names_variable(const gpul_ptx_func *f, uint32_t row)
{
	for (uint32_t i = 0; i < f->n_operands; i++)
		if (f->operands[i].kind == GPUL_PTX_OP_SYMBOL && f->operands[i].ref_kind == GPUL_PTX_REF_MODULE_VAR &&
		    f->operands[i].index == row)
			return true;
	return false;
}

static bool has_variable(const gpul_ptx_module *m, const gpul_ptx_func *f, const char *name)
{
	for (uint32_t i = 0; i < f->n_vars; i++)
		if (!strcmp(gpul_ptx_name(m, f->vars[i].name), name))
			return true;
	return false;
}

/* Check that a function's head has exactly these .shared variables: those of its body, then those of the module that the body uses. */
static void same_shared(const gpul_ptx_module *a, const gpul_ptx_func *heads, const gpul_ptx_module *b, const gpul_ptx_func *whole)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < whole->n_vars; i++) {
		if (whole->vars[i].space != GPUL_PTX_MOD_SHARED || whole->vars[i].linkage == GPUL_PTX_EXTERN)
			continue;
		assert_true(n < heads->n_vars);
		same_variable(a, &heads->vars[n++], b, &whole->vars[i]);
	}
	for (uint32_t i = 0; i < b->n_vars; i++) {
		if (b->vars[i].space != GPUL_PTX_MOD_SHARED || b->vars[i].bytes == 0 || !names_variable(whole, i))
			continue;
		assert_true(has_variable(a, heads, gpul_ptx_name(b, b->vars[i].name)));
		n++;
	}
	assert_int_equal(heads->n_vars, n);
}

static void same_functions(const gpul_ptx_module *heads, const gpul_ptx_module *whole)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < whole->n_funcs; i++) {
		const gpul_ptx_func *w = &whole->funcs[i], *h = &heads->funcs[n];

		if (w->kind == GPUL_PTX_FUNC_PROTOTYPE) /* skip prototypes, which are declared in bodies */
			continue;
		assert_true(n++ < heads->n_funcs);
		assert_string_equal(gpul_ptx_name(heads, h->name), gpul_ptx_name(whole, w->name));
		assert_int_equal(h->kind, w->kind);
		assert_int_equal(h->linkage, w->linkage);
		assert_int_equal(h->has_body, w->has_body);
		assert_int_equal(h->line, w->line);
		assert_int_equal(h->n_params, w->n_params);
		for (uint32_t k = 0; k < w->n_params; k++)
			same_variable(heads, &h->params[k], whole, &w->params[k]);
		assert_memory_equal(h->tuning.maxntid, w->tuning.maxntid, sizeof w->tuning.maxntid);
		assert_memory_equal(h->tuning.reqntid, w->tuning.reqntid, sizeof w->tuning.reqntid);
		same_shared(heads, h, whole, w);
		assert_int_equal(h->n_insts, 0);
	}
	assert_int_equal(heads->n_funcs, n);
}

static char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(8 << 20);

	assert_non_null(f);
	assert_non_null(text);
	*n = fread(text, 1, 8 << 20, f);
	fclose(f);
	return text;
}

static void agrees_with_the_whole_parser_on_the_corpus(void **state)
{
	glob_t found = { 0 };

	(void)state;
	assert_int_equal(glob("tests/corpus/ptx/*.ptx", 0, NULL, &found), 0);
	assert_int_equal(glob(GPUL_KERNELS "/tests/corpus/*.ptx", GLOB_APPEND, NULL, &found), 0);
	assert_true(found.gl_pathc > 40);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		size_t n;
		char *text = slurp(found.gl_pathv[i], &n);
		gpul_ptx_module *heads = NULL, *whole = NULL;

		assert_int_equal(gpul_ptx_parse(text, n, "k", &whole, NULL), GPUL_OK);
		assert_int_equal(gpul_ptx_parse_heads(text, n, "k", &heads, NULL), GPUL_OK);
		same_functions(heads, whole);
		gpul_ptx_module_destroy(heads);
		gpul_ptx_module_destroy(whole);
		free(text);
	}
	globfree(&found);
}

static void ignores_braces_and_directives_in_comments_and_strings_of_bodies(void **state)
{
	static const char text[] = HEAD ".entry a()\n{\n\t// } .shared .b32 no;\n\t/* }\n.shared .b32 no; */\n"
					"\t.pragma \"}{\";\n\t.shared .align 16 .b8 s[48]; .shared .f64 t, u[2];\n"
					"\tld.shared.u32 %r1, [s];\n\t{ .shared .b32 s; }\n"
					"\t.extern .shared .b8 dynamic[];\n\tst.v2.u32 [s], {%r1, %r2};\n}\n"
					".visible .entry b(.param .u64 p) { ret; }\n";
	gpul_error err = { 0 };
	gpul_ptx_module *m = heads_of(text, &err);

	(void)state;
	assert_string_equal(err.text, "");
	assert_int_equal(m->n_funcs, 2);
	assert_int_equal(m->funcs[0].n_vars, 4);
	assert_int_equal(m->funcs[0].vars[0].bytes, 48);
	assert_int_equal(m->funcs[0].vars[0].align, 16);
	assert_int_equal(m->funcs[0].vars[1].bytes, 8);
	assert_int_equal(m->funcs[0].vars[2].bytes, 16);
	assert_int_equal(m->funcs[0].vars[3].bytes, 4);
	assert_int_equal(m->funcs[1].n_params, 1);
	assert_int_equal(m->funcs[1].line, 16);
	gpul_ptx_module_destroy(m);
}

static void finds_shared_arrays_of_the_module_by_name(void **state)
{
	static const char *const pairs[][2] = { { "_ZZ1kvE1a", "_ZZ1kvE1b" }, { "x", "y" } };

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		const char *a = pairs[i][0], *b = pairs[i][1];
		gpul_error err = { 0 };
		char text[1024];

		snprintf(text, sizeof text,
			 HEAD ".shared .b32 %s;\n.shared .align 8 .b8 %s[24];\n.global .b32 %s_not;\n"
			      ".extern .shared .b8 dynamic[];\n"
			      ".entry one() { .reg .b32 r; mov.u32 r, %s; mov.u32 r, [%s+4]; ret; }\n"
			      ".entry both() { .shared .b8 own; ld.shared.u32 r, [%s]; st.shared.u8 [%s+1], r; }\n"
			      ".entry none() { // %s\n\tld.global.u32 r, [%s_not]; mov.u32 pre%s, 1; ret; }\n",
			 a, b, a, b, b, a, b, a, a, b);
		gpul_ptx_module *m = heads_of(text, &err);

		assert_string_equal(err.text, "");
		assert_int_equal(m->funcs[0].n_vars, 1);
		assert_string_equal(gpul_ptx_name(m, m->funcs[0].vars[0].name), b);
		assert_int_equal(m->funcs[1].n_vars, 3);
		assert_string_equal(gpul_ptx_name(m, m->funcs[1].vars[0].name), "own");
		assert_int_equal(m->funcs[1].vars[2].bytes, 24);
		assert_int_equal(m->funcs[2].n_vars, 0);
		gpul_ptx_module_destroy(m);
	}
}

static void skips_initializers(void **state)
{
	const char *text = HEAD ".global .b8 a[2][2] = {{1, 2}, /* } */ {3, 4}}, b = 5, c[] = {6, 7, 8};\n"
				".const .f32 d[1] = {0f3F800000}; // }\n"
				".shared .b32 s[6];\n"
				".entry k() { mov.u64 %rd1, s; ret; }\n";
	gpul_error err = { 0 };
	gpul_ptx_module *m = heads_of(text, &err), *cut = NULL;
	static const uint64_t bytes[] = { 4, 1, 3, 4, 24 };

	(void)state;
	assert_non_null(m);
	assert_int_equal(m->n_vars, 5);
	for (uint32_t i = 0; i < m->n_vars; i++)
		assert_int_equal(m->vars[i].bytes, bytes[i]);
	assert_int_equal(m->funcs[0].n_vars, 1);
	gpul_ptx_module_destroy(m);
	text = HEAD ".global .b8 a[2] = {1, 2";
	assert_int_equal(gpul_ptx_parse_heads(text, strlen(text), "k.ptx", &cut, &err), GPUL_EFORMAT);
}

static void reports_a_body_that_is_cut_short(void **state)
{
	static const char *const bad[] = {
		HEAD ".entry a() {",
		HEAD ".entry a() { {",
		HEAD ".entry a() { /* }",
		HEAD ".entry a() { \" }",
		HEAD ".entry a() { .shared .b32 s[",
		HEAD ".entry a() { .shared .b32 s; { }",
		HEAD ".entry a() { // }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		gpul_error err = { 0 };
		size_t n = strlen(bad[i]);
		char *exact = malloc(n); /* has no NUL at its end, so that AddressSanitizer detects a read past the end */
		gpul_ptx_module *m = NULL;

		assert_non_null(exact);
		memcpy(exact, bad[i], n);
		assert_int_equal(gpul_ptx_parse_heads(exact, n, "k.ptx", &m, &err), GPUL_EFORMAT);
		assert_null(m);
		assert_memory_equal(err.text, "k.ptx:4:", 8);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_whole_parser_on_the_corpus),
		cmocka_unit_test(ignores_braces_and_directives_in_comments_and_strings_of_bodies),
		cmocka_unit_test(finds_shared_arrays_of_the_module_by_name),
		cmocka_unit_test(skips_initializers),
		cmocka_unit_test(reports_a_body_that_is_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
