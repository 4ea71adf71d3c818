/* port.c — opens listening sockets. */
#include "rdma/oob/port.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 512 };

/* ---- Unix sockets: PATH.lock is locked while PATH is in use --------------------------------------------------------- */

static void lock_path(const char *path, char out[128])
{
	snprintf(out, 128, "%s.lock", path);
}

/* Lock PATH.lock.  The kernel releases the lock when the process that holds it ends, but its socket file remains.  Returns 0 or errno. */
static int lock_unix_path(const char *path, int *out)
{
	char lock[128];

	lock_path(path, lock);
	for (;;) {
		struct stat ours, there;
		int fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600), error;

		if (fd < 0)
			return errno;
		if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &ours)) {
			error = errno == EWOULDBLOCK ? EADDRINUSE : errno;
			close(fd);
			return error;
		}
		if (lstat(lock, &there) == 0 && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
			*out = fd;
			return 0;
		}
		close(fd); /* another process removed the file between open() and flock(): try again */
	}
}

/* True if a process listens on the path: a program that does not use the lock may do so. */
static bool has_listener(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool has;

	if (fd < 0)
		return true; /* cannot be tested, so assume that a process listens */
	snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
	has = connect(fd, (struct sockaddr *)&un, sizeof un) == 0 || (errno != ECONNREFUSED && errno != ENOENT);
	close(fd);
	return has;
}

/* Remove the socket of a process that has ended; the caller holds the lock.  Returns 0 or errno. */
static int remove_dead_socket(const char *path)
{
	struct stat there;

	if (lstat(path, &there))
		return errno == ENOENT ? 0 : errno;
	if (!S_ISSOCK(there.st_mode))
		return EEXIST; /* never remove a file that is not a socket */
	if (has_listener(path))
		return EADDRINUSE;
	return unlink(path) && errno != ENOENT ? errno : 0;
}

static void unlock_unix_path(gpul_rdma_port *p)
{
	char lock[128];

	if (p->lock_fd < 0)
		return;
	lock_path(p->path, lock);
	(void)unlink(lock); /* removed while the lock is held, so that no other process has locked this file */
	close(p->lock_fd);
}

/* ---- Unix and TCP sockets -------------------------------------------------------------------------------------------- */

/* Open a socket that listens at one address.  Returns 0 or errno.  */
static int listen_at(const struct sockaddr *at, socklen_t n_bytes, gpul_rdma_port *p)
{
	int on = 1, off = 0, error;
	struct sockaddr_storage bound = { 0 };
	socklen_t n_bound = sizeof bound;

	p->fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return errno;
	if (at->sa_family != AF_UNIX && setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on))
		goto close_fd;
	if (at->sa_family == AF_INET6 && setsockopt(p->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off))
		goto close_fd;
	if (bind(p->fd, at, n_bytes) || listen(p->fd, BACKLOG) || getsockname(p->fd, (struct sockaddr *)&bound, &n_bound))
		goto close_fd;
	gpul_rdma_sockaddr_print((struct sockaddr *)&bound, n_bound, p->name);
	/* sockaddr_in6 has the port at the same offset as sockaddr_in */
	p->number = bound.ss_family == AF_UNIX ? 0 : ntohs(((struct sockaddr_in *)&bound)->sin_port);
	return 0;
close_fd:
	error = errno;
	close(p->fd);
	return error;
}

/* Listen at the first address that works (the machine may have no IPv6).  Returns 0 or errno. */
static int listen_at_first(const gpul_rdma_resolved *r, gpul_rdma_port *p)
{
	int error = 0;

	for (unsigned i = 0; i < r->n; i++) {
		error = listen_at((const struct sockaddr *)&r->sockaddrs[i].at, r->sockaddrs[i].bytes, p);
		if (!error || error == EADDRINUSE)
			break;
	}
	return error;
}

static gpul_status listen_failed(const gpul_rdma_address *address, int error, gpul_error *err)
{
	char name[GPUL_RDMA_ADDRESS_BYTES];

	gpul_rdma_address_print(address, name);
	if (error == EADDRINUSE)
		return gpul_fail(err, GPUL_ESYS, error, "cannot listen on %s: another process listens there", name);
	if (error == EEXIST)
		return gpul_fail(err, GPUL_ESYS, error, "cannot listen on %s: the file exists and is not a socket", name);
	return gpul_fail(err, GPUL_ESYS, error, "cannot listen on %s: %s", name, strerror(error));
}

gpul_status gpul_rdma_port_open(const gpul_rdma_address *address, gpul_rdma_port *out, gpul_error *err)
{
	gpul_rdma_port p = { .lock_fd = -1 };
	gpul_rdma_resolved resolved;
	gpul_status st = gpul_rdma_address_resolve(address, true, &resolved, err);
	int error = 0;

	if (st)
		return st;
	memcpy(p.path, address->path, sizeof p.path);
	if (p.path[0])
		error = lock_unix_path(p.path, &p.lock_fd);
	if (p.path[0] && !error)
		error = remove_dead_socket(p.path);
	if (!error)
		error = listen_at_first(&resolved, &p);
	if (error) {
		unlock_unix_path(&p);
		return listen_failed(address, error, err);
	}
	*out = p;
	return GPUL_OK;
}

void gpul_rdma_port_close(gpul_rdma_port *p)
{
	close(p->fd);
	if (p->path[0])
		(void)unlink(p->path);
	unlock_unix_path(p);
}
