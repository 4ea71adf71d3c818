/* exercise.c — transfers that wait.  ./walk shows for which messages this works.  Change the file so that no function waits: isend() and
 * irecv() only record the request, and each test() moves as many bytes as the socket accepts or has received. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "net.h"

static int move_bytes(struct end *e, int is_send, char *at, size_t n_bytes)
{
	struct pollfd socket = { .fd = e->fd, .events = is_send ? POLLOUT : POLLIN };

	while (n_bytes) {
		const ssize_t n = is_send ? send(e->fd, at, n_bytes, MSG_NOSIGNAL) : recv(e->fd, at, n_bytes, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return -1;
		if (n > 0) {
			at += n;
			n_bytes -= (size_t)n;
		} else {
			poll(&socket, 1, -1);
		}
	}
	return 1;
}

result start_transfer(struct end *e, int is_send, void *at, size_t n_bytes, struct request **out)
{
	struct request *r = &e->requests[(e->oldest + e->n) % MAX_REQUESTS];

	*out = NULL;
	if (r->end) /* all requests are in use, so NCCL calls again later */
		return SUCCESS;
	*r = (struct request){ .end = e, .at = at, .n_bytes = n_bytes, .header = n_bytes, .is_send = is_send };
	if (is_send && (move_bytes(e, 1, (char *)&r->header, sizeof r->header) < 0 || move_bytes(e, 1, at, n_bytes) < 0))
		return REMOTE_ERROR;
	e->n++;
	*out = r;
	return SUCCESS;
}

result test_transfer(struct request *r, int *done, int *n_bytes)
{
	struct end *e = r->end;

	*done = 0;
	if (!r->is_send) {
		if (move_bytes(e, 0, (char *)&r->header, sizeof r->header) < 0 || r->header > r->n_bytes)
			return REMOTE_ERROR;
		if (move_bytes(e, 0, r->at, r->header) < 0)
			return REMOTE_ERROR;
	}
	*done = 1;
	*n_bytes = (int)r->header;
	r->end = NULL;
	e->oldest = (e->oldest + 1) % MAX_REQUESTS;
	e->n--;
	return SUCCESS;
}
