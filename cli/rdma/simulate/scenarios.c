/* scenarios.c — the scenarios: their defaults, their flows, and one run of them. */
#include <stdlib.h>
#include <string.h>

#include "cli/lib/bench/samples.h"
#include "cli/rdma/simulate/simulate.h"

/* A run: the network, and how it is observed. */
struct sim_plan {
	const struct sim_request *q;
	const uint64_t *value; /* of the options, with that of the run */
	gpul_fabric_options o;
	gpul_fabric *f;
	struct sim_run *run;
	bool one_link;          /* whether the queue of `link` is observed; otherwise the longest one of all links */
	unsigned link, n_flows; /* n_flows: that are measured; the victim comes after them */
	bool has_victim;
	uint64_t ideal_ns;
	uint64_t mark_ns, back_ns; /* back_ns 0: rates are measured from mark_ns on; otherwise a link dies at mark_ns, and returns */
	gpul_fabric_flow_info *at_mark, *at_end; /* of each flow */
};

/* ---- the network ---------------------------------------------------------------------------------------------------- */

/* clang-format off */
static gpul_fabric_options fabric_options(const uint64_t *v)
{
	gpul_fabric_options o = {
		.n_leaves = (unsigned)v[SIM_LEAVES], .n_spines = (unsigned)v[SIM_SPINES], .hosts_per_leaf = (unsigned)v[SIM_HOSTS],
		.gbit_per_s = (double)v[SIM_GBPS], .latency_ns = v[SIM_LATENCY], .queue_bytes = v[SIM_QUEUE], .receive_ns = v[SIM_RECEIVE],
		.lost = (uint32_t)v[SIM_LOST], .late = (uint32_t)v[SIM_LATE], .twice = (uint32_t)v[SIM_TWICE],
		.corrupt = (uint32_t)v[SIM_CORRUPT], .seed = v[SIM_SEED],
		.rel = { .chunk_bytes = (uint32_t)v[SIM_CHUNK], .n_paths = (unsigned)v[SIM_PATHS], .spread = (gpul_rel_spread)v[SIM_SPREAD],
			 .control = (gpul_rel_control_kind)v[SIM_CONTROL], .threshold = 3, .rto_min_ns = v[SIM_RTO] * 1000,
			 .rto_max_ns = v[SIM_RTO] * 16000, .dead_after = (unsigned)v[SIM_DEAD_AFTER], .ack_every = (unsigned)v[SIM_ACK_EVERY],
			 .ack_delay_ns = v[SIM_ACK_EVERY] * 20000, .target_ns = v[SIM_TARGET] * 1000, .credit = (uint32_t)v[SIM_CREDIT],
			 .window = 1024, .rate = v[SIM_GBPS] * 125000000 },
	};
	/* clang-format on */
	const uint64_t rtt_ns = gpul_fabric_rtt_ns(&o, o.n_leaves == 1), paths = v[SIM_SPREAD] == GPUL_REL_PINNED ? 1 : v[SIM_PATHS];
	const double rtt_bytes = (double)rtt_ns * o.gbit_per_s / 8, chunk = gpul_fabric_chunk_bytes(&o);
	uint64_t most = 2 * (uint64_t)(rtt_bytes / chunk) + 8; /* chunks in flight: two round trips, and some for rounding */

	o.late_ns = 4 * rtt_ns;
	o.grant_chunks = (uint32_t)((v[SIM_GRANT] ? (double)v[SIM_GRANT] : rtt_bytes) / chunk) + 1;
	most = most < GPUL_REL_MAX_WINDOW ? most : GPUL_REL_MAX_WINDOW;
	while (o.rel.window < GPUL_REL_MAX_WINDOW &&
	       (o.rel.window < 2 * most || (uint64_t)o.rel.window / 2 * o.rel.chunk_bytes < v[SIM_BYTES]))
		o.rel.window *= 2;
	if (o.rel.control != GPUL_REL_TIMELY) /* which has a rate, and no window */
		o.rel.path_window = (uint32_t)((most + paths - 1) / paths);
	return o;
}

static gpul_status add_flow(struct sim_plan *p, unsigned from, unsigned to, uint64_t n_messages, gpul_error *err)
{
	return gpul_fabric_add(p->f, &(gpul_fabric_flow){ from, to, 0, (uint32_t)p->value[SIM_BYTES], (uint32_t)n_messages }, err);
}

static uint64_t flow_bytes(const struct sim_plan *p)
{
	return p->value[SIM_BYTES] * p->value[SIM_MESSAGES];
}

/* ---- scenarios ------------------------------------------------------------------------------------------------------ */

/* The victim sends half as much as all senders together. */
static uint32_t victim_messages(const struct sim_plan *p)
{
	return (uint32_t)(p->value[SIM_MESSAGES] * (p->value[SIM_FLOWS] + 1) / 2);
}

/* Host 0 receives from hosts of other leaves; the victim goes from the last host to host 1, on the receiver's leaf. */
static gpul_status plan_incast(struct sim_plan *p, gpul_error *err)
{
	const unsigned first = (unsigned)p->value[SIM_HOSTS], n_hosts = first * (unsigned)p->value[SIM_LEAVES];
	const unsigned n = (unsigned)p->value[SIM_FLOWS], n_free = n_hosts > first ? n_hosts - first - 1 : 0;
	gpul_status st = GPUL_OK;

	if (n > n_free || first < 2)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%u senders: expected at most %u, which is all hosts of other leaves but one, and --hosts 2", n, n_free);
	p->n_flows = n;
	p->has_victim = true;
	p->one_link = true;
	p->link = gpul_fabric_to_host(p->f, 0);
	p->ideal_ns = gpul_fabric_ideal_ns(&p->o, flow_bytes(p) * n, false);
	if (p->value[SIM_CREDIT])
		p->run->bound_bytes = (uint64_t)(n + p->o.grant_chunks) * gpul_fabric_chunk_bytes(&p->o);
	for (unsigned i = 0; !st && i < n; i++)
		st = add_flow(p, first + (unsigned)((uint64_t)i * n_free / n), 0, p->value[SIM_MESSAGES], err);
	return st ? st : add_flow(p, n_hosts - 1, 1, victim_messages(p), err);
}

/* A random permutation in which no host sends to itself (Sattolo's algorithm). */
static gpul_status plan_permutation(struct sim_plan *p, gpul_error *err)
{
	const unsigned n = (unsigned)(p->value[SIM_LEAVES] * p->value[SIM_HOSTS]);
	unsigned *to = calloc(n, sizeof *to);
	uint64_t random = p->value[SIM_SEED] + 1;
	gpul_status st = to ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a permutation");

	if (p->q->given[SIM_FLOWS])
		st = gpul_fail(err, GPUL_EINVAL, 0, "--flows does not fit: this scenario has one flow from each host");
	else if (n < 2)
		st = gpul_fail(err, GPUL_EINVAL, 0, "1 host: a permutation needs at least 2");
	for (unsigned i = 0; !st && i < n; i++)
		to[i] = i;
	for (unsigned i = n - 1; !st && i > 0; i--) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		const unsigned j = (unsigned)((random >> 33) % i), was = to[i];

		to[i] = to[j];
		to[j] = was;
	}
	for (unsigned i = 0; !st && i < n; i++)
		st = add_flow(p, i, to[i], p->value[SIM_MESSAGES], err);
	free(to);
	p->n_flows = n;
	p->ideal_ns = gpul_fabric_ideal_ns(&p->o, flow_bytes(p), p->o.n_leaves == 1);
	return st;
}

static gpul_status plan_path_death(struct sim_plan *p, gpul_error *err)
{
	const gpul_status st = plan_permutation(p, err);

	p->mark_ns = p->ideal_ns / 8;
	p->back_ns = p->ideal_ns / 3;
	if (!st) {
		gpul_fabric_set_link(p->f, p->mark_ns + 1, 0, 0, false);
		gpul_fabric_set_link(p->f, p->back_ns, 0, 0, true);
	}
	return st;
}

static gpul_status plan_shared_link(struct sim_plan *p, gpul_error *err)
{
	const unsigned n = (unsigned)p->value[SIM_FLOWS];
	const bool endless = p->q->scenario->varies == SIM_FLOWS;
	gpul_status st = GPUL_OK;

	if (n >= p->o.n_leaves * p->o.hosts_per_leaf)
		return gpul_fail(err, GPUL_EINVAL, 0, "%u flows need %u hosts", n, n + 1);
	p->n_flows = n;
	p->one_link = true;
	p->link = gpul_fabric_to_host(p->f, 0);
	p->ideal_ns = endless ? p->value[SIM_TIME] * 1000 : gpul_fabric_ideal_ns(&p->o, flow_bytes(p) * n, p->o.n_leaves == 1);
	p->mark_ns = endless ? p->ideal_ns / 2 : 0;
	for (unsigned i = 1; !st && i <= n; i++)
		st = add_flow(p, i, 0, endless ? UINT32_MAX : p->value[SIM_MESSAGES], err);
	return st;
}

/* clang-format off */
static const uint64_t common[SIM_N_NUMBERS] = {
	[SIM_LATENCY] = 500, [SIM_QUEUE] = 1 << 20, [SIM_FLOWS] = 1, [SIM_BYTES] = 1 << 20, [SIM_MESSAGES] = 1, [SIM_CHUNK] = 4096, [SIM_PATHS] = 8,
	[SIM_TARGET] = 50, [SIM_RTO] = 250, [SIM_DEAD_AFTER] = 3, [SIM_ACK_EVERY] = 1, [SIM_TIME] = 2000000, [SIM_SEED] = 1,
};

const struct sim_scenario sim_scenarios[] = {
	{ "incast", "senders to one receiver, and a victim on its leaf", SIM_CREDIT, 2, { 1, 0 }, plan_incast,
	  { [SIM_LEAVES] = 6, [SIM_HOSTS] = 16, [SIM_SPINES] = 16, [SIM_GBPS] = 100, [SIM_FLOWS] = 64, [SIM_CREDIT] = 1 } },
	{ "permutation", "each host to another one", SIM_SPREAD, 3, { GPUL_REL_PINNED, GPUL_REL_ROUND_ROBIN, GPUL_REL_TWO_CHOICES },
	  plan_permutation,
	  { [SIM_LEAVES] = 32, [SIM_HOSTS] = 32, [SIM_SPINES] = 32, [SIM_GBPS] = 100, [SIM_PATHS] = 16 } },
	{ "path-death", "each host to another one, while a link dies and returns", SIM_DEAD_AFTER, 3, { 1, 2, 3 }, plan_path_death,
	  { [SIM_LEAVES] = 4, [SIM_HOSTS] = 4, [SIM_SPINES] = 4, [SIM_GBPS] = 25, [SIM_MESSAGES] = 64,
	    [SIM_SPREAD] = GPUL_REL_TWO_CHOICES } },
	{ "timely", "flows that share a link", SIM_FLOWS, 3, { 2, 10, 20 }, plan_shared_link,
	  { [SIM_LEAVES] = 1, [SIM_HOSTS] = 32, [SIM_SPINES] = 1, [SIM_GBPS] = 10, [SIM_QUEUE] = 16 << 20, [SIM_CHUNK] = 1024, [SIM_PATHS] = 1,
	    [SIM_CONTROL] = GPUL_REL_TIMELY, [SIM_TARGET] = 46, [SIM_ACK_EVERY] = 16, [SIM_RTO] = 20000, [SIM_TIME] = 200000 } },
	{ "loss", "one flow over links that lose datagrams", SIM_LOST, 4, { 0, 1000, 10000, 100000 }, plan_shared_link,
	  { [SIM_LEAVES] = 2, [SIM_HOSTS] = 1, [SIM_SPINES] = 8, [SIM_GBPS] = 10, [SIM_LATENCY] = 100000, [SIM_QUEUE] = 16 << 20,
	    [SIM_MESSAGES] = 64, [SIM_TARGET] = 200, [SIM_RTO] = 5000 } },
	{ 0 },
};
/* clang-format on */

void sim_defaults(const struct sim_scenario *s, uint64_t value[SIM_N_NUMBERS])
{
	for (int i = 0; i < SIM_N_NUMBERS; i++)
		value[i] = s->defaults[i] ? s->defaults[i] : common[i];
}

/* ---- a run ------------------------------------------------------------------------------------------------------------ */

/* Halve the samples if there is no room for another one. */
static void make_room(struct sim_run *run)
{
	if (run->n_samples < SIM_MOST_SAMPLES)
		return;
	for (unsigned i = 0; i < SIM_MOST_SAMPLES / 2; i++) {
		const uint64_t before = run->sample[2 * i].queue_bytes;

		run->sample[i] = run->sample[2 * i + 1];
		if (before > run->sample[i].queue_bytes)
			run->sample[i].queue_bytes = before;
	}
	run->n_samples /= 2;
	run->step_ns *= 2;
}

static void take_sample(struct sim_plan *p)
{
	struct sim_run *run = p->run;
	gpul_fabric_link_info link;
	gpul_fabric_flow_info flow;
	struct sim_sample s = { .ns = gpul_fabric_now_ns(p->f), .second = UINT64_MAX };
	uint64_t died = 0, returned = 0;

	if (p->one_link)
		gpul_fabric_link_about(p->f, p->link, &link);
	else
		gpul_fabric_links_about(p->f, &link);
	s.queue_bytes = link.longest;
	run->queue_bytes = link.longest > run->queue_bytes ? link.longest : run->queue_bytes;
	for (unsigned i = 0; i < p->n_flows; i++) {
		gpul_fabric_flow_about(p->f, i, &flow);
		s.bytes += flow.arrived;
		s.second = flow.arrived < s.second ? flow.arrived : s.second;
		s.n_done += flow.done;
		died += flow.n.paths_died;
		returned += flow.n.paths_returned;
	}
	if (p->has_victim) {
		gpul_fabric_flow_about(p->f, p->n_flows, &flow);
		s.second = flow.arrived;
	}
	if (p->back_ns && s.ns >= p->back_ns && died == returned && died && run->returned <= 0)
		run->returned = (double)(s.ns - p->back_ns) / 1e3 / run->rto_us;
	make_room(run);
	run->sample[run->n_samples++] = s;
}

/* Note the state of all flows at the mark. */
static gpul_status mark(struct sim_plan *p, gpul_error *err)
{
	const gpul_status st = gpul_fabric_run(p->f, p->mark_ns, err);

	if (st)
		return st;
	gpul_fabric_mark(p->f);
	for (unsigned i = 0; i < p->n_flows; i++) {
		gpul_fabric_flow_about(p->f, i, &p->at_mark[i]);
		p->run->rto_us += (double)p->at_mark[i].rto_ns / 1e3 / p->n_flows;
	}
	return GPUL_OK;
}

static gpul_status advance(struct sim_plan *p, gpul_error *err)
{
	const uint64_t end_ns = p->value[SIM_TIME] * 1000;
	gpul_status st = GPUL_OK;

	p->run->step_ns = p->ideal_ns / 100 + 1;
	while (!st && !gpul_fabric_finished(p->f) && gpul_fabric_now_ns(p->f) < end_ns) {
		const uint64_t next_ns = gpul_fabric_now_ns(p->f) + p->run->step_ns;

		if (p->mark_ns && gpul_fabric_now_ns(p->f) < p->mark_ns && p->mark_ns <= next_ns)
			st = mark(p, err);
		st = st ? st : gpul_fabric_run(p->f, next_ns < end_ns ? next_ns : end_ns, err);
		take_sample(p);
	}
	return st;
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */

static void collect_counters(struct sim_plan *p)
{
	struct sim_run *run = p->run;
	gpul_fabric_flow_info victim;
	gpul_fabric_link_info links;

	for (unsigned i = 0; i < p->n_flows; i++) {
		gpul_fabric_flow_about(p->f, i, &p->at_end[i]);
		run->again += p->at_end[i].n.chunks_again;
		run->timeouts += p->at_end[i].n.timeouts;
		run->paths_died += p->at_end[i].n.paths_died;
	}
	gpul_fabric_links_about(p->f, &links);
	run->dropped = links.n_dropped;
	run->n_flows = p->n_flows;
	run->ideal_ns = p->ideal_ns;
	run->bound_bytes = run->bound_bytes ? run->bound_bytes : p->value[SIM_QUEUE];
	if (p->has_victim) {
		gpul_fabric_flow_about(p->f, p->n_flows, &victim);
		run->victim_ns = victim.end_ns;
	}
}

static void collect_times(struct sim_plan *p, int64_t *ns)
{
	struct sim_run *run = p->run;

	for (unsigned i = 0; i < p->n_flows; i++)
		if (p->at_end[i].done)
			ns[run->n_done++] = (int64_t)p->at_end[i].end_ns;
	if (!run->n_done)
		return;
	samples_sort_ns(ns, run->n_done);
	run->p50_ns = (uint64_t)samples_percentile(ns, run->n_done, 500);
	run->p99_ns = (uint64_t)samples_percentile(ns, run->n_done, 990);
	run->most_ns = (uint64_t)ns[run->n_done - 1];
}

/* Of the flows that the death of a link has hit: when all was acknowledged that they had in flight. */
static void collect_recoveries(struct sim_plan *p, double *rtos)
{
	struct sim_run *run = p->run;

	for (unsigned i = 0; i < p->n_flows; i++) {
		if (p->at_end[i].n.timeouts == p->at_mark[i].n.timeouts)
			continue;
		run->n_hit++;
		if (p->at_end[i].recovered_ns)
			rtos[run->n_recovered++] = (double)(p->at_end[i].recovered_ns - p->mark_ns) / (double)p->at_mark[i].rto_ns;
	}
	if (run->n_recovered) {
		const struct samples_spread s = samples_spread_of(rtos, run->n_recovered);

		run->recovered_p50 = s.median;
		run->recovered_most = s.most;
	}
}

/* Rates and queue from the mark to the end. */
static void collect_rates(struct sim_plan *p)
{
	struct sim_run *run = p->run;
	const double ns = (double)(gpul_fabric_now_ns(p->f) - p->mark_ns);
	double sum = 0, squares = 0, peaks[SIM_MOST_SAMPLES];
	unsigned n_peaks = 0;

	for (unsigned i = 0; i < p->n_flows; i++) {
		const double rate = (double)(p->at_end[i].arrived - p->at_mark[i].arrived) * 8 / ns;

		sum += rate;
		squares += rate * rate;
		run->slowest = !i || rate < run->slowest ? rate : run->slowest;
		run->fastest = rate > run->fastest ? rate : run->fastest;
	}
	run->gbit_per_s = sum;
	run->jain = squares > 0 ? sum * sum / (squares * p->n_flows) : 0;
	for (unsigned i = 0; i < run->n_samples; i++)
		if (run->sample[i].ns > p->mark_ns + run->step_ns)
			peaks[n_peaks++] = (double)run->sample[i].queue_bytes;
	run->peak_bytes = n_peaks ? samples_spread_of(peaks, n_peaks).median : 0;
}

static gpul_status collect(struct sim_plan *p, gpul_error *err)
{
	union number {
		int64_t ns;
		double rtos;
	} *room = calloc(p->n_flows, sizeof *room);

	if (!room)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results of %u flows", p->n_flows);
	collect_counters(p);
	collect_times(p, &room->ns);
	if (p->back_ns)
		collect_recoveries(p, &room->rtos);
	else if (p->mark_ns)
		collect_rates(p);
	free(room);
	return GPUL_OK;
}

/* The time of the victim in a network without other flows. */
static gpul_status run_victim_alone(struct sim_plan *p, gpul_error *err)
{
	const unsigned last = (unsigned)(p->value[SIM_LEAVES] * p->value[SIM_HOSTS]) - 1;
	gpul_fabric_flow_info flow;
	gpul_fabric *f;
	gpul_status st = gpul_fabric_create(&p->o, &f, err);

	if (st)
		return st;
	st = gpul_fabric_add(f, &(gpul_fabric_flow){ last, 1, 0, (uint32_t)p->value[SIM_BYTES], victim_messages(p) }, err);
	st = st ? st : gpul_fabric_run(f, p->value[SIM_TIME] * 1000, err);
	if (!st) {
		gpul_fabric_flow_about(f, 0, &flow);
		p->run->victim_alone_ns = flow.end_ns;
	}
	gpul_fabric_destroy(f);
	return st;
}

static gpul_status measure_run(const struct sim_request *q, const uint64_t *value, struct sim_run *run, gpul_error *err)
{
	struct sim_plan p = { .q = q, .value = value, .o = fabric_options(value), .run = run };
	gpul_status st = gpul_fabric_create(&p.o, &p.f, err);

	if (st)
		return st;
	st = q->scenario->plan(&p, err);
	if (!st) {
		p.at_mark = calloc(2 * p.n_flows, sizeof *p.at_mark);
		p.at_end = p.at_mark ? p.at_mark + p.n_flows : NULL;
		st = p.at_mark ? advance(&p, err) : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u flows", p.n_flows);
	}
	st = st ? st : collect(&p, err);
	if (!st && p.has_victim)
		st = run_victim_alone(&p, err);
	free(p.at_mark);
	gpul_fabric_destroy(p.f);
	return st;
}

gpul_status sim_measure(const struct sim_request *q, struct sim_result *out, gpul_error *err)
{
	const struct sim_scenario *s = q->scenario;
	uint64_t value[SIM_N_NUMBERS];
	gpul_status st = GPUL_OK;

	*out = (struct sim_result){ .q = q, .n_runs = q->given[s->varies] ? 1 : s->n_values };
	memcpy(value, q->value, sizeof value);
	for (unsigned i = 0; !st && i < out->n_runs; i++) {
		if (!q->given[s->varies])
			value[s->varies] = s->values[i];
		out->run[i].varied = value[s->varies];
		st = measure_run(q, value, &out->run[i], err);
	}
	return st;
}
