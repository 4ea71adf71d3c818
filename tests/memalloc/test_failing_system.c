/* test_failing_system.c — every system call fails in turn: the result is an error with a reason, or another
 * call is used instead; nothing leaks.
 *
 * This program defines memfd_create(), mmap() and so on, which replace those of the C library.  ThreadSanitizer, which
 * calls mmap() before it is ready for the code of a program, cannot run it: see scripts/rules_tests.py. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/mempolicy.h>

#include "tests/support/cmocka.h"
#include "memalloc/mem_internal.h"
#include "tests/fake/fake_memory.h"
#include "tests/memalloc/support.h"

static int calls, fail_at, fail_with;
static const char *failed; /* name of the call that failed */

/* Count a call; true if it is the call that must fail. */
static bool must_fail(const char *name)
{
	if (!fail_at || ++calls != fail_at)
		return false;
	failed = name;
	errno = fail_with;
	return true;
}

int memfd_create(const char *name, unsigned flags)
{
	return must_fail("memfd_create") ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int fd, off_t bytes)
{
	return must_fail("ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
	return must_fail("fallocate") ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int fcntl(int fd, int what, ...)
{
	va_list more;
	long value;

	va_start(more, what);
	value = va_arg(more, long);
	va_end(more);
	return must_fail("fcntl") ? -1 : (int)syscall(SYS_fcntl, fd, what, value);
}

void *mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t offset)
{
	return must_fail("mmap") ? MAP_FAILED : (void *)syscall(SYS_mmap, at, bytes, rights, flags, fd, offset);
}

int madvise(void *at, size_t bytes, int advice)
{
	return must_fail("madvise") ? -1 : (int)syscall(SYS_madvise, at, bytes, advice);
}

static const char *nodes; /* text of /sys/devices/system/node/has_memory; NULL: the real file */

/* Open a file that contains the text. */
static int text_file(const char *text)
{
	int fd = (int)syscall(SYS_memfd_create, "text", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

int open(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	va_start(more, flags);
	mode = va_arg(more, int);
	va_end(more);
	if (nodes && strcmp(path, "/sys/devices/system/node/has_memory") == 0)
		return text_file(nodes);
	return must_fail("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int shm_open(const char *name, int flags, mode_t mode)
{
	char path[128];

	snprintf(path, sizeof path, "/dev/shm/%s", name);
	return must_fail("shm_open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_NOFOLLOW, mode);
}

int fstat(int fd, struct stat *out)
{
	return must_fail("fstat") ? -1 : fstatat(fd, "", out, AT_EMPTY_PATH);
}

int fstatfs(int fd, struct statfs *out)
{
	return must_fail("fstatfs") ? -1 : (int)syscall(SYS_fstatfs, fd, out);
}

ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
	return must_fail("getrandom") ? -1 : syscall(SYS_getrandom, to, bytes, flags);
}

static struct {
	int calls, policy, fail_with;
	unsigned long mask;
} bound;

long gpul_mem_mbind(void *at, size_t bytes, int policy, const unsigned long *mask, unsigned long n_bits, unsigned flags)
{
	(void)at, (void)bytes, (void)flags;
	assert_true(n_bits > 64);
	bound.calls++;
	bound.policy = policy;
	bound.mask = mask[0];
	errno = bound.fail_with;
	return bound.fail_with ? -1 : 0;
}

/* ---- the tests ------------------------------------------------------------------- */

static const int errors[] = { ENOMEM, ENOSPC, EPERM, EACCES, EINVAL, EMFILE, EOPNOTSUPP, EINTR, EIO, ENOSYS };
enum { N_ERRORS = sizeof errors / sizeof errors[0], BYTES = 100000 };

static const gpul_mem_kind shared[] = { GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE };
enum { N_SHARED = sizeof shared / sizeof shared[0] };

static const char name[] = "/gpuload-test-failing-system";

/* Create, export, import and use memory; true: all succeeded. */
static bool try_all(const gpul_driver *drv, gpul_mem_kind kind, const char *shm_name, gpul_error *err)
{
	gpul_mem_desc desc = wanted(kind, BYTES);
	gpul_mem *m = NULL, *twin = NULL;
	gpul_mem_offer offer = { .kind = kind, .bytes = BYTES };
	gpul_status st;
	int fd = -1;

	desc.shm_name = shm_name;
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

static void fail_each_call(gpul_mem_kind kind, const char *shm_name, int error)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);
	size_t fds, mappings;
	int n;

	assert_int_equal(gpul_context_open(drv, 0, &c, NULL), GPUL_OK);
	assert_true(try_all(drv, kind, shm_name, NULL));
	fds = count_fds();
	mappings = count_mappings();
	failed = "";
	for (n = 1; failed; n++) {
		gpul_error err = { 0 };

		calls = 0;
		fail_at = n;
		fail_with = error;
		failed = NULL;
		if (!try_all(drv, kind, shm_name, &err) && !*err.text)
			fail_msg("no error text for a failing %s", failed);
		fail_at = 0;
		if (count_fds() != fds || count_mappings() != mappings || fake_alive() != 1)
			fail_msg("%s memory: a failing %s (%d) leaks", gpul_mem_kind_name(kind), failed, error);
		assert_int_equal(shm_unlink(name), -1);
		assert_true(n < 100);
	}
	assert_true(n > 3);
	gpul_context_close(&c);
}

static void a_failing_system_call_leaks_nothing(void **state)
{
	(void)state;
	for (int k = 0; k < N_SHARED; k++)
		for (int e = 0; e < N_ERRORS; e++)
			for (int named = 0; named < 2; named++)
				fail_each_call(shared[k], named ? name : NULL, errors[e]);
}

/* Create memory of a kind while the named call fails. */
static gpul_status create_with_failing(const char *call, gpul_mem_kind kind, int error, gpul_error *err)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);
	gpul_mem_desc desc = wanted(kind, BYTES);
	gpul_status st = GPUL_OK;
	bool reached = false;

	assert_int_equal(gpul_context_open(drv, 0, &c, NULL), GPUL_OK);
	for (int n = 1; !reached && n < 100; n++) {
		gpul_mem *m = NULL;

		*err = (gpul_error){ 0 };
		calls = 0;
		fail_at = n;
		fail_with = error;
		failed = "";
		st = gpul_mem_create(drv, &desc, &m, err);
		fail_at = 0;
		reached = strcmp(failed, call) == 0;
		gpul_mem_destroy(m);
	}
	assert_true(reached);
	gpul_context_close(&c);
	return st;
}

static void too_little_memory_is_an_error_of_create(void **state)
{
	gpul_error err;

	(void)state;
	assert_int_equal(create_with_failing("fallocate", GPUL_MEM_SHM, ENOSPC, &err), GPUL_ENOMEM);
	assert_non_null(strstr(err.text, "df -h /dev/shm"));
	assert_non_null(strstr(err.text, "--shm-size"));
	assert_int_equal(create_with_failing("fallocate", GPUL_MEM_MEMFD, ENOMEM, &err), GPUL_ENOMEM);
	assert_int_equal(create_with_failing("mmap", GPUL_MEM_MEMFD, EACCES, &err), GPUL_ESYS);
	assert_int_equal(err.native, EACCES);
}

static void works_on_kernels_that_lack_newer_calls(void **state)
{
	gpul_error err;

	(void)state;
	assert_int_equal(create_with_failing("madvise", GPUL_MEM_MEMFD, EINVAL, &err), GPUL_OK);
	assert_int_equal(create_with_failing("open", GPUL_MEM_SHM, EOPNOTSUPP, &err), GPUL_OK);
	assert_int_equal(create_with_failing("fallocate", GPUL_MEM_MEMFD, EINTR, &err), GPUL_OK);
	/* The first open() is of a file in /sys or /proc, which does not exist here. */
	assert_int_equal(create_with_failing("open", GPUL_MEM_MEMFD, ENOENT, &err), GPUL_OK);
}

/* Create memory on a node, on a machine whose nodes 0, 1 and 3 have memory. */
static gpul_status create_on_node(int node, gpul_mem_kind kind, gpul_mem_info *about, gpul_error *err)
{
	gpul_context c = { 0 };
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);
	gpul_mem_desc desc = wanted(kind, BYTES);
	gpul_mem *m = NULL;
	gpul_status st;

	fake_behave()->host_numa_id = 1;
	assert_int_equal(gpul_context_open(drv, 0, &c, NULL), GPUL_OK);
	desc.node = node;
	nodes = "0-1,3\n";
	st = gpul_mem_create(drv, &desc, &m, err);
	nodes = NULL;
	if (m)
		*about = *gpul_mem_about(m);
	gpul_mem_destroy(m);
	gpul_context_close(&c);
	return st;
}

static void pages_are_requested_from_the_given_node(void **state)
{
	static const gpul_mem_kind files[] = { GPUL_MEM_MEMFD, GPUL_MEM_SHM };
	static const int requested[] = { GPUL_MEM_NODE_OF_GPU, 0, 1, 3 }, expected[] = { 1, 0, 1, 3 };

	(void)state;
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 4; i++) {
			gpul_mem_info about = { 0 };

			memset(&bound, 0, sizeof bound);
			assert_int_equal(create_on_node(requested[i], files[k], &about, NULL), GPUL_OK);
			assert_int_equal(bound.calls, 1);
			assert_int_equal(bound.policy, 1); /* MPOL_PREFERRED */
			assert_int_equal(bound.mask, 1UL << expected[i]);
			assert_int_equal(about.node, expected[i]);
			assert_false(about.node_clamped || about.node_unbound);
		}
	}
}

static void reports_when_pages_cannot_be_placed(void **state)
{
	gpul_mem_info about = { 0 };

	(void)state;
	memset(&bound, 0, sizeof bound);
	bound.fail_with = EPERM;
	assert_int_equal(create_on_node(3, GPUL_MEM_MEMFD, &about, NULL), GPUL_OK);
	assert_true(about.node_unbound);
}

static void refuses_a_node_without_memory(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_HOST_NUMA };

	(void)state;
	for (int k = 0; k < 3; k++) {
		gpul_mem_info about = { 0 };
		gpul_error err = { 0 };

		assert_int_equal(create_on_node(2, kinds[k], &about, &err), GPUL_EINVAL);
		assert_non_null(strstr(err.text, "NUMA node 2 has no memory: use one of 0-1,3"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failing_system_call_leaks_nothing),    cmocka_unit_test(too_little_memory_is_an_error_of_create),
		cmocka_unit_test(works_on_kernels_that_lack_newer_calls), cmocka_unit_test(pages_are_requested_from_the_given_node),
		cmocka_unit_test(reports_when_pages_cannot_be_placed),    cmocka_unit_test(refuses_a_node_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
