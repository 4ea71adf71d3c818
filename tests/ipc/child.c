/* child.c — starts the test program again as a child process with a role, and exchanges lines of text with it. */
#include "tests/ipc/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/ipc/support.h"

void play_role(int argc, char **argv, const struct role_entry *roles)
{
	if (argc != 4 || strcmp(argv[1], "role") != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (; roles->name; roles++)
		if (strcmp(argv[2], roles->name) == 0)
			exit(roles->play(argv[3]));
	exit(99);
}

struct child start_child(const char *name, const char *argument)
{
	int to[2], from[2];
	struct child c;

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		char *argv[] = { (char *)(uintptr_t)"test", (char *)(uintptr_t)"role", (char *)(uintptr_t)name, (char *)(uintptr_t)argument,
				 NULL };

		dup2(to[0], 0);
		dup2(from[1], 1);
		execv("/proc/self/exe", argv);
		_exit(98);
	}
	close(to[0]);
	close(from[1]);
	c.to = to[1];
	c.from = from[0];
	return c;
}

/* Read byte by byte, so that no byte after the line is consumed. */
static int read_line(int fd, char line[128], int patience_ms)
{
	size_t n = 0;

	for (;;) {
		if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, patience_ms) != 1)
			return 0;
		if (n == 127 || read(fd, line + n, 1) != 1)
			return 0;
		if (line[n] == '\n') {
			line[n] = '\0';
			return 1;
		}
		n++;
	}
}

const char *receive_from_child(struct child *c)
{
	static char line[128];

	if (!read_line(c->from, line, PATIENCE_MS))
		fail_msg("the child did not send a line in time");
	return line;
}

void send_to_child(struct child *c, const char *line)
{
	assert_int_equal(write(c->to, line, strlen(line)), strlen(line));
	assert_int_equal(write(c->to, "\n", 1), 1);
}

static int wait_child(struct child *c)
{
	int status = -1;

	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	close(c->from);
	return status;
}

void end_child(struct child *c, int status)
{
	close(c->to);
	assert_int_equal(wait_child(c), status);
}

void kill_child(struct child *c)
{
	assert_int_equal(kill(c->pid, SIGKILL), 0);
	close(c->to);
	(void)wait_child(c);
}

void say(const char *fmt, ...)
{
	char line[128];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof line - 1, fmt, ap);
	va_end(ap);
	line[n++] = '\n';
	if (write(1, line, (size_t)n) != n)
		exit(97);
}

int hear(char line[128])
{
	return read_line(0, line, -1);
}
