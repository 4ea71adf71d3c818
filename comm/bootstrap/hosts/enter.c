/* enter.c — how ranks other than 0 join a job over TCP: connect to rank 0, prove knowledge of the secret, receive the hosts.
 *
 * A rank that joins has not yet mapped the roster (roster.h), which shows which ranks have failed. So its waits end before the
 * deadline only if rank 0 or gpuload's launcher reports a failure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "comm/bootstrap/hosts/hosts_internal.h"
#include "core/clock.h"

/* A connection attempt that is not answered within TRY_MS is repeated.  Only rank 0 knows which ranks are missing at the deadline,
 * so a rank waits PATIENCE_MS longer for rank 0 to report them. */
enum { FIRST_NAP_MS = 2, LONGEST_NAP_MS = 100, TRY_MS = 3000, NOTICE_MS = 20, PATIENCE_MS = 1000 };

struct entrance {
	gpul_boot *b;
	const struct boot_wait *wait;
	gpul_rdma_resolved to;
	int fd; /* the socket of the connection attempt; -1: none */
	struct boot_stream *stream;
	char failed[96]; /* why the last attempt failed */
};

static void hang_up(struct entrance *e)
{
	if (e->fd >= 0)
		close(e->fd);
	gpul_boot_stream_destroy(e->stream);
	e->fd = -1;
	e->stream = NULL;
}

/* Check whether the wait must end because the deadline has passed or the job has failed. */
static gpul_status may_go_on(struct entrance *e, int patience_ms, gpul_error *err)
{
	const struct boot_wait *w = e->wait;

	if (gpul_boot_has_notice(e->b, err) || (e->b->n_hosts && gpul_boot_links_news(e->b, err)))
		return GPUL_EUNSUPPORTED;
	if (w->deadline_ns == BOOT_NEVER || gpul_boot_left_ms(w->deadline_ns + (uint64_t)patience_ms * 1000000))
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "%s: rank 0 at %s could not be reached within %d ms%s%s", w->doing, e->b->job.address,
			 w->timeout_ms, e->failed[0] || patience_ms ? ": " : "",
			 e->failed[0]  ? e->failed
			 : patience_ms ? "it accepts the connection, but does not answer"
				       : "");
}

/* Start a connection to one address.  Returns false if it cannot be reached, with the reason in e->failed. */
static bool dial(struct entrance *e, unsigned i, uint64_t until_ns)
{
	const struct sockaddr *to = (const struct sockaddr *)&e->to.sockaddrs[i].at;
	int error = 0;
	socklen_t n = sizeof error;

	e->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (e->fd < 0) {
		error = errno;
	} else if (connect(e->fd, to, e->to.sockaddrs[i].bytes) == 0) {
		return true;
	} else if (errno != EINPROGRESS) {
		error = errno;
	} else {
		struct pollfd ready = { .fd = e->fd, .events = POLLOUT };
		int got;

		do
			got = poll(&ready, 1, gpul_boot_left_ms(until_ns));
		while (got < 0 && errno == EINTR);
		if (got <= 0)
			error = got < 0 ? errno : ETIMEDOUT;
		else if (getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &error, &n))
			error = errno;
	}
	if (!error)
		return true;
	snprintf(e->failed, sizeof e->failed, "%s%s", strerror(error), error == EMFILE ? " (ulimit -n)" : "");
	hang_up(e);
	return false;
}

/* Connect to rank 0, and repeat this until rank 0 listens. */
static gpul_status connect_to_gate(struct entrance *e, gpul_error *err)
{
	long nap_ms = FIRST_NAP_MS;

	for (;;) {
		gpul_status st = may_go_on(e, 0, err);

		if (st)
			return st;
		for (unsigned i = 0; i < e->to.n; i++) {
			uint64_t until = gpul_boot_deadline(TRY_MS);

			if (dial(e, i, until < e->wait->deadline_ns ? until : e->wait->deadline_ns))
				return GPUL_OK;
		}
		nanosleep(&(struct timespec){ .tv_nsec = nap_ms * 1000000 }, NULL);
		nap_ms = nap_ms * 2 < LONGEST_NAP_MS ? nap_ms * 2 : LONGEST_NAP_MS;
	}
}

/* Wait for the next packet of a stream. *got is BOOT_GOT_PACKET, BOOT_GOT_END, or BOOT_GOT_BAD with the reason in err. */
static gpul_status await_packet(struct entrance *e, struct boot_stream *s, boot_got *got, gpul_error *err)
{
	while ((*got = gpul_boot_stream_receive(s, e->b->packet, err)) == BOOT_GOT_NOTHING) {
		struct pollfd ready = { .fd = s->fd, .events = POLLIN };
		gpul_status st = may_go_on(e, PATIENCE_MS, err);

		if (st)
			return st;
		if (poll(&ready, 1, NOTICE_MS) < 0 && errno != EINTR)
			return gpul_fail(err, GPUL_ESYS, errno, "%s: poll: %s", e->wait->doing, strerror(errno));
	}
	return GPUL_OK;
}

/* Explain an unexpected packet: rank 0 has refused this rank, or another program listens at rank 0's address. */
static gpul_status explain_answer(struct entrance *e, const char *expected, gpul_error *err)
{
	const struct boot_packet *p = e->b->packet;
	char why[256];

	if (p->head.type != BOOT_REFUSED)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: rank 0 at %s answered with message type %u, expected %s", e->wait->doing,
				 e->b->job.address, p->head.type, expected);
	gpul_boot_copy_text(why, sizeof why, p->payload, p->head.bytes);
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "rank 0 at %s refused rank %d: %s", e->b->job.address, e->b->job.rank, why);
}

/* Send a packet to rank 0 and wait for the reply. *again: the connection has ended, but a new one may succeed. */
static gpul_status ask(struct entrance *e, enum boot_type type, const void *payload, size_t n_bytes, enum boot_type answer, bool *again,
		       gpul_error *err)
{
	struct boot_head head = { .type = type };
	gpul_error why = { 0 };
	boot_got got = gpul_boot_stream_send(e->stream, &head, payload, n_bytes, &why);
	gpul_status st = GPUL_OK;

	/* If rank 0 has closed the connection, it may have sent the reason first. */
	if (got != BOOT_GOT_BAD)
		st = await_packet(e, e->stream, &got, &why);
	if (st)
		return gpul_fail(err, st, why.native, "%s", why.text);
	*again = got == BOOT_GOT_END || (got == BOOT_GOT_BAD && why.status == GPUL_ESYS);
	if (*again)
		return GPUL_OK;
	if (got == BOOT_GOT_BAD)
		return gpul_fail(err, why.status, why.native, "%s: the program that listens at %s sent %s", e->wait->doing,
				 e->b->job.address, why.text);
	if (e->b->packet->head.type == answer && e->b->packet->head.bytes == GPUL_SHA256_BYTES)
		return GPUL_OK;
	return explain_answer(e, answer == BOOT_WELCOME ? "WELCOME" : "CHALLENGE", err);
}

/* Try once to be admitted by rank 0. */
static gpul_status introduce_rank(struct entrance *e, struct boot_visit *hello, bool *again, gpul_error *err)
{
	unsigned char challenge[BOOT_NONCE_BYTES], proof[GPUL_SHA256_BYTES];
	gpul_status st = connect_to_gate(e, err);

	*again = false;
	if (!st && !gpul_boot_nonce(hello->nonce))
		st = gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	if (!st)
		st = gpul_boot_stream_create(e->fd, hello->purpose == BOOT_LINK ? BOOT_SMALL_BYTES : BOOT_PAYLOAD_BYTES, &e->stream, err);
	if (!st)
		st = ask(e, BOOT_HELLO, hello, sizeof *hello, BOOT_CHALLENGE, again, err);
	if (st || *again)
		return st;
	memcpy(challenge, e->b->packet->payload, sizeof challenge);
	gpul_boot_proof(e->b->job.secret, BOOT_VISITOR, hello, challenge, proof);
	st = ask(e, BOOT_PROOF, proof, sizeof proof, BOOT_WELCOME, again, err);
	if (st || *again)
		return st;
	gpul_boot_proof(e->b->job.secret, BOOT_RANK_0, hello, challenge, proof);
	if (gpul_sha256_same(proof, e->b->packet->payload))
		return GPUL_OK;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "rank %d refused to connect to rank 0 at %s: rank 0 has a different secret (GPULOAD_COMM_SECRET)", e->b->job.rank,
			 e->b->job.address);
}

/* Open a connection to rank 0 for heartbeats or for calls, and store it in e->fd and e->stream. */
static gpul_status be_admitted(struct entrance *e, enum boot_purpose purpose, gpul_error *err)
{
	struct boot_visit hello = { .rank = e->b->job.rank, .size = e->b->job.size, .pid = (int32_t)getpid(), .purpose = purpose };
	bool again;
	gpul_status st;

	memcpy(hello.job, e->b->job.name, sizeof hello.job);
	gpul_boot_machine(&e->b->job, &hello.machine);
	while (!(st = introduce_rank(e, &hello, &again, err)) && again) {
		snprintf(e->failed, sizeof e->failed, "rank 0 has closed the connection");
		hang_up(e);
		nanosleep(&(struct timespec){ .tv_nsec = (long)LONGEST_NAP_MS * 1000000 }, NULL);
	}
	if (st)
		hang_up(e);
	return st;
}

/* Wait until all ranks have arrived and rank 0 sends the hosts. */
static gpul_status await_hosts(struct entrance *e, gpul_error *err)
{
	const struct boot_packet *p = e->b->packet;
	struct boot_stream *s = e->stream;
	struct roster_record record;
	struct boot_hosts hosts;
	gpul_error why = { 0 };
	boot_got got;
	gpul_status st = await_packet(e, s, &got, &why);

	if (st)
		return gpul_fail(err, st, why.native, "%s", why.text);
	if (got == BOOT_GOT_BAD)
		return gpul_boot_explain_stream(&e->b->job, &why, err);
	if (got == BOOT_GOT_END || p->head.type == BOOT_BYE)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "rank 0 at %s ended before all ranks had joined the job", e->b->job.address);
	if (p->head.type == BOOT_FAILED && !gpul_boot_parse_record(p, e->b->job.size, &record, err))
		return gpul_fail(err, (gpul_status)record.status, record.native, "%s%s",
				 record.kind != GPUL_RANK_FAILED ? "" : "rank 0 failed: ", record.text);
	st = gpul_boot_parse_hosts(p, e->b->job.size, &hosts, err);
	if (!st)
		gpul_boot_use_hosts(e->b, &hosts);
	return st;
}

gpul_status gpul_boot_enter(gpul_boot *b, const struct boot_wait *w, gpul_error *err)
{
	struct entrance e = { .b = b, .wait = w, .fd = -1 };
	gpul_rdma_address address;
	gpul_status st = gpul_rdma_address_parse(b->job.address, &address, err);

	if (!st)
		st = gpul_rdma_address_resolve(&address, false, &e.to, err);
	if (!st)
		st = be_admitted(&e, BOOT_LINK, err);
	if (!st)
		st = gpul_boot_links_create(b, err);
	if (st) {
		hang_up(&e);
		return st;
	}
	gpul_boot_links_add(b, 0, e.fd, e.stream);
	st = await_hosts(&e, err);
	if (st || b->leader != b->job.rank || b->leader == 0)
		return st;
	e.fd = -1;
	e.stream = NULL;
	st = be_admitted(&e, BOOT_CALLS, err);
	if (st)
		return st;
	atomic_store(&b->socket[0], e.fd);
	b->stream[0] = e.stream;
	return GPUL_OK;
}
