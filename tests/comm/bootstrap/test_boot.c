/* test_boot.c — the meeting and the exchanges of ranks that are threads of one process. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/comm/bootstrap/ranks.h"

enum { LONG_MS = 60000 }; /* no test waits that long unless something is wrong */

/* ---- success ---------------------------------------------------------------------------------------------------- */

/* The byte at a place of a rank's block. */
static unsigned char byte_at(int rank, size_t at)
{
	return (unsigned char)(rank * 37 + (int)(at % 251));
}

static gpul_status gather_once(gpul_boot *b, size_t bytes, gpul_error *err)
{
	int rank = gpul_boot_rank(b), size = gpul_boot_size(b);
	unsigned char *mine = malloc(bytes + 1), *all = malloc(bytes * (size_t)size + 1);
	gpul_status st;

	for (size_t i = 0; i < bytes; i++)
		mine[i] = byte_at(rank, i);
	st = gpul_boot_allgather(b, mine, bytes, all, LONG_MS, err);
	for (int r = 0; !st && r < size; r++)
		for (size_t i = 0; !st && i < bytes; i++)
			if (all[(size_t)r * bytes + i] != byte_at(r, i))
				st = gpul_fail(err, GPUL_EFORMAT, 0, "byte %zu of rank %d is wrong", i, r);
	free(mine);
	free(all);
	return st;
}

static gpul_status gather_sizes(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const size_t *bytes = arg;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	if (!st && (gpul_boot_rank(b) != job->rank || gpul_boot_size(b) != job->size))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "wrong rank or size");
	for (; !st && *bytes != SIZE_MAX; bytes++)
		st = gather_once(b, *bytes, err);
	if (!st)
		st = gpul_boot_barrier(b, LONG_MS, err);
	gpul_boot_close(b);
	return st;
}

static void expect_ok(const struct rank_end *ends, int size)
{
	for (int r = 0; r < size; r++)
		if (ends[r].status)
			fail_msg("rank %d: %s", r, ends[r].err.text);
	assert_int_equal(ranks_n_files(), 0);
}

static void ranks_gather_blocks_of_any_size(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 4096, 60 << 10, (60 << 10) + 1, 1000003, SIZE_MAX };
	static const int jobs[] = { 1, 2, 3, 8 };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		ranks_as_threads(jobs[i], gather_sizes, (void *)(uintptr_t)sizes, ends);
		expect_ok(ends, jobs[i]);
	}
}

static void thirty_two_ranks_meet(void **state)
{
	static const size_t sizes[] = { 8, 100000, SIZE_MAX };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	ranks_as_threads(GPUL_COMM_MAX_RANKS, gather_sizes, (void *)(uintptr_t)sizes, ends);
	expect_ok(ends, GPUL_COMM_MAX_RANKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_gather_blocks_of_any_size),
		cmocka_unit_test(thirty_two_ranks_meet),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
