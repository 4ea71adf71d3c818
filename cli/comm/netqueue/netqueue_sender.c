/* netqueue_sender.c — the process that sends the stream over TCP.
 *
 * A driver does not work after a fork, so this process is forked before the driver is opened.  It ends when the connection is closed,
 * or when its parent ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/comm/netqueue/cli_netqueue.h"

static _Noreturn void send_streams(const struct netqueue_stream *s, int listener, pid_t parent)
{
	const int one = 1;
	char go;
	int fd;

	/* The signal is not sent if the parent died before prctl(), so compare its pid, too. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	fd = accept(listener, NULL, NULL);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		_exit(1);
	while (recv(fd, &go, 1, 0) == 1)
		for (uint64_t at = 0; at < s->n_bytes;) {
			const ssize_t n = send(fd, s->bytes + at, s->n_bytes - at, MSG_NOSIGNAL);

			if (n < 0 && errno != EINTR)
				_exit(1);
			at += n > 0 ? (uint64_t)n : 0;
		}
	_exit(0);
}

static gpul_status fail(const char *call, gpul_error *err)
{
	return gpul_fail(err, GPUL_ESYS, errno, "cannot connect to the sending process: %s: %s", call, strerror(errno));
}

gpul_status netqueue_sender_start(const struct netqueue_stream *s, struct netqueue_sender *out, gpul_error *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t at_bytes = sizeof at;
	struct netqueue_sender sender = { .fd = -1 };
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const pid_t parent = getpid();
	gpul_status st = GPUL_OK;

	*out = (struct netqueue_sender){ .fd = -1 };
	if (listener < 0)
		return fail("socket", err);
	if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &at_bytes)) {
		st = fail("listen", err);
		goto close_listener;
	}
	fflush(NULL); /* otherwise the child would write the buffered output, too */
	sender.pid = fork();
	if (sender.pid == 0)
		send_streams(s, listener, parent);
	sender.fd = sender.pid < 0 ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sender.fd < 0 || connect(sender.fd, (struct sockaddr *)&at, sizeof at)) {
		st = fail(sender.pid < 0 ? "fork" : "connect", err);
		netqueue_sender_end(&sender);
		goto close_listener;
	}
	*out = sender;
close_listener:
	close(listener);
	return st;
}

gpul_status netqueue_sender_go(const struct netqueue_sender *s, gpul_error *err)
{
	return send(s->fd, "g", 1, MSG_NOSIGNAL) == 1 ? GPUL_OK : fail("send", err);
}

void netqueue_sender_end(struct netqueue_sender *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->pid > 0) {
		kill(s->pid, SIGKILL); /* a signal is needed, because the process may be blocked while sending data that nobody receives */
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*s = (struct netqueue_sender){ .fd = -1 };
}
