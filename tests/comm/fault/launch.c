/* launch.c — start the ranks of a round, in this environment or in a restricted one (enum place). */
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

#include "comm/bootstrap/launch.h"
#include "tests/comm/fault/fault.h"

enum { GRACE_MS = 60000, FEW_FILES = 64 };

static bool own_mounts(void)
{
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Restrict this process as `place` says; the folder of the sockets stays writable. */
static bool enter(enum place place, const char *folder)
{
	const struct rlimit few = { FEW_FILES, FEW_FILES };

	switch (place) {
	case PLACE_NO_SHM:
		return own_mounts() && mount("none", "/dev/shm", "tmpfs", MS_RDONLY, NULL) == 0;
	case PLACE_PIDS:
		return unshare(CLONE_NEWPID) == 0;
	case PLACE_NO_TMP:
		return own_mounts() && mount("/tmp", "/tmp", NULL, MS_BIND | MS_REC, NULL) == 0 &&
		       mount("none", folder, "tmpfs", 0, "mode=0700") == 0 &&
		       mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0;
	case PLACE_FEW_FILES:
		return setrlimit(RLIMIT_NOFILE, &few) == 0;
	case PLACE_HERE:
		break;
	}
	return true;
}

bool permitted(enum place place)
{
	char folder[] = "/tmp/gpuload-place-XXXXXX";
	pid_t pid;
	int status = 1;

	if (!mkdtemp(folder))
		return false;
	pid = fork();
	if (pid == 0)
		_exit(!enter(place, folder));
	(void)waitpid(pid, &status, 0);
	(void)rmdir(folder);
	return status == 0;
}

static _Noreturn void run_launcher(struct shared *s, int shared_fd)
{
	char number[16], self[] = "/proc/self/exe"; /* works in a chroot, where the path of the program does not exist */
	char *argv[] = { self, "--rank", number, NULL };
	const gpul_comm_launch_options o = { .argv = argv, .n = s->n_ranks, .grace_ms = GRACE_MS };
	gpul_error err = { 0 };

	(void)snprintf(number, sizeof number, "%d", shared_fd);
	(void)gpul_comm_launch(&o, &s->exit_status, &err);
	memcpy(s->launcher_text, err.text, sizeof s->launcher_text);
	_exit(0);
}

pid_t launch(struct shared *s, int shared_fd, const char *folder)
{
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!enter(s->place, folder))
		_exit(2);
	if (s->place == PLACE_PIDS) { /* fork, because only children of this process are in the new namespace */
		int status = 1;

		pid = fork();
		if (pid == 0)
			run_launcher(s, shared_fd);
		_exit(pid < 0 || waitpid(pid, &status, 0) != pid || status != 0);
	}
	run_launcher(s, shared_fd);
}
