/* test_meeting.c — ranks of several hosts connect over TCP, exchange blocks, and fail together. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/comm/bootstrap/hosts/several.h"

/* ---- success ---------------------------------------------------------------------------------------------------- */

static void ranks_of_several_hosts_gather_blocks_of_any_size(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 4096, 60 << 10, (60 << 10) + 1, 1000003, SIZE_MAX };
	static const char *const layouts[] = { "a", "aa", "ab", "aabb", "abab", "abcd", "aabbcab" };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];
	int before = ranks_n_open();

	(void)state;
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		several_as_threads(layouts[i], ranks_gather_sizes, (void *)(uintptr_t)sizes, ends);
		ranks_expect_ok(ends, (int)strlen(layouts[i]));
	}
	assert_in_range(ranks_n_open(), before, before + 1); /* several_job() keeps one descriptor open: its reserved port */
}

static void thirty_two_ranks_of_sixteen_hosts_meet(void **state)
{
	static const size_t sizes[] = { 8, 100000, SIZE_MAX };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	several_as_threads("abcdefghijklmnopabcdefghijklmnop", ranks_gather_sizes, (void *)(uintptr_t)sizes, ends);
	ranks_expect_ok(ends, GPUL_COMM_MAX_RANKS);
}

static gpul_status check_hosts(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const char *letters = arg;
	int mine = memfd_create("mark", MFD_CLOEXEC), all[GPUL_COMM_MAX_RANKS];
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);

	if (ftruncate(mine, 1000 + job->rank))
		st = gpul_fail(err, GPUL_ESYS, 0, "ftruncate");
	for (int r = 0; !st && r < job->size; r++)
		if (gpul_boot_host_name(b, r)[0] != letters[r] || gpul_boot_host(b, r) != letters[r] - 'a' ||
		    gpul_boot_pid(b, r) != getpid())
			st = gpul_fail(err, GPUL_EFORMAT, 0, "rank %d has host %d, %s", r, gpul_boot_host(b, r), gpul_boot_host_name(b, r));
	if (!st)
		st = gpul_boot_exchange_fds(b, &mine, 1, all, RANKS_LONG_MS, err);
	for (int r = 0; !st && r < job->size; r++) {
		const bool shared = letters[r] == letters[job->rank];

		if (shared ? lseek(all[r], 0, SEEK_END) != 1000 + r : all[r] != -1)
			st = gpul_fail(err, GPUL_EFORMAT, 0, "rank %d has a wrong descriptor of rank %d", job->rank, r);
		if (all[r] >= 0)
			close(all[r]);
	}
	if (!st)
		st = gpul_boot_barrier(b, RANKS_LONG_MS, err);
	close(mine);
	gpul_boot_close(b);
	return st;
}

static void hosts_have_numbers_and_names_and_descriptors_stay_inside(void **state)
{
	static const char *const layouts[] = { "aaa", "ab", "aabb", "abcab" };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		several_as_threads(layouts[i], check_hosts, (void *)(uintptr_t)layouts[i], ends);
		ranks_expect_ok(ends, (int)strlen(layouts[i]));
	}
}

static void a_job_meets_again_at_the_same_address(void **state)
{
	struct rank_end ends[4];
	int n = 10;

	(void)state;
	several_as_threads("abab", ranks_meet_often, &n, ends);
	ranks_expect_ok(ends, 4);
}

/* ---- ranks that never open the bootstrap, that leave, or that make different calls ------------------------------- */

/* Rank 3, the second rank of host b, calls something different from the other ranks. */
static void ranks_that_disagree_all_fail_with_one_message(void **state)
{
	static const struct ranks_difference cases[] = {
		{ "size", 3, 0,
		  "rank 3 called gpul_boot_allgather() with 2 as call 1, but rank 2 called gpul_boot_allgather() with 1 as call 1" },
		{ "call", 3, 0,
		  "rank 3 called gpul_boot_barrier() with 0 as call 1, but rank 2 called gpul_boot_allgather() with 0 as call 1" },
		{ "leave", 3, 0, " on host b has left the job" },
		{ "late", 3, 1000, "gpul_boot_barrier(): rank 3 of 5 ranks did not answer within 1000 ms" },
		{ "fail", 3, 0, "the kernel failed" },
	};
	struct rank_end ends[5];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		several_as_threads("aabbc", ranks_call_differently, (void *)(uintptr_t)&cases[i], ends);
		ranks_expect_difference(&cases[i], ends, 5);
	}
}

static void the_message_names_the_ranks_that_have_not_arrived(void **state)
{
	struct rank_end ends[5];

	(void)state;
	several_as_threads("ababc", ranks_1_and_3_stay_away, NULL, ends);
	ranks_expect_absence(ends);
}

static void without_rank_0_the_message_has_its_address(void **state)
{
	gpul_comm_job job = several_job(2, 4);
	gpul_boot *b = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_boot_open(&job, 20, &b, &err), GPUL_ESYS);
	assert_null(b);
	if (!strstr(err.text, "rank 0 at 127.0.0.1:") || !strstr(err.text, "could not be reached within 20 ms: Connection refused"))
		fail_msg("%s", err.text);
}

/* Rank 2, the leader of host b, has a folder for sockets that it cannot use. */
static gpul_status open_in_a_folder(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_boot *b = NULL;
	gpul_status st;

	if (job->rank >= 2)
		setenv("GPULOAD_RUNTIME_DIR", "/dev/null", 1);
	st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);
	(void)arg;
	gpul_boot_close(b);
	return st;
}

static void a_host_that_cannot_meet_fails_the_job(void **state)
{
	static const char hosts[] = "aabb";
	gpul_comm_job job = several_job(0, 4);
	struct rank_end *ends = ranks_shared(4 * sizeof *ends);
	pid_t children[4];

	(void)state;
	for (int r = 0; r < 4; r++) {
		gpul_comm_job mine = several_of(&job, r, hosts);

		children[r] = ranks_fork(&mine, open_in_a_folder, NULL, &ends[r]);
	}
	for (int r = 0; r < 4; r++) {
		int status;

		assert_int_equal(waitpid(children[r], &status, 0), children[r]);
		if (!strstr(ends[r].err.text, "/dev/null"))
			fail_msg("rank %d: %s", r, ends[r].err.text);
	}
	ranks_unshare(ends, 4 * sizeof *ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_of_several_hosts_gather_blocks_of_any_size),
		cmocka_unit_test(thirty_two_ranks_of_sixteen_hosts_meet),
		cmocka_unit_test(hosts_have_numbers_and_names_and_descriptors_stay_inside),
		cmocka_unit_test(a_job_meets_again_at_the_same_address),
		cmocka_unit_test(ranks_that_disagree_all_fail_with_one_message),
		cmocka_unit_test(the_message_names_the_ranks_that_have_not_arrived),
		cmocka_unit_test(without_rank_0_the_message_has_its_address),
		cmocka_unit_test(a_host_that_cannot_meet_fails_the_job),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
