/* incast_send.c — a sender: hands messages over to the send path as long as its window permits, and probes the queue.
 *
 *     sender-driven     put the message, increment `arrived`                the whole message enters the network immediately
 *     receiver-driven   increment `requested`, send the message in pieces   a piece waits here for its clear-to-send slot */
#include <stdlib.h>
#include <string.h>

#include "cli/comm/incast/incast_queue.h"
#include "cli/comm/incast/incast_rank.h"
#include "core/clock.h"

enum { PROBE_NS = 2000000, MOST_REQUESTS = 1024, WAIT_MS = INCAST_WAIT_MS };

struct sender {
	struct incast_rank *r;
	const struct incast_run *run;
	gpul_rdma_conn *conn;
	uint64_t prepared, handed, ended; /* numbers of messages that have been prepared, handed over to the send path, and completed */
	uint64_t sent_bytes;              /* receiver-driven: bytes that this run has passed to the send path, piece by piece */
	uint64_t announced;               /* number of messages that the receiver has been notified of */
	gpul_rdma_request announcement;   /* the put in flight that notifies the receiver; 0: none */
	struct piece {                    /* requests in flight: a ring, in the order in which they started */
		gpul_rdma_request request;
		bool last; /* this is the last piece of its message */
	} pieces[MOST_REQUESTS];
	unsigned first, n_pieces;

	gpul_rdma_conn *probe_conn; /* connection for probes; NULL: this rank does not probe */
	gpul_rdma_request probe;    /* the probe in flight; 0: none */
	uint64_t probe_ns;          /* time at which to send the next probe */
};

/* Return the remote address of a member of struct incast_mail. */
#define MAIL(remote, member) ((gpul_rdma_remote){ (remote).address + offsetof(struct incast_mail, member), (remote).key, sizeof(uint64_t) })

static void add_piece(struct sender *s, gpul_rdma_request request, bool last)
{
	s->pieces[(s->first + s->n_pieces++) % MOST_REQUESTS] = (struct piece){ request, last };
}

/* ---- handing over --------------------------------------------------------------------------------------------- */

static bool may_hand(const struct sender *s)
{
	return s->handed < s->run->n_messages && s->handed - s->ended < s->r->n_slots && s->n_pieces < MOST_REQUESTS;
}

/* Write the next message into its slot, and record when the message's time starts. */
static void prepare_message(struct sender *s)
{
	if (s->prepared > s->handed)
		return;
	s->prepared++;
	incast_fill(incast_slot(s->r, s->r->job.rank, s->handed), s->run->bytes, s->r->job.rank, s->handed);
	atomic_store_explicit(incast_handed(s->r, s->r->job.rank, s->handed), gpul_clock_ns(), memory_order_release);
}

static gpul_status put_message(struct sender *s, bool *busy, gpul_error *err)
{
	const struct incast_rank *r = s->r;
	const uint64_t offset = s->handed % r->n_slots * r->slot_bytes;
	gpul_rdma_put_desc put = { .from = { .at = (uint64_t)(uintptr_t)incast_slot(r, r->job.rank, s->handed),
					     .bytes = s->run->bytes,
					     .area = gpul_rdma_region_area(r->data_region) },
				   .to = { r->to_data.address + offset, r->to_data.key, s->run->bytes },
				   .signal = MAIL(r->to_mail, arrived),
				   .signal_value = s->handed + 1 };
	gpul_rdma_request request;
	gpul_status st;

	prepare_message(s);
	st = gpul_rdma_put(s->conn, &put, WAIT_MS, &request, err);
	if (st || !request)
		return st;
	(void)atomic_fetch_add(&r->counters[r->job.rank].posted, s->run->bytes);
	add_piece(s, request, true);
	s->handed++;
	*busy = true;
	return GPUL_OK;
}

/* Put a new value into a word of the receiver's struct incast_mail. */
static gpul_status put_word(gpul_rdma_conn *conn, const gpul_rdma_region *from, gpul_rdma_remote word, uint64_t value,
			    gpul_rdma_request *out, gpul_error *err)
{
	const gpul_rdma_area *area = gpul_rdma_region_area(from);
	const gpul_rdma_put_desc put = { .from = { .at = area->pieces[0].at, .area = area }, .signal = word, .signal_value = value };

	return gpul_rdma_put(conn, &put, WAIT_MS, out, err);
}

/* Request permission to send, by putting the number of waiting messages into the receiver's memory. */
static gpul_status announce(struct sender *s, bool *busy, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	bool done = false;

	if (s->announcement) {
		st = gpul_rdma_test(s->conn, s->announcement, &done, NULL, err);
		if (st || !done)
			return st;
		s->announcement = 0;
	}
	if (s->announced == s->handed)
		return GPUL_OK;
	st = put_word(s->conn, s->r->mail_region, MAIL(s->r->to_mail, requested), s->handed, &s->announcement, err);
	if (!st && s->announcement) {
		s->announced = s->handed;
		*busy = true;
	}
	return st;
}

/* Start to send pieces of the messages that have been handed over; the send path holds back each piece until the receiver grants it. */
static gpul_status send_pieces(struct sender *s, bool *busy, gpul_error *err)
{
	while (s->sent_bytes < s->handed * s->run->bytes && s->n_pieces < MOST_REQUESTS) {
		const uint64_t message = s->sent_bytes / s->run->bytes, offset = s->sent_bytes % s->run->bytes;
		const uint64_t left = s->run->bytes - offset, bytes = left < s->r->q->grant_bytes ? left : s->r->q->grant_bytes;
		const gpul_rdma_buffer b = { .region = s->r->data_region,
					     .bytes = bytes,
					     .tag = INCAST_TAG,
					     .at = (uint64_t)(uintptr_t)incast_slot(s->r, s->r->job.rank, message) + offset };
		gpul_rdma_request request;
		const gpul_status st = gpul_rdma_isend(s->conn, &b, WAIT_MS, &request, err);

		if (st || !request)
			return st;
		add_piece(s, request, bytes == left);
		s->sent_bytes += bytes;
		*busy = true;
	}
	return GPUL_OK;
}

/* ---- completions, probes ---------------------------------------------------------------------------------------- */

static gpul_status end_pieces(struct sender *s, bool *busy, gpul_error *err)
{
	while (s->n_pieces) {
		bool done = false;
		const gpul_status st = gpul_rdma_test(s->conn, s->pieces[s->first].request, &done, NULL, err);

		if (st || !done)
			return st;
		s->ended += s->pieces[s->first].last;
		s->first = (s->first + 1) % MOST_REQUESTS;
		s->n_pieces--;
		*busy = true;
	}
	return GPUL_OK;
}

/* Send probes, which contain the current time, at intervals and one at a time; they pass through the same queue as the messages. */
static gpul_status send_probe(struct sender *s, gpul_error *err)
{
	const uint64_t now = gpul_clock_ns();
	bool done = false;
	gpul_status st;

	if (s->probe) {
		st = gpul_rdma_test(s->probe_conn, s->probe, &done, NULL, err);
		if (st || !done)
			return st;
		s->probe = 0;
	}
	if (now < s->probe_ns || s->ended == s->run->n_messages)
		return GPUL_OK;
	s->probe_ns = now + PROBE_NS;
	return put_word(s->probe_conn, s->r->probe_region, MAIL(s->r->to_probe, probe), now, &s->probe, err);
}

static gpul_status take_turn(struct sender *s, bool *busy, gpul_error *err)
{
	gpul_status st = gpul_rdma_progress(s->conn, NULL, err);

	if (s->run->mode == INCAST_SENDER) {
		for (uint64_t before = s->handed; !st && may_hand(s); before = s->handed) {
			st = put_message(s, busy, err);
			if (s->handed == before)
				break;
		}
	} else {
		for (; may_hand(s); s->handed++)
			prepare_message(s);
		st = st ? st : announce(s, busy, err);
		st = st ? st : send_pieces(s, busy, err);
	}
	st = st ? st : end_pieces(s, busy, err);
	return st || !s->probe_conn ? st : send_probe(s, err);
}

gpul_status incast_send(struct incast_rank *r, const struct incast_run *run, gpul_error *err)
{
	const uint64_t now = gpul_clock_ns(), retransmitted = incast_retransmissions();
	struct incast_counters *mine = &r->counters[r->job.rank];
	struct incast_pace pace = { .r = r, .busy_ns = now, .checked_ns = now };
	struct sender *s = calloc(1, sizeof *s);
	gpul_status st;

	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the requests");
	s->r = r;
	s->run = run;
	s->conn = gpul_comm_mesh_conn(r->mesh, 0);
	s->probe_conn = run->recorded ? gpul_comm_mesh_conn(r->probe_mesh, 0) : NULL;
	st = gpul_boot_barrier(r->boot, INCAST_MEET_MS, err);
	pace.busy_ns = s->probe_ns = gpul_clock_ns();
	while (!st && (s->ended < run->n_messages || s->announcement || s->probe)) {
		bool busy = false;

		st = take_turn(s, &busy, err);
		st = st ? st : incast_pace_turn(&pace, busy, err);
	}
	free(s);
	atomic_store(&mine->retransmissions, incast_retransmissions() - retransmitted);
	atomic_store(&mine->ended, r->run);
	return st;
}
