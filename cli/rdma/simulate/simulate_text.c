/* simulate_text.c — prints the results of gpuload rdma simulate as a table, or as JSON. */
#include "cli/rdma/simulate/simulate.h"

/* "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY" (Zhu, Ghobadi, Misra, Padhye, CoNEXT 2016), in the sources
 * (jitupadhye-zz/rdma on GitHub, conext2016/timely-validation.tex): "queue peaks are at roughly 70KB" with 2, 10 and 20 flows, when each
 * datagram is paced. */
static const double PUBLISHED_QUEUE = 70e3;

static void add_title(const struct sim_result *r, struct out *o)
{
	const uint64_t *v = r->q->value;

	out_add(o, "%s: %s\n", r->q->scenario->name, r->q->scenario->help);
	out_add(o,
		"%llu leaves of %llu hosts, %llu spines, %llu Gbit/s, %llu ns a link, %llu KiB queues; %llu x %llu bytes a flow, seed %llu\n\n",
		(unsigned long long)v[SIM_LEAVES], (unsigned long long)v[SIM_HOSTS], (unsigned long long)v[SIM_SPINES],
		(unsigned long long)v[SIM_GBPS], (unsigned long long)v[SIM_LATENCY], (unsigned long long)v[SIM_QUEUE] / 1024,
		(unsigned long long)v[SIM_MESSAGES], (unsigned long long)v[SIM_BYTES], (unsigned long long)v[SIM_SEED]);
}

/* Append a number, or "-" if it was not measured. */
static void add_number(struct out *o, double x, int width, int most_decimals)
{
	if (x > 0)
		output_number(o, x, width, most_decimals);
	else
		out_add(o, "%*s", width, "-");
}

static void add_label(const struct sim_result *r, const struct sim_run *run, struct out *o)
{
	char value[24];

	out_left(o, sim_value_text(r->q->scenario->varies, run->varied, value), 13);
	out_right(o, run->n_flows, 5);
}

static void add_times(const struct sim_result *r, struct out *o)
{
	out_left(o, sim_opts[r->q->scenario->varies].name, 13);
	out_text(o, "flows    p50 us    p99 us    max us  ideal us  p99/ideal  queue KB  limit KB   dropped     again\n");
	for (const struct sim_run *run = r->run; run < r->run + r->n_runs; run++) {
		add_label(r, run, o);
		add_number(o, (double)run->p50_ns / 1e3, 10, 1);
		add_number(o, (double)run->p99_ns / 1e3, 10, 1);
		add_number(o, (double)run->most_ns / 1e3, 10, 1);
		add_number(o, (double)run->ideal_ns / 1e3, 10, 1);
		add_number(o, (double)run->p99_ns / (double)run->ideal_ns, 11, 3);
		output_number(o, (double)run->queue_bytes / 1e3, 10, 1);
		output_number(o, (double)run->bound_bytes / 1e3, 10, 1);
		out_right(o, run->dropped, 10);
		out_right(o, run->again, 10);
		if (run->n_done < run->n_flows)
			out_add(o, "  %u flows have not arrived", run->n_flows - run->n_done);
		out_text(o, "\n");
	}
}

static void add_rates(const struct sim_result *r, struct out *o)
{
	out_left(o, "", 13);
	out_text(o, "flows    Gbit/s   slowest   fastest   Jain      peak KB  published KB\n");
	for (const struct sim_run *run = r->run; run < r->run + r->n_runs; run++) {
		add_label(r, run, o);
		output_number(o, run->gbit_per_s, 10, 2);
		output_number(o, run->slowest, 10, 3);
		output_number(o, run->fastest, 10, 3);
		out_add(o, "%7.3f", run->jain);
		output_number(o, run->peak_bytes / 1e3, 13, 1);
		output_number(o, PUBLISHED_QUEUE / 1e3, 14, 1);
		out_text(o, "\n");
	}
}

/* The lines that only one scenario has. */
static void add_special(const struct sim_result *r, const struct sim_run *run, struct out *o)
{
	const enum sim_option varies = r->q->scenario->varies;
	char value[24];

	if (!run->victim_alone_ns && (run->jain > 0 || !(run->rto_us > 0)))
		return;
	out_add(o, "%s %s: ", sim_opts[varies].name, sim_value_text(varies, run->varied, value));
	if (run->victim_alone_ns)
		out_add(o, "the victim took %.1f us, alone %.1f us: %.3f times\n", (double)run->victim_ns / 1e3,
			(double)run->victim_alone_ns / 1e3, (double)run->victim_ns / (double)run->victim_alone_ns);
	else
		out_add(o, "%u of %u flows hit recovered, after %.2f (median) to %.2f RTO of %.0f us; %llu paths died, ", run->n_recovered,
			run->n_hit, run->recovered_p50, run->recovered_most, run->rto_us, (unsigned long long)run->paths_died);
	if (run->returned > 0)
		out_add(o, "the last returned after %.2f RTO\n", run->returned);
	else if (!run->victim_alone_ns)
		out_text(o, "and not all returned\n");
}

void sim_text(const struct sim_result *r, struct out *o)
{
	add_title(r, o);
	if (r->run->jain > 0)
		add_rates(r, o);
	else
		add_times(r, o);
	out_text(o, "\n");
	for (const struct sim_run *run = r->run; run < r->run + r->n_runs; run++)
		add_special(r, run, o);
}

/* ---- JSON --------------------------------------------------------------------------------------------------------------- */

static void add_samples(struct json *j, const struct sim_run *run)
{
	json_begin(j, "samples", '[');
	for (const struct sim_sample *s = run->sample; s < run->sample + run->n_samples; s++) {
		json_begin(j, NULL, '{');
		json_u64(j, "ns", s->ns);
		json_u64(j, "queue_bytes", s->queue_bytes);
		json_u64(j, "arrived_bytes", s->bytes);
		json_u64(j, "arrived_flows", s->n_done);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void add_run(struct json *j, const struct sim_result *r, const struct sim_run *run)
{
	const bool rates = run->jain > 0, death = run->rto_us > 0 && !rates;
	const struct {
		const char *key;
		bool measured;
		double value;
	} members[] = {
		{ "p50_us", run->n_done, (double)run->p50_ns / 1e3 },
		{ "p99_us", run->n_done, (double)run->p99_ns / 1e3 },
		{ "max_us", run->n_done, (double)run->most_ns / 1e3 },
		{ "ideal_us", !rates, (double)run->ideal_ns / 1e3 },
		{ "victim_us", run->victim_alone_ns, (double)run->victim_ns / 1e3 },
		{ "victim_alone_us", run->victim_alone_ns, (double)run->victim_alone_ns / 1e3 },
		{ "rto_us", death, run->rto_us },
		{ "recovered_p50_rto", run->n_recovered, run->recovered_p50 },
		{ "recovered_max_rto", run->n_recovered, run->recovered_most },
		{ "returned_rto", run->returned > 0, run->returned },
		{ "gbit_per_s", rates, run->gbit_per_s },
		{ "slowest_gbit_per_s", rates, run->slowest },
		{ "fastest_gbit_per_s", rates, run->fastest },
		{ "jain", rates, run->jain },
		{ "peak_queue_bytes", rates, run->peak_bytes },
	};
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{ "flows", run->n_flows },           { "arrived_flows", run->n_done }, { "queue_bytes", run->queue_bytes },
		{ "limit_bytes", run->bound_bytes }, { "dropped", run->dropped },      { "again", run->again },
		{ "timeouts", run->timeouts },       { "flows_hit", run->n_hit },      { "flows_recovered", run->n_recovered },
		{ "paths_died", run->paths_died },
	};
	char value[24];

	json_begin(j, NULL, '{');
	json_text(j, "value", sim_value_text(r->q->scenario->varies, run->varied, value));
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		json_u64(j, counts[i].key, counts[i].value);
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (members[i].measured)
			json_double(j, members[i].key, members[i].value);
		else
			json_null(j, members[i].key);
	add_samples(j, run);
	json_end(j, '}');
}

void sim_json(const struct sim_result *r, struct json *j)
{
	char value[24];

	json_begin(j, NULL, '{');
	json_text(j, "scenario", r->q->scenario->name);
	json_text(j, "varies", sim_opts[r->q->scenario->varies].name);
	json_begin(j, "options", '{');
	for (int i = 0; i < SIM_N_NUMBERS; i++)
		if (sim_opts[i].complete)
			json_text(j, sim_opts[i].name, sim_value_text((enum sim_option)i, r->q->value[i], value));
		else
			json_u64(j, sim_opts[i].name, r->q->value[i]);
	json_end(j, '}');
	json_begin(j, "runs", '[');
	for (const struct sim_run *run = r->run; run < r->run + r->n_runs; run++)
		add_run(j, r, run);
	json_end(j, ']');
	json_end(j, '}');
}
