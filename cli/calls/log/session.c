/* session.c — sets the environment of the program, starts it, and reads the log until it ends. */
#include "cli/calls/log/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/calls/log/filter.h"
#include "cli/calls/log/reader.h"
#include "cli/lib/message.h"
#include "core/own_folder.h"

enum { BUSY_MS = 1, IDLE_MS = 20 };

gpul_status calls_check(const struct calls_options *options, gpul_error *err)
{
	uint8_t wishes[CALLS_MAX_ROWS];
	struct sink sink = { 0 };
	gpul_status st = filter_read(options->filter, wishes, err);

	if (!st)
		st = sink_open(options->format, options->summary, -1, &sink, err);
	out_free(&sink.json.out);
	free(sink.totals);
	return st;
}

/* ---- the environment ------------------------------------------------------------------------- */

/* Find the path of a library that was built or installed next to gpuload. */
static bool find_library(const char *name, char path[PATH_MAX])
{
	static const char *const folders[] = { "/softcuda", "/../lib/gpuload", "/gpuload", "" };
	char own[PATH_MAX];

	for (size_t i = 0; i < sizeof folders / sizeof *folders && gpul_own_folder(own, sizeof own); i++)
		if (snprintf(path, PATH_MAX, "%s%s/%s", own, folders[i], name) < PATH_MAX && !access(path, R_OK))
			return true;
	return false;
}

/* Put a library first in a list such as LD_AUDIT: glibc 2.36 does not report symbol bindings to an auditor if an auditor before it
 * in the list does not request them. */
static gpul_status extend_list(const char *variable, const char *library, gpul_error *err)
{
	const char *given = secure_getenv(variable);
	char path[PATH_MAX], *list = NULL;
	bool failed;

	if (!find_library(library, path))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s was not found beside gpuload, because it was not built or not installed",
				 library);
	if (given && strstr(given, path))
		return GPUL_OK;
	if (asprintf(&list, "%s%s%s", path, given && *given ? ":" : "", given ? given : "") < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment");
	failed = setenv(variable, list, 1);
	free(list);
	return failed ? gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment") : GPUL_OK;
}

static gpul_status set_environment(const struct reader *r, gpul_error *err)
{
	char path[64];
	gpul_status st = extend_list("LD_PRELOAD", "libcuda-calls.so.1", err);

	if (!st)
		st = extend_list("LD_AUDIT", "libcuda-calls-audit.so.1", err);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), r->fd);
	if (!st && setenv(CALLS_VARIABLE, path, 1))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment");
	return st;
}

/* ---- the program ----------------------------------------------------------------------------- */

static volatile sig_atomic_t program; /* process id of the program; 0: not started, or it has ended */
static volatile sig_atomic_t stopped; /* a signal arrived after the end of the program */

/* Pass a signal on to the program.  Ctrl-C at a terminal reaches the program directly; other senders know only the pid of this process. */
static void pass_on(int signal_number, siginfo_t *info, void *unused)
{
	const bool from_terminal = info->si_code == SI_KERNEL;
	const int before = errno;

	(void)unused;
	if (!program)
		stopped = 1;
	else if (!from_terminal)
		kill((pid_t)program, signal_number);
	errno = before;
}

static const int passed_on[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT };

static void handle_signals(void)
{
	struct sigaction pass = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART }, old;

	for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
		if (!sigaction(passed_on[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(passed_on[i], &pass, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Start the program.  Returns only in the parent. */
static gpul_status start_program(char **argv, gpul_error *err)
{
	sigset_t all, before;
	int failure[2], reason = 0;
	pid_t child;

	if (pipe2(failure, O_CLOEXEC))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot create a pipe: %s", strerror(errno));
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before); /* block signals until the handlers know the program's process id */
	fflush(NULL);
	child = fork();
	if (!child) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(argv[0], argv);
		reason = errno;
		if (write(failure[1], &reason, sizeof reason) < 0)
			_exit(126);
		_exit(127);
	}
	if (child > 0) {
		program = child;
		handle_signals();
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(failure[1]);
	if (child < 0)
		reason = errno;
	else if (read(failure[0], &reason, sizeof reason) != sizeof reason)
		reason = 0;
	close(failure[0]);
	if (reason && child > 0)
		waitpid(child, NULL, 0);
	return reason ? gpul_fail(err, GPUL_ESYS, reason, "cannot run %s: %s", argv[0], strerror(reason)) : GPUL_OK;
}

/* Read the log until the program and all other processes that have made calls have ended, or until a signal after the program's end. */
static void follow_program(struct reader *r, int *status)
{
	bool ended = false;
	int pause = BUSY_MS;

	for (;;) {
		const bool any = reader_drain(r);
		const bool others = reader_has_processes(r);
		pid_t pid;

		if (ended && ((!any && !others) || stopped))
			return;
		pid = ended ? 0 : waitpid((pid_t)program, status, WNOHANG);
		if (pid == (pid_t)program || (pid < 0 && errno != EINTR))
			ended = true; /* one more iteration reads the remaining records */
		if (ended)
			program = 0;
		pause = any || ended ? BUSY_MS : pause < IDLE_MS ? pause + 1 : IDLE_MS;
		poll(NULL, 0, pause);
	}
}

/* Return the exit status of the program, or end by the signal that ended the program. */
static int exit_status(int status)
{
	const struct rlimit no_core = { 0, 0 };

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static gpul_status open_output(const char *path, int *fd, gpul_error *err)
{
	*fd = STDERR_FILENO;
	if (!path)
		return GPUL_OK;
	*fd = !strcmp(path, "-") ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return *fd < 0 ? gpul_fail(err, GPUL_ESYS, errno, "cannot write %s: %s", path, strerror(errno)) : GPUL_OK;
}

gpul_status calls_run(const struct calls_options *options, const char *const *words, size_t n_words, int *status, gpul_error *err)
{
	static struct reader reader;
	char **argv = calloc(n_words + 1, sizeof *argv);
	uint8_t wishes[CALLS_MAX_ROWS];
	struct sink sink;
	gpul_status st = filter_read(options->filter, wishes, err), closed;
	int fd = -1;

	for (size_t i = 0; argv && i < n_words; i++)
		argv[i] = (char *)(uintptr_t)words[i];
	if (!st && !argv)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the arguments of the program");
	if (!st)
		st = open_output(options->output, &fd, err);
	if (!st)
		st = sink_open(options->format, options->summary, fd, &sink, err);
	if (st)
		goto close_output;
	st = reader_open(wishes, &sink, &reader, err);
	if (st)
		goto close_sink;
	st = set_environment(&reader, err);
	if (!st)
		st = start_program(argv, err);
	if (!st)
		follow_program(&reader, status);
	reader_close(&reader);
close_sink:
	closed = sink_close(&sink, st ? NULL : err);
	st = st ? st : closed;
	if (sink.n_lost)
		cli_message(options->command, "%llu calls were not recorded", (unsigned long long)sink.n_lost);
close_output:
	if (fd > STDERR_FILENO)
		close(fd);
	free(argv);
	if (!st)
		*status = exit_status(*status);
	return st;
}
