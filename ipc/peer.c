/* peer.c — handles one connection to the server; server_internal.h draws its states. */
#include "ipc/server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

static void set_event(gpul_ipc_event *out, gpul_ipc_event_kind kind, const struct peer *p, const gpul_error *why)
{
	*out = (gpul_ipc_event){ .kind = kind, .peer = p->slot, .pid = p->who.pid, .uid = p->who.uid };
	if (why)
		out->why = *why;
}

/* Close the peer's connection and free its entry. */
static void free_peer(gpul_ipc_server *s, struct peer *p)
{
	gpul_ipc_epoll_remove(s, p->socket);
	close(p->socket);
	if (p->who.pidfd >= 0) {
		gpul_ipc_epoll_remove(s, p->who.pidfd);
		close(p->who.pidfd);
	}
	if (p->slot >= 0)
		s->slots &= ~((uint64_t)1 << p->slot);
	*p = (struct peer){ .state = PEER_FREE };
}

/* Send REFUSED and close the connection; if the peer was attached, report the event PEER_DIED. */
static void refuse_peer(gpul_ipc_server *s, struct peer *p, const gpul_error *why, gpul_ipc_event *out)
{
	struct wire_refused m = { .head = gpul_ipc_wire_head(WIRE_REFUSED), .status = (uint32_t)why->status, .native = why->native };
	gpul_ipc_event_kind kind = p->state == PEER_ATTACHED ? GPUL_IPC_PEER_DIED : GPUL_IPC_REFUSED;

	snprintf(m.text, sizeof m.text, "%.199s", why->text);
	(void)gpul_ipc_send(p->socket, &m, sizeof m, -1, NULL); /* fails if the peer has closed the connection */
	gpul_log(GPUL_LOG_INFO, "ipc", "%s: %s pid %d of user %u: %s", s->name.socket, kind == GPUL_IPC_REFUSED ? "refused" : "dropped",
		 (int)p->who.pid, (unsigned)p->who.uid, why->text);
	set_event(out, kind, p, why);
	free_peer(s, p);
}

static void refuse_with(gpul_ipc_server *s, struct peer *p, gpul_status status, const char *text, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	(void)gpul_fail(&why, status, 0, "%s", text);
	refuse_peer(s, p, &why, out);
}

/* Report that the peer's connection or process has ended without BYE. */
static void report_peer_end(gpul_ipc_server *s, struct peer *p, const char *what, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	if (p->state == PEER_GREETING) { /* the peer only tested whether an owner listens, so there is no event */
		free_peer(s, p);
		return;
	}
	(void)gpul_fail(&why, GPUL_ESYS, ECONNRESET, "pid %d %s%s", (int)p->who.pid, what,
			p->state == PEER_MAPPING ? " before it had mapped the memory" : " without detaching");
	gpul_log(GPUL_LOG_INFO, "ipc", "%s: %s", s->name.socket, why.text);
	set_event(out, p->state == PEER_ATTACHED ? GPUL_IPC_PEER_DIED : GPUL_IPC_REFUSED, p, &why);
	free_peer(s, p);
}

static bool check_user(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	if (p->who.uid == geteuid())
		return true;
	(void)gpul_fail(&why, GPUL_EUNSUPPORTED, (int)p->who.uid,
			"this memory belongs to user %u, but the attaching process runs as user %u", (unsigned)geteuid(),
			(unsigned)p->who.uid);
	refuse_peer(s, p, &why, out);
	return false;
}

static void send_info(gpul_ipc_server *s, struct peer *p)
{
	gpul_ipc_peer peers[GPUL_IPC_MAX_PEERS];
	struct wire_info m = { .head = gpul_ipc_wire_head(WIRE_INFO), .share = s->offer.share };

	m.cpu = (uint64_t)(uintptr_t)gpul_mem_cpu(s->mem);
	m.gpu = gpul_mem_gpu(s->mem);
	m.n_peers = (uint32_t)gpul_ipc_server_peers(s, peers, GPUL_IPC_MAX_PEERS);
	for (unsigned i = 0; i < m.n_peers; i++) {
		m.peer[i] = (struct wire_peer){ .pid = peers[i].pid,
						.uid = peers[i].uid,
						.slot = (uint32_t)peers[i].slot,
						.read_only = peers[i].read_only,
						.cpu = peers[i].cpu,
						.gpu = peers[i].gpu,
						.attached_ms = peers[i].attached_ms };
		memcpy(m.peer[i].device, peers[i].device_uuid, sizeof m.peer[i].device);
	}
	(void)gpul_ipc_send(p->socket, &m, sizeof m, -1, NULL);
	free_peer(s, p);
}

static void send_offer(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	p->slot = __builtin_ctzll(~s->slots);
	s->slots |= (uint64_t)1 << p->slot;
	s->offer.share.slot = (uint32_t)p->slot;
	if (gpul_ipc_send(p->socket, &s->offer, sizeof s->offer, s->fd, &why)) {
		refuse_peer(s, p, &why, out);
		return;
	}
	p->state = PEER_MAPPING;
	p->deadline_ns = gpul_clock_ns() + s->map_ns;
	gpul_ipc_epoll_set_timer(s, p->deadline_ns);
}

static void handle_hello(gpul_ipc_server *s, struct peer *p, const struct wire_hello *hello, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	if (!check_user(s, p, out))
		return;
	if (hello->intent == WIRE_QUERY) {
		send_info(s, p);
	} else if (gpul_ipc_here_fits(hello, &s->offer.share, &why)) {
		refuse_peer(s, p, &why, out);
	} else if ((unsigned)__builtin_popcountll(s->slots) >= s->max_peers) {
		(void)gpul_fail(&why, GPUL_EUNSUPPORTED, 0, "the limit of %u attached %s is reached (max_peers)", s->max_peers,
				s->max_peers == 1 ? "peer" : "peers");
		refuse_peer(s, p, &why, out);
	} else {
		send_offer(s, p, out);
	}
}

static void handle_ready(gpul_ipc_server *s, struct peer *p, const struct wire_ready *ready, gpul_ipc_event *out)
{
	p->ready = *ready;
	p->deadline_ns = 0;
	p->since_ns = gpul_clock_ns();
	gpul_ipc_watch(&p->who, p->socket, p->signs);
	if (p->who.pidfd >= 0 && !gpul_ipc_epoll_add(s, p->who.pidfd, SOURCE_PROCESS, (size_t)(p - s->peer))) {
		close(p->who.pidfd);
		p->who.pidfd = -1; /* without a pidfd, only the end of the connection shows that the peer has ended; a forked child that
				    * keeps the socket open delays that */
	}
	p->state = PEER_ATTACHED;
	set_event(out, GPUL_IPC_ATTACHED, p, NULL);
}

static void handle_bye(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	if (p->state == PEER_ATTACHED) {
		set_event(out, GPUL_IPC_DETACHED, p, NULL);
	} else if (p->state == PEER_MAPPING) {
		(void)gpul_fail(&why, GPUL_ESYS, ECANCELED, "pid %d detached before it had mapped the memory", (int)p->who.pid);
		set_event(out, GPUL_IPC_REFUSED, p, &why);
	}
	free_peer(s, p);
}

static void handle_refused(gpul_ipc_server *s, struct peer *p, const struct wire_refused *m, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	(void)gpul_fail(&why, (gpul_status)m->status, m->native, "pid %d could not map the memory: %s", (int)p->who.pid, m->text);
	gpul_log(GPUL_LOG_INFO, "ipc", "%s: %s", s->name.socket, why.text);
	set_event(out, GPUL_IPC_REFUSED, p, &why);
	free_peer(s, p);
}

static void handle_message(gpul_ipc_server *s, struct peer *p, const gpul_ipc_message *m, gpul_ipc_event *out)
{
	if (p->state == PEER_GREETING && m->head.type == WIRE_HELLO)
		handle_hello(s, p, &m->hello, out);
	else if (p->state == PEER_MAPPING && m->head.type == WIRE_READY)
		handle_ready(s, p, &m->ready, out);
	else if (p->state == PEER_MAPPING && m->head.type == WIRE_REFUSED)
		handle_refused(s, p, &m->refused, out);
	else if (m->head.type == WIRE_BYE)
		handle_bye(s, p, out);
	else
		refuse_with(s, p, GPUL_EFORMAT, "the attaching process sent an unexpected message", out);
}

static bool receive_from_peer(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out);

/* If all slots are in use, handle the messages of the peers with slots first: a peer may detach and immediately attach again, and
 * its new HELLO could be read before its BYE.  Returns true if this has caused an event, which must be reported before a peer is
 * refused. */
static bool handle_attached_first(gpul_ipc_server *s, gpul_ipc_event *out)
{
	if ((unsigned)__builtin_popcountll(s->slots) < s->max_peers)
		return false;
	for (struct peer *p = s->peer; p < s->peer + N_CONNECTIONS; p++)
		if (p->state != PEER_FREE && p->slot >= 0 && receive_from_peer(s, p, out) && out->kind != GPUL_IPC_NONE)
			return true;
	return false;
}

/* Receive and handle one message, or the end of the connection.  Returns false if there is neither. */
static bool receive_from_peer(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_ipc_message m;
	gpul_error why = { 0 };
	int fd;

	if (p->state == PEER_GREETING && handle_attached_first(s, out))
		return true; /* report this event first; p's HELLO is read later, because its socket stays readable */
	switch (gpul_ipc_receive(p->socket, &m, &fd, p->signs && p->state == PEER_GREETING ? &p->who : NULL, &why)) {
	case GOT_MESSAGE:
		if (fd >= 0)
			close(fd); /* p has sent an OFFER with a descriptor, although only owners send OFFER */
		handle_message(s, p, &m, out);
		return true;
	case GOT_BAD:
		refuse_peer(s, p, &why, out);
		return true;
	case GOT_END:
		report_peer_end(s, p, "closed its connection", out);
		return true;
	case GOT_NOTHING:
		break;
	}
	return false;
}

void gpul_ipc_peer_readable(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	if (p->state != PEER_FREE)
		(void)receive_from_peer(s, p, out);
}

void gpul_ipc_peer_ended(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	/* Handle the peer's last messages first, because one of them may be BYE. */
	if (p->state != PEER_FREE && !receive_from_peer(s, p, out))
		report_peer_end(s, p, "ended", out);
}

void gpul_ipc_peer_late(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	/* The reply may have arrived in time while this process was suspended, so try to receive it first. */
	if (receive_from_peer(s, p, out))
		return;
	(void)gpul_fail(&why, GPUL_ESYS, ETIMEDOUT, "pid %d did not send a %s message within %llu ms", (int)p->who.pid,
			p->state == PEER_GREETING ? "HELLO" : "READY",
			(unsigned long long)((p->state == PEER_GREETING ? s->step_ns : s->map_ns) / 1000000));
	refuse_peer(s, p, &why, out);
}

void gpul_ipc_peer_dismiss(gpul_ipc_server *s, struct peer *p)
{
	struct wire_head bye = gpul_ipc_wire_head(WIRE_BYE);

	if (p->state != PEER_GREETING)
		(void)gpul_ipc_send(p->socket, &bye, sizeof bye, -1, NULL);
	free_peer(s, p);
}

/* Find a free entry.  If all are in use, the oldest connection that has not sent HELLO is dropped. */
static struct peer *find_entry(gpul_ipc_server *s, gpul_ipc_event *out)
{
	struct peer *oldest = NULL;

	for (struct peer *p = s->peer; p < s->peer + N_CONNECTIONS; p++) {
		if (p->state == PEER_FREE)
			return p;
		if (p->state == PEER_GREETING && !p->signs && (!oldest || p->since_ns < oldest->since_ns))
			oldest = p;
	}
	if (oldest)
		refuse_with(s, oldest, GPUL_EUNSUPPORTED,
			    "too many connections have not sent a HELLO message: the oldest of these connections is closed", out);
	return oldest;
}

void gpul_ipc_peer_begin(gpul_ipc_server *s, int socket, bool signs, gpul_ipc_event *out)
{
	struct peer *p = find_entry(s, out);

	if (!p) {
		close(socket);
		return;
	}
	*p = (struct peer){ .state = PEER_GREETING,
			    .socket = socket,
			    .signs = signs,
			    .slot = -1,
			    .since_ns = gpul_clock_ns(),
			    .who = { .uid = (uid_t)-1, .pidfd = -1 } };
	if (signs) {
		if (!gpul_ipc_epoll_add(s, socket, SOURCE_SOCKET, (size_t)(p - s->peer)))
			free_peer(s, p);
		return;
	}
	p->who = gpul_ipc_identify(socket);
	p->deadline_ns = p->since_ns + s->step_ns;
	/* A peer sends HELLO immediately after connecting, so try to receive it now.  If dropping another connection has caused an
	 * event, the next call handles HELLO, because only one event can be returned. */
	if (!check_user(s, p, out))
		return;
	if (out->kind == GPUL_IPC_NONE)
		(void)receive_from_peer(s, p, out);
	if (p->state == PEER_FREE)
		return;
	if (!gpul_ipc_epoll_add(s, socket, SOURCE_SOCKET, (size_t)(p - s->peer)))
		refuse_with(s, p, GPUL_ESYS, "the owner of the memory cannot watch more connections", out);
	else if (p->state == PEER_GREETING)
		gpul_ipc_epoll_set_timer(s, p->deadline_ns);
}

size_t gpul_ipc_server_peers(const gpul_ipc_server *s, gpul_ipc_peer *peers, size_t room)
{
	const struct peer *by_slot[GPUL_IPC_MAX_PEERS] = { 0 };
	uint64_t now = gpul_clock_ns();
	size_t n = 0;

	for (const struct peer *p = s->peer; p < s->peer + N_CONNECTIONS; p++)
		if (p->state == PEER_ATTACHED)
			by_slot[p->slot] = p;
	for (int slot = 0; slot < GPUL_IPC_MAX_PEERS; slot++) {
		const struct peer *p = by_slot[slot];

		if (!p)
			continue;
		if (n < room) {
			peers[n] = (gpul_ipc_peer){ .slot = slot,
						    .pid = p->who.pid,
						    .uid = p->who.uid,
						    .cpu = p->ready.cpu,
						    .gpu = p->ready.gpu,
						    .read_only = p->ready.read_only,
						    .attached_ms = (now - p->since_ns) / 1000000 };
			memcpy(peers[n].device_uuid, p->ready.device, sizeof peers[n].device_uuid);
		}
		n++;
	}
	return n;
}

unsigned gpul_ipc_server_peer_fds(const gpul_ipc_server *s, int slot, int fds[2])
{
	unsigned n = 0;

	for (const struct peer *p = s->peer; p < s->peer + N_CONNECTIONS; p++) {
		const int both[] = { p->socket, p->who.pidfd };

		if (p->state != PEER_ATTACHED || p->slot != slot)
			continue;
		for (int i = 0; i < 2; i++) {
			fds[n] = both[i] >= 0 ? fcntl(both[i], F_DUPFD_CLOEXEC, 0) : -1;
			n += fds[n] >= 0;
		}
	}
	return n;
}
