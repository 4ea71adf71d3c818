/* test_boot.c — gpul_boot_open() and the exchanges, with ranks that are threads of one process. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/comm/bootstrap/ranks.h"

/* ---- success ---------------------------------------------------------------------------------------------------- */

static void ranks_gather_blocks_of_any_size(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 4096, 60 << 10, (60 << 10) + 1, 1000003, SIZE_MAX };
	static const int jobs[] = { 1, 2, 3, 8 };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		ranks_as_threads(jobs[i], ranks_gather_sizes, (void *)(uintptr_t)sizes, ends);
		ranks_expect_ok(ends, jobs[i]);
	}
}

static void thirty_two_ranks_meet(void **state)
{
	static const size_t sizes[] = { 8, 100000, SIZE_MAX };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	ranks_as_threads(GPUL_COMM_MAX_RANKS, ranks_gather_sizes, (void *)(uintptr_t)sizes, ends);
	ranks_expect_ok(ends, GPUL_COMM_MAX_RANKS);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------ */

/* Create a memfd that contains the rank and the index i of the descriptor. */
static int marked_file(int rank, unsigned i)
{
	int fd = memfd_create("mark", MFD_CLOEXEC);
	int mark[2] = { rank, (int)i };

	assert_int_equal(write(fd, mark, sizeof mark), sizeof mark);
	return fd;
}

static bool has_mark(int fd, int rank, unsigned i)
{
	int mark[2] = { -1, -1 };

	return fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && pread(fd, mark, sizeof mark, 0) == sizeof mark && mark[0] == rank &&
	       mark[1] == (int)i;
}

/* Exchange n descriptors of each rank; every third one is -1. */
static gpul_status exchange_files(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	unsigned n = *(unsigned *)arg;
	int *mine = calloc(n + 1, sizeof *mine), *all = calloc((size_t)job->size * n + 1, sizeof *all);
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);

	for (unsigned i = 0; i < n; i++)
		mine[i] = i % 3 == 2 ? -1 : marked_file(job->rank, i);
	if (!st)
		st = gpul_boot_exchange_fds(b, mine, n, all, RANKS_LONG_MS, err);
	for (int r = 0; !st && r < job->size; r++)
		for (unsigned i = 0; i < n; i++) {
			int fd = all[(unsigned)r * n + i];

			if (i % 3 == 2 ? fd != -1 : !has_mark(fd, r, i) || (r == job->rank && fd == mine[i]))
				st = gpul_fail(err, GPUL_EFORMAT, 0, "descriptor %u of rank %d is wrong", i, r);
			if (fd >= 0)
				close(fd);
		}
	for (unsigned i = 0; i < n; i++)
		if (mine[i] >= 0)
			close(mine[i]);
	gpul_boot_close(b);
	free(mine);
	free(all);
	return st;
}

static void each_rank_gets_the_right_descriptors(void **state)
{
	static const unsigned n_fds[] = { 0, 1, 2, 7, GPUL_BOOT_MAX_FDS };
	static const int jobs[] = { 1, 2, 5 };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];
	int before = ranks_n_open();

	(void)state;
	for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++)
		for (size_t i = 0; i < sizeof n_fds / sizeof *n_fds; i++) {
			ranks_as_threads(jobs[j], exchange_files, (void *)(uintptr_t)&n_fds[i], ends);
			ranks_expect_ok(ends, jobs[j]);
		}
	assert_int_equal(ranks_n_open(), before);
}

static void too_many_descriptors_are_refused(void **state)
{
	gpul_comm_job job = ranks_job(0, 1);
	gpul_boot *b = NULL;
	gpul_error err = { 0 };
	int one = -1;

	(void)state;
	assert_int_equal(gpul_boot_open(&job, RANKS_LONG_MS, &b, NULL), GPUL_OK);
	assert_int_equal(gpul_boot_exchange_fds(b, &one, GPUL_BOOT_MAX_FDS + 1, &one, RANKS_LONG_MS, &err), GPUL_EINVAL);
	assert_string_equal(err.text, "a rank passes 65 file descriptors, but at most 64 are allowed");
	assert_int_equal(gpul_boot_barrier(b, RANKS_LONG_MS, NULL), GPUL_OK); /* the job continues */
	gpul_boot_close(b);
}

/* Rank 1 offers a descriptor that is not open. */
static gpul_status exchange_closed_file(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	int mine = job->rank == 1 ? 4000 : STDIN_FILENO, all[GPUL_COMM_MAX_RANKS];
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);

	(void)arg;
	memset(all, -1, sizeof all); /* on the other ranks, gpul_boot_open() fails if rank 1 has already failed */
	if (!st)
		st = gpul_boot_exchange_fds(b, &mine, 1, all, RANKS_LONG_MS, err);
	for (int r = 0; r < job->size; r++)
		if (all[r] != -1)
			st = gpul_fail(NULL, GPUL_EFORMAT, 0, "a descriptor is left");
	gpul_boot_close(b);
	return st;
}

static void a_closed_descriptor_fails_all_ranks(void **state)
{
	struct rank_end ends[3];
	int before = ranks_n_open();

	(void)state;
	ranks_as_threads(3, exchange_closed_file, NULL, ends);
	for (int r = 0; r < 3; r++) {
		assert_int_equal(ends[r].status, GPUL_ESYS);
		assert_non_null(strstr(ends[r].err.text, "cannot duplicate file descriptor 4000 of rank 1: Bad file descriptor"));
	}
	assert_int_equal(ranks_n_open(), before);
}

/* Rank 1 offers no descriptor, and its limit of open files is too low for those of the other ranks. */
static gpul_status receive_without_room(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	int mine = job->rank == 1 ? -1 : STDIN_FILENO, all[3];
	struct rlimit limit;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);

	(void)arg;
	if (!st && job->rank == 1) {
		int first_free = dup(STDIN_FILENO);

		close(first_free);
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = (rlim_t)first_free;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (!st)
		st = gpul_boot_exchange_fds(b, &mine, 1, all, RANKS_LONG_MS, err);
	if (!st)
		st = gpul_boot_barrier(b, RANKS_LONG_MS, err);
	gpul_boot_close(b);
	return st;
}

static void a_rank_without_room_for_descriptors_fails_all_ranks(void **state)
{
	gpul_comm_job job = ranks_job(0, 3);
	struct rank_end *ends = ranks_shared(3 * sizeof *ends);
	pid_t children[3];

	(void)state;
	for (int r = 0; r < 3; r++) {
		gpul_comm_job mine = ranks_of(&job, r);

		children[r] = ranks_fork(&mine, receive_without_room, NULL, &ends[r]);
	}
	for (int r = 0; r < 3; r++) {
		assert_int_equal(waitpid(children[r], NULL, 0), children[r]);
		if (!strstr(ends[r].err.text, "because the limit of open files is reached"))
			fail_msg("rank %d: %s", r, ends[r].err.text);
	}
	ranks_unshare(ends, 3 * sizeof *ends);
}

/* ---- one name of a job, used several times ---------------------------------------------------------------------- */

static void a_job_meets_again_under_the_same_name(void **state)
{
	struct rank_end ends[3];
	int n = 50;

	(void)state;
	ranks_as_threads(3, ranks_meet_often, &n, ends);
	ranks_expect_ok(ends, 3);
}

/* ---- ranks that never open the bootstrap, that leave, or that make different calls ------------------------------- */

static void ranks_that_disagree_all_fail_with_one_message(void **state)
{
	static const struct ranks_difference cases[] = {
		{ "size", 1, 0,
		  "rank 1 called gpul_boot_allgather() with 2 as call 1, but rank 0 called gpul_boot_allgather() with 1 as call 1" },
		{ "call", 1, 0,
		  "rank 1 called gpul_boot_barrier() with 0 as call 1, but rank 0 called gpul_boot_allgather() with 0 as call 1" },
		{ "order", 1, 0, "rank 1 called gpul_boot_exchange_fds() with 0 as call 1, but rank 0 called gpul_boot_barrier() with 0" },
		{ "leave", 1, 0, "gpul_boot_barrier(): rank 1 (pid" },
		{ "late", 1, 50, "gpul_boot_barrier(): rank 1 of 3 ranks did not answer within 50 ms" },
	};
	struct rank_end ends[3];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ranks_as_threads(3, ranks_call_differently, (void *)(uintptr_t)&cases[i], ends);
		ranks_expect_difference(&cases[i], ends, 3);
	}
}

static void the_message_names_the_ranks_that_have_not_arrived(void **state)
{
	struct rank_end ends[5];

	(void)state;
	ranks_as_threads(5, ranks_1_and_3_stay_away, NULL, ends);
	ranks_expect_absence(ends);
}

static void without_rank_0_the_message_says_what_it_needs(void **state)
{
	gpul_comm_job job = ranks_job(2, 4);
	gpul_boot *b = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_boot_open(&job, 20, &b, &err), GPUL_ESYS);
	assert_null(b);
	assert_non_null(strstr(err.text, "rank 2, start of job "));
	assert_non_null(strstr(err.text, "did not create the socket /tmp/gpul-comm-"));
	assert_non_null(strstr(err.text, ".sock within 20 ms: that rank must run on this machine, as the same user"));
}

/* ---- the folder and the limits ---------------------------------------------------------------------------------- */

static void expect_no_meeting(int size, gpul_status status, const char *text)
{
	gpul_comm_job job = ranks_job(0, size);
	gpul_boot *b = NULL;
	gpul_error err = { 0 };
	int before = ranks_n_open();

	assert_int_equal(gpul_boot_open(&job, 50, &b, &err), status);
	if (!strstr(err.text, text))
		fail_msg("'%s' is not in: %s", text, err.text);
	assert_null(b);
	assert_int_equal(ranks_n_open(), before);
}

static void an_unusable_folder_is_refused(void **state)
{
	char *ours = strdup(getenv("GPULOAD_RUNTIME_DIR")), inside[128];
	gpul_comm_job alone = ranks_job(0, 1);
	gpul_boot *b = NULL;

	(void)state;
	chmod(ours, 0755);
	expect_no_meeting(2, GPUL_EUNSUPPORTED, "is accessible to other users");
	assert_int_equal(gpul_boot_open(&alone, 50, &b, NULL), GPUL_OK); /* a single rank needs no folder */
	gpul_boot_close(b);
	chmod(ours, 0700);
	snprintf(inside, sizeof inside, "%s/no/such", ours);
	setenv("GPULOAD_RUNTIME_DIR", inside, 1);
	expect_no_meeting(2, GPUL_ESYS, "cannot create");
	setenv("GPULOAD_RUNTIME_DIR", "/dev/null", 1);
	expect_no_meeting(2, GPUL_EUNSUPPORTED, "not a folder");
	setenv("GPULOAD_RUNTIME_DIR", ours, 1);
	free(ours);
}

static void every_limit_of_open_files_is_an_error(void **state)
{
	struct rlimit before, fewer;
	int n = ranks_n_open();

	(void)state;
	getrlimit(RLIMIT_NOFILE, &before);
	for (fewer = before;; n++) {
		gpul_comm_job job = ranks_job(0, 2);
		gpul_error err = { 0 };
		gpul_boot *b = NULL;
		gpul_status st;

		fewer.rlim_cur = (rlim_t)n;
		setrlimit(RLIMIT_NOFILE, &fewer);
		st = gpul_boot_open(&job, 10, &b, &err);
		setrlimit(RLIMIT_NOFILE, &before);
		assert_int_not_equal(st, GPUL_OK);
		assert_int_equal(ranks_n_files(), 0);
		if (strstr(err.text, "did not answer"))
			break;
		if (!strstr(err.text, "Too many open files"))
			fail_msg("limit %d: %s", n, err.text);
	}
}

static void invalid_jobs_are_refused(void **state)
{
	static const struct {
		gpul_comm_job job;
		const char *text;
	} cases[] = {
		{ { .rank = 0, .size = 0, .name = "x" }, "rank 0 is invalid in a job of 0 ranks: expected 0 to -1" },
		{ { .rank = 2, .size = 2, .name = "x" }, "rank 2 is invalid in a job of 2 ranks: expected 0 to 1" },
		{ { .rank = -1, .size = 2, .name = "x" }, "rank -1 is invalid in a job of 2 ranks: expected 0 to 1" },
		{ { .rank = 0, .size = 33, .name = "x" }, "the job has 33 ranks, but at most 32 are supported" },
		{ { .rank = 0, .size = 2, .name = "" }, "invalid job name ''" },
		{ { .rank = 0, .size = 2, .name = "a/b" }, "invalid job name 'a/b'" },
		{ { .rank = 0, .size = 2, .name = ".a" }, "invalid job name '.a'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_boot *b = NULL;
		gpul_error err = { 0 };

		assert_int_not_equal(gpul_boot_open(&cases[i].job, RANKS_LONG_MS, &b, &err), GPUL_OK);
		if (!strstr(err.text, cases[i].text))
			fail_msg("expected '%s': %s", cases[i].text, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_gather_blocks_of_any_size),
		cmocka_unit_test(thirty_two_ranks_meet),
		cmocka_unit_test(each_rank_gets_the_right_descriptors),
		cmocka_unit_test(too_many_descriptors_are_refused),
		cmocka_unit_test(a_closed_descriptor_fails_all_ranks),
		cmocka_unit_test(a_rank_without_room_for_descriptors_fails_all_ranks),
		cmocka_unit_test(a_job_meets_again_under_the_same_name),
		cmocka_unit_test(ranks_that_disagree_all_fail_with_one_message),
		cmocka_unit_test(the_message_names_the_ranks_that_have_not_arrived),
		cmocka_unit_test(without_rank_0_the_message_says_what_it_needs),
		cmocka_unit_test(an_unusable_folder_is_refused),
		cmocka_unit_test(every_limit_of_open_files_is_an_error),
		cmocka_unit_test(invalid_jobs_are_refused),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
