/* reliable_receive.c — chunks from the peer, and the acknowledgements that report them. */
#include <string.h>

#include "rdma/reliable/reliable_internal.h"

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

/* Check the members of a header that do not depend on what has arrived. */
static bool check_chunk(const gpul_rel *r, const struct rel_data *d, uint32_t n_bytes, gpul_rdma_failure *why)
{
	if (d->path >= r->o.n_paths)
		return rel_broken(why, "a chunk came on path %u: expected less than %u", d->path, r->o.n_paths);
	if (d->bytes != n_bytes - sizeof *d || d->bytes > r->o.chunk_bytes)
		return rel_broken(why, "a chunk of %u bytes came in %u bytes", d->bytes, n_bytes);
	if (!d->n_chunks || d->n_chunks > r->o.window / 2 || d->chunk - d->first >= d->n_chunks)
		return rel_broken(why, "chunk %u came as one of %u, from %u", d->chunk, d->n_chunks, d->first);
	if (d->bytes != r->o.chunk_bytes && d->chunk - d->first != d->n_chunks - 1 && !(r->o.writes && d->chunk == d->first))
		return rel_broken(why, "chunk %u has %u bytes, but is not the last one", d->chunk, d->bytes);
	if (!rel_before(d->chunk, r->in_next + r->o.window) || !rel_before(d->chunk, r->in_limit))
		return rel_broken(why, "chunk %u came, but the limit is %u", d->chunk, r->in_limit);
	return !r->o.writes || rel_check_more(r, d, why);
}

/* Find the message of a chunk, or begin it.  Returns NULL, and *why, if the chunk contradicts an earlier one. */
static struct rel_in *find_message(gpul_rel *r, const struct rel_data *d, gpul_rdma_failure *why)
{
	struct rel_in *m = &r->in[d->message & (r->o.messages - 1)];

	if (d->message - r->in_oldest >= r->o.messages) {
		(void)rel_broken(why, "message %u came: expected %u to %u", d->message, r->in_oldest, r->in_oldest + r->o.messages - 1);
		return NULL;
	}
	if (!m->used) {
		*m = (struct rel_in){ .used = true,
				      .notify = d->flags & REL_NOTIFY,
				      .first = d->first,
				      .n_chunks = d->n_chunks,
				      .n_missing = d->n_chunks,
				      .imm = d->imm };
		if (r->o.writes)
			rel_begin_writes(r, m, d->message);
	}
	if (m->first != d->first || m->n_chunks != d->n_chunks || m->imm != d->imm || m->notify != (d->flags & REL_NOTIFY)) {
		(void)rel_broken(why, "two chunks of message %u contradict each other", d->message);
		return NULL;
	}
	if (!m->n_missing) {
		(void)rel_broken(why, "message %u has all its %u chunks, but another one came", d->message, m->n_chunks);
		return NULL;
	}
	return m;
}

static bool receive_chunk(gpul_rel *r, uint64_t now_ns, const unsigned char *datagram, uint32_t n_bytes, gpul_rel_chunk *out,
			  gpul_rdma_failure *why)
{
	struct rel_data d;
	struct rel_path *p;
	struct rel_in *m;

	memcpy(&d, datagram, sizeof d);
	if (!check_chunk(r, &d, n_bytes, why))
		return false;
	r->peer_backlog = d.backlog;
	p = &r->paths[d.path];
	if (r->event_head - r->event_tail >= 2 * r->o.messages || p->closed || (r->o.writes && rel_must_wait(r, &d)))
		return true; /* the caller must poll first, or another message must end: to the peer, the datagram is lost */
	if (rel_before(d.chunk, r->in_next) || rel_has_arrived(r, d.chunk)) {
		rel_note_packet(r, p, d.packet, now_ns);
		r->ack_now = true;
		r->n.duplicates++;
		return true;
	}
	m = find_message(r, &d, why);
	if (!m)
		return false;
	rel_note_packet(r, p, d.packet, now_ns);
	if (r->o.writes && d.n_chunks > 1) {
		if (d.chunk == d.first)
			m->bytes = d.more;
		rel_add_fence(r, &d, m, now_ns);
	} else {
		m->bytes += d.bytes;
	}
	rel_take_chunk(r, d.chunk, m);
	*out = (gpul_rel_chunk){ .place = true, .bytes = d.bytes, .skip = sizeof d, .address = d.address, .key = d.key };
	return true;
}

/* A packet that carries nothing, so that the peer learns whether the path works. */
static bool receive_ping(gpul_rel *r, uint64_t now_ns, const unsigned char *datagram, gpul_rdma_failure *why)
{
	struct rel_data d;

	memcpy(&d, datagram, sizeof d);
	if (d.path >= r->o.n_paths || !r->o.writes)
		return rel_broken(why, "a ping came on path %u: expected less than %u, and RDMA writes", d.path, r->o.n_paths);
	if (!r->paths[d.path].closed && r->event_head - r->event_tail < 2 * r->o.messages) {
		rel_note_packet(r, &r->paths[d.path], d.packet, now_ns);
		r->ack_now = true;
	}
	return true;
}

bool gpul_rel_receive(gpul_rel *r, uint64_t now_ns, const unsigned char *datagram, uint32_t n_bytes, gpul_rel_chunk *out,
		      gpul_rdma_failure *why)
{
	uint64_t token = 0;

	*out = (gpul_rel_chunk){ .place = false };
	if (n_bytes >= sizeof(struct rel_ack))
		memcpy(&token, datagram + offsetof(struct rel_ack, token), sizeof token);
	if (n_bytes < sizeof(struct rel_ack) || token != r->o.token ||
	    !(datagram[0] == REL_ACK || ((datagram[0] == REL_DATA || datagram[0] == REL_PING) && n_bytes >= sizeof(struct rel_data)))) {
		r->n.strangers++;
		return true;
	}
	r->heard_ns = now_ns;
	r->pinging = false;
	if (datagram[0] == REL_PING)
		return receive_ping(r, now_ns, datagram, why);
	return datagram[0] == REL_ACK ? rel_ack_receive(r, now_ns, datagram, n_bytes, why)
				      : receive_chunk(r, now_ns, datagram, n_bytes, out, why);
}

/* ---- acknowledgements ----------------------------------------------------------------------------------------------- */

/* Add what has arrived on a path. */
static void report_path(gpul_rel *r, struct rel_path *p, uint64_t now_ns, gpul_rel_datagram *out)
{
	const uint64_t us = (now_ns - p->largest_ns) / 1000;
	const struct rel_ack_path a = { .path = (uint16_t)(p - r->paths),
					.delay_us = us < UINT16_MAX ? (uint16_t)us : UINT16_MAX,
					.largest = p->largest,
					.bits = { p->bits[0], p->bits[1] } };

	memcpy(out->header + out->header_bytes, &a, sizeof a);
	out->header_bytes += sizeof a;
	out->path = a.path;
	p->n_unreported = 0;
	r->n_ack_paths--;
}

bool rel_ack_next(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out)
{
	struct rel_ack a = {
		.kind = REL_ACK, .next = r->in_next, .token = r->o.peer_token, .limit = r->in_limit, .backlog = r->end_chunk - r->next_chunk
	};

	if (!r->ack_now && now_ns < r->ack_due_ns)
		return false;
	out->write = out->again = false;
	out->path = rel_path_in_turn(r); /* unless it reports paths: then one that works */
	out->bytes = 0;
	out->header_bytes = sizeof a;
	for (unsigned i = 0; i < r->o.n_paths && r->n_ack_paths && a.n_paths < GPUL_REL_ACK_PATHS; i++) {
		struct rel_path *p = &r->paths[r->ack_path];

		r->ack_path = r->ack_path + 1 < r->o.n_paths ? r->ack_path + 1 : 0;
		if (!p->n_unreported)
			continue;
		report_path(r, p, now_ns, out);
		a.n_paths++;
	}
	if ((r->n_closed || r->n_late) && a.n_paths < GPUL_REL_ACK_PATHS)
		a.n_paths += rel_report_close(r, out);
	memcpy(out->header, &a, sizeof a);
	if (!r->n_ack_paths) {
		r->ack_now = false;
		r->ack_due_ns = UINT64_MAX;
	}
	r->n.acks_sent++;
	return true;
}
