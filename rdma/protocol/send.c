/* send.c — sends: takes the next slot, divides the segment into stripes, and writes them with an immediate.
 *
 *     next slot ─┬─ of a message that has ended: skip it     the peer had granted more than the message needed
 *                ├─ with the right tag ──> segment ─┬─ registered: one write for each stripe
 *                └─ with another tag: fail          └─ staged: copy to a staging buffer first
 *
 * The peer may write the slots at any time, so each slot is copied once, and the copy is checked. */
#include "rdma/protocol/protocol_link_internal.h"

#include <errno.h>

/* ---- slots ------------------------------------------------------------------------------ */

#define SLOT_MESSAGE(s) ((uint16_t)(s)->order)
#define SLOT_PARTS(s)   ((s)->order >> 16 & 15)
#define SLOT_PART(s)    ((s)->order >> 20 & 15)
#define SLOT_END(s)     ((s)->order >> 24 & 1)

static void fail_slot(gpul_rdma_link *l, uint32_t sequence, const gpul_rdma_slot *s, const char *why)
{
	gpul_rdma_fail(&l->failure, GPUL_EFORMAT, 0, "slot",
		       "the peer runs a different version of gpuload, or has overwritten its own memory",
		       "slot %u from the peer is invalid: %s (%u bytes, order 0x%x, sequence %u)", sequence, why, s->bytes, s->order,
		       s->sequence);
}

/* Copy a slot if it has arrived, and check everything that does not depend on other slots.  A slot with a wrong check value has arrived
 * only in part.  Returns false if the slot has not arrived, or the link has failed. */
static bool read_slot(gpul_rdma_link *l, uint32_t sequence, gpul_rdma_slot *out)
{
	const gpul_rdma_slot *s = &l->desc.control->slots[(sequence - 1) & SLOT_MASK];
	const uint32_t found = __atomic_load_n(&s->sequence, __ATOMIC_ACQUIRE);

	if (found == sequence - GPUL_RDMA_SLOTS) /* still the slot of the previous lap: the new one has not arrived */
		return false;
	__builtin_memcpy(out, s, sizeof *out);
	if (out->check != gpul_rdma_slot_check(out))
		return false;
	if (out->sequence != sequence)
		fail_slot(l, sequence, out, "its sequence number is wrong");
	else if (out->bytes > l->desc.segment_bytes)
		fail_slot(l, sequence, out, "it is larger than a segment");
	else if (SLOT_PARTS(out) < 1 || SLOT_PARTS(out) > GPUL_RDMA_MAX_PARTS || SLOT_PART(out) >= SLOT_PARTS(out) || out->order >> 25)
		fail_slot(l, sequence, out, "its order is out of range");
	else if (!SLOT_END(out) && (!out->bytes || SLOT_PARTS(out) > 1))
		fail_slot(l, sequence, out, "it is not the last slot of its buffer");
	else
		return true;
	return false;
}

static bool fail_tag(gpul_rdma_link *l, uint32_t tag, unsigned n, uint32_t first_tag)
{
	gpul_rdma_fail(&l->failure, GPUL_EINVAL, EBADMSG, "isend", "both sides must send and receive in the same order",
		       n == 1 ? "the message has tag %u, but the peer's next receive has tag %u"
			      : "the message has tag %u, but no free buffer of the peer's multi-receive has it (the first has "
				"tag %u)",
		       tag, first_tag);
	return false;
}

/* NOT_ARRIVED is also the result if the link has failed */
enum search { NOT_ARRIVED, WRONG_TAG, FOUND };

/* Find the slot with this tag among the n slots of the multi-receive at next_slot; *first_tag: the tag of the first of them. */
static enum search find_in_group(gpul_rdma_link *l, uint32_t tag, unsigned n, gpul_rdma_slot *s, uint32_t *first_tag)
{
	const uint16_t message = SLOT_MESSAGE(s);

	for (unsigned i = 0; i < n; i++) {
		if (!read_slot(l, l->next_slot + i, s))
			return NOT_ARRIVED;
		if (SLOT_PARTS(s) != n || SLOT_PART(s) != i || SLOT_MESSAGE(s) != (uint16_t)(message + i)) {
			fail_slot(l, l->next_slot + i, s, "it is not the next part of its multi-receive");
			return NOT_ARRIVED;
		}
		if (i == 0)
			*first_tag = s->tag;
		if (s->tag == tag && !(l->group_taken >> i & 1))
			return FOUND;
	}
	return WRONG_TAG;
}

/* True if slot s continues the receive buffer of the previous slot, which was not the last slot of that buffer. */
static bool continues_buffer(const gpul_rdma_link *l, const gpul_rdma_slot *s)
{
	return l->has_message && SLOT_MESSAGE(s) == l->message && SLOT_PARTS(s) == 1 && !l->buffer_ended;
}

/* Find the slot for a message with this tag.  Skip the slots that the peer granted beyond the end of the previous message. */
static enum search search_slot(gpul_rdma_link *l, uint32_t tag, gpul_rdma_slot *s, uint32_t *first_tag)
{
	for (;; l->next_slot++) {
		if (!read_slot(l, l->next_slot, s))
			return NOT_ARRIVED;
		if (!continues_buffer(l, s) || l->in_message)
			break;
		l->buffer_ended = SLOT_END(s);
	}
	if (l->in_message ? !continues_buffer(l, s) : l->has_message && SLOT_MESSAGE(s) != (uint16_t)(l->message + 1)) {
		fail_slot(l, l->next_slot, s,
			  l->in_message ? "it is not part of the current message" : "it is not part of the next message");
		return NOT_ARRIVED;
	}
	if (SLOT_PARTS(s) > 1)
		return find_in_group(l, tag, SLOT_PARTS(s), s, first_tag);
	*first_tag = s->tag;
	return s->tag == tag ? FOUND : WRONG_TAG;
}

/* Find the slot for the oldest send; returns false if it has not arrived, or the link has failed. */
static bool find_slot(gpul_rdma_link *l, uint32_t tag, gpul_rdma_slot *s)
{
	uint32_t first_tag = 0;
	const enum search found = search_slot(l, tag, s, &first_tag);

	return found == FOUND || (found == WRONG_TAG && fail_tag(l, tag, SLOT_PARTS(s), first_tag));
}

/* Advance past a slot that has been taken.  The slots of a multi-receive are passed together, when
 * all of them have been taken. */
static void pass_slot(gpul_rdma_link *l, struct request *r, const gpul_rdma_slot *s, bool more)
{
	const unsigned n = SLOT_PARTS(s);

	if (!r->send.has_slot)
		r->send.message = l->next_message + SLOT_PART(s);
	if (!r->send.has_slot && n == 1)
		l->next_message++;
	r->send.has_slot = true;
	if (n > 1) {
		l->group_taken |= 1u << SLOT_PART(s);
		if (l->group_taken + 1 != 1u << n)
			return;
		l->group_taken = 0;
		l->next_message += n;
	}
	l->has_message = true;
	l->in_message = more;
	l->buffer_ended = SLOT_END(s);
	l->message = (uint16_t)(SLOT_MESSAGE(s) - SLOT_PART(s) + n - 1);
	l->next_slot += n;
}

/* ---- segments ---------------------------------------------------------------------------- */

/* True if the array t, and the queue pair of each stripe of a segment, have room for the operations of the segment. */
static bool has_room(const gpul_rdma_link *l, const struct take *t, uint32_t sequence, unsigned n_stripes, unsigned pieces)
{
	if (t->max - t->n < n_stripes * pieces)
		return false;
	for (unsigned i = 0; i < n_stripes; i++)
		if (room_of(l, &l->queues[queue_of(l, sequence, i)]) < pieces)
			return false;
	return true;
}

/* Write bytes from `at` to a slot, divided into stripes.  In an area of several pieces a stripe may need several writes; the last
 * one carries the immediate.  Returns the number of operations. */
static unsigned emit_segment(gpul_rdma_link *l, struct take *t, const gpul_rdma_area *area, uint64_t at, const gpul_rdma_slot *slot,
			     uint32_t bytes, bool last, uint16_t request, uint8_t stage)
{
	const uint32_t imm = GPUL_RDMA_IMM(slot->sequence, last, bytes);
	uint32_t stripe_bytes, done = 0;
	const unsigned n = stripes_of(&l->desc, bytes, &stripe_bytes), before = t->n;

	for (unsigned i = 0; i < n; i++) {
		const uint32_t end = i + 1 < n ? done + stripe_bytes : bytes;

		do {
			const gpul_rdma_piece *p = piece_of(area, at + done);
			const uint64_t left = p->at + p->bytes - (at + done);
			const uint32_t now = end - done < left ? end - done : (uint32_t)left;
			gpul_rdma_op *op = emit_op(l, t, done + now == end ? GPUL_RDMA_OP_WRITE_IMM : GPUL_RDMA_OP_WRITE,
						   queue_of(l, slot->sequence, i), request, stage, now);

			op->imm = imm;
			op->local = at + done;
			op->local_key = p->local_key;
			op->remote = slot->address + done;
			op->remote_key = slot->key;
			if (now <= l->desc.inline_bytes && !area->on_device)
				op->flags |= GPUL_RDMA_INLINE;
			done += now;
		} while (done < end);
	}
	return t->n - before;
}

static const gpul_rdma_area *stages_area(const gpul_rdma_link *l, gpul_rdma_area *room)
{
	*room = (gpul_rdma_area){ .pieces = { l->desc.stages_piece }, .n_pieces = 1 };
	return room;
}

static uint64_t out_stage_at(const gpul_rdma_link *l, unsigned stage)
{
	return (uint64_t)(uintptr_t)l->desc.stages + (uint64_t)stage * l->desc.segment_bytes;
}

/* Assign a staging buffer to a segment of a staged area, and queue the copy. */
static void begin_copy(gpul_rdma_link *l, struct request *r, const gpul_rdma_slot *slot, uint32_t bytes, bool last)
{
	const uint8_t stage = l->out.free[--l->out.n_free];

	l->out_stages[stage] = (struct out_stage){
		.slot = *slot,
		.request = r->index,
		.last = last,
		.bytes = bytes,
		.offset = r->send.taken,
	};
	if (bytes)
		l->out.copies[l->out.copies_head++ % MAX_STAGES] = stage;
	else
		l->ready[l->ready_head++ % MAX_STAGES] = stage;
	r->ops_left++;
}

/* Send the next segment of the oldest send; returns false if the send must wait, or the link has failed. */
static bool send_segment(gpul_rdma_link *l, struct take *t, struct request *r)
{
	const gpul_rdma_area *area = r->span.area;
	const uint64_t left = r->span.bytes - r->send.taken;
	const uint64_t taken = r->send.taken;
	gpul_rdma_slot slot;
	uint32_t stripe_bytes;

	if (!find_slot(l, r->tag, &slot))
		return false;
	const uint32_t bytes = left < slot.bytes ? (uint32_t)left : slot.bytes;
	const bool last = bytes == left;

	if (!last && (SLOT_END(&slot) || !bytes)) {
		gpul_rdma_fail(&l->failure, GPUL_EINVAL, EMSGSIZE, "isend", "post a receive of at least the message's size",
			       "the message of %llu bytes with tag %u is longer than the peer's receive buffer of %llu bytes",
			       (unsigned long long)r->span.bytes, r->tag, (unsigned long long)(taken + slot.bytes));
		return false;
	}
	if (area->staged) {
		if (!l->out.n_free)
			return false;
		begin_copy(l, r, &slot, bytes, last);
	} else {
		const unsigned n = stripes_of(&l->desc, bytes, &stripe_bytes);

		if (!has_room(l, t, slot.sequence, n, area->n_pieces))
			return false;
		r->ops_left += emit_segment(l, t, area, r->span.at + taken, &slot, bytes, last, r->index, NO_STAGE);
	}
	r->send.taken += bytes;
	pass_slot(l, r, &slot, !last);
	r->emitted = last;
	return true;
}

/* ---- staging --------------------------------------------------------------------------------- */

static void take_copies_out(gpul_rdma_link *l, struct take *t)
{
	for (; l->out.copies_tail != l->out.copies_head && t->n < t->max; l->out.copies_tail++) {
		const uint8_t stage = l->out.copies[l->out.copies_tail % MAX_STAGES];
		const struct out_stage *o = &l->out_stages[stage];

		l->out.copying |= 1ull << stage;
		t->ops[t->n++] = (gpul_rdma_op){
			.kind = GPUL_RDMA_OP_COPY_OUT,
			.bytes = o->bytes,
			.id = MAKE_ID(ID_COPY_OUT, 0, stage),
			.local = out_stage_at(l, stage),
			.remote = l->requests[o->request].span.at + o->offset,
		};
	}
}

static void take_staged(gpul_rdma_link *l, struct take *t)
{
	gpul_rdma_area area;

	for (; l->ready_tail != l->ready_head; l->ready_tail++) {
		const uint8_t stage = l->ready[l->ready_tail % MAX_STAGES];
		struct out_stage *o = &l->out_stages[stage];
		uint32_t stripe_bytes;

		if (!has_room(l, t, o->slot.sequence, stripes_of(&l->desc, o->bytes, &stripe_bytes), 1))
			return;
		o->ops_left = emit_segment(l, t, stages_area(l, &area), out_stage_at(l, stage), &o->slot, o->bytes, o->last, o->request,
					   stage);
	}
}

void gpul_rdma_copied_out(gpul_rdma_link *l, unsigned stage)
{
	l->ready[l->ready_head++ % MAX_STAGES] = (uint8_t)stage;
}

void gpul_rdma_stage_sent(gpul_rdma_link *l, unsigned stage)
{
	struct out_stage *o = &l->out_stages[stage];

	if (--o->ops_left)
		return;
	l->out.free[l->out.n_free++] = (uint8_t)stage;
	gpul_rdma_request_retired(l, &l->requests[o->request]);
}

/* ---- functions that the link calls -------------------------------------------------------------------------------------- */

void gpul_rdma_take_sends(gpul_rdma_link *l, struct take *t)
{
	take_staged(l, t);
	while (l->sends_tail != l->sends_head) {
		struct request *r = &l->requests[l->sends[l->sends_tail & REQUEST_MASK]];

		if (!send_segment(l, t, r))
			break;
		if (r->emitted)
			l->sends_tail++;
	}
	take_copies_out(l, t);
}

bool gpul_rdma_link_may_send(gpul_rdma_link *l, uint32_t tag)
{
	gpul_rdma_slot slot;
	uint32_t first_tag;

	return !l->failure.status && l->sends_tail == l->sends_head && search_slot(l, tag, &slot, &first_tag) == FOUND;
}

gpul_status gpul_rdma_link_send(gpul_rdma_link *l, const gpul_rdma_span *span, uint32_t tag, uint64_t deadline_ns, gpul_rdma_request *out,
				gpul_error *err)
{
	const gpul_status st = gpul_rdma_check_span(l, span, err);
	struct request *r;

	if (st)
		return st;
	if (!l->desc.ordered && piece_of(span->area, span->at) != piece_of(span->area, span->at + span->bytes - !!span->bytes))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "a message of %llu bytes crosses two pieces of its region, but this fabric does not order "
				 "writes: register the memory in one piece",
				 (unsigned long long)span->bytes);
	r = gpul_rdma_request_new(l, SEND, deadline_ns, out);
	if (!r)
		return GPUL_OK;
	r->span = *span;
	r->tag = tag;
	r->send.taken = 0;
	r->send.has_slot = false;
	l->sends[l->sends_head++ & REQUEST_MASK] = r->index;
	return GPUL_OK;
}

/* ---- totals -------------------------------------------------------------------------------------- */

/* Return the number of the first message that no send uses yet.  Sends may already use some messages of the multi-receive at next_slot. */
static uint32_t first_unsent(const gpul_rdma_link *l)
{
	return l->next_message + (uint32_t)__builtin_ctz(~l->group_taken);
}

uint32_t gpul_rdma_count_sent(const gpul_rdma_link *l)
{
	uint32_t n = first_unsent(l);

	for (unsigned i = 0; i < GPUL_RDMA_REQUESTS; i++) {
		const struct request *r = &l->requests[i];

		if (r->kind == SEND && !r->ended && r->send.has_slot && (int32_t)(r->send.message - n) < 0)
			n = r->send.message;
	}
	return n;
}

/* Mark the sends that have an operation or a staged segment that the backend has not accepted yet. */
static void mark_unposted(const gpul_rdma_link *l, const gpul_rdma_op *unposted, unsigned n_unposted, bool *marks)
{
	uint64_t stages = l->out.copying;

	for (uint32_t i = l->out.copies_tail; i != l->out.copies_head; i++)
		stages |= 1ull << l->out.copies[i % MAX_STAGES];
	for (uint32_t i = l->ready_tail; i != l->ready_head; i++)
		stages |= 1ull << l->ready[i % MAX_STAGES];
	for (; stages; stages &= stages - 1)
		marks[l->out_stages[__builtin_ctzll(stages)].request] = true;
	for (unsigned i = 0; i < n_unposted; i++) {
		const uint64_t id = unposted[i].id;

		if (id >> 48 == ID_QUEUE && unposted[i].kind != GPUL_RDMA_OP_RECV && unposted[i].kind != GPUL_RDMA_OP_CONTROL)
			marks[l->queues[id >> 32 & 0xffff].flights[(uint32_t)id & l->depth_mask].request] = true;
	}
}

void gpul_rdma_link_peer_closed(gpul_rdma_link *l, const gpul_rdma_totals *peer, const gpul_rdma_op *unposted, unsigned n_unposted)
{
	bool marks[GPUL_RDMA_REQUESTS + 1] = { false }, claimed[GPUL_RDMA_REQUESTS] = { false };

	if (l->failure.status || (int32_t)(first_unsent(l) - peer->received) < 0)
		return;
	mark_unposted(l, unposted, n_unposted, marks);
	for (unsigned i = 0; i < GPUL_RDMA_REQUESTS; i++) {
		const struct request *r = &l->requests[i];

		claimed[i] = r->kind == SEND && !r->ended && r->send.has_slot && (int32_t)(r->send.message - peer->received) < 0;
		if (claimed[i] && (!r->emitted || marks[i]))
			return;
	}
	for (unsigned i = 0; i < GPUL_RDMA_REQUESTS; i++)
		l->requests[i].ended |= claimed[i];
}
