/* relstates_save.c — a state as bytes: the words of both ends that differ from the first state, and the rest. */
#include <stdlib.h>
#include <string.h>

#include "tests/rdma/reliable/relstates.h"

static void add_region(struct model *m, void *at, size_t n_bytes)
{
	assert(n_bytes % 8 == 0 && m->n_regions < ENDS * MOST_REGIONS);
	m->regions[m->n_regions].at = at;
	m->regions[m->n_regions++].bytes = n_bytes;
	m->n_words += n_bytes / 8;
}

static void add_end(struct model *m, gpul_rel *r)
{
	const uint32_t window = r->o.window, messages = r->o.messages;

	add_region(m, r, offsetof(struct gpul_rel, paths) + r->o.n_paths * sizeof r->paths[0]);
	add_region(m, &r->path_slots, sizeof *r - offsetof(struct gpul_rel, path_slots));
	add_region(m, r->chunks, window * sizeof r->chunks[0]);
	add_region(m, r->lost, window * sizeof r->lost[0]);
	add_region(m, r->out, messages * sizeof r->out[0]);
	add_region(m, r->in_bits, window / 64 * sizeof r->in_bits[0]);
	add_region(m, r->in, messages * sizeof r->in[0]);
	add_region(m, r->events, r->event_slots * sizeof r->events[0]);
	for (unsigned i = 0; i < r->o.n_paths; i++) {
		add_region(m, r->paths[i].packets, r->path_slots * sizeof r->paths[i].packets[0]);
		add_region(m, r->paths[i].flying, r->path_slots / 64 * sizeof r->paths[i].flying[0]);
	}
}

void save_start(struct model *m)
{
	uint64_t *to;

	for (unsigned e = 0; e < ENDS; e++)
		add_end(m, m->ends[e]);
	m->first = to = malloc(m->n_words * sizeof *to);
	m->copy = malloc(m->n_words * sizeof *to);
	for (unsigned i = 0; to && i < m->n_regions; to += m->regions[i++].bytes / 8)
		memcpy(to, m->regions[i].at, m->regions[i].bytes);
}

/* Call f(region, copy of it) for each region of an end while it returns 0. */
static int for_end(const struct model *m, unsigned e, int (*f)(unsigned char *region, unsigned char *copy, size_t n_bytes))
{
	const unsigned n = m->n_regions / ENDS;
	unsigned char *copy = (unsigned char *)(m->copy + e * (m->n_words / ENDS));

	for (unsigned i = e * n; i < (e + 1) * n; copy += m->regions[i++].bytes)
		if (f(m->regions[i].at, copy, m->regions[i].bytes))
			return 1;
	return 0;
}

static int copy_region(unsigned char *region, unsigned char *copy, size_t n_bytes)
{
	memcpy(copy, region, n_bytes);
	return 0;
}

static int load_region(unsigned char *region, unsigned char *copy, size_t n_bytes)
{
	memcpy(region, copy, n_bytes);
	return 0;
}

static int compare_region(unsigned char *region, unsigned char *copy, size_t n_bytes)
{
	return memcmp(region, copy, n_bytes);
}

void copy_end(struct model *m, unsigned e)
{
	for_end(m, e, copy_region);
}

void load_end(struct model *m, unsigned e)
{
	for_end(m, e, load_region);
}

bool is_copy(const struct model *m, unsigned e)
{
	return !for_end(m, e, compare_region);
}

void save_normalize(struct model *m, unsigned e)
{
	gpul_rel *r = m->ends[e];
	const uint32_t n_lost = r->lost_head - r->lost_tail;

	r->n = (gpul_rel_counters){ .paths_died = r->n.paths_died - r->n.paths_returned };
	r->turn = r->ack_path = 0; /* they only choose the path of an acknowledgement, and the order in it */
	if (!r->o.credit)
		r->peer_backlog = 0;
	for (uint32_t i = 0, chunk = r->oldest; i < r->o.window; i++, chunk++) {
		struct rel_chunk *c = rel_chunk_at(r, chunk);

		if (!rel_before(chunk, r->next_chunk))
			*c = (struct rel_chunk){ 0 };
		else if (c->state != CHUNK_IN_FLIGHT)
			*c = (struct rel_chunk){ .message = c->message, .state = c->state, .again = c->again };
	}
	memmove(r->lost, r->lost + (r->lost_tail & (r->o.window - 1)),
		n_lost * sizeof r->lost[0]); /* few are lost, so the ring does not wrap */
	memset(r->lost + n_lost, 0, (r->o.window - n_lost) * sizeof r->lost[0]);
	r->lost_tail = 0;
	r->lost_head = n_lost;
	for (uint32_t i = 0; i < r->o.messages; i++) {
		if (!r->in[i].used)
			r->in[i] = (struct rel_in){ 0 };
		if (!r->out[i].n_unacked)
			r->out[i] = (struct rel_out){ 0 };
	}
	memset(r->events, 0, r->event_slots * sizeof r->events[0]);
	r->event_head = r->event_tail = 0;
	for (unsigned i = 0; i < r->o.n_paths; i++) {
		struct rel_path *p = &r->paths[i];

		for (uint32_t k = 0; k < r->path_slots; k++) /* times are not part of a state */
			p->packets[k] = (struct rel_packet){ .chunk = rel_flying(r, p, k) ? p->packets[k].chunk : 0 };
		if (p->n_unreported > r->o.ack_every)
			p->n_unreported = r->o.ack_every;
		if (r->o.control == GPUL_REL_FIXED)
			p->round_ns = p->round_acked = p->round_lost = 0;
		if (r->o.rto_min_ns == r->o.rto_max_ns)
			p->rtt_ns = p->rttvar_ns = p->rtt_min_ns = 0;
	}
}

size_t save_state(const struct model *m, unsigned char *out)
{
	const uint64_t *first = m->first;
	const size_t n_mask = (m->n_words + 63) / 64;
	uint64_t *mask = (uint64_t *)(void *)out, *word = mask + n_mask;
	size_t k = 0, n;

	memset(mask, 0, n_mask * sizeof *mask);
	for (unsigned i = 0; i < m->n_regions; i++) {
		const uint64_t *from = (const uint64_t *)(const void *)m->regions[i].at;

		for (size_t j = 0; j < m->regions[i].bytes / 8; j++, k++)
			if (from[j] != first[k]) {
				mask[k / 64] |= UINT64_C(1) << k % 64;
				*word++ = from[j];
			}
	}
	n = (size_t)((unsigned char *)word - out);
	memcpy(out + n, &m->w, sizeof m->w);
	assert(n + sizeof m->w <= MOST_BYTES);
	return n + sizeof m->w;
}

void load_state(struct model *m, const unsigned char *from)
{
	const uint64_t *first = m->first;
	const size_t n_mask = (m->n_words + 63) / 64;
	const uint64_t *mask = (const uint64_t *)(const void *)from, *word = mask + n_mask;
	size_t k = 0;

	for (unsigned i = 0; i < m->n_regions; i++) {
		uint64_t *to = (uint64_t *)(void *)m->regions[i].at;

		for (size_t j = 0; j < m->regions[i].bytes / 8; j++, k++)
			to[j] = mask[k / 64] >> k % 64 & 1 ? *word++ : first[k];
	}
	memcpy(&m->w, word, sizeof m->w);
}
