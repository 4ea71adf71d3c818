/* fabric.c — the simulated fabric: executes the operations of both ends between their memories.
 *
 * An ordered fabric keeps the order within a queue pair; the other kind keeps no order.  Only signalled operations complete.
 * A write may land in two parts, reads its source when it lands (unless it is inline), and wakes the other end. */
#include "tests/rdma/sim/sim.h"

#include <stdlib.h>
#include <string.h>

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Schedule the completion of an operation, with or without an error. */
static void complete(struct sim *s, uint32_t i, uint64_t ns, bool error, int wc_status)
{
	const struct flying *f = &s->flying[i];
	const struct inbox_item item = {
		.event = { .kind = GPUL_RDMA_EVENT_DONE, .qp = f->op.qp, .id = f->op.id, .bytes = f->op.bytes },
		.error = error,
		.wc_status = wc_status,
		.flying = i,
	};

	happen(s, ns, DELIVER, f->end, new_item(s, &item));
}

/* ---- take and post --------------------------------------------------------------------------- */

static void start_copy(struct sim *s, struct end *e, uint32_t i)
{
	check_copy(s, e->index, &s->flying[i].op);
	e->copies++;
	happen(s, s->now + delay(&s->rng, s->p.copy_ns), COPIED, e->index, i);
}

static void post_datagram(struct sim *s, struct end *e, const gpul_rdma_op *op)
{
	const unsigned copies = chance(&s->rng, s->p.datagram_loss) ? 0 : chance(&s->rng, 30) ? 2 : 1;
	const uint64_t grants = (uint64_t)(uintptr_t)e->control->grants;

	if (op->local < grants || op->local - grants + op->bytes > sizeof e->control->grants || op->bytes % sizeof(gpul_rdma_slot)) {
		wrong(s, "%c: a datagram of %u bytes is not in the grants", "AB"[e->index], op -> bytes);
		return;
	}
	if (!copies)
		trace(s, e->index, "        (lost)");
	for (unsigned n = 0; n < copies; n++) {
		struct inbox_item item = { .flying = NONE };
		void *data = malloc(op->bytes ? op->bytes : 1);

		memcpy(data, (const void *)(uintptr_t)op->local, op->bytes);
		item.event = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_CONTROL, .bytes = op->bytes, .data = data };
		happen(s, s->now + delay(&s->rng, s->p.post_ns) + delay(&s->rng, s->p.arrive_ns), DELIVER, !e->index, new_item(s, &item));
	}
}

static bool is_early(const struct sim *s, const struct flying *f)
{
	return s->p.early && !(f->op.flags & GPUL_RDMA_DELIVERED);
}

/* Copy the bytes of a write when it is posted, because this fabric completes writes before their data has landed. */
static void capture(struct sim *s, uint32_t i)
{
	struct sent_queue *q = &s->ends[s->flying[i].end].queues[s->flying[i].op.qp];
	uint64_t done = s->now + delay(&s->rng, s->p.ack_ns);
	uint32_t twin;

	s->flying[i].captured = malloc(s->flying[i].op.bytes + 1);
	memcpy(s->flying[i].captured, (const void *)(uintptr_t)s->flying[i].op.local, s->flying[i].op.bytes);
	if (!is_early(s, &s->flying[i]) || !(s->flying[i].op.flags & GPUL_RDMA_SIGNALED) || s->flying[i].error)
		return;
	twin = new_flying(s);
	s->flying[twin].op = s->flying[i].op;
	s->flying[twin].end = s->flying[i].end;
	s->flying[twin].number = s->flying[i].number;
	if (s->p.completes_in_order)
		done = q->last_early_done = later(done, q->last_early_done);
	complete(s, twin, done, false, 0);
}

static void post_write(struct sim *s, struct end *e, uint32_t i)
{
	struct flying *f = &s->flying[i];
	struct sent_queue *q = &e->queues[f->op.qp];
	const uint64_t typical = f->op.qp == s->p.slow_qp ? s->p.post_ns * 40 : s->p.post_ns;
	uint64_t ns = s->now + delay(&s->rng, typical);

	if (f->op.flags & GPUL_RDMA_INLINE)
		memcpy(f->inlined, (const void *)(uintptr_t)f->op.local, f->op.bytes);
	f->earlier_done_ns = q->last_early_done;
	f->error = s->p.fault == ERROR_COMPLETION && e->index == s->p.victim && e->n_writes++ == s->p.at_op;
	if (s->p.early) {
		capture(s, i);
		f = &s->flying[i]; /* capture() may have moved the array */
	}
	if (s->p.ordered)
		ns = q->last_lands = later(ns, q->last_lands);
	if (f->op.bytes > 8 && s->p.in_parts && chance(&s->rng, s->p.in_parts) && !f->error) {
		/* In an ordered fabric, the first part lands at last_lands, which is not before any earlier operation. */
		happen(s, s->p.ordered ? ns : s->now + below(&s->rng, (uint32_t)(ns - s->now)), LAND_PART, e->index, i);
		if (s->p.ordered)
			ns = q->last_lands = ns + below(&s->rng, 3000);
	}
	happen(s, ns, LAND, e->index, i);
}

static void post(struct sim *s, struct end *e, uint32_t i)
{
	const gpul_rdma_op *op = &s->flying[i].op;
	struct sent_queue *q = &e->queues[op->qp];

	switch (op->kind) {
	case GPUL_RDMA_OP_WRITE:
	case GPUL_RDMA_OP_WRITE_IMM:
		post_write(s, e, i);
		return;
	case GPUL_RDMA_OP_FLUSH:
		happen(s, s->now + delay(&s->rng, s->p.post_ns), LAND, e->index, i);
		return;
	case GPUL_RDMA_OP_RECV:
		q->recvs += s->p.unnamed ? 0 : (int)op->bytes;
		if (q->recvs > GPUL_RDMA_RECVS)
			wrong(s, "%c: %d receives on queue pair %u, which has room for %d", "AB"[e->index], q -> recvs, op -> qp,
			      GPUL_RDMA_RECVS);
		break;
	default:
		post_datagram(s, e, op);
	}
	end_flying(s, i);
}

/* Take the operations that the link has ready, and post as many as the fabric accepts. */
void take_operations(struct sim *s, struct end *e)
{
	gpul_rdma_op ops[MAX_TAKE];
	char text[256];
	unsigned n;

	do {
		n = gpul_rdma_link_take(e->link, ops, MAX_TAKE - below(&s->rng, 33));
		for (unsigned i = 0; i < n && !s->reason[0]; i++) {
			uint32_t f;

			if (s->trace)
				trace(s, e->index, "take    %s", name_op(s, e->index, &ops[i], text));
			check_taken(s, e, &ops[i]);
			slots_told(s, e, &ops[i]);
			if (s->reason[0])
				return;
			f = new_flying(s);
			s->flying[f].op = ops[i];
			s->flying[f].end = (uint8_t)e->index;
			if (ops[i].kind == GPUL_RDMA_OP_WRITE || ops[i].kind == GPUL_RDMA_OP_WRITE_IMM)
				s->flying[f].number = e->queues[ops[i].qp].taken++;
			if (ops[i].kind == GPUL_RDMA_OP_COPY_IN || ops[i].kind == GPUL_RDMA_OP_COPY_OUT)
				start_copy(s, e, f);
			else
				e->backlog[e->backlog_head++ % MAX_BACKLOG] = f;
		}
		watch_failure(s, e);
	} while (n && !e->failed && chance(&s->rng, 800));
	n = e->backlog_head - e->backlog_tail;
	if (n && chance(&s->rng, 200))
		n = below(&s->rng, n + 1);
	for (; n && !e->failed && !s->reason[0]; n--)
		post(s, e, e->backlog[e->backlog_tail++ % MAX_BACKLOG]);
}

/* ---- landing ----------------------------------------------------------------------------------- */

/* Lose the bytes of an operation: the sender gets an error completion, now or when the fabric gives up. */
static void lose(struct sim *s, uint32_t i, bool at_once)
{
	struct sent_queue *q = &s->ends[s->flying[i].end].queues[s->flying[i].op.qp];

	if (q->in_error || s->ends[s->flying[i].end].failed) {
		end_flying(s, i);
		return;
	}
	q->in_error = true;
	complete(s, i, later(q->last_done, s->now + (at_once ? 20 * US : NOTICE_NS)), true, at_once ? 5 : 12);
}

static void land_flush(struct sim *s, uint32_t i)
{
	settle(s, s->flying[i].end, s->n_unsettled[s->flying[i].end]);
	complete(s, i, s->now + delay(&s->rng, s->p.ack_ns), false, 0);
}

static const unsigned char *source_of(const struct flying *f)
{
	if (f->captured)
		return f->captured;
	return f->op.flags & GPUL_RDMA_INLINE ? f->inlined : (const unsigned char *)(uintptr_t)f->op.local;
}

/* Store bytes [from, upto) of a write; in device memory they may become visible later. */
static void store(struct sim *s, const struct flying *f, const struct registration *r, uint64_t at, uint32_t from, uint32_t upto)
{
	const unsigned char *source = source_of(f);
	const unsigned to = !f->end;

	if (r->control || r->stages || !s->ends[to].areas[r->area].small_writes_wait) {
		memcpy((unsigned char *)(uintptr_t)at + from, source + from, upto - from);
		return;
	}
	if (s->n_unsettled[to] == s->unsettled_room[to])
		s->unsettled[to] = grow(s->unsettled[to], &s->unsettled_room[to], sizeof *s->unsettled[to]);
	struct unsettled *u = &s->unsettled[to][s->n_unsettled[to]++];

	*u = (struct unsettled){ .to = at + from, .data = malloc(upto - from), .bytes = upto - from };
	memcpy(u->data, source + from, upto - from);
	happen(s, s->now + delay(&s->rng, s->p.post_ns * 4), SETTLE, to, s->n_unsettled[to]);
}

void settle(struct sim *s, unsigned end, uint32_t upto)
{
	for (; s->n_settled[end] < upto; s->n_settled[end]++) {
		struct unsettled *u = &s->unsettled[end][s->n_settled[end]];

		memcpy((void *)(uintptr_t)u->to, u->data, u->bytes);
		free(u->data);
	}
}

static void arrive(struct sim *s, const struct flying *f)
{
	struct end *to = &s->ends[!f->end];
	const uint32_t qp = s->p.unnamed ? 0 : f->op.qp;
	struct sent_queue *q = &to->queues[qp];
	const struct inbox_item item = {
		.event = { .kind = GPUL_RDMA_EVENT_ARRIVED, .qp = qp, .imm = f->op.imm, .bytes = f->op.bytes },
		.flying = NONE,
	};
	uint64_t ns = s->now + delay(&s->rng, s->p.arrive_ns);

	if (s->p.ordered)
		ns = to->queues[f->op.qp].last_arrived = later(ns, to->queues[f->op.qp].last_arrived);
	if (!s->p.unnamed && --q->recvs < 0 && !s->lenient) /* a fabric whose arrivals do not name a queue pair needs no receives */
		wrong(s, "%c: an arrival on queue pair %u, which has no receive", "AB"[to->index], qp);
	happen(s, ns, DELIVER, to->index, new_item(s, &item));
}

/* A part of a write lands: words of 8 bytes from the beginning or from the end, as memcpy() in a fabric of software may copy them. */
void land_part(struct sim *s, uint32_t i)
{
	struct flying *f = &s->flying[i];
	struct end *to = &s->ends[!f->end];
	const uint32_t border = (1 + below(&s->rng, (f->op.bytes - 1) / 8)) * 8;
	const bool from_end = chance(&s->rng, 500);
	const struct registration *r;
	uint64_t at;

	if (s->path_broken || s->hole || to->dead || s->ends[f->end].dead || s->ends[f->end].queues[f->op.qp].in_error)
		return;
	r = find_registration(s, to->index, f->op.remote_key, f->op.remote, f->op.bytes);
	if (!r)
		return;
	at = r->piece.at + (f->op.remote - r->piece.remote);
	if (!f->captured)
		check_local(s, f->end, &f->op);
	check_write(s, to->index, r, at, &f->op);
	if (s->reason[0])
		return;
	f->landed_from = from_end ? border : 0;
	f->landed_upto = from_end ? f->op.bytes : border;
	trace(s, f->end, "        bytes %u to %u of id %llx land", f->landed_from, f->landed_upto, (unsigned long long)f->op.id);
	store(s, f, r, at, f->landed_from, f->landed_upto);
	wake(s, to->index, s->now + delay(&s->rng, to->thread_ns));
}

static void land_bytes(struct sim *s, uint32_t i, const struct registration *r)
{
	struct flying *f = &s->flying[i];
	const unsigned to = !f->end;
	const uint64_t at = r->piece.at + (f->op.remote - r->piece.remote);
	unsigned char signal[8];

	if (!f->captured)
		check_local(s, f->end, &f->op);
	check_write(s, to, r, at, &f->op);
	if (s->reason[0])
		return;
	if (f->op.bytes == 8)
		memcpy(signal, source_of(f), 8);
	if (!r->control && !r->stages)
		put_landed(s, to, at, signal, f->op.bytes);
	if (f->landed_from)
		store(s, f, r, at, 0, f->landed_from);
	else
		store(s, f, r, at, f->landed_upto, f->op.bytes);
}

static void land_write(struct sim *s, uint32_t i)
{
	struct flying *f = &s->flying[i];
	struct end *from = &s->ends[f->end], *to = &s->ends[!f->end];
	struct sent_queue *q = &from->queues[f->op.qp];
	const struct registration *r = NULL;
	uint64_t done;

	if (s->path_broken || s->hole || to->dead || q->in_error) {
		lose(s, i, s->path_broken && chance(&s->rng, 500));
		return;
	}
	if (s->trace) {
		char text[256];

		trace(s, f->end, "lands   %s%s", name_op(s, f->end, &f->op, text), f->error ? " (error)" : "");
	}
	if (f->op.bytes) {
		r = find_registration(s, to->index, f->op.remote_key, f->op.remote, f->op.bytes);
		if (!r) {
			if (!s->lenient)
				wrong(s, "%c: operation %llx writes %u bytes outside the peer's regions", "AB"[f->end],
				      (unsigned long long)f -> op.id, f->op.bytes);
			q->in_error = true;
			complete(s, i, later(q->last_done, s->now + delay(&s->rng, s->p.ack_ns)), true, 10);
			return;
		}
	}
	if (!f->error || s->p.lands) {
		if (f->op.bytes)
			land_bytes(s, i, r);
		wake(s, to->index, s->now + delay(&s->rng, to->thread_ns));
		if (f->op.kind == GPUL_RDMA_OP_WRITE_IMM)
			arrive(s, f);
	}
	f->landed = true;
	done = s->now + delay(&s->rng, s->p.ack_ns);
	if (s->p.completes_in_order)
		done = q->last_done = later(later(done, q->last_done), f->earlier_done_ns);
	if (f->error)
		q->in_error = true;
	if (f->error || (f->op.flags & GPUL_RDMA_SIGNALED && !is_early(s, f)))
		complete(s, i, done, f->error, s->p.wc_status);
	else
		end_flying(s, i);
}

/* A write lands, or a flush is executed. */
void land(struct sim *s, uint32_t i)
{
	if (s->ends[s->flying[i].end].dead)
		end_flying(s, i);
	else if (s->flying[i].op.kind == GPUL_RDMA_OP_FLUSH)
		land_flush(s, i);
	else
		land_write(s, i);
}

/* ---- copies and inboxes ---------------------------------------------------------------------------- */

void copied(struct sim *s, uint32_t i)
{
	const struct flying *f = &s->flying[i];
	struct end *e = &s->ends[f->end];
	void *local = (void *)(uintptr_t)f->op.local, *device = (void *)(uintptr_t)f->op.remote;

	if (e->dead) {
		end_flying(s, i);
		return;
	}
	if (!e->failed)
		check_copy(s, f->end, &f->op);
	if (f->op.kind == GPUL_RDMA_OP_COPY_OUT)
		memcpy(local, device, f->op.bytes);
	else
		memcpy(device, local, f->op.bytes);
	e->copies--;
	complete(s, i, s->now + delay(&s->rng, 1000), false, 0);
}

void deliver(struct sim *s, unsigned end, uint32_t item)
{
	struct end *e = &s->ends[end];

	if (e->inbox_head - e->inbox_tail == e->inbox_room)
		abort();
	e->inbox[e->inbox_head++ % e->inbox_room] = s->items[item];
	s->free_items[s->n_free_items++] = item;
	wake(s, end, s->now + delay(&s->rng, e->thread_ns));
}

/* Free an item that has not reached its inbox at the end of a run. */
void drop_item(struct sim *s, uint32_t item)
{
	if (s->items[item].event.kind == GPUL_RDMA_EVENT_CONTROL)
		free((void *)(uintptr_t)s->items[item].event.data);
	if (s->items[item].flying != NONE)
		end_flying(s, s->items[item].flying);
	s->free_items[s->n_free_items++] = item;
}
