/* server.c — the owner's event loop.
 *
 * One epoll descriptor watches the listening socket, each peer's socket and process, and a timer.  All are level-triggered.
 * They are handled one at a time, and each gives at most one event, so no queue of events is needed: while a source is ready,
 * the epoll descriptor stays readable.  The kernel reports ready descriptors in turn, so a peer that sends without pause does not delay
 * the others. */
#include "ipc/server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

enum {
	STEP_MS = 1000,
	MAX_SOURCES = 64, /* maximum number of events that one call with timeout_ms 0 handles */
	OUT_OF_FDS_MS = 50,
	NS_PER_MS = 1000000,
};

/* Create the socket.  An existing socket file belongs to an owner that has ended, because this process holds the name's lock. */
static gpul_status bind_socket(gpul_ipc_server *s, gpul_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	gpul_status st;

	memcpy(address.sun_path, s->name.socket, sizeof address.sun_path);
	st = gpul_ipc_socket_remove_dead(s->name.socket, err);
	if (st)
		return st;
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener < 0)
		return gpul_ipc_sys_failed("socket", err);
	/* Linux gives the socket file the mode of the socket, so other users can never open it, whatever the umask is. */
	if (fchmod(s->listener, 0600))
		return gpul_ipc_sys_failed("cannot set the permissions of a socket (fchmod)", err);
	if (bind(s->listener, (struct sockaddr *)&address, sizeof address))
		return gpul_ipc_sys_failed(s->name.socket, err);
	s->name.has_socket = true;
	if (listen(s->listener, SOMAXCONN))
		return gpul_ipc_sys_failed(s->name.socket, err);
	return gpul_ipc_epoll_add(s, s->listener, SOURCE_LISTENER, 0) ? GPUL_OK : gpul_ipc_sys_failed("epoll_ctl", err);
}

static gpul_status open_socket(gpul_ipc_server *s, const char *name, gpul_error *err)
{
	char path[GPUL_IPC_PATH_BYTES];
	gpul_status st = gpul_ipc_place(name, true, path, err);

	if (!st)
		st = gpul_ipc_name_take(path, &s->name, err);
	return st ? st : bind_socket(s, err);
}

static gpul_ipc_server *new_server(const gpul_driver *drv, gpul_mem *mem, const gpul_ipc_server_options *o)
{
	uint64_t step_ms = o->step_timeout_ms > 0 ? (uint64_t)o->step_timeout_ms : STEP_MS;
	gpul_ipc_server *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->drv = drv;
	s->mem = mem;
	s->name.lock_fd = s->listener = s->epoll = s->timer = -1;
	s->max_peers = o->max_peers ? o->max_peers : GPUL_IPC_MAX_PEERS;
	s->step_ns = step_ms * NS_PER_MS;
	s->map_ns = (step_ms + (gpul_mem_about(mem)->mapped_bytes >> 20)) * NS_PER_MS;
	return s;
}

gpul_status gpul_ipc_server_create(const gpul_driver *drv, gpul_mem *mem, const gpul_ipc_server_options *options, gpul_ipc_server **out,
				   gpul_error *err)
{
	gpul_ipc_server *s;
	gpul_status st;

	if (options->max_peers > GPUL_IPC_MAX_PEERS)
		return gpul_fail(err, GPUL_EINVAL, 0, "max_peers is %u, but at most %d are supported", options->max_peers,
				 GPUL_IPC_MAX_PEERS);
	s = new_server(drv, mem, options);
	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: cannot share memory");
	st = gpul_ipc_offer_make(s, options, err);
	if (!st)
		st = gpul_ipc_epoll_open(s, err);
	if (!st && options->name)
		st = open_socket(s, options->name, err);
	if (st) {
		gpul_ipc_server_destroy(s);
		return st;
	}
	*out = s;
	return GPUL_OK;
}

void gpul_ipc_server_destroy(gpul_ipc_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < N_CONNECTIONS; i++)
		if (s->peer[i].state != PEER_FREE)
			gpul_ipc_peer_dismiss(s, &s->peer[i]);
	if (s->event)
		(void)s->drv->cuEventDestroy(s->event);
	if (s->listener >= 0)
		close(s->listener);
	gpul_ipc_name_release(&s->name);
	if (s->timer >= 0)
		close(s->timer);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s);
}

int gpul_ipc_server_fd(const gpul_ipc_server *s)
{
	return s->epoll;
}

static void accept_connection(gpul_ipc_server *s, gpul_ipc_event *out)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		gpul_ipc_peer_begin(s, fd, false, out);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		/* Stop accepting for a while: the pending connection keeps the listening socket readable, so the loop would spin. */
		gpul_log(GPUL_LOG_INFO, "ipc", "cannot accept connections on %s for now: %s", s->name.socket, strerror(errno));
		gpul_ipc_epoll_listen(s, false);
		s->listen_again_ns = gpul_clock_ns() + OUT_OF_FDS_MS * NS_PER_MS;
		gpul_ipc_epoll_set_timer(s, s->listen_again_ns);
	}
}

/* Handle the expiry of the timer: handle one peer whose deadline has passed, then set the timer for the next deadline. */
static void handle_timer(gpul_ipc_server *s, gpul_ipc_event *out)
{
	uint64_t now = gpul_clock_ns(), next = 0, n_expirations;
	struct peer *late = NULL;

	if (read(s->timer, &n_expirations, sizeof n_expirations) < 0 && errno == EAGAIN)
		return;
	s->timer_ns = 0;
	if (s->listen_again_ns && s->listen_again_ns <= now) {
		s->listen_again_ns = 0;
		gpul_ipc_epoll_listen(s, true);
	}
	next = s->listen_again_ns;
	for (struct peer *p = s->peer; p < s->peer + N_CONNECTIONS; p++) {
		if (p->state == PEER_FREE || !p->deadline_ns)
			continue;
		if (!late && p->deadline_ns <= now)
			late = p;
		else if (!next || p->deadline_ns < next)
			next = p->deadline_ns;
	}
	if (next)
		gpul_ipc_epoll_set_timer(s, next);
	if (!late)
		return;
	gpul_ipc_peer_late(s, late, out);
	if (late->state != PEER_FREE && late->deadline_ns) /* `late` has begun its next handshake step, or another peer was handled first */
		gpul_ipc_epoll_set_timer(s, late->deadline_ns);
}

static void handle_source(gpul_ipc_server *s, uint64_t what, gpul_ipc_event *out)
{
	struct peer *p = &s->peer[(uint32_t)what % N_CONNECTIONS];

	switch ((enum source)(what >> 32)) {
	case SOURCE_LISTENER:
		accept_connection(s, out);
		break;
	case SOURCE_TIMER:
		handle_timer(s, out);
		break;
	case SOURCE_SOCKET:
		gpul_ipc_peer_readable(s, p, out);
		break;
	case SOURCE_PROCESS:
		gpul_ipc_peer_ended(s, p, out);
		break;
	}
}

gpul_status gpul_ipc_server_next(gpul_ipc_server *s, int timeout_ms, gpul_ipc_event *out, gpul_error *err)
{
	uint64_t begun_ns = timeout_ms > 0 ? gpul_clock_ns() : 0;
	unsigned n_handled = 0;

	*out = (gpul_ipc_event){ .kind = GPUL_IPC_NONE, .peer = -1 };
	do {
		int wait_ms = gpul_ipc_left_ms(begun_ns, timeout_ms);
		struct epoll_event ready;
		int n = epoll_wait(s->epoll, &ready, 1, wait_ms);

		if (n < 0 && errno != EINTR)
			return gpul_ipc_sys_failed("epoll_wait", err);
		if (n < 0)
			return GPUL_OK; /* a signal arrived, which the caller may have to handle */
		if (n == 0 && wait_ms >= 0)
			return GPUL_OK;
		if (n > 0)
			handle_source(s, ready.data.u64, out);
		/* A call with timeout_ms 0 must return even if peers send faster than this loop handles events. */
		if (++n_handled >= MAX_SOURCES && gpul_ipc_left_ms(begun_ns, timeout_ms) == 0)
			return GPUL_OK;
	} while (out->kind == GPUL_IPC_NONE);
	return GPUL_OK;
}

/* Count the peers that are attached or mapping, or that were added and have not sent HELLO yet. */
static unsigned n_expected(const gpul_ipc_server *s)
{
	unsigned n = (unsigned)__builtin_popcountll(s->slots);

	for (const struct peer *p = s->peer; p < s->peer + N_CONNECTIONS; p++)
		n += p->state == PEER_GREETING && p->signs;
	return n;
}

gpul_status gpul_ipc_server_add(gpul_ipc_server *s, int fd, gpul_error *err)
{
	gpul_status st = gpul_ipc_adopt(fd, err);
	gpul_ipc_event none;

	if (!st && n_expected(s) >= s->max_peers)
		st = gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%u processes are already connected, which is the limit (max_peers)",
			       s->max_peers);
	if (st) {
		if (fd >= 0)
			close(fd);
		return st;
	}
	gpul_ipc_peer_begin(s, fd, true, &none);
	return GPUL_OK;
}

const gpul_ipc_view *gpul_ipc_server_view(const gpul_ipc_server *s)
{
	return &s->view;
}

CUevent gpul_ipc_server_gpu_event(const gpul_ipc_server *s)
{
	return s->event;
}
