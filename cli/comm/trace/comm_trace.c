/* comm_trace.c — records the timed calls, and collects the events of all ranks. */
#include "cli/comm/trace/comm_trace.h"

#include <stdlib.h>
#include <string.h>

#include "cli/fifo/clock/fifo_clock.h"
#include "cli/lib/bench/bench_output.h"

gpul_status comm_trace_create(struct comm_rank *r, struct comm_tracer **out, gpul_error *err)
{
	struct comm_tracer *t = calloc(1, sizeof *t);
	gpul_status st;

	*out = NULL;
	if (!t)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace");
	st = fifo_clock_create(r->drv, &t->clock, err);
	st = st ? st : fifo_clock_take(t->clock, r->stream, err);
	st = st ? st : comm_clocks_create(r->boot, &t->hosts, err);
	if (st) {
		comm_trace_free(t);
		return st;
	}
	*out = t;
	return GPUL_OK;
}

void comm_trace_free(struct comm_tracer *t)
{
	if (!t)
		return;
	fifo_clock_destroy(t->clock);
	comm_clocks_destroy(t->hosts);
	free(t);
}

gpul_status comm_trace_resume(struct comm_rank *r, gpul_error *err)
{
	struct comm_tracer *t = r->tracer;
	size_t none = 0, n_events = 0;
	gpul_status st;

	if (!t)
		return GPUL_OK;
	st = gpul_comm_trace_start(r->comm, t->started ? 0 : COMM_TRACE_MOST, err);
	t->started = true;
	st = st ? st : gpul_comm_trace_read(r->comm, NULL, 0, &none, &n_events, err);
	t->resumed_at = n_events;
	return st;
}

gpul_status comm_trace_pause(struct comm_rank *r, const struct comm_section *section, gpul_error *err)
{
	struct comm_tracer *t = r->tracer;
	gpul_status st;

	if (!t)
		return GPUL_OK;
	t->sections[t->n_sections] = *section;
	t->sections[t->n_sections++].first_event = t->resumed_at;
	st = gpul_comm_trace_stop(r->comm, err);
	return st ? st : comm_clocks_check(t->hosts, err);
}

/* ---- collection ------------------------------------------------------------------------------------------------ */

/* Read this rank's events, and convert their times. */
static gpul_status read_events(struct comm_rank *r, gpul_comm_event *events, size_t *n, struct comm_waiting *waiting, double *bound_ns,
			       gpul_error *err)
{
	struct fifo_clock_relation relation;
	size_t n_lost = 0;
	gpul_status st = fifo_clock_take(r->tracer->clock, r->stream, err);

	st = st ? st : fifo_clock_fit(r->tracer->clock, &relation, err);
	st = st ? st : gpul_comm_trace_read(r->comm, events, COMM_TRACE_MOST, n, &n_lost, err);
	if (st)
		return st;
	for (size_t i = 0; i < *n; i++) {
		events[i].begin_ns = fifo_clock_cpu_ns(&relation, events[i].begin_ns);
		events[i].end_ns = fifo_clock_cpu_ns(&relation, events[i].end_ns);
	}
	*waiting = comm_trace_waiting(events, *n, n_lost);
	*bound_ns = relation.bound_ns;
	return GPUL_OK;
}

static gpul_status write_file(const struct comm_result *result, const struct comm_rank_trace *ranks, gpul_error *err)
{
	const size_t n = strlen(result->q.trace);
	struct out o = { 0 };
	uint64_t origin = UINT64_MAX;

	for (int r = 0; r < result->n_ranks; r++) {
		for (size_t i = 0; i < ranks[r].n; i++)
			origin = ranks[r].events[i].begin_ns < origin ? ranks[r].events[i].begin_ns : origin;
		for (size_t i = 0; i < ranks[r].n_sections; i++)
			origin = ranks[r].sections[i].begin_ns < origin ? ranks[r].sections[i].begin_ns : origin;
		for (size_t i = 0; i < ranks[r].n_net; i++)
			origin = ranks[r].net[i].begin_ns < origin ? ranks[r].net[i].begin_ns : origin;
	}
	if (n > 4 && !strcmp(result->q.trace + n - 4, ".svg"))
		comm_trace_svg(result, ranks, &o);
	else
		comm_trace_json(result, ranks, origin, &o);
	return output_file(result->q.trace, result->q.force, &o, "trace", err);
}

/* Convert the times of a rank to the clock of rank 0's host. */
static void convert_times(const struct fifo_clock_relation *host, gpul_comm_event *events, size_t n, struct comm_section *sections,
			  size_t n_sections)
{
	for (size_t i = 0; i < n; i++) {
		events[i].begin_ns = fifo_clock_cpu_ns(host, events[i].begin_ns);
		events[i].end_ns = fifo_clock_cpu_ns(host, events[i].end_ns);
	}
	for (size_t i = 0; i < n_sections; i++) {
		sections[i].begin_ns = fifo_clock_cpu_ns(host, sections[i].begin_ns);
		sections[i].end_ns = fifo_clock_cpu_ns(host, sections[i].end_ns);
	}
}

static void describe_hosts(const struct comm_rank *r, const struct comm_host_clock *hosts, struct comm_result *result)
{
	result->n_hosts = gpul_boot_n_hosts(r->boot);
	for (int h = 1; h < result->n_hosts; h++)
		result->host[h] = (struct comm_host){ .offset_ns = hosts[h].offset_ns,
						      .drift_ppm = hosts[h].relation.drift * 1e6,
						      .drift_bound_ppm = hosts[h].drift_bound * 1e6,
						      .bound_ns = hosts[h].relation.bound_ns,
						      .round_trip_ns = hosts[h].relation.shortest_ns };
}

/* Data that the ranks exchange before the events, so that each rank can send as many events as the rank with the most events has. */
struct summary {
	struct comm_waiting waiting;
	double bound_ns;
	uint64_t n;
};

static gpul_status exchange_events(struct comm_rank *r, struct comm_result *result, const struct comm_host_clock *hosts,
				   gpul_comm_event *events, const struct summary *mine, gpul_error *err)
{
	struct summary all[GPUL_COMM_MAX_RANKS] = { 0 };
	struct comm_rank_trace ranks[GPUL_COMM_MAX_RANKS] = { 0 };
	const size_t n_ranks = (size_t)r->job.size;
	struct comm_section *sections = calloc(n_ranks, sizeof r->tracer->sections);
	gpul_comm_event *everyone = NULL;
	gpul_comm_net_event *net = NULL;
	size_t most = 1;
	gpul_status st = gpul_boot_allgather(r->boot, mine, sizeof *mine, all, COMM_MEET_MS, err);

	for (size_t k = 0; k < n_ranks; k++)
		most = all[k].n > most ? all[k].n : most;
	if (!st)
		everyone = calloc(n_ranks * most, sizeof *everyone);
	if (!st && (!everyone || !sections))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the events of all ranks");
	st = st ? st : gpul_boot_allgather(r->boot, events, most * sizeof *events, everyone, COMM_MEET_MS, err);
	st = st ? st : gpul_boot_allgather(r->boot, r->tracer->sections, sizeof r->tracer->sections, sections, COMM_MEET_MS, err);
	for (size_t k = 0; k < n_ranks; k++) {
		ranks[k] = (struct comm_rank_trace){ everyone + k * most,
						     all[k].n,
						     sections + k * 2 * COMM_MOST_ROWS,
						     r->tracer->n_sections,
						     all[k].waiting.n_lost,
						     NULL,
						     0 };
		result->waiting[k] = all[k].waiting;
		result->rank_bound_ns[k] = all[k].bound_ns + result->host[gpul_boot_host(r->boot, (int)k)].bound_ns;
		if (result->rank_bound_ns[k] > result->clock_bound_ns)
			result->clock_bound_ns = result->rank_bound_ns[k];
	}
	for (size_t k = 0; !st && r->job.rank == 0 && k < n_ranks; k++)
		if (gpul_boot_host(r->boot, (int)k) != 0)
			convert_times(&hosts[gpul_boot_host(r->boot, (int)k)].relation, everyone + k * most, all[k].n,
				      sections + k * 2 * COMM_MOST_ROWS, r->tracer->n_sections);
	st = st ? st : comm_trace_net_collect(r, hosts, result, ranks, &net, err);
	if (!st && r->job.rank == 0)
		st = write_file(result, ranks, err);
	free(net);
	free(everyone);
	free(sections);
	return st;
}

gpul_status comm_trace_finish(struct comm_rank *r, struct comm_result *result, gpul_error *err)
{
	gpul_comm_event *events = calloc(COMM_TRACE_MOST, sizeof *events);
	struct comm_host_clock hosts[GPUL_COMM_MAX_RANKS] = { 0 };
	struct summary mine = { 0 };
	size_t n = 0;
	gpul_status st;

	if (!events)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the events");
	st = read_events(r, events, &n, &mine.waiting, &mine.bound_ns, err);
	mine.n = n;
	st = st ? st : comm_clocks_finish(r->tracer->hosts, hosts, err);
	describe_hosts(r, hosts, result);
	st = st ? st : exchange_events(r, result, hosts, events, &mine, err);
	free(events);
	return st;
}
