/* test_file.c — gpul_file reads files and pipes, and explains why other paths cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"

/* Create a temporary file of n bytes "x"; the caller unlinks it. */
static void make_file(char path[64], size_t n)
{
	char *text = malloc(n + 1);
	int fd;

	snprintf(path, 64, P_tmpdir "/gpuload-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0 && text);
	memset(text, 'x', n + 1);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
	free(text);
}

static void the_bytes_are_followed_by_a_nul_at_every_size(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t sizes[] = { 1, 17, page - 1, page, page + 1, 3 * page };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		gpul_file f = { 0 };
		char path[64];

		make_file(path, sizes[i]);
		assert_int_equal(gpul_file_open(path, &f, NULL), GPUL_OK);
		unlink(path);
		assert_int_equal(f.n_bytes, sizes[i]);
		assert_int_equal(strlen(f.bytes), sizes[i]);
		gpul_file_close(&f);
		assert_null(f.bytes);
	}
}

static void reads_a_pipe_to_its_end(void **state)
{
	char path[64], block[4096];
	size_t n = 0;
	gpul_file f = { 0 };
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
	memset(block, 'y', sizeof block);
	for (; n < 100 * 1024; n += sizeof block)  /* more bytes than the first read() can return */
		assert_int_equal(write(ends[1], block, sizeof block), sizeof block);
	close(ends[1]);
	snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
	assert_int_equal(gpul_file_open(path, &f, NULL), GPUL_OK);
	assert_int_equal(f.n_bytes, n);
	assert_int_equal(strlen(f.bytes), n);
	gpul_file_close(&f);
	close(ends[0]);
}

static void reads_a_file_whose_reported_size_is_zero(void **state)
{
	gpul_file f = { 0 };

	(void)state;
	assert_int_equal(gpul_file_open("/proc/self/status", &f, NULL), GPUL_OK);
	assert_non_null(strstr(f.bytes, "Pid:"));
	gpul_file_close(&f);
}

static void expect_failure(const char *path, gpul_status st, int native, const char *words)
{
	gpul_error err = { 0 };
	gpul_file f = { 0 };

	assert_int_equal(gpul_file_open(path, &f, &err), st);
	assert_int_equal(err.native, native);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, words));
	assert_null(f.bytes);
}

static void explains_in_one_line_why_a_file_cannot_be_read(void **state)
{
	char path[64];

	(void)state;
	expect_failure("no/such/file.ptx", GPUL_ESYS, ENOENT, "no such file");
	expect_failure(".", GPUL_ESYS, EISDIR, "is a directory");
	expect_failure("/dev/null", GPUL_EFORMAT, 0, "is empty");
	make_file(path, 0);
	expect_failure(path, GPUL_EFORMAT, 0, "is empty");
	unlink(path);
}

static void reports_a_file_without_read_permission(void **state)
{
	bool root = geteuid() == 0;
	char path[64];

	(void)state;
	make_file(path, 1);
	chmod(path, 0);
	if (root)  /* root may read every file: change the user for this test */
		assert_int_equal(seteuid(65534), 0);
	expect_failure(path, GPUL_ESYS, EACCES, "Permission denied");
	if (root)
		assert_int_equal(seteuid(0), 0);
	unlink(path);
}

static void open_regular_refuses_directories_pipes_and_devices(void **state)
{
	char path[64];
	gpul_error err = { 0 };
	gpul_file f = { 0 };

	(void)state;
	make_file(path, 1);
	assert_int_equal(gpul_file_open_regular(path, &f, NULL), GPUL_OK);
	assert_int_equal(f.n_bytes, 1);
	gpul_file_close(&f);
	assert_int_equal(gpul_file_open_regular("/dev/zero", &f, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "not a regular file"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* a pipe without a writer */
	assert_int_equal(gpul_file_open_regular(path, &f, NULL), GPUL_ESYS);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_are_followed_by_a_nul_at_every_size),
		cmocka_unit_test(reads_a_pipe_to_its_end),
		cmocka_unit_test(reads_a_file_whose_reported_size_is_zero),
		cmocka_unit_test(explains_in_one_line_why_a_file_cannot_be_read),
		cmocka_unit_test(reports_a_file_without_read_permission),
		cmocka_unit_test(open_regular_refuses_directories_pipes_and_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
