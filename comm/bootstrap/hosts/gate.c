/* gate.c — how rank 0 gathers a job over TCP: it admits ranks that know the secret, and sends all ranks the list of their
 * hosts.
 *
 * A connection that does not prove that it knows the secret cannot disturb other connections, whatever it sends. A connection
 * that knows the secret, but has a wrong rank number or job size, makes the job fail. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/bootstrap/hosts/hosts_internal.h"
#include "core/log.h"

/* More than the number of ranks, so that silent connections of other programs do not keep ranks out; the oldest one is closed to
 * make room. */
enum { MAX_VISITORS = 2 * GPUL_COMM_MAX_RANKS + 8, VISIT_BYTES = 512, REASON_BYTES = 200 };

/* A connection whose process has not yet proved that it knows the secret. */
struct visitor {
	int fd;
	struct boot_stream *stream;
	bool challenged; /* the HELLO has arrived, and rank 0 has sent a CHALLENGE */
	struct boot_visit hello;
	unsigned char nonce[BOOT_NONCE_BYTES]; /* random number in the CHALLENGE */
	char from[GPUL_RDMA_ADDRESS_BYTES];
};

struct gate {
	gpul_boot *b;
	const struct boot_wait *wait;
	gpul_rdma_port port;
	struct visitor visitors[MAX_VISITORS]; /* connections that are not admitted yet, oldest first */
	int n_visitors;
	struct boot_machine machines[GPUL_COMM_MAX_RANKS];
	uint32_t arrived; /* mask of the ranks that have been admitted, including rank 0 */
	uint32_t awaited; /* set when all ranks have arrived: mask of the leaders of other hosts whose second connection is missing */
};

static void remove_visitor(struct gate *g, int i)
{
	memmove(&g->visitors[i], &g->visitors[i + 1], (size_t)(--g->n_visitors - i) * sizeof *g->visitors);
}

/* Close a connection without sending a reason, so that the rank will try again. */
static void drop_visitor(struct gate *g, int i)
{
	close(g->visitors[i].fd);
	gpul_boot_stream_destroy(g->visitors[i].stream);
	remove_visitor(g, i);
}

/* Refuse a connection: send the reason, keep the reason for the message of a time-out, and close. */
static void refuse_visitor(struct gate *g, int i, const char *why)
{
	struct visitor *v = &g->visitors[i];
	struct boot_head head = { .type = BOOT_REFUSED };

	gpul_log(GPUL_LOG_INFO, "comm", "rank 0 refused %s: %s", v->from, why);
	snprintf(g->b->refused, sizeof g->b->refused, "%s: %.*s", v->from, REASON_BYTES / 2, why);
	(void)gpul_boot_stream_send(v->stream, &head, why, strnlen(why, REASON_BYTES), NULL);
	(void)shutdown(v->fd, SHUT_WR);
	drop_visitor(g, i);
}

static gpul_status accept_visitors(struct gate *g, gpul_error *err)
{
	for (;;) {
		struct sockaddr_storage from = { 0 };
		socklen_t n = sizeof from;
		int fd = accept4(g->port.fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct visitor *v;
		gpul_status st;

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
			return gpul_fail(err, GPUL_ESYS, errno, "%s: cannot accept a rank: %s%s", g->wait->doing, strerror(errno),
					 errno == EMFILE ? " (ulimit -n)" : "");
		if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return GPUL_OK;
		if (fd < 0)
			continue; /* only this connection has failed, with one of the network errors that accept(2) lists */
		if (g->n_visitors == MAX_VISITORS)
			drop_visitor(g, 0);
		v = &g->visitors[g->n_visitors];
		*v = (struct visitor){ .fd = fd };
		gpul_rdma_sockaddr_print((struct sockaddr *)&from, n, v->from);
		st = gpul_boot_stream_create(fd, VISIT_BYTES, &v->stream, err);
		if (st) {
			close(fd);
			return st;
		}
		g->n_visitors++;
	}
}

/* True if a rank that knows the secret has a wrong size or number, or connects twice; text receives the reason. */
static bool is_contradiction(const struct gate *g, const struct boot_visit *h, char *text, size_t text_bytes)
{
	const gpul_comm_job *job = &g->b->job;

	if (h->size != job->size)
		snprintf(text, text_bytes, "process %d of host %.63s (rank %d) expects %d ranks, but rank 0 expects %d", h->pid,
			 h->machine.name, h->rank, h->size, job->size);
	else if (h->rank < 1 || h->rank >= job->size)
		snprintf(text, text_bytes, "process %d of host %.63s says that it is rank %d, expected rank 1 to %d", h->pid,
			 h->machine.name, h->rank, job->size - 1);
	else if (h->purpose == BOOT_LINK && g->arrived & 1u << h->rank)
		snprintf(text, text_bytes, "process %d of host %.63s and process %d of host %.63s both say that they are rank %d",
			 (int)gpul_boot_pid(g->b, h->rank), g->machines[h->rank].name, h->pid, h->machine.name, h->rank);
	else if (h->purpose == BOOT_CALLS && !(g->awaited & 1u << h->rank))
		snprintf(text, text_bytes, "process %d of host %.63s (rank %d) has connected a second time", h->pid, h->machine.name,
			 h->rank);
	else
		return false;
	return true;
}

static void challenge_visitor(struct gate *g, int i)
{
	struct visitor *v = &g->visitors[i];
	struct boot_head head = { .type = BOOT_CHALLENGE };
	gpul_error why = { 0 };

	if (gpul_boot_parse_visit(g->b->packet, &v->hello, &why))
		refuse_visitor(g, i, why.text);
	else if (strcmp(v->hello.job, g->b->job.name) != 0)
		refuse_visitor(g, i, "a different job listens at this address: give each job its own address (GPULOAD_COMM_ADDRESS)");
	else if (!gpul_boot_nonce(v->nonce))
		refuse_visitor(g, i, "rank 0 cannot get random numbers");
	else if (gpul_boot_stream_send(v->stream, &head, v->nonce, sizeof v->nonce, NULL) != BOOT_GOT_PACKET)
		drop_visitor(g, i);
	else
		v->challenged = true;
}

/* Store the socket and stream of a rank's connection. */
static gpul_status admit_visitor(struct gate *g, int i, gpul_error *err)
{
	struct visitor v = g->visitors[i];
	struct roster_entry *e = &g->b->roster->entry[v.hello.rank];
	const bool is_link = v.hello.purpose == BOOT_LINK;
	struct boot_stream *wide = NULL;
	gpul_status st = gpul_boot_stream_create(v.fd, is_link ? BOOT_SMALL_BYTES : BOOT_PAYLOAD_BYTES, &wide, err);

	if (st)
		return st;
	/* Bytes that have arrived after the PROOF move to the new stream, which is large enough.  The old stream has
	 * nothing left to send. */
	memcpy(wide->in, v.stream->in, v.stream->n_in);
	wide->n_in = v.stream->n_in;
	gpul_boot_stream_destroy(v.stream);
	remove_visitor(g, i);
	if (is_link) {
		gpul_boot_links_add(g->b, v.hello.rank, v.fd, wide);
		g->machines[v.hello.rank] = v.hello.machine;
		atomic_store(&e->pid, v.hello.pid);
		atomic_store(&e->state, RANK_ARRIVED);
		g->arrived |= 1u << v.hello.rank;
		return GPUL_OK;
	}
	g->b->stream[v.hello.rank] = wide;
	atomic_store(&g->b->socket[v.hello.rank], v.fd);
	g->awaited &= ~(1u << v.hello.rank);
	return GPUL_OK;
}

/* Check a PROOF, and reply with rank 0's own proof. */
static gpul_status check_proof(struct gate *g, int i, gpul_error *err)
{
	struct visitor *v = &g->visitors[i];
	struct boot_packet *p = g->b->packet;
	struct boot_head head = { .type = BOOT_WELCOME };
	unsigned char proof[GPUL_SHA256_BYTES];
	char text[200 + 2 * GPUL_COMM_HOST_BYTES];

	if (p->head.type != BOOT_PROOF || p->head.bytes != sizeof proof) {
		refuse_visitor(g, i, "expected a message that proves knowledge of the secret (GPULOAD_COMM_SECRET)");
		return GPUL_OK;
	}
	gpul_boot_proof(g->b->job.secret, BOOT_VISITOR, &v->hello, v->nonce, proof);
	if (!gpul_sha256_same(proof, p->payload)) {
		snprintf(text, sizeof text, "rank %d of host %s has a different secret (GPULOAD_COMM_SECRET) from rank 0", v->hello.rank,
			 v->hello.machine.name);
		refuse_visitor(g, i, text);
		return GPUL_OK;
	}
	if (is_contradiction(g, &v->hello, text, sizeof text)) {
		refuse_visitor(g, i, text);
		return gpul_boot_fail_job(g->b, -1, GPUL_EUNSUPPORTED, 0, text, err);
	}
	gpul_boot_proof(g->b->job.secret, BOOT_RANK_0, &v->hello, v->nonce, proof);
	if (gpul_boot_stream_send(v->stream, &head, proof, sizeof proof, NULL) == BOOT_GOT_PACKET)
		return admit_visitor(g, i, err);
	drop_visitor(g, i);
	return GPUL_OK;
}

static gpul_status hear_visitor(struct gate *g, int i, gpul_error *err)
{
	struct visitor *v = &g->visitors[i];
	gpul_error why = { 0 };

	switch (gpul_boot_stream_receive(v->stream, g->b->packet, &why)) {
	case BOOT_GOT_NOTHING:
		return GPUL_OK;
	case BOOT_GOT_END:
		drop_visitor(g, i);
		return GPUL_OK;
	case BOOT_GOT_BAD:
		refuse_visitor(g, i, why.text);
		return GPUL_OK;
	case BOOT_GOT_PACKET:
		break;
	}
	if (v->challenged)
		return check_proof(g, i, err);
	challenge_visitor(g, i);
	return GPUL_OK;
}

static gpul_status let_in_more(struct gate *g, gpul_error *err)
{
	struct pollfd fds[2 + GPUL_COMM_MAX_RANKS + MAX_VISITORS] = { { 0 }, { .fd = g->port.fd, .events = POLLIN } };
	const uint32_t all = (uint32_t)((1ull << g->b->job.size) - 1);
	int ranks[GPUL_COMM_MAX_RANKS], n_ranks = gpul_boot_links_poll(g->b, fds + 2, ranks), n_visitors = g->n_visitors;
	gpul_status st;

	for (int i = 0; i < n_visitors; i++)
		fds[2 + n_ranks + i] = (struct pollfd){ .fd = g->visitors[i].fd, .events = POLLIN };
	st = gpul_boot_poll(g->b, fds, (nfds_t)(2 + n_ranks + n_visitors), g->wait, (all & ~g->arrived) | g->awaited, err);
	for (int i = 0; !st && i < n_ranks; i++)
		if (fds[2 + i].revents)
			gpul_boot_links_receive(g->b, ranks[i]);
	/* Iterate backwards, because handling a connection may remove it from the list. */
	for (int i = n_visitors - 1; !st && i >= 0; i--)
		if (fds[2 + n_ranks + i].revents)
			st = hear_visitor(g, i, err);
	if (!st && fds[1].revents)
		st = accept_visitors(g, err);
	return st ? st : gpul_boot_failed(g->b, err);
}

/* Number the hosts, and send the numbers to all ranks. */
static gpul_status announce_hosts(struct gate *g, gpul_error *err)
{
	struct boot_hosts hosts = { 0 };
	int n_hosts = 0;

	for (int r = 0; r < g->b->job.size; r++) {
		int first = 0;

		while (first < r &&
		       (strcmp(g->machines[first].name, g->machines[r].name) != 0 || strcmp(g->machines[first].id, g->machines[r].id) != 0))
			first++;
		hosts.host[r] = first < r ? hosts.host[first] : n_hosts++;
		hosts.pid[r] = (int32_t)gpul_boot_pid(g->b, r);
		memcpy(hosts.name[hosts.host[r]], g->machines[r].name, sizeof *hosts.name);
	}
	gpul_boot_use_hosts(g->b, &hosts);
	for (int r = 1; r < g->b->job.size; r++) {
		struct boot_head head = { .type = BOOT_HOSTS };

		if (!gpul_boot_links_send(g->b, r, &head, &hosts, sizeof hosts))
			return gpul_boot_ended(g->b, r, g->wait->doing, err);
		if (g->b->reach[r] && g->b->host[r] != g->b->host[0])
			g->awaited |= 1u << r;
	}
	return GPUL_OK;
}

gpul_status gpul_boot_gate(gpul_boot *b, const struct boot_wait *w, gpul_error *err)
{
	const uint32_t all = (uint32_t)((1ull << b->job.size) - 1);
	struct gate g = { .b = b, .wait = w, .port = { .fd = -1, .lock_fd = -1 }, .arrived = 1 };
	gpul_error why = { 0 };
	gpul_status st = gpul_boot_create_roster(b, err);

	if (!st)
		st = gpul_boot_links_create(b, err);
	if (!st)
		st = gpul_boot_listen(&b->job, &g.port, err);
	if (st)
		return st;
	gpul_boot_machine(&b->job, &g.machines[0]);
	while (!st && g.arrived != all)
		st = let_in_more(&g, &why);
	if (!st)
		st = announce_hosts(&g, &why);
	while (!st && g.awaited)
		st = let_in_more(&g, &why);
	gpul_rdma_port_close(&g.port);
	while (g.n_visitors)
		refuse_visitor(&g, g.n_visitors - 1, st ? why.text : "all ranks of the job have connected already");
	return st ? gpul_fail(err, st, why.native, "%s", why.text) : GPUL_OK;
}
