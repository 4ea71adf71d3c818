/* hosts.c — hosts: the ends of connections, the network card that they share, and credit for the senders. */
#include <stdlib.h>

#include "lab/fabric/fabric_internal.h"

/* ---- sending -------------------------------------------------------------------------------------------------------- */

static void make_ready(gpul_fabric *f, struct end *e)
{
	struct host *h = &f->hosts[e->host];

	if (e->ready)
		return;
	e->ready = true;
	e->next_ready = NULL;
	if (h->first_ready)
		h->last_ready->next_ready = e;
	else
		h->first_ready = e;
	h->last_ready = e;
}

static void set_timer(gpul_fabric *f, struct end *e)
{
	uint64_t ns = gpul_rel_wake_ns(e->rel);

	ns = ns > f->now_ns ? ns : f->now_ns + 1;
	if (ns >= e->timer_ns)
		return; /* the earlier event sets the timer again */
	e->timer_ns = ns;
	fabric_at(f, ns, EVENT_TIMER, 0, e);
}

void fabric_timer(gpul_fabric *f, struct end *e, uint64_t at_ns)
{
	if (at_ns != e->timer_ns)
		return; /* an earlier one was set meanwhile */
	e->timer_ns = UINT64_MAX;
	make_ready(f, e);
	fabric_pump(f, &f->hosts[e->host]);
}

/* A card sends one datagram at a time, of each end in turn; the others wait in their ends, so that no queue forms. */
void fabric_pump(gpul_fabric *f, struct host *h)
{
	const struct link *card = &f->links[h - f->hosts];
	gpul_rdma_failure why = { 0 };
	gpul_rel_datagram d;

	while (h->first_ready && card->free_ps / 1000 <= f->now_ns) {
		struct end *e = h->first_ready;

		h->first_ready = e->next_ready;
		e->ready = false;
		if (!gpul_rel_tick(e->rel, f->now_ns, &why)) {
			fabric_fail(f, why.status, why.what);
			return;
		}
		if (gpul_rel_next(e->rel, f->now_ns, &d)) {
			fabric_send(f, e, &d);
			make_ready(f, e);
		} else {
			set_timer(f, e);
		}
	}
	if (h->first_ready && !h->waits) {
		h->waits = true;
		fabric_at(f, card->free_ps / 1000, EVENT_CARD, (unsigned)(h - f->hosts), NULL);
	}
}

static void send_messages(gpul_fabric *f, struct flow *w)
{
	while (w->n_sent < w->o.n_messages && gpul_rel_send(w->sender.rel, &(gpul_rel_message){ .bytes = w->o.bytes, .notify = true }))
		w->n_sent++;
	make_ready(f, &w->sender);
}

void fabric_start(gpul_fabric *f, struct end *e)
{
	send_messages(f, e->flow);
	fabric_pump(f, &f->hosts[e->host]);
}

/* ---- credit ----------------------------------------------------------------------------------------------------------- */

/* Whether the receiver knows that the flow has begun and not ended: a late datagram may report a backlog that was sent long ago. */
static bool is_active(const struct flow *w)
{
	return w->heard && w->n_arrived < w->o.n_messages;
}

/* Chunks that a flow may still send, as its receiver knows. */
static uint32_t granted_to(const struct flow *w)
{
	return is_active(w) ? gpul_rel_granted(w->receiver.rel) : 0;
}

/* Grant one chunk to each sender in turn that has more to send than it was granted, while less than grant_chunks are granted. */
static void grant(gpul_fabric *f, struct host *h)
{
	for (size_t n_idle = 0; n_idle < h->in.n && h->granted < f->o.grant_chunks;) {
		struct flow *w = h->in.at[h->turn++ % h->in.n];

		if (!is_active(w) || gpul_rel_wanted(w->receiver.rel) <= gpul_rel_granted(w->receiver.rel)) {
			n_idle++;
			continue;
		}
		gpul_rel_grant(w->receiver.rel, 1);
		h->granted++;
		make_ready(f, &w->receiver);
		n_idle = 0;
	}
}

/* ---- receiving ---------------------------------------------------------------------------------------------------------- */

static void take_events(gpul_fabric *f, struct flow *w)
{
	gpul_rel_event v;

	while (gpul_rel_poll(w->receiver.rel, &v))
		if (v.arrived && ++w->n_arrived == w->o.n_messages) {
			w->end_ns = f->now_ns;
			f->n_done++;
		}
	while (gpul_rel_poll(w->sender.rel, &v))
		send_messages(f, w);
}

/* Whether all chunks that were in flight at the mark are acknowledged: the oldest chunk in flight is a later one. */
static void check_mark(const gpul_fabric *f, struct flow *w)
{
	const uint64_t oldest = (uint64_t)w->n_sent * w->n_chunks - gpul_rel_backlog(w->sender.rel);

	if (w->marked_chunks && !w->recovered_ns && oldest >= w->marked_chunks)
		w->recovered_ns = f->now_ns;
}

void fabric_process(gpul_fabric *f, struct packet *p)
{
	struct end *e = p->to;
	struct flow *w = e->flow;
	struct host *h = &f->hosts[e->host];
	const uint32_t before = granted_to(w);
	gpul_rdma_failure why = { 0 };
	gpul_rel_chunk c;

	if (!gpul_rel_receive(e->rel, f->now_ns, p->header, p->n_bytes, &c, &why))
		fabric_fail(f, why.status, why.what);
	free(p);
	if (c.place)
		w->arrived += c.bytes;
	if (e == &w->receiver)
		w->heard = true;
	take_events(f, w);
	check_mark(f, w);
	make_ready(f, e);
	if (f->o.rel.credit && e == &w->receiver) {
		h->granted += granted_to(w) - before;
		grant(f, h);
	}
	fabric_pump(f, h);
}

void fabric_deliver(gpul_fabric *f, struct packet *p)
{
	struct host *h = &f->hosts[p->to_host];
	const uint64_t begin_ns = h->free_ns > f->now_ns ? h->free_ns : f->now_ns;

	if (!f->o.receive_ns) {
		fabric_process(f, p);
	} else if ((begin_ns - f->now_ns) / f->o.receive_ns * gpul_fabric_chunk_bytes(&f->o) > f->o.queue_bytes) {
		f->links[p->link].n_dropped++;
		free(p);
	} else {
		h->free_ns = begin_ns + f->o.receive_ns;
		fabric_at(f, h->free_ns, EVENT_PROCESS, 0, p);
	}
}

/* ---- a new flow ----------------------------------------------------------------------------------------------------------- */

gpul_status fabric_connect(gpul_fabric *f, struct flow *w, gpul_error *err)
{
	struct host *to = &f->hosts[w->o.to];
	struct flow **slot = gpul_array_push(&to->in);
	gpul_rel_options o = f->o.rel;
	gpul_status st;

	if (!slot)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a flow");
	*slot = w;
	o.token = fabric_mix(f->random++);
	o.peer_token = fabric_mix(f->random++);
	o.seed = fabric_mix(f->random++);
	w->sender = (struct end){ .flow = w, .peer = &w->receiver, .host = w->o.from, .timer_ns = UINT64_MAX };
	w->receiver = (struct end){ .flow = w, .peer = &w->sender, .host = w->o.to, .timer_ns = UINT64_MAX };
	st = gpul_rel_create(&o, f->now_ns, &w->sender.rel, err);
	gpul_rel_options reverse = o;
	reverse.token = o.peer_token;
	reverse.peer_token = o.token;
	return st ? st : gpul_rel_create(&reverse, f->now_ns, &w->receiver.rel, err);
}
