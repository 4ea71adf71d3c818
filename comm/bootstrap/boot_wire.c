/* boot_wire.c — sends and receives the packets between ranks over Unix sockets, with file descriptors. */
#include "comm/bootstrap/boot_wire_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"

/* SCM_MAX_FD of Linux: the maximum number of descriptors that a packet can carry */
enum { MAX_FDS = 253 };

static const char magic[8] = { 'g', 'p', 'u', 'l', 'b', 'o', 'o', 't' };

const char *gpul_boot_what_name(uint32_t what)
{
	static const char *const names[] = { "nothing", "gpul_boot_allgather()", "gpul_boot_barrier()", "gpul_boot_exchange_fds()",
					     "gpul_boot_clocks()" };

	return what < sizeof names / sizeof *names ? names[what] : "an unknown call";
}

void gpul_boot_head_fill(struct boot_head *head, size_t payload_bytes)
{
	memcpy(head->magic, magic, sizeof magic);
	head->version = BOOT_VERSION;
	head->bytes = (uint32_t)payload_bytes;
}

gpul_status gpul_boot_head_check(const unsigned char *bytes, size_t n_bytes, gpul_error *err)
{
	uint32_t version = BOOT_VERSION;

	if (memcmp(bytes, magic, n_bytes < sizeof magic ? n_bytes : sizeof magic) != 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "a message of %zu bytes arrived that is not from gpuload", n_bytes);
	if (n_bytes >= offsetof(struct boot_head, type))
		memcpy(&version, bytes + offsetof(struct boot_head, version), sizeof version);
	if (version == BOOT_VERSION)
		return GPUL_OK;
	return gpul_fail(err, GPUL_EUNSUPPORTED, (int)version,
			 "a message of start-up protocol version %u, but this process uses version %d: use one version "
			 "of gpuload for all ranks",
			 version, BOOT_VERSION);
}

boot_got gpul_boot_send(int socket, struct boot_head *head, const void *payload, size_t n_bytes, const int *fds, unsigned n_fds,
			gpul_error *err)
{
	union {
		struct cmsghdr align;
		unsigned char room[CMSG_SPACE(GPUL_BOOT_MAX_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec parts[2] = { { head, sizeof *head }, { (void *)(uintptr_t)payload, n_bytes } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = n_bytes ? 2 : 1 };
	ssize_t n;

	gpul_boot_head_fill(head, n_bytes);
	if (n_fds) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return BOOT_GOT_PACKET;
	/* Linux returns ETOOMANYREFS while more descriptors of this user are in flight in sockets than the limit of open files;
	 * receivers reduce their number. */
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS)
		return BOOT_GOT_NOTHING;
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
		return BOOT_GOT_END;
	gpul_fail(err, GPUL_ESYS, errno, "sendmsg: %s", strerror(errno));
	return BOOT_GOT_BAD;
}

/* Take the descriptors out of the control messages; close those for which the packet has no room. */
static void take_descriptors(struct msghdr *m, struct boot_packet *out, bool *too_many)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (out->n_fds < GPUL_BOOT_MAX_FDS) {
				out->fds[out->n_fds++] = fd;
			} else {
				close(fd);
				*too_many = true;
			}
		}
	}
}

static gpul_status check_packet(const struct msghdr *m, size_t n, const struct boot_packet *p, bool too_many, gpul_error *err)
{
	const struct boot_head *h = &p->head;
	gpul_status st;
	unsigned expected;

	if (m->msg_flags & MSG_CTRUNC)
		return gpul_fail(
			err, GPUL_ESYS, EMFILE,
			"a message arrived without its file descriptors, because the limit of open files is reached: raise ulimit -n");
	if (n < sizeof *h)
		return gpul_fail(err, GPUL_EFORMAT, 0, "a message of %zu bytes that is not from gpuload", n);
	st = gpul_boot_head_check((const unsigned char *)h, n, err);
	if (st)
		return st;
	if (m->msg_flags & MSG_TRUNC || h->bytes != n - sizeof *h || h->type < BOOT_HELLO || h->type > BOOT_FDS)
		return gpul_fail(err, GPUL_EFORMAT, 0, "a malformed message of type %u: its header gives %u bytes, but %zu bytes arrived",
				 h->type, h->bytes, n);
	expected = h->type == BOOT_WELCOME ? 1 : h->type == BOOT_FDS ? (unsigned)__builtin_popcountll(h->present) : 0;
	if (p->n_fds != expected || too_many)
		return gpul_fail(err, GPUL_EFORMAT, 0, "a message of type %u with %u file descriptors instead of %u", h->type, p->n_fds,
				 expected);
	return GPUL_OK;
}

boot_got gpul_boot_receive(int socket, struct boot_packet *out, gpul_error *err)
{
	union {
		struct cmsghdr align;
		unsigned char room[CMSG_SPACE(MAX_FDS * sizeof(int))];
	} control;
	struct iovec parts[2] = { { &out->head, sizeof out->head }, { out->payload, sizeof out->payload } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control };
	bool too_many = false;
	ssize_t n;

	out->n_fds = 0;
	/* ECONNRESET is reported once if the other side closed with unread packets; the packets that it sent before can still be read. */
	do
		n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return BOOT_GOT_NOTHING;
	if (n < 0) {
		gpul_fail(err, GPUL_ESYS, errno, "recvmsg: %s", strerror(errno));
		return BOOT_GOT_BAD;
	}
	take_descriptors(&m, out, &too_many);
	if (n == 0 && out->n_fds == 0)
		return BOOT_GOT_END;
	if (check_packet(&m, (size_t)n, out, too_many, err) == GPUL_OK)
		return BOOT_GOT_PACKET;
	gpul_boot_packet_drop(out);
	return BOOT_GOT_BAD;
}

void gpul_boot_packet_drop(struct boot_packet *p)
{
	while (p->n_fds)
		close(p->fds[--p->n_fds]);
}

bool gpul_boot_same_user(int socket, pid_t *pid, gpul_error *err)
{
	struct ucred other = { .uid = (uid_t)-1 };
	socklen_t n = sizeof other;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &n)) {
		gpul_fail(err, GPUL_ESYS, errno, "SO_PEERCRED: %s", strerror(errno));
		return false;
	}
	*pid = other.pid;
	if (other.uid == geteuid())
		return true;
	gpul_fail(err, GPUL_EUNSUPPORTED, (int)other.uid, "process %ld belongs to user %u, but this process is user %u", (long)other.pid,
		  (unsigned)other.uid, (unsigned)geteuid());
	return false;
}
