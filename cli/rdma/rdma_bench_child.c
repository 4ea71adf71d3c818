/* rdma_bench_child.c — the peer of gpuload rdma bench without HOST: a server in a child process, for one client.
 *
 * Drivers and fabrics do not work after a fork, so the child is forked before the parent opens a driver or a fabric. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/rdma/rdma_bench.h"
#include "core/clock.h"
#include "core/file/io.h"
#include "core/log.h"

enum { START_MS = 60000, END_MS = 2000, FAILED_MS = 300, LOOK_MS = 5 };

static _Noreturn void run_child(const struct rdma_setup *setup, int pipe, pid_t parent)
{
	struct rdma_serve_request q = { .setup = *setup, .address = "127.0.0.1:0", .once = true, .ready_fd = pipe };
	struct rdma_ready ready = { 0 };

	/* The signal is not sent if the parent died before prctl(), so compare its pid, too. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_IGN); /* Ctrl-C reaches both processes; only the parent handles it, and ends the connection */
	if (!gpul_log_shows(GPUL_LOG_INFO))
		gpul_log_set_level(GPUL_LOG_OFF); /* only the parent prints notices */
	if (rdma_serve(&q, &ready.err))           /* a failure of write() is ignored, because the parent may have ended */
		_exit(write(pipe, &ready, sizeof ready) < 0 ? 2 : 1);
	_exit(0);
}

static gpul_status await_ready(int pipe, struct rdma_child *child, gpul_error *err)
{
	struct pollfd p = { .fd = pipe, .events = POLLIN };
	struct rdma_ready ready = { 0 };

	while (poll(&p, 1, START_MS) < 0 && errno == EINTR)
		;
	if (!p.revents)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the peer process did not begin to listen within %d s", START_MS / 1000);
	if (!gpul_read_all(pipe, &ready, sizeof ready))
		return gpul_fail(err, GPUL_ESYS, ECHILD, "the peer process ended before it began to listen");
	if (ready.err.status)
		return gpul_fail(err, ready.err.status, ready.err.native, "%s", ready.err.text);
	snprintf(child->address, sizeof child->address, "%s", ready.address);
	return GPUL_OK;
}

gpul_status rdma_child_start(const struct rdma_setup *setup, struct rdma_child *out, gpul_error *err)
{
	struct rdma_child child = { 0 };
	int fds[2];
	const pid_t parent = getpid();
	gpul_status st;

	fflush(NULL); /* otherwise the child would write the buffered output, too */
	if (pipe2(fds, O_CLOEXEC))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot create a pipe: %s", strerror(errno));
	child.pid = fork();
	if (child.pid == 0) {
		close(fds[0]);
		run_child(setup, fds[1], parent);
	}
	close(fds[1]);
	st = child.pid < 0 ? gpul_fail(err, GPUL_ESYS, errno, "cannot start the peer process: fork: %s", strerror(errno))
			   : await_ready(fds[0], &child, err);
	child.fd = fds[0];
	if (!st)
		*out = child;
	else if (child.pid > 0)
		rdma_child_end(&child, NULL);
	else
		close(child.fd);
	return st;
}

/* If a connection broke because the child has failed, replace the error of the connection by the error of the child. */
static void explain_end(const struct rdma_child *child, int status, gpul_error *failed)
{
	struct pollfd p = { .fd = child->fd, .events = POLLIN };
	struct rdma_ready last = { 0 };

	if (WIFSIGNALED(status)) {
		*failed = (gpul_error){ 0 };
		gpul_fail(failed, GPUL_ESYS, ECHILD, "the peer process %d was killed by signal %d (%s)", child->pid, WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	} else if (failed->native == ESHUTDOWN && poll(&p, 1, 0) == 1 && gpul_read_all(child->fd, &last, sizeof last) &&
		   last.err.native != ESHUTDOWN && last.err.status) {
		*failed = (gpul_error){ 0 };
		gpul_fail(failed, last.err.status, last.err.native, "the peer process reports: %s", last.err.text);
	}
}

void rdma_child_end(struct rdma_child *child, gpul_error *failed)
{
	const uint64_t until_ns = gpul_clock_ns() + (failed && failed->status ? FAILED_MS : END_MS) * 1000000ull;
	bool killed = false;
	int status = 0;

	if (!child->pid)
		return;
	while (waitpid(child->pid, &status, WNOHANG) == 0) {
		if (gpul_clock_ns() >= until_ns)
			killed = kill(child->pid, SIGKILL) == 0;
		poll(NULL, 0, LOOK_MS);
	}
	if (!killed && failed && failed->status && failed->native != ECANCELED)
		explain_end(child, status, failed);
	close(child->fd);
	child->pid = 0;
}
