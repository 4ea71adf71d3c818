/* test_link.c — cuLink*: inputs of every kind are linked to one image, which is loaded and run. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct linking {
	CUlinkState state;
	char log[1024];
	CUjit_option options[2];
	void *values[2];
};

static void begin(struct linking *l)
{
	*l = (struct linking){
		.options = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES },
		.values = { l->log, (void *)(uintptr_t)sizeof l->log },
	};
	ok(cuLinkCreate(2, l->options, l->values, &l->state));
}

static CUresult add_ptx(struct linking *l, const char *text, const char *name)
{
	return cuLinkAddData(l->state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1, name, 0, NULL, NULL);
}

/* Link, load the result and destroy the linker. */
static CUmodule finish(struct linking *l)
{
	CUmodule module = NULL;
	void *image;
	size_t bytes;

	if (cuLinkComplete(l->state, &image, &bytes))
		fail_msg("%s", l->log);
	assert_true(bytes > 0);
	ok(cuModuleLoadData(&module, image));
	ok(cuLinkDestroy(l->state));
	return module;
}

static void fails_to_link(struct linking *l, const char *word)
{
	void *image;
	size_t bytes;

	assert_int_not_equal(cuLinkComplete(l->state, &image, &bytes), CUDA_SUCCESS);
	if (on_software_driver() && !strstr(l->log, word))
		fail_msg("no \"%s\" in \"%s\"", word, l->log);
	ok(cuLinkDestroy(l->state));
}

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"

/* ---- a register limit ---------------------------------------------------------------------- */

/* Two kernels that use 80 registers each; the register limit is ignored for the second one, because it has launch bounds. */
#define LIMITED \
	HEAD ".visible .entry k(.param .u64 p) { .reg .b64 %d<20>; .reg .b64 %e<20>; ret; }\n" \
	     ".visible .entry bound(.param .u64 p) .maxntid 64, 1, 1 { .reg .b64 %d<20>; .reg .b64 %e<20>; ret; }\n"

static int registers_of(CUmodule module, const char *kernel)
{
	CUfunction f;
	int n;

	ok(cuModuleGetFunction(&f, module, kernel));
	ok(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
	return n;
}

static void a_limit_of_registers_holds_for_loaded_and_for_linked_kernels(void **state)
{
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	void *value = (void *)(uintptr_t)24, *image;
	CUmodule limited, module;
	CUlinkState l;
	size_t bytes;

	(void)state;
	if (!on_software_driver())
		skip(); /* NVIDIA's compiler removes the unused registers, so it would accept the limit */
	ok(cuModuleLoadDataEx(&limited, LIMITED, 1, &option, &value));
	assert_int_equal(registers_of(limited, "k"), 24);
	assert_int_equal(registers_of(limited, "bound"), 80);
	ok(cuModuleUnload(limited));
	ok(cuLinkCreate(1, &option, &value, &l));
	ok(cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)LIMITED, sizeof LIMITED, "limited.ptx", 0, NULL, NULL));
	ok(cuLinkComplete(l, &image, &bytes));
	ok(cuModuleLoadData(&module, image));
	ok(cuLinkDestroy(l));
	assert_int_equal(registers_of(module, "k"), 24);
	assert_int_equal(registers_of(module, "bound"), 80);
	ok(cuModuleUnload(module));
}

/* ---- one input ----------------------------------------------------------------------------- */

static void a_single_ptx_text_is_not_changed(void **state)
{
	struct linking l;
	CUmodule module;
	CUfunction f;
	void *image;
	size_t bytes;

	(void)state;
	begin(&l);
	fails(add_ptx(&l, "nonsense", "n"), CUDA_ERROR_INVALID_PTX);
	ok(cuLinkDestroy(l.state));
	begin(&l);
	ok(add_ptx(&l, kernels_ptx, "kernels.ptx"));
	if (on_software_driver()) {
		ok(cuLinkComplete(l.state, &image, &bytes));
		assert_string_equal(image, kernels_ptx);
		assert_int_equal(bytes, strlen(kernels_ptx) + 1);
		fails(add_ptx(&l, kernels_ptx, "late.ptx"), CUDA_ERROR_INVALID_VALUE);
	}
	module = finish(&l); /* completing a second time returns the same image */
	ok(cuModuleGetFunction(&f, module, "vecadd"));
	ok(cuModuleUnload(module));
}

static void refuses_no_input_invalid_handles_and_missing_files(void **state)
{
	struct linking l;
	void *image;
	size_t bytes;

	(void)state;
	begin(&l);
	if (on_software_driver())
		fails(cuLinkComplete(l.state, &image, &bytes), CUDA_ERROR_INVALID_IMAGE);
	fails(cuLinkAddFile(l.state, CU_JIT_INPUT_PTX, "no/such.ptx", 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
	ok(cuLinkDestroy(l.state));
	if (on_software_driver())
		fails(cuLinkDestroy(l.state), CUDA_ERROR_INVALID_HANDLE);
}

/* ---- several inputs ------------------------------------------------------------------------------- */

/* The PTX that nvcc -dc generates from
 *
 *     extern __device__ int calls; extern __device__ int (*chosen)(int); __device__ int plus(int);
 *     static __device__ int bias = 100; static __device__ int mine(int x) { return x + bias; }
 *     __global__ void k(int *out) { calls++; out[i] = plus(i) + mine(i) + chosen(i); } */
static const char caller[] = HEAD ".extern .func (.param .b32 r) plus(.param .b32 a);\n"
				  ".extern .global .align 4 .u32 calls;\n.extern .global .align 8 .b64 chosen;\n"
				  ".global .align 4 .u32 bias = 100;\n"
				  ".func (.param .b32 r) mine(.param .b32 a)\n{ .reg .b32 %r<4>;\n"
				  "ld.param.b32 %r1, [a]; ld.global.u32 %r2, [bias]; add.s32 %r3, %r1, %r2;\n"
				  "st.param.b32 [r], %r3; ret; }\n"
				  ".visible .entry k(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
				  "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
				  "add.s64 %rd3, %rd1, %rd2; ld.global.u64 %rd4, [chosen];\n"
				  "mov.u64 %rd5, calls; atom.global.add.u32 %r2, [%rd5], 1;\n"
				  "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r1;\n"
				  "call.uni (v), plus, (a); ld.param.b32 %r3, [v]; }\n"
				  "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r1;\n"
				  "call.uni (v), mine, (a); ld.param.b32 %r4, [v]; }\n"
				  "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r1;\n"
				  "p: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
				  "call (v), %rd4, (a), p; ld.param.b32 %r5, [v]; }\n"
				  "add.s32 %r6, %r3, %r4; add.s32 %r7, %r6, %r5; st.global.u32 [%rd3], %r7; ret; }\n";

/* __device__ int calls = 5; static __device__ int bias = 1000;
 * static __device__ int mine(int x) { return 2 * x + bias; }
 * __device__ int plus(int x) { return mine(x); } __device__ int (*chosen)(int) = plus; */
static const char callee[] = HEAD ".visible .func (.param .b32 r) plus(.param .b32 a);\n"
				  ".visible .global .align 4 .u32 calls = 5;\n.global .align 4 .u32 bias = 1000;\n"
				  ".visible .global .align 8 .u64 chosen = plus;\n"
				  ".func (.param .b32 r) mine(.param .b32 a)\n{ .reg .b32 %r<4>;\n"
				  "ld.param.b32 %r1, [a]; ld.global.u32 %r2, [bias]; mad.lo.s32 %r3, %r1, 2, %r2;\n"
				  "st.param.b32 [r], %r3; ret; }\n"
				  ".visible .func (.param .b32 r) plus(.param .b32 a)\n{ .reg .b32 %r<3>;\n"
				  "ld.param.b32 %r1, [a];\n"
				  "{ .param .b32 a1; .param .b32 v; st.param.b32 [a1], %r1;\n"
				  "call.uni (v), mine, (a1); ld.param.b32 %r2, [v]; }\n"
				  "st.param.b32 [r], %r2; ret; }\n";

static void run_caller(CUmodule module)
{
	CUfunction k;
	CUdeviceptr out, calls;
	size_t bytes;
	void *params[] = { &out };
	int32_t values[8];
	uint32_t n_calls;

	ok(cuModuleGetFunction(&k, module, "k"));
	ok(cuModuleGetGlobal(&calls, &bytes, module, "calls"));
	assert_int_equal(bytes, 4);
	ok(cuMemAlloc(&out, sizeof values));
	launch(k, 1, 8, NULL, params);
	ok(cuCtxSynchronize());
	ok(cuMemcpyDtoH(values, out, sizeof values));
	ok(cuMemcpyDtoH(&n_calls, calls, sizeof n_calls));
	ok(cuMemFree(out));
	assert_int_equal(n_calls, 5 + 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(values[i], 2 * (2 * i + 1000) + i + 100);
}

static void links_functions_variables_and_pointers_of_two_inputs(void **state)
{
	(void)state;
	for (int swapped = 0; swapped < 2; swapped++) {
		struct linking l;
		CUmodule module;

		begin(&l);
		ok(add_ptx(&l, swapped ? callee : caller, "first.ptx"));
		ok(add_ptx(&l, swapped ? caller : callee, "second.ptx"));
		module = finish(&l);
		run_caller(module);
		ok(cuModuleUnload(module));
	}
}

static void explains_why_inputs_cannot_be_linked(void **state)
{
	struct linking l;

	(void)state;
	begin(&l);
	ok(add_ptx(&l, caller, "caller.ptx"));
	fails_to_link(&l, "is not defined");
	begin(&l);
	ok(add_ptx(&l, callee, "one.ptx"));
	ok(add_ptx(&l, callee, "two.ptx"));
	fails_to_link(&l, "two.ptx");
}

/* ---- other kinds of inputs --------------------------------------------------------------------------- */

/* Open a file that nvcc compiled; false: nvcc is not installed. */
static bool input_path(const char *name, char path[512])
{
	const char *build = getenv("GPULOAD_BUILD");

	snprintf(path, 512, "%s/tests/inputs/%s", build ? build : "build", name);
	return access(path, R_OK) == 0;
}

static void links_objects_and_libraries_of_nvcc(void **state)
{
	static const struct {
		const char *name[2];
		CUjitInputType type;
	} rows[] = {
		{ { "part_kernel.o", "part_plus.o" }, CU_JIT_INPUT_OBJECT },
		{ { "libpart.a", NULL }, CU_JIT_INPUT_LIBRARY },
	};
	char path[512];
	CUfunction f;

	(void)state;
	if (!input_path("part_plus.o", path))
		skip();
	if (!on_software_driver())
		skip(); /* NVIDIA's linker omits unreferenced members of a library, so the kernel would be missing */
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct linking l;
		CUmodule module;

		begin(&l);
		for (int k = 0; k < 2 && rows[i].name[k]; k++) {
			assert_true(input_path(rows[i].name[k], path));
			ok(cuLinkAddFile(l.state, rows[i].type, path, 0, NULL, NULL));
		}
		module = finish(&l);
		ok(cuModuleGetFunction(&f, module, "vecadd"));
		ok(cuModuleUnload(module));
	}
}

/* Functions of libcudadevrt refer to functions that exist only in NVIDIA's driver: the link must succeed if no kernel reaches them. */
static void what_no_kernel_reaches_in_a_library_may_be_incomplete(void **state)
{
	static const char library[] = HEAD
		".extern .func (.param .b32 r) missing();\n"
		".visible .func (.param .b32 r) eight()\n{\n\tst.param.b32 [r], 8;\n\tret;\n}\n"
		".visible .func (.param .b32 r) other()\n{\n\t.reg .b32 %v;\n"
		"\t{\n\t.param .b32 s;\n\tcall (s), missing;\n\tld.param.b32 %v, [s];\n\t}\n\tst.param.b32 [r], %v;\n\tret;\n}\n";
	static const char *const called[] = { "eight", "other" };
	char text[1024];
	CUmodule module;
	CUfunction f;

	(void)state;
	if (!on_software_driver())
		skip(); /* NVIDIA's driver does not accept PTX as a library */
	for (int i = 0; i < 2; i++) {
		struct linking l;

		snprintf(
			text, sizeof text,
			HEAD
			".extern .func (.param .b32 r) %s();\n.visible .entry k(.param .u64 p)\n{\n\t.reg .b64 %%a;\n\t.reg .b32 %%v;\n"
			"\tld.param.u64 %%a, [p];\n\t{\n\t.param .b32 r;\n\tcall (r), %s;\n\tld.param.b32 %%v, [r];\n\t}\n\tst.global.u32 [%%a], %%v;\n\tret;\n}\n",
			called[i], called[i]);
		begin(&l);
		ok(cuLinkAddData(l.state, CU_JIT_INPUT_LIBRARY, (void *)(uintptr_t)library, sizeof library, "library", 0, NULL, NULL));
		ok(add_ptx(&l, text, "kernel.ptx"));
		if (i == 1) {
			fails_to_link(&l, "'missing' is not defined");
			continue;
		}
		module = finish(&l);
		ok(cuModuleGetFunction(&f, module, "k"));
		ok(cuModuleUnload(module));
	}
}

static void refuses_inputs_without_ptx(void **state)
{
	char path[512], elf[64] = "\177ELF";
	struct linking l;

	(void)state;
	if (!on_software_driver())
		skip();
	begin(&l);
	fails(cuLinkAddData(l.state, CU_JIT_INPUT_CUBIN, elf, sizeof elf, "c", 0, NULL, NULL), CUDA_ERROR_NO_BINARY_FOR_GPU);
	fails(cuLinkAddData(l.state, CU_JIT_INPUT_NVVM, elf, sizeof elf, "n", 0, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
	fails(cuLinkAddData(l.state, CU_JIT_INPUT_OBJECT, elf, sizeof elf, "o", 0, NULL, NULL), CUDA_ERROR_INVALID_IMAGE);
	if (input_path("vec.sm_90.cubin", path))
		fails(cuLinkAddFile(l.state, CU_JIT_INPUT_FATBINARY, path, 0, NULL, NULL), CUDA_ERROR_NO_BINARY_FOR_GPU);
	if (input_path("host.o", path))
		fails(cuLinkAddFile(l.state, CU_JIT_INPUT_OBJECT, path, 0, NULL, NULL), CUDA_ERROR_INVALID_IMAGE);
	ok(cuLinkDestroy(l.state));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_of_registers_holds_for_loaded_and_for_linked_kernels),
		cmocka_unit_test(a_single_ptx_text_is_not_changed),
		cmocka_unit_test(refuses_no_input_invalid_handles_and_missing_files),
		cmocka_unit_test(links_functions_variables_and_pointers_of_two_inputs),
		cmocka_unit_test(explains_why_inputs_cannot_be_linked),
		cmocka_unit_test(links_objects_and_libraries_of_nvcc),
		cmocka_unit_test(what_no_kernel_reaches_in_a_library_may_be_incomplete),
		cmocka_unit_test(refuses_inputs_without_ptx),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
