/* test_lazy.c — gpul_ptx_parse_lazy() and gpul_ptx_need_body() give the same module as gpul_ptx_parse(), in whatever order bodies
 * are needed. */
#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/module.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

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

static char *print_of(const gpul_ptx_module *m)
{
	char *text = NULL;

	assert_int_equal(gpul_ptx_print(m, &text, NULL, NULL), GPUL_OK);
	return text;
}

static void need_all_backwards(gpul_ptx_module *m)
{
	gpul_error err = { 0 };

	for (uint32_t row = m->n_funcs; row-- > 0;)
		if (gpul_ptx_need_body(m, row, &err))
			fail_msg("%s", err.text);
}

static void same_as_the_whole_parser(const char *text, size_t n)
{
	gpul_ptx_module *lazy = NULL, *whole = NULL;
	char *a, *b;

	assert_int_equal(gpul_ptx_parse(text, n, "k", &whole, NULL), GPUL_OK);
	assert_int_equal(gpul_ptx_parse_lazy(text, n, "k", &lazy, NULL), GPUL_OK);
	need_all_backwards(lazy);
	assert_int_equal(lazy->address_size, whole->address_size);
	a = print_of(lazy);
	b = print_of(whole);
	assert_string_equal(a, b);
	free(a);
	free(b);
	gpul_ptx_module_destroy(lazy);
	gpul_ptx_module_destroy(whole);
}

static void agrees_with_the_whole_parser(void **state)
{
	glob_t found = { 0 };

	(void)state;
	assert_int_equal(glob("tests/ptx/good/*.ptx", 0, NULL, &found), 0);
	assert_int_equal(glob("tests/corpus/ptx/*.ptx", GLOB_APPEND, NULL, &found), 0);
	assert_int_equal(glob(GPUL_KERNELS "/tests/corpus/*.ptx", GLOB_APPEND, NULL, &found), 0);
	assert_true(found.gl_pathc > 60);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		size_t n;
		char *text = slurp(found.gl_pathv[i], &n);

		same_as_the_whole_parser(text, n);
		free(text);
	}
	globfree(&found);
}

static void a_body_has_no_instructions_before_it_is_needed(void **state)
{
	static const char text[] = HEAD
		".func f() { ret; }\n.entry a(.param .u32 n) { .shared .b32 s; call f; { ret; } }\n.entry b() { ret; }";
	gpul_ptx_module *m = NULL;
	const gpul_ptx_func *funcs;

	(void)state;
	assert_int_equal(gpul_ptx_parse_lazy(text, sizeof text - 1, "k", &m, NULL), GPUL_OK);
	funcs = m->funcs;
	assert_int_equal(m->n_funcs, 3);
	assert_int_equal(funcs[1].n_insts, 0);
	assert_int_equal(funcs[1].n_vars, 1);
	assert_int_equal(funcs[1].params[0].bytes, 4);
	assert_int_equal(gpul_ptx_need_body(m, 1, NULL), GPUL_OK);
	assert_int_equal(funcs[1].n_insts, 2);
	assert_int_equal(funcs[2].n_insts, 0);
	assert_ptr_equal(m->funcs, funcs);
	gpul_ptx_module_destroy(m);
}

static void rows_do_not_move_when_bodies_add_more(void **state)
{
	enum { BODIES = 300 };
	size_t n = 0, room = 400 * BODIES + 1000;
	char *text = malloc(room);
	gpul_ptx_module *m = NULL;
	const char **strings;
	const uint64_t *dims;

	(void)state;
	assert_non_null(text);
	n += (size_t)snprintf(text + n, room - n, HEAD);
	for (int k = 0; k < BODIES; k++)
		n += (size_t)snprintf(
			text + n, room - n,
			".entry k%d()\n{ .reg .b64 %%only%d; .local .b8 a%d[%d]; .reg .b32 r;\np%d: .callprototype (.param .b32 _) _ (.param "
			".b64 _[%d]);\n.loc 1 %d 1\nmov.u64 %%only%d, a%d;\nadd.odd%d r, r, 1; ret; }\n",
			k, k, k, k + 1, k, k + 1, k + 1, k, k, k % 200);
	assert_int_equal(gpul_ptx_parse_lazy(text, n, "k", &m, NULL), GPUL_OK);
	strings = m->strings;
	dims = m->dims;
	need_all_backwards(m);
	assert_ptr_equal(m->strings, strings);
	assert_ptr_equal(m->dims, dims);
	assert_int_equal(m->n_funcs, 2 * BODIES);
	assert_int_equal(m->n_locs, BODIES);
	assert_int_equal(m->n_extra_mods, 200);
	gpul_ptx_module_destroy(m);
	same_as_the_whole_parser(text, n);
	free(text);
}

static void an_error_in_a_body_is_reported_when_it_is_needed(void **state)
{
	static const char text[] = HEAD ".entry a() { ret; }\n.entry b() { mov.u32 nothing, 1; }\n.entry c() { ret; }";
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_ptx_parse_lazy(text, sizeof text - 1, "k.ptx", &m, &err), GPUL_OK);
	assert_int_equal(gpul_ptx_need_body(m, 0, &err), GPUL_OK);
	assert_int_equal(gpul_ptx_need_body(m, 1, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "k.ptx:5:22: 'nothing' is not declared"));
	assert_int_equal(gpul_ptx_need_body(m, 0, &err), GPUL_OK);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_ptx_need_body(m, 2, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "an earlier body could not be parsed"));
	gpul_ptx_module_destroy(m);
	m = NULL;
	assert_int_equal(gpul_ptx_parse_lazy(HEAD ".entry a() { ret;", sizeof HEAD + 16, "k.ptx", &m, &err), GPUL_EFORMAT);
	assert_null(m);
}

static void more_names_than_characters_are_refused(void **state)
{
	static const char *const texts[] = { HEAD ".shared .b32 a<60000>;\n.entry k() { ret; }",
					     HEAD ".entry k() { .local .b32 a<60000>; ret; }" };

	(void)state;
	for (int in_body = 0; in_body < 2; in_body++) {
		gpul_ptx_module *m = NULL;
		gpul_error err = { 0 };
		gpul_status st = gpul_ptx_parse_lazy(texts[in_body], strlen(texts[in_body]), "k.ptx", &m, &err);

		assert_int_equal(st, in_body ? GPUL_OK : GPUL_ENOMEM);
		if (in_body)
			assert_int_equal(gpul_ptx_need_body(m, 0, &err), GPUL_ENOMEM);
		assert_non_null(strstr(err.text, "names"));
		gpul_ptx_module_destroy(m);
	}
}

static void *need_some(void *module)
{
	gpul_ptx_module *m = module;

	for (uint32_t row = 0; row < 64; row++) {
		assert_int_equal(gpul_ptx_need_body(m, row * 29 % 64, NULL), GPUL_OK);
		assert_int_equal(m->funcs[row * 29 % 64].n_insts, 2);
		assert_string_equal(gpul_ptx_name(m, m->funcs[row * 29 % 64].regs[0].name), "r");
	}
	gpul_ptx_module_destroy(m);
	return NULL;
}

static void threads_share_a_module(void **state)
{
	char text[8192];
	size_t n = 0;
	gpul_ptx_module *m = NULL;
	pthread_t threads[4];

	(void)state;
	n += (size_t)snprintf(text + n, sizeof text - n, HEAD);
	for (int k = 0; k < 64; k++)
		n += (size_t)snprintf(text + n, sizeof text - n, ".entry k%d() { .reg .b32 r; mov.u32 r, %d; ret; }\n", k, k);
	assert_int_equal(gpul_ptx_parse_lazy(text, n, "k", &m, NULL), GPUL_OK);
	for (int k = 0; k < 4; k++)
		assert_int_equal(pthread_create(&threads[k], NULL, need_some, gpul_ptx_module_share(m)), 0);
	gpul_ptx_module_destroy(m);
	for (int k = 0; k < 4; k++)
		pthread_join(threads[k], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_whole_parser),
		cmocka_unit_test(a_body_has_no_instructions_before_it_is_needed),
		cmocka_unit_test(rows_do_not_move_when_bodies_add_more),
		cmocka_unit_test(an_error_in_a_body_is_reported_when_it_is_needed),
		cmocka_unit_test(more_names_than_characters_are_refused),
		cmocka_unit_test(threads_share_a_module),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
