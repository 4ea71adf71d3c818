/* faults.c — one end causes an error, closes the connection or dies; both ends must get the expected error in time. */
#include "tests/rdma/exchange/exchange.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

enum { TAG = 7, WRONG_TAG = 8, BYTES = 100, SHORT_BYTES = 50, FAULT_MS = 300, LAST_MS = 5 };
enum fault { SHORT, WRONG, KEY, NO_RECEIVE, NO_SEND, CLOSE, KILL_SERVER, KILL_CLIENT };

/* The error that each end must report: one of the texts that '|' separates; "": any text; NULL: this end has no error. */
static const struct {
	const char *name, *client, *server;
} faults[] = {
	[SHORT] = { "short", "longer than the peer's receive buffer of 50 bytes", "longer than the peer's receive buffer of 50 bytes" },
	[WRONG] = { "tag", "has tag 7, but the peer's next receive has tag 8", "has tag 7, but the peer's next receive has tag 8" },
	[KEY] = { "key", "IBV_WC_REM_ACCESS_ERR|the key or the range of the peer's memory is wrong",
		  "IBV_WC_REM_ACCESS_ERR|IBV_WC_LOC_ACCESS_ERR|wrong key|key or the range" },
	[NO_RECEIVE] = { "no-receive", "the peer has not posted a receive for a send", "the peer has not posted a receive for a send" },
	[NO_SEND] = { "no-send", "no message has arrived for a posted receive", "no message has arrived for a posted receive" },
	[CLOSE] = { "close", NULL, "the peer has closed the connection" },
	[KILL_SERVER] = { "kill-server", "", NULL },
	[KILL_CLIENT] = { "kill-client", NULL, "" },
};
enum { N_FAULTS = sizeof faults / sizeof faults[0] };

static const char *const outstandings[] = { "none", "send", "receive", "puts" };
enum outstanding { NONE, SEND, RECEIVE, PUTS, N_OUTSTANDINGS };

int fault_find(const char *name)
{
	for (int i = 0; i < N_FAULTS; i++)
		if (!strcmp(faults[i].name, name))
			return i;
	return -1;
}

void fault_list(char *out, size_t out_bytes)
{
	size_t n = 0;

	out[0] = '\0';
	for (int i = 0; i < N_FAULTS && n < out_bytes; i++)
		n += (size_t)snprintf(out + n, out_bytes - n, "%s%s", i ? ", " : "", faults[i].name);
}

int outstanding_find(const char *name)
{
	for (int i = 0; i < N_OUTSTANDINGS; i++)
		if (!strcmp(outstandings[i], name))
			return i;
	return -1;
}

/* ---- what the ends do ------------------------------------------------------------------------------------------------ */

static gpul_status post_send(session *s, uint32_t tag, int timeout_ms, gpul_error *err)
{
	const gpul_rdma_buffer b = buffer_in(&s->out, PAD, BYTES, tag);
	gpul_rdma_request ignored;

	return gpul_rdma_isend(s->conn, &b, timeout_ms, &ignored, err);
}

static gpul_status post_receive(session *s, uint64_t bytes, uint32_t tag, int timeout_ms, gpul_error *err)
{
	const gpul_rdma_buffer b = buffer_in(&s->in, PAD, bytes, tag);
	gpul_rdma_request ignored;

	return gpul_rdma_irecv(s->conn, &b, 1, timeout_ms, &ignored, err);
}

static gpul_status post_put(session *s, uint64_t wrong_key, gpul_error *err)
{
	const gpul_rdma_put_desc put = {
		.from = { .at = (uint64_t)(uintptr_t)s->out.at, .bytes = 64, .area = gpul_rdma_region_area(s->out.region) },
		.to = { .address = s->peer_puts.address, .key = s->peer_puts.key ^ wrong_key, .bytes = 64 },
	};
	gpul_rdma_request ignored;

	return gpul_rdma_put(s->conn, &put, 0, &ignored, err);
}

/* Do what causes the fault, or what the fault affects, on this end. */
static gpul_status act(session *s, enum fault f, gpul_error *err)
{
	switch (f) {
	case SHORT:
		return s->serving ? post_receive(s, SHORT_BYTES, TAG, 0, err) : post_send(s, TAG, 0, err);
	case WRONG:
		return s->serving ? post_receive(s, BYTES, WRONG_TAG, 0, err) : post_send(s, TAG, 0, err);
	case KEY:
		return s->serving ? GPUL_OK : post_put(s, 0x5a5a, err);
	case NO_RECEIVE:
		return s->serving ? GPUL_OK : post_send(s, TAG, FAULT_MS, err);
	case NO_SEND:
		return s->serving ? post_receive(s, BYTES, TAG, FAULT_MS, err) : GPUL_OK;
	case CLOSE:
		return s->serving ? post_receive(s, BYTES, TAG, 0, err) : GPUL_OK;
	default:
		return GPUL_OK;
	}
}

/* ---- death -------------------------------------------------------------------------------------------------------------- */

/* Make progress until the peer tells this process to kill itself. */
static gpul_status be_killed(session *s, gpul_error *err)
{
	uint64_t end_ns = UINT64_MAX;
	unsigned turns = 0;
	gpul_status st = GPUL_OK;

	for (; !st && gpul_clock_ns() < end_ns; relax(&turns, true)) {
		st = gpul_rdma_progress(s->conn, NULL, err);
		if (end_ns == UINT64_MAX && __atomic_load_n(&s->words->kill, __ATOMIC_ACQUIRE))
			end_ns = gpul_clock_ns() + LAST_MS * 1000000;
	}
	if (!st)
		kill(getpid(), SIGKILL);
	return st;
}

/* Make the peer kill itself by a put that sets its word `kill`; a put arrives even when sends are outstanding. */
static gpul_status kill_peer(session *s, gpul_rdma_request *out, gpul_error *err)
{
	const gpul_rdma_put_desc put = {
		.signal = { .address = s->peer_words.address + offsetof(words, kill), .key = s->peer_words.key, .bytes = 8 },
		.signal_value = 1,
	};

	return gpul_rdma_put(s->conn, &put, 0, out, err);
}

static gpul_status begin_outstanding(session *s, enum outstanding what, gpul_error *err)
{
	switch (what) {
	case SEND:
		return post_send(s, TAG, 0, err);
	case RECEIVE:
		return post_receive(s, BYTES, TAG, 0, err);
	default:
		return GPUL_OK;
	}
}

/* Wait without an active request, so that only the library's watching thread can detect the peer's death. */
static gpul_status wait_idle(session *s, gpul_rdma_request last, uint64_t limit_ns, gpul_error *err)
{
	struct pollfd p = { .fd = gpul_rdma_conn_fd(s->conn), .events = POLLIN };
	gpul_status st = gpul_rdma_wait(s->conn, last, NULL, err);

	if (!st)
		(void)poll(&p, 1, (int)(limit_ns / 1000000));
	return st;
}

static gpul_status survive(session *s, enum outstanding what, uint64_t limit_ns, uint64_t *begun_ns, gpul_error *err)
{
	gpul_rdma_request last = 0;
	gpul_status st = begin_outstanding(s, what, err);

	*begun_ns = gpul_clock_ns();
	if (!st)
		st = kill_peer(s, &last, err);
	if (!st && what == NONE)
		st = wait_idle(s, last, limit_ns, err);
	while (!st && what == PUTS && gpul_clock_ns() - *begun_ns < limit_ns) {
		st = post_put(s, 0, err);
		for (int i = 0; i < 20 && !st; i++)
			st = gpul_rdma_progress(s->conn, NULL, err);
	}
	return st;
}

/* ---- both ends ------------------------------------------------------------------------------------------------------------ */

static bool matches(const char *text, const char *alternatives)
{
	char one[200];

	for (const char *at = alternatives;; at += strlen(one) + 1) {
		snprintf(one, sizeof one, "%.*s", (int)strcspn(at, "|"), at);
		if (strstr(text, one))
			return true;
		if (!at[strlen(one)])
			return false;
	}
}

/* Wait for the failure, print it, and compare it with the one that is expected. */
static gpul_status expect_failure(session *s, enum fault f, uint64_t begun_ns, uint64_t limit_ns, gpul_status st, const gpul_error *seen,
				  gpul_error *err)
{
	const char *text = s->serving ? faults[f].server : faults[f].client;
	gpul_error failure = *seen;
	uint64_t after_ns;
	unsigned turns = 0;

	while (!st && gpul_clock_ns() - begun_ns < limit_ns) {
		st = gpul_rdma_progress(s->conn, NULL, &failure);
		relax(&turns, true);
	}
	after_ns = gpul_clock_ns() - begun_ns;
	if (!st)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "%s: no error within %.1f s", faults[f].name, (double)limit_ns * 1e-9);
	printf("%s: %s: after %.1f ms: %s\n", s->serving ? "server" : "client", faults[f].name, (double)after_ns * 1e-6, failure.text);
	if (!matches(failure.text, text))
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: expected an error with '%s'", faults[f].name, text);
	if (!strstr(failure.text, s->info.peer))
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: the error does not name the peer %s", faults[f].name, s->info.peer);
	if (after_ns > limit_ns)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "%s: the error came later than %.1f s", faults[f].name,
				 (double)limit_ns * 1e-9);
	return GPUL_OK;
}

static gpul_status run_fault(session *s, enum fault f, enum outstanding what, gpul_error *err)
{
	const bool victim = f == (s->serving ? KILL_SERVER : KILL_CLIENT), survivor = f == (s->serving ? KILL_CLIENT : KILL_SERVER);
	const uint64_t limit_ns = s->info.notice_ns + FAULT_MS * 1000000;
	uint64_t begun_ns = gpul_clock_ns();
	gpul_error seen = { 0 };
	gpul_status st;

	if (victim)
		return be_killed(s, err);
	if (f == CLOSE && !s->serving)
		return GPUL_OK;
	st = survivor ? survive(s, what, limit_ns, &begun_ns, &seen) : act(s, f, &seen);
	return expect_failure(s, f, begun_ns, limit_ns, st, &seen, err);
}

gpul_status fault_client(session *s, const wishes *w, gpul_error *err)
{
	const note n = { .kind = NOTE_FAULT, .fault = (uint32_t)w->fault, .outstanding = w->outstanding };
	note answer;
	gpul_status st = session_tell(s, &n, err);

	if (!st)
		st = session_hear(s, NOTE_CHECKED, &answer, err);
	return st ? st : run_fault(s, (enum fault)n.fault, (enum outstanding)n.outstanding, err);
}

gpul_status fault_server(session *s, const note *n, gpul_error *err)
{
	if (n->fault >= N_FAULTS || n->outstanding >= N_OUTSTANDINGS)
		return gpul_fail(err, GPUL_EFORMAT, 0, "unknown fault %u, %u", n->fault, n->outstanding);
	return run_fault(s, (enum fault)n->fault, (enum outstanding)n->outstanding, err);
}
