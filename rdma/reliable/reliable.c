/* reliable.c — create and destroy, time, and what a caller may ask about an end. */
#include <stdlib.h>

#include "rdma/reliable/reliable_internal.h"

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

gpul_rel_options gpul_rel_defaults(const gpul_rel_options *options)
{
	gpul_rel_options o = *options;

	o.chunk_bytes = o.chunk_bytes ? o.chunk_bytes : 1024;
	o.window = o.window ? o.window : 4096;
	o.messages = o.messages ? o.messages : 256;
	o.n_paths = o.n_paths ? o.n_paths : 1;
	o.burst = o.burst ? o.burst : 1;
	o.path_window = o.path_window ? o.path_window : o.window;
	o.rto_min_ns = o.rto_min_ns ? o.rto_min_ns : 1000000;
	o.rto_max_ns = o.rto_max_ns ? o.rto_max_ns : 1000000000;
	o.dead_after = o.dead_after ? o.dead_after : 3;
	o.target_ns = o.target_ns ? o.target_ns : 50000;
	o.rate = o.rate ? o.rate : 1250000000;
	o.ack_every = o.ack_every ? o.ack_every : 1;
	o.ack_delay_ns = o.ack_delay_ns ? o.ack_delay_ns : 20000;
	o.fence_ns = o.fence_ns ? o.fence_ns : 100000000;
	return o;
}

static gpul_status check_options(const gpul_rel_options *o, gpul_error *err)
{
	if (o->chunk_bytes < 64 || o->chunk_bytes > 65000)
		return gpul_fail(err, GPUL_EINVAL, 0, "chunk_bytes is %u: expected 64 to 65000", o->chunk_bytes);
	if (!is_power_of_two(o->window) || o->window < 64 || o->window > GPUL_REL_MAX_WINDOW)
		return gpul_fail(err, GPUL_EINVAL, 0, "window is %u chunks: expected a power of two, 64 to %d", o->window,
				 GPUL_REL_MAX_WINDOW);
	if (o->writes && o->window > GPUL_REL_MAX_WRITES)
		return gpul_fail(err, GPUL_EINVAL, 0, "window is %u chunks: expected at most %d for writes", o->window,
				 GPUL_REL_MAX_WRITES);
	if (!is_power_of_two(o->messages) || o->messages > GPUL_REL_MAX_WINDOW)
		return gpul_fail(err, GPUL_EINVAL, 0, "messages is %u: expected a power of two, at most %d", o->messages,
				 GPUL_REL_MAX_WINDOW);
	if (o->n_paths > GPUL_REL_MAX_PATHS)
		return gpul_fail(err, GPUL_EINVAL, 0, "n_paths is %u: expected 1 to %d", o->n_paths, GPUL_REL_MAX_PATHS);
	if (o->path_window > o->window)
		return gpul_fail(err, GPUL_EINVAL, 0, "path_window is %u chunks: expected at most the window, %u", o->path_window,
				 o->window);
	if (o->threshold < 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "threshold is %d packets: expected 0 (never) or more", o->threshold);
	if (o->rto_min_ns > o->rto_max_ns)
		return gpul_fail(err, GPUL_EINVAL, 0, "rto_min_ns is %llu: expected at most rto_max_ns, %llu",
				 (unsigned long long)o->rto_min_ns, (unsigned long long)o->rto_max_ns);
	return GPUL_OK;
}

static bool create_path(gpul_rel *r, struct rel_path *p)
{
	p->packets = calloc(r->path_slots, sizeof *p->packets);
	p->flying = calloc(r->path_slots / 64, sizeof *p->flying);
	p->next_packet = p->oldest = r->o.first;
	p->largest = r->o.first - 1;
	p->deadline_ns = UINT64_MAX;
	p->alive = true;
	rel_control_start(r, p);
	return p->packets && p->flying;
}

gpul_status gpul_rel_create(const gpul_rel_options *options, uint64_t now_ns, gpul_rel **out, gpul_error *err)
{
	const gpul_rel_options o = gpul_rel_defaults(options);
	gpul_status st = check_options(&o, err);
	bool good;
	gpul_rel *r;

	if (st)
		return st;
	r = calloc(1, sizeof *r);
	if (!r)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a reliable connection");
	r->o = o;
	for (r->path_slots = 128; r->path_slots < 2 * o.path_window;)
		r->path_slots *= 2;
	r->random = o.seed * 2 + 1;
	r->heard_ns = now_ns;
	r->wake_ns = r->ack_due_ns = UINT64_MAX;
	r->oldest = r->next_chunk = r->end_chunk = r->in_next = r->out_oldest = r->out_next = r->next_message = r->in_oldest = o.first;
	r->limit = r->in_limit = o.first + (o.credit ? o.credit : o.window);
	r->event_slots = 4 * o.messages;
	r->chunks = calloc(o.window, sizeof *r->chunks);
	r->lost = calloc(o.window, sizeof *r->lost);
	r->out = calloc(o.messages, sizeof *r->out);
	r->in_bits = calloc(o.window / 64, sizeof *r->in_bits);
	r->in = calloc(o.messages, sizeof *r->in);
	r->events = calloc(r->event_slots, sizeof *r->events);
	r->rtts = calloc(o.n_paths, sizeof *r->rtts);
	good = r->rtts && r->chunks && r->lost && r->out && r->in_bits && r->in && r->events && (!o.writes || !rel_writes_create(r));
	for (unsigned i = 0; good && i < o.n_paths; i++)
		good = create_path(r, &r->paths[i]);
	rel_path_count_healthy(r);
	if (!good) {
		gpul_rel_destroy(r);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u chunks in flight on %u paths", o.window, o.n_paths);
	}
	*out = r;
	return GPUL_OK;
}

void gpul_rel_destroy(gpul_rel *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->o.n_paths; i++) {
		free(r->paths[i].packets);
		free(r->paths[i].flying);
	}
	free(r->chunks);
	free(r->lost);
	free(r->out);
	free(r->in_bits);
	free(r->in);
	free(r->events);
	free(r->rtts);
	free(r->firsts);
	free(r->in_message);
	free(r->fences);
	free(r);
}

/* ---- time ------------------------------------------------------------------------------------------------------------ */

bool gpul_rel_tick(gpul_rel *r, uint64_t now_ns, gpul_rdma_failure *why)
{
	if (now_ns < r->wake_ns)
		return true;
	rel_path_tick(r, now_ns);
	if (r->o.writes)
		rel_close_late_paths(r, now_ns);
	if (!r->o.silence_ns || (r->oldest == r->next_chunk && !r->asking && !r->pinging))
		return true;
	if (now_ns - r->heard_ns >= r->o.silence_ns) {
		(void)gpul_rdma_fail(
			why, GPUL_ESYS, 110 /* ETIMEDOUT */, "reliable",
			"check that the peer's program calls test, wait or progress, and that the network and its firewalls let datagrams pass",
			"no datagram of the peer has arrived for %.1f s, while %u chunks wait for an acknowledgement or for credit%s",
			(double)(now_ns - r->heard_ns) * 1e-9, r->end_chunk - r->oldest, r->pinging ? ", and a path is tried again" : "");
		return false;
	}
	rel_wake_at(r, r->heard_ns + r->o.silence_ns);
	return true;
}

uint64_t gpul_rel_wake_ns(const gpul_rel *r)
{
	return r->ack_due_ns < r->wake_ns ? r->ack_due_ns : r->wake_ns;
}

/* ---- credit, counters -------------------------------------------------------------------------------------------------- */

uint32_t gpul_rel_wanted(const gpul_rel *r)
{
	return r->peer_backlog;
}

uint32_t gpul_rel_granted(const gpul_rel *r)
{
	return r->in_limit - r->in_next;
}

void gpul_rel_grant(gpul_rel *r, uint32_t n)
{
	r->in_limit += n;
	r->ack_now = true;
}

void gpul_rel_count(const gpul_rel *r, gpul_rel_counters *out)
{
	*out = r->n;
	out->has_credit = r->o.credit;
	out->credit = r->limit - r->next_chunk;
}

void gpul_rel_path_about(const gpul_rel *r, unsigned path, gpul_rel_path_info *out)
{
	const struct rel_path *p = &r->paths[path];

	*out = (gpul_rel_path_info){ .alive = p->alive,
				     .closed = p->closed,
				     .rtt_ns = p->rtt_ns,
				     .rtt_min_ns = p->rtt_min_ns,
				     .rto_ns = rel_path_rto_ns(r, p),
				     .rtt_p50_ns = rel_path_quantile_ns(r, path, 0.5),
				     .rtt_p99_ns = rel_path_quantile_ns(r, path, 0.99),
				     .window = p->window,
				     .rate = (uint64_t)p->rate,
				     .in_flight = p->in_flight };
}

uint32_t gpul_rel_backlog(const gpul_rel *r)
{
	return r->end_chunk - r->oldest;
}
