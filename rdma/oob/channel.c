/* channel.c — sends and receives frames over a socket. */
#include "rdma/oob/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"

static const uint64_t FIRST_LIMIT_NS = 20000000000;

struct gpul_rdma_channel {
	int fd;
	uint64_t opened_ns;
	char peer[GPUL_RDMA_ADDRESS_BYTES];
	struct sockaddr_storage local;
	size_t n_in; /* received bytes of frames that have not been decoded yet */
	unsigned char in[GPUL_RDMA_FRAME_BYTES];
	pthread_mutex_t lock; /* protects n_out and out, because any thread may send */
	size_t n_out;         /* number of bytes in `out`, which the socket had no room for */
	unsigned char out[2 * GPUL_RDMA_FRAME_BYTES];
};

static void name_peer(gpul_rdma_channel *c)
{
	struct sockaddr_storage a = { 0 };
	socklen_t n = sizeof a;

	if (getpeername(c->fd, (struct sockaddr *)&a, &n) == 0 && a.ss_family == AF_UNIX && n <= sizeof a.ss_family) {
		n = sizeof a; /* the peer of an accepted Unix socket has no address: use the address of this end */
		(void)getsockname(c->fd, (struct sockaddr *)&a, &n);
	}
	gpul_rdma_sockaddr_print((struct sockaddr *)&a, n, c->peer);
}

gpul_status gpul_rdma_channel_create(int socket, gpul_rdma_channel **out, gpul_error *err)
{
	gpul_rdma_channel *c = calloc(1, sizeof *c);
	socklen_t local_bytes = sizeof c->local;
	int on = 1;

	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: a connection needs %zu bytes", sizeof *c);
	c->fd = socket;
	c->opened_ns = gpul_clock_ns();
	pthread_mutex_init(&c->lock, NULL);
	name_peer(c);
	(void)getsockname(socket, (struct sockaddr *)&c->local, &local_bytes);
	/* These options fail on a Unix socket, which does not need them. */
	(void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	gpul_rdma_channel_set_limit(c, FIRST_LIMIT_NS);
	*out = c;
	return GPUL_OK;
}

void gpul_rdma_channel_set_limit(gpul_rdma_channel *c, uint64_t limit_ns)
{
	int ms = limit_ns / 1000000 < INT32_MAX ? (int)(limit_ns / 1000000) : INT32_MAX, seconds = ms / 2000 + 1;

	/* TCP_USER_TIMEOUT limits the wait for acknowledgements; keepalive makes the peer acknowledge even if nothing is sent. */
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
}

void gpul_rdma_channel_close(gpul_rdma_channel *c)
{
	if (!c)
		return;
	/* Closing a socket with unread bytes sends a reset, and the system then no longer retransmits sent bytes.  So read the rest
	 * first, up to a limit: a peer that never stops sending gets the reset. */
	(void)shutdown(c->fd, SHUT_WR);
	for (int i = 0; i < 16 && recv(c->fd, c->in, sizeof c->in, MSG_DONTWAIT) > 0; i++)
		;
	close(c->fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void gpul_rdma_channel_shutdown(gpul_rdma_channel *c)
{
	(void)shutdown(c->fd, SHUT_RDWR);
}

int gpul_rdma_channel_fd(const gpul_rdma_channel *c)
{
	return c->fd;
}

const struct sockaddr *gpul_rdma_channel_local(const gpul_rdma_channel *c)
{
	return (const struct sockaddr *)&c->local;
}

const char *gpul_rdma_channel_peer(const gpul_rdma_channel *c)
{
	return c->peer;
}

/* Add the peer's address and the time to a failure that has just been recorded in *why. */
static gpul_status with_peer(const gpul_rdma_channel *c, gpul_rdma_failure *why)
{
	if (!why->after_ns && !why->by_peer)
		why->after_ns = gpul_clock_ns() - c->opened_ns;
	if (!why->peer[0])
		memcpy(why->peer, c->peer, sizeof why->peer);
	return why->status;
}

static gpul_status socket_failed(const gpul_rdma_channel *c, const char *call, int native, gpul_rdma_failure *why)
{
	static const char ended[] = "read the last messages of the peer's process";

	if (native == EPIPE || native == ECONNRESET) /* a reset (ECONNRESET): the peer's process ended before it had read all bytes */
		(void)gpul_rdma_fail(why, GPUL_ESYS, native, "socket", ended, "the peer's process has ended");
	else if (native == ETIMEDOUT)
		(void)gpul_rdma_fail(why, GPUL_ESYS, native, "socket",
				     "check that the peer's machine is running, and that the network works",
				     "the peer's machine does not answer");
	else
		(void)gpul_rdma_fail(why, GPUL_ESYS, native, call, NULL, "%s", strerror(native));
	return with_peer(c, why);
}

/* ---- send ------------------------------------------------------------------------------------------------------- */

/* Send as much of c->out as the socket accepts.  Returns 0 or errno. */
static int flush_out(gpul_rdma_channel *c)
{
	while (c->n_out) {
		ssize_t n = send(c->fd, c->out, c->n_out, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
		c->n_out -= (size_t)n;
		memmove(c->out, c->out + n, c->n_out);
	}
	return 0;
}

gpul_status gpul_rdma_channel_send(gpul_rdma_channel *c, const gpul_rdma_frame *frame, gpul_rdma_failure *why)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	size_t n = gpul_rdma_frame_encode(frame, bytes);
	bool full;
	int error;

	pthread_mutex_lock(&c->lock);
	error = flush_out(c);
	full = n > sizeof c->out - c->n_out;
	if (!error && !full) {
		memcpy(c->out + c->n_out, bytes, n);
		c->n_out += n;
		error = flush_out(c);
	}
	pthread_mutex_unlock(&c->lock);
	if (error)
		return socket_failed(c, "send", error, why);
	if (!full)
		return GPUL_OK;
	(void)gpul_rdma_fail(why, GPUL_ESYS, EAGAIN, "send", "check that the peer's process is not stopped",
			     "the peer does not receive messages, so the socket's buffer is full");
	return with_peer(c, why);
}

/* ---- receive ---------------------------------------------------------------------------------------------------- */

/* Convert the frames that end a connection into failures. */
static gpul_status check_end(const gpul_rdma_channel *c, const gpul_rdma_frame *frame, gpul_rdma_failure *why)
{
	if (frame->type == GPUL_RDMA_BYE)
		(void)gpul_rdma_fail(why, GPUL_ESYS, ESHUTDOWN, "socket", NULL, "the peer has closed the connection");
	else if (frame->type != GPUL_RDMA_FAILED && frame->type != GPUL_RDMA_REFUSED)
		return GPUL_OK;
	else if (!why->status)
		*why = frame->failure;
	return with_peer(c, why);
}

/* Decode a frame from c->in. */
static gpul_status next_frame(gpul_rdma_channel *c, gpul_rdma_frame *out, bool *got, gpul_rdma_failure *why)
{
	gpul_error err = { 0 };
	size_t used;

	if (gpul_rdma_frame_decode(c->in, c->n_in, out, &used, &err)) {
		(void)gpul_rdma_fail(why, GPUL_EFORMAT, 0, "socket", NULL, "%s", err.text);
		return with_peer(c, why);
	}
	*got = used > 0;
	if (!*got)
		return GPUL_OK;
	c->n_in -= used;
	memmove(c->in, c->in + used, c->n_in);
	return check_end(c, out, why);
}

gpul_status gpul_rdma_channel_receive(gpul_rdma_channel *c, gpul_rdma_frame *out, bool *got, gpul_rdma_failure *why)
{
	for (;;) {
		gpul_status st = next_frame(c, out, got, why);
		ssize_t n;

		if (st || *got)
			return st;
		/* There is always room, because c->in can hold a whole frame, and whole frames have been decoded. */
		n = recv(c->fd, c->in + c->n_in, sizeof c->in - c->n_in, MSG_DONTWAIT);
		if (n == 0)
			return socket_failed(c, "recv", EPIPE, why);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return GPUL_OK;
		if (n < 0 && errno != EINTR)
			return socket_failed(c, "recv", errno, why);
		c->n_in += n > 0 ? (size_t)n : 0;
	}
}

/* Wait until the socket is readable or `ns` have passed; meanwhile send what remains in c->out. */
static void wait_readable(gpul_rdma_channel *c, uint64_t ns)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	pthread_mutex_lock(&c->lock);
	(void)flush_out(c); /* an error of the socket is reported by the next recv() */
	if (c->n_out)
		p.events |= POLLOUT;
	pthread_mutex_unlock(&c->lock);
	(void)poll(&p, 1, ns / 1000000 < 60000 ? (int)(ns / 1000000) + 1 : 60000);
}

gpul_status gpul_rdma_channel_await(gpul_rdma_channel *c, gpul_rdma_frame_type type, uint64_t deadline_ns, gpul_rdma_frame *out,
				    gpul_rdma_failure *why)
{
	for (;;) {
		uint64_t now = gpul_clock_ns();
		bool got;
		gpul_status st = gpul_rdma_channel_receive(c, out, &got, why);

		if (st || (got && out->type == type))
			return st;
		if (got && out->type != GPUL_RDMA_BEAT) {
			(void)gpul_rdma_fail(why, GPUL_EFORMAT, 0, "handshake", NULL, "the peer sent %s instead of %s",
					     gpul_rdma_frame_name(out->type), gpul_rdma_frame_name(type));
			return with_peer(c, why);
		}
		if (now >= deadline_ns) { /* The deadline also ends the wait if heartbeats keep arriving. */
			(void)gpul_rdma_fail(why, GPUL_ESYS, ETIMEDOUT, "handshake",
					     "check that the peer is gpuload, and that its process is not stopped",
					     "the peer did not send %s in time", gpul_rdma_frame_name(type));
			return with_peer(c, why);
		}
		if (!got)
			wait_readable(c, deadline_ns - now);
	}
}
