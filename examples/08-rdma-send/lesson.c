/* lesson.c — messages, and a socket between two processes; shared by the six programs. */
#include "lesson.h"

#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_S = 30 };
#define PORT "18600"

static bool is_child; /* true: this is the second of two processes that the program runs */

void lesson_need(bool ok, const char *call)
{
	if (!ok) {
		fprintf(stderr, "lesson: %s: %s\n", call, strerror(errno));
		exit(1);
	}
}

void lesson_skip(const char *why)
{
	if (!is_child) /* the parent process prints the same message */
		printf("skipped: %s\n", why);
	exit(77);
}

/* ---- two processes ---------------------------------------------------------------------------------------- */

/* Open a socket that listens (host NULL: on all addresses), or one that is connected to a host. */
static int open_socket(const char *host, const char *port, bool listens)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET, .ai_flags = listens ? AI_PASSIVE : 0 };
	struct addrinfo *to;
	const int rc = getaddrinfo(host, port, &hints, &to), one = 1;
	int s;

	if (rc) {
		fprintf(stderr, "lesson: %s: %s\n", host, gai_strerror(rc));
		exit(1);
	}
	s = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, 0);
	lesson_need(s >= 0, "socket");
	if (listens) {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		lesson_need(!bind(s, to->ai_addr, to->ai_addrlen) && !listen(s, 1), "listen");
	} else {
		lesson_need(!connect(s, to->ai_addr, to->ai_addrlen), "connect");
	}
	freeaddrinfo(to);
	return s;
}

static void own_address(int s, char *host, socklen_t host_bytes, char *port, socklen_t port_bytes)
{
	struct sockaddr_storage own;
	socklen_t n = sizeof own;

	lesson_need(!getsockname(s, (struct sockaddr *)&own, &n), "getsockname");
	getnameinfo((struct sockaddr *)&own, n, host, host_bytes, port, port_bytes, NI_NUMERICHOST | NI_NUMERICSERV);
}

void lesson_two_processes(int argc, char **argv, struct lesson_peer *peer)
{
	const bool both = argc < 2, listens = both || strcmp(argv[1], "--listen") == 0;
	char port[8] = PORT;
	int listener = -1, s;

	*peer = (struct lesson_peer){ .receives = listens };
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (listens)
		listener = open_socket(both ? "127.0.0.1" : NULL, both ? "0" : PORT, true);
	if (both) { /* fork before a library opens a NIC or GPU, because these do not work in both processes after a fork */
		own_address(listener, peer->own_host, sizeof peer->own_host, port, sizeof port);
		peer->child = fork();
		lesson_need(peer->child >= 0, "fork");
		peer->receives = peer->child > 0;
		is_child = !peer->receives;
	}
	if (peer->receives) {
		s = accept(listener, NULL, NULL);
		lesson_need(s >= 0, "accept");
	} else {
		if (is_child)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		s = open_socket(both ? "127.0.0.1" : argv[1], port, false);
	}
	if (listener >= 0)
		close(listener);
	own_address(s, peer->own_host, sizeof peer->own_host, port, sizeof port);
	peer->in = fdopen(s, "r");
	lesson_need(peer->in != NULL, "fdopen");
}

int lesson_end(struct lesson_peer *peer)
{
	int status = 0;

	fclose(peer->in);
	if (peer->child)
		waitpid(peer->child, &status, 0);
	return status != 0;
}

void lesson_tell(const struct lesson_peer *peer, const char *format, ...)
{
	char line[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line - 1, format, args);
	va_end(args);
	lesson_need(n >= 0 && (size_t)n < sizeof line - 1, "vsnprintf");
	line[n] = '\n';
	lesson_need(send(fileno(peer->in), line, (size_t)n + 1, MSG_NOSIGNAL) == n + 1, "send");
}

void lesson_hear(const struct lesson_peer *peer, char line[256])
{
	if (!fgets(line, 256, peer->in)) {
		fprintf(stderr, "lesson: the other process has ended\n");
		exit(1);
	}
	line[strcspn(line, "\n")] = '\0';
}

void lesson_meet(const struct lesson_peer *peer)
{
	char line[256];

	lesson_tell(peer, "here");
	lesson_hear(peer, line);
}

void lesson_wait(uint64_t *since, const char *for_what)
{
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec;
	if (!*since)
		*since = now;
	if (now - *since > TIMEOUT_S) {
		fprintf(stderr, "lesson: waited %d s for %s\n", TIMEOUT_S, for_what);
		exit(1);
	}
	sched_yield();
}
