/* walk_meet.c — connects the two processes of walk.c by TCP. */
#include "tests/nccl/net/walk_meet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TRIES = 200, TRY_US = 100000 };

int meet(const char *address, int connects)
{
	const char *colon = strchr(address, ':');
	struct sockaddr_in at = { .sin_family = AF_INET };
	const int on = 1;
	char host[64];
	int fd;

	if (!colon)
		return -1;
	snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
	at.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
		return -1;
	for (int i = 0; i < TRIES; i++, usleep(TRY_US)) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (!connects) {
			const int met = bind(fd, (const struct sockaddr *)&at, sizeof at) || listen(fd, 1) ? -1 : accept(fd, NULL, NULL);

			close(fd); /* close the listener, to which a sender of another run might connect and then wait */
			return met;
		}
		if (!connect(fd, (const struct sockaddr *)&at, sizeof at))
			return fd;
		close(fd);
	}
	return -1;
}
