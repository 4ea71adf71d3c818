/* mmap_sum_team.c — starts the children of gpuload mmap-sum, reads their reports, and ends them.
 *
 * A child is forked, so that the buffer needs no name: the child inherits one end of a socketpair and attaches through it.
 * Drivers do not work after a fork, so all children are forked before a driver is opened. */
#include "cli/sum/mmap_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "ipc/client.h"
#include "ipc/server.h"

static const uint64_t ns_per_ms = 1000000;

/* Extra time-out of a child, so that the master times out first: it reports the late child and ends the others. */
enum { CHILD_GRACE_MS = 5000 };

int mmap_sum_left_ms(const struct mmap_sum_team *team)
{
	uint64_t now = gpul_clock_ns();

	return now >= team->deadline_ns ? 0 : (int)((team->deadline_ns - now) / ns_per_ms) + 1;
}

/* ---- in the child -------------------------------------------------------------------------- */

static gpul_status attach_and_sum(const struct mmap_sum_request *r, const struct mmap_sum_team *team, int device, int socket,
				  struct mmap_sum_report *out, gpul_error *err)
{
	struct devices_arg devices = { .choice = r->devices.choice, .ordinal = { device }, .n = 1 };
	gpul_ipc_client_options options = { .fd = socket, .devices = devices.ordinal, .n_devices = 1 };
	gpul_ipc_client *client = NULL;
	gpul_status st = devices_arg_open(&devices, err), closed;
	const int wait_ms = mmap_sum_left_ms(team) + CHILD_GRACE_MS;

	if (st)
		return st;
	st = gpul_ipc_attach(devices.drv, &options, wait_ms, &client, err);
	st = st ? st : mmap_sum_compute(gpul_ipc_client_view(client), r->type, wait_ms, out, err);
	closed = gpul_ipc_client_close(client, wait_ms, err);
	devices_arg_close(&devices);
	return st ? st : closed;
}

static _Noreturn void run_child(const struct mmap_sum_request *r, const struct mmap_sum_team *team, int device, int socket, int pipe,
				pid_t master)
{
	struct mmap_sum_report report = { 0 };

	/* The signal is not sent if the master died before prctl(), so compare its pid, too. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != master)
		_exit(1);
	/* Only the master prints which driver is used. */
	if (!gpul_log_shows(GPUL_LOG_INFO))
		gpul_log_set_level(GPUL_LOG_OFF);
	(void)attach_and_sum(r, team, device, socket, &report, &report.err);
	_exit(write(pipe, &report, sizeof report) == sizeof report ? 0 : 1);
}

/* ---- in the master ------------------------------------------------------------------------- */

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The master closes the child's ends, and the child closes the inherited descriptors of earlier children; otherwise the master
 * would not see end of file on the connections of a child that dies. */
static gpul_status start_child(const struct mmap_sum_request *r, struct mmap_sum_team *team, struct mmap_sum_member *m, gpul_error *err)
{
	int sockets[2] = { -1, -1 }, pipes[2] = { -1, -1 };
	const pid_t master = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) || pipe2(pipes, O_CLOEXEC))
		goto failed;
	m->pid = fork();
	if (m->pid < 0)
		goto failed;
	if (m->pid == 0) {
		close(sockets[0]);
		close(pipes[0]);
		for (const struct mmap_sum_member *elder = team->member + 1; elder < m; elder++) {
			close(elder->socket);
			close(elder->pipe);
		}
		run_child(r, team, m->device, sockets[1], pipes[1], master);
	}
	close(sockets[1]);
	close(pipes[1]);
	m->running = true;
	m->socket = sockets[0];
	m->pipe = pipes[0];
	return GPUL_OK;
failed:
	gpul_fail(err, GPUL_ESYS, errno, "cannot start process %u of %u: %s", (unsigned)(m - team->member) + 1, team->n, strerror(errno));
	for (int i = 0; i < 2; i++) {
		close_end(&sockets[i]);
		close_end(&pipes[i]);
	}
	return GPUL_ESYS;
}

gpul_status mmap_sum_team_start(const struct mmap_sum_request *r, struct mmap_sum_team *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*out = (struct mmap_sum_team){ .n = r->n, .deadline_ns = gpul_clock_ns() + (uint64_t)r->timeout_ms * ns_per_ms };
	for (unsigned i = 0; i < MMAP_SUM_MOST; i++)
		out->member[i] = (struct mmap_sum_member){ .device = r->devices.ordinal[i % r->devices.n], .socket = -1, .pipe = -1 };
	out->member[0].pid = getpid();
	fflush(NULL); /* otherwise each child would write the buffered output, too */
	for (unsigned i = 1; !st && i < r->n; i++)
		st = start_child(r, out, &out->member[i], err);
	if (st)
		mmap_sum_team_end(out, true);
	return st;
}

/* ---- reports -------------------------------------------------------------------------------- */

static gpul_status report_death(struct mmap_sum_member *m, gpul_error *err)
{
	int status = 0;

	waitpid(m->pid, &status, 0);
	m->running = false;
	if (WIFSIGNALED(status))
		return gpul_fail(err, GPUL_ESYS, ECHILD, "process %d was killed by signal %d (%s)", (int)m->pid, WTERMSIG(status),
				 strsignal(WTERMSIG(status)));
	return gpul_fail(err, GPUL_ESYS, ECHILD, "process %d exited with status %d without a report", (int)m->pid, WEXITSTATUS(status));
}

/* Read a child's report.  It arrives complete, because the child sends it in one write; end of file means that the child has died. */
static gpul_status read_report(struct mmap_sum_member *m, gpul_error *err)
{
	ssize_t n = read(m->pipe, &m->report, sizeof m->report);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return GPUL_OK;
	if (n != sizeof m->report)
		return report_death(m, err);
	m->reported = true;
	close_end(&m->pipe);
	if (m->report.err.status)
		return gpul_fail(err, m->report.err.status, m->report.err.native, "process %d: %.200s", (int)m->pid, m->report.err.text);
	return GPUL_OK;
}

static gpul_status serve_socket(struct mmap_sum_team *team, gpul_ipc_server *s, gpul_error *err)
{
	gpul_ipc_event event;
	gpul_status st;

	do {
		st = gpul_ipc_server_next(s, 0, &event, err);
		for (unsigned i = 1; i < team->n; i++)
			if (event.kind == GPUL_IPC_ATTACHED && team->member[i].pid == event.pid)
				team->member[i].attached = true;
	} while (!st && event.kind != GPUL_IPC_NONE);
	return st;
}

static gpul_status report_late(const struct mmap_sum_team *team, bool reported, gpul_error *err)
{
	for (unsigned i = 1; i < team->n; i++)
		if (!(reported ? team->member[i].reported : team->member[i].attached))
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "process %d has not %s within the time limit (--timeout)",
					 (int)team->member[i].pid, reported ? "reported" : "attached");
	return GPUL_OK;
}

static bool all_done(const struct mmap_sum_team *team, bool reported)
{
	return report_late(team, reported, NULL) == GPUL_OK;
}

gpul_status mmap_sum_team_serve(struct mmap_sum_team *team, gpul_ipc_server *s, bool reported, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	while (!st && !all_done(team, reported)) {
		struct pollfd fds[MMAP_SUM_MOST] = { { .fd = gpul_ipc_server_fd(s), .events = POLLIN } };
		int wait_ms = mmap_sum_left_ms(team), n;

		for (unsigned i = 1; i < team->n; i++)
			fds[i] = (struct pollfd){ .fd = team->member[i].pipe, .events = POLLIN };
		n = poll(fds, team->n, wait_ms);
		if (n < 0 && errno != EINTR)
			return gpul_fail(err, GPUL_ESYS, errno, "poll: %s", strerror(errno));
		if (n == 0 && wait_ms == 0)
			return report_late(team, reported, err);
		for (unsigned i = 1; !st && n > 0 && i < team->n; i++)
			if (fds[i].revents)
				st = read_report(&team->member[i], err);
		if (!st && n > 0 && fds[0].revents)
			st = serve_socket(team, s, err);
	}
	return st;
}

void mmap_sum_team_end(struct mmap_sum_team *team, bool at_once)
{
	for (unsigned i = 1; i < team->n; i++) {
		struct mmap_sum_member *m = &team->member[i];

		close_end(&m->socket);
		close_end(&m->pipe);
		if (at_once && m->running)
			kill(m->pid, SIGKILL);
	}
	for (unsigned i = 1; i < team->n; i++) {
		if (team->member[i].running)
			waitpid(team->member[i].pid, NULL, 0);
		team->member[i].running = false;
	}
}
