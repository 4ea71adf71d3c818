/* fault.c — the faults (errors, deaths, stalls, lost messages, forged events), and the out-of-band socket, which reports a failure to the
 * other end. */
#include "tests/rdma/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *wc_name(int status)
{
	/* clang-format off */
	static const char *const names[] = {
		"success", "local length error", "local QP operation error", "local EE context error", "local protection error",
		"flushed", "memory window bind error", "bad response", "local access error", "remote invalid request",
		"remote access error", "remote operation error", "transport retry counter exceeded", "RNR retry counter exceeded",
		"local RDD violation", "remote invalid RD request", "remote aborted", "invalid EE context", "invalid EE state", "fatal",
		"response timeout", "general error",
	};
	/* clang-format on */

	return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

/* ---- the plan ----------------------------------------------------------------------------------- */

void plan_fault(struct sim *s)
{
	struct rng *r = &s->rng;
	struct params *p = &s->p;

	p->fault = chance(r, p->shape == FLOOD ? 900 : 400) ? NO_FAULT : (enum fault)(1 + below(r, N_FAULTS - 1));
	if (p->fault != NO_FAULT && chance(r, 150))
		p->fault = HOSTILE_ORDER;
	p->victim = below(r, ENDS);
	p->at_ns = s->now + (chance(r, 500) ? below(r, 50000) : below(r, 3000000));
	p->for_ns = chance(r, 300) ? FOREVER : chance(r, 500) ? below(r, 1000000) : 2 * random_bits(r) % (4 * LEASE_NS);
	p->at_op = below(r, chance(r, 500) ? 8 : 200);
	p->wc_status = 1 + (int)below(r, 21);
	p->lands = chance(r, 300);
	p->beats_stop = chance(r, 500);
	p->failed_lost = p->fault == PARTITION || chance(r, 200);
	p->eof_lost = p->fault == PARTITION || chance(r, 200);
	p->socket_ns = 1 + delay(r, 50000);
	p->harmless = p->fault == NO_FAULT || (p->fault == STALL && p->for_ns < LEASE_NS / 2);
	s->lenient = p->fault == HOSTILE || p->fault == HOSTILE_ORDER;
	if (p->fault == DEATH || p->fault == STALL || p->fault == PARTITION || p->fault == BLACK_HOLE || s->lenient || p->fault == ABANDON)
		happen(s, p->at_ns, FAULT, p->victim, 0);
}

/* Change one message so that it does not fit its receive. */
void spoil_requests(struct sim *s)
{
	struct end *e = &s->ends[s->p.victim];
	const enum work_kind kind = s->p.fault == WRONG_TAG ? SEND : RECV;
	struct work *w;

	if ((s->p.fault != WRONG_TAG && s->p.fault != SHORT_BUFFER) || !e->planned[kind])
		return;
	w = e->stream[kind][below(&s->rng, e->planned[kind])];
	if (kind == SEND) {
		w->tags[0] += 1000;
		s->p.must_fail = true;
		return;
	}
	for (unsigned i = 0; i < w->n_parts; i++) {
		struct buffer *b = &e->buffers[w->buffers[i]];

		if (!b->filled)
			continue;
		b->bytes = below(&s->rng, b->filled);
		s->p.must_fail = true;
		return;
	}
}

void begin_fault(struct sim *s)
{
	struct params *p = &s->p;
	struct end *e = &s->ends[p->victim];

	trace(s, ENDS, "FAULT   %s of %c", fault_names[p->fault], "AB"[p->victim]);
	switch (p->fault) {
	case DEATH:
		e->dead = true;
		if (!p->eof_lost)
			happen(s, s->now + p->socket_ns, SOCKET_EOF, !p->victim, 0);
		return;
	case STALL:
		e->stalled = true;
		if (p->for_ns < FOREVER)
			happen(s, s->now + p->for_ns, WAKE, p->victim, 0);
		return;
	case PARTITION:
		s->partition = true;
		return;
	case BLACK_HOLE:
		s->hole = true;
		return;
	case HOSTILE:
	case HOSTILE_ORDER:
		forge(s);
		return;
	default:
		s->aborted = true;
	}
}

/* ---- failures and the socket ------------------------------------------------------------------------ */

static bool expired(const struct end *e)
{
	for (uint32_t i = 0; i < e->n_active; i++)
		if (e->active[i]->deadline_ns && e->active[i]->deadline_ns <= e->last_tick_ns)
			return true;
	return false;
}

/* Called after each call of the link: if the link has failed, break the path and notify the other end. */
void watch_failure(struct sim *s, struct end *e)
{
	const gpul_rdma_failure *f = gpul_rdma_link_failed(e->link);
	const struct params *p = &s->p;

	if (e->failed || !f->status)
		return;
	e->failed = true;
	e->failed_ns = s->now;
	s->path_broken = true;
	trace(s, e->index, "FAILED  %s: %s (%d)", f->call, f->what, f->native);
	if (p->harmless)
		wrong(s, "%c: the link has failed, but nothing was wrong: %s: %s", "AB"[e->index], f -> call, f -> what);
	if (!f->what[0] || !f->call[0])
		wrong(s, "%c: a failure without an explanation", "AB"[e->index]);
	if (p->must_fail && !s->ends[!e->index].failed && f->native != (p->fault == WRONG_TAG ? EBADMSG : EMSGSIZE))
		wrong(s, "%c: the failure does not say that there was a %s: %s: %s", "AB"[e->index], fault_names[p->fault], f -> call,
		      f -> what);
	if (!strcmp(f->call, "deadline") && !f->by_peer && !expired(e))
		wrong(s, "%c: a deadline has passed before its time", "AB"[e->index]);
	if (!p->failed_lost || !p->eof_lost) /* if both are lost, the other end's lease must expire */
		happen(s, s->now + p->socket_ns, p->failed_lost ? SOCKET_EOF : SOCKET_FAILED, !e->index, 0);
}

void fail_end(struct sim *s, unsigned end, const char *call, int native, const char *what)
{
	struct end *e = &s->ends[end];
	gpul_rdma_failure f = { 0 };

	gpul_rdma_fail(&f, native ? GPUL_EVERBS : GPUL_ESYS, native ? native : ETIMEDOUT, call, NULL, "%s", what);
	gpul_rdma_link_fail(e->link, &f);
	if (!gpul_rdma_link_failed(e->link)->status)
		wrong(s, "%c: a failure is ignored", "AB"[end]);
	watch_failure(s, e);
}

void start_leases(struct sim *s)
{
	for (unsigned i = 0; i < ENDS; i++) {
		s->ends[i].lease = gpul_rdma_lease_begin(LEASE_NS, LEASE_NS, s->now);
		happen(s, gpul_rdma_lease_next(&s->ends[i].lease), SOCKET_TICK, i, 0);
	}
}

/* Act as the socket's thread, which sends heartbeats regularly and detects a silent peer. */
static void tick_lease(struct sim *s, struct end *e)
{
	const struct params *p = &s->p;
	gpul_rdma_failure why = { 0 };
	uint64_t next;

	gpul_rdma_lease_tick(&e->lease, s->now);
	if (gpul_rdma_lease_beat_due(&e->lease, s->now) && !s->partition)
		happen(s, s->now + p->socket_ns, SOCKET_BEAT, !e->index, 0);
	if (gpul_rdma_lease_expired(&e->lease, s->now, &why)) {
		gpul_rdma_link_fail(e->link, &why);
		watch_failure(s, e);
		wake(s, e->index, s->now + 1);
		return;
	}
	if (s->ends[!e->index].dead && s->now > p->at_ns + LEASE_NS + 2 * LEASE_NS / GPUL_RDMA_BEATS + SECOND)
		wrong(s, "%c: the lease has not noticed the peer's death", "AB"[e->index]);
	next = gpul_rdma_lease_next(&e->lease);
	happen(s, next > s->now ? next : s->now + 1, SOCKET_TICK, e->index, 0);
}

/* Handle an event on the socket of one end: the peer reports a failure, closes, or sends a heartbeat. */
void socket_event(struct sim *s, const struct future *f)
{
	struct end *e = &s->ends[f->end];
	gpul_rdma_failure why;

	if (e->dead || e->failed)
		return;
	if (e->stalled && s->p.beats_stop) { /* the process is stopped, so it reads its socket only when it continues */
		if (s->p.for_ns < FOREVER)
			happen(s, s->p.at_ns + s->p.for_ns + 1, (enum happening)f->what, f->end, 0);
		return;
	}
	switch ((enum happening)f->what) {
	case SOCKET_TICK:
		tick_lease(s, e);
		return;
	case SOCKET_BEAT:
		gpul_rdma_lease_received(&e->lease, s->now);
		return;
	case SOCKET_FAILED:
		why = *gpul_rdma_link_failed(s->ends[!f->end].link);
		why.by_peer = 1;
		gpul_rdma_link_fail(e->link, &why);
		watch_failure(s, e);
		break;
	default:
		fail_end(s, f->end, "socket", 0, "the peer has closed the socket");
	}
	wake(s, f->end, s->now + 1);
}

/* ---- a hostile peer, or a broken NIC --------------------------------------------------------------------- */

static void forge_slot(struct sim *s, struct end *e)
{
	struct rng *r = &s->rng;
	const uint32_t i = below(r, chance(r, 500) ? 16 : GPUL_RDMA_SLOTS);
	gpul_rdma_slot *slot = &e->control->slots[(s->p.first_counter + i) % GPUL_RDMA_SLOTS];
	const uint32_t sequence = s->p.first_counter + i + 1;
	const unsigned change = below(r, 9);

	switch (change) {
	case 0:
		slot->address = random_bits(r);
		break;
	case 1:
		slot->key = random_bits(r);
		break;
	case 2:
		slot->bytes = (uint32_t)random_bits(r);
		break;
	case 3:
		slot->bytes = below(r, s->p.segment_bytes + 1);
		break;
	case 4:
		slot->order = (uint32_t)random_bits(r) & (chance(r, 500) ? 0x1ffffff : UINT32_MAX);
		break;
	case 5:
		slot->order ^= 1u << below(r, 25);
		break;
	case 6:
		slot->sequence += GPUL_RDMA_SLOTS;
		break;
	case 7:
		slot->tag = (uint32_t)random_bits(r);
		break;
	default:
		*slot = (gpul_rdma_slot){ .address = random_bits(r),
					  .key = random_bits(r),
					  .bytes = below(r, 2 * s->p.segment_bytes),
					  .tag = below(r, 5),
					  .order = ((sequence - 1) & 0xffff) | 1u << 16 | below(r, 2) << 24,
					  .sequence = sequence };
	}
	slot->check = gpul_rdma_slot_check(slot); /* an end that forges slots knows the check */
	trace(s, e->index, "FORGED  slot %u: change %u", i, change);
}

static bool in_flight(const struct sim *s, unsigned end, uint64_t id)
{
	const unsigned qp = (unsigned)(id >> 32);

	if (qp < s->p.n_qps && s->ends[end].queues[qp].taken - (uint32_t)id - 1 < s->ends[end].desc.depth)
		return true; /* it may be the id of an operation that was posted without a completion */
	for (uint32_t i = 0; i < s->flying_room; i++)
		if (s->flying[i].used && s->flying[i].end == end && s->flying[i].op.id == id)
			return true;
	return false;
}

/* Forge the completion of an operation that is not in flight: its id is unknown, or was reported before. */
static void forge_completion(struct sim *s, struct end *e, gpul_rdma_event *v)
{
	struct rng *r = &s->rng;

	v->kind = GPUL_RDMA_EVENT_DONE;
	if (chance(r, 300)) {
		v->id = e->ended_copy;
	} else if (chance(r, 300)) {
		v->id = random_bits(r);
	} else if (chance(r, 500)) { /* the id of a copy, a flush or a write, which may just have ended */
		v->id = (uint64_t)below(r, 5) << 48 | below(r, 40);
	} else {
		const unsigned qp = below(r, s->p.n_qps);

		v->id = (uint64_t)qp << 32 | (e->queues[qp].taken + below(r, 8));
	}
	if (in_flight(s, e->index, v->id))
		v->kind = 77;
}

/* Forge an arrival: take one that is on its way and change a field, or deliver it twice. */
static void forge_arrival(struct sim *s, struct end *e, gpul_rdma_event *v)
{
	struct rng *r = &s->rng;

	v->kind = GPUL_RDMA_EVENT_ARRIVED;
	for (uint32_t i = e->inbox_tail; i != e->inbox_head; i++)
		if (e->inbox[i % e->inbox_room].event.kind == GPUL_RDMA_EVENT_ARRIVED)
			*v = e->inbox[i % e->inbox_room].event;
	switch (below(r, 5)) {
	case 0:
		v->qp += s->p.n_qps * (1 + below(r, 3));
		break;
	case 1:
		v->qp = (uint32_t)random_bits(r);
		break;
	case 2:
		v->imm ^= 1u << below(r, 32);
		break;
	case 3:
		v->qp = below(r, s->p.n_qps);
		break;
	default:
		break;
	}
}

static void forge_event(struct sim *s, struct end *e)
{
	struct rng *r = &s->rng;
	gpul_rdma_event v = { .qp = below(r, s->p.n_qps), .imm = (uint32_t)random_bits(r) };
	unsigned char rubbish[300];

	switch (below(r, 7)) {
	case 0:
		v.kind = GPUL_RDMA_EVENT_ARRIVED;
		v.imm = GPUL_RDMA_IMM(s->p.first_counter + below(r, 20), chance(r, 500), below(r, s->p.segment_bytes + 1));
		break;
	case 1:
	case 2:
		forge_arrival(s, e, &v);
		break;
	case 3:
		v.kind = GPUL_RDMA_EVENT_CONTROL;
		v.bytes = below(r, sizeof rubbish);
		memcpy(rubbish, s->noise + below(r, 1000), sizeof rubbish);
		for (uint32_t i = 28; i + 4 <= v.bytes && chance(r, 800); i += 32) {
			const uint32_t sequence = s->p.first_counter + 1 + below(r, 20);

			memcpy(rubbish + i, &sequence, 4);
		}
		v.data = rubbish;
		break;
	default:
		forge_completion(s, e, &v);
	}
	trace(s, e->index, "FORGED  event kind %u qp %u id %llx imm %x %u bytes", v.kind, v.qp, (unsigned long long)v.id, v.imm, v.bytes);
	give_event(s, e, &v);
	if (v.kind == GPUL_RDMA_EVENT_ARRIVED && !gpul_rdma_link_failed(e->link)->status)
		e->queues[v.qp].recvs--; /* the arrival was valid, so it has used a receive */
	if ((v.kind == GPUL_RDMA_EVENT_DONE || v.kind == 77 ||
	     (v.kind == GPUL_RDMA_EVENT_CONTROL && (!s->p.datagrams || v.bytes % sizeof(gpul_rdma_slot)))) &&
	    !gpul_rdma_link_failed(e->link)->status)
		wrong(s, "%c: a wrong event does not fail the link", "AB"[e->index]);
	watch_failure(s, e);
}

void forge(struct sim *s)
{
	struct end *e = &s->ends[s->p.victim];

	if (e->failed)
		return;
	if (s->p.fault == HOSTILE_ORDER)
		forge_arrivals(s, e);
	else if (chance(&s->rng, 600))
		forge_slot(s, e);
	else
		forge_event(s, e);
	wake(s, e->index, s->now + delay(&s->rng, e->thread_ns));
	if (chance(&s->rng, 800))
		happen(s, s->now + delay(&s->rng, 10000), FORGE, e->index, 0);
}
