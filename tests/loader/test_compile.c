/* test_compile.c — CUDA C++ is compiled once, and again if anything that it depends on changes; skipped without libnvrtc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "loader/cache/compile.h"

static char folder[64]; /* contains src (the sources), inc (for -I) and cache */
static int n_found, n_stored;

static void count_cache_messages(void *user, gpul_log_level level, const char *module, const char *line)
{
	(void)user, (void)level;
	if (strcmp(module, "cache"))
		return;
	n_found += !strncmp(line, "found", 5);
	n_stored += !strncmp(line, "stored", 6);
}

static int make_folder(void **state)
{
	char path[128];

	(void)state;
	strcpy(folder, "/tmp/gpuload-compile-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, ((const char *const[]){ "src", "inc", "cache" })[i]);
		mkdir(path, 0700);
	}
	setenv("GPULOAD_CACHE", path, 1);
	gpul_log_set_level(GPUL_LOG_DEBUG);
	gpul_log_to(count_cache_messages, NULL);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int remove_folder(void **state)
{
	(void)state;
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void write_file(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

enum how { COMPILED_AND_STORED, FOUND, COMPILED };

/* Compile, and return whether the source was compiled or its result was found.  image may be NULL; free(*image). */
static enum how compile_with(const char *source, const char *const *options, const char *arch, bool no_cache, char **image)
{
	gpul_nvrtc_result r;
	gpul_error err = { 0 };
	char name[128];

	n_found = n_stored = 0;
	snprintf(name, sizeof name, "%s/src/k.cu", folder);
	if (gpul_compile_cached(source, name, options, arch, no_cache, &r, &err))
		fail_msg("%s", err.text);
	assert_int_equal(strlen(r.image), r.image_bytes);
	if (image) {
		*image = r.image;
		r.image = NULL;
	}
	gpul_nvrtc_result_free(&r);
	assert_true(n_found + n_stored <= 1);
	return n_found ? FOUND : n_stored ? COMPILED_AND_STORED : COMPILED;
}

static enum how compile(const char *source)
{
	char inc[128];

	snprintf(inc, sizeof inc, "-I%s/inc", folder);
	return compile_with(source, (const char *const[]){ inc, NULL }, "compute_75", false, NULL);
}

#define KERNEL(value) "extern \"C\" __global__ void k(int *p) { *p = " value "; }\n"

static void does_not_compile_the_same_source_twice(void **state)
{
	char *first, *second;

	(void)state;
	assert_int_equal(compile_with(KERNEL("1"), NULL, "compute_75", false, &first), COMPILED_AND_STORED);
	assert_int_equal(compile_with(KERNEL("1"), NULL, "compute_75", false, &second), FOUND);
	assert_string_equal(first, second);
	assert_non_null(strstr(second, ".entry k"));
	free(first);
	free(second);
}

static void compiles_again_for_another_source_option_or_architecture(void **state)
{
	static const char *const with_d[] = { "-DX=1", NULL };
	static const char *const with_e[] = { "-DX=2", NULL };

	(void)state;
	for (int i = 0; i < 2; i++) {
		enum how expected = i ? FOUND : COMPILED_AND_STORED;

		assert_int_equal(compile_with(KERNEL("1"), NULL, "compute_75", false, NULL), expected);
		assert_int_equal(compile_with(KERNEL("2"), NULL, "compute_75", false, NULL), expected);
		assert_int_equal(compile_with(KERNEL("1"), NULL, "compute_80", false, NULL), expected);
		assert_int_equal(compile_with(KERNEL("1"), with_d, "compute_75", false, NULL), expected);
		assert_int_equal(compile_with(KERNEL("1"), with_e, "compute_75", false, NULL), expected);
	}
}

static void no_cache_disables_finding_and_storing(void **state)
{
	(void)state;
	assert_int_equal(compile_with(KERNEL("1"), NULL, "compute_75", true, NULL), COMPILED);
	assert_int_equal(compile_with(KERNEL("1"), NULL, "compute_75", false, NULL), COMPILED_AND_STORED);
	assert_int_equal(compile_with(KERNEL("1"), NULL, "compute_75", true, NULL), COMPILED);
}

static void compiles_again_if_an_included_header_changes(void **state)
{
	static const char source[] = "#include <a.h>\n#include \"b.h\"\n" KERNEL("A + B");

	(void)state;
	write_file("inc/a.h", "#define A 1\n# include \"sub.h\"\n");
	write_file("inc/sub.h", "#pragma once\n#include \"a.h\"\n");
	write_file("src/b.h", "#define B 1\n");
	assert_int_equal(compile(source), COMPILED_AND_STORED);
	assert_int_equal(compile(source), FOUND);
	write_file("inc/sub.h", "#define C 1\n");
	assert_int_equal(compile(source), COMPILED_AND_STORED);
	write_file("src/b.h", "#define B 2\n");
	assert_int_equal(compile(source), COMPILED_AND_STORED);
	assert_int_equal(compile(source), FOUND);
	write_file("src/sub.h", "#define C 3\n"); /* this file hides inc/sub.h */
	assert_int_equal(compile(source), COMPILED_AND_STORED);
	write_file("src/b.h", "#define B 1\n");
	assert_int_equal(compile(source), COMPILED_AND_STORED);
}

static void compiles_again_if_a_header_for_has_include_appears(void **state)
{
	static const char source[] = "#if __has_include(\"maybe.h\")\n" KERNEL("1") "#else\n" KERNEL("2") "#endif\n";

	(void)state;
	assert_int_equal(compile(source), COMPILED_AND_STORED);
	assert_int_equal(compile(source), FOUND);
	write_file("inc/maybe.h", "\n");
	assert_int_equal(compile(source), COMPILED_AND_STORED);
	assert_int_equal(compile(source), FOUND);
}

static void finds_include_directives_in_unusual_spellings(void **state)
{
	/* clang-format off */
	static const char *const spellings[] = {
		"#include<odd.h>\n", " \t#\tinclude \"odd.h\"\n", "#inc\\\nlude \"odd.h\"\n",
		"/* c */ # /* d */ include /* e */ <odd.h>\n", "/*\n*/#include \"odd.h\"\n",
		"// \"/*\n#include \"odd.h\"\n// */\n", "static __device__ const char s[] = R\"( /* )\";\n#include <odd.h>\n",
		"#if 1 // it's\n#include <odd.h>\n#endif\n", "#\\\r\ninclude \"odd.h\"\n",
	};
	/* clang-format on */
	char source[256];

	(void)state;
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
		snprintf(source, sizeof source, "%s%s", spellings[i], KERNEL("ODD"));
		write_file("inc/odd.h", "#define ODD 1\n");
		assert_int_equal(compile(source), COMPILED_AND_STORED);
		write_file("inc/odd.h", "#define ODD 2\n");
		assert_int_equal(compile(source), COMPILED_AND_STORED);
	}
}

static void does_not_store_results_that_depend_on_more_than_files(void **state)
{
	static const char *const sources[] = {
		"__device__ const char *t = __TIME__;\n" KERNEL("1"),
		"#define H \"h.h\"\n#include H\n" KERNEL("1"),
		"#include \"dated.h\"\n" KERNEL("1"),
		"#define H <h.h>\n#if __has_include(H)\n#endif\n" KERNEL("1"),
	};

	(void)state;
	write_file("src/h.h", "\n");
	write_file("inc/dated.h", "#define D __DATE__\n");
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		assert_int_equal(compile(sources[i]), COMPILED);
		assert_int_equal(compile(sources[i]), COMPILED);
	}
}

static void compiles_again_if_a_header_named_by_an_option_changes(void **state)
{
	char name[128], inc[128];

	(void)state;
	snprintf(name, sizeof name, "--pre-include=%s/src/first.h", folder);
	snprintf(inc, sizeof inc, "%s/inc", folder);
	const char *const options[] = { "--include-path", inc, name, NULL };
	static const char source[] = "#include <h.h>\n" KERNEL("H + FIRST");

	for (int i = 0; i < 2; i++) {
		write_file("src/first.h", i ? "#define FIRST 1\n" : "#define FIRST 2\n");
		for (int k = 0; k < 2; k++) {
			write_file("inc/h.h", k ? "#define H 1\n" : "#define H 2\n");
			assert_int_equal(compile_with(source, options, "compute_75", false, NULL), COMPILED_AND_STORED);
			assert_int_equal(compile_with(source, options, "compute_75", false, NULL), FOUND);
		}
	}
}

static void stores_results_that_include_toolkit_headers(void **state)
{
	static const char source[] = "#include <cuda_fp16.h>\n" KERNEL("(int)sizeof(__half)");

	(void)state;
	assert_int_equal(compile(source), COMPILED_AND_STORED);
	assert_int_equal(compile(source), FOUND);
}

static void stores_warnings_with_the_result(void **state)
{
	static const char source[] = "extern \"C\" __global__ void k(int *p) { int unused = 3; *p = 1; }\n";
	gpul_nvrtc_result r;
	char first[1024] = "";

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gpul_compile_cached(source, "warn.cu", NULL, "compute_75", false, &r, NULL), GPUL_OK);
		assert_non_null(strstr(r.log, "unused"));
		if (i)
			assert_string_equal(r.log, first);
		snprintf(first, sizeof first, "%s", r.log);
		gpul_nvrtc_result_free(&r);
	}
}

static void does_not_store_failures(void **state)
{
	gpul_nvrtc_result r;
	gpul_error err = { 0 };

	(void)state;
	n_stored = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gpul_compile_cached("int f( {", "bad.cu", NULL, "compute_75", false, &r, &err), GPUL_EFORMAT);
		assert_non_null(strstr(err.text, "bad.cu(1)"));
		gpul_nvrtc_result_free(&r);
		err = (gpul_error){ 0 };
	}
	assert_int_equal(n_stored, 0);
}

static void stops_at_headers_that_include_each_other_by_ever_longer_paths(void **state)
{
	(void)state;
	write_file("src/loop.h", "#pragma once\n#include \"../src/loop.h\"\n");
	assert_int_equal(compile("#include \"loop.h\"\n" KERNEL("1")), COMPILED_AND_STORED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const char *path;
	const struct CMUnitTest tests[] = {
		TEST(does_not_compile_the_same_source_twice),
		TEST(compiles_again_for_another_source_option_or_architecture),
		TEST(no_cache_disables_finding_and_storing),
		TEST(compiles_again_if_an_included_header_changes),
		TEST(compiles_again_if_a_header_for_has_include_appears),
		TEST(finds_include_directives_in_unusual_spellings),
		TEST(does_not_store_results_that_depend_on_more_than_files),
		TEST(compiles_again_if_a_header_named_by_an_option_changes),
		TEST(stores_results_that_include_toolkit_headers),
		TEST(stores_warnings_with_the_result),
		TEST(does_not_store_failures),
		TEST(stops_at_headers_that_include_each_other_by_ever_longer_paths),
	};

	if (gpul_nvrtc_find(&path, NULL, NULL, NULL)) {
		printf("no libnvrtc on this machine\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
