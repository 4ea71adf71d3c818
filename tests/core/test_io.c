/* test_io.c — exact reads and writes, and teams of threads. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/file/io.h"
#include "core/thread/parallel.h"

enum { MUCH = 1 << 20 }; /* bytes: more than a pipe holds, so that read() and write() transfer parts */

struct writing {
	int fd;
	const char *bytes;
};

static void write_much(void *context)
{
	const struct writing *w = context;

	assert_true(gpul_write_all(w->fd, w->bytes, MUCH));
	close(w->fd);
}

static void transfers_every_byte_through_a_small_pipe(void **state)
{
	char *sent = malloc(MUCH), *received = malloc(MUCH);
	struct writing w = { .bytes = sent };
	gpul_team team;
	int ends[2];

	(void)state;
	for (size_t i = 0; i < MUCH; i++)
		sent[i] = (char)(i * 7);
	assert_int_equal(pipe(ends), 0);
	w.fd = ends[1];
	gpul_team_start(&team, 1, write_much, &w);
	assert_int_equal(team.n_threads, 1);
	assert_true(gpul_read_all(ends[0], received, MUCH));
	gpul_team_join(&team);
	assert_memory_equal(sent, received, MUCH);
	errno = EIO;
	assert_false(gpul_read_all(ends[0], received, 1)); /* end of file */
	assert_int_equal(errno, 0);
	close(ends[0]);
	free(sent);
	free(received);
}

static void failures_set_errno(void **state)
{
	int fd = open("/dev/full", O_WRONLY);
	char byte = 0;

	(void)state;
	assert_false(gpul_write_all(fd, &byte, 1));
	assert_int_equal(errno, ENOSPC);
	close(fd);
	assert_false(gpul_read_all(-1, &byte, 1));
	assert_int_equal(errno, EBADF);
	assert_true(gpul_read_all(-1, &byte, 0)); /* zero bytes: read() is not called */
}

static void count_call(void *context)
{
	atomic_fetch_add((_Atomic unsigned *)context, 1);
}

static void each_thread_calls_the_function_once(void **state)
{
	_Atomic unsigned calls = 0;
	gpul_team team;

	(void)state;
	gpul_parallel(5, count_call, &calls);
	assert_int_equal(calls, 5);
	gpul_parallel(0, count_call, &calls); /* the calling thread always runs the function */
	assert_int_equal(calls, 6);
	gpul_team_start(&team, GPUL_TEAM_MAX + 10, count_call, &calls);
	assert_int_equal(team.n_threads, GPUL_TEAM_MAX);
	gpul_team_join(&team);
	assert_int_equal(calls, 6 + GPUL_TEAM_MAX);
}

static void counts_the_cpus_of_the_affinity_mask(void **state)
{
	cpu_set_t before, one;
	size_t cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	assert_int_equal(gpul_cpus(), CPU_COUNT(&before));
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_int_equal(gpul_cpus(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(transfers_every_byte_through_a_small_pipe),
		cmocka_unit_test(failures_set_errno),
		cmocka_unit_test(each_thread_calls_the_function_once),
		cmocka_unit_test(counts_the_cpus_of_the_affinity_mask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
