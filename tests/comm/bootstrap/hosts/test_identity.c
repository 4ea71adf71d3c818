/* test_identity.c — simulated hosts on one machine: their numbers and names, and the file descriptors that their ranks exchange. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/comm/bootstrap/ranks.h"

enum { LONG_MS = 60000, N_RANKS = 5 };

/* The host names that the job gives to the ranks, and the expected numbers of the hosts. */
struct layout {
	const char *name[N_RANKS];
	int host[N_RANKS];
};

static gpul_status open_on_host(const gpul_comm_job *job, const struct layout *l, gpul_boot **out, gpul_error *err)
{
	gpul_comm_job mine = *job;

	strcpy(mine.host, l->name[job->rank]);
	return gpul_boot_open(&mine, LONG_MS, out, err);
}

static gpul_status check_hosts(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const struct layout *l = arg;
	int n_hosts = 0;
	char machine[64] = "";
	gpul_boot *b = NULL;
	gpul_status st = open_on_host(job, l, &b, err);

	(void)gethostname(machine, sizeof machine - 1);
	for (int r = 0; !st && r < job->size; r++) {
		const char *name = l->name[r][0] ? l->name[r] : machine;

		n_hosts = l->host[r] >= n_hosts ? l->host[r] + 1 : n_hosts;
		if (gpul_boot_host(b, r) != l->host[r] || strcmp(gpul_boot_host_name(b, r), name) != 0)
			st = gpul_fail(err, GPUL_EFORMAT, 0, "rank %d is on host %d, %s", r, gpul_boot_host(b, r),
				       gpul_boot_host_name(b, r));
	}
	if (!st && gpul_boot_n_hosts(b) != n_hosts)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%d hosts, expected %d", gpul_boot_n_hosts(b), n_hosts);
	if (!st)
		st = gpul_boot_barrier(b, LONG_MS, err);
	gpul_boot_close(b);
	return st;
}

static void expect_ok(const struct rank_end *ends)
{
	for (int r = 0; r < N_RANKS; r++)
		if (ends[r].status)
			fail_msg("rank %d: %s", r, ends[r].err.text);
}

static void hosts_are_numbered_by_their_first_ranks(void **state)
{
	static const struct layout layouts[] = {
		{ { "", "", "", "", "" }, { 0, 0, 0, 0, 0 } },      { { "a", "a", "a", "a", "a" }, { 0, 0, 0, 0, 0 } },
		{ { "b", "b", "a", "a", "a" }, { 0, 0, 1, 1, 1 } }, { { "b", "c", "a", "b", "c" }, { 0, 1, 2, 0, 1 } },
		{ { "", "x", "", "x", "y" }, { 0, 1, 0, 1, 2 } },   { { "v", "w", "x", "y", "z" }, { 0, 1, 2, 3, 4 } },
	};
	struct rank_end ends[N_RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		ranks_as_threads(N_RANKS, check_hosts, (void *)(uintptr_t)&layouts[i], ends);
		expect_ok(ends);
	}
}

/* Each rank offers an open descriptor and -1. */
static gpul_status exchange_between_hosts(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const struct layout *l = arg;
	int mine[2] = { memfd_create("mark", MFD_CLOEXEC), -1 }, all[2 * N_RANKS];
	gpul_boot *b = NULL;
	gpul_status st = open_on_host(job, l, &b, err);

	if (ftruncate(mine[0], 1000 + job->rank))
		st = gpul_fail(err, GPUL_ESYS, 0, "ftruncate");
	if (!st)
		st = gpul_boot_exchange_fds(b, mine, 2, all, LONG_MS, err);
	for (int r = 0; !st && r < job->size; r++) {
		const bool shared = l->host[r] == l->host[job->rank];

		if ((all[2 * r] >= 0) != shared || all[2 * r + 1] != -1)
			st = gpul_fail(err, GPUL_EFORMAT, 0, "rank %d has descriptors %d, %d of rank %d", job->rank, all[2 * r],
				       all[2 * r + 1], r);
		else if (shared && lseek(all[2 * r], 0, SEEK_END) != 1000 + r)
			st = gpul_fail(err, GPUL_EFORMAT, 0, "rank %d has another file of rank %d", job->rank, r);
		if (all[2 * r] >= 0)
			close(all[2 * r]);
	}
	close(mine[0]);
	gpul_boot_close(b);
	return st;
}

static void descriptors_reach_only_ranks_of_the_same_host(void **state)
{
	static const struct layout layouts[] = {
		{ { "a", "a", "b", "b", "b" }, { 0, 0, 1, 1, 1 } },
		{ { "b", "c", "a", "b", "c" }, { 0, 1, 2, 0, 1 } },
	};
	struct rank_end ends[N_RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		ranks_as_threads(N_RANKS, exchange_between_hosts, (void *)(uintptr_t)&layouts[i], ends);
		expect_ok(ends);
	}
}

static void a_host_name_with_other_characters_is_refused(void **state)
{
	gpul_comm_job job = ranks_job(0, 1);
	gpul_boot *b = NULL;
	gpul_error err = { 0 };

	(void)state;
	strcpy(job.host, "a/b");
	assert_int_equal(gpul_boot_open(&job, LONG_MS, &b, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "invalid host name 'a/b' (GPULOAD_COMM_HOST): expected up to 63 letters"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_numbered_by_their_first_ranks),
		cmocka_unit_test(descriptors_reach_only_ranks_of_the_same_host),
		cmocka_unit_test(a_host_name_with_other_characters_is_refused),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
