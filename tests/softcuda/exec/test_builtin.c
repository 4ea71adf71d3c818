/* test_builtin.c — printf, malloc, free and assert from a kernel. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#define EXTERNS \
	".extern .func (.param .b32 v) vprintf (.param .b64 f, .param .b64 a);\n" \
	".extern .func (.param .b64 v) malloc (.param .b64 n);\n" \
	".extern .func free (.param .b64 p);\n" \
	".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);\n"

/* Write PTX with `format` as a .b8 array, and a kernel that fills the 48 bytes of arguments by the instructions
 * `fill` and calls vprintf. */
static struct rig *open_printf(const char *format, const char *fill)
{
	char text[8192];
	size_t n;

	n = (size_t)snprintf(text, sizeof text, "%s.global .align 1 .b8 fmt[%zu] = {", PTX_HEADER EXTERNS, strlen(format) + 1);
	for (const char *c = format; *c; c++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%d, ", *c);
	snprintf(text + n, sizeof text - n,
		 "0};\n.global .align 1 .b8 word[4] = {%d, %d, %d, 0};\n%s"
		 ".local .align 8 .b8 args[48]; .reg .b64 %%a; cvta.local.u64 %%a, args;\n%s\n"
		 "{ .param .b64 p; .param .b64 q; .param .b32 v; mov.u64 %%d1, fmt; "
		 "cvta.global.u64 %%d1, %%d1; st.param.b64 [p], %%d1; st.param.b64 [q], %%a;\n"
		 "call (v), vprintf, (p, q); ld.param.b32 %%r1, [v]; } st.global.u32 [%%mine], "
		 "%%r1; ret; }",
		 'a', 'b', 'c', KERNEL_OUT("k"), fill);
	return rig_open(text);
}

static void printf_supports_every_conversion(void **state)
{
	static const struct {
		const char *format, *fill, *want;
		unsigned n_args;
	} rows[] = {
		{ "plain 100%%\n", "", "plain 100%\n", 0 },
		{ "%d %u %x|", "st.u32 [%a], -5; st.u32 [%a+4], 7; st.u32 [%a+8], 255;", "-5 7 ff|", 3 },
		{ "[%5d|%-5d|%05d|%+d]", "st.v4.u32 [%a], {42, 42, 42, 42};", "[   42|42   |00042|+42]", 4 },
		{ "%d %lld %lu", "st.u32 [%a], 1; st.u64 [%a+8], -2; st.u64 [%a+16], 3;", "1 -2 3", 3 },
		{ "%.2f %e %g", "st.f64 [%a], 1.005859375; st.f64 [%a+8], 1000.0; st.f64 [%a+16], 0.5;", "1.01 1.000000e+03 0.5", 3 },
		{ "%s-%c-%5s",
		  "mov.u64 %d2, word; st.u64 [%a], %d2; st.u32 [%a+8], 66; st.u64 [%a+16], "
		  "%d2;",
		  "abc-B-  abc", 3 },
		{ "%*d|%.*f", "st.u32 [%a], 4; st.u32 [%a+4], 9; st.u32 [%a+8], 1; st.f64 [%a+16], 2.25;", "   9|2.2", 4 },
		{ "%hhd %hu", "st.u32 [%a], 511; st.u32 [%a+4], 65537;", "-1 1", 2 },
		{ "%s", "st.u64 [%a], 0;", "(null)", 1 },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		struct rig *r = open_printf(rows[k].format, rows[k].fill);
		uint32_t *out = rig_memory(r, 4);

		rig_expect_ok(r, "k", 1, 1, out, 0);
		assert_string_equal(r->printed, rows[k].want);
		assert_int_equal(out[0], rows[k].n_args);
		rig_close(r);
	}
}

static void lanes_print_in_order(void **state)
{
	struct rig *r = open_printf("%d ", "st.u32 [%a], %t;");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 12, out, 0);
	assert_string_equal(r->printed, "0 1 2 3 4 5 6 7 8 9 10 11 ");
	rig_close(r);
}

static void printf_of_an_unreadable_string_is_a_fault(void **state)
{
	struct rig *r = open_printf("%s", "st.u64 [%a], 4096;");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 1, out, 0), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "printf"));
	rig_close(r);
}

static const char heap[] = PTX_HEADER EXTERNS KERNEL_OUT(
	"take") "{ .param .b64 n; .param .b64 v; st.param.b64 [n], %x; call (v), malloc, (n); "
		"ld.param.b64 %d1, [v]; }\n"
		"setp.eq.u64 %p1, %d1, 0; @%p1 ret; st.u32 [%d1], %t; ld.u32 %r1, [%d1]; "
		"add.u32 %r1, %r1, 1; st.global.u32 [%mine], %r1;\n"
		"{ .param .b64 p; st.param.b64 [p], %d1; call free, (p); } ret; }\n" KERNEL_OUT(
			"twice") "{ .param .b64 n; .param .b64 v; st.param.b64 [n], 64; call "
				 "(v), malloc, (n); ld.param.b64 %d1, [v]; }\n"
				 "{ .param .b64 p; st.param.b64 [p], %d1; call free, (p); } { "
				 ".param .b64 p; st.param.b64 [p], %d1; call free, (p); } ret; "
				 "}\n" KERNEL_OUT("nothing") "{ .param .b64 p; st.param.b64 [p], 0; "
							     "call free, (p); } ret; }\n";

static void malloc_returns_memory_until_the_heap_is_full(void **state)
{
	struct rig *r = rig_open(heap);
	uint32_t *out = rig_memory(r, 512 * 4);

	(void)state;
	for (unsigned again = 0; again < 5; again++) {
		rig_expect_ok(r, "take", 4, 128, out, 1000);
		for (unsigned n = 0; n < 512; n++)
			assert_int_equal(out[n], n + 1);
		memset(out, 0, 512 * 4);
	}
	rig_expect_ok(r, "take", 1, 32, out, 1ull << 40);
	assert_int_equal(out[0], 0);
	rig_expect_ok(r, "nothing", 1, 32, out, 0);
	rig_close(r);
}

static void freeing_twice_is_a_fault(void **state)
{
	struct rig *r = rig_open(heap);

	(void)state;
	assert_int_equal(rig_run(r, "twice", 1, 1, NULL, 0), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "freed before"));
	rig_close(r);
}

static void a_failed_assertion_reports_its_source_line(void **state)
{
	struct rig *r = rig_open(PTX_HEADER EXTERNS ".global .align 1 .b8 m[6] = {120, 32, 62, 32, 49, 0};\n.global .align 1 .b8 "
						    "f[5] = {97, 46, 99, 117, 0};\n.global .align 1 .b8 n[2] = {107, "
						    "0};\n" KERNEL_OUT("k") "setp.ne.u32 %p1, %t, 40; @%p1 ret;\n"
									    "{ .param .b64 a; .param .b64 b; .param .b32 c; .param "
									    ".b64 d; .param .b64 e; mov.u64 %d1, m; st.param.b64 "
									    "[a], %d1; mov.u64 %d1, f;\n"
									    "st.param.b64 [b], %d1; st.param.b32 [c], 12; mov.u64 "
									    "%d1, n; st.param.b64 [d], %d1; st.param.b64 [e], 1;\n"
									    "call __assertfail, (a, b, c, d, e); } ret; }");

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 64, NULL, 0), GPUL_EXEC_ASSERT);
	assert_non_null(strstr(r->fault.text, "a.cu:12: k: assertion `x > 1' failed"));
	assert_int_equal(r->fault.thread[0], 40);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printf_supports_every_conversion),
		cmocka_unit_test(lanes_print_in_order),
		cmocka_unit_test(printf_of_an_unreadable_string_is_a_fault),
		cmocka_unit_test(malloc_returns_memory_until_the_heap_is_full),
		cmocka_unit_test(freeing_twice_is_a_fault),
		cmocka_unit_test(a_failed_assertion_reports_its_source_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
