/* referee.c — decides which arrivals an honest peer can cause, from the slots that an end has granted, without reading the link's state.
 *
 * A message fills its slots in order: all its segments but the last are as long as their slots, and each has one immediate for each of
 * its stripes, which may arrive in any order.  A receive has ended when all segments up to the last one have arrived. */
#include "tests/rdma/sim/sim.h"

#include <string.h>

static struct told_message *message_of(struct end *e, uint32_t number)
{
	return &e->referee.messages[number % TOLD_MESSAGES];
}

void reset_referee(struct end *e, uint32_t first)
{
	memset(&e->referee, 0, sizeof e->referee);
	e->referee.told = first;
	e->referee.message = first - 1;
	e->referee.first_message = first;
}

/* Check the slots that an end grants to its peer; a slot may be sent repeatedly. */
void slots_told(struct sim *s, struct end *e, const gpul_rdma_op *op)
{
	struct referee *r = &e->referee;
	const uint64_t grants = (uint64_t)(uintptr_t)e->control->grants;

	if ((op->kind != GPUL_RDMA_OP_WRITE && op->kind != GPUL_RDMA_OP_CONTROL) || op->local < grants ||
	    op->local - grants >= sizeof e->control->grants)
		return;
	for (uint32_t at = 0; at < op->bytes; at += sizeof(gpul_rdma_slot)) {
		struct told_slot *t = &r->slots[((op->local - grants + at) / sizeof(gpul_rdma_slot)) % GPUL_RDMA_SLOTS];
		struct told_slot new = { .is_told = true };
		gpul_rdma_slot slot;

		memcpy(&slot, (const void *)(uintptr_t)(op->local + at), sizeof slot);
		if (t->is_told && t->sequence == slot.sequence)
			continue; /* this slot was sent before */
		if (slot.sequence != r->told + 1)
			wrong(s, "%c: slot %u is granted after slot %u", "AB"[e->index], slot.sequence, r->told);
		if (t->is_told && !t->full && !t->returned)
			wrong(s, "%c: slot %u is granted before slot %u has arrived", "AB"[e->index], slot.sequence, t->sequence);
		new.sequence = r->told = slot.sequence;
		new.room = slot.bytes;
		new.ends = slot.order >> 24 & 1;
		if ((uint16_t)slot.order == (uint16_t)r->message)
			new.segment = r->segment + 1;
		else if ((uint16_t)slot.order != (uint16_t)++r->message)
			wrong(s, "%c: slot %u belongs neither to message %u nor to the next one", "AB"[e->index], slot.sequence,
			      r->message - 1);
		new.message = r->message;
		r->segment = new.segment;
		new.returned = message_of(e, new.message)->has_last &&new.segment > message_of(e, new.message)->last;
		*t = new;
	}
}

/* Return a mask of the queue pairs that transport the stripes of a segment. */
static unsigned queues_of(const struct sim *s, uint32_t sequence, uint32_t bytes)
{
	const struct params *p = &s->p;
	uint32_t n = 1, each = bytes;
	unsigned queues = 0;

	if (p->striping == GPUL_RDMA_SPLIT && p->n_qps > 1 && bytes / p->stripe_bytes > 1) {
		n = bytes / p->stripe_bytes < p->n_qps ? bytes / p->stripe_bytes : p->n_qps;
		each = (bytes + n - 1) / n;
		each += (GPUL_RDMA_STRIPE_ALIGN - each % GPUL_RDMA_STRIPE_ALIGN) % GPUL_RDMA_STRIPE_ALIGN;
		n = (bytes + each - 1) / each;
	}
	for (uint32_t i = 0; i < n; i++)
		queues |= 1u << ((uint64_t)sequence % p->n_qps + i) % p->n_qps;
	return queues;
}

static bool may_be_first(struct end *e, const struct told_slot *t, uint32_t bytes, bool last)
{
	const struct told_message *m = message_of(e, t->message);

	return last ? m->seen <= t->segment && (bytes || !t->segment) : bytes == t->room && !t->ends;
}

/* True if an arrival can be valid; if so, count it. */
static bool judge(struct sim *s, struct end *e, const gpul_rdma_event *v)
{
	struct told_slot *t = &e->referee.slots[(GPUL_RDMA_IMM_SLOT(v->imm) - 1) % GPUL_RDMA_SLOTS];
	struct told_message *m = message_of(e, t->message);
	const uint32_t bytes = GPUL_RDMA_IMM_BYTES(v->imm);
	const bool last = GPUL_RDMA_IMM_LAST(v->imm);

	if (v->qp >= s->p.n_qps || !t->is_told || t->full || t->returned || bytes > t->room ||
	    (t->awaited ? bytes != t->bytes || last != t->last : !may_be_first(e, t, bytes, last)))
		return false;
	const unsigned awaited = t->awaited ? t->awaited : queues_of(s, t->sequence, bytes);

	const unsigned stripe = s->p.unnamed ? (unsigned)__builtin_ctz(awaited) : v->qp;

	if (!(awaited >> stripe & 1))
		return false;
	t->bytes = bytes;
	t->last = last;
	t->awaited = awaited & ~(1u << stripe);
	t->full = !t->awaited;
	if (m->seen <= t->segment)
		m->seen = t->segment + 1;
	if (t->full) {
		m->n_full++;
		m->bytes += bytes;
	}
	if (!last || m->has_last)
		return true;
	m->has_last = true;
	m->last = t->segment;
	for (unsigned i = 0; i < GPUL_RDMA_SLOTS; i++) {
		struct told_slot *other = &e->referee.slots[i];

		other->returned |= other->is_told && other->message == t->message && other->segment > t->segment;
	}
	return true;
}

/* Pass an event to the link, which must fail if and only if the arrival is invalid. */
void give_event(struct sim *s, struct end *e, const gpul_rdma_event *v)
{
	const bool judged = v->kind == GPUL_RDMA_EVENT_ARRIVED && !gpul_rdma_link_failed(e->link)->status;
	const bool right = judged && judge(s, e, v);

	gpul_rdma_link_event(e->link, v);
	if (judged && right != !gpul_rdma_link_failed(e->link)->status)
		wrong(s, "%c: the link treats an arrival as %s: queue pair %u, slot %u, %u bytes%s: %s", "AB"[e->index],
		      right ? "invalid" : "valid", v->qp, GPUL_RDMA_IMM_SLOT(v->imm), GPUL_RDMA_IMM_BYTES(v->imm),
		      GPUL_RDMA_IMM_LAST(v->imm) ? ", last" : "", gpul_rdma_link_failed(e->link)->what);
}

void check_complete(struct sim *s, const struct work *w, const uint64_t *bytes)
{
	struct end *e = &s->ends[w->end];

	for (unsigned i = 0; i < w->n_parts; i++) {
		const struct told_message *m = message_of(e, e->referee.first_message + w->first_message + i);

		if (!m->has_last || m->n_full != m->last + 1 || m->bytes != bytes[i])
			wrong(s, "%c: a receive has ended with %llu bytes, but %u segments with %llu bytes have arrived, %s", "AB"[w->end],
			      (unsigned long long)bytes[i], m -> n_full, (unsigned long long)m -> bytes,
			      m -> has_last ? "with the last one" : "without the last one");
	}
}

/* Generate a (usually valid) arrival for one of the slots that the peer has received, although the peer has sent no data. */
static void invent_arrival(struct sim *s, struct end *e, gpul_rdma_event *out)
{
	struct rng *r = &s->rng;
	const struct referee *f = &e->referee;
	const struct told_slot *t = NULL;

	for (unsigned tries = 0; tries < 20 && (!t || ((t->full || t->returned || !t->is_told) && chance(r, 990))); tries++)
		t = &f->slots[(f->told - 1 - below(r, chance(r, 300) ? GPUL_RDMA_SLOTS : 30)) % GPUL_RDMA_SLOTS];
	if (t->awaited && t->last && chance(r, 300)) /* use the slot after a message whose last segment is incomplete */
		t = &f->slots[t->sequence % GPUL_RDMA_SLOTS];
	uint32_t bytes = t->room, sequence = t->sequence;
	bool last = t->ends ? chance(r, 970) : chance(r, 80);

	if (last && chance(r, 300))
		bytes = below(r, t->room + 1);
	if (t->awaited && chance(r, 950)) {
		bytes = t->bytes;
		last = t->last;
	} else if (chance(r, 30)) {
		bytes = below(r, s->p.segment_bytes + 1);
	}
	if (chance(r, 60)) { /* use a slot that the peer has not received yet */
		sequence = f->told + 1 + below(r, 4);
		bytes = below(r, 4);
		last = true;
	}
	*out = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_ARRIVED,
				  .qp = below(r, s->p.n_qps),
				  .imm = GPUL_RDMA_IMM(sequence, last, bytes) };
	while (t->is_told && sequence == t->sequence && !((t->awaited ? t->awaited : queues_of(s, t->sequence, bytes)) >> out->qp & 1) &&
	       chance(r, 980))
		out->qp = (out->qp + 1) % s->p.n_qps;
	if (chance(r, 15))
		out->qp += s->p.n_qps;
}

/* Deliver forged arrivals in any order, most of which are valid, until one is invalid. */
void forge_arrivals(struct sim *s, struct end *e)
{
	for (unsigned n = 1 + below(&s->rng, 20); n && !gpul_rdma_link_failed(e->link)->status && !s->reason[0]; n--) {
		gpul_rdma_event v;

		invent_arrival(s, e, &v);
		trace(s, e->index, "FORGED  arrival qp %u: slot %u bytes %u%s", v.qp, GPUL_RDMA_IMM_SLOT(v.imm), GPUL_RDMA_IMM_BYTES(v.imm),
		      GPUL_RDMA_IMM_LAST(v.imm) ? " last" : "");
		give_event(s, e, &v);
		if (!gpul_rdma_link_failed(e->link)->status)
			e->queues[v.qp].recvs--; /* the arrival was valid, so it has used a receive */
	}
	watch_failure(s, e);
}
