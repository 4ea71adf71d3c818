/* name.c — acquires and releases the ownership of a name, by a lock file.
 *
 * The owner holds an flock on NAME.lock.  The kernel releases it when the last process that holds it ends, so a socket file alone
 * does not mean that its owner runs.  Both files are removed while the lock is held; a process that then locks the removed file
 * detects that it is no longer at the path, and tries again. */
#include "ipc/name.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Several attempts, because a process that removes the files of an ended owner holds the lock for a short time. */
enum { MAX_TRIES = 20, TRY_AGAIN_NS = 1000000 };

static void lock_path(const char *socket, char out[GPUL_IPC_LOCK_BYTES])
{
	size_t n = strlen(socket), cut = n > 5 && strcmp(socket + n - 5, ".sock") == 0 ? n - 5 : n;

	snprintf(out, GPUL_IPC_LOCK_BYTES, "%.*s.lock", (int)cut, socket);
}

static gpul_status report_owner(const char *lock_name, const char *path, gpul_error *err)
{
	char text[24] = "";
	int fd = open(lock_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (fd >= 0)
		close(fd);

	if (pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH)
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)pid,
				 "%s is still locked: process %ld, which created it, has ended, but a child process that it "
				 "forked still runs",
				 path, pid);
	if (pid > 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)pid, "process %ld already shares memory as %s", pid, path);
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "another process already shares memory as %s", path);
}

/* True if fd is still the file at the path, and is a regular file of this user with one link: in a folder that other users can
 * write to, the path could lead to any file. */
static bool is_ours_at(int fd, const char *path, gpul_status *st, gpul_error *err)
{
	struct stat ours, there;

	*st = GPUL_OK;
	if (fstat(fd, &ours) || lstat(path, &there) || ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)
		return false;
	if (!S_ISREG(ours.st_mode) || ours.st_nlink != 1 || ours.st_uid != geteuid())
		*st = gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s is not a lock file of user %u, so it is left as it is", path,
				(unsigned)geteuid());
	return *st == GPUL_OK;
}

/* Try once to lock the file.  *busy: another process holds the lock, or has removed the file meanwhile. */
static gpul_status try_lock_file(const char *path, int *out, bool *busy, gpul_error *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	gpul_status st = GPUL_OK;

	*busy = false;
	if (fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		*busy = errno == EWOULDBLOCK;
		if (!*busy)
			st = gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	} else if (is_ours_at(fd, path, &st, err)) {
		*out = fd;
		return GPUL_OK;
	} else {
		*busy = !st;
	}
	close(fd);
	return st;
}

static gpul_status lock_name(const char path[GPUL_IPC_PATH_BYTES], struct gpul_ipc_name *out, gpul_error *err)
{
	memcpy(out->socket, path, strlen(path) + 1);
	lock_path(path, out->lock);
	out->lock_fd = -1;
	out->has_socket = false;
	for (int i = 0; i < MAX_TRIES; i++) {
		bool busy;
		gpul_status st = try_lock_file(out->lock, &out->lock_fd, &busy, err);

		if (!busy)
			return st;
		nanosleep(&(struct timespec){ .tv_nsec = TRY_AGAIN_NS }, NULL);
	}
	return report_owner(out->lock, out->socket, err);
}

gpul_status gpul_ipc_name_take(const char path[GPUL_IPC_PATH_BYTES], struct gpul_ipc_name *out, gpul_error *err)
{
	gpul_status st = lock_name(path, out, err);
	char text[24];
	int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());

	if (st)
		return st;
	if (ftruncate(out->lock_fd, 0) || pwrite(out->lock_fd, text, (size_t)n, 0) != n) {
		st = gpul_fail(err, GPUL_ESYS, errno, "%s: %s", out->lock, strerror(errno));
		gpul_ipc_name_release(out);
	}
	return st;
}

/* Test a socket: 1: a process listens on it; 0: no process listens; -1: unknown, see errno. */
static int has_listener(const char path[GPUL_IPC_PATH_BYTES])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), listens;

	if (fd < 0)
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	/* EPROTOTYPE (another socket type) and EAGAIN (full backlog) mean that a process listens. */
	listens = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || (errno != ECONNREFUSED && errno != ENOENT);
	close(fd);
	return listens;
}

gpul_status gpul_ipc_socket_remove_dead(const char path[GPUL_IPC_PATH_BYTES], gpul_error *err)
{
	struct stat there;
	int listens = 1;

	if (lstat(path, &there))
		return errno == ENOENT ? GPUL_OK : gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(there.st_mode))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s exists and is not a socket, so it is left as it is", path);
	/* Try several times, because the kernel releases the lock of a killed process shortly before it closes the socket. */
	for (int i = 0; i < MAX_TRIES && (listens = has_listener(path)) > 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = TRY_AGAIN_NS }, NULL);
	if (listens > 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "another program listens on %s, so it is left as it is", path);
	if (listens < 0 || (unlink(path) && errno != ENOENT))
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	return GPUL_OK;
}

/* True if an owner that has ended may have left files: a socket, or, if it was killed before it created the socket, only the
 * lock file.  Outside gpuload's folder of sockets, a lock file alone does not count, because it may belong to another program. */
static bool has_files(const char *name, const char path[GPUL_IPC_PATH_BYTES])
{
	char lock[GPUL_IPC_LOCK_BYTES];
	struct stat there;

	if (lstat(path, &there) == 0)
		return S_ISSOCK(there.st_mode);
	lock_path(path, lock);
	return !strchr(name, '/') && lstat(lock, &there) == 0 && S_ISREG(there.st_mode);
}

gpul_status gpul_ipc_place_clear(const char *name, bool *cleared, gpul_error *err)
{
	char path[GPUL_IPC_PATH_BYTES];
	struct gpul_ipc_name dead;
	gpul_error why = { 0 };
	gpul_status st = gpul_ipc_place(name, false, path, err);

	*cleared = false;
	if (st || !has_files(name, path))
		return st;
	st = lock_name(path, &dead, &why);
	if (st == GPUL_EUNSUPPORTED)
		return GPUL_OK;
	if (st)
		return gpul_fail(err, st, why.native, "%s", why.text);
	*cleared = gpul_ipc_socket_remove_dead(path, NULL) == GPUL_OK;
	gpul_ipc_name_release(&dead);
	return GPUL_OK;
}

void gpul_ipc_name_release(struct gpul_ipc_name *name)
{
	if (name->lock_fd < 0)
		return;
	/* Both files are removed while the lock is held.  If a file cannot be removed, the next owner of the name replaces it. */
	if (name->has_socket)
		(void)unlink(name->socket);
	(void)unlink(name->lock);
	close(name->lock_fd);
	name->lock_fd = -1;
}
