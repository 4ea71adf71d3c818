/* test_failing_system.c — every system call fails in turn: an error that says so, or the next
 * best way, and nothing stays behind.
 *
 * This program's own memfd_create(), mmap(), ... take the place of the C library's. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake/fake_memory.h"
#include "tests/memalloc/support.h"

static int calls, fail_at, fail_with;
static const char *failed;  /* the call that did */

/* Whether this call is the one that fails. */
static bool fails(const char *name)
{
	if (!fail_at || ++calls != fail_at)
		return false;
	failed = name;
	errno = fail_with;
	return true;
}

int memfd_create(const char *name, unsigned flags)
{
	return fails("memfd_create") ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int fd, off_t bytes)
{
	return fails("ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
	return fails("fallocate") ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int fcntl(int fd, int what, ...)
{
	va_list more;
	long value;

	va_start(more, what);
	value = va_arg(more, long);
	va_end(more);
	return fails("fcntl") ? -1 : (int)syscall(SYS_fcntl, fd, what, value);
}

void *mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t offset)
{
	return fails("mmap") ? MAP_FAILED
			     : (void *)syscall(SYS_mmap, at, bytes, rights, flags, fd, offset);
}

int madvise(void *at, size_t bytes, int advice)
{
	return fails("madvise") ? -1 : (int)syscall(SYS_madvise, at, bytes, advice);
}

int open(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	va_start(more, flags);
	mode = va_arg(more, int);
	va_end(more);
	return fails("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int shm_open(const char *name, int flags, mode_t mode)
{
	char path[128];

	snprintf(path, sizeof path, "/dev/shm/%s", name);
	return fails("shm_open")
		       ? -1
		       : (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_NOFOLLOW, mode);
}

int fstat(int fd, struct stat *out)
{
	return fails("fstat") ? -1 : fstatat(fd, "", out, AT_EMPTY_PATH);
}

int fstatfs(int fd, struct statfs *out)
{
	return fails("fstatfs") ? -1 : (int)syscall(SYS_fstatfs, fd, out);
}

ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
	return fails("getrandom") ? -1 : syscall(SYS_getrandom, to, bytes, flags);
}

/* ---- what is tried --------------------------------------------------------------- */

static const int errors[] = { ENOMEM, ENOSPC,     EPERM, EACCES, EINVAL,
			      EMFILE, EOPNOTSUPP, EINTR, EIO,    ENOSYS };
enum { N_ERRORS = sizeof errors / sizeof errors[0], BYTES = 100000 };

static const gpul_mem_kind shared[] = { GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_HOST_NUMA,
					GPUL_MEM_DEVICE };
enum { N_SHARED = sizeof shared / sizeof shared[0] };

static const char name[] = "/gpuload-test-failing-system";

/* Create, export, import and use; true: it went through. */
static bool try_all(const gpul_driver *drv, gpul_mem_kind kind, gpul_error *err)
{
	gpul_mem_desc desc = wanted(kind, BYTES);
	gpul_mem *m = NULL, *twin = NULL;
	gpul_mem_offer offer = { .kind = kind, .bytes = BYTES };
	gpul_status st;
	int fd = -1;

	desc.shm_name = name;
	st = gpul_mem_create(drv, &desc, &m, err);
	if (!st)
		st = gpul_mem_export_fd(m, &fd, err);
	if (!st) {
		offer.mapped_bytes = gpul_mem_about(m)->mapped_bytes;
		st = gpul_mem_import(drv, &offer, fd, NULL, &desc, &twin, err);
	}
	fail_at = 0;
	if (!st && gpul_mem_cpu(m)) {
		cpu_fill(gpul_mem_cpu(m), BYTES, 4);
		assert_true(cpu_sees(gpul_mem_cpu(twin), BYTES, 4));
	}
	gpul_mem_destroy(twin);
	gpul_mem_destroy(m);
	return !st;
}

static void fails_in_turn(gpul_mem_kind kind, int error)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);
	size_t fds, mappings;
	int n;

	assert_int_equal(gpul_context_open(drv, 0, &c, NULL), GPUL_OK);
	assert_true(try_all(drv, kind, NULL));
	fds = count_fds();
	mappings = count_mappings();
	failed = "";
	for (n = 1; failed; n++) {
		gpul_error err = { 0 };

		calls = 0;
		fail_at = n;
		fail_with = error;
		failed = NULL;
		if (!try_all(drv, kind, &err) && !*err.text)
			fail_msg("no reason for a failing %s", failed);
		fail_at = 0;
		if (count_fds() != fds || count_mappings() != mappings || fake_alive() != 1)
			fail_msg("%s memory: a failing %s (%d) leaves something behind",
				 gpul_mem_kind_name(kind), failed, error);
		assert_int_equal(shm_unlink(name), -1);
		assert_true(n < 100);
	}
	assert_true(n > 3);
	gpul_context_close(&c);
}

static void every_failing_call_is_undone(void **state)
{
	(void)state;
	for (int k = 0; k < N_SHARED; k++)
		for (int e = 0; e < N_ERRORS; e++)
			fails_in_turn(shared[k], errors[e]);
}

/* Make memory of a kind with one call failing: what comes of it. */
static gpul_status with_failing(const char *call, gpul_mem_kind kind, int error,
				gpul_error *err)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);
	gpul_mem_desc desc = wanted(kind, BYTES);
	gpul_status st = GPUL_OK;
	bool met = false;

	assert_int_equal(gpul_context_open(drv, 0, &c, NULL), GPUL_OK);
	for (int n = 1; !met && n < 100; n++) {
		gpul_mem *m = NULL;

		*err = (gpul_error){ 0 };
		calls = 0;
		fail_at = n;
		fail_with = error;
		failed = "";
		st = gpul_mem_create(drv, &desc, &m, err);
		fail_at = 0;
		met = strcmp(failed, call) == 0;
		gpul_mem_destroy(m);
	}
	assert_true(met);
	gpul_context_close(&c);
	return st;
}

static void no_room_is_an_error_when_it_is_made_not_when_it_is_touched(void **state)
{
	gpul_error err;

	(void)state;
	assert_int_equal(with_failing("fallocate", GPUL_MEM_SHM, ENOSPC, &err), GPUL_ENOMEM);
	assert_non_null(strstr(err.text, "df -h /dev/shm"));
	assert_non_null(strstr(err.text, "--shm-size"));
	assert_int_equal(with_failing("fallocate", GPUL_MEM_MEMFD, ENOMEM, &err), GPUL_ENOMEM);
	assert_int_equal(with_failing("mmap", GPUL_MEM_MEMFD, EACCES, &err), GPUL_ESYS);
	assert_int_equal(err.native, EACCES);
}

static void old_kernels_are_worked_around(void **state)
{
	gpul_error err;

	(void)state;
	assert_int_equal(with_failing("madvise", GPUL_MEM_MEMFD, EINVAL, &err), GPUL_OK);
	assert_int_equal(with_failing("open", GPUL_MEM_SHM, EOPNOTSUPP, &err), GPUL_OK);
	assert_int_equal(with_failing("fallocate", GPUL_MEM_MEMFD, EINTR, &err), GPUL_OK);
	/* Without /sys or /proc. */
	assert_int_equal(with_failing("open", GPUL_MEM_MEMFD, ENOENT, &err), GPUL_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_call_is_undone),
		cmocka_unit_test(no_room_is_an_error_when_it_is_made_not_when_it_is_touched),
		cmocka_unit_test(old_kernels_are_worked_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
