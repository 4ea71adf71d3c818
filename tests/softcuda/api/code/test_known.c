/* test_known.c — large images whose kernels' attributes are in the cache on disk: loaded again, they have the same attributes and
 * results, in every context. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_KERNELS = 200, TEXT_BYTES = 100 << 10 };

/* A fat binary with one entry: uncompressed PTX. */
static struct {
	uint32_t header[4], entry[16];
	char text[TEXT_BYTES];
} image;

static char folder[64], file[256]; /* the cache of a test, and the file in it that was found last */
static off_t file_bytes;
static time_t file_time;
static int n_files;

static int see_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)at;
	if (kind == FTW_F) {
		(void)snprintf(file, sizeof file, "%s", path);
		file_bytes = st->st_size;
		file_time = st->st_mtime;
		n_files++;
	}
	return 0;
}

static int files_in_cache(void)
{
	n_files = 0;
	assert_int_equal(nftw(folder, see_file, 8, FTW_PHYS), 0);
	return n_files;
}

static int set_up(void **state)
{
	strcpy(folder, "/tmp/gpuload-known-XXXXXX");
	if (!mkdtemp(folder) || setenv("GPULOAD_CACHE", folder, 1))
		return -1;
	return make_context(state);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int tear_down(void **state)
{
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) | destroy_context(state);
}

/* Kernel k<i> adds i to a variable of the module, and stores the sum.  It has i * 16 bytes of local and of shared memory.  last: the
 * instructions of another kernel. */
static void make_image(const char *last)
{
	char *const text = image.text;
	const size_t room = sizeof image.text;
	int n = snprintf(text, room, ".version 8.0\n.target sm_75\n.address_size 64\n.visible .global .u32 sum = 5;\n");

	for (int i = 1; i <= N_KERNELS; i++)
		n += snprintf(text + n, room - (size_t)n,
			      ".visible .entry k%d(.param .u64 out)\n{\n.reg .b64 %%a<2>;\n.reg .b32 %%v<%d>;\n.local .align 4 .b8 l[%d];\n"
			      ".shared .align 4 .b8 s[%d];\nmov.u64 %%a1, l;\nmov.u64 %%a1, s;\nld.param.u64 %%a0, [out];\n"
			      "atom.global.add.u32 %%v0, [sum], %d;\nadd.u32 %%v0, %%v0, %d;\nst.global.u32 [%%a0], %%v0;\nret;\n}\n",
			      i, 20 + i, i * 16, i * 16, i, i);
	n += snprintf(text + n, room - (size_t)n, ".visible .entry last() { %s ret; }\n", last);
	assert_in_range(n, 32 << 10, room - 8);
	n = (n + 8) & ~7;
	memcpy(image.header, (uint32_t[4]){ 0xba55ed50, 16 << 16 | 1, 64 + (uint32_t)n, 0 }, sizeof image.header);
	memcpy(image.entry, (uint32_t[16]){ 0x1010001, 64, (uint32_t)n, [7] = 75, [10] = 0x11 }, sizeof image.entry);
}

static const CUfunction_attribute attributes[] = { CU_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
						   CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES };

static void read_attributes(CUlibrary library, int out[N_KERNELS][3])
{
	for (int i = 0; i < N_KERNELS; i++) {
		char name[16];
		CUkernel k;

		(void)snprintf(name, sizeof name, "k%d", i + 1);
		ok(cuLibraryGetKernel(&k, library, name));
		for (int a = 0; a < 3; a++)
			ok(cuKernelGetAttribute(&out[i][a], attributes[a], k, 0));
		assert_int_equal(out[i][1], (i + 1) * 16);
		assert_int_equal(out[i][2], (i + 1) * 16);
	}
}

/* Launch a kernel of the library in the current context. */
static unsigned run(CUlibrary library, const char *name)
{
	unsigned value = 0;
	CUkernel kernel;
	CUfunction f;
	CUdeviceptr out;

	ok(cuLibraryGetKernel(&kernel, library, name));
	ok(cuKernelGetFunction(&f, kernel));
	ok(cuMemAlloc(&out, sizeof value));
	ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &out }, NULL));
	ok(cuMemcpyDtoH(&value, out, sizeof value));
	ok(cuMemFree(out));
	return value;
}

/* Load the image, check its attributes and results in two contexts, which have separate variables, and unload it. */
static void use(int out[N_KERNELS][3])
{
	CUlibrary library;
	CUcontext other;

	ok(cuLibraryLoadData(&library, &image, NULL, NULL, 0, NULL, NULL, 0));
	read_attributes(library, out);
	assert_int_equal(run(library, "k7"), 5 + 7);
	assert_int_equal(run(library, "k100"), 12 + 100);
	ok(cuCtxCreate(&other, NULL, 0, 0));
	assert_int_equal(run(library, "k7"), 5 + 7);
	ok(cuCtxDestroy(other));
	ok(cuLibraryUnload(library));
}

static void an_image_is_known_when_it_is_loaded_again(void **state)
{
	static int first[N_KERNELS][3], again[N_KERNELS][3];
	const struct timespec long_ago[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	(void)state;
	make_image("");
	use(first);
	assert_int_equal(files_in_cache(), 1);
	assert_int_equal(utimensat(AT_FDCWD, file, long_ago, 0), 0);
	use(again);
	assert_memory_equal(again, first, sizeof first);
	assert_int_equal(files_in_cache(), 1);
	assert_true(file_time > 1000); /* the use of the file has replaced its old time */
}

static void a_damaged_result_is_made_again(void **state)
{
	static int first[N_KERNELS][3], again[N_KERNELS][3];
	off_t bytes;

	(void)state;
	make_image("");
	use(first);
	assert_int_equal(files_in_cache(), 1);
	bytes = file_bytes;
	assert_int_equal(truncate(file, bytes - 1), 0);
	use(again);
	assert_memory_equal(again, first, sizeof first);
	assert_int_equal(files_in_cache(), 1);
	assert_int_equal(file_bytes, bytes);
}

static void a_kernel_that_cannot_run_is_refused_by_the_same_call(void **state)
{
	(void)state;
	make_image(".reg .b32 t; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [t], 32;");
	for (int i = 0; i < 2; i++) {
		CUlibrary library;
		CUkernel k;
		CUfunction f;
		CUcontext other;

		ok(cuLibraryLoadData(&library, &image, NULL, NULL, 0, NULL, NULL, 0));
		ok(cuLibraryGetKernel(&k, library, "last"));
		fails(cuKernelGetFunction(&f, k), CUDA_ERROR_NOT_SUPPORTED);
		ok(cuCtxCreate(&other, NULL, 0, 0));
		fails(cuKernelGetFunction(&f, k), CUDA_ERROR_NOT_SUPPORTED);
		assert_int_equal(run(library, "k7"), 5 + 7);
		ok(cuCtxDestroy(other));
		ok(cuLibraryUnload(library));
		assert_int_equal(files_in_cache(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_image_is_known_when_it_is_loaded_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_result_is_made_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_kernel_that_cannot_run_is_refused_by_the_same_call, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
