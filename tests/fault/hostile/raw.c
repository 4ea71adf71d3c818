/* raw.c — connections by plain system calls, which may break the protocol. */
#include "tests/fault/hostile/raw.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/fault/actors.h"

enum { MOST_FDS = 254 }; /* one descriptor more than Linux allows */

union control {
	struct cmsghdr align;
	unsigned char room[CMSG_SPACE(MOST_FDS * sizeof(int))];
};

void raw_path(const struct fault *f, char out[108])
{
	snprintf(out, 108, "%s/" SHARE_NAME ".sock", f->folder);
}

static int raw_socket(const struct fault *f, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	raw_path(f, at->sun_path);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

int raw_connect(const struct fault *f)
{
	struct sockaddr_un at;
	int s = raw_socket(f, &at);

	if (s >= 0 && connect(s, (const struct sockaddr *)&at, sizeof at)) {
		close(s);
		return -1;
	}
	return s;
}

int raw_listen(const struct fault *f)
{
	struct sockaddr_un at;
	int s = raw_socket(f, &at);

	unlink(at.sun_path);
	if (s >= 0 && (bind(s, (const struct sockaddr *)&at, sizeof at) || listen(s, 16))) {
		close(s);
		return -1;
	}
	return s;
}

int raw_accept(int listener, int timeout_ms)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

bool raw_send(int s, const void *bytes, size_t n_bytes, const int *fds, size_t n_fds)
{
	union control control = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (n_fds) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof *fds);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof *fds);
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof *fds);
	}
	return sendmsg(s, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static void keep_first(struct msghdr *m, int *fd)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && i < n; i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof one, sizeof one);
			if (fd && *fd < 0)
				*fd = one;
			else
				close(one);
		}
	}
}

ssize_t raw_receive(int s, void *bytes, size_t room, int *fd, int timeout_ms)
{
	union control control;
	struct iovec part = { .iov_base = bytes, .iov_len = room };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	struct pollfd p = { .fd = s, .events = POLLIN };
	ssize_t n;

	if (fd)
		*fd = -1;
	if (poll(&p, 1, timeout_ms) != 1)
		return -1;
	n = recvmsg(s, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n > 0)
		keep_first(&m, fd);
	return n < 0 && errno == ECONNRESET ? raw_receive(s, bytes, room, fd, timeout_ms) : n;
}

bool raw_dropped(int s, struct wire_refused *last)
{
	gpul_ipc_message m;
	ssize_t n;

	*last = (struct wire_refused){ 0 };
	while ((n = raw_receive(s, &m, sizeof m, NULL, FAULT_WAIT_MS)) > 0)
		if ((size_t)n == sizeof m.refused && m.head.type == WIRE_REFUSED)
			*last = m.refused;
	return n == 0 || errno == EPIPE;
}

static bool record_hello(struct fault *f, const struct child *attacher, struct wire_hello *hello)
{
	struct note n = { .command = 'a', .value = FAULT_WAIT_MS };
	int listener = raw_listen(f), s = -1;
	ssize_t got = 0;

	if (listener >= 0 && note_send(attacher->line, &n))
		s = raw_accept(listener, FAULT_WAIT_MS);
	if (s >= 0)
		got = raw_receive(s, hello, sizeof *hello, NULL, FAULT_WAIT_MS);
	close(listener);
	close(s);
	if (got == (ssize_t)sizeof *hello && note_receive(attacher->line, FAULT_WAIT_MS, &n))
		return true;
	return fault_failed(f, "could not record an attacher's HELLO (%zd bytes, %.100s)", got, n.text);
}

static bool record_offer(struct fault *f, const struct wire_hello *hello, struct wire_offer *offer)
{
	int s = raw_connect(f);
	ssize_t got = -1;

	if (s >= 0 && raw_send(s, hello, sizeof *hello, NULL, 0))
		got = raw_receive(s, offer, sizeof *offer, NULL, FAULT_WAIT_MS);
	close(s);
	return got == (ssize_t)sizeof *offer || fault_failed(f, "could not record an owner's OFFER (%zd bytes)", got);
}

bool raw_record(struct fault *f, struct wire_hello *hello, struct wire_offer *offer)
{
	struct actor how = { .gone_quiet = true };
	struct child attacher = { 0 }, owner = { 0 };
	bool good = attacher_start(f, &how, &attacher) && record_hello(f, &attacher, hello) && owner_start(f, &how, &owner) &&
		    record_offer(f, hello, offer) && actor_end(f, &owner) && actor_end(f, &attacher);

	child_kill(&owner);
	child_kill(&attacher);
	return good;
}
