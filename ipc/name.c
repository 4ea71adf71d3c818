/* name.c — see place_internal.h: who owns a name.
 *
 * An flock on NAME.lock says it, and the kernel drops that with its last holder: a dead owner's
 * socket file means nothing.  Both files are removed while the lock is held; whoever waited for
 * a removed lock file sees that it is not the one at the path any more, and tries again. */
#include "ipc/place_internal.h"

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

/* Whoever clears a dead owner's files holds the lock for as long as that takes. */
enum { MAX_TRIES = 20, TRY_AGAIN_NS = 1000000 };

static void lock_path(const char *socket, char out[LOCK_PATH_BYTES])
{
	size_t n = strlen(socket),
	       cut = n > 5 && strcmp(socket + n - 5, ".sock") == 0 ? n - 5 : n;

	snprintf(out, LOCK_PATH_BYTES, "%.*s.lock", (int)cut, socket);
}

static gpul_status is_taken(const char *lock, const char *path, gpul_error *err)
{
	char text[24] = "";
	int fd = open(lock, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (fd >= 0)
		close(fd);

	if (pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH)
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)pid,
				 "%s is still locked: process %ld, which offered it, has "
				 "ended, but one that it "
				 "forked lives on",
				 path, pid);
	if (pid > 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, (int)pid,
				 "process %ld offers %s already", pid, path);
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "another process offers %s already", path);
}

/* Still the file at the path, and one that only we have: what lies in a folder that others
 * write to may be anything. */
static bool is_ours_at(int fd, const char *path, gpul_status *st, gpul_error *err)
{
	struct stat ours, there;

	*st = GPUL_OK;
	if (fstat(fd, &ours) || lstat(path, &there) || ours.st_ino != there.st_ino ||
	    ours.st_dev != there.st_dev)
		return false;
	if (!S_ISREG(ours.st_mode) || ours.st_nlink != 1 || ours.st_uid != geteuid())
		*st = gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				"%s is not a lock file of user %u: it is left alone", path,
				(unsigned)geteuid());
	return *st == GPUL_OK;
}

/* One try; *busy: the lock is held, or was on a file that is gone. */
static gpul_status try_lock(const char *path, int *out, bool *busy, gpul_error *err)
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

static gpul_status lock(const char path[GPUL_IPC_PATH_BYTES], struct gpul_ipc_lease_name *out,
			gpul_error *err)
{
	memcpy(out->socket, path, strlen(path) + 1);
	lock_path(path, out->lock);
	out->lock_fd = -1;
	out->has_socket = false;
	for (int i = 0; i < MAX_TRIES; i++) {
		bool busy;
		gpul_status st = try_lock(out->lock, &out->lock_fd, &busy, err);

		if (!busy)
			return st;
		nanosleep(&(struct timespec){ .tv_nsec = TRY_AGAIN_NS }, NULL);
	}
	return is_taken(out->lock, out->socket, err);
}

gpul_status gpul_ipc_name_take(const char path[GPUL_IPC_PATH_BYTES],
			       struct gpul_ipc_lease_name *out, gpul_error *err)
{
	gpul_status st = lock(path, out, err);
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

/* Does anybody listen there?  -1: cannot be told, see errno. */
static int is_alive(const char path[GPUL_IPC_PATH_BYTES])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), alive;

	if (fd < 0)
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	/* One of another type is EPROTOTYPE, one with a full backlog EAGAIN: alive, both. */
	alive = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ||
		(errno != ECONNREFUSED && errno != ENOENT);
	close(fd);
	return alive;
}

gpul_status gpul_ipc_socket_remove_dead(const char path[GPUL_IPC_PATH_BYTES], gpul_error *err)
{
	struct stat there;
	int alive = 1;

	if (lstat(path, &there))
		return errno == ENOENT ? GPUL_OK
				       : gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path,
						   strerror(errno));
	if (!S_ISSOCK(there.st_mode))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s is there and no socket: it is left alone", path);
	/* A process that dies gives its lock back a moment before its socket. */
	for (int i = 0; i < MAX_TRIES && (alive = is_alive(path)) > 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = TRY_AGAIN_NS }, NULL);
	if (alive > 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "another program listens at %s: it is left alone", path);
	if (alive < 0 || (unlink(path) && errno != ENOENT))
		return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	return GPUL_OK;
}

gpul_status gpul_ipc_place_clear(const char *name, bool *cleared, gpul_error *err)
{
	char path[GPUL_IPC_PATH_BYTES];
	struct gpul_ipc_lease_name dead;
	struct stat there;
	gpul_error why = { 0 };
	gpul_status st = gpul_ipc_place(name, false, path, err);

	*cleared = false;
	if (st || lstat(path, &there) || !S_ISSOCK(there.st_mode))
		return st;
	st = lock(path, &dead, &why);
	if (st == GPUL_EUNSUPPORTED)
		return GPUL_OK;
	if (st)
		return gpul_fail(err, st, why.native, "%s", why.text);
	*cleared = gpul_ipc_socket_remove_dead(path, NULL) == GPUL_OK;
	gpul_ipc_name_release(&dead);
	return GPUL_OK;
}

void gpul_ipc_name_release(struct gpul_ipc_lease_name *name)
{
	if (name->lock_fd < 0)
		return;
	/* The socket first: a lock file without a socket is free, a socket without a lock file,
	 * too. */
	if (name->has_socket)
		(void)unlink(name->socket);
	(void)unlink(name->lock);
	close(name->lock_fd);
	name->lock_fd = -1;
}
