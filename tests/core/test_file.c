/* test_file.c — gpul_file reads files and pipes, and explains why other paths cannot be read. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/file/file.h"

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
	const size_t sizes[] = { 1, 17, page - 1, page, page + 1, 3 * page, 1 << 20, (1 << 20) + 17 };

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
	for (; n < 100 * 1024; n += sizeof block) /* more bytes than the first read() can return */
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
	if (root) /* root may read every file: change the user for this test */
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

/* ---- files that change ----------------------------------------------------------------- */

enum { LARGE = (1 << 20) + 10, KEPT = 8192 + 100 }; /* bytes of a file that is mapped, and what truncate() keeps */

static void open_large(char path[64], gpul_file *f)
{
	make_file(path, LARGE);
	assert_int_equal(gpul_file_open(path, f, NULL), GPUL_OK);
	assert_int_equal(gpul_file_check(f, path, NULL), GPUL_OK);
}

static void *count_zeros(void *argument)
{
	const gpul_file *f = argument;
	const volatile char *bytes = f->bytes;
	size_t n = 0;

	for (size_t i = f->n_bytes; i > 0; i--)
		n += bytes[i - 1] == 0;
	return (void *)(uintptr_t)n;
}

static void a_file_that_is_cut_reads_as_zeros_and_is_reported(void **state)
{
	gpul_error err = { 0 };
	pthread_t threads[4];
	char path[64];
	gpul_file f;

	(void)state;
	open_large(path, &f);
	assert_int_equal(truncate(path, KEPT), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_zeros, &f), 0);
	for (int i = 0; i < 4; i++) {
		void *zeros;

		pthread_join(threads[i], &zeros);
		assert_true((uintptr_t)zeros > LARGE - KEPT - 4096 && (uintptr_t)zeros <= LARGE - KEPT);
	}
	assert_int_equal(truncate(path, LARGE), 0); /* the file has its old size again, but the threads have already read zeros */
	assert_int_equal(gpul_file_check(&f, path, &err), GPUL_ESYS);
	assert_int_equal(err.native, EIO);
	assert_non_null(strstr(err.text, "became shorter while it was read"));
	gpul_file_close(&f);
	unlink(path);
}

static void a_cut_within_a_page_is_reported(void **state)
{
	char path[64];
	gpul_file f;

	(void)state;
	open_large(path, &f);
	assert_int_equal(truncate(path, LARGE - 1), 0);
	assert_int_equal(gpul_file_check(&f, path, NULL), GPUL_ESYS);
	gpul_file_close(&f);
	unlink(path);
}

static void a_nul_follows_the_bytes_of_a_file_that_grows(void **state)
{
	char path[64], more[8192];
	gpul_file f;
	int fd;

	(void)state;
	open_large(path, &f);
	memset(more, 'y', sizeof more);
	fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, more, sizeof more), sizeof more);
	close(fd);
	assert_int_equal(strlen(f.bytes), LARGE);
	assert_int_equal(gpul_file_check(&f, path, NULL), GPUL_OK);
	gpul_file_close(&f);
	unlink(path);
}

static sigjmp_buf after_fault;
static volatile sig_atomic_t n_faults;

static void count_fault(int signal)
{
	(void)signal;
	n_faults++;
	siglongjmp(after_fault, 1);
}

/* Read a page after the end of a file that is mapped by mmap() instead of gpul_file, which raises SIGBUS. */
static void read_foreign_page(void)
{
	char path[64];
	volatile const char *bytes;
	int fd;

	make_file(path, 1);
	fd = open(path, O_RDONLY);
	bytes = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(bytes != MAP_FAILED);
	if (sigsetjmp(after_fault, 1) == 0)
		(void)bytes[4096];
	munmap((void *)(uintptr_t)bytes, 8192);
	close(fd);
	unlink(path);
}

static void other_bus_errors_go_to_the_handler_of_the_program(void **state)
{
	struct sigaction own = { .sa_handler = count_fault }, before, now;
	char path[64];
	gpul_file f;

	(void)state;
	sigaction(SIGBUS, &own, &before);
	open_large(path, &f);
	n_faults = 0;
	read_foreign_page();
	assert_int_equal(n_faults, 1);
	gpul_file_close(&f);
	sigaction(SIGBUS, NULL, &now);
	assert_ptr_equal(now.sa_handler, count_fault); /* the program's handler is restored */
	open_large(path, &f);
	sigaction(SIGBUS, &own, NULL); /* a handler that replaces the library's is not removed */
	gpul_file_close(&f);
	sigaction(SIGBUS, NULL, &now);
	assert_ptr_equal(now.sa_handler, count_fault);
	sigaction(SIGBUS, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	unlink(path);
	a_file_that_is_cut_reads_as_zeros_and_is_reported(state); /* the library must install its handler again */
	sigaction(SIGBUS, &before, NULL);
	unlink(path);
}

/* ---- pipes and devices ------------------------------------------------------------------ */

static void refuses_devices_without_an_end_at_once(void **state)
{
	(void)state;
	expect_failure("/dev/zero", GPUL_ESYS, ENODEV, "is a device");
	expect_failure("/dev/full", GPUL_ESYS, ENODEV, "is a device");
}

static void *write_late(void *path)
{
	const struct timespec nap = { .tv_nsec = 200000000 };
	int fd;

	nanosleep(&nap, NULL);
	fd = open(path, O_WRONLY);
	nanosleep(&nap, NULL);
	assert_int_equal(write(fd, "late", 4), 4);
	close(fd);
	return NULL;
}

static void waits_for_the_writer_of_a_named_pipe_but_not_forever(void **state)
{
	char path[64];
	pthread_t thread;
	gpul_file f;

	(void)state;
	make_file(path, 1);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_late, path), 0);
	assert_int_equal(gpul_file_open(path, &f, NULL), GPUL_OK);
	pthread_join(thread, NULL);
	assert_string_equal(f.bytes, "late");
	gpul_file_close(&f);
	expect_failure(path, GPUL_ESYS, ENXIO, "no process writes to");
	unlink(path);
}

static void expect_stdin(int fd, size_t n_bytes)
{
	int before = dup(STDIN_FILENO);
	gpul_file f;

	dup2(fd, STDIN_FILENO);
	assert_int_equal(gpul_file_open("-", &f, NULL), GPUL_OK);
	dup2(before, STDIN_FILENO);
	close(before);
	assert_int_equal(f.n_bytes, n_bytes);
	assert_int_equal(strlen(f.bytes), n_bytes);
	gpul_file_close(&f);
}

static void a_dash_is_standard_input(void **state)
{
	char path[64], c;
	int ends[2], fd;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "abc", 3), 3);
	close(ends[1]);
	expect_stdin(ends[0], 3);
	close(ends[0]);
	make_file(path, LARGE);
	fd = open(path, O_RDONLY);
	expect_stdin(fd, LARGE);
	assert_int_equal(read(fd, &c, 1), 1); /* only the rest of this file will be read */
	expect_stdin(fd, LARGE - 1);
	close(fd);
	unlink(path);
}

static void the_name_of_a_file_has_no_folders(void **state)
{
	(void)state;
	assert_string_equal(gpul_file_name("kernel.cu"), "kernel.cu");
	assert_string_equal(gpul_file_name("/a/b.d/kernel.cu"), "kernel.cu");
	assert_string_equal(gpul_file_name("folder/"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_are_followed_by_a_nul_at_every_size),
		cmocka_unit_test(reads_a_pipe_to_its_end),
		cmocka_unit_test(a_file_that_is_cut_reads_as_zeros_and_is_reported),
		cmocka_unit_test(a_cut_within_a_page_is_reported),
		cmocka_unit_test(a_nul_follows_the_bytes_of_a_file_that_grows),
		cmocka_unit_test(other_bus_errors_go_to_the_handler_of_the_program),
		cmocka_unit_test(refuses_devices_without_an_end_at_once),
		cmocka_unit_test(waits_for_the_writer_of_a_named_pipe_but_not_forever),
		cmocka_unit_test(a_dash_is_standard_input),
		cmocka_unit_test(reads_a_file_whose_reported_size_is_zero),
		cmocka_unit_test(explains_in_one_line_why_a_file_cannot_be_read),
		cmocka_unit_test(reports_a_file_without_read_permission),
		cmocka_unit_test(open_regular_refuses_directories_pipes_and_devices),
		cmocka_unit_test(the_name_of_a_file_has_no_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
