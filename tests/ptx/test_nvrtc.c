/* test_nvrtc.c — CUDA C++ to PTX and machine code; skipped where there is no libnvrtc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ptx/module.h"
#include "ptx/nvrtc/nvrtc.h"
#include "ptx/nvrtc/nvrtc_internal.h"

static const char twice[] = "extern \"C\" __global__ void twice(int *p) { p[threadIdx.x] *= FACTOR; }\n";

static void compiles_to_ptx_that_parses(void **state)
{
	static const char *const options[] = { "-DFACTOR=2", "--std=c++17", NULL };
	gpul_nvrtc_result r;
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	(void)state;
	if (gpul_nvrtc_compile(twice, "twice.cu", options, "compute_80", &r, &err))
		fail_msg("%s", err.text);
	assert_int_equal(strlen(r.image), r.image_bytes);
	if (gpul_ptx_parse(r.image, r.image_bytes, "twice.ptx", &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(m->sm, 80);
	const gpul_ptx_func *f = gpul_ptx_find_func(m, "twice");
	assert_non_null(f);
	assert_int_equal(f->n_params, 1);
	gpul_ptx_module_destroy(m);
	gpul_nvrtc_result_free(&r);
}

static void compiles_to_machine_code_in_an_elf_file(void **state)
{
	static const char *const options[] = { "-DFACTOR=2", NULL };
	gpul_nvrtc_result r;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_nvrtc_compile(twice, "twice.cu", options, "sm_80", &r, &err), GPUL_OK);
	assert_true(r.image_bytes > 64);
	assert_memory_equal(r.image, "\177ELF", 4);
	gpul_nvrtc_result_free(&r);
}

static void reports_the_first_error_of_a_program(void **state)
{
	gpul_nvrtc_result r;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_nvrtc_compile(twice, "twice.cu", NULL, "compute_80", &r, &err), GPUL_EFORMAT);
	assert_memory_equal(err.text, "twice.cu(1): error: ", 20);
	assert_non_null(strstr(err.text, "FACTOR"));
	assert_null(strchr(err.text, '\n'));
	assert_null(r.image);
	assert_non_null(strstr(r.log, "1 error detected"));
	gpul_nvrtc_result_free(&r);
}

static void finds_main_at_the_outermost_level(void **state)
{
	(void)state;
	assert_int_equal(gpul_nvrtc_main_line("int main()\n{ }\n"), 1);
	assert_int_equal(gpul_nvrtc_main_line("// main()\n/* main(\n*/ #if 1\n int\nmain (void) {}"), 5);
	assert_int_equal(gpul_nvrtc_main_line("const char *s = \"main()\";\n#define m main()\nvoid f() { main(); }"), 0);
	assert_int_equal(gpul_nvrtc_main_line("int main_loop(); struct s { int main(); }; int domain();"), 0);
	assert_int_equal(gpul_nvrtc_main_line(""), 0);
	assert_int_equal(gpul_nvrtc_main_line("{ \"open"), 0);
}

/* A program as it is usually written; its kernel is in line 22. */
static const char program[] =
	"#include <cstdio>\n#include <vector>\n#include <chrono>\nusing namespace std;\n"
	"#define CHECK(x) do { if (x) { std::printf(\"%s\", cudaGetErrorString(x)); exit(1); } } while (0)\n"
	"#define BOTH __host__ __device__\n"
	"struct options { std::vector<int> sizes; };\nstruct pair { float a, b; float sum() const { return a + b; } };\n"
	"static std::vector<float> results;\ncudaStream_t stream;\n"
	"BOTH float square(float x) { return x * x; }\n"
	"__constant__ float factors[2] = { 2, 3 };\nconst int n_factors = 2;\n"
	"template <typename T> __device__ T twice(T x) { return x + x; }\n"
	"namespace inner { __device__ inline float one() { return 1; } void host_only() { std::vector<int> v; } }\n"
	"static double now()\n{\n\treturn std::chrono::duration<double>(std::chrono::steady_clock::now()\n"
	"\t\t.time_since_epoch()).count();\n}\n\n"
	"extern \"C\" __global__ void k(float *p, pair q) { *p = twice(square(q.sum())) * factors[n_factors - 1] + inner::one(); }\n"
	"template <typename T> void launch(T *p)\n{\n\tk<<<1, 1>>>(p, pair{ 1, 2 });\n\tCHECK(cudaGetLastError());\n}\n"
	"int main(int argc, char **argv)\n{\n\tstd::vector<float> v(argc);\n\tlaunch(v.data());\n\treturn now() > 0 ? '}' : '{';\n}\n";

static void compiles_the_kernels_of_a_program(void **state)
{
	gpul_nvrtc_result r;
	gpul_ptx_module *m = NULL;
	gpul_error err = { 0 };

	(void)state;
	if (gpul_nvrtc_compile(program, "program.cu", NULL, "compute_80", &r, &err))
		fail_msg("%s\n%s", err.text, r.log);
	assert_int_equal(gpul_ptx_parse(r.image, r.image_bytes, "program.ptx", &m, &err), GPUL_OK);
	assert_non_null(gpul_ptx_find_func(m, "k"));
	assert_null(gpul_ptx_find_func(m, "main"));
	gpul_ptx_module_destroy(m);
	gpul_nvrtc_result_free(&r);
}

static void errors_in_the_kernels_of_a_program_keep_their_lines(void **state)
{
	char wrong[sizeof program + 16];
	const char *call = strstr(program, "twice(square");
	gpul_nvrtc_result r;
	gpul_error err = { 0 };

	(void)state;
	snprintf(wrong, sizeof wrong, "%.*s%s", (int)(call - program), program, "thrice(square");
	strcat(wrong, call + strlen("twice(square"));
	assert_int_equal(gpul_nvrtc_compile(wrong, "program.cu", NULL, "compute_80", &r, &err), GPUL_EFORMAT);
	assert_memory_equal(err.text, "program.cu(22): error: ", 23);
	assert_non_null(strstr(err.text, "thrice"));
	gpul_nvrtc_result_free(&r);
}

static void tells_which_annotation_is_missing(void **state)
{
	static const char text[] = "float half(float x) { return x / 2; }\n__global__ void k(float *p) { *p = half(*p); }\n";
	gpul_nvrtc_result r;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_nvrtc_compile(text, "k.cu", NULL, "compute_80", &r, &err), GPUL_EFORMAT);
	assert_memory_equal(err.text, "k.cu(1): error: A function without execution space annotations", 40);
	gpul_nvrtc_result_free(&r);
}

static void names_an_unknown_architecture_or_option(void **state)
{
	static const char *const options[] = { "--no-such-option", NULL };
	gpul_nvrtc_result r;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_nvrtc_compile(twice, "twice.cu", NULL, "compute_7", &r, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "compute_7"));
	gpul_nvrtc_result_free(&r);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_nvrtc_compile(twice, "twice.cu", options, "compute_80", &r, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "no-such-option"));
	gpul_nvrtc_result_free(&r);
}

static void provides_the_headers_that_kernels_include(void **state)
{
	static const char source[] = "#include <cstdint>\n#include <stdint.h>\n#include <cassert>\n#include "
				     "<stdio.h>\n#include <climits>\n"
				     "#include <cfloat>\n#include <cmath>\n#include <cuda_fp16.h>\n"
				     "extern \"C\" __global__ void k(std::uint32_t *p, float *f, __half *h)\n"
				     "{\n"
				     "	assert(p); printf(\"%u\\n\", *p); p[0] = INT_MAX; p[1] = INT32_MAX;\n"
				     "	f[0] = FLT_MAX; f[1] = sqrtf(f[2]); h[0] = __float2half(f[0]);\n"
				     "	unsigned __int128 wide = p[0]; p[2] = (wide << 70) != 0;\n"
				     "}\n";
	gpul_nvrtc_result r;
	gpul_error err = { 0 };

	(void)state;
	if (gpul_nvrtc_compile(source, "headers.cu", NULL, "compute_80", &r, &err))
		fail_msg("%s", err.text);
	gpul_nvrtc_result_free(&r);
}

/* This test needs a separate process, because a process searches for the library only once. */
static void names_the_folder_that_lacks_the_library(void **state)
{
	(void)state;
	pid_t child = fork();
	int status = -1;

	assert_true(child >= 0);
	if (child == 0) {
		char *const argv[] = { "test_nvrtc", "find", NULL };

		setenv("GPULOAD_NVRTC", "/no/such/folder", 1);
		execv("/proc/self/exe", argv);
		_exit(9);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Runs in the child of the test above; exit status 0 means that the error names the folder. */
static int find_in_missing_folder(void)
{
	const char *path = NULL;
	gpul_error err = { 0 };

	if (gpul_nvrtc_find(&path, NULL, NULL, &err) != GPUL_EUNSUPPORTED || path)
		return 1;
	return strstr(err.text, "/no/such/folder") ? 0 : 2;
}

static void messages_about_the_file_come_first_and_those_about_headers_are_few(void **state)
{
	static const char begin[] =
		"kernel.cu(3): error: identifier \"n\" is undefined\n  x = n;\n      ^\n\nkernel.cu(1): warning #1: w\n\n/usr/include/cuda.h(0)";
	char log[4000] = "", *ordered;

	(void)state;
	for (int i = 0; i < 9; i++)
		sprintf(log + strlen(log),
			"/usr/include/cuda.h(%d): error: host functions are not allowed in JIT mode\n  int f();\n      ^\n\n", i);
	strcat(log,
	       "kernel.cu(3): error: identifier \"n\" is undefined\n  x = n;\n      ^\n\nkernel.cu(1): warning #1: w\n\n10 errors detected in the "
	       "compilation of \"kernel.cu\".\n");
	assert_true(ptx_nvrtc_log_has_error_in(log, "kernel.cu"));
	assert_false(ptx_nvrtc_log_has_error_in(log, "kernel"));
	ordered = ptx_nvrtc_ordered_log(log, "kernel.cu");
	assert_memory_equal(ordered, begin, sizeof begin - 1);
	assert_non_null(strstr(ordered, "cuda.h(2): error"));
	assert_null(strstr(ordered, "cuda.h(3): error"));
	assert_non_null(strstr(ordered, "\n6 more messages about headers are not shown\n\n10 errors detected"));
	free(ordered);
	ordered = ptx_nvrtc_ordered_log("", "kernel.cu");
	assert_string_equal(ordered, "");
	free(ordered);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_about_the_file_come_first_and_those_about_headers_are_few),
		cmocka_unit_test(compiles_to_ptx_that_parses),
		cmocka_unit_test(compiles_to_machine_code_in_an_elf_file),
		cmocka_unit_test(reports_the_first_error_of_a_program),
		cmocka_unit_test(finds_main_at_the_outermost_level),
		cmocka_unit_test(compiles_the_kernels_of_a_program),
		cmocka_unit_test(errors_in_the_kernels_of_a_program_keep_their_lines),
		cmocka_unit_test(tells_which_annotation_is_missing),
		cmocka_unit_test(names_an_unknown_architecture_or_option),
		cmocka_unit_test(provides_the_headers_that_kernels_include),
		cmocka_unit_test(names_the_folder_that_lacks_the_library),
	};
	const char *path;
	gpul_error err = { 0 };

	if (argc == 2 && !strcmp(argv[1], "find"))
		return find_in_missing_folder();
	if (gpul_nvrtc_find(&path, NULL, NULL, &err)) {
		printf("%s\n", err.text);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
