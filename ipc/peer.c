/* peer.c — one connection, from its first word to its end: see the drawing in
 * server_internal.h. */
#include "ipc/server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

static size_t index_of(const gpul_ipc_server *s, const struct peer *p)
{
	return (size_t)(p - s->peer);
}

static void tell(gpul_ipc_event *out, gpul_ipc_event_kind kind, const struct peer *p,
		 const gpul_error *why)
{
	*out = (gpul_ipc_event){
		.kind = kind, .peer = p->slot, .pid = p->who.pid, .uid = p->who.uid
	};
	if (why)
		out->why = *why;
}

/* Free the connection.  Its descriptors are taken out of epoll by hand: a forked child that
 * holds copies of them would keep them there. */
static void drop(gpul_ipc_server *s, struct peer *p)
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

/* Turn it away; whoever is attached already is lost instead. */
static void refuse(gpul_ipc_server *s, struct peer *p, const gpul_error *why,
		   gpul_ipc_event *out)
{
	struct wire_refused m = { .head = gpul_ipc_wire_head(WIRE_REFUSED),
				  .status = (uint32_t)why->status,
				  .native = why->native };
	gpul_ipc_event_kind kind =
		p->state == PEER_ATTACHED ? GPUL_IPC_PEER_DIED : GPUL_IPC_REFUSED;

	snprintf(m.text, sizeof m.text, "%.199s", why->text);
	(void)gpul_ipc_send(p->socket, &m, sizeof m, -1, NULL); /* it may be gone already */
	gpul_log(GPUL_LOG_INFO, "ipc", "%s: %s pid %d of user %u: %s", s->name.socket,
		 kind == GPUL_IPC_REFUSED ? "refused" : "dropped", (int)p->who.pid,
		 (unsigned)p->who.uid, why->text);
	tell(out, kind, p, why);
	drop(s, p);
}

static void refuse_for(gpul_ipc_server *s, struct peer *p, gpul_status status, const char *text,
		       gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	(void)gpul_fail(&why, status, 0, "%s", text);
	refuse(s, p, &why, out);
}

/* Its connection or its process is at its end, and there was no BYE. */
static void lost(gpul_ipc_server *s, struct peer *p, const char *what, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	if (p->state == PEER_GREETING) { /* somebody looked whether anybody is here */
		drop(s, p);
		return;
	}
	(void)gpul_fail(&why, GPUL_ESYS, ECONNRESET, "pid %d %s%s", (int)p->who.pid, what,
			p->state == PEER_MAPPING ? " before it had mapped the memory"
						 : " without a goodbye");
	gpul_log(GPUL_LOG_INFO, "ipc", "%s: %s", s->name.socket, why.text);
	tell(out, p->state == PEER_ATTACHED ? GPUL_IPC_PEER_DIED : GPUL_IPC_REFUSED, p, &why);
	drop(s, p);
}

static bool is_ours(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	if (p->who.uid == geteuid())
		return true;
	(void)gpul_fail(&why, GPUL_EUNSUPPORTED, (int)p->who.uid,
			"this memory is user %u's, and you are user %u", (unsigned)geteuid(),
			(unsigned)p->who.uid);
	refuse(s, p, &why, out);
	return false;
}

static void answer(gpul_ipc_server *s, struct peer *p)
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
	drop(s, p);
}

static void offer(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	p->slot = __builtin_ctzll(~s->slots);
	s->slots |= (uint64_t)1 << p->slot;
	s->offer.share.slot = (uint32_t)p->slot;
	if (gpul_ipc_send(p->socket, &s->offer, sizeof s->offer, s->fd, &why)) {
		refuse(s, p, &why, out);
		return;
	}
	p->state = PEER_MAPPING;
	p->deadline_ns = gpul_clock_ns() + s->map_ns;
	gpul_ipc_epoll_set_timer(s, p->deadline_ns);
}

static void greeted(gpul_ipc_server *s, struct peer *p, const struct wire_hello *hello,
		    gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	if (!is_ours(s, p, out))
		return;
	if (hello->intent == WIRE_ASK) {
		answer(s, p);
	} else if (gpul_ipc_here_fits(hello, &s->offer.share, &why)) {
		refuse(s, p, &why, out);
	} else if ((unsigned)__builtin_popcountll(s->slots) >= s->max_peers) {
		(void)gpul_fail(&why, GPUL_EUNSUPPORTED, 0, "%u %s attached already", s->max_peers,
				s->max_peers == 1 ? "peer is" : "peers are");
		refuse(s, p, &why, out);
	} else {
		offer(s, p, out);
	}
}

static void mapped(gpul_ipc_server *s, struct peer *p, const struct wire_ready *ready,
		   gpul_ipc_event *out)
{
	p->ready = *ready;
	p->deadline_ns = 0;
	p->since_ns = gpul_clock_ns();
	gpul_ipc_watch(&p->who, p->socket, p->signs);
	if (p->who.pidfd >= 0 &&
	    !gpul_ipc_epoll_add(s, p->who.pidfd, SOURCE_PROCESS, index_of(s, p))) {
		close(p->who.pidfd);
		p->who.pidfd = -1; /* the end of the connection tells as much, but for a forked
				      child */
	}
	p->state = PEER_ATTACHED;
	tell(out, GPUL_IPC_ATTACHED, p, NULL);
}

static void let_go(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	if (p->state == PEER_ATTACHED) {
		tell(out, GPUL_IPC_DETACHED, p, NULL);
	} else if (p->state == PEER_MAPPING) {
		(void)gpul_fail(&why, GPUL_ESYS, ECANCELED,
				"pid %d gave up before it had mapped the memory",
				(int)p->who.pid);
		tell(out, GPUL_IPC_REFUSED, p, &why);
	}
	drop(s, p);
}

static void refused_us(gpul_ipc_server *s, struct peer *p, const struct wire_refused *m,
		       gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	(void)gpul_fail(&why, (gpul_status)m->status, m->native, "pid %d could not map it: %s",
			(int)p->who.pid, m->text);
	gpul_log(GPUL_LOG_INFO, "ipc", "%s: %s", s->name.socket, why.text);
	tell(out, GPUL_IPC_REFUSED, p, &why);
	drop(s, p);
}

static void take(gpul_ipc_server *s, struct peer *p, const gpul_ipc_message *m,
		 gpul_ipc_event *out)
{
	if (p->state == PEER_GREETING && m->head.type == WIRE_HELLO)
		greeted(s, p, &m->hello, out);
	else if (p->state == PEER_MAPPING && m->head.type == WIRE_READY)
		mapped(s, p, &m->ready, out);
	else if (p->state == PEER_MAPPING && m->head.type == WIRE_REFUSED)
		refused_us(s, p, &m->refused, out);
	else if (m->head.type == WIRE_BYE)
		let_go(s, p, out);
	else
		refuse_for(s, p, GPUL_EFORMAT, "a message out of turn", out);
}

static bool receive(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out);

/* Who lets go and attaches again at once can be heard in that order: its HELLO, on a new
 * connection, before its BYE. So where all slots are taken, those who have one are asked first.
 * True: one of them had something to say, which is to be told before anybody is turned away. */
static bool others_first(gpul_ipc_server *s, gpul_ipc_event *out)
{
	if ((unsigned)__builtin_popcountll(s->slots) < s->max_peers)
		return false;
	for (struct peer *p = s->peer; p < s->peer + N_CONNECTIONS; p++)
		if (p->state != PEER_FREE && p->slot >= 0 && receive(s, p, out) &&
		    out->kind != GPUL_IPC_NONE)
			return true;
	return false;
}

/* False: nothing was there. */
static bool receive(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_ipc_message m;
	gpul_error why = { 0 };
	int fd;

	if (p->state == PEER_GREETING && others_first(s, out))
		return true; /* its HELLO stays where it is, and its socket readable */
	switch (gpul_ipc_receive(p->socket, &m, &fd,
				 p->signs && p->state == PEER_GREETING ? &p->who : NULL,
				 &why)) {
	case GOT_MESSAGE:
		if (fd >= 0)
			close(fd); /* an OFFER, to an owner: out of turn */
		take(s, p, &m, out);
		return true;
	case GOT_BAD:
		refuse(s, p, &why, out);
		return true;
	case GOT_END:
		lost(s, p, "closed its connection", out);
		return true;
	case GOT_NOTHING:
		break;
	}
	return false;
}

void gpul_ipc_peer_readable(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	if (p->state != PEER_FREE)
		(void)receive(s, p, out);
}

void gpul_ipc_peer_ended(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	/* Its last words first: it may have said BYE. */
	if (p->state != PEER_FREE && !receive(s, p, out))
		lost(s, p, "ended", out);
}

void gpul_ipc_peer_late(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	/* Perhaps it is this process that was away, and the answer lies there. */
	if (receive(s, p, out))
		return;
	(void)gpul_fail(
		&why, GPUL_ESYS, ETIMEDOUT, "pid %d did not say %s in time (%llu ms)",
		(int)p->who.pid, p->state == PEER_GREETING ? "HELLO" : "READY",
		(unsigned long long)((p->state == PEER_GREETING ? s->step_ns : s->map_ns) /
				     1000000));
	refuse(s, p, &why, out);
}

void gpul_ipc_peer_dismiss(gpul_ipc_server *s, struct peer *p)
{
	struct wire_head bye = gpul_ipc_wire_head(WIRE_BYE);

	if (p->state != PEER_GREETING)
		(void)gpul_ipc_send(p->socket, &bye, sizeof bye, -1, NULL);
	drop(s, p);
}

/* A free place; a flood of connections that say nothing costs the oldest of them its place. */
static struct peer *place_for(gpul_ipc_server *s, gpul_ipc_event *out)
{
	struct peer *oldest = NULL;

	for (struct peer *p = s->peer; p < s->peer + N_CONNECTIONS; p++) {
		if (p->state == PEER_FREE)
			return p;
		if (p->state == PEER_GREETING && !p->signs &&
		    (!oldest || p->since_ns < oldest->since_ns))
			oldest = p;
	}
	if (oldest)
		refuse_for(s, oldest, GPUL_EUNSUPPORTED,
			   "too many connections that say nothing: the oldest goes", out);
	return oldest;
}

void gpul_ipc_peer_begin(gpul_ipc_server *s, int socket, bool signs, gpul_ipc_event *out)
{
	struct peer *p = place_for(s, out);

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
		if (!gpul_ipc_epoll_add(s, socket, SOURCE_SOCKET, index_of(s, p)))
			drop(s, p);
		return;
	}
	p->who = gpul_ipc_identify(socket);
	p->deadline_ns = p->since_ns + s->step_ns;
	/* A peer says HELLO in the same breath as it connects.  Only one event fits, though:
	 * where the place was made by an eviction, HELLO waits for the next call. */
	if (!is_ours(s, p, out))
		return;
	if (out->kind == GPUL_IPC_NONE)
		(void)receive(s, p, out);
	if (p->state == PEER_FREE)
		return;
	if (!gpul_ipc_epoll_add(s, socket, SOURCE_SOCKET, index_of(s, p)))
		refuse_for(s, p, GPUL_ESYS, "the owner cannot watch another connection", out);
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
			peers[n] =
				(gpul_ipc_peer){ .slot = slot,
						 .pid = p->who.pid,
						 .uid = p->who.uid,
						 .cpu = p->ready.cpu,
						 .gpu = p->ready.gpu,
						 .read_only = p->ready.read_only,
						 .attached_ms = (now - p->since_ns) / 1000000 };
			memcpy(peers[n].device_uuid, p->ready.device,
			       sizeof peers[n].device_uuid);
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
