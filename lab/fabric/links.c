/* links.c — the way of a datagram: queues, the choice of a spine, and what may go wrong. */
#include <stdlib.h>
#include <string.h>

#include "lab/fabric/fabric_internal.h"

/* ---- numbers of links --------------------------------------------------------------------------------------------- */

unsigned gpul_fabric_from_host(const gpul_fabric *f, unsigned host)
{
	(void)f;
	return host;
}

unsigned gpul_fabric_to_host(const gpul_fabric *f, unsigned host)
{
	return f->n_hosts + host;
}

unsigned gpul_fabric_to_spine(const gpul_fabric *f, unsigned leaf, unsigned spine)
{
	return 2 * f->n_hosts + leaf * f->o.n_spines + spine;
}

unsigned gpul_fabric_to_leaf(const gpul_fabric *f, unsigned spine, unsigned leaf)
{
	return 2 * f->n_hosts + (f->o.n_leaves + leaf) * f->o.n_spines + spine;
}

unsigned gpul_fabric_spine(const gpul_fabric *f, unsigned from, unsigned to, unsigned path)
{
	const uint64_t hash = fabric_mix(fabric_mix((uint64_t)from << 32 | to) + fabric_mix(f->o.seed) + path);

	return (unsigned)(hash % f->o.n_spines);
}

static unsigned next_link(const gpul_fabric *f, const struct packet *p)
{
	const unsigned from = p->from_host / f->o.hosts_per_leaf, to = p->to_host / f->o.hosts_per_leaf;

	if (p->link < f->n_hosts && from != to)
		return gpul_fabric_to_spine(f, from, p->spine);
	if (p->link == gpul_fabric_to_spine(f, from, p->spine))
		return gpul_fabric_to_leaf(f, p->spine, to);
	return gpul_fabric_to_host(f, p->to_host);
}

/* ---- a queue -------------------------------------------------------------------------------------------------------- */

uint64_t fabric_queue_bytes(const gpul_fabric *f, const struct link *l)
{
	const uint64_t now_ps = f->now_ns * 1000;

	return l->free_ps > now_ps ? (uint64_t)((double)(l->free_ps - now_ps) / f->ps_per_byte + 0.5) : 0;
}

/* Put a packet into the queue of its link.  A queue is sent in order, so the time at which the packet leaves it is known at once. */
static void enqueue(gpul_fabric *f, struct packet *p, uint64_t late_ns)
{
	struct link *l = &f->links[p->link];
	const uint64_t queued = fabric_queue_bytes(f, l) + p->wire_bytes, now_ps = f->now_ns * 1000;

	if (l->dead || queued > f->o.queue_bytes) {
		l->n_dropped++;
		free(p);
		return;
	}
	l->longest = queued > l->longest ? queued : l->longest;
	l->sent += p->wire_bytes;
	l->n_sent++;
	l->free_ps = (l->free_ps > now_ps ? l->free_ps : now_ps) + (uint64_t)(p->wire_bytes * f->ps_per_byte);
	fabric_at(f, (l->free_ps + 999) / 1000 + f->o.latency_ns + late_ns, EVENT_ARRIVE, 0, p);
}

bool fabric_arrive(gpul_fabric *f, struct packet *p)
{
	if (f->links[p->link].dead) {
		f->links[p->link].n_dropped++;
		free(p);
		return false;
	}
	if (p->link == gpul_fabric_to_host(f, p->to_host))
		return true;
	p->link = next_link(f, p);
	enqueue(f, p, 0);
	return false;
}

/* ---- a datagram enters the network --------------------------------------------------------------------------------- */

static void send_copy(gpul_fabric *f, struct end *from, const gpul_rel_datagram *d)
{
	struct packet *p = malloc(sizeof *p + d->header_bytes);
	struct link *card = &f->links[from->host];
	uint64_t late_ns = 0;

	if (!p) {
		fabric_fail(f, GPUL_ENOMEM, "no memory for a datagram of the simulation");
		return;
	}
	*p = (struct packet){ .to = from->peer,
			      .from_host = from->host,
			      .to_host = from->peer->host,
			      .spine = gpul_fabric_spine(f, from->host, from->peer->host, d->path),
			      .link = from->host,
			      .wire_bytes = d->header_bytes + d->bytes + GPUL_FABRIC_OVERHEAD,
			      .n_bytes = d->header_bytes + d->bytes };
	memcpy(p->header, d->header, d->header_bytes);
	if (fabric_chance(f, f->o.corrupt))
		p->header[8 + fabric_mix(f->random++) % 8] ^= 1; /* in the token: bytes 8 to 15 of both headers */
	if (fabric_chance(f, f->o.late))
		late_ns = fabric_mix(f->random++) % (f->o.late_ns + 1);
	if (fabric_chance(f, f->o.lost)) { /* after the card has sent it */
		card->free_ps = (card->free_ps > f->now_ns * 1000 ? card->free_ps : f->now_ns * 1000) +
				(uint64_t)(p->wire_bytes * f->ps_per_byte);
		card->n_dropped++;
		free(p);
		return;
	}
	enqueue(f, p, late_ns);
}

void fabric_send(gpul_fabric *f, struct end *from, const gpul_rel_datagram *d)
{
	send_copy(f, from, d);
	if (fabric_chance(f, f->o.twice))
		send_copy(f, from, d);
}

/* ---- an empty network --------------------------------------------------------------------------------------------------- */

uint32_t gpul_fabric_chunk_bytes(const gpul_fabric_options *o)
{
	return o->rel.chunk_bytes + DATA_HEADER + GPUL_FABRIC_OVERHEAD;
}

static uint64_t wire_ns(const gpul_fabric_options *o, double bytes)
{
	return (uint64_t)(bytes * 8 / o->gbit_per_s);
}

uint64_t gpul_fabric_ideal_ns(const gpul_fabric_options *o, uint64_t bytes, bool same_leaf)
{
	const unsigned n_hops = same_leaf ? 2 : 4;
	const uint64_t n_chunks = bytes ? (bytes - 1) / o->rel.chunk_bytes + 1 : 1;
	const uint32_t header = gpul_fabric_chunk_bytes(o) - o->rel.chunk_bytes;
	const uint64_t first = n_chunks > 1 ? o->rel.chunk_bytes : bytes;

	/* A switch sends a chunk when it has arrived as a whole; the others follow the first one without a gap. */
	return wire_ns(o, (double)(bytes + n_chunks * header) + (n_hops - 1) * (double)(first + header)) + n_hops * o->latency_ns;
}

uint64_t gpul_fabric_rtt_ns(const gpul_fabric_options *o, bool same_leaf)
{
	const unsigned n_hops = same_leaf ? 2 : 4;

	return wire_ns(o, n_hops * (double)(gpul_fabric_chunk_bytes(o) + ACK_HEADER + GPUL_FABRIC_OVERHEAD)) + 2 * n_hops * o->latency_ns;
}
