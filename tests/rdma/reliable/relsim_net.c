/* relsim_net.c — a network of several paths between two ends. */
#include <stdlib.h>
#include <string.h>

#include "tests/rdma/reliable/relsim.h"

void net_choose(struct sim *s)
{
	static const unsigned losses[] = { 0, 0, 1, 10, 50, 200, 300 };
	struct net *n = &s->net;

	n->loss_permille = losses[sim_below(s, 7)];
	n->duplicate_permille = sim_chance(s, 300) ? sim_below(s, 200) : 0;
	n->late_permille = sim_chance(s, 300) ? sim_below(s, 300) : 0;
	n->delay_ns = 1000 + sim_below(s, 1000) * (sim_chance(s, 200) ? 20000ull : 100ull);
	n->jitter_ns = sim_chance(s, 400) ? 1 + sim_below(s, (uint32_t)n->delay_ns) : 1;
	n->gap_ns = sim_below(s, 2000);
	if (s->o.writes) { /* a path then keeps the order, so that one late datagram delays the rest */
		n->duplicate_permille = 0;
		n->late_permille /= 30;
	}
	n->change_ns = sim_chance(s, 300) ? 0 : UINT64_MAX;
	n->all_dead_ns = sim_chance(s, s->o.credit ? 300 : 100) ? n->delay_ns * (1 + sim_below(s, 60)) : UINT64_MAX;
}

static bool comes_before(const struct datagram *a, const struct datagram *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct sim *s, struct datagram *d)
{
	unsigned i = s->n_heap++;

	for (; i && comes_before(d, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = d;
}

struct datagram *net_take(struct sim *s)
{
	struct datagram *first = s->heap[0], *last = s->heap[--s->n_heap];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child + 1 < s->n_heap && comes_before(s->heap[child + 1], s->heap[child]))
			child++;
		if (child >= s->n_heap || !comes_before(s->heap[child], last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return first;
}

uint64_t net_next_ns(const struct sim *s)
{
	return s->n_heap ? s->heap[0]->at_ns : UINT64_MAX;
}

void net_free(struct sim *s)
{
	while (s->n_heap)
		free(net_take(s));
}

/* Change a byte of the header, apart from the token: the datagram of a hostile peer. */
static void forge(struct sim *s, struct datagram *d, uint32_t header_bytes)
{
	uint32_t i = sim_below(s, header_bytes);

	while (i >= 8 && i < 16)
		i = sim_below(s, header_bytes);
	d->bytes[i] = sim_chance(s, 500) ? (unsigned char)sim_random(s) : (unsigned char)(d->bytes[i] + 1);
	if (sim_chance(s, 100))
		d->n_bytes = sim_below(s, d->n_bytes + 1);
}

static void put_one(struct sim *s, unsigned from, const gpul_rel_datagram *g, uint64_t at_ns)
{
	struct datagram *d = malloc(sizeof *d);

	if (!d || s->n_heap == MOST_IN_NET) {
		free(d);
		return;
	}
	*d = (struct datagram){ .at_ns = at_ns,
				.order = s->order++,
				.to = !from,
				.path = g->path,
				.n_bytes = g->header_bytes + g->bytes,
				.write = g->write,
				.imm = g->imm,
				.address = g->address,
				.key = g->key };
	memcpy(d->bytes, g->header, g->header_bytes);
	if (g->bytes)
		memcpy(d->bytes + g->header_bytes, (const void *)(uintptr_t)g->local, g->bytes);
	if (s->hostile && sim_chance(s, 20) && g->write)
		d->imm ^= 1u << sim_below(s, 32);
	else if (s->hostile && sim_chance(s, 20))
		forge(s, d, g->header_bytes);
	push(s, d);
}

void net_send(struct sim *s, unsigned from, const gpul_rel_datagram *g)
{
	struct net *n = &s->net;
	uint64_t *free_ns = &n->free_ns[from][g->path], at_ns;

	/* A datagram that is corrupted on its way is lost: the lower layer has a checksum. */
	const bool lost = n->dead[g->path] || s->now_ns >= n->all_dead_ns || sim_chance(s, n->loss_permille);

	sim_trace(s, "end %u %s %u + %u bytes on path %u%s", from, g->write ? "writes" : "sends", g->header_bytes, g->bytes, g->path,
		  lost ? ": lost" : "");
	if (s->ends[from].closed[g->path])
		sim_fail(s, "end %u sends on path %u, which is closed", from, g->path);
	if (lost)
		return;
	*free_ns = (*free_ns > s->now_ns ? *free_ns : s->now_ns) + n->gap_ns;
	at_ns = *free_ns + n->delay_ns + sim_below(s, (uint32_t)n->jitter_ns);
	if (sim_chance(s, n->late_permille))
		at_ns += sim_below(s, (uint32_t)(n->delay_ns < 1000000 ? 20 * n->delay_ns : n->delay_ns));
	if (s->o.writes && n->late_permille && at_ns > *free_ns + 2 * (n->delay_ns + n->jitter_ns))
		at_ns += sim_below(s, 150000000);
	if (s->o.writes && at_ns < n->last_ns[from][g->path])
		at_ns = n->last_ns[from][g->path];
	n->last_ns[from][g->path] = at_ns;
	put_one(s, from, g, at_ns);
	if (sim_chance(s, n->duplicate_permille))
		put_one(s, from, g, at_ns + sim_below(s, 2000000));
}
