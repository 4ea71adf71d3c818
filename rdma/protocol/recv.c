/* recv.c — receives: grants slots for the parts in order, and counts the arrivals.
 *
 *     part:   granted ──────────────┐ segments, in order; at most WINDOW ahead
 *     slots:  tail ... written ... head          tail: the peer may still use it; written: the peer has it
 *     arrival: all stripes of a segment ─ staged: copy to the GPU ─ all segments of the message ─> the part has ended
 *
 * A message may be shorter than its buffer.  The granted slots after its last segment are then in state RETURNED:
 * the peer skips them when it uses a later slot, so this end reuses them once a later slot has been filled. */
#include "rdma/protocol/protocol_link_internal.h"

#include <errno.h>

/* ---- grants: tell the peer where it may write the next segments ------------------------------ */

static uint64_t in_stage_at(const gpul_rdma_link *l, unsigned stage)
{
	return (uint64_t)(uintptr_t)l->desc.stages + (uint64_t)(l->desc.n_stages + stage) * l->desc.segment_bytes;
}

/* Grant the next segment of a receive's part.  Returns false if no slot or staging buffer is free, or if WINDOW segments are in flight. */
static bool grant_segment(gpul_rdma_link *l, struct part *p)
{
	const uint32_t at = l->grants_head, sequence = at + 1;
	struct grant *g = &l->granted[at & SLOT_MASK];
	gpul_rdma_slot *slot = &l->desc.control->grants[at & SLOT_MASK];
	const gpul_rdma_piece *piece = piece_of(p->span.area, p->span.at + p->granted_bytes);
	const uint64_t from = p->span.at + p->granted_bytes, left = p->span.bytes - p->granted_bytes;
	const uint64_t in_piece = piece->at + piece->bytes - from;
	uint64_t bytes = left < l->desc.segment_bytes ? left : l->desc.segment_bytes;
	uint64_t address = from - piece->at + piece->remote, key = piece->remote_key;

	if (bytes > in_piece)
		bytes = in_piece;
	if (at - l->grants_tail == GPUL_RDMA_SLOTS || p->granted - p->arrived >= WINDOW || (p->span.area->staged && !l->in.n_free))
		return false;
	*g = (struct grant){
		.state = GRANT_OPEN,
		.stage = NO_STAGE,
		.part = (uint16_t)(l->parts_grant & SLOT_MASK),
		.behind = (uint8_t)(p->of - p->index - 1),
		.segment = p->granted,
		.room = (uint32_t)bytes,
		.offset = p->granted_bytes,
	};
	if (p->span.area->staged) {
		g->stage = l->in.free[--l->in.n_free];
		l->in_grant[g->stage] = at;
		address = in_stage_at(l, g->stage) - l->desc.in_stages_piece.at + l->desc.in_stages_piece.remote;
		key = l->desc.in_stages_piece.remote_key;
	}
	*slot = (gpul_rdma_slot){
		.address = address,
		.key = key,
		.bytes = (uint32_t)bytes,
		.tag = p->tag,
		.order = (l->parts_grant & 0xffff) | (uint32_t)p->of << 16 | (uint32_t)p->index << 20 | (uint32_t)(bytes == left) << 24,
		.sequence = sequence,
	};
	slot->check = gpul_rdma_slot_check(slot);
	p->granted++;
	p->granted_bytes += bytes;
	l->grants_head++;
	l->open_grants++;
	return true;
}

static void grant_parts(gpul_rdma_link *l)
{
	while (l->parts_grant != l->parts_head) {
		struct part *p = &l->parts[l->parts_grant & SLOT_MASK];

		if (!p->over && (p->granted == 0 || p->granted_bytes < p->span.bytes) && !grant_segment(l, p))
			return;
		if (p->over || p->granted_bytes == p->span.bytes)
			l->parts_grant++;
	}
}

/* Repost the receives that arrivals have consumed.  Called before grants are written, so that no arrival finds an empty receive queue. */
void gpul_rdma_take_receives(gpul_rdma_link *l, struct take *t)
{
	for (unsigned i = 0; i < l->desc.n_qps; i++) {
		struct queue *q = &l->queues[i];

		if (q->recvs_used < RECV_BATCH || t->n == t->max)
			continue;
		t->ops[t->n++] = (gpul_rdma_op){ .kind = GPUL_RDMA_OP_RECV, .qp = (uint16_t)i, .bytes = q->recvs_used };
		q->recvs_used = 0;
	}
}

static void take_copies_in(gpul_rdma_link *l, struct take *t)
{
	for (; l->in.copies_tail != l->in.copies_head && t->n < t->max; l->in.copies_tail++) {
		const uint8_t stage = l->in.copies[l->in.copies_tail % MAX_STAGES];
		const struct grant *g = &l->granted[l->in_grant[stage] & SLOT_MASK];

		l->in.copying |= 1ull << stage;
		t->ops[t->n++] = (gpul_rdma_op){
			.kind = GPUL_RDMA_OP_COPY_IN,
			.bytes = g->bytes,
			.id = MAKE_ID(ID_COPY_IN, 0, stage),
			.local = in_stage_at(l, stage),
			.remote = l->parts[g->part].span.at + g->offset,
		};
	}
}

/* Write new grants to the peer; one operation writes all grants that are adjacent in the ring.  While the peer has enough grants,
 * collect several: writing each one separately would cost a packet per message. */
void gpul_rdma_take_grants(gpul_rdma_link *l, struct take *t)
{
	take_copies_in(l, t);
	grant_parts(l);
	if ((int32_t)(l->grants_tail - l->grants_written) > 0)
		/* Grants are being repeated: start at the tail, because older ring entries already contain new grants. */
		l->grants_written = l->grants_tail;
	for (;;) {
		const uint32_t at = l->grants_written, index = at & SLOT_MASK;
		uint32_t n = l->grants_head - at;

		if (!n || t->n == t->max || (n < GRANT_BATCH && (int32_t)(l->open_grants - n) >= ENOUGH_GRANTS) ||
		    (!l->desc.control_datagrams && !room_of(l, &l->queues[0])))
			return;
		if (n > GPUL_RDMA_SLOTS - index)
			n = GPUL_RDMA_SLOTS - index;
		if (n > ENOUGH_GRANTS)
			n = ENOUGH_GRANTS;
		if (l->desc.control_datagrams && n > GRANT_BATCH) /* 512 bytes, which fit into every MTU but the smallest one */
			n = GRANT_BATCH;
		gpul_rdma_op plain = { .kind = GPUL_RDMA_OP_CONTROL, .bytes = n * (uint32_t)sizeof(gpul_rdma_slot) };
		gpul_rdma_op *op = l->desc.control_datagrams ? &t->ops[t->n++]
							     : emit_op(l, t, GPUL_RDMA_OP_WRITE, 0, NO_REQUEST, NO_STAGE, plain.bytes);

		if (l->desc.control_datagrams)
			*op = plain;
		if (op->bytes <= l->desc.inline_bytes)
			op->flags |= GPUL_RDMA_INLINE;
		op->local = (uint64_t)(uintptr_t)&l->desc.control->grants[index];
		op->local_key = l->desc.control_piece.local_key;
		op->remote = l->desc.peer_slots.address + index * sizeof(gpul_rdma_slot);
		op->remote_key = l->desc.peer_slots.key;
		l->grants_written += n;
		if ((int32_t)(l->grants_written - l->grants_known) > 0)
			l->grants_known = l->grants_written;
	}
}

/* Repeat all grants that the peer may still need if nothing has arrived for a while, because their datagrams can be lost.  The
 * interval doubles each time. */
void gpul_rdma_repeat_grants(gpul_rdma_link *l)
{
	if (!l->desc.control_datagrams || !l->open_grants || l->now_ns - l->received_ns < l->repeat_ns)
		return;
	l->received_ns = l->now_ns;
	if (l->repeat_ns < MOST_REPEATS * l->desc.repeat_ns)
		l->repeat_ns *= 2;
	l->grants_written = l->grants_tail;
}

/* Handle slots that have arrived in a datagram: copy the new ones into the ring, as an RDMA write would. */
void gpul_rdma_slots_arrived(gpul_rdma_link *l, const void *data, size_t n_bytes)
{
	const unsigned char *from = data;

	if (!l->desc.control_datagrams || n_bytes % sizeof(gpul_rdma_slot)) {
		gpul_rdma_fail(&l->failure, GPUL_EFORMAT, 0, "datagram", NULL, "received a datagram of %zu bytes: expected %s", n_bytes,
			       l->desc.control_datagrams ? "a multiple of 64 bytes, the size of a slot"
							 : "no datagrams on this connection");
		return;
	}
	for (size_t i = 0; i + sizeof(gpul_rdma_slot) <= n_bytes; i += sizeof(gpul_rdma_slot)) {
		gpul_rdma_slot s, *to;

		__builtin_memcpy(&s, from + i, sizeof s);
		to = &l->desc.control->slots[(s.sequence - 1) & SLOT_MASK];
		if (s.sequence - l->next_slot < GPUL_RDMA_SLOTS)
			*to = s;
		/* A number below next_slot is a repetition of a slot that has been used, and is ignored. */
		else if ((int32_t)(s.sequence - l->next_slot) > 0)
			gpul_rdma_fail(&l->failure, GPUL_EFORMAT, 0, "datagram", NULL,
				       "received a datagram with sequence number %u, but expected %u, and the window has only %d numbers",
				       s.sequence, l->next_slot, GPUL_RDMA_SLOTS);
	}
}

/* ---- arrivals ------------------------------------------------------------------------------------ */

/* True if slot `at` and the later slots of its multi-receive are full.  Until then the peer may read all of them, so none can be reused. */
static bool is_group_full(const gpul_rdma_link *l, uint32_t at)
{
	const unsigned n = l->granted[at & SLOT_MASK].behind;

	for (unsigned i = 1; i <= n; i++)
		if (at + i == l->grants_head || l->granted[(at + i) & SLOT_MASK].state == GRANT_OPEN)
			return false;
	return true;
}

static void pass_grants(gpul_rdma_link *l)
{
	while (l->grants_tail != l->grants_head) {
		const struct grant *g = &l->granted[l->grants_tail & SLOT_MASK];

		if (g->state == GRANT_OPEN || g->stage != NO_STAGE ||
		    (g->state == GRANT_RETURNED && (int32_t)(l->highest_arrived - l->grants_tail) <= 1) ||
		    (g->behind && !is_group_full(l, l->grants_tail)))
			return;
		l->grants_tail++;
	}
}

static void end_part_if_complete(gpul_rdma_link *l, struct part *p)
{
	struct request *r = &l->requests[p->request];

	if (p->arrived != p->needed || p->copies_left)
		return;
	p->ended = true;
	r->recv.bytes[p->index] = p->received_bytes;
	if (--r->parts_left == 0)
		r->ended = true;
	while (l->parts_tail != l->parts_grant && l->parts[l->parts_tail & SLOT_MASK].ended)
		l->parts_tail++;
}

static void free_stage(gpul_rdma_link *l, struct grant *g)
{
	if (g->stage != NO_STAGE)
		l->in.free[l->in.n_free++] = g->stage;
	g->stage = NO_STAGE;
}

/* End a message whose last segment fills grant `at`; the open grants of its buffer after `at` are not needed. */
static void end_message(gpul_rdma_link *l, uint32_t at, struct part *p)
{
	p->over = true;
	p->needed = l->granted[at & SLOT_MASK].segment + 1;
	for (at++; at != l->grants_head; at++) {
		struct grant *g = &l->granted[at & SLOT_MASK];

		if (&l->parts[g->part] != p)
			return;
		if (g->state != GRANT_OPEN)
			continue;
		g->state = GRANT_RETURNED;
		l->open_grants--;
		free_stage(l, g);
	}
}

static void segment_arrived(gpul_rdma_link *l, struct grant *g)
{
	struct part *p = &l->parts[g->part];

	g->state = GRANT_FULL;
	l->open_grants--;
	p->arrived++;
	p->received_bytes += g->bytes;
	if (g->stage != NO_STAGE && g->bytes) {
		p->copies_left++;
		l->in.copies[l->in.copies_head++ % MAX_STAGES] = g->stage;
	} else {
		free_stage(l, g);
	}
	end_part_if_complete(l, p);
	pass_grants(l);
}

void gpul_rdma_copied_in(gpul_rdma_link *l, unsigned stage)
{
	struct grant *g = &l->granted[l->in_grant[stage] & SLOT_MASK];
	struct part *p = &l->parts[g->part];

	p->copies_left--;
	free_stage(l, g);
	end_part_if_complete(l, p);
	pass_grants(l);
}

/* Return a mask: bit i is set if queue pair i transfers a stripe of this segment. */
static uint16_t stripes_mask(const gpul_rdma_link *l, uint32_t sequence, uint32_t bytes)
{
	uint32_t stripe_bytes;
	const unsigned n = stripes_of(&l->desc, bytes, &stripe_bytes);
	unsigned mask = 0;

	for (unsigned i = 0; i < n; i++)
		mask |= 1u << queue_of(l, sequence, i);
	return (uint16_t)mask;
}

/* Explain why a correct peer would not send this immediate; NULL: it is valid.  awaited: the mask of the queue pairs whose stripes
 * have not arrived.  Segments may arrive in any order, and all except the last fill their slots. */
static const char *why_wrong(const gpul_rdma_link *l, unsigned stripe, uint32_t imm, uint32_t at, unsigned awaited)
{
	const struct grant *g = &l->granted[at & SLOT_MASK];
	const struct part *p = &l->parts[g->part];
	const uint32_t bytes = GPUL_RDMA_IMM_BYTES(imm), last = GPUL_RDMA_IMM_LAST(imm);

	if (at - l->grants_tail >= l->grants_known - l->grants_tail)
		return "this side has not granted that slot";
	if (g->state == GRANT_FULL)
		return "that slot is already full";
	if (g->state == GRANT_RETURNED)
		return "the message of that slot is already complete";
	if (bytes > g->room)
		return "that slot is too small";
	if (!(awaited >> stripe & 1))
		return "no stripe is expected on that queue pair";
	if (g->stripes_left)
		return bytes == g->bytes && last == g->last ? NULL : "an earlier stripe of the same segment has a different size";
	if (last)
		return p->seen > g->segment   ? "it is marked as last, but a later segment has arrived"
		       : !bytes && g->segment ? "it is the last segment, but is empty"
					      : NULL;
	if (bytes != g->room)
		return "it is not the last segment, but is too short";
	return g->offset + bytes == p->span.bytes ? "it fills the buffer, but is not marked as last" : NULL;
}

void gpul_rdma_arrived(gpul_rdma_link *l, unsigned qp, uint32_t imm)
{
	/* The immediate contains the slot number modulo 256; the slot is one of the 256 that begin at the tail. */
	const uint32_t at = l->grants_tail + ((GPUL_RDMA_IMM_SLOT(imm) - 1 - l->grants_tail) & SLOT_MASK);
	struct grant *g = &l->granted[at & SLOT_MASK];
	const uint16_t awaited = g->stripes_left ? g->stripes_left : stripes_mask(l, at + 1, GPUL_RDMA_IMM_BYTES(imm));
	/* If the backend does not tell on which queue pair a stripe arrived, stripes can only be counted. */
	const unsigned stripe = l->desc.unnamed_arrivals ? (unsigned)__builtin_ctz(awaited) : qp;
	const char *why = qp >= l->desc.n_qps ? "that queue pair does not exist" : why_wrong(l, stripe, imm, at, awaited);

	if (why) {
		gpul_rdma_fail(&l->failure, GPUL_EFORMAT, 0, "arrival",
			       "the peer runs a different version of gpuload, or writes to the wrong connection",
			       "%u bytes arrived for slot %u on queue pair %u: %s", GPUL_RDMA_IMM_BYTES(imm), at + 1, qp, why);
		return;
	}
	l->queues[qp].recvs_used++;
	l->received_ns = l->now_ns;
	l->repeat_ns = l->desc.repeat_ns;
	if ((int32_t)(at + 1 - l->highest_arrived) > 0)
		l->highest_arrived = at + 1;
	if (!g->stripes_left) {
		struct part *p = &l->parts[g->part];

		g->bytes = GPUL_RDMA_IMM_BYTES(imm);
		g->last = GPUL_RDMA_IMM_LAST(imm);
		if (p->seen <= g->segment)
			p->seen = g->segment + 1;
		if (g->last)
			end_message(l, at, p);
	}
	g->stripes_left = (uint16_t)(awaited & ~(1u << stripe));
	if (!g->stripes_left)
		segment_arrived(l, g);
}

/* ---- gpul_rdma_link_recv() --------------------------------------------------------------------------- */

static gpul_status check_parts(const gpul_rdma_link *l, const gpul_rdma_span *spans, const uint32_t *tags, unsigned n, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	if (n < 1 || n > GPUL_RDMA_MAX_PARTS)
		return gpul_fail(err, GPUL_EINVAL, 0, "a receive has %u buffers: expected 1 to %d", n, GPUL_RDMA_MAX_PARTS);
	for (unsigned i = 0; !st && i < n; i++) {
		st = gpul_rdma_check_span(l, &spans[i], err);
		if (!st && spans[i].area->source)
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "cannot receive into memory that is registered with GPUL_RDMA_SOURCE: the peer may only read it");
		if (st || n == 1)
			continue;
		if (spans[i].bytes > l->desc.segment_bytes ||
		    piece_of(spans[i].area, spans[i].at) != piece_of(spans[i].area, spans[i].at + spans[i].bytes - !!spans[i].bytes))
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "buffer %u of a multi-receive has %llu bytes: expected at most %u bytes (one segment), in one "
					 "piece of its region",
					 i, (unsigned long long)spans[i].bytes, l->desc.segment_bytes);
		for (unsigned j = 0; j < i; j++)
			if (tags[i] == tags[j])
				return gpul_fail(err, GPUL_EINVAL, 0, "buffers %u and %u of a multi-receive have the same tag %u", j, i,
						 tags[i]);
	}
	return st;
}

gpul_status gpul_rdma_link_recv(gpul_rdma_link *l, const gpul_rdma_span *spans, const uint32_t *tags, unsigned n, uint64_t deadline_ns,
				gpul_rdma_request *out, gpul_error *err)
{
	const gpul_status st = check_parts(l, spans, tags, n, err);
	struct request *r;

	if (st)
		return st;
	*out = 0;
	if (l->parts_head - l->parts_tail + n > GPUL_RDMA_SLOTS)
		return GPUL_OK;
	r = gpul_rdma_request_new(l, RECV, deadline_ns, out);
	if (!r)
		return GPUL_OK;
	r->span = spans[0];
	r->tag = tags[0];
	r->n_parts = r->parts_left = (uint8_t)n;
	for (unsigned i = 0; i < n; i++)
		l->parts[l->parts_head++ & SLOT_MASK] = (struct part){
			.span = spans[i],
			.request = r->index,
			.index = (uint8_t)i,
			.of = (uint8_t)n,
			.tag = tags[i],
			.needed = UINT32_MAX,
		};
	return GPUL_OK;
}

/* ---- totals -------------------------------------------------------------------------------------- */

uint32_t gpul_rdma_count_received(const gpul_rdma_link *l)
{
	uint32_t n = l->parts_tail; /* the tail may not have advanced over all parts that have ended */

	while (n != l->parts_head && l->parts[n & SLOT_MASK].ended)
		n++;
	return n;
}

bool gpul_rdma_link_lacks(const gpul_rdma_link *l, const gpul_rdma_totals *peer)
{
	const uint32_t received = gpul_rdma_count_received(l);

	return !l->failure.status && (int32_t)(peer->sent - received) > 0 && peer->sent - received <= l->parts_head - received;
}
