/* socket.c — see socket_internal.h.
 *
 * Descriptors are the dangerous part of a message.  The kernel installs as many as the control
 * buffer has room for, and room for one int is, by alignment, room for two; whoever looks at
 * the first alone leaks the second.  So there is room here for all that a message can carry
 * (253), and what is not expected is closed. */
#include "ipc/socket_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"

enum { MAX_FDS = 253 }; /* SCM_MAX_FD of Linux */

#ifndef SO_PEERPIDFD
#if defined __hppa__ || defined __sparc__
#error "what is SO_PEERPIDFD here?"
#endif
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

static gpul_status send_it(int socket, struct msghdr *m, gpul_error *err)
{
	ssize_t n;

	do
		n = sendmsg(socket, m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return GPUL_OK;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return gpul_fail(err, GPUL_ESYS, EAGAIN,
				 "the other side does not read what it is sent");
	if (errno == ETOOMANYREFS)
		return gpul_fail(err, GPUL_ESYS, errno,
				 "too many descriptors of this user are under way in sockets: "
				 "some process does not receive them");
	return gpul_fail(err, GPUL_ESYS, errno, "sendmsg: %s", strerror(errno));
}

/* One control message behind the bytes: n_extra bytes of that type. */
static gpul_status send_with(int socket, const void *message, size_t n_bytes, int type,
			     const void *extra, size_t n_extra, gpul_error *err)
{
	union {
		struct cmsghdr align;
		unsigned char room[CMSG_SPACE(sizeof(struct ucred))];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)message, .iov_len = n_bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (n_extra) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_extra);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = type;
		c->cmsg_len = CMSG_LEN(n_extra);
		memcpy(CMSG_DATA(c), extra, n_extra);
	}
	return send_it(socket, &m, err);
}

gpul_status gpul_ipc_send(int socket, const void *message, size_t n_bytes, int fd,
			  gpul_error *err)
{
	return send_with(socket, message, n_bytes, SCM_RIGHTS, &fd, fd >= 0 ? sizeof fd : 0,
			 err);
}

gpul_status gpul_ipc_send_signed(int socket, const void *message, size_t n_bytes,
				 gpul_error *err)
{
	struct ucred me = { .pid = getpid(), .uid = geteuid(), .gid = getegid() };

	return send_with(socket, message, n_bytes, SCM_CREDENTIALS, &me, sizeof me, err);
}

/* Take what came beside the bytes.  Returns how many descriptors there were; the first is in
 * *fd, the others are closed already. */
static size_t take_control(struct msghdr *m, int *fd, struct gpul_ipc_identity *who)
{
	size_t n_fds = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS && n >= sizeof(struct ucred) && who) {
			struct ucred from;

			memcpy(&from, CMSG_DATA(c), sizeof from);
			who->pid = from.pid;
			who->uid = from.uid;
		}
		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < n / sizeof(int); i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof one, sizeof one);
			if (n_fds++)
				close(one);
			else
				*fd = one;
		}
	}
	return n_fds;
}

static gpul_status check_packet(const struct msghdr *m, size_t n_bytes, size_t n_fds,
				gpul_ipc_message *out, gpul_error *err)
{
	gpul_status st;
	bool wanted;

	if (m->msg_flags & MSG_CTRUNC)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "a message whose descriptor was cut off: is the limit of open "
				 "files (ulimit -n) reached?");
	if (m->msg_flags & MSG_TRUNC)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "a message longer than any that there is");
	st = gpul_ipc_wire_parse(m->msg_iov->iov_base, n_bytes, out, err);
	if (st)
		return st;
	wanted = out->head.type == WIRE_OFFER && out->offer.share.via == WIRE_VIA_FD;
	if (n_fds != wanted)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s with %zu descriptors instead of %d",
				 gpul_ipc_wire_name(out->head.type), n_fds, wanted);
	return GPUL_OK;
}

gpul_ipc_got gpul_ipc_receive(int socket, gpul_ipc_message *out, int *fd,
			      struct gpul_ipc_identity *who, gpul_error *err)
{
	union {
		struct cmsghdr align;
		unsigned char room[CMSG_SPACE(MAX_FDS * sizeof(int)) +
				   CMSG_SPACE(sizeof(struct ucred))];
	} control;
	unsigned char bytes[sizeof *out];
	struct iovec part = { .iov_base = bytes, .iov_len = sizeof bytes };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof control };
	size_t n_fds;
	ssize_t n;

	*fd = -1;
	/* ECONNRESET is told once, when the other side closed with something unread; what it
	 * sent before (why it closed, say) is still there behind it. */
	do
		n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return GOT_NOTHING;
	if (n < 0)
		return GOT_END;
	n_fds = take_control(
		&m, fd, who); /* before anything else: an empty packet can bring them, too */
	if (n > 0 && check_packet(&m, (size_t)n, n_fds, out, err) == GPUL_OK)
		return GOT_MESSAGE;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return n > 0 ? GOT_BAD : GOT_END;
}

struct gpul_ipc_identity gpul_ipc_identify(int socket)
{
	struct ucred other;
	socklen_t n = sizeof other;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &n))
		return (struct gpul_ipc_identity){ .uid = (uid_t)-1, .pidfd = -1 };
	return (struct gpul_ipc_identity){ .pid = other.pid, .uid = other.uid, .pidfd = -1 };
}

void gpul_ipc_watch(struct gpul_ipc_identity *who, int socket, bool by_pid)
{
	socklen_t n = sizeof who->pidfd;

	if (!by_pid && getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &who->pidfd, &n) == 0)
		return;
	who->pidfd = -1;
#ifdef SYS_pidfd_open
	/* An older kernel: the number may belong to another process by now, but only when the
	 * one that was meant has ended, and then its connection has, too. */
	if (who->pid > 0)
		who->pidfd = (int)syscall(SYS_pidfd_open, who->pid, 0);
#endif
}

gpul_status gpul_ipc_adopt(int socket, gpul_error *err)
{
	int domain = 0, type = 0, on = 1;
	socklen_t n = sizeof domain;

	if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &n) ||
	    getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &n) || domain != AF_UNIX ||
	    type != SOCK_SEQPACKET)
		return gpul_fail(err, GPUL_EINVAL, socket,
				 "descriptor %d is no Unix socket of type SEQPACKET", socket);
	if (fcntl(socket, F_SETFD, FD_CLOEXEC) ||
	    setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on))
		return gpul_fail(err, GPUL_ESYS, errno, "a handed-over socket: %s",
				 strerror(errno));
	return GPUL_OK;
}

int gpul_ipc_left_ms(uint64_t begun_ns, int timeout_ms)
{
	uint64_t passed_ms;

	if (timeout_ms <= 0)
		return timeout_ms;
	passed_ms = (gpul_clock_ns() - begun_ns) / 1000000;
	return passed_ms >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int)passed_ms;
}
