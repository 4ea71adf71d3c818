/* test_roster.c — processes of ranks are killed, stopped or replaced, or fail, and all other ranks detect it. */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "tests/comm/bootstrap/ranks.h"

enum { N_RANKS = 4, LONG_MS = 20000 };

/* The reports of the ranks, in memory that they share with the test. */
struct seen {
	_Atomic int n_ready;
	_Atomic bool go;
	_Atomic int n_calls[N_RANKS];     /* how often each rank's callback was called */
	gpul_roster_event event[N_RANKS]; /* arguments of the last call */
	struct rank_end ends[N_RANKS];
};

/* A test case: one rank, the actor, calls act() when all ranks are ready. */
struct scene {
	struct seen *seen;
	int actor;
	void (*act)(gpul_boot *b);
};

/* The argument of the callback note_event(). */
struct to {
	struct seen *seen;
	int rank;
};

static void note_event(void *arg, const gpul_roster_event *e)
{
	struct to *to = arg;

	to->seen->event[to->rank] = *e;
	to->seen->n_calls[to->rank]++;
}

/* Wait until the job has failed; only a failing test reaches the deadline. */
static gpul_status await_failure(gpul_boot *b, const _Atomic int *n_calls, gpul_error *err)
{
	for (int ms = 0; ms < LONG_MS && !*n_calls; ms++)
		usleep(1000);
	return gpul_boot_failed(b, err);
}

static gpul_status play_scene(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	struct scene *s = arg;
	struct to to = { s->seen, job->rank };
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	if (st)
		return st;
	st = gpul_boot_watch(b, note_event, &to, err);
	if (gpul_boot_watch(b, note_event, &to, NULL) != GPUL_EINVAL)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "a second callback was accepted");
	s->seen->n_ready++;
	while (!s->seen->go)
		usleep(1000);
	if (!st && job->rank == s->actor)
		s->act(b);
	if (!st)
		st = await_failure(b, &s->seen->n_calls[job->rank], err);
	gpul_boot_close(b);
	return st;
}

/* Start the ranks as processes, and let them act when all are ready. */
static void begin_scene(struct scene *s, pid_t *children)
{
	gpul_comm_job job = ranks_job(0, N_RANKS);

	s->seen = ranks_shared(sizeof *s->seen);
	for (int r = 0; r < N_RANKS; r++) {
		gpul_comm_job mine = ranks_of(&job, r);

		children[r] = ranks_fork(&mine, play_scene, s, &s->seen->ends[r]);
	}
	while (s->seen->n_ready < N_RANKS)
		usleep(1000);
	s->seen->go = true;
}

/* Wait for all ranks, and check that the callback of each rank except `silent` was called once, with this kind, rank and text. */
static void end_scene(struct scene *s, const pid_t *children, int silent, gpul_roster_kind kind, int rank, const char *text)
{
	for (int r = 0; r < N_RANKS; r++)
		assert_int_equal(waitpid(children[r], NULL, 0), children[r]);
	for (int r = 0; r < N_RANKS; r++) {
		const gpul_roster_event *e = &s->seen->event[r];

		if (r == silent)
			continue;
		assert_int_equal(s->seen->n_calls[r], 1);
		assert_int_equal(e->kind, kind);
		assert_int_equal(e->rank, rank);
		assert_int_equal(e->pid, children[rank]);
		assert_string_equal(e->text, text);
		assert_non_null(strstr(s->seen->ends[r].err.text, text));
	}
	ranks_unshare(s->seen, sizeof *s->seen);
	assert_int_equal(ranks_n_files(), 0);
}

static void kill_itself(gpul_boot *b)
{
	(void)b;
	kill(getpid(), SIGKILL);
}

static void crash(gpul_boot *b)
{
	(void)b;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void leave(gpul_boot *b)
{
	(void)b;
	_exit(0);
}

static void become_another_program(gpul_boot *b)
{
	(void)b;
	execl("/bin/true", "true", (char *)NULL);
}

/* Fork a child that keeps the sockets open after its parent is killed. */
static void leave_a_child(gpul_boot *b)
{
	(void)b;
	if (fork() == 0) {
		usleep(2000000);
		_exit(0);
	}
	kill(getpid(), SIGKILL);
}

static void every_rank_sees_a_death(void **state)
{
	static void (*const ways[])(gpul_boot *) = { kill_itself, crash, leave, become_another_program, leave_a_child };

	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		for (int r = 0; r < N_RANKS; r += 2) {
			struct scene s = { .actor = r, .act = ways[i] };
			pid_t children[N_RANKS];
			char text[64];

			begin_scene(&s, children);
			snprintf(text, sizeof text, "rank %d (pid %d) died", r, (int)children[r]);
			end_scene(&s, children, r, GPUL_RANK_DIED, r, text);
		}
}

static void fail_for_a_reason(gpul_boot *b)
{
	gpul_error why = { .status = GPUL_ECUDA, .native = 700, .text = "an illegal address" }, later = { .status = GPUL_EINVAL };

	gpul_boot_fail(b, &why, 3);
	gpul_boot_fail(b, &later, 2); /* ignored, because only the first failure counts */
}

static void every_rank_gets_the_reason_of_a_failure(void **state)
{
	struct scene s = { .actor = 1, .act = fail_for_a_reason };
	pid_t children[N_RANKS];

	(void)state;
	begin_scene(&s, children);
	for (int r = 0; r < N_RANKS; r++) {
		while (!s.seen->n_calls[r])
			usleep(1000);
		assert_int_equal(s.seen->event[r].status, GPUL_ECUDA);
		assert_int_equal(s.seen->event[r].native, 700);
		assert_int_equal(s.seen->event[r].culprit, 3);
	}
	end_scene(&s, children, -1, GPUL_RANK_FAILED, 1, "an illegal address");
}

/* All ranks fail at the same time, as threads; each reports the same failure. */
static gpul_status fail_together(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_error why = { .status = GPUL_EFORMAT };
	gpul_boot *b = NULL;
	gpul_roster_event e;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	if (st)
		return st;
	snprintf(why.text, sizeof why.text, "failure of rank %d", job->rank);
	gpul_boot_fail(b, &why, job->rank);
	if (!gpul_boot_failure(b, &e) || gpul_boot_barrier(b, LONG_MS, err) != GPUL_EFORMAT)
		snprintf(e.text, sizeof e.text, "none of rank %d", job->rank);
	strcpy(((char(*)[200])arg)[job->rank], e.text);
	gpul_boot_close(b);
	return GPUL_OK;
}

static void the_first_of_several_failures_is_that_of_all(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		char texts[8][200];
		struct rank_end ends[8];

		ranks_as_threads(8, fail_together, texts, ends);
		for (int r = 0; r < 8; r++) {
			/* A rank may fail and leave before another rank connects to it; then gpul_boot_open() of the other rank fails. */
			if (ends[r].status)
				assert_non_null(strstr(ends[r].err.text, "failure of rank"));
			else
				assert_non_null(strstr(texts[r], "failure of rank"));
		}
		for (int r = 1; r < 8; r++)
			if (!ends[r].status && !ends[0].status)
				assert_string_equal(texts[r], texts[0]);
	}
}

static void watching_after_the_failure_reports_it(void **state)
{
	gpul_comm_job job = ranks_job(0, 1);
	gpul_error why = { .status = GPUL_EFORMAT, .text = "too late" };
	struct seen *seen = ranks_shared(sizeof *seen);
	struct to to = { seen, 0 };
	gpul_boot *b = NULL;

	(void)state;
	assert_int_equal(gpul_boot_open(&job, LONG_MS, &b, NULL), GPUL_OK);
	assert_false(gpul_boot_failure(b, NULL));
	gpul_boot_fail(b, &why, -1);
	assert_true(gpul_boot_failure(b, NULL));
	assert_int_equal(gpul_boot_watch(b, note_event, &to, NULL), GPUL_OK);
	while (!seen->n_calls[0])
		usleep(1000);
	assert_string_equal(seen->event[0].text, "too late");
	gpul_boot_close(b);
	ranks_unshare(seen, sizeof *seen);
}

/* ---- stopped ranks ---------------------------------------------------------------------------------------------- */

struct stop {
	_Atomic int n_ready;
	_Atomic int stalled;
	struct rank_end ends[3];
};

/* Rank 1 is stopped by the test; rank 0 waits until it has noticed this, then calls a barrier, in which it waits for rank 1. */
static gpul_status notice_stop(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	struct stop *s = arg;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	s->n_ready++;
	while (!st && job->rank == 1)
		usleep(1000);
	if (!st && job->rank == 2)
		st = gpul_boot_barrier(b, LONG_MS, err);
	if (!st && job->rank == 0) {
		int stalled;

		while ((stalled = gpul_boot_stalled(b, ~0u, 600)) < 0)
			usleep(1000);
		s->stalled = stalled;
		st = gpul_boot_barrier(b, 50, err);
	}
	gpul_boot_close(b);
	return st;
}

static void a_stopped_rank_is_named(void **state)
{
	gpul_comm_job job = ranks_job(0, 3);
	struct stop *s = ranks_shared(sizeof *s);
	pid_t children[3];
	char text[160];

	(void)state;
	s->stalled = -1;
	for (int r = 0; r < 3; r++) {
		gpul_comm_job mine = ranks_of(&job, r);

		children[r] = ranks_fork(&mine, notice_stop, s, &s->ends[r]);
	}
	while (s->n_ready < 3)
		usleep(1000);
	kill(children[1], SIGSTOP);
	snprintf(text, sizeof text,
		 "rank 1 (pid %d) is not running: is it stopped by SIGSTOP or a debugger?  gpul_boot_barrier(): rank 1 of 3 ranks did "
		 "not answer within 50 ms",
		 (int)children[1]);
	for (int r = 0; r < 3; r += 2) {
		assert_int_equal(waitpid(children[r], NULL, 0), children[r]);
		if (!strstr(s->ends[r].err.text, text))
			fail_msg("rank %d: %s", r, s->ends[r].err.text);
	}
	assert_int_equal(s->stalled, 1);
	kill(children[1], SIGKILL);
	assert_int_equal(waitpid(children[1], NULL, 0), children[1]);
	ranks_unshare(s, sizeof *s);
}

/* Rank 1 is stopped by the test; rank 0, whose calls have no time-out, starts a barrier and detects that rank 1 is silent. */
static gpul_status notice_silence(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	struct stop *s = arg;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	if (!st)
		gpul_boot_limit(b, UINT64_MAX, 0, 600);
	s->n_ready++;
	while (!st && job->rank == 1)
		usleep(1000);
	st = st ? st : gpul_boot_barrier(b, -1, err);
	gpul_boot_close(b);
	return st;
}

static void a_limit_of_silence_ends_a_call_without_a_time_out(void **state)
{
	gpul_comm_job job = ranks_job(0, 3);
	struct stop *s = ranks_shared(sizeof *s);
	pid_t children[3];

	(void)state;
	for (int r = 0; r < 3; r++) {
		gpul_comm_job mine = ranks_of(&job, r);

		children[r] = ranks_fork(&mine, notice_silence, s, &s->ends[r]);
	}
	while (s->n_ready < 3)
		usleep(1000);
	kill(children[1], SIGSTOP);
	for (int r = 0; r < 3; r += 2) {
		assert_int_equal(waitpid(children[r], NULL, 0), children[r]);
		if (!strstr(s->ends[r].err.text, "is not running: is it stopped") || !strstr(s->ends[r].err.text, "rank 1 of 3"))
			fail_msg("rank %d: %s", r, s->ends[r].err.text);
	}
	kill(children[1], SIGKILL);
	assert_int_equal(waitpid(children[1], NULL, 0), children[1]);
	ranks_unshare(s, sizeof *s);
}

/* Rank 1 enters each barrier except the last one.  Each barrier has a long time-out, but all barriers together have a short one. */
static gpul_status meet_within_a_limit(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	(void)arg;
	for (int i = 0; !st && i < 3; i++)
		st = gpul_boot_barrier(b, LONG_MS, err);
	if (!st)
		gpul_boot_limit(b, gpul_clock_ns() + 300000000, 300, 0);
	while (!st && job->rank == 1 && !gpul_boot_failure(b, NULL))
		usleep(1000);
	st = st ? st : gpul_boot_barrier(b, LONG_MS, err);
	gpul_boot_close(b);
	return st;
}

static void one_deadline_limits_many_calls(void **state)
{
	struct rank_end ends[2];

	(void)state;
	ranks_as_threads(2, meet_within_a_limit, NULL, ends);
	for (int r = 0; r < 2; r++)
		if (!ends[r].status || !strstr(ends[r].err.text, "rank 1 of 2 ranks did not answer within 300 ms"))
			fail_msg("rank %d: %s", r, ends[r].err.text);
}

/* ---- a normal end ----------------------------------------------------------------------------------------------- */

/* Rank 0 leaves immediately; the other ranks continue for a while. */
static gpul_status leave_in_turn(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	(void)arg;
	usleep((unsigned)job->rank * 30000);
	if (!st)
		st = gpul_boot_failed(b, err);
	gpul_boot_close(b);
	return st;
}

static void a_rank_that_leaves_is_not_dead(void **state)
{
	gpul_comm_job job = ranks_job(0, N_RANKS);
	struct rank_end *ends = ranks_shared(N_RANKS * sizeof *ends);
	pid_t children[N_RANKS];

	(void)state;
	for (int r = 0; r < N_RANKS; r++) {
		gpul_comm_job mine = ranks_of(&job, r);

		children[r] = ranks_fork(&mine, leave_in_turn, NULL, &ends[r]);
	}
	for (int r = 0; r < N_RANKS; r++) {
		assert_int_equal(waitpid(children[r], NULL, 0), children[r]);
		if (ends[r].status)
			fail_msg("rank %d: %s", r, ends[r].err.text);
	}
	ranks_unshare(ends, N_RANKS * sizeof *ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_sees_a_death),
		cmocka_unit_test(every_rank_gets_the_reason_of_a_failure),
		cmocka_unit_test(the_first_of_several_failures_is_that_of_all),
		cmocka_unit_test(watching_after_the_failure_reports_it),
		cmocka_unit_test(a_stopped_rank_is_named),
		cmocka_unit_test(a_limit_of_silence_ends_a_call_without_a_time_out),
		cmocka_unit_test(one_deadline_limits_many_calls),
		cmocka_unit_test(a_rank_that_leaves_is_not_dead),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
