/* debug_server.c — serves the client over a socket, which this process has inherited, or on which it listens. It serves one client at
 * a time; when the client disconnects, its breakpoints are removed and the kernels continue. */
#include "softcuda/tools/debug/debug_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/thread/thread.h"

static void answer(struct debug *d, char *line)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return;
	pthread_mutex_lock(&d->lock);
	gpul_debug_command(d, line, out);
	fclose(out);
	gpul_debug_send(d, text, bytes);
	pthread_mutex_unlock(&d->lock);
	free(text);
}

/* Execute each complete command line in text, and move the incomplete rest to the front.  Returns the length of the rest. */
static size_t answer_lines(struct debug *d, char *text, size_t n)
{
	char *line = text, *end;

	while ((end = memchr(line, '\n', n))) {
		n -= (size_t)(end + 1 - line);
		*end = '\0';
		if (end > line && end[-1] == '\r')
			end[-1] = '\0';
		answer(d, line);
		line = end + 1;
	}
	memmove(text, line, n);
	return n;
}

/* Do not use a FILE: this thread would hold the FILE's lock until the client disconnects, and exit() waits for that lock. */
static void serve_client(struct debug *d, int client)
{
	char *text = NULL, *larger;
	size_t n = 0, room = 0;
	ssize_t got;

	do {
		if (n == room) {
			larger = realloc(text, room = room ? 2 * room : 4096);
			if (!larger)
				break;
			text = larger;
		}
		got = read(client, text + n, room - n);
		if (got > 0)
			n = answer_lines(d, text, n + (size_t)got);
	} while (got > 0 || (got < 0 && errno == EINTR));
	free(text);
	pthread_mutex_lock(&d->lock);
	d->client = -1;
	while (d->breakpoints.n)
		gpul_debug_remove_breakpoint(d, d->breakpoints.n - 1);
	d->go = GO_FREE;
	d->configured = true;
	d->stops_at_entry = d->stops_at_end = false;
	d->next = d->stop = (struct stop){ 0 };
	pthread_cond_broadcast(&d->resumed);
	pthread_mutex_unlock(&d->lock);
	close(client);
}

static void *serve(void *user)
{
	struct debug *d = user;

	if (d->client >= 0)
		serve_client(d, d->client);
	while (d->listener >= 0) {
		const int client = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0 && errno != EINTR && errno != ECONNABORTED)
			break;
		if (client < 0)
			continue;
		pthread_mutex_lock(&d->lock);
		d->client = client;
		pthread_mutex_unlock(&d->lock);
		serve_client(d, client);
	}
	return NULL;
}

/* Listen on the loopback interface only, because any client can read the program's memory. */
static int listen_on_port(unsigned port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (!bind(fd, (struct sockaddr *)&a, sizeof a) && !listen(fd, 1))
		return fd;
	close(fd);
	return -1;
}

/* Only this user may connect to the path.  The socket is created under another name, and renamed when it accepts connections. */
static int listen_on_path(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	errno = ENAMETOOLONG;
	if (strlen(path) + 4 < sizeof a.sun_path) {
		sprintf(a.sun_path, "%s.new", path);
		if (!fchmod(fd, 0600) && !bind(fd, (struct sockaddr *)&a, sizeof a)) {
			if (!listen(fd, 1) && !renameat2(AT_FDCWD, a.sun_path, AT_FDCWD, path, RENAME_NOREPLACE))
				return fd;
			unlink(a.sun_path);
		}
	}
	close(fd);
	return -1;
}

gpul_status gpul_debug_serve(struct debug *d, const char *listen, int fd, gpul_error *err)
{
	char *end = "x";
	const unsigned long port = listen ? strtoul(listen, &end, 10) : 0;
	int r;

	d->client = fd;
	d->listener = -1;
	if (listen) {
		d->listener = !*end && port && port < 65536 ? listen_on_port((unsigned)port) : listen_on_path(listen);
		if (d->listener < 0)
			return gpul_fail(err, GPUL_ESYS, errno, "debug: cannot listen on %s: %s", listen, strerror(errno));
		d->listens = *end ? strdup(listen) : NULL;
	}
	r = gpul_thread_start(&d->server, NULL, "gpul-debug", serve, d);
	return r ? gpul_fail(err, GPUL_ESYS, r, "debug: cannot start a thread: %s", strerror(r)) : GPUL_OK;
}

void gpul_debug_close(struct debug *d)
{
	if (d->listens)
		unlink(d->listens);
}
