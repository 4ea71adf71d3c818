/* test_numa.c — finding the NUMA node of pages, and the message when the system forbids it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "memalloc/mem_internal.h"
#include "memalloc/numa.h"
#include "tests/memalloc/support.h"

enum { PAGES = 1000 };

/* Make a memory object with only the fields that gpul_mem_verify_numa() reads: mapped pages and the expected node. */
static gpul_mem map_pages(size_t n_pages)
{
	size_t bytes = n_pages * (size_t)sysconf(_SC_PAGESIZE);
	gpul_mem m = { .about = { .kind = GPUL_MEM_MEMFD, .bytes = bytes, .mapped_bytes = bytes } };

	m.cpu = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(m.cpu, MAP_FAILED);
	return m;
}

static void unmap(const gpul_mem *m)
{
	munmap(m->cpu, m->about.mapped_bytes);
}

static size_t sum_nodes(const gpul_mem_numa *n)
{
	size_t sum = 0;

	for (int i = 0; i < GPUL_NUMA_MAX_NODES; i++)
		sum += n->on_node[i];
	return sum;
}

static void every_accessed_page_is_on_a_node(void **state)
{
	gpul_mem m = map_pages(PAGES);
	gpul_mem_numa numa = { 0 };
	gpul_error err = { 0 };

	(void)state;
	memset(m.cpu, 1, m.about.bytes);
	if (gpul_mem_verify_numa(&m, 1, &numa, &err))
		fail_msg("%s", err.text);
	assert_int_equal(numa.n_sampled, PAGES);
	assert_int_equal(numa.not_there, 0);
	assert_int_equal(sum_nodes(&numa), PAGES);
	assert_int_equal(numa.as_expected, numa.on_node[0] == PAGES);
	m.about.node = 63;
	assert_int_equal(gpul_mem_verify_numa(&m, 1, &numa, &err), GPUL_OK);
	assert_int_equal(numa.expected, 63);
	assert_false(numa.as_expected);
	unmap(&m);
}

static void finds_pages_that_another_process_allocated(void **state)
{
	gpul_mem m = map_pages(PAGES);
	gpul_mem_numa numa = { 0 };
	int status = 0;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		memset(m.cpu, 1, m.about.bytes);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(gpul_mem_verify_numa(&m, 1, &numa, NULL), GPUL_OK);
	assert_int_equal(sum_nodes(&numa), PAGES);
	m.about.node = -1; /* no node was requested, so every node is as expected */
	assert_int_equal(gpul_mem_verify_numa(&m, 1, &numa, NULL), GPUL_OK);
	assert_true(numa.as_expected);
	unmap(&m);
}

static void counts_unmapped_pages_as_not_there(void **state)
{
	gpul_mem m = map_pages(PAGES);
	gpul_mem_numa numa = { 0 };

	(void)state;
	assert_int_equal(mprotect(m.cpu, m.about.bytes, PROT_NONE), 0);
	assert_int_equal(gpul_mem_verify_numa(&m, 1, &numa, NULL), GPUL_OK);
	assert_int_equal(numa.not_there, PAGES);
	assert_false(numa.as_expected);
	unmap(&m);
}

static void always_samples_the_first_and_the_last_page(void **state)
{
	static const struct {
		size_t pages, every, sampled;
	} rows[] = {
		{ 1, 1, 1 },     { 1, 512, 1 },   { 2, 512, 2 },     { 10, 3, 4 },      { 11, 3, 5 },       { 512, 512, 2 },
		{ 513, 512, 2 }, { 514, 512, 3 }, { 3000, 1, 3000 }, { 1024, 1, 1024 }, { 9, SIZE_MAX, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		gpul_mem m = map_pages(rows[i].pages);
		size_t page_bytes = m.about.bytes / rows[i].pages;
		gpul_mem_numa numa = { 0 };

		if (rows[i].pages > 2)
			mprotect((char *)m.cpu + page_bytes, m.about.bytes - 2 * page_bytes, PROT_NONE);
		assert_int_equal(gpul_mem_verify_numa(&m, rows[i].every, &numa, NULL), GPUL_OK);
		assert_int_equal(numa.n_sampled, rows[i].sampled);
		assert_int_equal(sum_nodes(&numa), rows[i].pages > 1 ? 2 : 1);
		unmap(&m);
	}
}

static void refuses_device_memory_and_a_step_of_0_pages(void **state)
{
	gpul_mem device = { .about = { .kind = GPUL_MEM_DEVICE, .mapped_bytes = 1 << 21, .node = -1 } };
	gpul_mem m = map_pages(1);
	gpul_mem_numa numa = { 0 };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_mem_verify_numa(&device, 1, &numa, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "device memory"));
	assert_int_equal(gpul_mem_verify_numa(&m, 0, &numa, NULL), GPUL_EINVAL);
	assert_int_equal(numa.n_sampled, 0);
	unmap(&m);
}

/* Forbid move_pages, as a container without SYS_NICE does. */
static void forbid_move_pages(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_move_pages, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof code / sizeof *code, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

static void advises_sys_nice_in_a_container(void **state)
{
	int status = 0;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		gpul_mem m = map_pages(1);
		gpul_mem_numa numa;
		gpul_error err = { 0 };

		forbid_move_pages();
		if (gpul_mem_verify_numa(&m, 1, &numa, &err) != GPUL_ESYS || err.native != EPERM)
			_exit(1);
		_exit(strstr(err.text, "SYS_NICE") ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* For every kind of host memory, all pages are allocated on the node that the object reports. */
static void host_memory_is_on_the_reported_node(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_PINNED };
	gpul_context context = { 0 };
	const gpul_driver *drv = open_driver(&context);

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		gpul_mem_desc desc = wanted(kinds[i], 4 << 20);
		gpul_mem_numa numa = { 0 };
		gpul_error err = { 0 };
		gpul_mem *m = NULL;

		if (gpul_mem_create(drv, &desc, &m, &err) || gpul_mem_verify_numa(m, 1, &numa, &err))
			fail_msg("%s: %s", gpul_mem_kind_name(kinds[i]), err.text);
		assert_int_equal(numa.n_sampled, gpul_mem_about(m)->mapped_bytes / (size_t)sysconf(_SC_PAGESIZE));
		assert_int_equal(numa.not_there, 0);
		assert_true(numa.as_expected);
		gpul_mem_destroy(m);
	}
	gpul_context_close(&context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_accessed_page_is_on_a_node),
		cmocka_unit_test(finds_pages_that_another_process_allocated),
		cmocka_unit_test(counts_unmapped_pages_as_not_there),
		cmocka_unit_test(always_samples_the_first_and_the_last_page),
		cmocka_unit_test(refuses_device_memory_and_a_step_of_0_pages),
		cmocka_unit_test(advises_sys_nice_in_a_container),
		cmocka_unit_test(host_memory_is_on_the_reported_node),
	};

	return cmocka_run_group_tests_name("numa", tests, NULL, NULL);
}
