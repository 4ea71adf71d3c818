/* reliable_path.c — chooses the path of a chunk; round-trip times, time-outs, and paths that die and return. */
#include "core/log_buckets.h"
#include "rdma/reliable/reliable_internal.h"

enum { MOST_DOUBLINGS = 16 };
/* Before the first measurement (RFC 6298, 2.1, has 1 s, for the whole internet). */
static const uint64_t FIRST_RTO_NS = 100000000;

/* ---- choice ---------------------------------------------------------------------------------------------------- */

static bool may_send(const gpul_rel *r, const struct rel_path *p, uint64_t now_ns)
{
	/* A path that has timed out gets only probes, until one is acknowledged, if another path can carry the chunks. */
	return p->alive && (!p->n_timeouts || !r->n_healthy) && (!p->in_flight || p->next_packet - p->oldest < r->path_slots) &&
	       rel_control_may_send(r, p, now_ns);
}

static uint32_t next_random(gpul_rel *r)
{
	r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(r->random >> 32);
}

/* The next path in turn that may send; the same one for `burst` chunks. */
static struct rel_path *choose_in_turn(gpul_rel *r, uint64_t now_ns)
{
	struct rel_path *p = &r->paths[r->next_path];

	if (r->burst_left && may_send(r, p, now_ns)) {
		r->burst_left--;
		return p;
	}
	for (unsigned i = 0; i < r->o.n_paths; i++) {
		r->next_path = r->next_path + 1 < r->o.n_paths ? r->next_path + 1 : 0;
		p = &r->paths[r->next_path];
		if (may_send(r, p, now_ns)) {
			r->burst_left = r->o.burst - 1;
			return p;
		}
	}
	return NULL;
}

/* Of two random paths the one with the shorter smoothed round-trip time (Mitzenmacher, 2001); if neither may send, any. */
static struct rel_path *choose_of_two(gpul_rel *r, uint64_t now_ns)
{
	struct rel_path *p = &r->paths[r->next_path], *q;

	if (r->burst_left && may_send(r, p, now_ns)) {
		r->burst_left--;
		return p;
	}
	p = &r->paths[next_random(r) % r->o.n_paths];
	q = &r->paths[next_random(r) % r->o.n_paths];
	if (!may_send(r, p, now_ns) || (may_send(r, q, now_ns) && q->rtt_ns < p->rtt_ns))
		p = q;
	if (!may_send(r, p, now_ns)) {
		r->burst_left = 0;
		return choose_in_turn(r, now_ns);
	}
	r->next_path = (unsigned)(p - r->paths);
	r->burst_left = r->o.burst - 1;
	return p;
}

static struct rel_path *choose_pinned(gpul_rel *r, uint32_t message, uint64_t now_ns)
{
	const unsigned wanted = message % r->o.n_paths;

	for (unsigned i = 0; i < r->o.n_paths; i++) {
		struct rel_path *p = &r->paths[(wanted + i) % r->o.n_paths];

		if (p->alive && (!p->n_timeouts || !r->n_healthy))
			return may_send(r, p, now_ns) ? p : NULL;
	}
	return NULL;
}

struct rel_path *rel_path_choose(gpul_rel *r, uint32_t message, uint64_t now_ns)
{
	struct rel_path *p = r->o.spread == GPUL_REL_PINNED        ? choose_pinned(r, message, now_ns)
			     : r->o.spread == GPUL_REL_TWO_CHOICES ? choose_of_two(r, now_ns)
								   : choose_in_turn(r, now_ns);

	for (unsigned i = 0; !p && r->o.control == GPUL_REL_TIMELY && i < r->o.n_paths; i++)
		if (r->paths[i].alive && r->paths[i].next_send_ns > now_ns)
			rel_wake_at(r, r->paths[i].next_send_ns);
	return p;
}

unsigned rel_path_in_turn(gpul_rel *r)
{
	do {
		r->turn = r->turn + 1 < r->o.n_paths ? r->turn + 1 : 0;
	} while (r->paths[r->turn].closed);
	return r->turn;
}

/* ---- time --------------------------------------------------------------------------------------------------------- */

uint64_t rel_path_rto_ns(const gpul_rel *r, const struct rel_path *p)
{
	/* RFC 6298, 2.2 and 2.3; the peer may also delay an acknowledgement */
	uint64_t ns = p->rtt_ns ? p->rtt_ns + 4 * p->rttvar_ns + r->o.ack_delay_ns : FIRST_RTO_NS;

	ns = ns < r->o.rto_min_ns ? r->o.rto_min_ns : ns;
	ns <<= p->n_timeouts < MOST_DOUBLINGS ? p->n_timeouts : MOST_DOUBLINGS;
	return ns < r->o.rto_max_ns ? ns : r->o.rto_max_ns;
}

void rel_path_measured(gpul_rel *r, struct rel_path *p, uint64_t rtt_ns)
{
	const uint64_t apart = rtt_ns > p->rtt_ns ? rtt_ns - p->rtt_ns : p->rtt_ns - rtt_ns;
	const unsigned bucket = gpul_log_bucket(rtt_ns >> REL_RTT_SHIFT, REL_RTT_BITS);

	r->rtts[p - r->paths][bucket < REL_RTT_BUCKETS ? bucket : REL_RTT_BUCKETS - 1]++;
	if (!p->rtt_ns) {
		p->rtt_ns = p->rtt_min_ns = rtt_ns ? rtt_ns : 1;
		p->rttvar_ns = rtt_ns / 2;
		return;
	}
	p->rttvar_ns = p->rttvar_ns - p->rttvar_ns / 4 + apart / 4;
	p->rtt_ns = p->rtt_ns - p->rtt_ns / 8 + rtt_ns / 8;
	p->rtt_ns = p->rtt_ns ? p->rtt_ns : 1;
	if (rtt_ns < p->rtt_min_ns)
		p->rtt_min_ns = rtt_ns ? rtt_ns : 1;
}

uint64_t rel_path_quantile_ns(const gpul_rel *r, unsigned path, double part)
{
	const uint32_t *counts = r->rtts[path];
	uint64_t n = 0, before = 0;
	unsigned i = 0;

	for (unsigned k = 0; k < REL_RTT_BUCKETS; k++)
		n += counts[k];
	while (n && (double)(before += counts[i]) < part * (double)n)
		i++;
	return n ? (gpul_log_bucket_middle(i, REL_RTT_BITS) << REL_RTT_SHIFT) + (1 << (REL_RTT_SHIFT - 1)) : 0;
}

static void set_deadline(gpul_rel *r, struct rel_path *p, uint64_t now_ns)
{
	p->deadline_ns = now_ns + rel_path_rto_ns(r, p);
	rel_wake_at(r, p->deadline_ns);
}

void rel_path_sent(gpul_rel *r, struct rel_path *p, uint32_t chunk, uint64_t now_ns)
{
	const uint32_t i = p->next_packet & (r->path_slots - 1);

	if (!p->in_flight)
		p->oldest = p->next_packet;
	p->next_packet++;
	p->packets[i] = (struct rel_packet){ .chunk = chunk, .sent = (uint32_t)(now_ns / REL_TICK_NS) };
	p->flying[i / 64] |= UINT64_C(1) << i % 64;
	if (p->in_flight++ == 0)
		set_deadline(r, p, now_ns);
	rel_control_sent(r, p, now_ns);
}

void rel_path_heard(gpul_rel *r, struct rel_path *p, uint64_t now_ns)
{
	if (p->n_timeouts) {
		p->n_timeouts = 0;
		if (!p->alive) {
			p->alive = true;
			r->n.paths_returned++;
		}
		rel_path_count_healthy(r);
	}
	if (p->in_flight)
		set_deadline(r, p, now_ns);
}

void rel_path_count_healthy(gpul_rel *r)
{
	r->n_healthy = 0;
	for (unsigned i = 0; i < r->o.n_paths; i++)
		r->n_healthy += r->paths[i].alive && !r->paths[i].n_timeouts;
}

static unsigned count_alive(const gpul_rel *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->o.n_paths; i++)
		n += r->paths[i].alive;
	return n;
}

void rel_path_lose_all(gpul_rel *r, struct rel_path *p, uint64_t now_ns)
{
	const uint16_t path = (uint16_t)(p - r->paths);

	for (; p->oldest != p->next_packet; p->oldest++) {
		const uint32_t chunk = rel_packet_at(r, p, p->oldest)->chunk;

		if (!rel_flying(r, p, p->oldest))
			continue;
		rel_land(r, p, p->oldest);
		if (!rel_before(chunk, r->oldest) && rel_chunk_at(r, chunk)->state == CHUNK_IN_FLIGHT &&
		    rel_chunk_at(r, chunk)->path == path && rel_chunk_at(r, chunk)->packet == p->oldest) {
			rel_trace(r, (gpul_rel_step){ now_ns, GPUL_REL_TIMED_OUT, chunk, path, p->oldest, 0 });
			rel_chunk_lost(r, chunk);
		}
	}
}

/* No packet of the path was acknowledged for one RTO: all in flight are lost, and the next one waits twice as long. */
static void time_out(gpul_rel *r, struct rel_path *p, uint64_t now_ns)
{
	rel_path_lose_all(r, p, now_ns);
	p->n_timeouts++;
	r->n.timeouts++;
	rel_control_timeout(r, p);
	if (p->alive && p->n_timeouts >= r->o.dead_after && count_alive(r) > 1) {
		p->alive = false;
		r->n.paths_died++;
	}
	rel_path_count_healthy(r);
	p->probe_ns = p->alive ? now_ns : now_ns + rel_path_rto_ns(r, p);
}

/* Whether the path, which has timed out, needs probes: there are chunks to send, and it carries only probes; or, with `writes`, the last
 * one before the time-out may still come, and the peer must be able to exclude that. */
static bool needs_probe(const gpul_rel *r, const struct rel_path *p)
{
	if (!p->n_timeouts || p->in_flight || p->closed)
		return false;
	return r->o.writes || ((r->n_healthy || !p->alive) && r->oldest != r->next_chunk);
}

void rel_path_tick(gpul_rel *r, uint64_t now_ns)
{
	r->wake_ns = UINT64_MAX;
	for (unsigned i = 0; i < r->o.n_paths; i++) {
		struct rel_path *p = &r->paths[i];

		if (p->deadline_ns <= now_ns)
			time_out(r, p, now_ns);
		rel_wake_at(r, p->deadline_ns);
		if (needs_probe(r, p))
			rel_wake_at(r, p->probe_ns);
	}
}

struct rel_path *rel_path_probe(gpul_rel *r, uint64_t now_ns)
{
	if (r->n_healthy + r->n_closed == r->o.n_paths)
		return NULL;
	for (unsigned i = 0; i < r->o.n_paths; i++) {
		struct rel_path *p = &r->paths[i];

		if (p->probe_ns <= now_ns && needs_probe(r, p))
			return p;
	}
	return NULL;
}
