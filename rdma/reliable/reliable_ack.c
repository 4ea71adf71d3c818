/* reliable_ack.c — acknowledgements from the peer: which packets have arrived, and which must be lost. */
#include <string.h>

#include "rdma/reliable/reliable_internal.h"

/* What one acknowledgement says of one path. */
struct report {
	uint32_t largest, n_acked, n_lost;
	uint64_t rtt_ns; /* 0: it does not measure one */
};

/* Whether chunk number `chunk`, in flight, is carried by this packet of the path, and not by another one. */
static bool carries(gpul_rel *r, const struct rel_path *p, uint32_t packet, uint32_t chunk)
{
	const struct rel_chunk *c = rel_chunk_at(r, chunk);

	return c->state == CHUNK_IN_FLIGHT && c->path == p - r->paths && c->packet == packet;
}

/* A copy of a chunk has arrived: whatever else carries it is not awaited any more. */
static void chunk_arrived(gpul_rel *r, uint32_t chunk)
{
	const struct rel_chunk *c = rel_chunk_at(r, chunk);

	if (c->state == CHUNK_ACKED)
		return;
	if (c->state == CHUNK_IN_FLIGHT && rel_flying(r, &r->paths[c->path], c->packet))
		rel_land(r, &r->paths[c->path], c->packet);
	rel_chunk_acked(r, chunk);
}

static void packet_arrived(gpul_rel *r, struct rel_path *p, uint32_t packet, struct report *s)
{
	const uint32_t chunk = rel_packet_at(r, p, packet)->chunk;

	rel_land(r, p, packet);
	s->n_acked++;
	if (!rel_before(chunk, r->oldest))
		chunk_arrived(r, chunk);
}

/* Packets so far before the largest one that arrived are lost. */
static void find_lost(gpul_rel *r, struct rel_path *p, struct report *s)
{
	const uint32_t end = s->largest - (uint32_t)r->o.threshold + 1;

	for (uint32_t packet = p->oldest; r->o.threshold && rel_before(packet, end); packet++) {
		const uint32_t chunk = rel_packet_at(r, p, packet)->chunk;

		if (!rel_flying(r, p, packet))
			continue;
		if (!rel_before(chunk, r->oldest) && carries(r, p, packet, chunk)) {
			rel_chunk_lost(r, chunk);
			r->n.losses++;
			rel_trace(r, (gpul_rel_step){ r->heard_ns, GPUL_REL_LOST, chunk, (unsigned)(p - r->paths), packet, s->largest });
		}
		rel_land(r, p, packet);
		s->n_lost++;
	}
}

/* Return the round-trip time of the largest packet, whether or not it is still in flight: another path may have acknowledged its chunk.
 * 0: unknown. */
static uint64_t measure(const gpul_rel *r, const struct rel_path *p, const struct rel_ack_path *a, uint64_t now_ns)
{
	const uint32_t ticks = (uint32_t)(now_ns / REL_TICK_NS) - rel_packet_at(r, p, a->largest)->sent;
	const uint64_t ns = ticks * (uint64_t)REL_TICK_NS, delay_ns = a->delay_us * UINT64_C(1000);

	if (p->next_packet - a->largest > r->path_slots)
		return 0;
	return ns > delay_ns ? ns - delay_ns : 1;
}

static void process_path(gpul_rel *r, const struct rel_ack_path *a, uint32_t next, uint64_t now_ns)
{
	struct rel_path *p = &r->paths[a->path];
	struct report s = { .largest = a->largest };
	const bool is_new = !p->has_acked || rel_before(p->acked, a->largest);

	if (is_new && p->n_timeouts && rel_before(a->largest, p->oldest))
		rel_control_late(r, p); /* what arrived had been given up */
	for (uint32_t packet = p->oldest; !rel_before(a->largest, packet); packet++) {
		const uint32_t before = a->largest - packet - 1; /* index of the packet's bit */

		if (rel_flying(r, p, packet) && (packet == a->largest || rel_before(rel_packet_at(r, p, packet)->chunk, next) ||
						 (before < GPUL_REL_ACK_BITS && a->bits[before / 64] >> before % 64 & 1)))
			packet_arrived(r, p, packet, &s);
	}
	if (is_new)
		s.rtt_ns = measure(r, p, a, now_ns);
	find_lost(r, p, &s);
	while (p->oldest != p->next_packet && !rel_flying(r, p, p->oldest))
		p->oldest++;
	if (s.rtt_ns)
		rel_path_measured(r, p, s.rtt_ns);
	if (s.n_acked || is_new)
		rel_path_heard(r, p, now_ns);
	if (is_new) {
		p->acked = a->largest;
		p->has_acked = true;
	}
	if (s.n_acked && p->rtt_ns)
		rel_control_acked(r, p, s.rtt_ns ? s.rtt_ns : p->rtt_ns, s.n_acked, s.n_lost, now_ns);
}

static bool check_path(const gpul_rel *r, const struct rel_ack_path *a, gpul_rdma_failure *why)
{
	const unsigned path = a->path & (REL_CLOSED - 1), flag = a->path & ~(REL_CLOSED - 1u);

	if (path >= r->o.n_paths || (flag && !r->o.writes))
		return rel_broken(why, "an acknowledgement is of path %u: expected less than %u", a->path, r->o.n_paths);
	if (flag)
		return rel_check_close(r, path, flag, why);
	if (!rel_before(a->largest, r->paths[a->path].next_packet))
		return rel_broken(why, "an acknowledgement is of packet %u of path %u, which was not sent", a->largest, a->path);
	return true;
}

bool rel_ack_receive(gpul_rel *r, uint64_t now_ns, const unsigned char *datagram, uint32_t n_bytes, gpul_rdma_failure *why)
{
	struct rel_ack a;
	struct rel_ack_path paths[GPUL_REL_ACK_PATHS];

	memcpy(&a, datagram, sizeof a);
	if (a.n_paths > GPUL_REL_ACK_PATHS || n_bytes != sizeof a + a.n_paths * sizeof paths[0])
		return rel_broken(why, "an acknowledgement of %u paths has %u bytes", a.n_paths, n_bytes);
	if (rel_before(r->next_chunk, a.next))
		return rel_broken(why, "an acknowledgement is of chunk %u, but the next one is %u", a.next, r->next_chunk);
	memcpy(paths, datagram + sizeof a, a.n_paths * sizeof paths[0]);
	for (unsigned i = 0; i < a.n_paths; i++)
		if (!check_path(r, &paths[i], why))
			return false;
	r->n.acks_received++;
	r->peer_backlog = a.backlog;
	if (rel_before(r->limit, a.limit))
		r->limit = a.limit;
	if (a.flags & REL_ASK)
		r->ack_now = true;
	for (unsigned i = 0; i < a.n_paths; i++) {
		if (paths[i].path >= REL_CLOSED)
			rel_process_close(r, paths[i].path & (REL_CLOSED - 1), paths[i].path & ~(REL_CLOSED - 1u));
		else if (!r->paths[paths[i].path].closed)
			process_path(r, &paths[i], a.next, now_ns);
	}
	while (rel_before(r->oldest, a.next))
		chunk_arrived(r, r->oldest);
	return true;
}
