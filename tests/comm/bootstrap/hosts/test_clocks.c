/* test_clocks.c — rank 0 compares its clock with those of the other hosts.  Here all hosts have the same clock, so each time stamp can
 * be checked. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "tests/comm/bootstrap/hosts/several.h"

enum { ROUNDS = 20 };

static gpul_status check_stamps(const gpul_boot *b, const gpul_boot_stamp *stamps, uint64_t began, gpul_error *err)
{
	uint64_t last = began;

	for (int h = 0; h < gpul_boot_n_hosts(b); h++)
		for (int i = 0; i < ROUNDS; i++) {
			const gpul_boot_stamp *s = &stamps[h * ROUNDS + i];

			if (h == 0 && (s->before_ns || s->there_ns || s->after_ns))
				return gpul_fail(err, GPUL_EFORMAT, 0, "round %d: rank 0's own host has a stamp", i);
			if (h && (s->before_ns < last || s->there_ns < s->before_ns || s->after_ns < s->there_ns))
				return gpul_fail(err, GPUL_EFORMAT, 0, "host %d, round %d: the times are not in order", h, i);
			last = h ? s->after_ns : last;
		}
	return GPUL_OK;
}

static gpul_status compare_clocks(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_boot_stamp stamps[GPUL_COMM_MAX_RANKS * ROUNDS];
	int mine = 7 * job->rank, all[GPUL_COMM_MAX_RANKS] = { 0 };
	uint64_t began;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);

	(void)arg;
	for (int k = 0; !st && k < 3; k++) { /* also make other calls before and after the clock exchange */
		memset(stamps, 0xff, sizeof stamps);
		began = gpul_clock_ns();
		st = gpul_boot_clocks(b, ROUNDS, job->rank ? NULL : stamps, RANKS_LONG_MS, err);
		if (!st && job->rank == 0)
			st = check_stamps(b, stamps, began, err);
		st = st ? st : gpul_boot_allgather(b, &mine, sizeof mine, all, RANKS_LONG_MS, err);
		for (int r = 0; !st && r < job->size; r++)
			if (all[r] != 7 * r)
				st = gpul_fail(err, GPUL_EFORMAT, 0, "rank %d sent %d", r, all[r]);
	}
	gpul_boot_close(b);
	return st;
}

static void each_host_answers_between_question_and_answer(void **state)
{
	static const char *const layouts[] = { "a", "aaa", "ab", "aabb", "abab", "abcd", "aabbcab" };
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		several_as_threads(layouts[i], compare_clocks, NULL, ends);
		for (size_t r = 0; r < strlen(layouts[i]); r++)
			if (ends[r].status)
				fail_msg("hosts %s, rank %zu: %s", layouts[i], r, ends[r].err.text);
	}
}

/* Rank 1 makes a different call, or compares the clocks in a different number of rounds. */
static gpul_status call_otherwise(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const unsigned *rounds = arg;
	gpul_boot_stamp stamps[2 * ROUNDS];
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);

	if (!st && job->rank && !*rounds)
		st = gpul_boot_barrier(b, RANKS_LONG_MS, err);
	else if (!st)
		st = gpul_boot_clocks(b, job->rank ? *rounds : ROUNDS, stamps, RANKS_LONG_MS, err);
	gpul_boot_close(b);
	return st;
}

static void ranks_that_call_otherwise_are_named(void **state)
{
	static const unsigned rounds[] = { 0, ROUNDS - 1 };
	struct rank_end ends[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		several_as_threads("ab", call_otherwise, (void *)(uintptr_t)&rounds[i], ends);
		for (int r = 0; r < 2; r++) {
			assert_int_equal(ends[r].status, GPUL_EUNSUPPORTED);
			assert_non_null(strstr(ends[r].err.text, "all ranks must make the same calls"));
			assert_non_null(strstr(ends[r].err.text, "called gpul_boot_clocks() with "));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_host_answers_between_question_and_answer),
		cmocka_unit_test(ranks_that_call_otherwise_are_named),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
