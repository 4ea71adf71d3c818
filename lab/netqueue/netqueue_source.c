/* netqueue_source.c — the sources from which a feeder gets bytes: a socket, or memory. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "lab/netqueue/feeder.h"

/* ---- a socket ---------------------------------------------------------------------------------------------- */

static gpul_status receive_from_socket(void *context, const struct iovec *into, int n_into, int wait_ms, size_t *got, bool *closed,
				       gpul_error *err)
{
	const int fd = *(const int *)context;
	/* the cast removes const; recvmsg() does not change the array */
	struct msghdr m = { .msg_iov = (struct iovec *)into, .msg_iovlen = (size_t)n_into };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && wait_ms && poll(&p, 1, wait_ms) > 0)
		n = recvmsg(fd, &m, MSG_DONTWAIT);
	*got = n > 0 ? (size_t)n : 0;
	*closed = n == 0;
	if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		return gpul_fail(err, GPUL_ESYS, errno, "cannot receive from the sender: %s", strerror(errno));
	return GPUL_OK;
}

gpul_netqueue_source gpul_netqueue_from_socket(int *fd)
{
	return (gpul_netqueue_source){ receive_from_socket, fd };
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

/* Return the next random number of the splitmix64 generator (Steele, Lea, Flood). */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static gpul_status receive_from_memory(void *context, const struct iovec *into, int n_into, int wait_ms, size_t *got, bool *closed,
				       gpul_error *err)
{
	gpul_netqueue_memory *m = context;
	uint64_t packet = m->packet_bytes ? next_random(&m->seed) % m->packet_bytes + 1 : UINT64_MAX;

	(void)wait_ms;
	(void)err;
	*got = 0;
	*closed = m->at == m->n_bytes;
	for (int i = 0; i < n_into && packet; i++) {
		const uint64_t left = m->n_bytes - m->at, most = packet < left ? packet : left;
		const size_t n = into[i].iov_len < most ? into[i].iov_len : (size_t)most;

		memcpy(into[i].iov_base, m->bytes + m->at, n);
		m->at += n;
		packet -= n;
		*got += n;
	}
	return GPUL_OK;
}

gpul_netqueue_source gpul_netqueue_from_memory(gpul_netqueue_memory *m)
{
	return (gpul_netqueue_source){ receive_from_memory, m };
}
