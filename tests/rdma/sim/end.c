/* end.c — one end's thread: at random times it ticks, delivers events, starts and tests requests, and takes operations. */
#include "tests/rdma/sim/sim.h"

#include <stdlib.h>
#include <string.h>

void wake(struct sim *s, unsigned end, uint64_t ns)
{
	struct end *e = &s->ends[end];

	if (ns < e->away_until_ns)
		ns = e->away_until_ns;
	if (ns >= e->next_run_ns)
		return;
	e->next_run_ns = ns;
	happen(s, ns, RUN, end, ++e->run_stamp);
}

/* True if every request has ended, except those of dead ends and of ends that have stalled for ever. */
bool settled(const struct sim *s)
{
	for (unsigned i = 0; i < ENDS; i++) {
		const struct end *e = &s->ends[i];

		if (!e->dead && e->n_left && !(e->stalled && s->p.for_ns == FOREVER))
			return false;
	}
	return true;
}

/* ---- starting requests ------------------------------------------------------------------------ */

static gpul_rdma_span span_of(const struct end *e, const struct work *w, unsigned part)
{
	const struct area *a = &e->areas[w->area];

	if (w->buffers[part] == NONE) /* a flush of any address in the area */
		return (gpul_rdma_span){ .at = a->registered.pieces[0].at, .bytes = a->used ? 1 : 0, .area = &a->registered };
	return (gpul_rdma_span){ .at = e->buffers[w->buffers[part]].at,
				 .bytes = e->buffers[w->buffers[part]].bytes,
				 .area = &a->registered };
}

static gpul_rdma_remote remote_of(const struct end *peer, uint32_t buffer)
{
	const struct buffer *b = &peer->buffers[buffer];

	for (unsigned i = 0; i < peer->n_registered; i++) {
		const gpul_rdma_piece *p = &peer->registered[i].piece;

		if (b->at >= p->at && b->at - p->at + b->bytes <= p->bytes)
			return (gpul_rdma_remote){ .address = p->remote + (b->at - p->at), .key = p->remote_key, .bytes = b->bytes };
	}
	return (gpul_rdma_remote){ 0 };
}

static gpul_status start_work(struct sim *s, struct end *e, struct work *w, gpul_rdma_request *out, gpul_error *err)
{
	gpul_rdma_span spans[GPUL_RDMA_MAX_PARTS];
	gpul_rdma_put_desc put;

	w->deadline_ns = w->limit_ns ? s->now + w->limit_ns : 0;
	for (unsigned i = 0; i < w->n_parts; i++)
		spans[i] = span_of(e, w, i);
	switch (w->kind) {
	case SEND:
		return gpul_rdma_link_send(e->link, spans, w->tags[0], w->deadline_ns, out, err);
	case RECV:
		return gpul_rdma_link_recv(e->link, spans, w->tags, w->n_parts, w->deadline_ns, out, err);
	case FLUSH:
		return gpul_rdma_link_flush(e->link, spans, w->deadline_ns, out, err);
	default:
		put = (gpul_rdma_put_desc){
			.from = spans[0], .to = remote_of(&s->ends[!e->index], w->to), .signal_value = w->value, .lane = w->lane
		};
		if (w->signal != NONE)
			put.signal = remote_of(&s->ends[!e->index], w->signal);
		return gpul_rdma_link_put(e->link, &put, w->deadline_ns, out, err);
	}
}

static const char *const kind_names[] = { "send", "recv", "put", "flush" };

/* Start the next request of a stream; false: it cannot start now. */
static bool start_next(struct sim *s, struct end *e, enum work_kind kind)
{
	struct work *w = e->stream[kind][e->started[kind]];
	gpul_rdma_request handle = 0xdeadbeef;
	gpul_error err = { 0 };
	const gpul_status st = start_work(s, e, w, &handle, &err);

	if (st)
		wrong(s, "%c: %s is refused: %s", "AB"[e->index], kind_names[kind], err.text);
	if (st || !handle)
		return false;
	w->handle = handle;
	w->state = ACTIVE;
	if (kind == RECV) {
		w->first_message = e->n_messages;
		e->n_messages += w->n_parts;
	}
	e->active[e->n_active++] = w;
	if (w->deadline_ns && w->deadline_ns < e->next_deadline_ns)
		e->next_deadline_ns = w->deadline_ns;
	if (++e->started[kind] < e->planned[kind])
		e->ready_ns[kind] = s->now + e->stream[kind][e->started[kind]]->pause_ns;
	if (s->trace) {
		char text[64];

		trace(s, e->index, "start   %s 0x%x: %u parts, %u bytes at %s, tag %u, lane %u, deadline %.3f us", kind_names[kind], handle,
		      w->n_parts, w->buffers[0] == NONE ? 0 : e->buffers[w->buffers[0]].bytes,
		      w->buffers[0] == NONE ? "-" : name_place(s, e->index, e->buffers[w->buffers[0]].at, text), w->tags[0], w->lane,
		      (double)w->deadline_ns / 1e3);
	}
	return true;
}

static bool start_requests(struct sim *s, struct end *e)
{
	bool did = false;

	for (unsigned kind = 0; kind < STREAMS; kind++)
		while (e->started[kind] < e->planned[kind] && e->ready_ns[kind] <= s->now && !s->reason[0] &&
		       start_next(s, e, (enum work_kind)kind)) {
			did = true;
			if (chance(&s->rng, 200))
				break;
		}
	return did;
}

/* ---- testing requests ----------------------------------------------------------------------------- */

/* Plan a flush after a receive: when the flush has ended, the received data must be visible. */
static void plan_proof(struct end *e, struct work *recv)
{
	struct work *w = &e->works[e->n_works++];

	*w = (struct work){
		.kind = FLUSH, .end = (uint8_t)e->index, .n_parts = 1, .area = recv->area, .to = NONE, .signal = NONE, .proves = recv
	};
	w->buffers[0] = recv->buffers[0];
	e->stream[FLUSH][e->planned[FLUSH]++] = w;
	e->n_left++;
}

/* Test active request i; true: it has ended. */
static bool test_request(struct sim *s, struct end *e, uint32_t i)
{
	struct work *w = e->active[i];
	uint64_t bytes[GPUL_RDMA_MAX_PARTS] = { 0 };
	gpul_error err = { 0 };
	bool done = false;
	const gpul_status st = gpul_rdma_link_test(e->link, w->handle, &done, bytes, &err);

	if (st && (!e->failed || st != gpul_rdma_link_failed(e->link)->status || !err.text[0]))
		wrong(s, "%c: test of %s 0x%x: status %d: %s", "AB"[e->index], kind_names[w->kind], w -> handle, st, err.text);
	if (!st && !done && e->failed)
		wrong(s, "%c: %s 0x%x has not ended with the link's failure", "AB"[e->index], kind_names[w->kind], w -> handle);
	if (!st && !done)
		return false;
	trace(s, e->index, "ended   %s 0x%x: %s", kind_names[w->kind], w->handle, st ? err.text : "done");
	w->state = st ? FAILED : ENDED;
	e->active[i] = e->active[--e->n_active];
	e->n_left--;
	if (st)
		return true;
	e->stale = w->handle;
	check_ended(s, w, bytes);
	if (w->kind == RECV && e->areas[w->area].small_writes_wait && !e->failed)
		plan_proof(e, w);
	return true;
}

static bool test_requests(struct sim *s, struct end *e)
{
	const bool all = e->n_active <= 16 || e->failed || chance(&s->rng, 30);
	bool did = false;

	for (uint32_t i = 0; i < (all ? e->n_active : 8) && !s->reason[0];) {
		const uint32_t at = all ? i : below(&s->rng, e->n_active);

		if (test_request(s, e, at))
			did = true;
		else
			i++;
		if (!all && e->n_active < 8)
			break;
	}
	return did;
}

/* Make wrong calls, and check that they are refused and change nothing. */
static void misuse(struct sim *s, struct end *e)
{
	const gpul_rdma_area *area = &e->areas[0].registered;
	const gpul_rdma_span outside = { .at = area->pieces[0].at + area->pieces[0].bytes - 3, .bytes = 4, .area = area };
	gpul_rdma_request handle = e->stale;
	const uint32_t tag = 0;
	gpul_error err = { 0 };
	bool done = false;

	for (uint32_t i = 0; i < e->n_active; i++)
		if (e->active[i]->handle == handle)
			handle = 0;
	if (gpul_rdma_link_test(e->link, handle, &done, NULL, &err) != GPUL_EINVAL || done)
		wrong(s, "%c: request 0x%x has ended, and a second test succeeds", "AB"[e->index], handle);
	if (gpul_rdma_link_send(e->link, &outside, 0, 0, &handle, NULL) != GPUL_EINVAL)
		wrong(s, "%c: a send from outside the region is accepted", "AB"[e->index]);
	if (gpul_rdma_link_recv(e->link, &outside, &tag, 1, 0, &handle, NULL) != GPUL_EINVAL)
		wrong(s, "%c: a receive outside the region is accepted", "AB"[e->index]);
}

/* ---- events ------------------------------------------------------------------------------------------ */

static void handle_item(struct sim *s, struct end *e, struct inbox_item *item)
{
	static const char *const names[] = { "done", "arrived", "control" };
	const gpul_rdma_event *v = &item->event;

	if (item->flying != NONE) {
		const struct flying *f = &s->flying[item->flying];
		struct sent_queue *q = &e->queues[f->op.qp];

		if (f->op.kind == GPUL_RDMA_OP_WRITE || f->op.kind == GPUL_RDMA_OP_WRITE_IMM)
			q->retired = s->p.completes_in_order ? f->number + 1 : q->retired + 1;
		else if (f->op.kind != GPUL_RDMA_OP_FLUSH)
			e->ended_copy = f->op.id;
		end_flying(s, item->flying);
	}
	if (item->error) {
		fail_end(s, e->index, "completion", item->wc_status, wc_name(item->wc_status));
	} else {
		if (v->kind == GPUL_RDMA_EVENT_ARRIVED)
			trace(s, e->index, "arrived qp %u: slot %u bytes %u%s", v->qp, GPUL_RDMA_IMM_SLOT(v->imm),
			      GPUL_RDMA_IMM_BYTES(v->imm), GPUL_RDMA_IMM_LAST(v->imm) ? " last" : "");
		else
			trace(s, e->index, "%s id %llx, %u bytes", v->kind < 3 ? names[v->kind] : "rubbish", (unsigned long long)v->id,
			      v->bytes);
		give_event(s, e, v);
	}
	if (v->kind == GPUL_RDMA_EVENT_CONTROL)
		free((void *)(uintptr_t)v->data);
}

static bool handle_inbox(struct sim *s, struct end *e)
{
	uint32_t n = e->inbox_head - e->inbox_tail;
	const bool did = n;

	if (n > 1 && chance(&s->rng, 300))
		n = 1 + below(&s->rng, n);
	for (; n && !s->reason[0]; n--) {
		handle_item(s, e, &e->inbox[e->inbox_tail++ % e->inbox_room]);
		watch_failure(s, e);
	}
	return did;
}

/* ---- one step -------------------------------------------------------------------------------------------- */

static void tick(struct sim *s, struct end *e)
{
	gpul_rdma_link_tick(e->link, s->now);
	e->last_tick_ns = s->now;
	watch_failure(s, e);
	if (e->next_deadline_ns > s->now)
		return;
	e->next_deadline_ns = UINT64_MAX;
	for (uint32_t i = 0; i < e->n_active && !e->failed && !s->reason[0]; i++) {
		struct work *w = e->active[i];

		if (w->deadline_ns > s->now && w->deadline_ns < e->next_deadline_ns)
			e->next_deadline_ns = w->deadline_ns;

		if (w->deadline_ns && w->deadline_ns <= s->now && !test_request(s, e, i--))
			wrong(s, "%c: %s 0x%x is active %.3f us after its deadline", "AB"[e->index], kind_names[w->kind], w -> handle,
			      (double)(s->now - w->deadline_ns) / 1e3);
	}
}

/* Check that all requests have ended after the link has failed, and that new ones are refused. */
static void run_failed(struct sim *s, struct end *e)
{
	gpul_rdma_op op;

	test_requests(s, e);
	for (unsigned kind = 0; kind < STREAMS && !s->reason[0]; kind++)
		for (; e->started[kind] < e->planned[kind]; e->started[kind]++) {
			struct work *w = e->stream[kind][e->started[kind]];
			gpul_rdma_request handle = 0;
			gpul_error err = { 0 };

			w->state = REFUSED;
			e->n_left--;
			if (start_work(s, e, w, &handle, &err) == GPUL_OK)
				wrong(s, "%c: a %s is accepted after the failure", "AB"[e->index], kind_names[kind]);
		}
	if (gpul_rdma_link_take(e->link, &op, 1))
		wrong(s, "%c: operations after the failure", "AB"[e->index]);
	gpul_rdma_link_tick(e->link, s->now);
	handle_inbox(s, e);
}

static void schedule(struct sim *s, struct end *e, bool did)
{
	const uint64_t most = s->p.datagrams && !e->failed ? 4 * s->p.repeat_ns : 50 * MS;
	uint64_t next;

	e->idle_ns = did ? 0 : e->idle_ns ? e->idle_ns * 2 : e->thread_ns;
	if (s->now - SECOND > 100 * MS && e->idle_ns < 100 * MS)
		e->idle_ns *= 2;
	else if (e->idle_ns > most)
		e->idle_ns = most;
	next = s->now + delay(&s->rng, e->thread_ns) + e->idle_ns;
	for (unsigned kind = 0; kind < STREAMS; kind++)
		if (e->started[kind] < e->planned[kind] && e->ready_ns[kind] > s->now && e->ready_ns[kind] < next)
			next = e->ready_ns[kind];
	if (chance(&s->rng, s->p.naps)) {
		e->away_until_ns = s->now + delay(&s->rng, 300000);
		next = e->away_until_ns;
	}
	wake(s, e->index, next);
}

void run_end(struct sim *s, unsigned end)
{
	struct end *e = &s->ends[end];
	bool did = false;

	e->next_run_ns = UINT64_MAX;
	if (e->dead || e->stalled)
		return;
	if (!e->failed && chance(&s->rng, 850))
		tick(s, e);
	if (!e->failed)
		did = handle_inbox(s, e);
	if (!e->failed) {
		did |= start_requests(s, e);
		did |= test_requests(s, e);
		if (chance(&s->rng, 30))
			misuse(s, e);
		watch_failure(s, e);
	}
	if (!e->failed && !s->reason[0]) {
		const uint32_t before = e->backlog_head;

		take_operations(s, e);
		did |= e->backlog_head != e->backlog_tail || (before != e->backlog_head && !s->p.datagrams);
	}
	if (e->failed && !s->reason[0])
		run_failed(s, e);
	if (!s->reason[0])
		schedule(s, e, did);
}
