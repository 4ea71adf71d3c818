/* launch.c — the launcher: start all ranks, pass signals on, and end all of them when one fails. */
#include "comm/bootstrap/launch_internal.h"

#include "comm/bootstrap/notice_internal.h"
#include "comm/bootstrap/roster_internal.h"
#include "comm/bootstrap/sockets_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "ipc/place.h"

/* From the first failure with an exit status to its announcement; from SIGTERM to SIGKILL. */
enum { SETTLE_MS = 300, KILL_AFTER_MS = 1000 };

/* What the launcher does next with ranks that still run. */
enum stage { STAGE_RUNNING, STAGE_SETTLING, STAGE_GRACE, STAGE_TERMINATED, STAGE_KILLED };

struct launch {
	const gpul_comm_launch_options *o;
	gpul_comm_job job;
	struct rank_process ranks[GPUL_COMM_MAX_RANKS];
	int n_started;
	int failed; /* the rank that failed first; -1: none */
	enum stage stage;
	uint64_t next_ns; /* when the next stage begins, from STAGE_SETTLING on */
	int signals;      /* signalfd */
	sigset_t mask_before;
	struct sigaction child_before;
	struct orphans orphans;
	struct notice *notice;
	int notice_fd;
};

static bool is_failure(int status)
{
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void send_signal(struct launch *l, int signal, bool forced)
{
	for (int r = 0; r < l->n_started; r++) {
		if (l->ranks[r].ended)
			continue;
		l->ranks[r].forced |= forced;
		kill(l->ranks[r].pid, signal);
	}
}

static int grace_ms(const struct launch *l)
{
	return l->o->grace_ms > 0 ? l->o->grace_ms : GPUL_COMM_GRACE_MS;
}

static void begin_grace(struct launch *l)
{
	if (l->stage >= STAGE_GRACE)
		return;
	l->stage = STAGE_GRACE;
	l->next_ns = gpul_clock_ns() + (uint64_t)grace_ms(l) * 1000000;
}

static void kill_ranks(struct launch *l)
{
	l->stage = STAGE_KILLED;
	send_signal(l, SIGKILL, true);
}

static void describe_end(const struct launch *l, int rank, char *text, size_t text_bytes)
{
	const struct rank_process *p = &l->ranks[rank];

	if (WIFEXITED(p->status))
		snprintf(text, text_bytes, "rank %d (pid %ld) ended with status %d", rank, (long)p->pid,
			 WEXITSTATUS(p->status));
	else
		snprintf(text, text_bytes, "rank %d (pid %ld) was killed by signal %d (%s)", rank, (long)p->pid,
			 WTERMSIG(p->status), strsignal(WTERMSIG(p->status)));
}

/* Tell the ranks which of them failed, and begin the grace. */
static void announce_failure(struct launch *l)
{
	char text[200];

	describe_end(l, l->failed, text, sizeof text);
	gpul_notice_post(l->notice, l->failed, l->ranks[l->failed].pid, text);
	begin_grace(l);
}

/* A rank that a signal killed is the cause, even if others have ended with a status before it could be reaped: they see its
 * death before the launcher does.  So the failure of a rank with a status is announced a moment later. */
static void note_failure(struct launch *l, int rank)
{
	const struct rank_process *p = &l->ranks[rank];
	bool killed = WIFSIGNALED(p->status);

	if (!is_failure(p->status) || p->forced)
		return;
	if (l->failed < 0 || (killed && WIFEXITED(l->ranks[l->failed].status)))
		l->failed = rank;
	if (killed) {
		announce_failure(l);
	} else if (l->stage == STAGE_RUNNING) {
		l->stage = STAGE_SETTLING;
		l->next_ns = gpul_clock_ns() + (uint64_t)SETTLE_MS * 1000000;
	}
}

/* The ranks learn of normal ends at once; the first failure is announced, and the ends that follow from it do not matter.  A rank
 * that ends normally together with one that fails may have caused the failure. */
static void publish_ends(struct launch *l, bool had_failed)
{
	uint32_t ended = 0;

	for (int r = 0; r < l->n_started; r++)
		if (l->ranks[r].ended && !is_failure(l->ranks[r].status))
			ended |= 1u << r;
	gpul_notice_post_ends(l->notice, ended, !had_failed);
}

/* Reap the ranks that have ended; returns the number of those that still run. */
static int reap_ranks(struct launch *l)
{
	const bool had_failed = l->failed >= 0;
	int n_running = 0;

	for (int r = 0; r < l->n_started; r++) {
		struct rank_process *p = &l->ranks[r];
		pid_t got = p->ended ? 0 : waitpid(p->pid, &p->status, WNOHANG);

		if (got == p->pid) {
			p->ended = true;
			note_failure(l, r);
		}
		n_running += !p->ended;
	}
	publish_ends(l, had_failed);
	return n_running;
}

/* Pass a signal on.  One from the terminal has reached the ranks already, because they are in this process' group. */
static void handle_signal(struct launch *l, const struct signalfd_siginfo *s)
{
	if (s->ssi_signo == SIGCHLD)
		return;
	if (l->stage >= STAGE_GRACE) {
		kill_ranks(l);
		return;
	}
	if (s->ssi_code != SI_KERNEL)
		send_signal(l, (int)s->ssi_signo, false);
	begin_grace(l);
}

static void begin_next_stage(struct launch *l)
{
	if (l->stage == STAGE_SETTLING) {
		announce_failure(l);
	} else if (l->stage == STAGE_GRACE) {
		l->stage = STAGE_TERMINATED;
		l->next_ns = gpul_clock_ns() + (uint64_t)KILL_AFTER_MS * 1000000;
		send_signal(l, SIGTERM, true);
	} else {
		kill_ranks(l);
	}
}

static void run_until_all_ended(struct launch *l)
{
	while (reap_ranks(l) > 0) {
		struct pollfd ready = { .fd = l->signals, .events = POLLIN };
		struct signalfd_siginfo s;
		uint64_t now = gpul_clock_ns();
		int wait_ms = -1;

		if (l->stage != STAGE_RUNNING && l->stage != STAGE_KILLED) {
			if (now >= l->next_ns) {
				begin_next_stage(l);
				continue;
			}
			wait_ms = (int)((l->next_ns - now + 999999) / 1000000);
		}
		if (poll(&ready, 1, wait_ms) > 0 && read(l->signals, &s, sizeof s) == sizeof s)
			handle_signal(l, &s);
	}
}

/* ---- signals and names ------------------------------------------------------------------------------------------ */

/* Block the signals that are passed on, and SIGCHLD.  An ignored signal stays ignored (nohup). */
static gpul_status take_signals(struct launch *l, gpul_error *err)
{
	static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction now, wanted = { .sa_handler = SIG_DFL };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
		if (!sigaction(passed_on[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaddset(&set, passed_on[i]);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signals < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "signalfd: %s", strerror(errno));
	pthread_sigmask(SIG_BLOCK, &set, &l->mask_before);
	sigaction(SIGCHLD, &wanted, &l->child_before); /* if it is ignored, children cannot be waited for */
	return GPUL_OK;
}

static void restore_signals(struct launch *l)
{
	struct signalfd_siginfo s;

	while (read(l->signals, &s, sizeof s) == sizeof s)
		;
	close(l->signals);
	sigaction(SIGCHLD, &l->child_before, NULL);
	pthread_sigmask(SIG_SETMASK, &l->mask_before, NULL);
}

static gpul_status make_job(struct launch *l, gpul_error *err)
{
	uint64_t random;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	l->job = (gpul_comm_job){ .size = l->o->n, .source = "gpuload" };
	snprintf(l->job.name, sizeof l->job.name, "comm-%016llx", (unsigned long long)random);
	return gpul_comm_job_check(&l->job, err);
}

/* Remove the files of this job, if its rank 0 was killed, and those of jobs whose launcher was killed, too. */
static void remove_files(const struct launch *l)
{
	bool cleared;

	(void)gpul_ipc_place_clear(l->job.name, &cleared, NULL); /* also if there is only a lock file */
	gpul_boot_remove_dead_sockets();
}

/* ---- the result ------------------------------------------------------------------------------------------------- */

static gpul_status report_end(const struct launch *l, int *exit_status, gpul_error *err)
{
	const struct rank_process *p = l->failed < 0 ? NULL : &l->ranks[l->failed];
	char others[200] = "", ranks[128], text[200];
	uint32_t forced = 0;

	for (int r = 0; r < l->n_started; r++)
		forced |= l->ranks[r].forced && is_failure(l->ranks[r].status) ? 1u << r : 0;
	if (forced) {
		gpul_roster_ranks_text(forced, ranks, sizeof ranks);
		snprintf(others, sizeof others, "; %s did not end within %d ms and had to be ended", ranks,
			 grace_ms(l));
	}
	*exit_status = 0;
	if (!p && !forced)
		return GPUL_OK;
	if (!p) { /* after a signal to the launcher */
		*exit_status = 128 + SIGTERM;
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "interrupted by a signal%s", others);
	}
	describe_end(l, l->failed, text, sizeof text);
	*exit_status = WIFEXITED(p->status) ? WEXITSTATUS(p->status) : 128 + WTERMSIG(p->status);
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s%s", text, others);
}

gpul_status gpul_comm_launch(const gpul_comm_launch_options *o, int *exit_status, gpul_error *err)
{
	struct launch l = { .o = o, .failed = -1 };
	gpul_error why = { 0 };
	gpul_status st;

	*exit_status = 1;
	if (!o->argv || !o->argv[0])
		return gpul_fail(err, GPUL_EINVAL, 0, "no program to start");
	st = make_job(&l, err);
	if (!st)
		st = gpul_notice_create(&l.notice_fd, &l.notice, err);
	if (st)
		return st;
	st = take_signals(&l, err);
	if (st)
		goto free_notice;
	gpul_launch_adopt(&l.orphans);
	while (!st && l.n_started < o->n) {
		l.job.rank = l.n_started;
		st = gpul_launch_start(o, &l.job, l.notice_fd, &l.mask_before, &l.ranks[l.n_started], exit_status,
				       &why);
		l.n_started += !st;
	}
	if (st)
		kill_ranks(&l);
	run_until_all_ended(&l);
	gpul_launch_end_orphans(&l.orphans);
	restore_signals(&l);
	remove_files(&l);
	st = st ? gpul_fail(err, st, why.native, "%s", why.text) : report_end(&l, exit_status, err);
free_notice:
	gpul_notice_unmap(l.notice);
	close(l.notice_fd);
	return st;
}
