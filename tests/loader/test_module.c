/* test_module.c — loads, finds and launches kernels with a fake driver that fails on request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/loader.h"
#include "ptx/nvrtc/nvrtc.h"
#include "tests/fake/fake_driver.h"

static const char vecadd[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
			     ".visible .entry vecadd(.param .u64 a, .param .u32 n) {\n"
			     ".reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
			     "ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;\n"
			     "mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1; ret; "
			     "}\n";

static const char templates[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
				".visible .entry _Z4copyIiEvPT_() { ret; }\n"
				".visible .entry _Z4copyIfEvPT_() { ret; }\n"
				".visible .entry _Z6vecaddPKdS0_Pdi() { ret; }\n";

static gpul_status load(const gpul_driver *drv, const char *text, gpul_module **m, gpul_error *err)
{
	return gpul_module_load_ptx(drv, text, strlen(text), "k.ptx", NULL, m, err);
}

static gpul_module *loaded(const gpul_driver *drv, const char *text)
{
	gpul_module *m = NULL;
	gpul_error err = { 0 };

	if (load(drv, text, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

/* Create a file with these bytes and return its path; the caller unlinks it. */
static const char *file_of(const void *bytes, size_t n, const char *suffix)
{
	static char path[64];
	int fd;

	snprintf(path, sizeof path, P_tmpdir "/test_module_XXXXXX%s", suffix);
	fd = mkstemps(path, (int)strlen(suffix));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	return path;
}

static const gpul_launch_config one_warp = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };

static gpul_status launch(const gpul_module *m, const gpul_launch_config *c, gpul_error *err)
{
	uint64_t a = 0;
	uint32_t n = 0;

	return gpul_kernel_launch(gpul_module_kernel(m, 0), c, (void *[]){ &a, &n }, (const size_t[]){ sizeof a, sizeof n }, 2, err);
}

/* ---- loading --------------------------------------------------------------------- */

static void releases_everything_if_any_driver_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) {
		gpul_module *m = NULL;
		gpul_error err = { 0 };
		const gpul_driver *drv = fake_driver(n);
		gpul_status st = load(drv, vecadd, &m, &err);
		gpul_launch_config big = one_warp;

		big.shared_bytes = 100000; /* needs an opt-in, which is one more call that can fail */
		if (st)
			assert_null(m);
		else
			st = launch(m, &big, &err);
		gpul_module_unload(m);
		assert_int_equal(fake_alive(), 0);
		if (st == GPUL_OK) {
			assert_int_equal(n, fake_calls() + 1); /* each call has failed once */
			return;
		}
		assert_int_equal(st, GPUL_ECUDA);
		assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
	}
}

static void shows_the_line_of_ptx_that_the_jit_refuses(void **state)
{
	gpul_module *m = NULL;
	gpul_error err = { 0 };
	int n_before;

	(void)state;
	m = loaded(fake_driver(0), vecadd);
	n_before = fake_calls() - 1; /* the index of cuLibraryLoadData, because the last call was cuLibraryGetModule */
	gpul_module_unload(m);
	m = NULL;
	const gpul_driver *drv = fake_driver_failing(n_before, CUDA_ERROR_INVALID_PTX);
	fake_behave()->jit_log = "ptxas application ptx input, line 6; error   : Unknown symbol 'foo'\n"
				 "ptxas fatal   : Ptx assembly aborted due to errors\n";
	assert_int_equal(load(drv, vecadd, &m, &err), GPUL_ECUDA);
	assert_null(m);
	assert_non_null(strstr(err.text, "k.ptx:6: error   : Unknown symbol 'foo'\nld.param.u64 %rd1, [a];"));

	err = (gpul_error){ 0 };
	drv = fake_driver_failing(n_before, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	assert_int_equal(load(drv, vecadd, &m, &err), GPUL_ECUDA);
	assert_non_null(strstr(err.text, "k.ptx is 8.0, newer than the fake driver (CUDA "));

	err = (gpul_error){ 0 };
	drv = fake_driver_failing(n_before + 1, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	/* Some drivers compile the PTX only in cuLibraryGetModule, which then fails. */
	assert_int_equal(load(drv, vecadd, &m, &err), GPUL_ECUDA);
	assert_non_null(strstr(err.text, "k.ptx is 8.0, newer than the fake driver (CUDA "));

	err = (gpul_error){ 0 };
	drv = fake_driver_failing(n_before, CUDA_ERROR_NO_BINARY_FOR_GPU);
	fake_behave()->major = 7;
	fake_behave()->minor = 0;
	assert_int_equal(load(drv, vecadd, &m, &err), GPUL_ECUDA);
	assert_non_null(strstr(err.text, "k.ptx is for sm_75, but the device is sm_70"));
}

static void names_the_content_of_a_file_without_code(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *suffix;
		gpul_status st;
		const char *message;
	} rows[] = {
		{ "hello\n", 6, ".txt", GPUL_EFORMAT, "is a text that is not PTX (no .version line)" },
		{ "hello\n", 6, ".ptx", GPUL_EFORMAT, ":1:1: " },
		{ " \n", 2, ".ptx", GPUL_EFORMAT, "is an empty file" },
		{ "\1\2\3\0\4", 5, ".ptx", GPUL_EFORMAT, "is a file of an unknown format: expected PTX text" },
		{ "!<arch>\n", 8, ".a", GPUL_EFORMAT, "is an archive" },
		{ "\x7f"
		  "ELF\2\1",
		  6, ".so", GPUL_EFORMAT, "the ELF file is damaged" },
		{ ".version 8.0\n.target sm_75\n.address_size 64\n", 43, ".ptx", GPUL_EFORMAT, "has no kernel" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *path = file_of(rows[i].bytes, rows[i].n, rows[i].suffix);
		gpul_module *m = NULL;
		gpul_error err = { 0 };

		assert_int_equal(gpul_module_load_file(fake_driver(0), path, NULL, &m, &err), rows[i].st);
		unlink(path);
		if (!strstr(err.text, rows[i].message))
			fail_msg("'%s' does not contain '%s'", err.text, rows[i].message);
		assert_null(m);
		assert_int_equal(fake_alive(), 0);
	}
}

static void compiles_cuda_source_by_nvrtc(void **state)
{
	static const char source[] = "template <class T> __global__ void scale(T *x, T by, int n)\n"
				     "{\n"
				     "	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
				     "	if (i < n)\n"
				     "		x[i] *= by * N;\n"
				     "}\n"
				     "template __global__ void scale<float>(float *, float, int);\n";
	const char *const args[] = { "-DN=3", NULL };
	const gpul_load_options with_n = { .nvrtc_args = args };
	gpul_module *m = NULL;
	gpul_error err = { 0 };
	const char *path, *nvrtc;
	const gpul_kernel *k = NULL;
	char printed[128];

	(void)state;
	if (gpul_nvrtc_find(&nvrtc, NULL, NULL, NULL))
		skip();
	path = file_of(source, sizeof source - 1, ".cu");
	assert_int_equal(gpul_module_load_file(fake_driver(0), path, NULL, &m, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "\"N\" is undefined"));
	assert_null(m);
	err = (gpul_error){ 0 };
	if (gpul_module_load_file(fake_driver(0), path, &with_n, &m, &err))
		fail_msg("%s", err.text);
	unlink(path);
	assert_int_equal(gpul_kernel_find(m, "scale", &k, &err), GPUL_OK);
	gpul_signature_print(gpul_kernel_signature(k), printed, sizeof printed);
	assert_string_equal(printed, "_Z5scaleIfEvPT_S0_i(f32 *, f32, i32)");
	assert_true(gpul_kernel_signature(k)->complete);
	gpul_module_unload(m);
	assert_int_equal(fake_alive(), 0);
}

static void loads_ptx_from_memory_without_a_nul(void **state)
{
	gpul_module *m = NULL;
	gpul_error err = { 0 };
	char *exact = malloc(sizeof vecadd - 1);

	(void)state;
	memcpy(exact, vecadd, sizeof vecadd - 1);
	assert_int_equal(gpul_module_load_ptx(fake_driver(0), exact, sizeof vecadd - 1, "k.ptx", NULL, &m, &err), GPUL_OK);
	free(exact);
	assert_string_equal(gpul_kernel_name(gpul_module_kernel(m, 0)), "vecadd");
	gpul_module_unload(m);
}

/* ---- finding --------------------------------------------------------------------- */

static void finds_a_kernel_by_its_mangled_and_demangled_names(void **state)
{
	static const struct {
		const char *wanted, *found, *message;
	} rows[] = {
		{ "_Z6vecaddPKdS0_Pdi", "_Z6vecaddPKdS0_Pdi", NULL },
		{ "vecadd", "_Z6vecaddPKdS0_Pdi", NULL },
		{ "vecadd(double const*, double const*, double*, int)", "_Z6vecaddPKdS0_Pdi", NULL },
		{ "copy<int>", "_Z4copyIiEvPT_", NULL },
		{ "void copy<float>(float*)", "_Z4copyIfEvPT_", NULL },
		{ "copy", NULL,
		  "2 kernels match 'copy': void copy<int>(int*), void "
		  "copy<float>(float*)" },
		{ "vecad", NULL, "did you mean 'vecadd'?" },
		{ "matmul", NULL, "the module has: void copy<int>, void copy<float>, vecadd" },
		{ "", NULL, "no kernel ''" },
		{ NULL, NULL, "3 kernels: name one of" },
	};
	gpul_module *m = loaded(fake_driver(0), templates);

	(void)state;
	if (strcmp(gpul_kernel_demangled(gpul_module_kernel(m, 0)), "void copy<int>(int*)") != 0) {
		gpul_module_unload(m);
		skip(); /* no C++ runtime on this machine */
	}
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const gpul_kernel *k = NULL;
		gpul_error err = { 0 };
		gpul_status st = gpul_kernel_find(m, rows[i].wanted, &k, &err);

		assert_int_equal(st, rows[i].found ? GPUL_OK : GPUL_EINVAL);
		if (k)
			assert_string_equal(gpul_kernel_name(k), rows[i].found);
		else if (!strstr(err.text, rows[i].message))
			fail_msg("'%s' does not contain '%s'", err.text, rows[i].message);
	}
	gpul_module_unload(m);
}

static void finds_the_only_kernel_without_a_name(void **state)
{
	gpul_module *m = loaded(fake_driver(0), vecadd);
	const gpul_kernel *k = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_module_n_kernels(m), 1);
	assert_int_equal(gpul_kernel_find(m, NULL, &k, &err), GPUL_OK);
	assert_string_equal(gpul_kernel_name(k), "vecadd");
	assert_string_equal(gpul_kernel_demangled(k), "vecadd");
	assert_ptr_equal(gpul_kernel_signature(k), gpul_kernel_signature(k)); /* the signature is inferred only once */
	gpul_module_unload(m);
}

static void shortens_a_long_list_of_kernels(void **state)
{
	char text[8192] = ".version 8.0\n.target sm_75\n.address_size 64\n";
	const gpul_kernel *k = NULL;
	gpul_error err = { 0 };
	gpul_module *m;

	(void)state;
	for (int i = 0; i < 100; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), ".entry kernel_%d() { ret; }\n", i);
	m = loaded(fake_driver(0), text);
	assert_int_equal(gpul_kernel_find(m, NULL, &k, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "100 kernels: name one of kernel_0, kernel_1"));
	assert_non_null(strstr(err.text, ", ..."));
	gpul_module_unload(m);
}

/* ---- launching ------------------------------------------------------------------- */

static void shows_the_signature_if_arguments_are_wrong(void **state)
{
	gpul_module *m = loaded(fake_driver(0), vecadd);
	const gpul_kernel *k = gpul_module_kernel(m, 0);
	const size_t sizes[] = { 8, 8, 4 };
	uint64_t v = 0;
	void *args[] = { &v, &v, &v };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_kernel_launch(k, &one_warp, args, sizes, 1, &err), GPUL_EINVAL);
	assert_string_equal(err.text, "1 argument given, but the kernel has 2 parameters: vecadd(i32 *, i32)");
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_kernel_launch(k, &one_warp, args, sizes, 3, &err), GPUL_EINVAL);
	assert_string_equal(err.text, "3 arguments given, but the kernel has 2 parameters: vecadd(i32 *, i32)");
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_kernel_launch(k, &one_warp, args, sizes, 2, &err), GPUL_EINVAL);
	assert_string_equal(err.text, "argument 1 has 8 bytes, but its parameter has 4: vecadd(i32 *, i32)");
	gpul_module_unload(m);
}

static void names_the_limit_that_a_launch_exceeds(void **state)
{
	static const struct {
		gpul_launch_config c;
		const char *message;
	} rows[] = {
		{ { { 1, 1, 1 }, { 2048, 1, 1 }, 0, NULL, false }, "a block of 2048 threads is too big: the device's limit is 1024" },
		{ { { 1, 1, 1 }, { 65536, 65536, 65536 }, 0, NULL, false }, "is too big: the device's limit is 1024" },
		{ { { 1, 1, 1 }, { 2, 2, 128 }, 0, NULL, false },
		  "a block of 2 x 2 x 128 is too big: the device's limit is 1024 x 1024 x 64" },
		{ { { 1, 70000, 1 }, { 1, 1, 1 }, 0, NULL, false }, "a grid of 1 x 70000 x 1 is too big" },
		{ { { 0, 1, 1 }, { 1, 1, 1 }, 0, NULL, false }, "a grid of 0 x 1 x 1 is empty" },
		{ { { 1, 1, 1 }, { 0, 1, 1 }, 0, NULL, false }, "a block of 0 x 1 x 1 is empty" },
		{ { { 1, 1, 1 }, { 1, 1, 1 }, 300000, NULL, false },
		  "300000 bytes of shared memory per block (0 static + 300000 dynamic) "
		  "are too much: the device's limit is 232448" },
	};
	gpul_module *m = loaded(fake_driver(0), vecadd);

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		gpul_error err = { 0 };

		assert_int_equal(launch(m, &rows[i].c, &err), GPUL_EINVAL);
		if (!strstr(err.text, rows[i].message))
			fail_msg("'%s' does not contain '%s'", err.text, rows[i].message);
	}
	gpul_module_unload(m);
}

static void refuses_a_block_that_differs_from_reqntid(void **state)
{
	gpul_module *m = loaded(fake_driver(0), ".version 8.0\n.target sm_75\n.address_size 64\n"
						".entry k() .reqntid 64, 2 { ret; }\n");
	gpul_launch_config c = { .grid = { 1, 1, 1 }, .block = { 64, 1, 1 } };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_kernel_launch(gpul_module_kernel(m, 0), &c, NULL, NULL, 0, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "a block of 64 x 1 x 1 does not match: the kernel was "
					 "compiled for (.reqntid) 64 x 2 x 1"));
	c.block[1] = 2;
	assert_int_equal(gpul_kernel_launch(gpul_module_kernel(m, 0), &c, NULL, NULL, 0, NULL), GPUL_OK);
	gpul_module_unload(m);
}

static uint32_t seen_n;

static void remember_n(void **params)
{
	memcpy(&seen_n, params[1], sizeof seen_n);
}

static void a_second_launch_needs_only_one_driver_call(void **state)
{
	gpul_module *m = loaded(fake_driver(0), vecadd);
	const gpul_kernel *k = gpul_module_kernel(m, 0);
	uint64_t a = 0;
	uint32_t n = 77;
	int before;

	(void)state;
	fake_behave()->launched = remember_n;
	assert_int_equal(launch(m, &one_warp, NULL), GPUL_OK);
	before = fake_calls();
	assert_int_equal(gpul_kernel_launch(k, &(gpul_launch_config){ .grid = { 1 }, .block = { 32 } }, GPUL_ARGS(a, n), NULL), GPUL_OK);
	assert_int_equal(fake_calls(), before + 1);
	assert_int_equal(seen_n, 77);
	gpul_module_unload(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_everything_if_any_driver_call_fails),
		cmocka_unit_test(shows_the_line_of_ptx_that_the_jit_refuses),
		cmocka_unit_test(names_the_content_of_a_file_without_code),
		cmocka_unit_test(compiles_cuda_source_by_nvrtc),
		cmocka_unit_test(loads_ptx_from_memory_without_a_nul),
		cmocka_unit_test(finds_a_kernel_by_its_mangled_and_demangled_names),
		cmocka_unit_test(finds_the_only_kernel_without_a_name),
		cmocka_unit_test(shortens_a_long_list_of_kernels),
		cmocka_unit_test(shows_the_signature_if_arguments_are_wrong),
		cmocka_unit_test(names_the_limit_that_a_launch_exceeds),
		cmocka_unit_test(refuses_a_block_that_differs_from_reqntid),
		cmocka_unit_test(a_second_launch_needs_only_one_driver_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
