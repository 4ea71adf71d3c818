/* actors.c — start actors, send them commands and check their answers, for the scenarios. */
#include "tests/fault/actors.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void exit_now(int status, void *unused)
{
	(void)unused;
	_exit(status);
}

/* Mount a private /proc, as a container has, because NVIDIA's driver reads data about its own process from /proc.  Other drivers do not
 * need it, so a failure is ignored. */
static void mount_private_proc(void)
{
	if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		(void)mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

int actor_begin(const struct actor *a)
{
	int status;
	pid_t pid;

	step_arm(a->dies);
	if (!a->namespaces)
		return -1;
	if (unshare(a->namespaces))
		return 77;
	if (a->namespaces & CLONE_NEWPID) /* LeakSanitizer cannot find its threads in a new namespace, so exit before it runs */
		on_exit(exit_now, NULL);
	pid = a->namespaces & CLONE_NEWPID ? fork() : 0; /* the child is the first process of the new namespace */
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (a->namespaces & CLONE_NEWPID)
			mount_private_proc();
		return -1;
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

bool actor_become(const struct actor *a)
{
	return !a->uid || (setgroups(0, NULL) == 0 && setgid(a->uid) == 0 && setuid(a->uid) == 0);
}

bool actor_limit(int64_t n_more)
{
	struct rlimit limit;
	int next = 0;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return false;
	if (n_more >= 0) {
		next = fcntl(0, F_DUPFD_CLOEXEC, 0); /* the lowest free descriptor number */
		if (next < 0)
			return false;
		close(next);
	}
	limit.rlim_cur = n_more < 0 ? limit.rlim_max : (rlim_t)(next + n_more);
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

bool attacher_start(struct fault *f, const struct actor *a, struct child *out)
{
	if (child_start(f, attacher_role, a, out))
		return true;
	return fault_failed(f, "fork failed: no more processes");
}

bool owner_start(struct fault *f, const struct actor *a, struct child *out)
{
	struct note n;

	if (!child_start(f, owner_role, a, out)) {
		return fault_failed(f, "fork failed: no more processes");
	}
	if (!note_receive(out->line, FAULT_WAIT_MS, &n))
		snprintf(n.text, sizeof n.text, "no answer");
	else if (n.command == 'r')
		return true;
	else
		f->not_here = n.status == GPUL_EUNSUPPORTED || (n.status == GPUL_ECUDA && n.native == CUDA_ERROR_NOT_SUPPORTED);
	fault_failed(f, "the owner is not ready: %s", n.text);
	child_kill(out);
	return false;
}

bool must(struct fault *f, const struct child *c, char command, int64_t value)
{
	struct note n;

	if (!child_do(c, command, value, &n))
		fault_failed(f, "'%c': no answer", command);
	else if (n.command != command)
		fault_failed(f, "the answer to command '%c' is for command '%c': %s", command, n.command, n.text);
	else if (!n.good)
		fault_failed(f, "'%c': %s", command, n.text);
	else
		return true;
	return false;
}

bool must_attach(struct fault *f, const struct child *c)
{
	for (int tries = 0; tries < 10; tries++)
		if (must(f, c, 'a', FAULT_WAIT_MS))
			return true;
		else if (!strstr(f->text, "in time"))
			return false;
	return false;
}

bool owner_event(struct fault *f, const struct child *owner, gpul_ipc_event_kind wanted)
{
	struct note n;

	if (!note_receive(owner->line, FAULT_WAIT_MS, &n))
		fault_failed(f, "the owner reported no event instead of %s", gpul_ipc_event_name(wanted));
	else if (n.command != 'v' || n.event != (int)wanted)
		fault_failed(f, "the owner reported '%c' %s (%s) instead of %s", n.command,
			     gpul_ipc_event_name((gpul_ipc_event_kind)n.event), n.text, gpul_ipc_event_name(wanted));
	else
		return true;
	return false;
}

bool actor_end(struct fault *f, struct child *c)
{
	struct note n = { .command = 'e' };
	int status;

	note_send(c->line, &n);
	while (note_receive(c->line, FAULT_WAIT_MS, &n))
		if (n.command == 'e' && !n.good) {
			fault_failed(f, "when the actor ended: %s", n.text);
			child_kill(c);
			return false;
		}
	status = child_end(c, FAULT_WAIT_MS);
	if (status)
		fault_failed(f, "the actor ended with wait status %#x", status);
	return status == 0;
}
