/* stages.c — the stages in which a launch ends after the first failure or signal: the launcher
 * waits for the ranks to end, sends SIGTERM, then SIGKILL. */
#include "comm/bootstrap/launch/launch_internal.h"

#include "comm/bootstrap/boot_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "ipc/place.h"

/* Times in ms.  SETTLE: from the first failure with an exit status to its announcement; KILL_AFTER: from SIGTERM to SIGKILL;
 * STOPPED: from the first check that finds only stopped ranks to SIGKILL; LOOK: between two of these checks. */
enum { SETTLE_MS = 300, KILL_AFTER_MS = 1000, STOPPED_MS = 500, LOOK_MS = 100 };

static bool is_failure(int status)
{
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void send_signal(struct launch *l, int signal, bool forced)
{
	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++) {
		if (!l->ranks[r].started || l->ranks[r].ended || l->ranks[r].elsewhere)
			continue;
		l->ranks[r].forced |= forced;
		kill(l->ranks[r].pid, signal);
	}
}

static void begin_grace(struct launch *l)
{
	if (l->stage >= STAGE_GRACE)
		return;
	l->stage = STAGE_GRACE;
	l->next_ns = gpul_clock_ns() + (uint64_t)(l->grace_ms + l->report_ms) * 1000000;
}

void gpul_launch_kill(struct launch *l)
{
	l->stage = STAGE_KILLED;
	send_signal(l, SIGKILL, true);
}

void gpul_launch_describe_end(const struct launch *l, int rank, char *text, size_t text_bytes)
{
	const struct rank_process *p = &l->ranks[rank];

	const char *on = p->host ? " on host " : "", *host = p->host ? p->host : "";

	if (rank == l->failed && l->failed_text[0])
		snprintf(text, text_bytes, "%s", l->failed_text);
	else if (WIFEXITED(p->status))
		snprintf(text, text_bytes, "rank %d (pid %ld)%s%s ended with status %d", rank, (long)p->pid, on, host,
			 WEXITSTATUS(p->status));
	else
		snprintf(text, text_bytes, "rank %d (pid %ld)%s%s was killed by signal %d (%s)", rank, (long)p->pid, on, host,
			 WTERMSIG(p->status), strsignal(WTERMSIG(p->status)));
}

/* Tell the ranks which of them failed, and start the grace period. */
static void announce_failure(struct launch *l)
{
	char text[200];

	gpul_launch_describe_end(l, l->failed, text, sizeof text);
	if (l->notice)
		gpul_notice_post(l->notice, l->failed, l->ranks[l->failed].pid, text);
	begin_grace(l);
}

/* A rank that was killed by a signal is the cause, even if ranks that exit because of its death are reaped before it.  So the
 * failure of a rank with an exit status is announced only after a short delay. */
static void note_failure(struct launch *l, int rank, const char *text)
{
	const struct rank_process *p = &l->ranks[rank];
	bool killed = WIFSIGNALED(p->status);

	if (!is_failure(p->status) || p->forced)
		return;
	if (l->failed < 0 || (killed && WIFEXITED(l->ranks[l->failed].status) && !l->failed_text[0])) {
		l->failed = rank;
		snprintf(l->failed_text, sizeof l->failed_text, "%s", text);
	}
	if (killed) {
		announce_failure(l);
	} else if (l->stage == STAGE_RUNNING) {
		l->stage = STAGE_SETTLING;
		l->next_ns = gpul_clock_ns() + (uint64_t)SETTLE_MS * 1000000;
	}
}

/* Tell the ranks which of them have ended normally. had_failed: a rank had failed before, so that later ends are its consequence.
 * A rank that ends normally at the same time as another one fails may be the cause of that failure. */
static void publish_ends(struct launch *l, bool had_failed)
{
	uint32_t ended = 0;

	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++)
		if (l->ranks[r].ended && !is_failure(l->ranks[r].status))
			ended |= 1u << r;
	if (l->notice)
		gpul_notice_post_ends(l->notice, ended, !had_failed);
}

static void end_rank(struct launch *l, int rank, int status, const char *text)
{
	l->ranks[rank].status = status;
	l->ranks[rank].ended = true;
	note_failure(l, rank, text);
}

void gpul_launch_note_end(struct launch *l, int rank, int status, const char *text)
{
	const bool had_failed = l->failed >= 0;

	end_rank(l, rank, status, text);
	publish_ends(l, had_failed);
}

int gpul_launch_reap(struct launch *l)
{
	const bool had_failed = l->failed >= 0;
	int n_running = 0, status;

	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++) {
		struct rank_process *p = &l->ranks[r];

		if (!p->started || p->elsewhere || p->ended)
			continue;
		if (waitpid(p->pid, &status, WNOHANG) == p->pid)
			end_rank(l, r, status, "");
		n_running += !p->ended;
	}
	publish_ends(l, had_failed);
	return n_running;
}

void gpul_launch_pass_signal(struct launch *l, int signal, bool from_terminal)
{
	if (l->stage >= STAGE_GRACE) {
		gpul_launch_kill(l);
		return;
	}
	if (!from_terminal)
		send_signal(l, signal, false);
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
		gpul_launch_kill(l);
	}
}

/* True for a process that SIGSTOP or a terminal has stopped; a process that a debugger has stopped is in another state. */
static bool is_stopped(pid_t pid)
{
	char path[32], state = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'T';
}

/* True if all ranks that still run are stopped, and so cannot end within the grace period. */
static bool only_stopped_left(const struct launch *l)
{
	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++)
		if (l->ranks[r].started && !l->ranks[r].ended && (l->ranks[r].elsewhere || !is_stopped(l->ranks[r].pid)))
			return false;
	return true;
}

/* End the grace period when only stopped ranks have been left for STOPPED_MS.  Returns the time until the next check. */
static int look_for_stopped(struct launch *l, uint64_t now)
{
	if (!only_stopped_left(l))
		l->stopped_since_ns = 0;
	else if (!l->stopped_since_ns)
		l->stopped_since_ns = now;
	else if (now - l->stopped_since_ns >= (uint64_t)STOPPED_MS * 1000000) {
		l->ended_stopped = true;
		gpul_launch_kill(l);
		return -1;
	}
	return LOOK_MS;
}

int gpul_launch_next_stage(struct launch *l)
{
	while (l->stage != STAGE_RUNNING && l->stage != STAGE_KILLED) {
		const uint64_t now = gpul_clock_ns();
		const int left_ms = now < l->next_ns ? (int)((l->next_ns - now + 999999) / 1000000) : 0;

		if (left_ms && l->stage != STAGE_GRACE)
			return left_ms;
		if (left_ms) {
			const int look_ms = look_for_stopped(l, now);

			return look_ms < left_ms ? look_ms : left_ms;
		}
		begin_next_stage(l);
	}
	return -1;
}

/* ---- signals and files ------------------------------------------------------------------------------------------ */

gpul_status gpul_launch_take_signals(struct launch *l, gpul_error *err)
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
	sigaction(SIGCHLD, &wanted, &l->child_before); /* if SIGCHLD is ignored, waitpid() cannot get the status of children */
	return GPUL_OK;
}

void gpul_launch_restore_signals(struct launch *l)
{
	struct signalfd_siginfo s;

	while (read(l->signals, &s, sizeof s) == sizeof s)
		;
	close(l->signals);
	sigaction(SIGCHLD, &l->child_before, NULL);
	pthread_sigmask(SIG_SETMASK, &l->mask_before, NULL);
}

/* Also removes the files of jobs whose launcher was killed. */
void gpul_launch_remove_files(const char *job)
{
	bool cleared;

	(void)gpul_ipc_place_clear(job, &cleared, NULL); /* also removes a lock file without a socket */
	gpul_boot_remove_dead_sockets();
}

/* ---- the result ------------------------------------------------------------------------------------------------- */

gpul_status gpul_launch_result(const struct launch *l, int *exit_status, gpul_error *err)
{
	const struct rank_process *p = l->failed < 0 ? NULL : &l->ranks[l->failed];
	char others[200] = "", ranks[128], text[200];
	uint32_t forced = 0;

	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++)
		forced |= l->ranks[r].forced && is_failure(l->ranks[r].status) ? 1u << r : 0;
	if (forced) {
		gpul_roster_ranks_text(forced, ranks, sizeof ranks);
		if (l->ended_stopped)
			snprintf(others, sizeof others, "; %s had been stopped (SIGSTOP) and had to be killed", ranks);
		else
			snprintf(others, sizeof others, "; %s did not exit within %d ms and had to be killed", ranks, l->grace_ms);
	}
	*exit_status = 0;
	if (!p && !forced)
		return GPUL_OK;
	if (!p) { /* no rank failed: the launcher got a signal */
		*exit_status = 128 + SIGTERM;
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "interrupted by a signal%s", others);
	}
	gpul_launch_describe_end(l, l->failed, text, sizeof text);
	*exit_status = WIFEXITED(p->status) ? WEXITSTATUS(p->status) : 128 + WTERMSIG(p->status);
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s%s", text, others);
}
