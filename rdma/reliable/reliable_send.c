/* reliable_send.c — messages to the peer: their chunks, and the next datagram. */
#include <string.h>

#include "rdma/reliable/reliable_internal.h"

uint32_t gpul_rel_max_message(const gpul_rel *r)
{
	return (r->o.window / 2 - r->o.writes) * r->o.chunk_bytes;
}

bool gpul_rel_send(gpul_rel *r, const gpul_rel_message *message)
{
	const uint32_t n_data = message->bytes ? (message->bytes - 1) / r->o.chunk_bytes + 1 : 1;
	const uint32_t n_chunks = n_data + (r->o.writes && n_data > 1); /* and a header */
	struct rel_out *m = &r->out[r->out_next & (r->o.messages - 1)];

	assert(message->bytes <= gpul_rel_max_message(r));
	/* Chunk numbers are given out at once, so at most 2^30 of them wait; and half of the events are for messages that are in flight. */
	if (r->out_next - r->out_oldest >= r->o.messages || r->event_head - r->event_tail >= 2 * r->o.messages ||
	    r->end_chunk - r->oldest > 1u << 30)
		return false;
	*m = (struct rel_out){ .m = *message, .first = r->end_chunk, .n_chunks = n_chunks, .n_unacked = n_chunks };
	r->out_next++;
	r->end_chunk += n_chunks;
	return true;
}

static bool has_credit(const gpul_rel *r)
{
	return rel_before(r->next_chunk, r->limit);
}

/* Write a datagram with a chunk, which is in state IN_FLIGHT with its message; its packet number is the path's next one. */
static void fill_chunk(gpul_rel *r, const struct rel_path *p, uint32_t chunk, uint32_t message, gpul_rel_datagram *out)
{
	const struct rel_out *m = &r->out[message & (r->o.messages - 1)];
	const bool has_header = r->o.writes && m->n_chunks > 1;
	const uint32_t at = (chunk - m->first - (has_header && chunk != m->first)) * r->o.chunk_bytes;
	const uint32_t left = has_header && chunk == m->first ? 0 : m->m.bytes - at;
	const uint32_t waiting = r->end_chunk - r->next_chunk;
	/* clang-format off */
	struct rel_data d = {
		.kind = REL_DATA, .flags = m->m.notify ? REL_NOTIFY : 0, .path = (uint16_t)(p - r->paths), .packet = p->next_packet,
		.token = r->o.peer_token, .chunk = chunk, .message = message, .first = m->first, .n_chunks = m->n_chunks,
		.address = m->m.address + at, .key = m->m.key, .bytes = left < r->o.chunk_bytes ? left : r->o.chunk_bytes,
		.imm = m->m.imm, .backlog = waiting,
	};
	/* clang-format on */

	out->path = d.path;
	out->header_bytes = sizeof d;
	out->bytes = d.bytes;
	out->local = m->m.local + at;
	out->local_key = m->m.local_key;
	out->id = m->m.id;
	out->write = false;
	out->again = rel_chunk_at(r, chunk)->again;
	if (r->o.writes)
		rel_fill_more(r, m, &d);
	memcpy(out->header, &d, sizeof d);
}

/* The first copy of a chunk of data, with `writes`. */
static void fill_write(gpul_rel *r, const struct rel_path *p, uint32_t chunk, const struct rel_out *m, gpul_rel_datagram *out)
{
	const uint32_t at = (chunk - m->first - 1) * r->o.chunk_bytes, left = m->m.bytes - at;

	out->path = (unsigned)(p - r->paths);
	out->header_bytes = 0;
	out->bytes = left < r->o.chunk_bytes ? left : r->o.chunk_bytes;
	out->local = m->m.local + at;
	out->local_key = m->m.local_key;
	out->id = m->m.id;
	out->again = false;
	out->write = true;
	out->imm = chunk << 16 | (p->next_packet & 0xffff);
	out->address = m->m.address + at;
	out->key = m->m.key;
	r->firsts[chunk & (r->o.window - 1)] = (struct rel_first){ .packet = p->next_packet, .path = (uint16_t)(p - r->paths) };
}

/* Send a chunk, or send it again, on a path. */
static void send_chunk(gpul_rel *r, struct rel_path *p, uint32_t chunk, uint32_t message, uint64_t now_ns, gpul_rel_datagram *out)
{
	struct rel_chunk *c = rel_chunk_at(r, chunk);
	const struct rel_out *m = &r->out[message & (r->o.messages - 1)];

	if (!c->again && rel_is_write(r, m, chunk))
		fill_write(r, p, chunk, m, out);
	else
		fill_chunk(r, p, chunk, message, out);
	c->again = true;
	c->message = message;
	c->state = CHUNK_IN_FLIGHT;
	c->path = (uint16_t)(p - r->paths);
	c->packet = p->next_packet;
	rel_trace(r, (gpul_rel_step){ now_ns, GPUL_REL_SENT, chunk, c->path, c->packet, 0 });
	rel_path_sent(r, p, chunk, now_ns);
	r->n.chunks_sent++;
}

static bool next_chunk(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out)
{
	uint32_t chunk, message;
	struct rel_path *p;

	if (rel_chunk_peek_lost(r, &chunk)) {
		message = rel_chunk_at(r, chunk)->message;
		p = rel_path_choose(r, message, now_ns);
		if (!p)
			return false;
		r->lost_tail++;
		r->n.chunks_again++;
		send_chunk(r, p, chunk, message, now_ns, out);
		return true;
	}
	if (r->next_chunk == r->end_chunk || r->next_chunk - r->oldest >= r->o.window || !has_credit(r))
		return false;
	message = r->next_message;
	p = rel_path_choose(r, message, now_ns);
	if (!p)
		return false;
	if (r->oldest == r->next_chunk)
		r->heard_ns = now_ns; /* silence counts from here */
	chunk = r->next_chunk++;
	rel_chunk_at(r, chunk)->again = false;
	if (r->next_chunk - r->out[message & (r->o.messages - 1)].first == r->out[message & (r->o.messages - 1)].n_chunks)
		r->next_message++;
	send_chunk(r, p, chunk, message, now_ns, out);
	return true;
}

/* Send a copy of the oldest chunk on a dead path, to find out whether the path works again. */
static bool next_probe(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out)
{
	struct rel_path *p = !r->o.writes && r->oldest != r->next_chunk ? rel_path_probe(r, now_ns) : NULL;

	if (!p)
		return false;
	fill_chunk(r, p, r->oldest, rel_chunk_at(r, r->oldest)->message, out);
	rel_trace(r, (gpul_rel_step){ now_ns, GPUL_REL_SENT, r->oldest, out->path, p->next_packet, 0 });
	rel_path_sent(r, p, r->oldest, now_ns);
	r->n.chunks_sent++;
	r->n.chunks_again++;
	return true;
}

/* Without credit, and with nothing in flight whose acknowledgement would bring some: ask for it, again after each time-out. */
static bool next_ask(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out)
{
	unsigned path;

	if (!r->o.credit || r->next_chunk == r->end_chunk || has_credit(r)) {
		r->asking = false;
		return false;
	}
	if (!r->asking && r->oldest == r->next_chunk)
		r->heard_ns = now_ns; /* silence counts from here */
	r->asking = true;
	if (now_ns < r->ask_ns) {
		rel_wake_at(r, r->ask_ns);
		return false;
	}
	path = rel_path_in_turn(r);
	r->ask_ns = now_ns + rel_path_rto_ns(r, &r->paths[path]);
	rel_wake_at(r, r->ask_ns);
	/* clang-format off */
	const struct rel_ack a = {
		.kind = REL_ACK, .flags = REL_ASK, .next = r->in_next, .token = r->o.peer_token, .limit = r->in_limit,
		.backlog = r->end_chunk - r->next_chunk,
	};
	/* clang-format on */
	*out = (gpul_rel_datagram){ .path = path, .header_bytes = sizeof a };
	memcpy(out->header, &a, sizeof a);
	return true;
}

bool gpul_rel_next(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out)
{
	return rel_ack_next(r, now_ns, out) || next_probe(r, now_ns, out) || next_chunk(r, now_ns, out) || next_ask(r, now_ns, out) ||
	       rel_ping_next(r, now_ns, out);
}
