/* oob_connect.c — connects to a listener, and retries until the deadline, because the listener may start later. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "rdma/oob/channel.h"

enum { TRY_AGAIN_NS = 20000000 };

static int left_ms(uint64_t deadline_ns)
{
	uint64_t now = gpul_clock_ns(), ms = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;

	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

/* True if a socket is connected to itself.  This happens if nothing listens on a local port and the system chooses the same port
 * for this end of the connection (TCP's simultaneous open). */
static bool is_own_end(int fd)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	socklen_t n_here = sizeof here, n_there = sizeof there;

	return getsockname(fd, (struct sockaddr *)&here, &n_here) == 0 && here.ss_family != AF_UNIX &&
	       getpeername(fd, (struct sockaddr *)&there, &n_there) == 0 && n_here == n_there && memcmp(&here, &there, n_here) == 0;
}

/* Wait until a connection has been made.  Returns 0 or errno. */
static int finish_connect(int fd, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int error = 0, n;
	socklen_t n_bytes = sizeof error;

	while ((n = poll(&p, 1, left_ms(deadline_ns))) < 0 && errno == EINTR)
		;
	if (n <= 0)
		return n ? errno : ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n_bytes) ? errno : error;
}

static int try_connect(const struct sockaddr *to, socklen_t n_bytes, uint64_t deadline_ns, int *out)
{
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, to, n_bytes))
		error = errno == EINPROGRESS || errno == EINTR ? finish_connect(fd, deadline_ns) : errno;
	if (!error && is_own_end(fd))
		error = ECONNREFUSED;
	if (error)
		close(fd);
	else
		*out = fd;
	return error;
}

/* True for errors that a retry may avoid: nothing listens yet, the Unix socket does not exist yet, or its queue is full. */
static bool may_pass(int error)
{
	return error == ECONNREFUSED || error == ENOENT || error == EAGAIN;
}

/* Try each address once.  Returns 0, or the error to report: the first one that a retry may avoid, else the last one. */
static int try_all(const gpul_rdma_resolved *to, uint64_t deadline_ns, int *fd)
{
	int reported = 0;

	for (unsigned i = 0; i < to->n; i++) {
		uint64_t now = gpul_clock_ns(), left = now < deadline_ns ? deadline_ns - now : 0;
		uint64_t until = i + 1 < to->n ? now + left / 2 : deadline_ns; /* leave time for the other addresses */
		int error = try_connect((const struct sockaddr *)&to->sockaddrs[i].at, to->sockaddrs[i].bytes, until, fd);

		if (!error)
			return 0;
		if (!may_pass(reported))
			reported = error;
	}
	return reported;
}

gpul_status gpul_rdma_channel_connect(const gpul_rdma_address *to, uint64_t deadline_ns, gpul_rdma_channel **out, gpul_error *err)
{
	uint64_t begun = gpul_clock_ns();
	gpul_rdma_resolved resolved;
	gpul_status st = gpul_rdma_address_resolve(to, false, &resolved, err);
	char name[GPUL_RDMA_ADDRESS_BYTES];
	int fd = -1, error;

	if (st)
		return st;
	while ((error = try_all(&resolved, deadline_ns, &fd)) && may_pass(error) && gpul_clock_ns() < deadline_ns)
		nanosleep(&(struct timespec){ .tv_nsec = TRY_AGAIN_NS }, NULL);
	if (error) {
		gpul_rdma_address_print(to, name);
		return gpul_fail(err, GPUL_ESYS, error,
				 "cannot connect to %s: %s (tried for %.1f s): check that a server listens there, and that no firewall "
				 "blocks the port",
				 name, strerror(error), (double)(gpul_clock_ns() - begun) / 1e9);
	}
	st = gpul_rdma_channel_create(fd, out, err);
	if (st)
		close(fd);
	return st;
}
