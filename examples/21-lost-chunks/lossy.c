// A network that loses packets, without root: this library stands between a program and sendmsg(), and removes datagrams from what is sent.
//
//     LOSE=19,31   the datagrams with these numbers are lost; only those of more than 1100 bytes count, from 0, so that they are chunks of messages
//     LOSE=2%      of those, 2 of 100 are lost, by a random sequence that is always the same
//
// gpuload sends up to 64 datagrams with one call (UDP_SEGMENT): two pieces for each, the header and the data.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LEAST_BYTES = 1100, HEADER_BYTES = 64, MOST_PIECES = 256 };

static int is_lost(unsigned number)
{
	static unsigned long long random = 1;
	const char *lose = getenv("LOSE");

	random = random * 6364136223846793005u + 1442695040888963407u;
	if (!lose)
		return 0;
	if (strchr(lose, '%'))
		return (random >> 33) % 10000 < strtod(lose, NULL) * 100;
	for (char *at = (char *)lose; *at; at += *at == ',')
		if (strtoul(at, &at, 10) == number)
			return 1;
	return 0;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	static unsigned number;
	static ssize_t (*next)(int, const struct msghdr *, int);
	struct iovec kept[MOST_PIECES];
	struct msghdr rest = *m;
	ssize_t n_bytes = 0, sent;

	if (!next)
		next = (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	if (m->msg_iovlen > MOST_PIECES)
		return next(fd, m, flags);
	rest.msg_iov = kept;
	rest.msg_iovlen = 0;
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		const struct iovec *piece = &m->msg_iov[i];
		const int chunk = i + 1 < m->msg_iovlen && piece->iov_len == HEADER_BYTES && piece[1].iov_len > LEAST_BYTES - HEADER_BYTES;

		n_bytes += (ssize_t)piece->iov_len;
		if (chunk && is_lost(number++)) {
			n_bytes += (ssize_t)m->msg_iov[++i].iov_len;
			continue;
		}
		kept[rest.msg_iovlen++] = *piece;
	}
	sent = rest.msg_iovlen ? next(fd, &rest, flags) : 0;
	return sent < 0 ? sent : n_bytes;
}
