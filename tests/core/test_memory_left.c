/* test_memory_left.c — memory limits of control groups, read from copies of /proc and /sys in a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/cmocka.h"
#include "core/memory_left.h"

static char root[64];

/* Write a file below root; its folders are made. */
static void put(const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof full, "%s/%s", root, path);
	for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static int make_machine(void **state)
{
	(void)state;
	strcpy(root, "/tmp/gpuload-memory-left-XXXXXX");
	assert_non_null(mkdtemp(root));
	put("proc/meminfo", "MemTotal:       16384 kB\nMemFree:  100 kB\nMemAvailable:    8192 kB\nSwapTotal: 0 kB\n"
			    "SwapFree:          0 kB\n");
	return 0;
}

static int remove_machine(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command);
}

static void without_groups_the_machine_is_the_limit(void **state)
{
	gpul_memory_left m;

	(void)state;
	assert_true(gpul_memory_find_left(root, &m));
	assert_true(m.is_machine);
	assert_int_equal(m.left_bytes, 8 << 20);
	assert_int_equal(m.limit_bytes, 16 << 20);
	assert_int_equal(m.used_bytes, 8 << 20);
	assert_false(gpul_memory_find_left("/nonexistent", &m));
}

#define MOUNTS_2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void the_tightest_of_all_ancestors_counts(void **state)
{
	gpul_memory_left m;

	(void)state;
	put("proc/self/cgroup", "0::/a/b/c\n");
	put("proc/self/mountinfo", MOUNTS_2);
	put("sys/fs/cgroup/a/memory.max", "5000000\n");
	put("sys/fs/cgroup/a/memory.current", "4000000\n");
	put("sys/fs/cgroup/a/b/memory.max", "max\n");
	put("sys/fs/cgroup/a/b/memory.current", "4000000\n");
	put("sys/fs/cgroup/a/b/c/memory.max", "3000000\n");
	put("sys/fs/cgroup/a/b/c/memory.current", "1500000\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_int_equal(m.left_bytes, 1000000);
	assert_int_equal(m.limit_bytes, 5000000);
	assert_int_equal(m.used_bytes, 4000000);
	assert_false(m.is_machine);
	assert_string_equal(m.where, "/sys/fs/cgroup/a/memory.max");
	/* The kernel frees page cache before it kills a process. */
	put("sys/fs/cgroup/a/memory.stat", "anon 2500000\nfile 1500000\ninactive_anon 7\ninactive_file 1200000\nactive_file 1\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_string_equal(m.where, "/sys/fs/cgroup/a/b/c/memory.max");
	assert_int_equal(m.left_bytes, 1500000);
	/* A group can use more than its limit after the limit was lowered. */
	put("sys/fs/cgroup/a/b/c/memory.current", "3100000\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_int_equal(m.left_bytes, 0);
	assert_int_equal(m.used_bytes, 3100000);
	put("sys/fs/cgroup/a/b/c/memory.max", "900000000000\n");
	put("sys/fs/cgroup/a/memory.max", "900000000000\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_true(m.is_machine);
}

static void swap_counts_as_far_as_the_group_may_use_it(void **state)
{
	gpul_memory_left m;

	(void)state;
	put("proc/meminfo", "MemTotal: 16384 kB\nMemAvailable: 8192 kB\nSwapFree: 1000 kB\n");
	put("proc/self/cgroup", "0::/a\n");
	put("proc/self/mountinfo", MOUNTS_2);
	put("sys/fs/cgroup/a/memory.max", "2000000\n");
	put("sys/fs/cgroup/a/memory.current", "500000\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_int_equal(m.left_bytes, 1500000 + 1000 * 1024);
	put("sys/fs/cgroup/a/memory.swap.max", "300000\n");
	put("sys/fs/cgroup/a/memory.swap.current", "100000\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_int_equal(m.left_bytes, 1500000 + 200000);
}

static void reads_the_files_of_version_1(void **state)
{
	gpul_memory_left m;

	(void)state;
	put("proc/self/cgroup", "9:name=systemd:/\n5:cpu,cpuacct:/x\n4:memory:/docker/ab/inner\n0::/\n");
	put("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
				   "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
	put("sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "6000000\n");
	put("sys/fs/cgroup/memory/docker/ab/memory.usage_in_bytes", "5500000\n");
	put("sys/fs/cgroup/memory/docker/ab/memory.stat", "inactive_file 1\ntotal_cache 9\ntotal_inactive_file 500000\n");
	put("sys/fs/cgroup/memory/docker/ab/inner/memory.limit_in_bytes", "5000000\n");
	put("sys/fs/cgroup/memory/docker/ab/inner/memory.usage_in_bytes", "100000\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_int_equal(m.left_bytes, 1000000);
	assert_int_equal(m.used_bytes, 5000000);
	assert_string_equal(m.where, "/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes");
	/* A container of cgroup version 1 sees the host's path of its group, but only its own group is mounted. */
	put("proc/self/mountinfo", "35 31 0:32 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_int_equal(m.left_bytes, 1999999);
	/* If the path is outside of the mounted group, the limit at the mount point is used. */
	put("proc/self/cgroup", "4:memory:/docker/other\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
	assert_true(gpul_memory_find_left(root, &m));
	assert_int_equal(m.left_bytes, 2999999);
}

static void refuses_what_is_larger_than_any_machine(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_memory_check("a test", 4096, NULL), GPUL_OK);
	assert_int_equal(gpul_memory_check("a test", SIZE_MAX / 2, &err), GPUL_ENOMEM);
	assert_non_null(strstr(err.text, "a test: 9223372036854775807 bytes were requested, but this "));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_machine, remove_machine)
	const struct CMUnitTest tests[] = {
		TEST(without_groups_the_machine_is_the_limit),    TEST(the_tightest_of_all_ancestors_counts),
		TEST(swap_counts_as_far_as_the_group_may_use_it), TEST(reads_the_files_of_version_1),
		TEST(refuses_what_is_larger_than_any_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
