/* nvjitlink_child.c — runs nvJitLink in a child process.
 *
 *     parent ── fork ──> child: nvJitLink
 *        ^                 │
 *        └──── a pipe ─────┘  struct head, error log, info log, result
 *
 * nvJitLink of CUDA 13.0 crashes on damaged LTO code, which cannot be detected beforehand, because the format is not public.
 * Then only the child crashes, and the parent reports it.  The library is opened before the fork; the child calls only the
 * library and malloc, which glibc keeps usable in the child of a process with threads. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file/io.h"
#include "loader/link/nvjitlink_internal.h"

struct head {
	int created, completed;
	uint64_t errors_bytes, info_bytes, result_bytes;
};

/* ---- the child ---------------------------------------------------------------------------- */

/* Close all descriptors except the standard ones and fd.  The child inherits pipes and sockets of other threads, whose readers
 * would get no end of file while the child keeps the write ends open. */
static void close_others(int fd)
{
	struct rlimit limit = { 0 };
	const int first = STDERR_FILENO + 1;

	if ((fd <= first || close_range(first, (unsigned)fd - 1, 0) == 0) && close_range((unsigned)fd + 1, ~0u, 0) == 0)
		return;
	getrlimit(RLIMIT_NOFILE, &limit); /* Linux before 5.9 has no close_range() */
	for (int other = first; (rlim_t)other < limit.rlim_cur; other++)
		if (other != fd)
			close(other);
}

/* Prepare the child for a crash of nvJitLink: the crash must not run the program's signal handlers, dump core, or print. */
static void isolate_child(int fd)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGPIPE };
	int null = open("/dev/null", O_RDWR);

	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		signal(fatal[i], SIG_DFL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int standard = STDIN_FILENO; null >= 0 && standard <= STDERR_FILENO; standard++)
		if (standard != fd)
			dup2(null, standard);
	close_others(fd);
}

static _Noreturn void run_child(const struct nvjitlink_task *task, int fd)
{
	struct nvjitlink_outcome o = { 0 };
	struct head h;

	isolate_child(fd);
	nvjitlink_run(task, &o);
	h = (struct head){ o.created, o.completed, o.errors ? strlen(o.errors) : 0, o.info ? strlen(o.info) : 0, o.result_bytes };
	_exit(!(gpul_write_all(fd, &h, sizeof h) && gpul_write_all(fd, o.errors, (size_t)h.errors_bytes) &&
		gpul_write_all(fd, o.info, (size_t)h.info_bytes) && gpul_write_all(fd, o.result, o.result_bytes)));
}

/* ---- the parent ---------------------------------------------------------------------------- */

/* Read n bytes and append a NUL; NULL: the child ended early, or out of memory (*no_memory is set then). */
static char *read_part(int fd, uint64_t n, bool *no_memory)
{
	char *p = malloc((size_t)n + 1);

	*no_memory |= !p;
	if (p && !gpul_read_all(fd, p, (size_t)n)) {
		free(p);
		return NULL;
	}
	if (p)
		p[n] = '\0';
	return p;
}

/* Read the outcome that the child writes; false: the child ended early, or out of memory. */
static bool receive_outcome(int fd, struct nvjitlink_outcome *out, bool *no_memory)
{
	struct head *h = (struct head *)(void *)read_part(fd, sizeof *h, no_memory);

	if (!h)
		return false;
	out->created = h->created;
	out->completed = h->completed;
	out->errors = read_part(fd, h->errors_bytes, no_memory);
	out->info = out->errors ? read_part(fd, h->info_bytes, no_memory) : NULL;
	out->result = out->info ? read_part(fd, h->result_bytes, no_memory) : NULL;
	out->result_bytes = (size_t)h->result_bytes;
	free(h);
	return out->result != NULL;
}

static gpul_status report_crash(pid_t child, gpul_error *err)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return gpul_fail(err, GPUL_EFORMAT, WTERMSIG(status), "nvJitLink crashed with signal %d (%s): an input is damaged",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return gpul_fail(err, GPUL_EFORMAT, status, "nvJitLink exited in the middle of the link: an input is damaged");
}

static gpul_status collect_outcome(pid_t child, int fd, struct nvjitlink_outcome *out, gpul_error *err)
{
	bool no_memory = false;

	if (receive_outcome(fd, out, &no_memory)) {
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		return GPUL_OK;
	}
	nvjitlink_outcome_free(out);
	if (!no_memory)
		return report_crash(child, err);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the result of nvJitLink");
}

gpul_status nvjitlink_run_in_child(const struct nvjitlink_task *task, struct nvjitlink_outcome *out, gpul_error *err)
{
	int ends[2];
	gpul_status st;
	pid_t child;

	*out = (struct nvjitlink_outcome){ 0 };
	if (pipe2(ends, O_CLOEXEC))
		return gpul_fail(err, GPUL_ESYS, errno, "pipe() to the linker failed: %s", strerror(errno));
	child = fork();
	if (child == 0)
		run_child(task, ends[1]);
	close(ends[1]); /* read() reports the end of file only when no write end is open */
	if (child < 0)
		st = gpul_fail(err, GPUL_ESYS, errno, "fork() of the linker failed: %s", strerror(errno));
	else
		st = collect_outcome(child, ends[0], out, err);
	close(ends[0]);
	return st;
}
