/* relstates_step.c — what can happen next in a state, and what must be true after it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rdma/reliable/relstates.h"

enum { TABLE = 1 << 17, MESSAGE_SHIFT = 20, MOST_ROUNDS = 2000 };
static const uint64_t KEY = 77, MOST_NS = UINT64_C(20000000000);

void model_fail(struct model *m, const char *fmt, ...)
{
	va_list args;

	if (m->error)
		return;
	va_start(args, fmt);
	vsnprintf(m->text, sizeof m->text, fmt, args);
	va_end(args);
	m->error = m->text;
}

static void trace(const struct model *m, unsigned e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void trace(const struct model *m, unsigned e, const char *fmt, ...)
{
	va_list args;

	if (!m->trace)
		return;
	printf("    end %u: ", e);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

/* ---- messages -------------------------------------------------------------------------------------------------------- */

/* The first chunk of a message, counted from 0. */
static unsigned first_chunk(const struct model *m, unsigned from, unsigned message)
{
	unsigned n = 0;

	for (unsigned i = 0; i < message; i++)
		n += m->shape->n_chunks[from][i];
	return n;
}

static unsigned count_messages(const struct model *m, unsigned from)
{
	unsigned n = 0;

	while (n < MOST_MESSAGES && m->shape->n_chunks[from][n])
		n++;
	return n;
}

/* The last chunk of a message has one byte less than the others; a message of one chunk is empty. */
static uint32_t count_bytes(const struct model *m, unsigned from, unsigned message)
{
	const unsigned n = m->shape->n_chunks[from][message];

	return n > 1 ? n * m->shape->o.chunk_bytes - 1 : 0;
}

static bool is_placed(const struct model *m, unsigned e, unsigned chunk)
{
	return m->w.placed[e][chunk / 64] >> chunk % 64 & 1;
}

static bool is_whole(const struct model *m, unsigned from, unsigned message)
{
	const unsigned first = first_chunk(m, from, message);

	for (unsigned i = 0; i < m->shape->n_chunks[from][message]; i++)
		if (!is_placed(m, !from, first + i))
			return false;
	return true;
}

static void begin_messages(struct model *m, unsigned e)
{
	for (; m->w.begun[e] < count_messages(m, e); m->w.begun[e]++) {
		const unsigned i = m->w.begun[e];

		if (!gpul_rel_send(m->ends[e], &(gpul_rel_message){ .id = i,
								    .local = (uint64_t)i << MESSAGE_SHIFT,
								    .address = (uint64_t)i << MESSAGE_SHIFT,
								    .key = KEY + i,
								    .bytes = count_bytes(m, e, i),
								    .imm = i,
								    .notify = !(m->shape->silent >> i & 1) }))
			return;
	}
}

static void take_event(struct model *m, unsigned e, const gpul_rel_event *v)
{
	const unsigned from = v->arrived ? !e : e, i = v->arrived ? v->imm : (unsigned)v->id;
	uint32_t *bits = v->arrived ? &m->w.arrived[e] : &m->w.done[e];

	trace(m, e, "message %u %s", i, v->arrived ? "has arrived" : "is acknowledged");
	if (i >= m->w.begun[from] || *bits >> i & 1)
		model_fail(m, "end %u: an event of message %u, which was not sent, or had this event before", e, i);
	else if (v->bytes != count_bytes(m, from, i) || !is_whole(m, from, i))
		model_fail(m, "end %u: an event of message %u, which has not arrived as a whole", e, i);
	else if (v->arrived ? m->shape->silent >> i & 1 : !(m->shape->silent >> i & 1) && !(m->w.arrived[!e] >> i & 1))
		model_fail(m, "end %u: an event of message %u, which has not arrived, or not by an event", e, i);
	*bits |= 1u << i % 32;
}

static void place(struct model *m, unsigned e, const gpul_rel_chunk *c, unsigned n_bytes)
{
	const uint64_t i = c->address >> MESSAGE_SHIFT, at = c->address & ((1u << MESSAGE_SHIFT) - 1), size = m->shape->o.chunk_bytes;
	const unsigned chunk = i < count_messages(m, !e) ? first_chunk(m, !e, (unsigned)i) + (unsigned)(at / size) : 0;

	if (i >= m->w.begun[!e] || c->key != KEY + i || at % size || at + c->bytes > count_bytes(m, !e, (unsigned)i) ||
	    c->skip + c->bytes > n_bytes)
		model_fail(m, "end %u: a chunk of %u bytes goes to %#llx", e, c->bytes, (unsigned long long)c->address);
	else if (is_placed(m, e, chunk))
		model_fail(m, "end %u: chunk %u is written twice", e, chunk);
	else if (m->w.arrived[e] >> i & 1)
		model_fail(m, "end %u: chunk %u is written after its message has arrived", e, chunk);
	else
		m->w.placed[e][chunk / 64] |= UINT64_C(1) << chunk % 64;
}

/* ---- datagrams ------------------------------------------------------------------------------------------------------- */

static void describe(const struct model *m, unsigned e, const char *verb, const unsigned char *header)
{
	const uint32_t first = m->shape->o.first;
	struct rel_data d;
	struct rel_ack a;

	memcpy(&d, header, sizeof d);
	memcpy(&a, header, sizeof a);
	if (d.kind == REL_DATA)
		trace(m, e, "%s chunk %u: packet %u of path %u", verb, d.chunk - first, d.packet - first, d.path);
	else
		trace(m, e, "%s %s: all before %u, limit %u, packets of %u paths", verb,
		      a.flags & REL_ASK ? "request for credit" : "acknowledgement", a.next - first, a.limit - first, a.n_paths);
}

static void receive(struct model *m, unsigned e, const unsigned char *bytes, unsigned n_bytes)
{
	gpul_rdma_failure why = { 0 };
	gpul_rel_chunk c;
	gpul_rel_event v;

	describe(m, e, "receives", bytes);
	if (!gpul_rel_receive(m->ends[e], m->now_ns, bytes, n_bytes, &c, &why)) {
		model_fail(m, "end %u: %s", e, why.what);
		return;
	}
	if (c.place)
		place(m, e, &c, n_bytes);
	while (gpul_rel_poll(m->ends[e], &v))
		take_event(m, e, &v);
	begin_messages(m, e);
}

/* Get the next datagram of an end. */
static bool take_next(struct model *m, unsigned e, gpul_rel_datagram *out)
{
	struct rel_data d;

	if (!gpul_rel_next(m->ends[e], m->now_ns, out))
		return false;
	describe(m, e, "sends", out->header);
	memcpy(&d, out->header, sizeof d);
	if (out->path >= m->shape->o.n_paths || out->bytes > m->shape->o.chunk_bytes ||
	    (d.kind == REL_DATA && (out->local != d.address || out->header_bytes != sizeof d)))
		model_fail(m, "end %u: a datagram of %u bytes from %#llx", e, out->bytes, (unsigned long long)out->local);
	return true;
}

/* Return the number of a datagram: equal ones have the same number. */
static uint16_t number_datagram(struct model *m, const struct datagram *d)
{
	uint64_t hash = d->to;
	uint32_t i;

	for (i = 0; i < d->header_bytes; i++)
		hash = (hash ^ d->bytes[i]) * UINT64_C(0x100000001b3);
	for (i = (uint32_t)(hash >> 32) % TABLE; m->table[i]; i = (i + 1) % TABLE)
		if (!memcmp(&m->datagrams[m->table[i] - 1], d, sizeof *d))
			return (uint16_t)(m->table[i] - 1);
	if (m->n_datagrams == MOST_DATAGRAMS) {
		model_fail(m, "more than %d different datagrams", MOST_DATAGRAMS);
		return 0;
	}
	m->datagrams[m->n_datagrams] = *d;
	m->table[i] = (uint16_t)++m->n_datagrams;
	return (uint16_t)(m->n_datagrams - 1);
}

/* Add a datagram to the network. */
static void put_datagram(struct model *m, unsigned from, const gpul_rel_datagram *g)
{
	struct datagram d = { .to = !from, .n_bytes = (uint16_t)(g->header_bytes + g->bytes), .header_bytes = (uint16_t)g->header_bytes };
	struct world *w = &m->w;
	uint16_t number;
	uint32_t i;

	memcpy(d.bytes, g->header, g->header_bytes);
	if (!m->shape->o.credit) /* then the peer does not use the backlog */
		memset(d.bytes + (g->header[0] == REL_DATA ? offsetof(struct rel_data, backlog) : offsetof(struct rel_ack, backlog)), 0, 4);
	number = number_datagram(m, &d);
	for (i = w->n_sent; i && w->sent[i - 1] > number; i--)
		;
	if (i && w->sent[i - 1] == number)
		return;
	if (w->n_sent == MOST_SENT) {
		model_fail(m, "more than %d datagrams", MOST_SENT);
		return;
	}
	memmove(&w->sent[i + 1], &w->sent[i], (w->n_sent++ - i) * sizeof w->sent[0]);
	w->sent[i] = number;
}

/* ---- checks ---------------------------------------------------------------------------------------------------------- */

static void check_path(struct model *m, unsigned e, const struct rel_path *p)
{
	const gpul_rel *r = m->ends[e];
	uint32_t n = 0;

	for (uint32_t k = p->oldest; k != p->next_packet && n <= r->path_slots; k++)
		n += rel_flying(r, p, k);
	if (n != p->in_flight || n > (p->n_timeouts ? 1 : r->o.path_window))
		model_fail(m, "end %u: a path has %u packets in flight, counts %u, and may have %u", e, n, p->in_flight,
			   p->n_timeouts ? 1 : r->o.path_window);
	if ((p->deadline_ns != UINT64_MAX) != (n > 0) || (n && r->wake_ns > p->deadline_ns))
		model_fail(m, "end %u: a path with %u packets in flight has no time-out, or one without packets has", e, n);
}

static void check_chunk(struct model *m, unsigned e, uint32_t chunk)
{
	gpul_rel *r = m->ends[e];
	const struct rel_chunk *c = rel_chunk_at(r, chunk);
	const struct rel_path *p = &r->paths[c->path];
	uint32_t n_lost = 0;

	for (uint32_t i = r->lost_tail; i != r->lost_head; i++)
		n_lost += r->lost[i & (r->o.window - 1)] == chunk;
	if (c->state == CHUNK_UNSENT || (c->state == CHUNK_LOST && n_lost != 1))
		model_fail(m, "end %u: chunk %u is lost, and is %u times in the ring of lost chunks", e, chunk - r->o.first, n_lost);
	if (c->state == CHUNK_IN_FLIGHT && (!rel_flying(r, p, c->packet) || rel_packet_at(r, p, c->packet)->chunk != chunk))
		model_fail(m, "end %u: chunk %u is in flight, but its packet is not", e, chunk - r->o.first);
	if (c->state == CHUNK_ACKED && !is_placed(m, !e, chunk - r->o.first))
		model_fail(m, "end %u: chunk %u is acknowledged, but has not arrived", e, chunk - r->o.first);
}

static void check_end(struct model *m, unsigned e)
{
	gpul_rel *r = m->ends[e];
	const gpul_rel *peer = m->ends[!e];
	unsigned n_dead = 0, n_ack_paths = 0;

	if (r->next_chunk - r->oldest > r->o.window || rel_before(r->end_chunk, r->next_chunk) || rel_before(r->limit, r->next_chunk) ||
	    rel_before(peer->in_limit, r->limit) || rel_before(peer->in_next, r->oldest))
		model_fail(m, "end %u: the window is [%u, %u), with limit %u; the peer awaits %u, and grants %u", e, r->oldest - r->o.first,
			   r->next_chunk - r->o.first, r->limit - r->o.first, peer->in_next - r->o.first, peer->in_limit - r->o.first);
	for (unsigned i = 0; i < r->o.n_paths; i++) {
		check_path(m, e, &r->paths[i]);
		n_dead += !r->paths[i].alive;
		n_ack_paths += r->paths[i].n_unreported > 0;
	}
	if (n_dead == r->o.n_paths || r->n.paths_died - r->n.paths_returned != n_dead || n_ack_paths != r->n_ack_paths)
		model_fail(m, "end %u: %u paths are dead, and %u have an acknowledgement to send", e, n_dead, n_ack_paths);
	if (r->lost_head - r->lost_tail > r->o.window || r->event_head != r->event_tail)
		model_fail(m, "end %u: %u lost chunks, %u events", e, r->lost_head - r->lost_tail, r->event_head - r->event_tail);
	for (uint32_t chunk = r->oldest; chunk != r->next_chunk && !m->error; chunk++)
		check_chunk(m, e, chunk);
}

static void check_ends(struct model *m)
{
	for (unsigned e = 0; e < ENDS && !m->error; e++)
		check_end(m, e);
}

/* ---- steps --------------------------------------------------------------------------------------------------------------- */

unsigned model_steps(const struct model *m, struct step *out)
{
	unsigned n = 0;

	for (uint8_t e = 0; e < ENDS; e++) {
		for (uint8_t kind = STEP_ACK_DUE; kind <= STEP_GRANT; kind++)
			out[n++] = (struct step){ .kind = kind, .end = e };
		out[n++] = (struct step){ .kind = STEP_SEND, .end = e };
		for (uint16_t i = 0; i < m->shape->o.n_paths; i++) {
			out[n++] = (struct step){ .kind = STEP_TIMEOUT, .end = e, .which = i };
			out[n++] = (struct step){ .kind = STEP_PROBE, .end = e, .which = i };
		}
	}
	for (uint32_t i = 0; i < m->w.n_sent; i++)
		out[n++] = (struct step){ .kind = STEP_ARRIVE, .end = (uint8_t)m->datagrams[m->w.sent[i]].to, .which = m->w.sent[i] };
	return n;
}

/* A timer of an end that runs out now. */
static bool expire(uint64_t *timer_ns)
{
	if (*timer_ns == UINT64_MAX || *timer_ns <= NOW_NS)
		return false;
	*timer_ns = NOW_NS;
	return true;
}

static bool time_out(struct model *m, gpul_rel *r, struct rel_path *p)
{
	gpul_rdma_failure why = { 0 };

	if (!m->w.timeouts_left || !expire(&p->deadline_ns))
		return false;
	m->w.timeouts_left--;
	r->wake_ns = NOW_NS;
	if (!gpul_rel_tick(r, NOW_NS, &why))
		model_fail(m, "%s", why.what);
	return true;
}

static bool grant(const struct model *m, unsigned e)
{
	gpul_rel *r = m->ends[e];

	if (!m->shape->o.credit || !gpul_rel_wanted(r) || gpul_rel_granted(r) >= m->shape->o.credit)
		return false;
	trace(m, e, "grants a chunk");
	gpul_rel_grant(r, 1);
	return true;
}

/* Remove acknowledgements from the network that an end already knows: it did not change when it received them once more. */
static void forget_acks(struct model *m, unsigned e)
{
	uint32_t n = 0;

	if (m->shape->keeps_acks)
		return;
	copy_end(m, e);
	for (uint32_t i = 0; i < m->w.n_sent; i++) {
		const struct datagram *d = &m->datagrams[m->w.sent[i]];
		gpul_rdma_failure why = { 0 };
		gpul_rel_chunk c;

		if (d->to == e && d->bytes[0] == REL_ACK) {
			if (!gpul_rel_receive(m->ends[e], NOW_NS, d->bytes, d->n_bytes, &c, &why))
				model_fail(m, "end %u: %s", e, why.what);
			save_normalize(m, e);
			if (is_copy(m, e))
				continue;
			load_end(m, e);
		}
		m->w.sent[n++] = m->w.sent[i];
	}
	memset(m->w.sent + n, 0, (m->w.n_sent - n) * sizeof m->w.sent[0]);
	m->w.n_sent = n;
}

bool model_step(struct model *m, struct step s)
{
	static const char *const timers[] = { [STEP_TIMEOUT] = "time-out of", [STEP_PROBE] = "time to probe" };
	gpul_rel *r = m->ends[s.end];
	struct rel_path *p = s.kind == STEP_TIMEOUT || s.kind == STEP_PROBE ? &r->paths[s.which] : NULL;
	const struct datagram *d = s.kind == STEP_ARRIVE ? &m->datagrams[s.which] : NULL;
	gpul_rel_datagram g;
	bool possible = true;

	if (p)
		trace(m, s.end, "%s path %u", timers[s.kind], s.which);
	if (s.kind == STEP_ARRIVE)
		receive(m, s.end, d->bytes, d->n_bytes);
	else if (s.kind == STEP_TIMEOUT)
		possible = time_out(m, r, p);
	else if (s.kind == STEP_PROBE)
		possible = !p->alive && !p->in_flight && r->oldest != r->next_chunk && expire(&p->probe_ns);
	else if (s.kind == STEP_ACK_DUE)
		possible = !r->ack_now && expire(&r->ack_due_ns);
	else if (s.kind == STEP_ASK_DUE)
		possible = r->asking && expire(&r->ask_ns);
	else if (s.kind == STEP_GRANT)
		possible = grant(m, s.end);
	else if (take_next(m, s.end, &g))
		put_datagram(m, s.end, &g);
	if (!possible)
		return false;
	while (m->shape->acks_at_once && r->ack_now && take_next(m, s.end, &g))
		put_datagram(m, s.end, &g);
	check_ends(m);
	save_normalize(m, s.end);
	forget_acks(m, 0);
	forget_acks(m, 1);
	return true;
}

/* ---- a network that works ----------------------------------------------------------------------------------------------- */

/* Let an end send all that it may, which arrives at once; returns the number of datagrams. */
static unsigned run_end(struct model *m, unsigned e, unsigned dead_path)
{
	gpul_rdma_failure why = { 0 };
	gpul_rel_datagram d;
	unsigned n = 0;

	if (!gpul_rel_tick(m->ends[e], m->now_ns, &why))
		model_fail(m, "end %u: %s", e, why.what);
	while (grant(m, e))
		n++;
	for (; !m->error && n < MOST_ROUNDS && take_next(m, e, &d); n++)
		if (d.path != dead_path)
			receive(m, !e, d.header, d.header_bytes + d.bytes);
	return n;
}

void model_finish(struct model *m, unsigned dead_path)
{
	trace(m, 0, "from now on the network works, apart from path %u of %u; what is under way is lost", dead_path, m->shape->o.n_paths);
	for (unsigned round = 0; !m->error; round++) {
		uint64_t wake_ns;

		if (run_end(m, 0, dead_path) + run_end(m, 1, dead_path)) {
			if (round > MOST_ROUNDS)
				model_fail(m, "the ends send for ever");
			continue;
		}
		wake_ns = gpul_rel_wake_ns(m->ends[0]);
		wake_ns = gpul_rel_wake_ns(m->ends[1]) < wake_ns ? gpul_rel_wake_ns(m->ends[1]) : wake_ns;
		if (wake_ns == UINT64_MAX)
			break;
		m->now_ns = wake_ns > m->now_ns ? wake_ns : m->now_ns + 1;
		if (m->now_ns > NOW_NS + MOST_NS || round > MOST_ROUNDS)
			model_fail(m, "the ends have not finished after %.1f s", (double)(m->now_ns - NOW_NS) * 1e-9);
	}
	check_ends(m);
	for (unsigned e = 0; e < ENDS; e++)
		if (m->w.done[e] != (1u << count_messages(m, e)) - 1 || gpul_rel_backlog(m->ends[e]))
			model_fail(m, "end %u: messages %#x are acknowledged, %u chunks wait, and nothing will happen any more", e,
				   m->w.done[e], gpul_rel_backlog(m->ends[e]));
	m->now_ns = NOW_NS;
}

/* ---- the first state -------------------------------------------------------------------------------------------------- */

/* Let chunks of end 0 arrive in order, except for the first one, and their acknowledgements. */
static void deliver(struct model *m, unsigned n_chunks)
{
	gpul_rel_datagram d;
	struct rel_data header;

	while (n_chunks && !m->error) {
		if (!take_next(m, 0, &d)) {
			model_fail(m, "end 0 sends nothing");
			return;
		}
		memcpy(&header, d.header, sizeof header);
		if (header.chunk != m->shape->o.first) {
			receive(m, 1, d.header, d.header_bytes + d.bytes);
			n_chunks--;
			while (take_next(m, 1, &d))
				receive(m, 0, d.header, d.header_bytes + d.bytes);
		}
		save_normalize(m, 0);
		save_normalize(m, 1);
	}
}

bool model_create(struct model *m, const struct shape *shape)
{
	gpul_error err = GPUL_ERROR_INIT;

	*m = (struct model){ .shape = shape, .now_ns = NOW_NS, .w.timeouts_left = shape->timeouts };
	m->datagrams = calloc(MOST_DATAGRAMS, sizeof *m->datagrams);
	m->table = calloc(TABLE, sizeof *m->table);
	for (unsigned e = 0; e < ENDS; e++) {
		gpul_rel_options o = shape->o;

		o.token = 1 + e;
		o.peer_token = 1 + !e;
		if (gpul_rel_create(&o, NOW_NS, &m->ends[e], &err)) {
			fprintf(stderr, "relstates: %s\n", err.text);
			return false;
		}
	}
	for (unsigned e = 0; e < ENDS; e++)
		begin_messages(m, e);
	deliver(m, shape->delivered);
	save_start(m);
	return m->datagrams && m->table && m->first && !m->error;
}

void model_destroy(struct model *m)
{
	for (unsigned e = 0; e < ENDS; e++)
		gpul_rel_destroy(m->ends[e]);
	free(m->datagrams);
	free(m->table);
	free(m->first);
	free(m->copy);
}
