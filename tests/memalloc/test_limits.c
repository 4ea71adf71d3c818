/* test_limits.c — real limits: a small /dev/shm, no descriptors left, a file size limit; and files that a
 * killed process leaves in /dev/shm. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/fake/fake_memory.h"
#include "tests/memalloc/support.h"

enum { BYTES = 100000, SHM_BYTES = 1 << 20 };

static bool own_shm; /* this process has a private, small /dev/shm */

static gpul_status create_memory(const gpul_mem_desc *desc, gpul_mem **m, gpul_error *err)
{
	static gpul_context c;
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);

	*err = (gpul_error){ 0 };
	assert_int_equal(gpul_context_open(drv, 0, &c, NULL), GPUL_OK);
	return gpul_mem_create(drv, desc, m, err);
}

static int entries_in_shm(void)
{
	DIR *d = opendir("/dev/shm");
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void a_small_dev_shm_is_an_error_with_advice(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_SHM, 4 * SHM_BYTES);
	size_t fds = count_fds(), mappings = count_mappings();
	gpul_mem *m = NULL;
	gpul_error err;

	(void)state;
	if (!own_shm)
		skip();
	for (int named = 0; named < 2; named++) {
		desc.shm_name = named ? "/gpuload-test-limits" : NULL;
		assert_int_equal(create_memory(&desc, &m, &err), GPUL_ENOMEM);
		assert_int_equal(err.native, ENOSPC);
		assert_non_null(strstr(err.text, "df -h /dev/shm"));
		assert_null(m);
		assert_int_equal(entries_in_shm(), 0);
	}
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_mappings(), mappings);
	desc = wanted(GPUL_MEM_MEMFD, 4 * SHM_BYTES); /* memfd does not use /dev/shm */
	assert_int_equal(create_memory(&desc, &m, &err), GPUL_OK);
	gpul_mem_destroy(m);
}

/* The number of files in /dev/shm after a process with shm memory was killed. */
static int files_left_by_a_killed_process(const char *name)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_SHM, BYTES);
	int ends[2], status = 0;
	gpul_mem *m = NULL;
	gpul_error err;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		desc.shm_name = name;
		if (create_memory(&desc, &m, &err) || write(ends[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	close(ends[0]);
	close(ends[1]);
	return entries_in_shm();
}

static void a_killed_process_leaves_only_a_named_file(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_SHM, BYTES);
	gpul_mem *m = NULL;
	gpul_error err;

	(void)state;
	if (!own_shm)
		skip();
	assert_int_equal(files_left_by_a_killed_process(NULL), 0);
	assert_int_equal(files_left_by_a_killed_process("/gpuload-test-limits"), 1);
	desc.shm_name = "/gpuload-test-limits";
	assert_int_equal(create_memory(&desc, &m, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "rm /dev/shm/gpuload-test-limits"));
	assert_int_equal(unlink("/dev/shm/gpuload-test-limits"), 0);
}

static gpul_status create_under(unsigned resource, rlim_t limit, gpul_mem_kind kind, gpul_error *err)
{
	gpul_mem_desc desc = wanted(kind, BYTES);
	struct rlimit before, small;
	gpul_mem *m = NULL;
	gpul_status st;

	assert_int_equal(syscall(SYS_prlimit64, 0, resource, NULL, &before), 0);
	small = (struct rlimit){ limit, before.rlim_max };
	assert_int_equal(syscall(SYS_prlimit64, 0, resource, &small, NULL), 0);
	st = create_memory(&desc, &m, err);
	assert_int_equal(syscall(SYS_prlimit64, 0, resource, &before, NULL), 0);
	gpul_mem_destroy(m);
	return st;
}

static void running_out_of_descriptors_is_an_error(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_MEMFD, GPUL_MEM_SHM };
	gpul_error err;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(create_under(RLIMIT_NOFILE, 3, kinds[i], &err), GPUL_ESYS);
		assert_int_equal(err.native, EMFILE);
	}
}

static void a_file_size_limit_is_an_error_not_a_signal(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_MEMFD, GPUL_MEM_SHM };
	size_t fds = count_fds();
	gpul_error err;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(create_under(RLIMIT_FSIZE, 4096, kinds[i], &err), GPUL_ESYS);
		assert_int_equal(err.native, EFBIG);
		assert_int_equal(count_fds(), fds);
	}
}

/* Simulate a container with a memory limit of 100 MB by a file memory.max in a tmpfs at /sys/fs/cgroup. */
static void exceeding_the_containers_limit_is_an_error(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_MEMFD, 200000000);
	gpul_mem *m = NULL;
	gpul_error err;
	FILE *f;

	(void)state;
	if (!own_shm || mount("tmpfs", "/sys/fs/cgroup", "tmpfs", 0, "size=1m"))
		skip();
	f = fopen("/sys/fs/cgroup/memory.max", "w");
	assert_non_null(f);
	assert_true(fprintf(f, "100000000\n") > 0 && fclose(f) == 0);
	assert_int_equal(create_memory(&desc, &m, &err), GPUL_ENOMEM);
	assert_non_null(
		strstr(err.text,
		       "this process has a memory limit of 100000000 bytes, of which 0 bytes are in use: /sys/fs/cgroup/memory.max"));
	desc.bytes = 70000000;
	assert_int_equal(create_memory(&desc, &m, &err), GPUL_OK);
	gpul_mem_destroy(m);
}

static int setup(void **state)
{
	(void)state;
	own_shm = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		  mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") == 0;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_dev_shm_is_an_error_with_advice),    cmocka_unit_test(a_killed_process_leaves_only_a_named_file),
		cmocka_unit_test(running_out_of_descriptors_is_an_error),     cmocka_unit_test(a_file_size_limit_is_an_error_not_a_signal),
		cmocka_unit_test(exceeding_the_containers_limit_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
