/* test_steps.c — a rank is killed at each of its system calls, and each of its system calls fails in turn.
 *
 * This program's versions of the system calls count the calls of the victim's main thread (the linker prefers them to libc's).  The test's
 * process does the launcher's work: it reports the death of the victim, so that no rank waits for a rank that never arrived. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/notice_internal.h"
#include "ipc/place.h"
#include "tests/comm/bootstrap/ranks.h"

enum { N_RANKS = 3, LONG_MS = 20000, MAX_STEPS = 500 };

/* ---- the victim's system calls ---------------------------------------------------------------------------------- */

static int nth;           /* number of the step, from 1; 0: this process is not the victim */
static int error_of_step; /* errno of the failing call; 0: the victim is killed instead */
static int n_reached;
static const char **reached_name; /* name of the call at the step, in memory shared with the test; NULL: not reached */

/* Count a system call.  Returns true, with errno set, if this call must fail. */
static bool at_step(const char *name)
{
	if (!nth || syscall(SYS_gettid) != getpid() || ++n_reached != nth)
		return false;
	*reached_name = name;
	if (!error_of_step)
		kill(getpid(), SIGKILL);
	errno = error_of_step;
	return true;
}

struct sockaddr;
struct msghdr;
int socket(int domain, int type, int protocol);
int bind(int fd, const struct sockaddr *address, unsigned n);
int listen(int fd, int backlog);
int accept4(int fd, struct sockaddr *address, unsigned *n, int flags);
int connect(int fd, const struct sockaddr *address, unsigned n);
int getsockopt(int fd, int level, int name, void *value, unsigned *n);
ssize_t sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t recvmsg(int fd, struct msghdr *m, int flags);
int eventfd(unsigned start, int flags);

int socket(int domain, int type, int protocol)
{
	return at_step("socket") ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int fd, const struct sockaddr *address, unsigned n)
{
	return at_step("bind") ? -1 : (int)syscall(SYS_bind, fd, address, n);
}

int listen(int fd, int backlog)
{
	return at_step("listen") ? -1 : (int)syscall(SYS_listen, fd, backlog);
}

int accept4(int fd, struct sockaddr *address, unsigned *n, int flags)
{
	return at_step("accept4") ? -1 : (int)syscall(SYS_accept4, fd, address, n, flags);
}

int connect(int fd, const struct sockaddr *address, unsigned n)
{
	return at_step("connect") ? -1 : (int)syscall(SYS_connect, fd, address, n);
}

int getsockopt(int fd, int level, int name, void *value, unsigned *n)
{
	return at_step("getsockopt") ? -1 : (int)syscall(SYS_getsockopt, fd, level, name, value, n);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	return at_step("sendmsg") ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	return at_step("recvmsg") ? -1 : syscall(SYS_recvmsg, fd, m, flags);
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec time = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L };

	if (at_step("poll"))
		return -1;
	return (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &time, NULL, sizeof(uint64_t));
}

int eventfd(unsigned start, int flags)
{
	return at_step("eventfd") ? -1 : (int)syscall(SYS_eventfd2, start, flags);
}

int memfd_create(const char *name, unsigned flags)
{
	return at_step("memfd_create") ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int fd, off_t n_bytes)
{
	return at_step("ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, n_bytes);
}

int chmod(const char *path, mode_t mode)
{
	return at_step("chmod") ? -1 : (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

int unlink(const char *path)
{
	return at_step("unlink") ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int close(int fd)
{
	(void)at_step("close"); /* close even if the call must fail, because a failing close() closes the descriptor */
	return (int)syscall(SYS_close, fd);
}

/* ---- the ranks -------------------------------------------------------------------------------------------------- */

struct plan {
	int victim, nth, error;
	const char **reached; /* in shared memory; see reached_name */
};

static gpul_status exchange_all(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const struct plan *p = arg;
	int all[N_RANKS], mine = STDIN_FILENO;
	gpul_boot *b = NULL;
	gpul_status st;

	if (job->rank == p->victim) {
		nth = p->nth;
		error_of_step = p->error;
		reached_name = p->reached;
	}
	st = gpul_boot_open(job, LONG_MS, &b, err);
	if (!st)
		st = gpul_boot_allgather(b, &job->rank, sizeof job->rank, all, LONG_MS, err);
	if (!st)
		st = gpul_boot_exchange_fds(b, &mine, 1, all, LONG_MS, err);
	for (int r = 0; !st && r < N_RANKS; r++)
		(void)syscall(SYS_close, all[r]);
	if (!st)
		st = gpul_boot_barrier(b, LONG_MS, err);
	gpul_boot_close(b);
	nth = 0;
	return st;
}

/* Run the plan with three processes; like the launcher, this process reports the victim's end to them (struct notice). */
static void run_plan(const struct plan *p, struct rank_end *ends, int *victim_status)
{
	gpul_comm_job job = ranks_job(0, N_RANKS);
	pid_t children[N_RANKS];
	struct notice *notice = NULL;
	char number[16], text[64];
	bool cleared;
	int fd = -1;

	assert_int_equal(gpul_notice_create(&fd, &notice, NULL), GPUL_OK);
	snprintf(number, sizeof number, "%d", fd);
	setenv("GPULOAD_COMM_NOTICE", number, 1);
	for (int r = 0; r < N_RANKS; r++) {
		gpul_comm_job mine = ranks_of(&job, r);

		children[r] = ranks_fork(&mine, exchange_all, (void *)(uintptr_t)p, &ends[r]);
	}
	assert_int_equal(waitpid(children[p->victim], victim_status, 0), children[p->victim]);
	snprintf(text, sizeof text, "rank %d ended: the launcher's notice", p->victim);
	if (!WIFEXITED(*victim_status) || WEXITSTATUS(*victim_status))
		gpul_notice_post(notice, p->victim, children[p->victim], text);
	gpul_notice_post_ends(notice, 1u << p->victim, true);
	for (int r = 0; r < N_RANKS; r++)
		if (r != p->victim)
			assert_int_equal(waitpid(children[r], NULL, 0), children[r]);
	unsetenv("GPULOAD_COMM_NOTICE");
	gpul_notice_unmap(notice);
	close(fd);
	/* If rank 0 was killed or could not remove its files, the launcher must remove them. */
	assert_int_equal(gpul_ipc_place_clear(job.name, &cleared, NULL), GPUL_OK);
}

/* A rank that fails must name the victim as the cause. */
static void check_others(const struct plan *p, const struct rank_end *ends)
{
	char name[16];

	snprintf(name, sizeof name, "rank %d", p->victim);
	for (int r = 0; r < N_RANKS; r++)
		if (r != p->victim && ends[r].status && !strstr(ends[r].err.text, name))
			fail_msg("rank %d, %s %d of rank %d: %s", r, *p->reached, p->nth, p->victim, ends[r].err.text);
}

/* Test the victim's first step, its second, and so on, until the victim completes before the step; returns the number of steps. */
static int each_step(int victim, int error)
{
	struct {
		const char *reached;
		struct rank_end ends[N_RANKS];
	} *shared = ranks_shared(sizeof *shared);
	struct rank_end *ends = shared->ends;
	const char **reached = &shared->reached;
	int n = 0, status;

	do {
		struct plan p = { .victim = victim, .nth = ++n, .error = error, .reached = reached };

		memset(shared, 0, sizeof *shared);
		run_plan(&p, ends, &status);
		check_others(&p, ends);
		if (!*reached) {
			for (int r = 0; r < N_RANKS; r++)
				assert_int_equal(ends[r].status, GPUL_OK);
		} else if (!error) {
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		} else {
			assert_true(WIFEXITED(status));
			if (ends[victim].status && !ends[victim].err.text[0])
				fail_msg("%s %d of rank %d: no message", *reached, n, victim);
		}
		if (ranks_n_files())
			fail_msg("%s %d of rank %d: files are left", *reached, n, victim);
		if (!*reached)
			break;
	} while (n < MAX_STEPS);
	assert_true(n < MAX_STEPS);
	ranks_unshare(shared, sizeof *shared);
	return n - 1;
}

static void rank_0_is_killed_at_each_step(void **state)
{
	(void)state;
	assert_true(each_step(0, 0) > 20);
}

static void another_rank_is_killed_at_each_step(void **state)
{
	(void)state;
	assert_true(each_step(1, 0) > 10);
}

static void each_system_call_of_rank_0_fails(void **state)
{
	(void)state;
	assert_true(each_step(0, EIO) > 20);
}

static void each_system_call_of_another_rank_fails(void **state)
{
	(void)state;
	assert_true(each_step(2, EMFILE) > 10);
}

static void interrupted_system_calls_are_repeated(void **state)
{
	(void)state;
	assert_true(each_step(0, EINTR) > 20);
	assert_true(each_step(1, EINTR) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rank_0_is_killed_at_each_step),         cmocka_unit_test(another_rank_is_killed_at_each_step),
		cmocka_unit_test(each_system_call_of_rank_0_fails),      cmocka_unit_test(each_system_call_of_another_rank_fails),
		cmocka_unit_test(interrupted_system_calls_are_repeated),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
