/* name.c — see place_internal.h: who owns a name.
 *
 * An flock on NAME.lock says it, and the kernel drops that with its last holder: a dead owner's socket file means
 * nothing.  Both files are removed while the lock is held; whoever waited for a removed lock file
 * sees that it is not the one at the path any more, and tries again. */
#include "ipc/place_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TRIES = 100 };  /* each means that another owner came and went in between */

static void lock_path(const char *socket, char out[LOCK_PATH_BYTES])
{
	size_t n = strlen(socket), cut = n > 5 && strcmp(socket + n - 5, ".sock") == 0 ? n - 5 : n;

	snprintf(out, LOCK_PATH_BYTES, "%.*s.lock", (int)cut, socket);
}

static gpul_status is_taken(int fd, const char *path, gpul_error *err)
{
	char text[24] = "";
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH)
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)pid,
				 "%s is still locked: process %ld, which offered it, has ended, but one that it "
				 "forked lives on", path, pid);
	if (pid > 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)pid, "process %ld offers %s already", pid, path);
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "another process offers %s already", path);
}

static bool is_at(int fd, const char *path)
{
	struct stat ours, there;

	return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
	       ours.st_dev == there.st_dev;
}

static bool write_pid(int fd)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());

	return ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n;
}

static gpul_status failed(int fd, const char *path, gpul_error *err)
{
	gpul_status st = gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));

	if (fd >= 0)
		close(fd);
	return st;
}

gpul_status gpul_ipc_name_take(const char path[GPUL_IPC_PATH_BYTES], bool make, struct gpul_ipc_lease_name *out,
			       gpul_error *err)
{
	memcpy(out->socket, path, strlen(path) + 1);
	lock_path(path, out->lock);
	out->lock_fd = -1;
	for (int i = 0; i < MAX_TRIES; i++) {
		int fd = open(out->lock, O_RDWR | (make ? O_CREAT : 0) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

		if (fd < 0)
			return failed(fd, out->lock, err);
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			gpul_status st = errno == EWOULDBLOCK ? is_taken(fd, out->socket, err)
							      : gpul_fail(err, GPUL_ESYS, errno, "%s: %s", out->lock,
									  strerror(errno));
			close(fd);
			return st;
		}
		if (!is_at(fd, out->lock)) {
			close(fd);
			continue;
		}
		if (!write_pid(fd))
			return failed(fd, out->lock, err);
		out->lock_fd = fd;
		return GPUL_OK;
	}
	return gpul_fail(err, GPUL_ESYS, EAGAIN, "%s: others took and left it %d times", out->lock, MAX_TRIES);
}

void gpul_ipc_name_release(struct gpul_ipc_lease_name *name)
{
	if (name->lock_fd < 0)
		return;
	/* The socket first: a lock file without a socket is free, a socket without a lock file, too. */
	(void)unlink(name->socket);
	(void)unlink(name->lock);
	close(name->lock_fd);
	name->lock_fd = -1;
}
