/* test_cubin.c — cubins with line information, which contain their PTX.  NVIDIA's driver would need their machine code,
 * which is missing here. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/loader/image/forge.h"

#define HEAD ".version 7.5\0.target sm_75\0.address_size 64\0"
#define STORE(name, value) \
	".visible .entry " name "(.param .u64 p)\0{\0.reg .b64 %a;\0.reg .b32 %v;\0ld.param.u64 %a, [p];\0" value \
	"st.global.u32 [%a], %v;\0ret;\0}\0"

static const char alone[] = HEAD STORE("k", "mov.u32 %v, 42;\0");
static const char caller[] = HEAD
	".extern .func (.param .b32 r) seven();\0" STORE("k", "{\0.param .b32 r;\0call (r), seven;\0ld.param.b32 %v, [r];\0}\0");
static const char callee[] = HEAD ".visible .func (.param .b32 r) seven()\0{\0st.param.b32 [r], 7;\0ret;\0}\0";
static forge made;

/* Create a cubin with up to two sections of PTX lines, one for each compilation unit; one or two may be NULL. */
static void make_cubin(const char *one, size_t one_bytes, const char *two, size_t two_bytes)
{
	unsigned symbol, i;

	forge_start(&made, false, 90, false);
	forge_kernel(&made, "k", &symbol);
	if (one) {
		i = forge_section(&made, ".nv_debug_ptx_txt.1", SHT_PROGBITS, 0, one_bytes);
		made.content[i] = one;
	}
	if (two) {
		i = forge_section(&made, ".nv_debug_ptx_txt.2", SHT_PROGBITS, 0, two_bytes);
		made.content[i] = two;
	}
	forge_finish(&made);
}

static void make_alone(void)
{
	make_cubin(alone, sizeof alone - 1, NULL, 0);
}

/* A fat binary with one entry: the uncompressed cubin. */
static struct {
	uint32_t header[4], entry[16];
	unsigned char cubin[FORGE_ROOM];
} fatbin;

static size_t make_fatbin(void)
{
	const uint32_t n = (uint32_t)made.n_bytes;

	memcpy(fatbin.header, (uint32_t[4]){ 0xba55ed50, 16 << 16 | 1, 64 + n, 0 }, sizeof fatbin.header);
	memcpy(fatbin.entry, (uint32_t[16]){ 0x1010002, 64, n, [7] = 90, [10] = 0x11 }, sizeof fatbin.entry);
	memcpy(fatbin.cubin, made.bytes, n);
	return 80 + n;
}

/* Run the kernel k of a function; return the word that the kernel stores. */
static unsigned run(CUfunction f)
{
	unsigned value = 0;
	CUdeviceptr to;
	void *params[] = { &to };

	ok(cuMemAlloc(&to, 4));
	ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ok(cuMemcpyDtoH(&value, to, 4));
	ok(cuMemFree(to));
	return value;
}

static unsigned load_and_run(const void *image)
{
	CUmodule module;
	CUfunction f;
	unsigned value;

	ok(cuModuleLoadData(&module, image));
	ok(cuModuleGetFunction(&f, module, "k"));
	value = run(f);
	ok(cuModuleUnload(module));
	return value;
}

static void the_ptx_in_a_cubin_runs(void **state)
{
	char path[] = "/tmp/gpuload-test-cubin-XXXXXX";
	int fd = mkstemp(path);
	CUlibrary library;
	CUmodule module;
	CUkernel kernel;
	CUfunction f;

	(void)state;
	if (!on_software_driver())
		skip();
	make_alone();
	assert_int_equal(load_and_run(made.bytes), 42);
	ok(cuLibraryLoadData(&library, made.bytes, NULL, NULL, 0, NULL, NULL, 0));
	ok(cuLibraryGetKernel(&kernel, library, "k"));
	ok(cuKernelGetFunction(&f, kernel));
	assert_int_equal(run(f), 42);
	ok(cuLibraryUnload(library));
	assert_int_equal(write(fd, made.bytes, made.n_bytes), made.n_bytes);
	ok(cuModuleLoad(&module, path));
	ok(cuModuleGetFunction(&f, module, "k"));
	assert_int_equal(run(f), 42);
	ok(cuModuleUnload(module));
	assert_int_equal(ftruncate(fd, (off_t)made.n_bytes / 2), 0);
	fails(cuModuleLoad(&module, path), CUDA_ERROR_NO_BINARY_FOR_GPU);
	close(fd);
	unlink(path);
}

static void the_units_of_linked_code_are_linked(void **state)
{
	(void)state;
	if (!on_software_driver())
		skip();
	make_cubin(caller, sizeof caller - 1, callee, sizeof callee - 1);
	assert_int_equal(load_and_run(made.bytes), 7);
}

static void the_ptx_in_the_cubin_of_a_fat_binary_runs(void **state)
{
	(void)state;
	if (!on_software_driver())
		skip();
	make_alone();
	make_fatbin();
	assert_int_equal(load_and_run(&fatbin), 42);
}

static void a_cubin_whose_ptx_is_damaged_is_refused(void **state)
{
	static const char damaged[] = HEAD "nonsense\0";
	CUmodule module;

	(void)state;
	if (!on_software_driver())
		skip();
	make_cubin(damaged, sizeof damaged - 1, NULL, 0);
	fails(cuModuleLoadData(&module, made.bytes), CUDA_ERROR_INVALID_PTX);
	make_cubin(damaged, sizeof damaged - 1, alone, sizeof alone - 1);
	fails(cuModuleLoadData(&module, made.bytes), CUDA_ERROR_INVALID_IMAGE);
	make_cubin(caller, sizeof caller - 1, caller, sizeof caller - 1);
	fails(cuModuleLoadData(&module, made.bytes), CUDA_ERROR_INVALID_IMAGE);
	make_cubin(NULL, 0, NULL, 0);
	fails(cuModuleLoadData(&module, made.bytes), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

static void machine_code_is_reported_once(void **state)
{
	FILE *log = tmpfile();
	int screen = dup(STDERR_FILENO), n_lines = 0;
	char line[512];
	CUmodule module;

	(void)state;
	if (!on_software_driver())
		skip();
	assert_non_null(log);
	make_cubin(NULL, 0, NULL, 0);
	dup2(fileno(log), STDERR_FILENO);
	for (int i = 0; i < 2; i++)
		if (cuModuleLoadData(&module, made.bytes) != CUDA_ERROR_NO_BINARY_FOR_GPU)
			n_lines = -9;
	dup2(screen, STDERR_FILENO);
	close(screen);
	rewind(log);
	while (fgets(line, sizeof line, log))
		n_lines += strstr(line, "machine code without PTX") != NULL;
	fclose(log);
	assert_int_equal(n_lines, 1);
}

static void cubins_with_ptx_can_be_linked(void **state)
{
	CUlinkState link;
	void *image;
	size_t n;

	(void)state;
	if (!on_software_driver())
		skip();
	ok(cuLinkCreate(0, NULL, NULL, &link));
	make_cubin(caller, sizeof caller - 1, NULL, 0);
	ok(cuLinkAddData(link, CU_JIT_INPUT_CUBIN, made.bytes, made.n_bytes, "caller", 0, NULL, NULL));
	make_cubin(callee, sizeof callee - 1, NULL, 0);
	n = make_fatbin();
	ok(cuLinkAddData(link, CU_JIT_INPUT_FATBINARY, &fatbin, n, "callee", 0, NULL, NULL));
	ok(cuLinkComplete(link, &image, &n));
	assert_int_equal(load_and_run(image), 7);
	ok(cuLinkDestroy(link));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine_code_is_reported_once), /* must be first, because other tests also load machine code */
		cmocka_unit_test(the_ptx_in_a_cubin_runs),
		cmocka_unit_test(the_units_of_linked_code_are_linked),
		cmocka_unit_test(the_ptx_in_the_cubin_of_a_fat_binary_runs),
		cmocka_unit_test(a_cubin_whose_ptx_is_damaged_is_refused),
		cmocka_unit_test(cubins_with_ptx_can_be_linked),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
