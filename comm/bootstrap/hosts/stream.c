/* stream.c — sends and receives the packets between ranks over TCP. */
#include "comm/bootstrap/hosts/stream_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

gpul_status gpul_boot_stream_create(int fd, size_t payload_bytes, struct boot_stream **out, gpul_error *err)
{
	const size_t room = sizeof(struct boot_head) + payload_bytes;
	struct boot_stream *s = malloc(sizeof *s + 2 * room);
	const int on = 1;

	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection");
	*s = (struct boot_stream){ .fd = fd, .payload_bytes = payload_bytes };
	s->in = (unsigned char *)(s + 1);
	s->out = s->in + room;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	*out = s;
	return GPUL_OK;
}

void gpul_boot_stream_destroy(struct boot_stream *s)
{
	free(s);
}

/* TCP_USER_TIMEOUT limits how long data and the probes of a silent connection may remain unacknowledged.  A stopped process does
 * not trigger it, because its operating system still acknowledges. */
void gpul_boot_stream_watch(struct boot_stream *s, int lost_ms)
{
	const int on = 1, seconds = 1;
	const unsigned limit = (unsigned)lost_ms;

	(void)setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

static boot_got explain_errno(const char *call, gpul_error *err)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return BOOT_GOT_NOTHING;
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
		return BOOT_GOT_END;
	gpul_fail(err, GPUL_ESYS, errno, "%s: %s", call, strerror(errno));
	return BOOT_GOT_BAD;
}

boot_got gpul_boot_stream_flush(struct boot_stream *s, gpul_error *err)
{
	while (s->at_out < s->n_out) {
		ssize_t n = send(s->fd, s->out + s->at_out, s->n_out - s->at_out, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			s->at_out += (size_t)n;
		else if (errno != EINTR)
			return explain_errno("send", err);
	}
	s->n_out = s->at_out = 0;
	return BOOT_GOT_PACKET;
}

boot_got gpul_boot_stream_send(struct boot_stream *s, struct boot_head *head, const void *payload, size_t n_bytes, gpul_error *err)
{
	boot_got got = gpul_boot_stream_flush(s, err);

	if (got != BOOT_GOT_PACKET)
		return got;
	gpul_boot_head_fill(head, n_bytes);
	memcpy(s->out, head, sizeof *head);
	if (n_bytes)
		memcpy(s->out + sizeof *head, payload, n_bytes);
	s->n_out = sizeof *head + n_bytes;
	got = gpul_boot_stream_flush(s, err);
	return got == BOOT_GOT_NOTHING ? BOOT_GOT_PACKET : got;
}

boot_got gpul_boot_stream_decode(const unsigned char *bytes, size_t n_bytes, size_t payload_bytes, struct boot_packet *out, size_t *n_used,
				 gpul_error *err)
{
	*n_used = 0;
	out->n_fds = 0;
	/* Detect another program by its first bytes, without waiting for a whole head. */
	if (gpul_boot_head_check(bytes, n_bytes, err))
		return BOOT_GOT_BAD;
	if (n_bytes < sizeof out->head)
		return BOOT_GOT_NOTHING;
	memcpy(&out->head, bytes, sizeof out->head);
	if (out->head.type < BOOT_HELLO || out->head.type > BOOT_BYE || out->head.type == BOOT_FDS || out->head.bytes > payload_bytes) {
		gpul_fail(err, GPUL_EFORMAT, 0, "a malformed message of type %u with %u bytes", out->head.type, out->head.bytes);
		return BOOT_GOT_BAD;
	}
	if (n_bytes - sizeof out->head < out->head.bytes)
		return BOOT_GOT_NOTHING;
	memcpy(out->payload, bytes + sizeof out->head, out->head.bytes);
	*n_used = sizeof out->head + out->head.bytes;
	return BOOT_GOT_PACKET;
}

boot_got gpul_boot_stream_receive(struct boot_stream *s, struct boot_packet *out, gpul_error *err)
{
	for (;;) {
		size_t n_used;
		ssize_t n;
		boot_got got = gpul_boot_stream_decode(s->in, s->n_in, s->payload_bytes, out, &n_used, err);

		if (got == BOOT_GOT_PACKET) {
			s->n_in -= n_used;
			memmove(s->in, s->in + n_used, s->n_in);
		}
		if (got != BOOT_GOT_NOTHING)
			return got;
		/* The buffer has room for more bytes: a complete packet would have been taken out before. */
		n = recv(s->fd, s->in + s->n_in, sizeof out->head + s->payload_bytes - s->n_in, MSG_DONTWAIT);
		if (n == 0)
			return BOOT_GOT_END;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return explain_errno("recv", err);
		s->n_in += (size_t)n;
	}
}
