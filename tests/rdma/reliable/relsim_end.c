/* relsim_end.c — an end: sends its messages into the peer's buffers, answers datagrams, and checks what arrives.
 *
 * The program may reuse a buffer as soon as its message has arrived, so a late copy of a chunk must not be written to it. */
#include <stdlib.h>
#include <string.h>

#include "tests/rdma/reliable/relsim.h"

static unsigned char content(const struct sim *s, unsigned from, uint32_t message, uint32_t at)
{
	return (unsigned char)((at * 31u + message * 131u + from * 7u + (uint32_t)s->seed) >> 1);
}

/* The sizes of messages are known to both ends, for the checks. */
static uint32_t size_of(const struct sim *s, unsigned from, uint32_t message)
{
	const uint64_t x = (s->seed * 2654435761u + message * 40503u + from * 977u) * UINT64_C(0x9e3779b97f4a7c15) >> 33;

	return x % 5 == 0 ? (uint32_t)(x / 5 % 3) : (uint32_t)(x / 5 % (s->most_bytes + 1));
}

void end_create(struct sim *s, unsigned e)
{
	struct end *end = &s->ends[e];
	gpul_rel_options o = s->o;
	gpul_error err = GPUL_ERROR_INIT;

	o.token = 0x1000 + e;
	o.peer_token = 0x1000 + !e;
	o.seed = s->seed + e;
	if (gpul_rel_create(&o, 0, &end->rel, &err))
		sim_fail(s, "create: %s", err.text);
	for (unsigned i = 0; i < BUFFERS; i++)
		end->buffers[i] = (struct buffer){ .bytes = calloc(1, MOST_MESSAGE), .key = sim_random(s) };
}

void end_destroy(struct sim *s, unsigned e)
{
	gpul_rel_destroy(s->ends[e].rel);
	for (unsigned i = 0; i < BUFFERS; i++)
		free(s->ends[e].buffers[i].bytes);
}

/* Start the next messages, as far as the peer's buffers are free.  The data is sent from a copy in the buffer of the same number. */
static void start_messages(struct sim *s, unsigned e)
{
	struct end *end = &s->ends[e];

	while (end->n_sent < s->n_messages && !end->failed) {
		const uint32_t m = end->n_sent, n_bytes = size_of(s, e, m);
		struct buffer *to = &s->ends[!e].buffers[m % BUFFERS];
		unsigned char *from = NULL;
		gpul_rel_message message;

		if (to->open || to->busy)
			return;
		from = to->bytes + MOST_MESSAGE / 2; /* the sender's copy; the receiver's buffer is the first half */
		message = (gpul_rel_message){ .id = m,
					      .local = (uint64_t)(uintptr_t)from,
					      .address = (uint64_t)(m % BUFFERS) << 32,
					      .key = to->key,
					      .bytes = n_bytes,
					      .imm = m,
					      .notify = true };
		if (!gpul_rel_send(end->rel, &message))
			return;
		for (uint32_t i = 0; i < n_bytes; i++)
			from[i] = content(s, e, m, i);
		memset(to->bytes, 0xee, n_bytes);
		to->message = m;
		to->n_bytes = n_bytes;
		to->open = to->busy = true;
		end->n_sent++;
		sim_trace(s, "end %u sends message %u of %u bytes", e, m, n_bytes);
	}
}

static void place(struct sim *s, unsigned e, const gpul_rel_chunk *c, const unsigned char *payload)
{
	const uint64_t i = c->address >> 32, at = c->address & UINT32_MAX;
	struct buffer *b = i < BUFFERS ? &s->ends[e].buffers[i] : NULL;

	if (!b || c->key != b->key || at + c->bytes > MOST_MESSAGE / 2) {
		if (!s->hostile)
			sim_fail(s, "end %u: a chunk goes to %#llx under a key that does not grant it", e, (unsigned long long)c->address);
		return; /* the backend refuses it */
	}
	if (!b->open && !s->hostile)
		sim_fail(s, "end %u: a chunk is written to buffer %llu, which was given back", e, (unsigned long long)i);
	if (at + c->bytes > b->n_bytes && !s->hostile)
		sim_fail(s, "end %u: a chunk is written beyond the end of message %u", e, b->message);
	memcpy(b->bytes + at, payload, c->bytes);
}

static void take_events(struct sim *s, unsigned e)
{
	struct end *end = &s->ends[e];
	gpul_rel_event v;

	while (gpul_rel_poll(end->rel, &v)) {
		struct buffer *b = v.arrived ? &end->buffers[v.imm % BUFFERS] : &s->ends[!e].buffers[v.id % BUFFERS];

		if (s->hostile)
			continue;
		sim_trace(s, "end %u: message %u %s", e, v.arrived ? v.imm : (uint32_t)v.id, v.arrived ? "has arrived" : "is acknowledged");
		if (v.arrived) {
			if (!b->open || b->message != v.imm)
				sim_fail(s, "end %u: message %u has arrived, but was not sent, or has arrived before", e, v.imm);
			if (v.bytes != b->n_bytes)
				sim_fail(s, "end %u: message %u arrived with %u of %u bytes", e, v.imm, v.bytes, b->n_bytes);
			for (uint32_t i = 0; i < b->n_bytes; i++)
				if (b->bytes[i] != content(s, !e, v.imm, i)) {
					sim_fail(s, "end %u: byte %u of message %u is wrong", e, i, v.imm);
					break;
				}
			b->open = false;
			s->freed = true;
			end->n_arrived++;
		} else {
			/* With writes, a message may be acknowledged while its report waits for a fence. */
			if (!b->busy || b->message != v.id || (b->open && !s->o.writes))
				sim_fail(s, "end %u: message %u is acknowledged, but has not arrived, or twice", e, (uint32_t)v.id);
			b->busy = false;
			s->freed = true;
			end->n_acked++;
		}
	}
}

void end_receive(struct sim *s, const struct datagram *d)
{
	struct end *end = &s->ends[d->to];
	gpul_rel_chunk c;

	if (end->failed || end->closed[d->path])
		return;
	if (d->write) {
		c = (gpul_rel_chunk){ .place = true, .bytes = d->n_bytes, .address = d->address, .key = d->key };
		place(s, d->to, &c, d->bytes); /* the NIC does this, whatever the state of the connection is */
	}
	if (d->write ? !gpul_rel_receive_write(end->rel, s->now_ns, d->path, d->imm, &end->why)
		     : !gpul_rel_receive(end->rel, s->now_ns, d->bytes, d->n_bytes, &c, &end->why)) {
		end->failed = true;
		if (!s->hostile)
			sim_fail(s, "end %u: %s", d->to, end->why.what);
		return;
	}
	if (d->write)
		return;
	if (c.place && c.skip + c.bytes > d->n_bytes)
		sim_fail(s, "end %u: a chunk of %u bytes in a datagram of %u", d->to, c.bytes, d->n_bytes);
	else if (c.place)
		place(s, d->to, &c, d->bytes + c.skip);
}

/* As a receiver of several senders does: grant credit to a peer that wants it, a little at a time. */
static void grant(struct sim *s, struct end *end)
{
	const uint32_t wanted = gpul_rel_wanted(end->rel), granted = gpul_rel_granted(end->rel);

	if (s->o.credit && wanted && granted < s->o.credit)
		gpul_rel_grant(end->rel, s->o.credit - granted);
}

void end_run(struct sim *s, unsigned e)
{
	struct end *end = &s->ends[e];
	gpul_rel_counters n;
	gpul_rel_datagram d;
	unsigned path;

	if (end->failed || s->now_ns < end->paused_until_ns)
		return;
	if (s->now_ns < s->net.all_dead_ns) {
		gpul_rel_count(end->rel, &n);
		end->timeouts_before = n.timeouts;
	}
	if (sim_chance(s, 2))
		end->paused_until_ns = s->now_ns + sim_below(s, 5000000);
	take_events(s, e);
	start_messages(s, e);
	grant(s, end);
	if (!gpul_rel_tick(end->rel, s->now_ns, &end->why)) {
		end->failed = true;
		end->failed_ns = s->now_ns;
		sim_trace(s, "end %u fails: %s", e, end->why.what);
		return;
	}
	while (gpul_rel_path_to_close(end->rel, &path)) {
		sim_trace(s, "end %u closes path %u", e, path);
		end->closed[path] = true;
		gpul_rel_path_closed(end->rel, path, s->now_ns);
	}
	while (gpul_rel_next(end->rel, s->now_ns, &d)) {
		if (d.header_bytes + d.bytes > MOST_DATAGRAM)
			sim_fail(s, "end %u: a datagram of %u bytes", e, d.header_bytes + d.bytes);
		else
			net_send(s, e, &d);
	}
}

bool end_finished(const struct sim *s, unsigned e)
{
	const struct end *end = &s->ends[e];

	return end->failed || (end->n_acked == s->n_messages && end->n_arrived == s->n_messages);
}
