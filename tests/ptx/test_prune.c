/* test_prune.c — removing the parts of PTX that a kernel does not use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/link/ptx_link.h"
#include "ptx/link/prune.h"

#define HEAD                      ".version 8.0\n.target sm_75\n.address_size 64\n"
#define FUNC(linkage, name, body) linkage ".func " name "()\n{\n" body "ret;\n}\n"
#define KERNEL(name, body)        ".visible .entry " name "()\n{\n.reg .b64 p;\n" body "ret;\n}\n"

enum { MOST = 4 };

static bool is_k(void *context, const char *kernel)
{
	(void)context;
	return !strcmp(kernel, "k");
}

struct pruned {
	gpul_ptx_text texts[MOST];
	gpul_ptx_prune_result result;
};

static struct pruned prune(const char *const *texts, size_t table_bytes)
{
	const gpul_ptx_prune_options o = { is_k, NULL, table_bytes };
	struct pruned p = { 0 };
	gpul_error err = { 0 };
	size_t n = 0;

	for (; n < MOST && texts[n]; n++)
		p.texts[n] = (gpul_ptx_text){ .text = texts[n], .n_bytes = strlen(texts[n]) };
	if (gpul_ptx_prune(p.texts, n, &o, &p.result, &err))
		fail_msg("%s", err.text);
	return p;
}

static void free_pruned(struct pruned *p)
{
	for (size_t i = 0; i < MOST; i++)
		free(p->texts[i].pruned);
}

#define TEXTS(...) ((const char *const[MOST + 1]){ __VA_ARGS__, NULL })
#define PRUNE(...) prune(TEXTS(__VA_ARGS__), SIZE_MAX)

static bool has(const struct pruned *p, size_t text, const char *what)
{
	return p->texts[text].pruned && strstr(p->texts[text].pruned, what);
}

/* Link what pruning has left, and parse the result. */
static gpul_ptx_module *link_pruned(const struct pruned *p)
{
	gpul_ptx_link_input in[MOST + 1];
	gpul_ptx_module *m[MOST + 1], *linked = NULL;
	gpul_error err = { 0 };
	char *text = NULL;
	size_t n = 0, n_bytes = 0;

	for (size_t i = 0; i < MOST; i++)
		if (p->texts[i].pruned) {
			if (gpul_ptx_parse(p->texts[i].pruned, p->texts[i].pruned_bytes, "in", &m[n], &err))
				fail_msg("%s\n%s", err.text, p->texts[i].pruned);
			in[n] = (gpul_ptx_link_input){ m[n], "in" };
			n++;
		}
	if (p->result.failing) {
		assert_int_equal(gpul_ptx_parse(p->result.failing, strlen(p->result.failing), "gpuload", &m[n], &err), GPUL_OK);
		in[n] = (gpul_ptx_link_input){ m[n], "gpuload" };
		n++;
	}
	if (gpul_ptx_link(in, n, &text, &n_bytes, &err) || gpul_ptx_parse(text, n_bytes, "linked", &linked, &err))
		fail_msg("%s\n%s", err.text, text ? text : "");
	free(text);
	for (size_t i = 0; i < n; i++)
		gpul_ptx_module_destroy(m[i]);
	return linked;
}

static void keeps_what_the_kernel_reaches_in_all_texts(void **state)
{
	(void)state;
	struct pruned p = PRUNE(HEAD ".extern .func f();\n.extern .func unused();\n" KERNEL("k", "call.uni f;\n")
					KERNEL("other", "call.uni unused;\n"),
				HEAD ".global .u32 v = 7;\n" FUNC(".visible ", "f", ".reg .b64 q;\nmov.u64 q, v;\n")
					FUNC(".visible ", "g", ""),
				HEAD FUNC(".visible ", "unused", ""));

	assert_true(has(&p, 0, ".entry k") && !has(&p, 0, "other") && !has(&p, 0, "unused"));
	assert_true(has(&p, 1, ".func f") && has(&p, 1, "v = 7") && !has(&p, 1, ".func g"));
	assert_null(p.texts[2].pruned);
	assert_int_equal(p.result.n_functions, 5);
	assert_int_equal(p.result.n_left_out, 3);
	gpul_ptx_module *m = link_pruned(&p);
	assert_int_equal(m->n_vars, 1);
	gpul_ptx_module_destroy(m);
	free_pruned(&p);
}

static void what_is_left_out_keeps_its_lines(void **state)
{
	(void)state;
	struct pruned p = PRUNE(
		HEAD FUNC(".visible ", "long_one", "{ .shared .u32 s; }\n// }\n.pragma \"}\";\n") "/* a\n b */ " KERNEL("k", ""));
	size_t lines[2] = { 0, 0 };

	for (const char *at = p.texts[0].text; at < strstr(p.texts[0].text, ".entry k"); at++)
		lines[0] += *at == '\n';
	for (const char *at = p.texts[0].pruned; at < strstr(p.texts[0].pruned, ".entry k"); at++)
		lines[1] += *at == '\n';
	assert_false(has(&p, 0, "long_one"));
	assert_int_equal(lines[0], lines[1]);
	free_pruned(&p);
}

static void a_private_name_is_that_of_the_same_text(void **state)
{
	(void)state;
	struct pruned p = PRUNE(HEAD FUNC("", "f", "// first\n") KERNEL("k", "call.uni f;\n"),
				HEAD FUNC("", "f", "// second\n") FUNC(".visible ", "g", "call.uni f;\n"));

	assert_true(has(&p, 0, "// first"));
	assert_null(p.texts[1].pruned);
	free_pruned(&p);
}

static void keeps_weak_definitions_aliases_and_shared_arrays(void **state)
{
	(void)state;
	struct pruned p = PRUNE(HEAD ".extern .shared .align 4 .b8 dynamic[];\n.shared .u32 other;\n" FUNC(".weak ", "f", "")
					KERNEL("k", "call.uni f;\nmov.u64 p, dynamic;\ncall.uni b;\n"),
				HEAD FUNC(".weak ", "f", ""), HEAD FUNC(".visible ", "a", "") ".visible .func b();\n.alias b, a;\n");

	assert_true(has(&p, 0, "dynamic[]") && !has(&p, 0, "other"));
	assert_true(has(&p, 1, ".func f"));
	assert_true(has(&p, 2, ".func a") && has(&p, 2, ".alias b, a"));
	free_pruned(&p);
}

static void functions_of_a_table_are_linked_if_they_are_small(void **state)
{
	static const char *const texts[] = {
		HEAD ".extern .global .u64 table[2];\n" KERNEL("k", "mov.u64 p, table;\n"),
		HEAD FUNC("", "inner", "// inner\n") FUNC(".visible ", "f", "// f\ncall.uni inner;\n")
			FUNC(".visible ", "g", "// g\n") ".visible .global .u64 table[2] = { f, g };\n",
		NULL,
	};
	struct pruned all = prune(texts, 1000), none = prune(texts, 20);

	(void)state;
	assert_true(has(&all, 1, "// f\n") && has(&all, 1, "// g\n") && has(&all, 1, "// inner"));
	assert_null(all.result.failing);
	assert_true(has(&none, 1, ".func f") && !has(&none, 1, "// f\n") && !has(&none, 1, "// g\n") && !has(&none, 1, "inner"));
	assert_int_equal(none.result.n_failing, 2);
	gpul_ptx_module *m = link_pruned(&none);
	const gpul_ptx_func *f = gpul_ptx_find_func(m, "f");
	assert_true(f->has_body && f->n_insts == 1 && f->insts[0].opcode == GPUL_PTX_CALL);
	assert_true(gpul_ptx_find_func(m, "gpuload_not_linked")->has_body);
	gpul_ptx_module_destroy(m);
	free_pruned(&all);
	free_pruned(&none);
}

static void a_function_that_code_names_is_linked_whatever_its_size(void **state)
{
	(void)state;
	struct pruned p = prune(TEXTS(HEAD FUNC(".visible ", "f", "// f\n") ".visible .global .u64 table[1] = { f };\n" KERNEL(
					"k", "mov.u64 p, table;\ncall.uni f;\n")),
				0);

	assert_true(has(&p, 0, "// f\n"));
	assert_null(p.result.failing);
	free_pruned(&p);
}

static void refuses_text_that_is_not_ptx_and_texts_without_the_kernel(void **state)
{
	static const char *const bad[] = { HEAD ".visible .entry k() {", HEAD ".visible .func f() { }", "", HEAD ".visible .entry k( {",
					   HEAD "\"" };
	const gpul_ptx_prune_options o = { is_k, NULL, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		gpul_ptx_text text = { .text = bad[i], .n_bytes = strlen(bad[i]) };
		gpul_ptx_prune_result result;
		gpul_error err = { 0 };

		assert_int_equal(gpul_ptx_prune(&text, 1, &o, &result, &err), GPUL_EFORMAT);
		assert_null(text.pruned);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_the_kernel_reaches_in_all_texts),
		cmocka_unit_test(what_is_left_out_keeps_its_lines),
		cmocka_unit_test(a_private_name_is_that_of_the_same_text),
		cmocka_unit_test(keeps_weak_definitions_aliases_and_shared_arrays),
		cmocka_unit_test(functions_of_a_table_are_linked_if_they_are_small),
		cmocka_unit_test(a_function_that_code_names_is_linked_whatever_its_size),
		cmocka_unit_test(refuses_text_that_is_not_ptx_and_texts_without_the_kernel),
	};

	return cmocka_run_group_tests_name("pruning PTX", tests, NULL, NULL);
}
