/* test_strict.c — with GPULOAD_SOFT_STRICT=1, loading refuses PTX that ptxas refuses, and gives the reason; without it, such PTX loads. */
#include "tests/softcuda/api/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LOG_BYTES = 512 };

static const char rounding[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n.reg .f32 f<2>; .reg .f64 d<2>;\n"
			       "cvt.f32.f64 f0, d0;\nret;\n}\n";

static void write_ptx(char text[256], const char *version, const char *target)
{
	snprintf(text, 256, ".version %s\n.target %s\n.address_size 64\n.visible .entry k() { ret; }\n", version, target);
}

static CUresult load(const char *text, char log[LOG_BYTES])
{
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)(uintptr_t)LOG_BYTES };
	CUmodule module;
	CUresult r = cuModuleLoadDataEx(&module, text, 2, options, values);

	if (!r)
		ok(cuModuleUnload(module));
	return r;
}

static CUresult load_library(const char *text)
{
	CUlibrary library;
	CUresult r = cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0);

	if (!r)
		ok(cuLibraryUnload(library));
	return r;
}

static CUresult link_text(const char *text)
{
	CUlinkState state;
	CUresult r;

	ok(cuLinkCreate(0, NULL, NULL, &state));
	r = cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text), "text", 0, NULL, NULL);
	ok(cuLinkDestroy(state));
	return r;
}

static void set_strict(const char *value)
{
	if (!on_software_driver())
		skip();
	assert_int_equal(setenv("GPULOAD_SOFT_STRICT", value, 1), 0);
}

static void refuses_an_invalid_form_by_every_way_to_load(void **state)
{
	char log[LOG_BYTES] = "";

	(void)state;
	set_strict("1");
	fails(load(rounding, log), CUDA_ERROR_INVALID_PTX);
	assert_string_equal(log, "<ptx>:7:1: cvt.f32.f64 needs one of .rn, .rz, .rm, .rp");
	fails(load_library(rounding), CUDA_ERROR_INVALID_PTX);
	fails(link_text(rounding), CUDA_ERROR_INVALID_PTX);
	ok(load(kernels_ptx, log));
}

static void answers_222_to_an_unknown_version(void **state)
{
	char text[256], log[LOG_BYTES] = "";

	(void)state;
	set_strict("1");
	write_ptx(text, "9.1", "sm_75");
	fails(load(text, log), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	assert_non_null(strstr(log, "<ptx>:1:1: .version 9.1 is newer than 9.0"));
	fails(load_library(text), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	fails(link_text(text), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	write_ptx(text, "6.6", "sm_75");
	fails(load(text, log), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	write_ptx(text, "8.0", "sm_120");
	fails(load(text, log), CUDA_ERROR_INVALID_PTX);
	assert_non_null(strstr(log, "<ptx>:2:1: .target sm_120 needs .version 8.7 or higher"));
	write_ptx(text, "9.0", "sm_75");
	ok(load(text, log));
}

static void refuses_a_target_that_the_device_does_not_run(void **state)
{
	static const char *const good[] = { "sm_90", "sm_90a", "compute_90", "sm_89", "sm_10" };
	static const char *const bad[] = { "sm_100", "sm_120", "sm_100a", "sm_120f", "compute_103" };
	char text[256], log[LOG_BYTES] = "";

	(void)state;
	set_strict("1");
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		write_ptx(text, "9.0", good[i]);
		ok(load(text, log));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_ptx(text, "9.0", bad[i]);
		fails(load(text, log), CUDA_ERROR_INVALID_PTX);
		assert_non_null(strstr(log, "cannot run on the device, sm_90"));
		fails(load_library(text), CUDA_ERROR_INVALID_PTX);
	}
	set_strict("0");
	ok(load(text, log));
}

static void accepts_the_same_ptx_without_the_variable(void **state)
{
	char text[256], log[LOG_BYTES] = "";

	(void)state;
	set_strict("0");
	ok(load(rounding, log));
	ok(load_library(rounding));
	write_ptx(text, "9.1", "sm_75");
	ok(load(text, log));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_an_invalid_form_by_every_way_to_load),
		cmocka_unit_test(answers_222_to_an_unknown_version),
		cmocka_unit_test(refuses_a_target_that_the_device_does_not_run),
		cmocka_unit_test(accepts_the_same_ptx_without_the_variable),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
