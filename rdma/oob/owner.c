/* owner.c — finds the user who owns the other end of a socket. */
#include "rdma/oob/owner.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* One end of a TCP connection in the format of /proc/net/tcp and tcp6: the address as 32-bit words in this machine's byte order,
 * and the port. */
struct tcp_end {
	char address[33];
	unsigned port;
};

/* Convert an address to the format of these files.  A socket with an IPv4-mapped IPv6 address has an IPv4 socket at its other end.
 * Returns false if the address is not of TCP. */
static bool print_end(const struct sockaddr_storage *a, struct tcp_end *out)
{
	const struct sockaddr_in6 *v6 = (const void *)a;
	const struct sockaddr_in *v4 = (const void *)a;
	uint32_t words[4];

	out->port = ntohs(v4->sin_port); /* sockaddr_in6 has the port at the same offset */
	memcpy(words, &v6->sin6_addr, sizeof words);
	if (a->ss_family == AF_INET)
		snprintf(out->address, sizeof out->address, "%08X", (unsigned)v4->sin_addr.s_addr);
	else if (a->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		snprintf(out->address, sizeof out->address, "%08X", (unsigned)words[3]);
	else if (a->ss_family == AF_INET6)
		snprintf(out->address, sizeof out->address, "%08X%08X%08X%08X", (unsigned)words[0], (unsigned)words[1], (unsigned)words[2],
			 (unsigned)words[3]);
	else
		return false;
	return true;
}

/* Find the user who owns the socket from `theirs` to `ours` in a file such as /proc/net/tcp.  Returns false if the file does not
 * contain it, or shows inode 0: then its process has closed the socket, and the kernel gives root as the user. */
static bool find_in_table(const char *path, const struct tcp_end *theirs, const struct tcp_end *ours, unsigned *uid)
{
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f)) {
		struct tcp_end from, to;
		unsigned long inode = 0;
		unsigned user;

		found = sscanf(line, " %*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*x:%*x %*x:%*x %*x %u %*d %lu", from.address, &from.port,
			       to.address, &to.port, &user, &inode) == 6 &&
			inode != 0 && from.port == theirs->port && to.port == ours->port && strcmp(from.address, theirs->address) == 0 &&
			strcmp(to.address, ours->address) == 0;
		if (found)
			*uid = user;
	}
	if (f)
		fclose(f);
	return found;
}

void gpul_rdma_owner_text(int fd, char *out, size_t out_bytes)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	socklen_t n_here = sizeof here, n_there = sizeof there;
	struct tcp_end ours, theirs;
	struct ucred peer;
	socklen_t n_peer = sizeof peer;
	unsigned uid = 0;

	*out = '\0';
	if (getsockname(fd, (struct sockaddr *)&here, &n_here) || getpeername(fd, (struct sockaddr *)&there, &n_there))
		return;
	if (here.ss_family == AF_UNIX && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_peer) == 0)
		snprintf(out, out_bytes, " (uid %u)", (unsigned)peer.uid);
	else if (print_end(&here, &ours) && print_end(&there, &theirs) &&
		 (find_in_table("/proc/net/tcp", &theirs, &ours, &uid) || find_in_table("/proc/net/tcp6", &theirs, &ours, &uid)))
		snprintf(out, out_bytes, " (uid %u)", uid);
}
