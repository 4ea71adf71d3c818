/* reliable_arrived.c — what has arrived: packets of paths, chunks, messages; and fences, for which messages wait (see reliable_writes.c). */
#include "rdma/reliable/reliable_internal.h"

/* ---- packets ------------------------------------------------------------------------------------------------------- */

void rel_note_packet(gpul_rel *r, struct rel_path *p, uint32_t packet, uint64_t now_ns)
{
	const uint32_t ahead = packet - p->largest, behind = p->largest - packet;

	if (!p->n_unreported++)
		r->n_ack_paths++;
	if (p->n_unreported >= r->o.ack_every || (p->heard && ahead != 1))
		r->ack_now = true; /* packets are missing, or came in another order */
	if (r->ack_due_ns == UINT64_MAX)
		r->ack_due_ns = now_ns + r->o.ack_delay_ns;
	if (!p->heard || rel_before(p->largest, packet)) {
		if (!p->heard || ahead > GPUL_REL_ACK_BITS) {
			p->bits[0] = p->bits[1] = 0;
		} else if (ahead >= 64) {
			p->bits[1] = ahead < GPUL_REL_ACK_BITS ? p->bits[0] << (ahead - 64) : 0;
			p->bits[0] = 0;
		} else {
			p->bits[1] = p->bits[1] << ahead | p->bits[0] >> (64 - ahead);
			p->bits[0] <<= ahead;
		}
		if (p->heard && ahead <= GPUL_REL_ACK_BITS)
			p->bits[(ahead - 1) / 64] |= UINT64_C(1) << (ahead - 1) % 64; /* the largest so far */
		p->heard = true;
		p->largest = packet;
		p->largest_ns = now_ns;
		if (p->fences)
			rel_pass_fences(r, p, now_ns);
	} else if (behind && behind <= GPUL_REL_ACK_BITS) {
		p->bits[(behind - 1) / 64] |= UINT64_C(1) << (behind - 1) % 64;
	}
}

/* ---- chunks, messages ------------------------------------------------------------------------------------------------- */

bool rel_has_arrived(const gpul_rel *r, uint32_t chunk)
{
	const uint32_t i = chunk & (r->o.window - 1);

	return r->in_bits[i / 64] >> i % 64 & 1;
}

/* Report the message if all of it is here, and no late write can come. */
static void end_message(gpul_rel *r, struct rel_in *m)
{
	if (m->n_missing || m->n_fences)
		return;
	if (m->notify)
		rel_add_event(r, &(gpul_rel_event){ .arrived = true, .imm = m->imm, .bytes = m->bytes });
	r->ack_now = true;
	for (;; r->in_oldest++) {
		m = &r->in[r->in_oldest & (r->o.messages - 1)];
		if (!m->used || m->n_missing || m->n_fences)
			break;
		m->used = false;
	}
}

void rel_take_chunk(gpul_rel *r, uint32_t chunk, struct rel_in *m)
{
	r->in_bits[(chunk & (r->o.window - 1)) / 64] |= UINT64_C(1) << chunk % 64;
	r->n.chunks_received++;
	while (rel_has_arrived(r, r->in_next)) {
		r->in_bits[(r->in_next & (r->o.window - 1)) / 64] &= ~(UINT64_C(1) << r->in_next % 64);
		r->in_next++;
		r->in_limit += !r->o.credit;
	}
	if (m && --m->n_missing == 0)
		end_message(r, m);
}

/* ---- fences -------------------------------------------------------------------------------------------------------------- */

/* Whether the write that a header names may still come. */
static bool needs_fence(const gpul_rel *r, const struct rel_data *d)
{
	const struct rel_path *p;

	if (!(d->flags & REL_FENCE))
		return false;
	p = &r->paths[d->more >> 16];
	return !p->closed && rel_before(p->largest, rel_nearest(p->largest, d->more));
}

bool rel_must_wait(const gpul_rel *r, const struct rel_data *d)
{
	/* A message that waits for a fence is acknowledged, so the peer's messages may be ahead of those that this end has reported. */
	return (!r->free_fence && needs_fence(r, d)) || !rel_before(d->message, r->in_oldest + r->o.messages);
}

void rel_add_fence(gpul_rel *r, const struct rel_data *d, struct rel_in *m, uint64_t now_ns)
{
	const uint32_t i = r->free_fence;
	struct rel_fence *f;
	struct rel_path *p;

	if (!needs_fence(r, d))
		return;
	f = &r->fences[i - 1];
	p = &r->paths[d->more >> 16];
	r->free_fence = f->next;
	*f = (struct rel_fence){ .packet = rel_nearest(p->largest, d->more), .message = d->message, .next = p->fences };
	if (!p->fences)
		p->fence_since_ns = now_ns;
	p->fences = i;
	m->n_fences++;
	rel_wake_at(r, p->fence_since_ns + r->o.fence_ns);
}

void rel_pass_fences(gpul_rel *r, struct rel_path *p, uint64_t now_ns)
{
	for (uint32_t *at = &p->fences; *at;) {
		const uint32_t i = *at;
		struct rel_fence *f = &r->fences[i - 1];
		struct rel_in *m = &r->in[f->message & (r->o.messages - 1)];

		if (!p->closed && rel_before(p->largest, f->packet)) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		f->next = r->free_fence;
		r->free_fence = i;
		p->fence_since_ns = now_ns;
		m->n_fences--;
		end_message(r, m);
	}
}
