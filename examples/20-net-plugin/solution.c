/* solution.c — transfers that never wait: each test() moves as many bytes as the socket accepts or has, starting with the oldest request.
 *
 *     on the wire:   size (8 bytes), data   size, data   ... */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "net.h"

result start_transfer(struct end *e, int is_send, void *at, size_t n_bytes, struct request **out)
{
	struct request *r = &e->requests[(e->oldest + e->n) % MAX_REQUESTS];

	*out = NULL;
	if (e->n == MAX_REQUESTS || r->end) /* all requests are in use, so NCCL calls again later */
		return SUCCESS;
	*r = (struct request){ .end = e, .at = at, .n_bytes = n_bytes, .header = n_bytes, .is_send = is_send };
	e->n++;
	*out = r;
	return SUCCESS;
}

/* Send or receive bytes.  Returns 1 if all n_bytes are done, 0 if the socket would block, -1 if the connection has failed. */
static int move_bytes(const struct request *r, char *at, size_t n_bytes, uint64_t *n_moved)
{
	while (n_bytes) {
		const ssize_t n = r->is_send ? send(r->end->fd, at, n_bytes, MSG_NOSIGNAL) : recv(r->end->fd, at, n_bytes, 0);

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -1;
		at += n;
		n_bytes -= (size_t)n;
		*n_moved += (uint64_t)n;
	}
	return 1;
}

/* Move the bytes of the header, then those of the data.  Returns the same as move_bytes(). */
static int move_request(struct request *r)
{
	const uint64_t room = r->n_bytes;
	int moved = 1;

	if (r->n_moved < sizeof r->header) {
		moved = move_bytes(r, (char *)&r->header + r->n_moved, sizeof r->header - r->n_moved, &r->n_moved);
		if (moved == 1 && r->header > room)
			return -1; /* the message is longer than the buffer */
	}
	if (moved == 1)
		moved = move_bytes(r, r->at + (r->n_moved - sizeof r->header), sizeof r->header + r->header - r->n_moved, &r->n_moved);
	return moved;
}

result test_transfer(struct request *r, int *done, int *n_bytes)
{
	struct end *e = r->end;
	int moved = 1;

	*done = 0;
	while (e->n && moved == 1) {
		moved = move_request(&e->requests[e->oldest]);
		if (moved == 1) {
			e->oldest = (e->oldest + 1) % MAX_REQUESTS;
			e->n--;
		}
	}
	if (r->n_moved == sizeof r->header + r->header && r->n_moved) {
		*done = 1;
		*n_bytes = (int)r->header;
		r->end = NULL;
		return SUCCESS;
	}
	return moved < 0 ? REMOTE_ERROR : SUCCESS;
}
