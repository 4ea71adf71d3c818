/* child.c — fork actors, exchange notes with them, wait for their end. */
#include "tests/fault/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

bool child_start(const struct fault *f, child_role *role, const void *arg, struct child *out)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		exit(role(f, pair[1], arg)); /* exit() instead of _exit(), so that a sanitizer checks for leaks */
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return false;
	}
	*out = (struct child){ .pid = pid, .line = pair[0] };
	return true;
}

/* Use read() and write(), because step.c replaces the socket calls. */
bool note_send(int line, const struct note *n)
{
	return write(line, n, sizeof *n) == (ssize_t)sizeof *n;
}

bool note_receive(int line, int timeout_ms, struct note *out)
{
	struct pollfd p = { .fd = line, .events = POLLIN };

	while (poll(&p, 1, timeout_ms) < 0)
		if (errno != EINTR)
			return false;
	return p.revents & POLLIN && read(line, out, sizeof *out) == (ssize_t)sizeof *out;
}

bool child_do(const struct child *c, char command, int64_t value, struct note *answer)
{
	struct note n = { .command = command, .value = value };

	return note_send(c->line, &n) && note_receive(c->line, FAULT_WAIT_MS, answer);
}

int child_end(struct child *c, int timeout_ms)
{
	uint64_t end = gpul_clock_ns() + (uint64_t)timeout_ms * 1000000;
	int status = -1;

	if (!c->pid)
		return 0;
	while (waitpid(c->pid, &status, WNOHANG) == 0) {
		if (gpul_clock_ns() > end) {
			kill(c->pid, SIGKILL);
			waitpid(c->pid, NULL, 0);
			status = -1;
			break;
		}
		usleep(200);
	}
	close(c->line); /* closed after the child's end, because closing with unread data is an error for the child */
	*c = (struct child){ 0 };
	return status;
}

void child_kill(struct child *c)
{
	if (c->pid)
		kill(c->pid, SIGKILL);
	child_end(c, FAULT_WAIT_MS);
}
