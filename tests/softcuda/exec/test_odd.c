/* test_odd.c — runs the cases of odd/: PTX that is unusual, but that ptxas accepts (test_odd_ptxas.py).
 *
 * Each case (tests/support/ptx_cases.py) contains a kernel k(out, x), which is launched with 32 threads and x = 7, and the
 * words that its first threads store, in hexadecimal. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>
#include <dirent.h>

#include "core/file/file.h"

#define FOLDER GPUL_KERNELS "/tests/softcuda/exec/odd"

static int is_ptx(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && !strcmp(e->d_name + n - 4, ".ptx");
}

static void expect_words(const char *name, const char *text, const uint32_t *out)
{
	const char *at = strstr(text, "// expect:");
	int used = 0;
	unsigned word, n = 0;

	if (!at)
		fail_msg("%s: no line \"// expect:\"", name);
	for (at += strlen("// expect:"); sscanf(at, " %x%n", &word, &used) == 1; at += used, n++)
		if (out[n] != word)
			fail_msg("%s: word %u is %x, expected %x", name, n, out[n], word);
	assert_true(n > 0);
}

static void run_file(const char *name)
{
	char path[512];
	gpul_file file;
	gpul_error err = { 0 };
	struct rig *r;
	const char *why;
	uint32_t *out;

	snprintf(path, sizeof path, FOLDER "/%s", name);
	if (gpul_file_open(path, &file, &err))
		fail_msg("%s", err.text);
	r = rig_open(file.bytes);
	why = gpul_exec_kernel_refusal(gpul_exec_find_kernel(r->program, "k"));
	if (why)
		fail_msg("%s: %s", name, why);
	out = rig_memory(r, 4096);
	if (rig_run(r, "k", 1, 32, out, 7) != GPUL_EXEC_OK)
		fail_msg("%s: %s", name, r->fault.text);
	expect_words(name, file.bytes, out);
	rig_close(r);
	gpul_file_close(&file);
}

static void unusual_ptx_runs(void **state)
{
	struct dirent **names = NULL;
	int n = scandir(FOLDER, &names, is_ptx, alphasort);

	(void)state;
	assert_true(n > 50);
	for (int i = 0; i < n; i++) {
		run_file(names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

/* ptxas accepts predicate parameters only without the ABI, that is for old targets. */
static void predicates_are_arguments_and_results(void **state)
{
	struct rig *r = rig_open(
		PTX_HEADER ".func (.reg .b32 r) number(.reg .pred p) { selp.b32 r, 5, 6, p; ret; }\n"
			   ".func (.reg .pred p) odd(.reg .b32 n) { .reg .b32 a; and.b32 a, n, 1;\n"
			   "setp.ne.u32 p, a, 0; @p ret; ret; }\n" KERNEL_OUT("k") "call (%p1), odd, (%t); call (%r1), number, (%p1);\n"
										   "st.global.u32 [%mine], %r1; ret; }\n");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 0);
	for (unsigned k = 0; k < 32; k++)
		assert_int_equal(out[k], k & 1 ? 5 : 6);
	rig_close(r);
}

#define FILL \
	".func fill(.reg .u64 bytes, .reg .b32 depth) { .reg .u64 a, b; .reg .pred p, q; " \
	".reg .b32 v;\n" \
	"alloca.u64 a, bytes, 64; st.local.u32 [a], depth; sub.u32 v, depth, 1;\n" \
	"setp.ne.u32 p, depth, 0; @p call fill, (bytes, v);\n" \
	"ld.local.u32 v, [a]; setp.ne.u32 q, v, depth; @q trap; ret; }\n"

static void alloca_survives_calls_and_is_freed_at_the_return(void **state)
{
	struct rig *r = rig_open(PTX_HEADER FILL KERNEL_OUT("k") "mov.u32 %r1, 0; L: call fill, (%x, 9); add.u32 %r1, %r1, 1;\n"
								 "setp.lt.u32 %p1, %r1, 100; @%p1 bra L; st.global.u32 [%mine], %r1; ret; "
								 "}\n");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 1024); /* in each of 100 iterations, fill() makes 10 nested calls that allocate 1 KiB each */
	assert_int_equal(out[31], 100);
	assert_int_equal(rig_run(r, "k", 1, 32, out, 8192), GPUL_EXEC_STACK);
	assert_non_null(strstr(r->fault.text, "alloca of 8192 bytes"));
	rig_close(r);
}

static void stackrestore_frees_what_alloca_took(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "mov.u32 %r1, 0; L: stacksave.u64 %d1; alloca.u64 "
							    "%d2, %x; st.local.u32 [%d2], %t;\n"
							    "stackrestore.u64 %d1; add.u32 %r1, %r1, 1; "
							    "setp.lt.u32 %p1, %r1, 1000; @%p1 bra L;\n"
							    "st.global.u32 [%mine], %r1; ret; }\n");
	uint32_t *out = rig_memory(r, 32 * 4);

	(void)state;
	rig_expect_ok(r, "k", 1, 32, out, 4096);
	assert_int_equal(out[0], 1000);
	rig_close(r);
}

/* The error is that of ptxas, which reports an undefined reference. */
static void an_alias_of_an_alias_is_undefined(void **state)
{
	struct rig r = { 0 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_exec_memory_create(&r.memory, NULL), GPUL_OK);
	assert_int_equal(rig_load(&r,
				  PTX_HEADER ".func f() { ret; }\n.func g();\n.func h();\n.alias g, f;\n.alias h, g;\n" KERNEL_OUT(
					  "k") "call g; call h; ret; }",
				  &err),
			 GPUL_EFORMAT);
	if (!strstr(err.text, "undefined reference to function h"))
		fail_msg("%s", err.text);
	gpul_exec_memory_destroy(r.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unusual_ptx_runs),
		cmocka_unit_test(an_alias_of_an_alias_is_undefined),
		cmocka_unit_test(predicates_are_arguments_and_results),
		cmocka_unit_test(alloca_survives_calls_and_is_freed_at_the_return),
		cmocka_unit_test(stackrestore_frees_what_alloca_took),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
