/* frames.c — reads and writes frames: the messages between the launcher and the host launchers. */
#include "comm/bootstrap/agents/frames_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gpul_frame_fill(struct frame_reader *r)
{
	ssize_t n;

	if (r->n == sizeof r->at)
		return true; /* the buffer is full, so it contains at least one whole frame */
	do
		n = read(r->fd, r->at + r->n, sizeof r->at - r->n);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		r->n += (size_t)n;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

frame_got gpul_frame_take(struct frame_reader *r, struct frame_head *head, unsigned char payload[FRAME_BYTES])
{
	if (r->n < sizeof *head)
		return FRAME_GOT_NOTHING;
	memcpy(head, r->at, sizeof *head);
	if (head->type < FRAME_ASK || head->type > FRAME_LAST || head->n_bytes > FRAME_BYTES)
		return FRAME_GOT_BAD;
	if (r->n < sizeof *head + head->n_bytes)
		return FRAME_GOT_NOTHING;
	memcpy(payload, r->at + sizeof *head, head->n_bytes);
	r->n -= sizeof *head + head->n_bytes;
	memmove(r->at, r->at + sizeof *head + head->n_bytes, r->n);
	return FRAME_GOT_ONE;
}

bool gpul_frame_write(int fd, enum frame_type type, int number, const void *payload, size_t n_bytes, bool patient)
{
	const struct frame_head head = { .type = type, .number = number, .n_bytes = (uint32_t)n_bytes };
	unsigned char bytes[sizeof head + FRAME_BYTES];
	size_t at = 0;

	if (n_bytes > FRAME_BYTES)
		return false;
	memcpy(bytes, &head, sizeof head);
	if (n_bytes)
		memcpy(bytes + sizeof head, payload, n_bytes);
	while (at < sizeof head + n_bytes) {
		struct pollfd ready = { .fd = fd, .events = POLLOUT };
		const ssize_t n = write(fd, bytes + at, sizeof head + n_bytes - at);

		if (n >= 0)
			at += (size_t)n;
		else if (errno == EAGAIN && patient)
			(void)poll(&ready, 1, -1);
		else if (errno != EINTR)
			return false;
	}
	return true;
}

/* ---- texts ------------------------------------------------------------------------------------------------------ */

void gpul_frame_add_text(struct frame_texts *t, const char *text)
{
	const size_t n = strlen(text) + 1;

	if (!t->at) {
		t->at = malloc(FRAME_BYTES);
		t->room = t->at ? FRAME_BYTES : 0;
	}
	if (t->failed || n > t->room - t->n) {
		t->failed = true;
		return;
	}
	memcpy(t->at + t->n, text, n);
	t->n += n;
}

void gpul_frame_add_number(struct frame_texts *t, int number)
{
	char text[16];

	snprintf(text, sizeof text, "%d", number);
	gpul_frame_add_text(t, text);
}

const char *gpul_frame_next_text(struct frame_texts *t)
{
	const char *text = t->at + t->taken;
	const char *end = t->taken < t->n ? memchr(text, 0, t->n - t->taken) : NULL;

	if (!end) {
		t->failed = true;
		return "";
	}
	t->taken = (size_t)(end + 1 - t->at);
	return text;
}

int gpul_frame_next_number(struct frame_texts *t)
{
	const char *text = gpul_frame_next_text(t);
	char *end;
	const long n = strtol(text, &end, 10);

	if (end == text || *end || n < -1 || n > 1000000000) {
		t->failed = true;
		return 0;
	}
	return (int)n;
}
