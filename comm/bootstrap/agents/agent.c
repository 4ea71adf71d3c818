/* agent.c — starts and ends an agent. */
#include "comm/bootstrap/agents/agent_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file/io.h"

enum { MOST_WORDS = 64, WORD_BYTES = 4096 };

/* The arguments of a command line, and the buffer that argv points into. */
struct command {
	char *argv[MOST_WORDS + 1];
	char text[2 * WORD_BYTES];
	size_t n_words, n_bytes;
	bool failed;
};

static void add_word(struct command *c, const char *word, size_t n)
{
	if (c->n_words == MOST_WORDS || n >= sizeof c->text - c->n_bytes) {
		c->failed = true;
		return;
	}
	c->argv[c->n_words++] = c->text + c->n_bytes;
	memcpy(c->text + c->n_bytes, word, n);
	c->text[c->n_bytes + n] = '\0';
	c->n_bytes += n + 1;
}

/* An agent such as ssh passes its arguments to a shell, so they must be quoted. */
static void add_quoted(struct command *c, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+=:,@";
	char quoted[WORD_BYTES];
	size_t n = 0;

	if (*word && strspn(word, plain) == strlen(word)) {
		add_word(c, word, strlen(word));
		return;
	}
	quoted[n++] = '\'';
	for (; *word && n < sizeof quoted - 6; word++) {
		if (*word == '\'') {
			memcpy(quoted + n, "'\\''", 4);
			n += 4;
		} else {
			quoted[n++] = *word;
		}
	}
	c->failed |= *word != '\0';
	quoted[n++] = '\'';
	add_word(c, quoted, n);
}

static void make_command(const gpul_comm_launch_hosts_options *o, const char *host, bool here, struct command *c)
{
	const char *agent = o->agent ? o->agent : GPUL_COMM_AGENT;

	for (size_t n; !here && *(agent += strspn(agent, " \t")); agent += n) {
		n = strcspn(agent, " \t");
		add_word(c, agent, n);
	}
	if (!here)
		add_word(c, host, strlen(host));
	for (char *const *word = o->part; *word; word++) {
		if (here)
			add_word(c, *word, strlen(*word));
		else
			add_quoted(c, *word);
	}
}

/* Run in the child process until exec(). failed: the write end of a close-on-exec pipe, which receives errno if exec() fails. */
static _Noreturn void become_agent(char *const *argv, int in, int out, int err, pid_t launcher, const sigset_t *mask, int failed)
{
	int error;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != launcher || setpgid(0, 0))
		_exit(126);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
		_exit(126);
	(void)signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	(void)gpul_write_all(failed, &error, sizeof error);
	_exit(127);
}

static void close_pairs(int pairs[4][2])
{
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 2; k++)
			if (pairs[i][k] >= 0)
				close(pairs[i][k]);
}

/* Start a process. pairs: pipes for its standard input, output and error, and for the errno of exec(). */
static int start_process(char *const *argv, const sigset_t *mask, int pairs[4][2], pid_t *out)
{
	const pid_t launcher = getpid();
	int error = 0;
	pid_t child;

	for (int i = 0; i < 4; i++)
		if (pipe2(pairs[i], O_CLOEXEC))
			return errno;
	child = fork();
	if (child == 0)
		become_agent(argv, pairs[0][0], pairs[1][1], pairs[2][1], launcher, mask, pairs[3][1]);
	if (child < 0)
		return errno;
	(void)setpgid(child, child); /* parent and child both set the process group, so that it is set before either of them continues */
	close(pairs[3][1]);
	pairs[3][1] = -1;
	if (gpul_read_all(pairs[3][0], &error, sizeof error))
		waitpid(child, NULL, 0);
	else
		error = 0; /* end of file: exec() has succeeded and closed the pipe */
	*out = child;
	return error;
}

gpul_status gpul_agent_start(const gpul_comm_launch_hosts_options *o, const char *host, bool here, const sigset_t *mask, struct agent *out,
			     gpul_error *err)
{
	int pairs[4][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	struct command *c = calloc(1, sizeof *c);
	gpul_status st = GPUL_OK;
	pid_t pid = 0;
	int error;

	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to start the agent (--agent) for host %s", host);
	make_command(o, host, here, c);
	if (c->failed || c->n_words == 0) {
		free(c);
		return gpul_fail(err, GPUL_EINVAL, 0, "host %.60s: the command line of the agent (--agent) is %s", host,
				 "empty or too long");
	}
	error = start_process(c->argv, mask, pairs, &pid);
	if (error) {
		st = gpul_fail(err, GPUL_ESYS, error, "host %.60s: cannot start the agent (--agent) %.80s: %s", host, c->argv[0],
			       strerror(error));
	} else {
		*out = (struct agent){ .pid = pid, .to = pairs[0][1], .from = pairs[1][0], .err = pairs[2][0] };
		for (int i = 0; i < 3; i++)
			pairs[i][!i] = -1;
		(void)fcntl(out->to, F_SETFL, O_NONBLOCK);
		(void)fcntl(out->from, F_SETFL, O_NONBLOCK);
		(void)fcntl(out->err, F_SETFL, O_NONBLOCK);
	}
	close_pairs(pairs);
	free(c);
	return st;
}

bool gpul_agent_has_ended(struct agent *a)
{
	if (!a->ended && a->pid)
		a->ended = waitpid(a->pid, &a->status, WNOHANG) == a->pid;
	return a->ended;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void gpul_agent_end(struct agent *a)
{
	if (!a->pid)
		return;
	close_end(&a->to);
	close_end(&a->from);
	close_end(&a->err);
	kill(-a->pid, SIGKILL);
	if (!a->ended) {
		while (waitpid(a->pid, &a->status, 0) < 0 && errno == EINTR)
			;
		a->ended = true;
	}
}

void gpul_agent_describe_end(const struct agent *a, char *text, size_t text_bytes)
{
	if (WIFEXITED(a->status))
		snprintf(text, text_bytes, "ended with status %d", WEXITSTATUS(a->status));
	else
		snprintf(text, text_bytes, "was killed by signal %d (%s)", WTERMSIG(a->status), strsignal(WTERMSIG(a->status)));
}

static bool is_own_number(const char *host)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
		const int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
		char number[INET6_ADDRSTRLEN + 32];

		if (family != AF_INET && family != AF_INET6)
			continue;
		found = !getnameinfo(a->ifa_addr, family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6), number,
				     sizeof number, NULL, 0, NI_NUMERICHOST) &&
			!strcmp(number, host);
	}
	freeifaddrs(all);
	return found;
}

bool gpul_agent_is_here(const char *host)
{
	char name[256] = "";

	if (gethostname(name, sizeof name - 1))
		return false;
	return !strcmp(host, "localhost") || !strcmp(host, name) || is_own_number(host);
}
