/* fabric.c — a simulated network: create, flows, the loop of events, and what a caller may ask. */
#include <stdlib.h>

#include "lab/fabric/fabric_internal.h"

/* ---- create -------------------------------------------------------------------------------------------------------- */

static gpul_status check_options(const gpul_fabric_options *o, gpul_error *err)
{
	const uint64_t n_hosts = (uint64_t)o->n_leaves * o->hosts_per_leaf;

	if (!n_hosts || n_hosts > GPUL_FABRIC_MAX_HOSTS)
		return gpul_fail(err, GPUL_EINVAL, 0, "%u leaves of %u hosts: expected 1 to %d hosts in all", o->n_leaves,
				 o->hosts_per_leaf, GPUL_FABRIC_MAX_HOSTS);
	if (!o->n_spines || o->n_spines > 1024)
		return gpul_fail(err, GPUL_EINVAL, 0, "%u spines: expected 1 to 1024", o->n_spines);
	if (!(o->gbit_per_s >= 0.001 && o->gbit_per_s <= 10000))
		return gpul_fail(err, GPUL_EINVAL, 0, "links of %g Gbit/s: expected 0.001 to 10000", o->gbit_per_s);
	if (o->queue_bytes < gpul_fabric_chunk_bytes(o))
		return gpul_fail(err, GPUL_EINVAL, 0, "queues of %llu bytes: a chunk of %u bytes does not fit",
				 (unsigned long long)o->queue_bytes, gpul_fabric_chunk_bytes(o));
	if (o->rel.credit && !o->grant_chunks)
		return gpul_fail(err, GPUL_EINVAL, 0, "grant_chunks is 0: with credit, expected at least 1");
	return GPUL_OK;
}

gpul_status gpul_fabric_create(const gpul_fabric_options *options, gpul_fabric **out, gpul_error *err)
{
	gpul_fabric *f;
	gpul_fabric_options o = *options;
	gpul_status st;

	o.rel = gpul_rel_defaults(&o.rel);
	st = check_options(&o, err);
	if (st)
		return st;
	f = calloc(1, sizeof *f);
	if (!f)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a network");
	f->o = o;
	f->random = fabric_mix(o.seed);
	f->ps_per_byte = 8000 / o.gbit_per_s;
	f->n_hosts = o.n_leaves * o.hosts_per_leaf;
	f->n_links = 2 * (f->n_hosts + o.n_leaves * o.n_spines);
	f->links = calloc(f->n_links, sizeof *f->links);
	f->hosts = calloc(f->n_hosts, sizeof *f->hosts);
	if (!f->links || !f->hosts) {
		gpul_fabric_destroy(f);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a network of %u hosts", f->n_hosts);
	}
	*out = f;
	return GPUL_OK;
}

static void free_flow(struct flow *w)
{
	gpul_rel_destroy(w->sender.rel);
	gpul_rel_destroy(w->receiver.rel);
	free(w);
}

void gpul_fabric_destroy(gpul_fabric *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->heap.n; i++)
		if (f->heap.at[i].kind == EVENT_ARRIVE || f->heap.at[i].kind == EVENT_PROCESS)
			free(f->heap.at[i].what);
	for (size_t i = 0; i < f->flows.n; i++)
		free_flow(f->flows.at[i]);
	for (unsigned i = 0; f->hosts && i < f->n_hosts; i++)
		gpul_array_free(&f->hosts[i].in);
	gpul_array_free(&f->heap);
	gpul_array_free(&f->flows);
	free(f->links);
	free(f->hosts);
	free(f);
}

gpul_status gpul_fabric_add(gpul_fabric *f, const gpul_fabric_flow *flow, gpul_error *err)
{
	const uint64_t most = (uint64_t)f->o.rel.window / 2 * f->o.rel.chunk_bytes;
	struct flow *w, **slot;
	gpul_status st;

	if (flow->from >= f->n_hosts || flow->to >= f->n_hosts || flow->from == flow->to)
		return gpul_fail(err, GPUL_EINVAL, 0, "a flow from host %u to host %u: expected two of %u hosts", flow->from, flow->to,
				 f->n_hosts);
	if (flow->bytes > most || !flow->n_messages)
		return gpul_fail(err, GPUL_EINVAL, 0, "%u messages of %u bytes: expected at least 1, of at most %llu bytes",
				 flow->n_messages, flow->bytes, (unsigned long long)most);
	w = calloc(1, sizeof *w);
	slot = w ? gpul_array_push(&f->flows) : NULL;
	if (!slot) {
		free(w);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a flow");
	}
	w->o = *flow;
	w->n_chunks = flow->bytes ? (flow->bytes - 1) / f->o.rel.chunk_bytes + 1 : 1;
	*slot = w;
	st = fabric_connect(f, w, err);
	if (!st)
		fabric_at(f, flow->start_ns, EVENT_START, 0, &w->sender);
	return st;
}

/* ---- time ------------------------------------------------------------------------------------------------------------- */

void gpul_fabric_set_link(gpul_fabric *f, uint64_t at_ns, unsigned leaf, unsigned spine, bool works)
{
	fabric_at(f, at_ns, EVENT_LINK, 2 * gpul_fabric_to_spine(f, leaf, spine) + works, NULL);
	fabric_at(f, at_ns, EVENT_LINK, 2 * gpul_fabric_to_leaf(f, spine, leaf) + works, NULL);
}

static void handle(gpul_fabric *f, const struct event *e)
{
	switch (e->kind) {
	case EVENT_ARRIVE:
		if (fabric_arrive(f, e->what))
			fabric_deliver(f, e->what);
		break;
	case EVENT_PROCESS:
		fabric_process(f, e->what);
		break;
	case EVENT_CARD:
		f->hosts[e->index].waits = false;
		fabric_pump(f, &f->hosts[e->index]);
		break;
	case EVENT_TIMER:
		fabric_timer(f, e->what, e->at_ns);
		break;
	case EVENT_START:
		fabric_start(f, e->what);
		break;
	case EVENT_LINK:
		f->links[e->index / 2].dead = !(e->index % 2);
		break;
	}
}

gpul_status gpul_fabric_run(gpul_fabric *f, uint64_t until_ns, gpul_error *err)
{
	while (!f->failed && !gpul_fabric_finished(f) && f->heap.n && f->heap.at[0].at_ns <= until_ns) {
		const struct event e = fabric_take(f);

		f->now_ns = e.at_ns;
		handle(f, &e);
	}
	if (f->failed)
		return gpul_fail(err, f->failed, 0, "%s", f->why.text);
	if (!gpul_fabric_finished(f) && f->now_ns < until_ns)
		f->now_ns = until_ns;
	return GPUL_OK;
}

uint64_t gpul_fabric_now_ns(const gpul_fabric *f)
{
	return f->now_ns;
}

bool gpul_fabric_finished(const gpul_fabric *f)
{
	return f->n_done == f->flows.n;
}

/* ---- what a caller may ask ------------------------------------------------------------------------------------------ */

void gpul_fabric_flow_about(const gpul_fabric *f, unsigned flow, gpul_fabric_flow_info *out)
{
	const struct flow *w = f->flows.at[flow];
	gpul_rel_path_info path;

	*out = (gpul_fabric_flow_info){
		.done = w->n_arrived == w->o.n_messages, .end_ns = w->end_ns, .arrived = w->arrived, .recovered_ns = w->recovered_ns
	};
	gpul_rel_count(w->sender.rel, &out->n);
	for (unsigned i = 0; i < f->o.rel.n_paths; i++) {
		gpul_rel_path_about(w->sender.rel, i, &path);
		out->rto_ns = path.rtt_ns && path.rto_ns > out->rto_ns ? path.rto_ns : out->rto_ns;
	}
}

void gpul_fabric_mark(gpul_fabric *f)
{
	for (size_t i = 0; i < f->flows.n; i++) {
		struct flow *w = f->flows.at[i];
		gpul_rel_counters n;

		gpul_rel_count(w->sender.rel, &n);
		w->marked_chunks = n.chunks_sent - n.chunks_again;
		w->recovered_ns = 0;
	}
}

static void add_link(gpul_fabric *f, struct link *l, gpul_fabric_link_info *sum)
{
	const uint64_t queued = fabric_queue_bytes(f, l), longest = l->longest > queued ? l->longest : queued;

	sum->queue_bytes = queued > sum->queue_bytes ? queued : sum->queue_bytes;
	sum->longest = longest > sum->longest ? longest : sum->longest;
	sum->sent += l->sent;
	sum->n_sent += l->n_sent;
	sum->n_dropped += l->n_dropped;
	l->longest = queued;
}

void gpul_fabric_link_about(gpul_fabric *f, unsigned link, gpul_fabric_link_info *out)
{
	*out = (gpul_fabric_link_info){ 0 };
	add_link(f, &f->links[link], out);
}

void gpul_fabric_links_about(gpul_fabric *f, gpul_fabric_link_info *out)
{
	*out = (gpul_fabric_link_info){ 0 };
	for (unsigned i = 0; i < f->n_links; i++)
		add_link(f, &f->links[i], out);
}
