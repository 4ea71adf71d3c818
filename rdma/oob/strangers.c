/* strangers.c — accepts clients, makes them prove that they know the secret, and reads their HELLO and READY. */
#include "rdma/oob/strangers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "rdma/oob/owner.h"
#include "rdma/oob/port.h"

enum { FREE, SILENT, CHALLENGED, PROVED, GREETED, WELCOMED, READY };
/* ids of other descriptors in epoll events; smaller ids are indices of clients */
enum { LISTENER = GPUL_RDMA_MAX_STRANGERS, WAKE, N_SOURCES };
enum { HELLO_MS = 10000, READY_MS = 10000 };
static const uint64_t PAUSE_NS = 100000000;

struct gpul_rdma_strangers {
	gpul_rdma_port port;
	int epoll, wake;
	uint64_t hello_ns, ready_ns;
	bool has_key, expects;
	bool refused_proof; /* .refused is about a client with a wrong proof, rather than one without a proof */
	unsigned char key[GPUL_SHA256_BYTES];
	gpul_rdma_identity expected;
	char refused[GPUL_RDMA_ADDRESS_BYTES + 220], pending[GPUL_RDMA_ADDRESS_BYTES + 220];
	uint64_t paused_until_ns; /* not 0: until this time the listener is not polled, because no entry or descriptor is free for
				   * another client */
	gpul_rdma_stranger all[GPUL_RDMA_MAX_STRANGERS];
};

static bool watch_source(gpul_rdma_strangers *s, int fd, unsigned source)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = source };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static void unwatch(gpul_rdma_strangers *s, int fd)
{
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static unsigned index_of(const gpul_rdma_strangers *s, const gpul_rdma_stranger *who)
{
	return (unsigned)(who - s->all);
}

gpul_status gpul_rdma_strangers_create(const gpul_rdma_strangers_desc *desc, gpul_rdma_strangers **out, gpul_error *err)
{
	gpul_rdma_strangers *s = calloc(1, sizeof *s);
	gpul_status st;

	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: a listener needs %zu bytes", sizeof *s);
	s->hello_ns = (uint64_t)(desc->hello_ms ? desc->hello_ms : HELLO_MS) * 1000000;
	s->ready_ns = (uint64_t)(desc->ready_ms ? desc->ready_ms : READY_MS) * 1000000;
	s->has_key = desc->key != NULL;
	if (desc->key)
		memcpy(s->key, desc->key, sizeof s->key);
	st = gpul_rdma_port_open(&desc->address, &s->port, err);
	if (st)
		goto free_s;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->wake < 0 || s->epoll < 0 || !watch_source(s, s->port.fd, LISTENER) || !watch_source(s, s->wake, WAKE)) {
		st = gpul_fail(err, GPUL_ESYS, errno, "cannot wait for connections: %s", strerror(errno));
		goto close_all;
	}
	*out = s;
	return GPUL_OK;
close_all:
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->wake >= 0)
		close(s->wake);
	gpul_rdma_port_close(&s->port);
free_s:
	free(s);
	return st;
}

void gpul_rdma_strangers_destroy(gpul_rdma_strangers *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < GPUL_RDMA_MAX_STRANGERS; i++)
		gpul_rdma_channel_close(s->all[i].channel);
	gpul_rdma_port_close(&s->port);
	close(s->epoll);
	close(s->wake);
	free(s);
}

const char *gpul_rdma_strangers_name(const gpul_rdma_strangers *s)
{
	return s->port.name;
}

unsigned gpul_rdma_strangers_port(const gpul_rdma_strangers *s)
{
	return s->port.number;
}

void gpul_rdma_strangers_wake(gpul_rdma_strangers *s)
{
	(void)!write(s->wake, &(uint64_t){ 1 }, sizeof(uint64_t)); /* fails only if the eventfd is already readable */
}

void gpul_rdma_strangers_expect(gpul_rdma_strangers *s, const gpul_rdma_identity *identity)
{
	s->expects = identity != NULL;
	if (identity)
		s->expected = *identity;
}

/* ---- one stranger (a client that has connected, but has not been accepted yet) ---------------------------------------- */

/* True while the client's next frame is awaited: the socket is then polled, and a time limit applies. */
static bool is_watched(const gpul_rdma_stranger *who)
{
	return who->state == SILENT || who->state == CHALLENGED || who->state == PROVED || who->state == WELCOMED;
}

static const char *awaited_frame(const gpul_rdma_strangers *s, const gpul_rdma_stranger *who)
{
	return who->state == WELCOMED               ? "READY"
	       : who->state == CHALLENGED           ? "PROOF"
	       : who->state == SILENT && s->has_key ? "IDENTIFY"
						    : "HELLO";
}

gpul_rdma_channel *gpul_rdma_stranger_take(gpul_rdma_strangers *s, gpul_rdma_stranger *who)
{
	gpul_rdma_channel *c = who->channel;

	if (is_watched(who))
		unwatch(s, gpul_rdma_channel_fd(c));
	*who = (gpul_rdma_stranger){ .state = FREE };
	if (s->paused_until_ns)
		s->paused_until_ns = 1; /* an entry is free again: continue to accept immediately */
	return c;
}

static void describe_stranger(const gpul_rdma_stranger *who, const char *reason, char *out, size_t out_bytes)
{
	char owner[32];

	gpul_rdma_owner_text(gpul_rdma_channel_fd(who->channel), owner, sizeof owner);
	snprintf(out, out_bytes, "%s%s: %s", gpul_rdma_channel_peer(who->channel), owner, reason);
}

/* Record a client that is dropped before its HELLO, for the message of a time-out.  A client with another secret detects the
 * difference first, and disconnects after the challenge: always record it.  Of clients that sent nothing or invalid data only the
 * first is recorded, because there may be many. */
static void note_dropped(gpul_rdma_strangers *s, const gpul_rdma_stranger *who, const gpul_rdma_failure *why)
{
	const bool began = who->state == CHALLENGED;
	char reason[180];

	if (!began && (who->state != SILENT || s->refused[0]))
		return;
	snprintf(reason, sizeof reason,
		 began ? "the client did not prove that it knows the secret, so its secret may differ (%.60s)"
		       : "the client did not complete the handshake (%.80s)",
		 why->what);
	describe_stranger(who, reason, s->refused, sizeof s->refused);
	s->refused_proof = began;
}

const char *gpul_rdma_strangers_refused(gpul_rdma_strangers *s)
{
	const gpul_rdma_stranger *first = NULL;
	unsigned n = 0;
	char reason[100];

	if (s->refused[0])
		return s->refused;
	for (const gpul_rdma_stranger *who = s->all; who < s->all + GPUL_RDMA_MAX_STRANGERS; who++) {
		if (who->state != SILENT && who->state != CHALLENGED)
			continue;
		first = first ? first : who;
		n++;
	}
	s->pending[0] = '\0';
	if (!first)
		return s->pending;
	snprintf(reason, sizeof reason, "the client has not yet sent %s; %u clients are in this state", awaited_frame(s, first), n);
	describe_stranger(first, reason, s->pending, sizeof s->pending);
	return s->pending;
}

/* Close a client's connection.  Returns true if the caller of gpul_rdma_strangers_next() must be informed; *out is then the event. */
static bool drop_stranger(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const gpul_rdma_failure *why, gpul_rdma_stranger_event *out)
{
	bool known = who->state == WELCOMED;
	gpul_error line = { 0 };

	(void)gpul_rdma_failure_error(why, &line);
	gpul_log(GPUL_LOG_INFO, "rdma", "%s: dropped a client: %s", s->port.name, line.text);
	note_dropped(s, who, why);
	if (known)
		*out = (gpul_rdma_stranger_event){ .kind = GPUL_RDMA_STRANGER_GONE, .user = who->user, .why = *why };
	gpul_rdma_channel_close(gpul_rdma_stranger_take(s, who));
	return known;
}

static void describe_late(const gpul_rdma_strangers *s, const gpul_rdma_stranger *who, gpul_rdma_failure *why)
{
	memcpy(why->peer, gpul_rdma_channel_peer(who->channel), sizeof why->peer);
	(void)gpul_rdma_fail(why, GPUL_ESYS, ETIMEDOUT, "handshake", "check that the peer is gpuload, and that its process is not stopped",
			     "the peer did not send %s within %.1f s", awaited_frame(s, who),
			     (double)(who->state == WELCOMED ? s->ready_ns : s->hello_ns) / 1e9);
}

/* Report a client's HELLO or READY, and stop polling its socket until the caller has reacted, so that further frames of the client
 * cost no time. */
static bool report_stranger(gpul_rdma_strangers *s, gpul_rdma_stranger *who, int state, gpul_rdma_stranger_event_kind kind,
			    gpul_rdma_stranger_event *out)
{
	unwatch(s, gpul_rdma_channel_fd(who->channel));
	who->state = state;
	*out = (gpul_rdma_stranger_event){ .kind = kind, .who = who, .user = who->user };
	return true;
}

/* Refuse a client that has not proved that it knows the secret.  Returns false, because this causes no event: the wait for other
 * clients continues. */
static bool refuse_unproved(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const char *reason)
{
	const gpul_log_level level = s->refused_proof ? GPUL_LOG_INFO : GPUL_LOG_NOTICE;
	gpul_rdma_failure why = { 0 };

	describe_stranger(who, reason, s->refused, sizeof s->refused);
	s->refused_proof = true;
	gpul_log(level, "rdma", "%s: refused %s", s->port.name, s->refused);
	(void)gpul_rdma_fail(&why, GPUL_EUNSUPPORTED, EACCES, "accept", NULL, "the server refused this client: %s", reason);
	gpul_rdma_stranger_refuse(s, who, &why);
	return false;
}

/* Send a CHALLENGE after an IDENTIFY.  The client's identity is compared only after its proof, so that a client without the secret
 * cannot learn the expected identity. */
static bool challenge_stranger(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const gpul_rdma_frame *identify)
{
	const gpul_rdma_credentials *from = &identify->credentials;
	gpul_rdma_frame frame = { .type = GPUL_RDMA_CHALLENGE };
	gpul_rdma_failure why = { 0 };

	if (!s->has_key)
		return refuse_unproved(s, who, "the client has a secret, but the server has none: give both sides the same secret");
	if (identify->type == GPUL_RDMA_HELLO)
		return refuse_unproved(s, who, "the client has no secret, but the server has one: give both sides the same secret");
	frame.credentials.identity = who->identity = from->identity;
	if (!gpul_rdma_make_nonce(frame.credentials.nonce))
		return refuse_unproved(s, who, "the server cannot get random numbers (getrandom)");
	gpul_rdma_make_proof(s->key, GPUL_RDMA_SERVER, &from->identity, from->nonce, frame.credentials.nonce, frame.credentials.proof);
	gpul_rdma_make_proof(s->key, GPUL_RDMA_CLIENT, &from->identity, from->nonce, frame.credentials.nonce, who->proof);
	who->state = CHALLENGED;
	if (gpul_rdma_channel_send(who->channel, &frame, &why))
		(void)drop_stranger(s, who, &why, &(gpul_rdma_stranger_event){ 0 }); /* no event: the client has not received a WELCOME,
										      * so the caller has no connection to release */
	return false;
}

static bool check_proof(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const gpul_rdma_credentials *given)
{
	const gpul_rdma_identity *is = &who->identity, *wants = &s->expected;
	char text[100];

	if (!gpul_sha256_same(given->proof, who->proof))
		return refuse_unproved(s, who, "the secret of the client differs from that of the server");
	who->state = PROVED;
	if (!s->expects || memcmp(is, wants, sizeof *is) == 0)
		return false;
	snprintf(text, sizeof text, "it is connection %u of rank %u to %u, purpose %u; expected %u of rank %u to %u, purpose %u",
		 is->channel, is->from, is->to, is->purpose, wants->channel, wants->from, wants->to, wants->purpose);
	return refuse_unproved(s, who, text);
}

/* Handle a frame.  Returns true if it causes an event; if not, the client may have been dropped or refused. */
static bool handle_frame(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const gpul_rdma_frame *frame, gpul_rdma_stranger_event *out)
{
	gpul_rdma_failure why = { 0 };

	if (who->state == WELCOMED && frame->type == GPUL_RDMA_READY)
		return report_stranger(s, who, READY, GPUL_RDMA_STRANGER_READY, out);
	if (who->state == (s->has_key ? PROVED : SILENT) && frame->type == GPUL_RDMA_HELLO) {
		who->hello = frame->hello;
		return report_stranger(s, who, GREETED, GPUL_RDMA_STRANGER_HELLO, out);
	}
	if (who->state == SILENT && (frame->type == GPUL_RDMA_HELLO || frame->type == GPUL_RDMA_IDENTIFY))
		return challenge_stranger(s, who, frame);
	if (who->state == CHALLENGED && frame->type == GPUL_RDMA_PROOF)
		return check_proof(s, who, &frame->credentials);
	memcpy(why.peer, gpul_rdma_channel_peer(who->channel), sizeof why.peer);
	(void)gpul_rdma_fail(&why, GPUL_EFORMAT, 0, "handshake", NULL, "the peer sent %s instead of %s", gpul_rdma_frame_name(frame->type),
			     awaited_frame(s, who));
	return drop_stranger(s, who, &why, out);
}

/* Read what a client has sent; several frames may have arrived together.  Returns true if there is an event. */
static bool read_stranger(gpul_rdma_strangers *s, gpul_rdma_stranger *who, gpul_rdma_stranger_event *out)
{
	gpul_rdma_failure why = { 0 };
	gpul_rdma_frame frame;
	bool got = false;

	while (is_watched(who)) {
		if (gpul_rdma_channel_receive(who->channel, &frame, &got, &why))
			return drop_stranger(s, who, &why, out);
		if (!got)
			return false;
		if (handle_frame(s, who, &frame, out))
			return true;
	}
	return false;
}

gpul_status gpul_rdma_stranger_welcome(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const gpul_rdma_hello *hello,
				       gpul_rdma_failure *why)
{
	gpul_rdma_frame frame = { .type = GPUL_RDMA_WELCOME, .hello = *hello };
	gpul_status st = gpul_rdma_channel_send(who->channel, &frame, why);

	if (!st && !watch_source(s, gpul_rdma_channel_fd(who->channel), index_of(s, who)))
		st = gpul_rdma_fail(why, GPUL_ESYS, errno, "epoll_ctl", NULL, "%s", strerror(errno));
	if (st) {
		gpul_rdma_channel_close(gpul_rdma_stranger_take(s, who));
		return st;
	}
	who->state = WELCOMED;
	who->deadline_ns = gpul_clock_ns() + s->ready_ns;
	return GPUL_OK;
}

void gpul_rdma_stranger_refuse(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const gpul_rdma_failure *why)
{
	gpul_rdma_frame frame = { .type = GPUL_RDMA_REFUSED, .failure = *why };
	gpul_rdma_failure ignored = { 0 }; /* the send fails only if the client has already disconnected */

	(void)gpul_rdma_channel_send(who->channel, &frame, &ignored);
	gpul_rdma_channel_close(gpul_rdma_stranger_take(s, who));
}

/* ---- accept --------------------------------------------------------------------------------------------------------- */

/* Find an entry for another client: a free one, or the entry of the oldest client that has sent neither proof nor HELLO. */
static gpul_rdma_stranger *find_place(gpul_rdma_strangers *s, gpul_rdma_stranger_event *out)
{
	gpul_rdma_stranger *oldest = NULL;
	gpul_rdma_failure why = { 0 };

	for (gpul_rdma_stranger *who = s->all; who < s->all + GPUL_RDMA_MAX_STRANGERS; who++) {
		if (who->state == FREE)
			return who;
		if ((who->state == SILENT || who->state == CHALLENGED) && (!oldest || who->since_ns < oldest->since_ns))
			oldest = who;
	}
	if (!oldest)
		return NULL;
	memcpy(why.peer, gpul_rdma_channel_peer(oldest->channel), sizeof why.peer);
	(void)gpul_rdma_fail(&why, GPUL_ESYS, EBUSY, "handshake", NULL,
			     "dropped without a HELLO message, because %d clients, the limit, are waiting to be accepted",
			     GPUL_RDMA_MAX_STRANGERS);
	(void)drop_stranger(s, oldest, &why, out); /* returns false: a client without HELLO causes no event */
	return oldest;
}

/* Stop accepting for PAUSE_NS: epoll would otherwise report the waiting clients continuously. */
static void pause_listener(gpul_rdma_strangers *s)
{
	unwatch(s, s->port.fd);
	s->paused_until_ns = gpul_clock_ns() + PAUSE_NS;
}

static void resume_listener(gpul_rdma_strangers *s, uint64_t now)
{
	if (s->paused_until_ns && now >= s->paused_until_ns)
		s->paused_until_ns = watch_source(s, s->port.fd, LISTENER) ? 0 : now + PAUSE_NS;
}

static void accept_one(gpul_rdma_strangers *s, gpul_rdma_stranger_event *out)
{
	gpul_rdma_stranger *who = find_place(s, out);
	gpul_error err = { 0 };
	int fd;

	if (!who) {
		pause_listener(s);
		return;
	}
	fd = accept4(s->port.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
		gpul_log(GPUL_LOG_INFO, "rdma", "%s: cannot accept a client now: %s", s->port.name, strerror(errno));
		pause_listener(s);
	}
	if (fd < 0)
		return; /* other errors mean that the client has already disconnected */
	if (gpul_rdma_channel_create(fd, &who->channel, &err)) {
		gpul_log(GPUL_LOG_INFO, "rdma", "%s: refused a client: %s", s->port.name, err.text);
		close(fd);
		return;
	}
	if (!watch_source(s, fd, index_of(s, who))) {
		gpul_log(GPUL_LOG_INFO, "rdma", "%s: refused a client: %s", s->port.name, strerror(errno));
		gpul_rdma_channel_close(who->channel);
		who->channel = NULL;
		return;
	}
	who->state = SILENT;
	who->since_ns = gpul_clock_ns();
	who->deadline_ns = who->since_ns + s->hello_ns;
}

/* ---- wait ----------------------------------------------------------------------------------------------------------- */

/* Drop the clients whose deadline has passed.  Returns true if there is an event. */
static bool check_deadlines(gpul_rdma_strangers *s, uint64_t now, gpul_rdma_stranger_event *out)
{
	for (gpul_rdma_stranger *who = s->all; who < s->all + GPUL_RDMA_MAX_STRANGERS; who++) {
		gpul_rdma_failure why = { 0 };

		if (!is_watched(who) || now < who->deadline_ns)
			continue;
		/* This thread may have been late: read what has arrived before dropping the client. */
		if (read_stranger(s, who, out))
			return true;
		if (who->state == FREE)
			continue;
		describe_late(s, who, &why);
		if (drop_stranger(s, who, &why, out))
			return true;
	}
	return false;
}

static int wait_ms(const gpul_rdma_strangers *s, uint64_t now, uint64_t deadline_ns)
{
	uint64_t until = deadline_ns;

	if (s->paused_until_ns && s->paused_until_ns < until)
		until = s->paused_until_ns;
	for (const gpul_rdma_stranger *who = s->all; who < s->all + GPUL_RDMA_MAX_STRANGERS; who++)
		if (is_watched(who) && who->deadline_ns < until)
			until = who->deadline_ns;
	if (until == UINT64_MAX)
		return -1;
	until = until > now ? (until - now + 999999) / 1000000 : 0;
	return until < INT32_MAX ? (int)until : INT32_MAX;
}

/* Read from the clients whose sockets are readable, first from those that have received a WELCOME: their leases are running, and
 * handling a HELLO takes long.  Returns true if there is an event. */
static bool read_ready(gpul_rdma_strangers *s, const struct epoll_event *ready, int n, gpul_rdma_stranger_event *out)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < n; i++) {
			const unsigned source = ready[i].data.u32;

			if (source < GPUL_RDMA_MAX_STRANGERS && (s->all[source].state == WELCOMED) == (pass == 0) &&
			    read_stranger(s, &s->all[source], out))
				return true;
		}
	return false;
}

gpul_status gpul_rdma_strangers_next(gpul_rdma_strangers *s, uint64_t deadline_ns, gpul_rdma_stranger_event *out, gpul_error *err)
{
	struct epoll_event ready[N_SOURCES];
	bool may_accept, once = false;

	*out = (gpul_rdma_stranger_event){ .kind = GPUL_RDMA_STRANGER_NONE };
	for (;; once = true) {
		uint64_t now = gpul_clock_ns();
		int n;

		resume_listener(s, now);
		if (check_deadlines(s, now, out) || (once && now >= deadline_ns))
			return GPUL_OK;
		n = epoll_wait(s->epoll, ready, N_SOURCES, wait_ms(s, now, deadline_ns));
		if (n < 0 && errno != EINTR)
			return gpul_fail(err, GPUL_ESYS, errno, "epoll_wait: %s", strerror(errno));
		may_accept = false;
		for (int i = 0; i < n; i++) {
			unsigned source = ready[i].data.u32;

			if (source == WAKE) {
				(void)!read(s->wake, &(uint64_t){ 0 }, sizeof(uint64_t));
				return GPUL_OK;
			}
			may_accept |= source == LISTENER;
		}
		if (read_ready(s, ready, n, out)) /* before accept, so that accept does not drop a client whose HELLO has already arrived */
			return GPUL_OK;
		if (may_accept)
			accept_one(s, out);
	}
}
