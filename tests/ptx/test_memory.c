/* test_memory.c — parser, printer and linker when memory runs out: every allocation fails in turn.
 *
 * This program replaces malloc.  Sanitizers replace it too, so a sanitized build skips this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/link/ptx_link.h"
#include "ptx/module.h"

#ifdef __has_feature
#define CLANG_HAS(x) __has_feature(x)
#else
#define CLANG_HAS(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || CLANG_HAS(address_sanitizer) || CLANG_HAS(thread_sanitizer) || \
	!defined(__GLIBC__)

int main(void)
{
	printf("skipped: the sanitizer replaces malloc\n");
	return 77;
}

#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void __libc_free(void *p);

static bool counting;
static long n_calls, fail_at, n_alive;

static bool must_fail(void)
{
	return counting && ++n_calls == fail_at;
}

static void *count_allocation(void *p)
{
	n_alive += counting && p;
	return p;
}

void *malloc(size_t bytes)
{
	return must_fail() ? NULL : count_allocation(__libc_malloc(bytes));
}

void *calloc(size_t n, size_t bytes)
{
	return must_fail() ? NULL : count_allocation(__libc_calloc(n, bytes));
}

void *realloc(void *p, size_t bytes)
{
	if (must_fail())
		return NULL;
	return p ? __libc_realloc(p, bytes) : count_allocation(__libc_malloc(bytes));
}

void free(void *p)
{
	n_alive -= counting && p;
	__libc_free(p);
}

/* PTX with at least one row for each table of the model. */
static const char text[] = ".version 8.4\n.target sm_80\n.address_size 64\n"
			   ".file 1 \"a.cu\"\n.pragma \"nounroll\";\n"
			   ".global .u32 a[2][2] = {{1, 2}, {3, 4}};\n"
			   ".func (.param .b32 r) f(.param .b32 x) { ret; }\n"
			   ".func (.param .b32 r) g(.param .b32 x);\n"
			   ".alias g, f;\n"
			   ".visible .entry k(.param .u64 p)\n"
			   "{\n"
			   "\t.reg .b32 %r<9>;\n\t.reg .pred q;\n\t.local .u32 l[4];\n"
			   "\t.loc 1 2 3\n"
			   "targets: .branchtargets one, two;\n"
			   "\tsetp.eq.unheard_of.s32 q|_, %r1, {%r2, %r3};\n"
			   "one:\n\t@q bra two;\n"
			   "\t{\n\t.reg .b32 %r5;\n\tmov.b32 %r5, 7;\n\tprototype: "
			   ".callprototype (.param .b32 _) _ (.param .b32 _);\n\t}\n"
			   "two:\n\tret;\n"
			   "}\n"
			   ".section .debug_str { .b8 1 }\n";

/* Linked with the text above; it has a private name that collides, and two variables that refer to each other. */
static const char other[] = ".version 8.4\n.target sm_80\n.address_size 64\n"
			    ".file 7 \"b.cu\"\n.global .u32 a = 5;\n.extern .global .u64 c;\n"
			    ".visible .global .u64 b[2] = { c, a };\n"
			    ".visible .global .u64 c = generic(b);\n"
			    ".visible .entry l() { .loc 7 1 1\n ret; }\n";

/* Parse, print and link; true on success, and n_calls is then the number of allocations. */
static bool parse_print_and_link(void)
{
	gpul_ptx_module *m = NULL, *n = NULL;
	gpul_error err = { 0 };
	char *printed = NULL, *linked = NULL;
	gpul_status st;

	st = gpul_ptx_parse(text, sizeof text - 1, "memory.ptx", &m, &err);
	if (!st)
		st = gpul_ptx_print(m, &printed, NULL, &err);
	if (!st)
		st = gpul_ptx_parse(other, sizeof other - 1, "other.ptx", &n, &err);
	if (!st) {
		const gpul_ptx_link_input inputs[] = { { m, "memory.ptx" }, { n, "other.ptx" } };

		st = gpul_ptx_link(inputs, 2, &linked, NULL, &err);
	}
	assert_int_equal(st, err.status);
	assert_true(st == GPUL_OK || st == GPUL_ENOMEM);
	assert_true(st == GPUL_OK || linked == NULL);
	gpul_ptx_module_destroy(m);
	gpul_ptx_module_destroy(n);
	free(printed);
	free(linked);
	return st == GPUL_OK;
}

static void frees_everything_whichever_allocation_fails(void **state)
{
	bool done = false;

	(void)state;
	for (fail_at = 1; !done; fail_at++) {
		n_calls = n_alive = 0;
		counting = true;
		done = parse_print_and_link();
		counting = false;
		assert_int_equal(n_alive, 0);
		assert_true(fail_at < 10000);
	}
	assert_in_range(n_calls, 30, 9999); /* the loop has failed each allocation in turn */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frees_everything_whichever_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
