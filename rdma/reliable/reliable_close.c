/* reliable_close.c — closes paths on which a late write may still come (see reliable_writes.c): the two ends agree which.
 *
 * If each end closed paths by itself, they could close the last ones together.  So the end with the larger token decides, and the other
 * one asks it.  Either end repeats this in its acknowledgements until the other one has confirmed it, because acknowledgements are not
 * acknowledged.
 *
 *     waits in vain for a packet of path 3 ── close 3 ──>  the end that decides: stops the queue pair
 *     stops the queue pair              <── closed 3 ──
 *                                       ── closed 3 ──>  knows that it knows */
#include <string.h>

#include "rdma/reliable/reliable_internal.h"

static bool decides(const gpul_rel *r)
{
	return r->o.token > r->o.peer_token;
}

static void set_late(gpul_rel *r, struct rel_path *p, bool late)
{
	r->n_late = r->n_late + late - p->is_late;
	p->is_late = late;
}

static void must_close(gpul_rel *r, struct rel_path *p)
{
	if (p->closed || p->must_close)
		return;
	p->must_close = true;
	r->n_must_close++;
}

/* A path is late.  The last path stays open: what is missing is sent on it again. */
static void close_late(gpul_rel *r, struct rel_path *p)
{
	if (!decides(r))
		set_late(r, p, true);
	else if (r->n_closed + r->n_must_close + 1 < r->o.n_paths)
		must_close(r, p);
}

void rel_close_late_paths(gpul_rel *r, uint64_t now_ns)
{
	for (unsigned i = 0; i < r->o.n_paths; i++) {
		struct rel_path *p = &r->paths[i];

		if (!p->fences || p->must_close)
			continue;
		if (now_ns - p->fence_since_ns >= r->o.fence_ns) {
			close_late(r, p);
			p->fence_since_ns = now_ns;
		}
		rel_wake_at(r, p->fence_since_ns + r->o.fence_ns);
	}
	if (r->n_late && now_ns >= r->close_ns) {
		r->ack_now = r->pinging = true;
		r->close_ns = now_ns + r->o.fence_ns;
	}
	if (r->n_late)
		rel_wake_at(r, r->close_ns);
}

uint8_t rel_report_close(gpul_rel *r, gpul_rel_datagram *out)
{
	const struct rel_path *p;
	struct rel_ack_path a = { 0 };

	do {
		r->close_turn = r->close_turn + 1 < r->o.n_paths ? r->close_turn + 1 : 0;
		p = &r->paths[r->close_turn];
	} while (!p->closed && !p->is_late);
	a.path = (uint16_t)(r->close_turn | (p->closed ? REL_CLOSED : REL_CLOSE));
	memcpy(out->header + out->header_bytes, &a, sizeof a);
	out->header_bytes += sizeof a;
	return 1;
}

bool rel_check_close(const gpul_rel *r, unsigned path, unsigned flag, gpul_rdma_failure *why)
{
	const struct rel_path *p = &r->paths[path];
	const bool is_new = !p->closed && !p->must_close;

	if (flag != REL_CLOSED && flag != REL_CLOSE)
		return rel_broken(why, "an acknowledgement has the flags %#x for path %u", flag, path);
	if (decides(r) ? flag == REL_CLOSED && !p->closed : flag == REL_CLOSE)
		return rel_broken(why, "the peer must not close path %u: this end decides, or must be asked", path);
	if (is_new && flag == REL_CLOSED && r->n_closed + r->n_must_close + 1 >= r->o.n_paths)
		return rel_broken(why, "the peer has closed all %u paths", r->o.n_paths);
	return true;
}

void rel_process_close(gpul_rel *r, unsigned path, unsigned flag)
{
	struct rel_path *p = &r->paths[path];

	if (!decides(r)) {
		must_close(r, p);
		r->close_turn = path ? path - 1 : r->o.n_paths - 1; /* so that it is confirmed next */
		r->ack_now = true;
	} else if (flag == REL_CLOSED) {
		set_late(r, p, false);
	} else {
		close_late(r, p);
		r->ack_now |= p->closed;
	}
}

bool gpul_rel_path_to_close(const gpul_rel *r, unsigned *path)
{
	for (unsigned i = 0; r->n_must_close && i < r->o.n_paths; i++)
		if (r->paths[i].must_close) {
			*path = i;
			return true;
		}
	return false;
}

void gpul_rel_path_closed(gpul_rel *r, unsigned path, uint64_t now_ns)
{
	struct rel_path *p = &r->paths[path];

	assert(p->must_close);
	p->must_close = false;
	p->closed = true;
	r->n_must_close--;
	r->n_closed++;
	r->n.paths_died += p->alive;
	p->alive = false;
	set_late(r, p, decides(r));
	rel_path_count_healthy(r);
	rel_path_lose_all(r, p, now_ns);
	r->n_ack_paths -= p->n_unreported > 0;
	p->n_unreported = 0;
	rel_pass_fences(r, p, now_ns);
	r->ack_now = true; /* which tells the peer */
	r->close_ns = now_ns + r->o.fence_ns;
	rel_wake_at(r, r->close_ns);
}
