/* test_link.c — linking PTX modules: definitions, name collisions, and the errors that are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/link/ptx_link.h"

#define OLD_HEAD ".version 2.3\n.target sm_20\n.address_size 64\n"
#define HEAD     ".version 8.0\n.target sm_75\n.address_size 64\n"
#define FUNC(linkage, name, number) \
	linkage " .func (.param .b32 r) " name "(.param .b32 a)\n" \
		"{ .reg .b32 x; mov.b32 x, " number "; st.param.b32 [r], x; ret; }\n"
#define EXTERN_FUNC(name)  ".extern .func (.param .b32 r) " name "(.param .b32 a);\n"
#define CALL(name)         "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 1; call.uni (r), " name ", (a); }\n"
#define KERNEL(name, body) ".visible .entry " name "()\n{ .reg .b64 p;\n" body "ret; }\n"

enum { MOST = 4 };

/* Link texts with the names a, b, c, d; *out is the parsed result.  Returns the status of gpul_ptx_link(). */
static gpul_status try_link(const char *const *texts, gpul_ptx_module **out, gpul_error *err)
{
	static const char *const names[MOST] = { "a", "b", "c", "d" };
	gpul_ptx_link_input in[MOST];
	gpul_ptx_module *m[MOST] = { NULL };
	gpul_status st;
	char *text = NULL;
	size_t n = 0, n_bytes = 0;

	for (; n < MOST && texts[n]; n++) {
		if (gpul_ptx_parse(texts[n], strlen(texts[n]), names[n], &m[n], err))
			fail_msg("%s", err->text);
		in[n] = (gpul_ptx_link_input){ m[n], names[n] };
	}
	st = gpul_ptx_link(in, n, &text, &n_bytes, err);
	for (size_t i = 0; i < n; i++)
		gpul_ptx_module_destroy(m[i]);
	if (st) {
		assert_null(text);
		return st;
	}
	assert_int_equal(strlen(text), n_bytes);
	if (gpul_ptx_parse(text, n_bytes, "result", out, err))
		fail_msg("%s\n%s", err->text, text);
	free(text);
	return GPUL_OK;
}

#define TEXTS(...) ((const char *const[MOST + 1]){ __VA_ARGS__, NULL })

static gpul_ptx_module *link_texts(const char *const *texts)
{
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	if (try_link(texts, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

/* Fail unless linking fails with an error that contains each of the words. */
static void refused(const char *const *texts, const char *const *words)
{
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	assert_int_equal(try_link(texts, &m, &err), GPUL_EFORMAT);
	for (; *words; words++)
		if (!strstr(err.text, *words))
			fail_msg("no \"%s\" in \"%s\"", *words, err.text);
}

static uint32_t var_row(const gpul_ptx_module *m, const char *name, size_t *n)
{
	uint32_t row = GPUL_PTX_NONE;

	*n = 0;
	for (uint32_t i = 0; i < m->n_vars; i++)
		if (!strcmp(gpul_ptx_name(m, m->vars[i].name), name)) {
			row = i;
			++*n;
		}
	return row;
}

/* Return the only variable with this name. */
static const gpul_ptx_var *var(const gpul_ptx_module *m, const char *name)
{
	size_t n;
	uint32_t row = var_row(m, name, &n);

	if (n != 1)
		fail_msg("%zu variables called %s", n, name);
	return &m->vars[row];
}

static int64_t first_init(const gpul_ptx_module *m, const char *name)
{
	return m->inits[var(m, name)->first_init].i;
}

/* Return the constant that a function written by FUNC() returns; fail unless it has exactly one definition. */
static int64_t returned_value(const gpul_ptx_module *m, const char *name)
{
	const gpul_ptx_func *found = NULL;

	for (uint32_t i = 0; i < m->n_funcs; i++)
		if (m->funcs[i].has_body && !strcmp(gpul_ptx_name(m, m->funcs[i].name), name)) {
			assert_null(found);
			found = &m->funcs[i];
		}
	if (!found)
		fail_msg("no definition of %s", name);
	return found->operands[found->insts[0].first_operand + 1].value.i;
}

/* ---- definitions ------------------------------------------------------------------------- */

static void a_declaration_uses_the_definition_in_another_module(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD EXTERN_FUNC("f") ".extern .global .u32 v;\n" KERNEL("k", CALL("f") "mov.u64 p, v;"),
					      HEAD ".visible .global .u32 v = 7;\n" FUNC(".visible", "f", "41")));

	assert_int_equal(returned_value(m, "f"), 41);
	assert_int_equal(first_init(m, "v"), 7);
	assert_int_equal(var(m, "v")->linkage, GPUL_PTX_VISIBLE);
	assert_true(gpul_ptx_find_func(m, "k")->has_body);
	gpul_ptx_module_destroy(m);
}

static void two_strong_definitions_are_an_error_that_names_both_modules(void **state)
{
	(void)state;
	refused(TEXTS(HEAD FUNC(".visible", "f", "1"), HEAD FUNC(".visible", "f", "2")), TEXTS("'f'", "both a and b"));
	refused(TEXTS(HEAD ".visible .global .u32 v;", HEAD ".visible .global .u32 v;"), TEXTS("'v'", "both a and b"));
	refused(TEXTS(HEAD KERNEL("k", ""), HEAD KERNEL("k", "")), TEXTS("'k'", "both a and b"));
}

static void keeps_the_first_weak_definition_unless_one_is_strong(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD FUNC(".weak", "f", "1") FUNC(".weak", "g", "1") ".weak .global .u32 v = 1;",
					      HEAD FUNC(".weak", "f", "2") FUNC(".visible", "g", "2") ".weak .global .u32 v = 2;"));

	assert_int_equal(returned_value(m, "f"), 1);
	assert_int_equal(returned_value(m, "g"), 2);
	assert_int_equal(first_init(m, "v"), 1);
	gpul_ptx_module_destroy(m);
}

static void keeps_the_largest_of_several_common_variables(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(
		TEXTS(HEAD ".common .global .b8 v[4];", HEAD ".common .global .b8 v[16];", HEAD ".common .global .b8 v[8];"));

	assert_int_equal(var(m, "v")->bytes, 16);
	gpul_ptx_module_destroy(m);
}

static void names_the_function_that_refers_to_an_undefined_symbol(void **state)
{
	(void)state;
	refused(TEXTS(HEAD KERNEL("other", ""), HEAD EXTERN_FUNC("f") KERNEL("k", CALL("f"))), TEXTS("'f' is not defined", "'k' of b"));
	refused(TEXTS(HEAD ".extern .global .u32 v;\n.visible .global .u64 w = v;"), TEXTS("'v' is not defined", "'w' of a"));
	refused(TEXTS(HEAD ".visible .func f();\n" KERNEL("k", "call f;")), TEXTS("'f' is not defined"));
}

static void an_undefined_symbol_without_references_is_dropped(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD EXTERN_FUNC("f") ".extern .global .u32 v;\n" KERNEL("k", "")));

	assert_int_equal(m->n_vars, 0);
	assert_int_equal(m->n_funcs, 1);
	gpul_ptx_module_destroy(m);
}

static void functions_that_the_driver_provides_need_no_definition(void **state)
{
	(void)state;
	const char *text = HEAD EXTERN_FUNC("vprintf") EXTERN_FUNC("__assertfail") KERNEL("k", CALL("vprintf") CALL("__assertfail"));
	gpul_ptx_module *m = link_texts(TEXTS(text, HEAD EXTERN_FUNC("vprintf")));

	assert_non_null(gpul_ptx_find_func(m, "vprintf"));
	assert_non_null(gpul_ptx_find_func(m, "__assertfail"));
	gpul_ptx_module_destroy(m);
}

static void the_device_runtime_of_nvidia_is_left_out(void **state)
{
	(void)state;
	const char *text = HEAD EXTERN_FUNC("cudaGetLastError") EXTERN_FUNC("__cudaCDP2LaunchDeviceV2")
		KERNEL("k", CALL("cudaGetLastError") CALL("__cudaCDP2LaunchDeviceV2"));
	const char *runtime = HEAD EXTERN_FUNC(
		"only_in_its_driver") ".visible .func cudaGetLastError() { call only_in_its_driver; ret; }\n";
	gpul_ptx_module *m = link_texts(TEXTS(text, runtime));

	assert_false(gpul_ptx_find_func(m, "cudaGetLastError")->has_body);
	assert_null(gpul_ptx_find_func(m, "only_in_its_driver"));
	gpul_ptx_module_destroy(m);
}

static void dynamic_shared_memory_gets_the_largest_alignment(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD ".extern .shared .align 4 .b8 s[];\n" KERNEL("k", "mov.u64 p, s;"),
					      HEAD ".extern .shared .align 16 .b8 s[];\n" KERNEL("l", "mov.u64 p, s;")));

	assert_int_equal(var(m, "s")->align, 16);
	assert_int_equal(var(m, "s")->linkage, GPUL_PTX_EXTERN);
	gpul_ptx_module_destroy(m);
}

/* ---- conflicting declarations ------------------------------------------------------------ */

static void refuses_declarations_that_differ_in_kind_size_or_parameters(void **state)
{
	(void)state;
	const char *f = HEAD FUNC(".visible", "f", "1");

	refused(TEXTS(f, HEAD ".extern .func (.param .b32 r) f(.param .b64 a);"), TEXTS("'f'", "parameters"));
	refused(TEXTS(f, HEAD ".extern .func (.param .b32 r) f();"), TEXTS("'f'", "parameters"));
	refused(TEXTS(f, HEAD ".extern .func f(.param .b32 a);"), TEXTS("'f'", "results"));
	refused(TEXTS(f, HEAD ".extern .global .u32 f;"), TEXTS("'f'", "function", "variable"));
	refused(TEXTS(HEAD KERNEL("f", ""), HEAD ".extern .func f();"), TEXTS("'f'", "kernel"));
	refused(TEXTS(HEAD ".visible .global .u32 v;", HEAD ".extern .global .u64 v;"), TEXTS("'v'", "size", "a and b"));
	refused(TEXTS(HEAD ".visible .global .u32 v;", HEAD ".extern .const .u32 v;"), TEXTS("'v'", "__constant__"));
}

/* ptxas -c refuses these variables too, because it compiles for the ABI. */
static void refuses_registers_and_local_variables_of_module_scope(void **state)
{
	(void)state;
	refused(TEXTS(OLD_HEAD ".reg .u32 %r<4>;"), TEXTS("a cannot be linked", ".reg '%r'"));
	refused(TEXTS(HEAD KERNEL("k", ""), OLD_HEAD ".local .u32 x;"), TEXTS("b cannot be linked", ".local 'x'"));
}

static void an_extern_array_without_a_size_matches_every_size(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(
		TEXTS(HEAD ".extern .global .b8 v[];\n" KERNEL("k", "mov.u64 p, v;"), HEAD ".visible .global .b8 v[12];"));

	assert_int_equal(var(m, "v")->bytes, 12);
	gpul_ptx_module_destroy(m);
}

/* ---- private names ----------------------------------------------------------------------- */

static void renames_a_colliding_private_name_and_all_references_to_it(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD ".global .u32 v = 1;\n.visible .global .u64 a = v;\n" FUNC("", "f", "1"),
					      HEAD ".global .u32 v = 2;\n.visible .global .u64 b = v;\n" FUNC("", "f", "2")
						      KERNEL("k", CALL("f")),
					      HEAD ".visible .global .u32 v = 3;\n" FUNC(".visible", "f", "3")));
	const gpul_ptx_init *b = &m->inits[var(m, "b")->first_init];
	const gpul_ptx_init *a = &m->inits[var(m, "a")->first_init];

	assert_int_equal(first_init(m, "v"), 3);
	assert_int_equal(returned_value(m, "f"), 3);
	assert_int_equal(m->inits[m->vars[a->index].first_init].i, 1);
	assert_int_equal(m->inits[m->vars[b->index].first_init].i, 2);
	const gpul_ptx_func *k = gpul_ptx_find_func(m, "k");
	for (uint32_t i = 0; i < k->n_operands; i++)
		if (k->operands[i].ref_kind == GPUL_PTX_REF_FUNC)
			assert_int_equal(returned_value(m, gpul_ptx_name(m, m->funcs[k->operands[i].index].name)), 2);
	gpul_ptx_module_destroy(m);
}

static void a_new_name_is_unused_in_all_modules(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD ".global .u32 v = 1;\n.visible .global .u32 v__2 = 10;",
					      HEAD ".global .u32 v = 2;\n.visible .entry k(.param .u32 v__3)\n"
						   "{ .reg .u32 v__4; .reg .u64 p; mov.u64 p, v; ret; }"));

	assert_int_equal(first_init(m, "v"), 1);
	assert_int_equal(first_init(m, "v__2"), 10);
	assert_int_equal(first_init(m, "v__5"), 2);
	gpul_ptx_module_destroy(m);
}

/* ---- order ------------------------------------------------------------------------------- */

static void a_variable_is_printed_after_those_that_its_value_refers_to(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD ".extern .global .u64 c;\n.visible .global .u64 d = c;",
					      HEAD ".extern .global .u64 a;\n.visible .global .u64 b = a;\n"
						   ".visible .global .u64 c = generic(b);",
					      HEAD ".visible .global .u64 a = 5;"));

	assert_int_equal(first_init(m, "a"), 5);
	for (uint32_t i = 0; i < m->n_vars; i++)
		assert_int_equal(m->vars[i].linkage, GPUL_PTX_VISIBLE);
	gpul_ptx_module_destroy(m);
}

static void two_variables_that_hold_each_others_address_are_linked(void **state)
{
	(void)state;
	size_t n;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD ".extern .global .u64 b;\n.visible .global .u64 a = b;",
					      HEAD ".extern .global .u64 a;\n.visible .global .u64 b = a;"));

	assert_int_not_equal(var_row(m, "a", &n), GPUL_PTX_NONE);
	assert_int_not_equal(var_row(m, "b", &n), GPUL_PTX_NONE);
	gpul_ptx_module_destroy(m);
}

static void a_variable_that_holds_its_own_address_is_linked(void **state)
{
	(void)state;
	size_t n;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD ".extern .global .u64 a;\n.visible .global .u64 a = a;"));

	assert_int_not_equal(var_row(m, "a", &n), GPUL_PTX_NONE);
	gpul_ptx_module_destroy(m);
}

static void two_modules_may_call_each_other(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(
		TEXTS(HEAD EXTERN_FUNC("f") KERNEL("k", CALL("f")) FUNC(".visible", "g", "1"),
		      HEAD EXTERN_FUNC("g") ".visible .func (.param .b32 r) f(.param .b32 a0)\n{" CALL("g") "ret; }"));

	assert_true(gpul_ptx_find_func(m, "f")->has_body);
	gpul_ptx_module_destroy(m);
}

static void an_alias_counts_as_a_definition(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD EXTERN_FUNC("alias") KERNEL("k", CALL("alias")),
					      HEAD FUNC(".visible", "f", "6") ".visible .func (.param .b32 r) alias(.param .b32 a);\n"
									      ".alias alias, f;\n"));

	assert_int_equal(m->n_aliases, 1);
	assert_string_equal(gpul_ptx_name(m, m->funcs[m->aliases[0].aliasee].name), "f");
	gpul_ptx_module_destroy(m);
}

static void a_variable_can_hold_the_address_of_another_modules_kernel(void **state)
{
	(void)state;
	gpul_ptx_module *m = link_texts(TEXTS(HEAD ".extern .entry k();\n.visible .global .u64 v = k;\n", HEAD KERNEL("k", "")));
	const gpul_ptx_init *i = &m->inits[var(m, "v")->first_init];

	assert_int_equal(i->ref_kind, GPUL_PTX_REF_FUNC);
	assert_true(m->funcs[m->funcs[i->index].definition].has_body);
	gpul_ptx_module_destroy(m);
}

/* ---- head and lines ---------------------------------------------------------------------- */

static void target_is(const char *a, const char *b, const char *expected)
{
	char text_a[128], text_b[128];
	gpul_ptx_module *m;

	snprintf(text_a, sizeof text_a, ".version 8.6\n.target %s\n.address_size 64\n", a);
	snprintf(text_b, sizeof text_b, ".version 8.3\n.target %s\n.address_size 64\n", b);
	m = link_texts(TEXTS(text_a, text_b));
	assert_string_equal(gpul_ptx_name(m, m->target), expected);
	assert_int_equal(m->version_major, 8);
	assert_int_equal(m->version_minor, 6);
	gpul_ptx_module_destroy(m);
	m = link_texts(TEXTS(text_b, text_a));
	assert_string_equal(gpul_ptx_name(m, m->target), expected);
	gpul_ptx_module_destroy(m);
}

static void the_target_is_the_lowest_that_runs_all_inputs(void **state)
{
	(void)state;
	target_is("sm_75", "sm_90", "sm_90");
	target_is("sm_90a", "sm_75", "sm_90a");
	target_is("sm_90a", "sm_90", "sm_90a");
	target_is("sm_100f", "sm_103", "sm_103f");
	target_is("sm_100f", "sm_100a", "sm_100a");
	target_is("sm_100f", "sm_103a", "sm_103a");
	target_is("sm_75, debug", "sm_75", "sm_75");
}

static void refuses_targets_that_no_single_device_can_run(void **state)
{
	(void)state;
#define TARGET(t) ".version 8.6\n.target " t "\n.address_size 64\n"
	refused(TEXTS(TARGET("sm_90a"), TARGET("sm_100")), TEXTS("sm_90a", "sm_100", "no device"));
	refused(TEXTS(TARGET("sm_90a"), TARGET("sm_100a")), TEXTS("sm_90a", "sm_100a"));
	refused(TEXTS(TARGET("sm_100f"), TARGET("sm_120")), TEXTS("sm_100f", "sm_120"));
	refused(TEXTS(TARGET("sm_75"), TARGET("sm_75, texmode_independent")), TEXTS("texmode_independent"));
	refused(TEXTS(HEAD, ".version 8.0\n.target sm_75\n.address_size 32\n"), TEXTS("64", "32", "addresses"));
}

static void source_lines_keep_their_files(void **state)
{
	(void)state;
#define LINES(name) KERNEL(name, ".loc 1 10 2\n.loc 2 20 2, function_name $L, inlined_at 1 10 2\n")
#define DWARF       ".section .debug_str { $L: .b8 0 }\n"
	gpul_ptx_module *m = link_texts(TEXTS(HEAD DWARF ".file 1 \"common.h\"\n.file 2 \"a.cu\"\n" LINES("k"),
					      HEAD DWARF ".file 1 \"b.cu\"\n.file 2 \"common.h\"\n" LINES("l")));
	const char *const expected[] = { "common.h", "a.cu", "b.cu", "common.h" };

	assert_int_equal(m->n_files, 3);
	assert_int_equal(m->n_sections, 0);
	assert_int_equal(m->n_locs, 4);
	for (uint32_t i = 0; i < m->n_locs; i++)
		for (uint32_t k = 0; k < m->n_files; k++)
			if (m->files[k].number == m->locs[i].file)
				assert_string_equal(gpul_ptx_name(m, m->files[k].path), expected[i]);
	gpul_ptx_module_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_declaration_uses_the_definition_in_another_module),
		cmocka_unit_test(two_strong_definitions_are_an_error_that_names_both_modules),
		cmocka_unit_test(keeps_the_first_weak_definition_unless_one_is_strong),
		cmocka_unit_test(keeps_the_largest_of_several_common_variables),
		cmocka_unit_test(names_the_function_that_refers_to_an_undefined_symbol),
		cmocka_unit_test(an_undefined_symbol_without_references_is_dropped),
		cmocka_unit_test(functions_that_the_driver_provides_need_no_definition),
		cmocka_unit_test(the_device_runtime_of_nvidia_is_left_out),
		cmocka_unit_test(dynamic_shared_memory_gets_the_largest_alignment),
		cmocka_unit_test(refuses_declarations_that_differ_in_kind_size_or_parameters),
		cmocka_unit_test(refuses_registers_and_local_variables_of_module_scope),
		cmocka_unit_test(an_extern_array_without_a_size_matches_every_size),
		cmocka_unit_test(renames_a_colliding_private_name_and_all_references_to_it),
		cmocka_unit_test(a_new_name_is_unused_in_all_modules),
		cmocka_unit_test(a_variable_is_printed_after_those_that_its_value_refers_to),
		cmocka_unit_test(two_variables_that_hold_each_others_address_are_linked),
		cmocka_unit_test(a_variable_that_holds_its_own_address_is_linked),
		cmocka_unit_test(two_modules_may_call_each_other),
		cmocka_unit_test(an_alias_counts_as_a_definition),
		cmocka_unit_test(a_variable_can_hold_the_address_of_another_modules_kernel),
		cmocka_unit_test(the_target_is_the_lowest_that_runs_all_inputs),
		cmocka_unit_test(refuses_targets_that_no_single_device_can_run),
		cmocka_unit_test(source_lines_keep_their_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
