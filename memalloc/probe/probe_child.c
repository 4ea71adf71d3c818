/* probe_child.c — finds, starts, queries and stops the program gpuload-probe.
 *
 * The child is started by posix_spawn() instead of fork(), because NVIDIA's driver cannot be used after a fork, and this program may have
 * threads.  The child gets one descriptor, its end of a socketpair, as number 3, and exits when the other end is closed. */
#include "memalloc/probe/probe_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/own_folder.h"

#ifndef GPUL_LIBDIR
#define GPUL_LIBDIR "/usr/local/lib/gpuload"
#endif

/* ---- finding the program gpuload-probe --------------------------------------------------- */

static bool is_program(char path[PATH_MAX], const char *folder, const char *below)
{
	return snprintf(path, PATH_MAX, "%s%s", folder, below) < PATH_MAX && access(path, X_OK) == 0;
}

static bool find_program(char path[PATH_MAX])
{
	const char *chosen = secure_getenv("GPULOAD_PROBE");
	char folder[PATH_MAX];

	if (chosen && *chosen)
		return is_program(path, chosen, ""); /* the user has set the path, so do not search */
	/* Search in the build tree, next to an installed program, and next to an installed library. */
	return (gpul_own_folder(folder, sizeof folder) &&
		(is_program(path, folder, "/gpuload-probe") || is_program(path, folder, "/../lib/gpuload/gpuload-probe") ||
		 is_program(path, folder, "/gpuload/gpuload-probe"))) ||
	       is_program(path, GPUL_LIBDIR, "/gpuload-probe");
}

/* ---- starting gpuload-probe -------------------------------------------------------------- */

static bool is_replaced(const char *variable, const char *const *by)
{
	while (*by && strncmp(variable, *by, strcspn(*by, "=") + 1))
		by++;
	return *by != NULL;
}

/* Copy the environment of this process, and add or replace the variables of open_env.  NULL: out of memory. */
static char **make_environment(const char *const *open_env)
{
	size_t n = 0, n_open = 0, kept = 0;
	char **env;

	while (environ && environ[n])
		n++;
	while (open_env[n_open])
		n_open++;
	env = calloc(n + n_open + 1, sizeof *env);
	for (size_t i = 0; env && i < n; i++)
		if (!is_replaced(environ[i], open_env))
			env[kept++] = environ[i];
	if (env)
		memcpy(env + kept, open_env, n_open * sizeof *env);
	return env;
}

static int set_files(posix_spawn_file_actions_t *actions, int socket)
{
	/* Move the socket to PROBE_FD first: if a standard stream of this process is closed, the socket may have the stream's
	 * number. dup2() also clears close-on-exec. */
	int failed = posix_spawn_file_actions_adddup2(actions, socket, PROBE_FD);

	if (!failed)
		failed = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
	if (!failed)
		failed = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 34)
	if (!failed) /* close all other descriptors that are not close-on-exec */
		failed = posix_spawn_file_actions_addclosefrom_np(actions, PROBE_FD + 1);
#endif
	return failed;
}

/* Restore the default signal handling in the child, because this process may block or ignore some signals. */
static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int failed;

	sigemptyset(&none);
	sigfillset(&all);
	failed = posix_spawnattr_setsigmask(attributes, &none);
	if (!failed)
		failed = posix_spawnattr_setsigdefault(attributes, &all);
	return failed ? failed : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn_program(pid_t *pid, const char *path, int socket, char **env)
{
	char name[] = "gpuload-probe", *argv[] = { name, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int failed = posix_spawn_file_actions_init(&actions);

	if (failed)
		return failed;
	failed = posix_spawnattr_init(&attributes);
	if (failed)
		goto destroy_actions;
	failed = set_files(&actions, socket);
	if (!failed)
		failed = set_signals(&attributes);
	if (!failed)
		failed = posix_spawn(pid, path, &actions, &attributes, argv, env);
	posix_spawnattr_destroy(&attributes);
destroy_actions:
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

static gpul_status start_program(struct probe_child *c, const char *path, gpul_error *err)
{
	int ends[2], failed;
	char **env;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot create a socket pair for gpuload-probe: %s", strerror(errno));
	env = make_environment(c->drv->open_env);
	failed = env ? spawn_program(&c->pid, path, ends[1], env) : ENOMEM;
	free(env);
	close(ends[1]);
	if (failed) {
		close(ends[0]);
		c->pid = 0;
		return gpul_fail(err, GPUL_ESYS, failed, "cannot start %s: %s", path, strerror(failed));
	}
	c->socket = ends[0];
	return GPUL_OK;
}

/* ---- how the child ended ----------------------------------------------------------------- */

/* Wait up to wait_ms for the child to exit, then kill it.  Returns the status from waitpid(); -1: another thread reaped it. */
static int reap_child(struct probe_child *c, int wait_ms)
{
	int status = -1;
	pid_t r;

	close(c->socket);
	while ((r = waitpid(c->pid, &status, WNOHANG)) == 0 && wait_ms-- > 0)
		usleep(1000);
	if (r == 0) {
		kill(c->pid, SIGKILL);
		while ((r = waitpid(c->pid, &status, 0)) < 0 && errno == EINTR)
			;
	}
	c->pid = 0;
	c->socket = -1;
	return r < 0 ? -1 : status;
}

/* Return the name of a signal that kills programs; older C libraries have no sigabbrev_np(). */
static const char *signal_name(int number)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ SIGABRT, "SIGABRT" }, { SIGBUS, "SIGBUS" }, { SIGFPE, "SIGFPE" },   { SIGILL, "SIGILL" },   { SIGKILL, "SIGKILL" },
		{ SIGSEGV, "SIGSEGV" }, { SIGSYS, "SIGSYS" }, { SIGTERM, "SIGTERM" }, { SIGXFSZ, "SIGXFSZ" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == number)
			return names[i].name;
	return "a signal";
}

static gpul_status report_exit(struct probe_child *c, gpul_error *err)
{
	int status = reap_child(c, 2000);

	if (status != -1 && WIFSIGNALED(status))
		return gpul_fail(err, GPUL_EUNSUPPORTED, WTERMSIG(status),
				 "the process gpuload-probe, which tests a kind of memory, was killed by %s",
				 signal_name(WTERMSIG(status)));
	if (status != -1 && WIFEXITED(status))
		return gpul_fail(err, GPUL_EUNSUPPORTED, WEXITSTATUS(status),
				 "the process gpuload-probe, which tests a kind of memory, exited with status %d and without a "
				 "result",
				 WEXITSTATUS(status));
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the process gpuload-probe, which tests a kind of memory, exited without a result");
}

/* ---- questions and answers --------------------------------------------------------------- */

/* Wait until the socket is readable or closed; false: time-out. */
static bool wait_readable(int socket, int timeout_ms)
{
	uint64_t end = gpul_clock_ns() + (uint64_t)timeout_ms * 1000000;
	int r;

	do {
		uint64_t now = gpul_clock_ns();
		struct pollfd p = { .fd = socket, .events = POLLIN };

		r = poll(&p, 1, now < end ? (int)((end - now + 999999) / 1000000) : 0);
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

static gpul_status read_answer(struct probe_child *c, int timeout_ms, gpul_error *err)
{
	struct probe_answer a;
	ssize_t n;

	if (!wait_readable(c->socket, timeout_ms)) {
		reap_child(c, 0);
		return gpul_fail(err, GPUL_EUNSUPPORTED, ETIMEDOUT,
				 "the process gpuload-probe, which tests a kind of memory, did not answer within %.3g s",
				 timeout_ms * 1e-3);
	}
	do
		n = recv(c->socket, &a, sizeof a, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return report_exit(c, err);
	if (n != sizeof a || a.protocol != PROBE_PROTOCOL) {
		reap_child(c, 0);
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "gpuload-probe and this program have different versions: install both again");
	}
	a.err.text[sizeof a.err.text - 1] = '\0';
	return a.err.status ? gpul_fail(err, a.err.status, a.err.native, "%s", a.err.text) : GPUL_OK;
}

gpul_status gpul_probe_child_start(struct probe_child *c, gpul_error *err)
{
	char path[PATH_MAX];
	gpul_status st;

	if (c->pid > 0)
		return GPUL_OK;
	if (c->broken.status)
		return gpul_fail(err, c->broken.status, c->broken.native, "%s", c->broken.text);
	if (c->none || !c->drv->open_env || !find_program(path)) {
		if (!c->none)
			gpul_log(GPUL_LOG_INFO, "memalloc",
				 "gpuload-probe was not found, so the import of memory is tested in this process");
		c->none = true;
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "gpuload-probe was not found beside this program");
	}
	st = start_program(c, path, &c->broken);
	if (!st)
		st = read_answer(c, c->start_ms ? c->start_ms : PROBE_START_MS, &c->broken);
	if (!st)
		return GPUL_OK;
	gpul_probe_child_stop(c);
	return gpul_fail(err, st, c->broken.native, "%s", c->broken.text);
}

gpul_status gpul_probe_child_query(struct probe_child *c, const struct probe_question *q, int fd, gpul_error *err)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)q, sizeof *q };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	}
	if (sendmsg(c->socket, &message, MSG_NOSIGNAL) != sizeof *q)
		return report_exit(c, err);
	return read_answer(c, c->answer_ms ? c->answer_ms : PROBE_ANSWER_MS, err);
}

void gpul_probe_child_stop(struct probe_child *c)
{
	if (c->pid > 0)
		reap_child(c, 2000);
}
