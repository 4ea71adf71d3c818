/* test_source.c — sources: files, pipes and memory, opened once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/image/kernels/kernels.h"
#include "loader/image/source.h"

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";

static void lists_the_images_once(void **state)
{
	const gpul_images *images = NULL, *again = NULL;
	gpul_source *s = NULL;
	size_t n;

	(void)state;
	assert_int_equal(gpul_source_of(ptx, sizeof ptx - 1, "k.ptx", &s, NULL), GPUL_OK);
	assert_int_equal(gpul_source_content(s), GPUL_CONTENT_PTX);
	assert_string_equal(gpul_source_name(s), "k.ptx");
	assert_int_equal(gpul_source_images(s, NULL, &images, NULL), GPUL_OK);
	assert_int_equal(gpul_source_images(s, NULL, &again, NULL), GPUL_OK);
	assert_ptr_equal(images, again);
	assert_int_equal(gpul_images_all(images, &n)->kind, GPUL_IMAGE_PTX);
	assert_int_equal(n, 1);
	gpul_source_close(s);
}

static void text_in_memory_needs_no_nul_at_its_end(void **state)
{
	char *bytes = malloc(sizeof ptx - 1); /* exactly as many bytes, so that ASan detects a read beyond the end */
	const char *text = NULL, *again = NULL;
	gpul_source *s = NULL;

	(void)state;
	memcpy(bytes, ptx, sizeof ptx - 1);
	assert_int_equal(gpul_source_of(bytes, sizeof ptx - 1, "k.ptx", &s, NULL), GPUL_OK);
	assert_int_equal(gpul_source_text(s, &text, NULL), GPUL_OK);
	assert_string_equal(text, ptx);
	assert_int_equal(gpul_source_text(s, &again, NULL), GPUL_OK);
	assert_ptr_equal(text, again);
	gpul_source_close(s);
	free(bytes);
}

static void a_pipe_is_read_to_its_end(void **state)
{
	gpul_source *s = NULL;
	const char *text = NULL;
	char path[32];
	size_t n;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], ptx, sizeof ptx - 1), sizeof ptx - 1);
	close(ends[1]);
	snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
	assert_int_equal(gpul_source_open(path, &s, NULL), GPUL_OK);
	close(ends[0]);
	assert_int_equal(gpul_source_content(s), GPUL_CONTENT_PTX);
	gpul_source_bytes(s, &n);
	assert_int_equal(n, sizeof ptx - 1);
	assert_int_equal(gpul_source_text(s, &text, NULL), GPUL_OK);
	assert_string_equal(text, ptx);
	gpul_source_close(s);
}

static void the_name_or_a_kernel_distinguishes_cuda_from_other_text(void **state)
{
	static const char cuda[] = "__global__ void k() {}\n";
	gpul_source *s = NULL;

	(void)state;
	assert_int_equal(gpul_source_of(cuda, sizeof cuda - 1, "k.cu", &s, NULL), GPUL_OK);
	assert_int_equal(gpul_source_content(s), GPUL_CONTENT_CUDA);
	gpul_source_close(s);
	assert_int_equal(gpul_source_of(cuda, sizeof cuda - 1, "k.txt", &s, NULL), GPUL_OK);
	assert_int_equal(gpul_source_content(s), GPUL_CONTENT_CUDA);
	gpul_source_close(s);
	assert_int_equal(gpul_source_of("int main;\n", 10, "k.txt", &s, NULL), GPUL_OK);
	assert_int_equal(gpul_source_content(s), GPUL_CONTENT_TEXT);
	gpul_source_close(s);
}

static void refuses_empty_and_missing_files(void **state)
{
	gpul_source *s = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_source_of("", 0, "nothing.ptx", &s, &err), GPUL_EFORMAT);
	assert_string_equal(err.text, "nothing.ptx is empty");
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_source_open("/nonexistent", &s, &err), GPUL_ESYS);
	assert_int_equal(err.native, ENOENT);
	assert_null(s);
	gpul_source_close(NULL);
}

/* Write and open an archive of PTX that is large enough to be mapped; the caller unlinks the file. */
static gpul_source *open_archive(char path[64])
{
	enum { MEMBERS = 4000 };
	gpul_source *s = NULL;
	FILE *f;

	snprintf(path, 64, P_tmpdir "/gpuload-test-XXXXXX");
	f = fdopen(mkstemp(path), "w");
	assert_non_null(f);
	fputs("!<arch>\n", f);
	for (int i = 0; i < MEMBERS; i++)
		fprintf(f, "%-16s%-32s%-10zu`\n%s%s", "k.ptx/", "0", sizeof ptx - 1, ptx, sizeof ptx % 2 ? "" : "\n");
	assert_int_equal(fclose(f), 0);
	assert_int_equal(gpul_source_open(path, &s, NULL), GPUL_OK);
	return s;
}

static gpul_status count_kernels(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
				 gpul_error *err)
{
	(void)image;
	(void)failed;
	(void)err;
	*(size_t *)context += table->n;
	return GPUL_OK;
}

static void expect_cut(const gpul_error *err, const char *path)
{
	assert_int_equal(err->status, GPUL_ESYS);
	assert_int_equal(err->native, EIO);
	assert_non_null(strstr(err->text, path));
	assert_non_null(strstr(err->text, "became shorter while it was read"));
}

static void a_file_that_is_cut_is_reported_by_each_step(void **state)
{
	const gpul_images *images = NULL;
	gpul_error err = { 0 };
	size_t n_kernels = 0;
	char path[64];
	gpul_source *s = open_archive(path);

	(void)state;
	assert_int_equal(truncate(path, 5000), 0); /* the file shrinks before its images are listed */
	assert_int_equal(gpul_source_images(s, NULL, &images, &err), GPUL_ESYS);
	expect_cut(&err, path);
	gpul_source_close(s);
	unlink(path);

	s = open_archive(path);
	assert_int_equal(gpul_source_images(s, NULL, &images, NULL), GPUL_OK);
	assert_int_equal(gpul_kernels_visit(images, NULL, count_kernels, &n_kernels, NULL, NULL), GPUL_OK);
	assert_int_equal(n_kernels, 4000);
	assert_int_equal(truncate(path, 5000), 0); /* the file shrinks before its kernels are read */
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_kernels_visit(images, NULL, count_kernels, &n_kernels, NULL, &err), GPUL_ESYS);
	expect_cut(&err, path);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_source_check(s, &err), GPUL_ESYS);
	expect_cut(&err, path);
	gpul_source_close(s);
	unlink(path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_the_images_once),
		cmocka_unit_test(text_in_memory_needs_no_nul_at_its_end),
		cmocka_unit_test(a_pipe_is_read_to_its_end),
		cmocka_unit_test(the_name_or_a_kernel_distinguishes_cuda_from_other_text),
		cmocka_unit_test(refuses_empty_and_missing_files),
		cmocka_unit_test(a_file_that_is_cut_is_reported_by_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
