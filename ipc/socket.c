/* socket.c — sends and receives messages with descriptors, and identifies the process at the other end of a socket.
 *
 * The kernel installs as many received descriptors as fit into the control buffer. Because of alignment, a buffer for one int holds
 * two, so code that reads only the first would leak the second. So the buffer here holds all 253 descriptors that a message can
 * carry, and unexpected descriptors are closed. */
#include "ipc/socket_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"

/* the same number as SCM_MAX_FD, a limit of Linux */
enum { MAX_FDS = 253 };

#ifndef SO_PEERPIDFD
#if defined __hppa__ || defined __sparc__
#error "add the value of SO_PEERPIDFD for this architecture"
#endif
#define SO_PEERPIDFD 77 /* since Linux 6.5 */
#endif

static gpul_status send_packet(int socket, struct msghdr *m, gpul_error *err)
{
	ssize_t n;

	do
		n = sendmsg(socket, m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return GPUL_OK;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return gpul_fail(err, GPUL_ESYS, EAGAIN, "the other process does not receive its messages, so the socket's buffer is full");
	if (errno == ETOOMANYREFS)
		return gpul_fail(err, GPUL_ESYS, errno,
				 "too many file descriptors of this user are waiting in sockets: some process does not receive "
				 "its messages");
	return gpul_fail(err, GPUL_ESYS, errno, "sendmsg: %s", strerror(errno));
}

/* Send the bytes with one control message of the given type; n_extra 0: without a control message. */
static gpul_status send_with_control(int socket, const void *message, size_t n_bytes, int type, const void *extra, size_t n_extra,
				     gpul_error *err)
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
	return send_packet(socket, &m, err);
}

gpul_status gpul_ipc_send(int socket, const void *message, size_t n_bytes, int fd, gpul_error *err)
{
	return send_with_control(socket, message, n_bytes, SCM_RIGHTS, &fd, fd >= 0 ? sizeof fd : 0, err);
}

gpul_status gpul_ipc_send_signed(int socket, const void *message, size_t n_bytes, gpul_error *err)
{
	struct ucred me = { .pid = getpid(), .uid = geteuid(), .gid = getegid() };

	return send_with_control(socket, message, n_bytes, SCM_CREDENTIALS, &me, sizeof me, err);
}

/* Read the control messages of a packet.  Returns the number of descriptors; the first is stored in *fd, the others are closed. */
static size_t read_control(struct msghdr *m, int *fd, struct gpul_ipc_identity *who)
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

static gpul_status check_packet(const struct msghdr *m, size_t n_bytes, size_t n_fds, gpul_ipc_message *out, gpul_error *err)
{
	gpul_status st;
	bool n_expected;

	if (m->msg_flags & MSG_CTRUNC)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the file descriptor in a message was dropped: the limit of open files (ulimit -n) may be reached");
	if (m->msg_flags & MSG_TRUNC)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "received a message that is longer than every known message: use the same gpuload for both "
				 "processes");
	st = gpul_ipc_wire_parse(m->msg_iov->iov_base, n_bytes, out, err);
	if (st)
		return st;
	n_expected = out->head.type == WIRE_OFFER && out->offer.share.via == WIRE_VIA_FD;
	if (n_fds != n_expected)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the %s message has %zu file descriptors instead of %d",
				 gpul_ipc_wire_name(out->head.type), n_fds, n_expected);
	return GPUL_OK;
}

gpul_ipc_got gpul_ipc_receive(int socket, gpul_ipc_message *out, int *fd, struct gpul_ipc_identity *who, gpul_error *err)
{
	union {
		struct cmsghdr align;
		unsigned char room[CMSG_SPACE(MAX_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	} control;
	unsigned char bytes[sizeof *out];
	struct iovec part = { .iov_base = bytes, .iov_len = sizeof bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	size_t n_fds;
	ssize_t n;

	*fd = -1;
	/* ECONNRESET is reported once if the other side closed with unread messages, so try again: messages that it sent before
	 * (such as REFUSED) can still be received. */
	do
		n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return GOT_NOTHING;
	if (n < 0)
		return GOT_END;
	n_fds = read_control(&m, fd, who); /* called first, because even an empty packet can carry descriptors */
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
	/* Without SO_PEERPIDFD the pid may have been reused, but only if its process, and so its connection, has ended. */
	if (who->pid > 0)
		who->pidfd = (int)syscall(SYS_pidfd_open, who->pid, 0);
#endif
}

gpul_status gpul_ipc_adopt(int socket, gpul_error *err)
{
	int domain = 0, type = 0, on = 1;
	socklen_t n = sizeof domain;

	if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &n) || getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &n) ||
	    domain != AF_UNIX || type != SOCK_SEQPACKET)
		return gpul_fail(err, GPUL_EINVAL, socket, "file descriptor %d is not a Unix socket of type SOCK_SEQPACKET", socket);
	if (fcntl(socket, F_SETFD, FD_CLOEXEC) || setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot prepare the given socket: %s", strerror(errno));
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
