/* reliable_writes.c — chunks as RDMA writes (UC): the peer's NIC puts them into their places.
 *
 *     message of 5 chunks     header        data        data        data        data
 *     first copy              datagram      write+imm   write+imm   write+imm   write+imm      a message of one chunk is one datagram
 *     further copies          datagram      datagram    datagram    datagram    datagram
 *
 *     the immediate, for which 32 bits are all that there is:   31        16 15         0
 *                                                              ┌────────────┬────────────┐
 *                                                              │ chunk      │ packet     │   the low halves of their numbers
 *                                                              └────────────┴────────────┘
 *
 * Late writes.  A NIC does not recognize duplicates, so a copy that is late could overwrite a buffer that has been given back.
 * Therefore only the first copy is a write; the others are datagrams, which the CPU checks before it copies them.  When a chunk has
 * arrived by such a datagram, its first copy may still be on its way.  The datagram names the path and packet of that copy (`more`), and
 * the message is not reported before a later packet of the path has arrived: a path keeps the order, as the packets of one queue pair
 * do in a network that routes by flows, so then the write has landed or was lost.  This is the fence.  To give the path a later packet,
 * the sender sends a ping after a time-out.  If nothing comes for fence_ns, both ends stop the queue pair for good:
 * then the receiver's NIC performs no write of it any more.
 *
 * A message without retransmissions has no fence, and waits for nothing. */
#include <stdlib.h>
#include <string.h>

#include "rdma/reliable/reliable_internal.h"

gpul_status rel_writes_create(gpul_rel *r)
{
	r->firsts = calloc(r->o.window, sizeof *r->firsts);
	r->in_message = calloc(2 * r->o.window, sizeof *r->in_message);
	r->fences = calloc(r->o.window, sizeof *r->fences);
	if (!r->firsts || !r->in_message || !r->fences)
		return GPUL_ENOMEM;
	for (uint32_t i = 0; i < r->o.window; i++)
		r->fences[i].next = i + 1 < r->o.window ? i + 2 : 0;
	r->free_fence = 1;
	return GPUL_OK;
}

/* ---- the sender ------------------------------------------------------------------------------------------------------ */

bool rel_is_write(const gpul_rel *r, const struct rel_out *m, uint32_t chunk)
{
	return r->o.writes && m->n_chunks > 1 && chunk != m->first;
}

void rel_fill_more(gpul_rel *r, const struct rel_out *m, struct rel_data *d)
{
	const struct rel_first *first = &r->firsts[d->chunk & (r->o.window - 1)];
	const struct rel_path *p = &r->paths[first->path];

	if (m->n_chunks > 1 && d->chunk == m->first) {
		d->more = m->m.bytes;
	} else if (m->n_chunks > 1 && (!p->has_acked || rel_before(p->acked, first->packet))) {
		d->flags |= REL_FENCE;
		d->more = (uint32_t)first->path << 16 | (first->packet & 0xffff);
	}
}

bool rel_ping_next(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out)
{
	struct rel_path *p = r->o.writes ? rel_path_probe(r, now_ns) : NULL;
	struct rel_data d = { .kind = REL_PING, .token = r->o.peer_token };

	if (!p)
		return false;
	d.path = (uint16_t)(p - r->paths);
	d.packet = p->next_packet;
	*out = (gpul_rel_datagram){ .path = d.path, .header_bytes = sizeof d };
	memcpy(out->header, &d, sizeof d);
	r->pinging = true;
	rel_path_sent(r, p, r->oldest - 1, now_ns); /* a chunk that is acknowledged already: nothing becomes of it */
	return true;
}

/* ---- the receiver ------------------------------------------------------------------------------------------------------ */

/* The message of a chunk that came as a write; NULL: its header has not arrived. */
static struct rel_in *message_of(gpul_rel *r, uint32_t chunk)
{
	struct rel_in *m = &r->in[r->in_message[rel_message_index(r, chunk)] & (r->o.messages - 1)];

	return m->used && chunk - m->first < m->n_chunks ? m : NULL;
}

void rel_begin_writes(gpul_rel *r, struct rel_in *m, uint32_t message)
{
	/* Chunks of a message that has not begun are not before in_next, because its header is missing. */
	for (uint32_t chunk = m->first; chunk != m->first + m->n_chunks; chunk++) {
		r->in_message[rel_message_index(r, chunk)] = message;
		m->n_missing -= rel_before(chunk, r->in_next + r->o.window) && rel_has_arrived(r, chunk);
	}
}

bool gpul_rel_receive_write(gpul_rel *r, uint64_t now_ns, unsigned path, uint32_t imm, gpul_rdma_failure *why)
{
	struct rel_path *p = &r->paths[path];
	const uint32_t chunk = rel_nearest(r->in_next, imm >> 16);

	assert(r->o.writes && path < r->o.n_paths);
	r->heard_ns = now_ns;
	r->pinging = false;
	if (p->closed || r->event_head - r->event_tail >= 2 * r->o.messages)
		return true; /* to the peer, it is lost */
	if (!rel_before(chunk, r->in_next + r->o.window) || !rel_before(chunk, r->in_limit))
		return rel_broken(why, "a write of chunk %u came, but the limit is %u", chunk, r->in_limit);
	rel_note_packet(r, p, rel_nearest(p->largest, imm), now_ns);
	if (rel_before(chunk, r->in_next) || rel_has_arrived(r, chunk)) {
		r->ack_now = true;
		r->n.duplicates++;
		return true;
	}
	rel_take_chunk(r, chunk, message_of(r, chunk));
	return true;
}

bool rel_check_more(const gpul_rel *r, const struct rel_data *d, gpul_rdma_failure *why)
{
	const bool is_header = d->n_chunks > 1 && d->chunk == d->first;
	const uint64_t most = (uint64_t)(d->n_chunks - 1) * r->o.chunk_bytes;

	if (is_header && (d->bytes || d->more > most || d->more + UINT64_C(1) * r->o.chunk_bytes <= most))
		return rel_broken(why, "a message came with %u bytes in %u chunks", d->more, d->n_chunks);
	if (d->flags & REL_FENCE && (is_header || d->n_chunks == 1 || d->more >> 16 >= r->o.n_paths))
		return rel_broken(why, "chunk %u came with a fence on path %u", d->chunk, d->more >> 16);
	return true;
}
