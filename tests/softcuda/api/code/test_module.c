/* test_module.c — modules, libraries, functions and kernels: loading, and the reasons why images are refused. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- modules ---------------------------------------------------------------------------- */

static void finds_functions_and_variables_by_name(void **state)
{
	CUmodule module, same;
	CUfunction f, g, list[16];
	CUdeviceptr address;
	size_t bytes;
	unsigned n;
	const char *name;

	(void)state;
	ok(cuModuleLoadData(&module, kernels_ptx));
	ok(cuModuleGetFunction(&f, module, "vecadd"));
	ok(cuModuleGetFunction(&g, module, "vecadd"));
	assert_ptr_equal(f, g);
	ok(cuFuncGetName(&name, f));
	assert_string_equal(name, "vecadd");
	ok(cuFuncGetModule(&same, f));
	assert_ptr_equal(same, module);
	fails(cuModuleGetFunction(&f, module, "vecad"), CUDA_ERROR_NOT_FOUND);
	fails(cuModuleGetFunction(&f, module, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuModuleGetGlobal(&address, &bytes, module, "counter"));
	assert_int_equal(bytes, 4);
	uint32_t value = 0;

	ok(cuMemcpyDtoH(&value, address, 4));
	assert_int_equal(value, 7);
	fails(cuModuleGetGlobal(&address, &bytes, module, "no_such"), CUDA_ERROR_NOT_FOUND);
	ok(cuModuleGetFunctionCount(&n, module));
	assert_int_equal(n, 8);
	ok(cuModuleEnumerateFunctions(list, 16, module));
	assert_ptr_equal(list[0], g);
	ok(cuModuleUnload(module));
	fails(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	fails(cuFuncGetName(&name, g), CUDA_ERROR_INVALID_HANDLE);
	fails(cuModuleGetFunction(&f, module, "vecadd"), CUDA_ERROR_INVALID_HANDLE);
	fails(cuMemcpyDtoH(&value, address, 4), CUDA_ERROR_INVALID_VALUE);
}

/* Append text at *at, and move *at to its end. */
static void __attribute__((format(printf, 2, 3))) append(char **at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	*at += vsprintf(*at, fmt, ap);
	va_end(ap);
}

/* The number of variables and kernels is so large that this test exceeds its time limit if a look-up takes linear time. */
static void loads_a_module_with_many_variables_and_kernels(void **state)
{
	enum { VARIABLES = 400000, KERNELS = 20000, LINE = 80 };
	char *text = malloc((size_t)(VARIABLES + KERNELS + 1) * LINE), *at = text, name[LINE];
	CUmodule module;
	CUdeviceptr address;
	CUfunction f;
	size_t bytes;

	(void)state;
	assert_non_null(text);
	append(&at, ".version 7.5\n.target sm_75\n.address_size 64\n");
	for (int i = 0; i < VARIABLES; i++)
		append(&at, ".visible .%s .b8 variable_%d[%d];\n", i % 4 ? "global" : "const", i, i % 3 + 1);
	for (int i = 0; i < KERNELS; i++)
		append(&at, ".visible .entry kernel_%d() { ret; }\n", i);
	ok(cuModuleLoadData(&module, text));
	for (int i = 0; i < VARIABLES; i++) {
		snprintf(name, sizeof name, "variable_%d", i);
		ok(cuModuleGetGlobal(&address, &bytes, module, name));
		assert_int_equal(bytes, i % 3 + 1);
	}
	for (int i = 0; i < KERNELS; i++) {
		snprintf(name, sizeof name, "kernel_%d", i);
		ok(cuModuleGetFunction(&f, module, name));
	}
	fails(cuModuleGetFunction(&f, module, "variable_1"), CUDA_ERROR_NOT_FOUND);
	fails(cuModuleGetGlobal(&address, &bytes, module, name), CUDA_ERROR_NOT_FOUND);
	ok(cuModuleUnload(module));
	free(text);
}

/* Each of 40 functions calls the next one twice, and the last calls itself: there are 2^40 paths to the recursion. */
static void loads_functions_with_many_paths_to_a_recursion(void **state)
{
	enum { FUNCTIONS = 40 };
	char text[FUNCTIONS * 128 + 256], *at = text;
	CUmodule module;

	(void)state;
	append(&at, ".version 7.5\n.target sm_75\n.address_size 64\n");
	for (int i = FUNCTIONS - 1; i >= 0; i--)
		append(&at, ".func f%d()\n{\n\tcall f%d;\n\tcall f%d;\n\tret;\n}\n", i, i + 1 < FUNCTIONS ? i + 1 : i,
		       i + 1 < FUNCTIONS ? i + 1 : i);
	append(&at, ".visible .entry k()\n{\n\tcall f0;\n\tret;\n}\n");
	ok(cuModuleLoadData(&module, text));
	ok(cuModuleUnload(module));
}

/* Load the image, which must fail; return the JIT's error log. */
static CUresult load(const void *image, char *log, unsigned log_bytes)
{
	CUmodule module;
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL };
	void *values[] = { log, (void *)(uintptr_t)log_bytes, (void *)3 };
	CUresult r = cuModuleLoadDataEx(&module, image, 3, options, values);

	if (!r)
		ok(cuModuleUnload(module));
	else if (on_software_driver())
		assert_int_equal((uintptr_t)values[1], strlen(log));
	return r;
}

static void reports_the_line_of_an_error_in_ptx(void **state)
{
	char log[512], cut[12];

	(void)state;
	fails(load(".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry "
		   "k()\n{\n\tadd.s32 %r1 ;\n}\n",
		   log, sizeof log),
	      CUDA_ERROR_INVALID_PTX);
	if (on_software_driver())
		assert_non_null(strstr(log, "<ptx>:6:"));
	fails(load(".version 7.5\n.target sm_75\nnonsense\n", cut, sizeof cut), CUDA_ERROR_INVALID_PTX);
	if (on_software_driver())
		assert_int_equal(strlen(cut), sizeof cut - 1);
	fails(load(".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n", log, sizeof log), CUDA_ERROR_INVALID_PTX);
}

static void explains_why_an_image_cannot_be_loaded(void **state)
{
	char log[512];
	unsigned char cubin[64] = "\177ELF";
	unsigned char fatbin[16 + 64 + 16] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 80 };
	CUmodule module;

	(void)state;
	if (!on_software_driver()) /* NVIDIA's driver would read machine code past the end of these truncated images */
		skip();
	cubin[18] = 190;
	fails(load(cubin, log, sizeof log), CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_non_null(strstr(log, "cubin"));
	cubin[18] = 62;
	fails(load(cubin, log, sizeof log), CUDA_ERROR_INVALID_IMAGE);
	fatbin[16] = 2;              /* one entry, which contains machine code */
	fatbin[18] = fatbin[19] = 1; /* version of the entry's header */
	fatbin[20] = 64;             /* bytes of the entry's header */
	fatbin[24] = 16;             /* bytes of the machine code */
	fails(load(fatbin, log, sizeof log), CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_non_null(strstr(log, "no PTX"));
	fails(load("", log, sizeof log), CUDA_ERROR_INVALID_IMAGE);
	assert_string_equal(log, "the image is empty");
	fails(load("\x01\x02\x03", log, sizeof log), CUDA_ERROR_INVALID_IMAGE);
	fails(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	fails(cuModuleLoadData(NULL, kernels_ptx), CUDA_ERROR_INVALID_VALUE);
	fails(cuModuleLoad(&module, "no/such/file.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}

static void loads_ptx_of_any_target(void **state)
{
	static const char *const targets[] = { "sm_20", "sm_75", "sm_90a", "sm_100", "sm_100f", "sm_120a" };
	char text[512], log[512];

	(void)state;
	if (!on_software_driver())
		skip();
	for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
		snprintf(text, sizeof text,
			 ".version 9.0\n.target %s\n.address_size 64\n"
			 ".visible .entry k()\n{\n\tret;\n}\n",
			 targets[k]);
		ok(load(text, log, sizeof log));
	}
	fails(load(".version 10.0\n.target sm_90\n.address_size 64\n", log, sizeof log), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

/* Kernel k reaches an instruction that is not interpreted, kernel other does not. */
static const char partly_ptx[] = ".version 9.0\n.target sm_100a\n.address_size 64\n.func helper()\n{\n"
				 "\ttcgen05.wait::ld.sync.aligned;\n\tret;\n}\n"
				 ".visible .entry k() { call helper; ret; }\n.visible .entry other() { ret; }\n";

static const char *last_fault(void)
{
	const char *(*call)(void);
	void *symbol = dlsym(RTLD_DEFAULT, "gpuloadSoftLastFault");

	assert_non_null(symbol);
	memcpy(&call, &symbol, sizeof symbol);
	return call();
}

static void refuses_only_the_kernels_that_reach_an_unsupported_instruction(void **state)
{
	char info[512] = "";
	CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { info, (void *)sizeof info };
	CUmodule module;
	CUfunction f = NULL, both[2];
	int threads;

	(void)state;
	if (!on_software_driver())
		skip();
	ok(cuModuleLoadDataEx(&module, partly_ptx, 2, options, values));
	assert_non_null(strstr(info, "<ptx>:6: tcgen05.wait"));
	fails(cuModuleGetFunction(&f, module, "k"), CUDA_ERROR_NOT_SUPPORTED);
	assert_null(f);
	assert_string_equal(last_fault(), info);
	assert_non_null(strstr(info, "kernel k "));
	ok(cuModuleEnumerateFunctions(both, 2, module));
	ok(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, both[0]));
	fails(cuFuncLoad(both[0]), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuLaunchKernel(both[0], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
	ok(cuModuleGetFunction(&f, module, "other"));
	launch(f, 1, 1, NULL, NULL);
	ok(cuCtxSynchronize());
	ok(cuModuleUnload(module));
}

static void refuses_a_kernel_of_a_library_when_its_function_is_needed(void **state)
{
	CUlibrary library;
	CUkernel k, other;
	CUfunction f = NULL;

	(void)state;
	if (!on_software_driver())
		skip();
	ok(cuLibraryLoadData(&library, partly_ptx, NULL, NULL, 0, NULL, NULL, 0));
	ok(cuLibraryGetKernel(&k, library, "k"));
	ok(cuLibraryGetKernel(&other, library, "other"));
	fails(cuKernelGetFunction(&f, k), CUDA_ERROR_NOT_SUPPORTED);
	assert_null(f);
	fails(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
	ok(cuKernelGetFunction(&f, other));
	launch(f, 1, 1, NULL, NULL);
	ok(cuCtxSynchronize());
	ok(cuLibraryUnload(library));
}

static void loads_the_ptx_of_a_fat_binary(void **state)
{
	size_t text_bytes = strlen(kernels_ptx) + 1, padded = (text_bytes + 7) / 8 * 8;
	unsigned char *fatbin = calloc(1, 16 + 64 + padded);
	uint64_t payload = 64 + padded;
	uint32_t header = 64, sm = 75;
	char log[512];
	struct {
		uint32_t magic, version;
		const void *data;
		void *unused;
	} wrapper = { 0x466243B1, 1, fatbin, NULL };

	(void)state;
	if (!on_software_driver()) { /* NVIDIA's driver refuses such a small fat binary */
		free(fatbin);
		skip();
	}
	memcpy(fatbin, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	memcpy(fatbin + 8, &payload, 8);
	fatbin[16] = 1;
	fatbin[18] = fatbin[19] = 1;
	memcpy(fatbin + 20, &header, 4);
	memcpy(fatbin + 24, &padded, 8);
	memcpy(fatbin + 16 + 28, &sm, 4);
	memcpy(fatbin + 80, kernels_ptx, text_bytes);
	ok(load(fatbin, log, sizeof log));
	ok(load(&wrapper, log, sizeof log));
	fatbin[16 + 28] = 120; /* the PTX is for a GPU that is newer than the device */
	ok(load(&wrapper, log, sizeof log));
	fatbin[16 + 41] = 0x80; /* this flag says that the PTX is compressed by zstd, but it is not */
	memcpy(fatbin + 16 + 16, &text_bytes, 4);
	memcpy(fatbin + 16 + 56, &text_bytes, 8);
	fails(load(&wrapper, log, sizeof log), CUDA_ERROR_INVALID_IMAGE);
	assert_non_null(strstr(log, "compressed data is damaged"));
	free(fatbin);
}

/* Create a fatbin with one entry; the caller frees it. */
static unsigned char *fatbin_of(unsigned kind, const char *text)
{
	size_t n = strlen(text) + 1, padded = (n + 7) / 8 * 8;
	unsigned char *f = calloc(1, 16 + 64 + padded);
	uint64_t payload = 64 + padded;

	memcpy(f, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	memcpy(f + 8, &payload, 8);
	f[16] = (unsigned char)kind;
	f[18] = f[19] = 1;
	f[20] = 64;
	memcpy(f + 24, &padded, 8);
	f[16 + 28] = 75;
	memcpy(f + 80, text, n);
	return f;
}

static void links_the_ptx_of_a_wrapper_of_nvcc_dlink(void **state)
{
	static const char caller[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
				     ".extern .func (.param .b32 r) seven();\n"
				     ".visible .entry k()\n{\n.param .b32 r;\ncall.uni (r), seven;\nret;\n}\n";
	static const char callee[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
				     ".visible .func (.param .b32 r) seven()\n{\nst.param.b32 [r], 7;\nret;\n}\n";
	unsigned char *machine = fatbin_of(2, "no PTX"), *a = fatbin_of(1, caller);
	unsigned char *b = fatbin_of(1, callee);
	const void *both[] = { a, b, NULL }, *one[] = { a, NULL };
	struct {
		uint32_t magic, version;
		const void *data;
		const void **linked_from;
	} wrapper = { 0x466243B1, 2, machine, both };
	char log[512];

	(void)state;
	if (on_software_driver()) {
		ok(load(&wrapper, log, sizeof log));
		wrapper.linked_from = one;
		fails(load(&wrapper, log, sizeof log), CUDA_ERROR_INVALID_IMAGE);
		assert_non_null(strstr(log, "'seven'"));
		wrapper.version = 1;
		fails(load(&wrapper, log, sizeof log), CUDA_ERROR_NO_BINARY_FOR_GPU);
	}
	free(machine);
	free(a);
	free(b);
}

static void loads_a_file(void **state)
{
	char path[] = "test_module.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	CUmodule module;
	CUlibrary library;

	(void)state;
	assert_non_null(f);
	fputs(kernels_ptx, f);
	fclose(f);
	ok(cuModuleLoad(&module, path));
	ok(cuModuleUnload(module));
	ok(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
	ok(cuLibraryUnload(library));
	remove(path);
}

/* ---- libraries -------------------------------------------------------------------------- */

static CUlibrary load_library(void)
{
	CUlibrary library;

	ok(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	return library;
}

static void gives_each_context_separate_variables(void **state)
{
	CUlibrary library = load_library();
	CUcontext second;
	CUkernel kernel;
	CUdeviceptr here, there;
	uint32_t value;

	ok(cuLibraryGetKernel(&kernel, library, "bump"));
	ok(cuLibraryGetGlobal(&here, NULL, library, "counter"));
	launch((CUfunction)kernel, 1, 1, NULL, NULL);
	ok(cuMemcpyDtoH(&value, here, 4));
	assert_int_equal(value, 27);
	ok(cuCtxCreate(&second, NULL, 0, 0));
	ok(cuLibraryGetGlobal(&there, NULL, library, "counter"));
	assert_true(here != there);
	ok(cuMemcpyDtoH(&value, there, 4));
	assert_int_equal(value, 7);
	ok(cuCtxDestroy(second));
	assert_int_equal(cuCtxSetCurrent(*state), CUDA_SUCCESS);
	ok(cuMemcpyDtoH(&value, here, 4));
	assert_int_equal(value, 27);
	ok(cuLibraryUnload(library));
	if (!on_software_driver()) /* NVIDIA's driver dereferences stale handles */
		return;
	fails(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	fails(cuLibraryGetKernel(&kernel, library, "bump"), CUDA_ERROR_INVALID_HANDLE);
}

static void lists_the_kernels_of_a_library_without_a_context(void **state)
{
	CUlibrary library, owner;
	CUkernel kernel, list[16];
	CUfunction f;
	CUcontext saved;
	const char *name;
	size_t offset, bytes;
	unsigned n;
	int value;

	(void)state;
	ok(cuCtxPopCurrent(&saved));
	library = load_library();
	ok(cuLibraryGetKernelCount(&n, library));
	assert_int_equal(n, 8);
	ok(cuLibraryEnumerateKernels(list, 16, library));
	ok(cuLibraryGetKernel(&kernel, library, "vecadd"));
	assert_ptr_equal(list[0], kernel);
	ok(cuKernelGetName(&name, kernel));
	assert_string_equal(name, "vecadd");
	ok(cuKernelGetLibrary(&owner, kernel));
	assert_ptr_equal(owner, library);
	ok(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel, 0));
	assert_int_equal(value, 75);
	fails(cuLibraryGetKernel(&kernel, library, "none"), CUDA_ERROR_NOT_FOUND);
	fails(cuKernelGetFunction(&f, list[0]), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_not_equal(cuKernelGetParamInfo(list[0], 3, &offset, &bytes), CUDA_SUCCESS);
	ok(cuCtxPushCurrent(saved));
	ok(cuKernelGetParamInfo(list[0], 3, &offset, &bytes));
	assert_int_equal(offset, 24);
	assert_int_equal(bytes, 4);
	ok(cuKernelGetFunction(&f, list[0]));
	ok(cuFuncGetName(&name, f));
	assert_string_equal(name, "vecadd");
	if (on_software_driver())
		fails(cuModuleUnload((CUmodule)library), CUDA_ERROR_INVALID_HANDLE);
	ok(cuLibraryUnload(library));
	if (!on_software_driver())
		return;
	fails(cuKernelGetName(&name, list[0]), CUDA_ERROR_INVALID_HANDLE);
	fails(cuKernelGetFunction(&f, list[0]), CUDA_ERROR_INVALID_HANDLE);
}

/* Loading succeeds on an H200, too, because its driver parses an image only when a kernel is first needed. */
static void loads_other_data_as_a_library_without_kernels(void **state)
{
	static const struct {
		char image[4096];
		const char *why;
	} cases[] = {
		{ "\177ELF\2\1\1", "an ELF file, but not device code" },
		{ "!<arch>\n", "neither PTX nor device code: its first byte is 0x21" },
		{ "hello, world", "neither PTX nor device code: its first byte is 0x68" },
		{ "", "the image is empty" },
	};
	CUlibrary library;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char info[256] = "";
		CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
		void *values[] = { info, (void *)sizeof info };
		CUkernel kernel;
		CUmodule module;
		CUdeviceptr address;
		size_t bytes;
		unsigned n = 1;

		ok(cuLibraryLoadData(&library, cases[i].image, options, values, 2, NULL, NULL, 0));
		ok(cuLibraryGetKernelCount(&n, library));
		assert_int_equal(n, 0);
		if (on_software_driver()) {
			assert_non_null(strstr(info, cases[i].why));
			fails(cuLibraryGetKernel(&kernel, library, "k"), CUDA_ERROR_INVALID_IMAGE);
			fails(cuLibraryGetModule(&module, library), CUDA_ERROR_INVALID_IMAGE);
			fails(cuLibraryGetGlobal(&address, &bytes, library, "k"), CUDA_ERROR_INVALID_IMAGE);
			assert_non_null(strstr(last_fault(), "kernel 'k' not found"));
			assert_non_null(strstr(last_fault(), cases[i].why));
		}
		ok(cuLibraryUnload(library));
	}
}

static void applies_a_kernels_attributes_to_its_functions(void **state)
{
	CUlibrary library = load_library();
	CUkernel kernel;
	CUfunction f;
	int value;

	(void)state;
	ok(cuLibraryGetKernel(&kernel, library, "shared_end"));
	ok(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, kernel, 0));
	ok(cuKernelGetFunction(&f, kernel));
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
	assert_int_equal(value, 60000);
	ok(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 70000, kernel, 0));
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
	assert_int_equal(value, 70000);
	fails(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20, kernel, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 4, kernel, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 5), CUDA_ERROR_INVALID_DEVICE);
	ok(cuLibraryUnload(library));
}

/* ---- functions -------------------------------------------------------------------------- */

static void reports_the_parameters_and_attributes_of_a_function(void **state)
{
	static const size_t offsets[] = { 0, 8, 16, 24 }, sizes[] = { 8, 8, 8, 4 };
	CUfunction f = get_kernel("vecadd"), g = get_kernel("at_most_64");
	size_t offset, bytes;
	int value;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		ok(cuFuncGetParamInfo(f, i, &offset, &bytes));
		assert_int_equal(offset, offsets[i]);
		assert_int_equal(bytes, sizes[i]);
	}
	fails(cuFuncGetParamInfo(f, 4, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	assert_int_equal(value, 1024);
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, g));
	assert_int_equal(value, 64);
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, f));
	assert_int_equal(value, 90);
	ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, f));
	assert_int_equal(value, 16);
	fails(cuFuncGetAttribute(&value, (CUfunction_attribute)77, f), CUDA_ERROR_INVALID_VALUE);
	fails(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL), CUDA_ERROR_INVALID_HANDLE);
	fails(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, *state), CUDA_ERROR_INVALID_HANDLE);
	ok(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
}

static void counts_how_many_blocks_fit(void **state)
{
	CUfunction f = get_kernel("put");
	size_t bytes;
	int n, grid, block;

	(void)state;
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 1024, 0));
	assert_true(n >= 1 && n <= 2);
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 48 * 1024));
	assert_true(n >= 1 && n <= 4);
	ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 2048, 0));
	assert_int_equal(n, 0);
	fails(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 0, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 256));
	assert_true(block > 0 && block <= 256 && grid > 0);
	ok(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 128));
	assert_int_equal(bytes, 48 * 1024);
	ok(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 * 1024));
	ok(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 128));
	assert_int_equal(bytes, (228 / 2 - 1) * 1024);
	ok(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 1, 128));
	assert_int_equal(bytes, 200 * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions_and_variables_by_name),
		cmocka_unit_test(loads_a_module_with_many_variables_and_kernels),
		cmocka_unit_test(loads_functions_with_many_paths_to_a_recursion),
		cmocka_unit_test(reports_the_line_of_an_error_in_ptx),
		cmocka_unit_test(explains_why_an_image_cannot_be_loaded),
		cmocka_unit_test(loads_ptx_of_any_target),
		cmocka_unit_test(refuses_only_the_kernels_that_reach_an_unsupported_instruction),
		cmocka_unit_test(refuses_a_kernel_of_a_library_when_its_function_is_needed),
		cmocka_unit_test(loads_the_ptx_of_a_fat_binary),
		cmocka_unit_test(links_the_ptx_of_a_wrapper_of_nvcc_dlink),
		cmocka_unit_test(loads_a_file),
		cmocka_unit_test(gives_each_context_separate_variables),
		cmocka_unit_test(lists_the_kernels_of_a_library_without_a_context),
		cmocka_unit_test(loads_other_data_as_a_library_without_kernels),
		cmocka_unit_test(applies_a_kernels_attributes_to_its_functions),
		cmocka_unit_test(reports_the_parameters_and_attributes_of_a_function),
		cmocka_unit_test(counts_how_many_blocks_fit),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
