/* nvjitlink_child.c — nvJitLink in a process of its own.
 *
 *     parent ── fork ──> child: nvJitLink
 *        ^                 │
 *        └──── a pipe ─────┘  struct head, error log, info log, result
 *
 * It dies of some inputs: CUDA 13.0's of LTO code that is damaged, which nobody else can tell from
 * whole code, since only NVIDIA can read it.  So the child dies, and the parent says so.  The library
 * was opened before the fork; the child calls nothing but it, and malloc, which the C library keeps
 * usable in the child of a process with threads. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/link/nvjitlink_internal.h"

struct head {
	int created, completed;
	uint64_t errors_bytes, info_bytes, result_bytes;
};

/* ---- the child ---------------------------------------------------------------------------- */

static void write_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno != EINTR)
			_exit(1);
		p += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
}

/* No handler of the program's is to meet what nvJitLink does wrong, and nobody its last words. */
static void withdraw(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGPIPE };
	int null = open("/dev/null", O_RDWR);

	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		signal(fatal[i], SIG_DFL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
}

static _Noreturn void work(const struct nvjitlink_task *task, int fd)
{
	struct nvjitlink_outcome o = { 0 };
	struct head h;

	withdraw();
	nvjitlink_run(task, &o);
	h = (struct head){ o.created, o.completed, o.errors ? strlen(o.errors) : 0,
			   o.info ? strlen(o.info) : 0, o.result_bytes };
	write_all(fd, &h, sizeof h);
	write_all(fd, o.errors, (size_t)h.errors_bytes);
	write_all(fd, o.info, (size_t)h.info_bytes);
	write_all(fd, o.result, o.result_bytes);
	_exit(0);
}

/* ---- the parent ---------------------------------------------------------------------------- */

/* n bytes, then a NUL; NULL: the child is gone, or no memory (*no_memory is set then). */
static char *read_all(int fd, uint64_t n, bool *no_memory)
{
	char *p = malloc((size_t)n + 1);
	size_t got = 0;

	if (!p) {
		*no_memory = true;
		return NULL;
	}
	while (got < n) {
		ssize_t k = read(fd, p + got, (size_t)n - got);

		if (k == 0 || (k < 0 && errno != EINTR)) {
			free(p);
			return NULL;
		}
		got += k > 0 ? (size_t)k : 0;
	}
	p[n] = '\0';
	return p;
}

/* False: the child did not get to the end. */
static bool receive(int fd, struct nvjitlink_outcome *out, bool *no_memory)
{
	struct head *h = (struct head *)(void *)read_all(fd, sizeof *h, no_memory);

	if (!h)
		return false;
	out->created = h->created;
	out->completed = h->completed;
	out->errors = read_all(fd, h->errors_bytes, no_memory);
	out->info = out->errors ? read_all(fd, h->info_bytes, no_memory) : NULL;
	out->result = out->info ? read_all(fd, h->result_bytes, no_memory) : NULL;
	out->result_bytes = (size_t)h->result_bytes;
	free(h);
	return out->result != NULL;
}

static gpul_status died(pid_t child, gpul_error *err)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return gpul_fail(err, GPUL_EFORMAT, WTERMSIG(status),
				 "nvJitLink died of signal %d (%s): what it was given to link is "
				 "damaged",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return gpul_fail(err, GPUL_EFORMAT, status,
			 "nvJitLink ended its process: what it was given to link is damaged");
}

static gpul_status collect(pid_t child, int fd, struct nvjitlink_outcome *out, gpul_error *err)
{
	bool no_memory = false;

	if (receive(fd, out, &no_memory)) {
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		return GPUL_OK;
	}
	nvjitlink_outcome_free(out);
	if (!no_memory)
		return died(child, err);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for what nvJitLink made");
}

gpul_status nvjitlink_run_apart(const struct nvjitlink_task *task,
				struct nvjitlink_outcome *out, gpul_error *err)
{
	int ends[2];
	gpul_status st;
	pid_t child;

	*out = (struct nvjitlink_outcome){ 0 };
	if (pipe2(ends, O_CLOEXEC))
		return gpul_fail(err, GPUL_ESYS, errno, "no pipe to the linker: %s",
				 strerror(errno));
	child = fork();
	if (child == 0)
		work(task, ends[1]);
	close(ends[1]); /* or its end would never be seen */
	if (child < 0)
		st = gpul_fail(err, GPUL_ESYS, errno, "no process for the linker: %s",
			       strerror(errno));
	else
		st = collect(child, ends[0], out, err);
	close(ends[0]);
	return st;
}
