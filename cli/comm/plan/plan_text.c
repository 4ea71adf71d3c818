/* plan_text.c — prints the result of gpuload comm plan as text. */
#include <math.h>
#include <stdio.h>

#include "cli/comm/plan/cli_plan.h"
#include "cli/lib/bench/bench_plot.h"

/* Append a size for use in a sentence: exact if it is a round number, else with three digits. */
static void add_size(struct out *o, uint64_t bytes)
{
	static const char units[] = " KMGT";
	double x = (double)bytes;
	int unit = 0;

	if (bytes % 1024 == 0 || bytes < 1024) {
		plot_add_size(o, bytes);
		return;
	}
	for (; x >= 1024 && unit < 4; unit++)
		x /= 1024;
	out_add(o, "%.3g%c", x, units[unit]);
}

static void add_costs(struct out *o, const char *where, const gpul_comm_costs costs[GPUL_COMM_N_PROTOS], const char *source)
{
	out_add(o, "# %-8s", where);
	for (gpul_comm_proto p = GPUL_COMM_LL; p < GPUL_COMM_N_PROTOS; p++) {
		const gpul_comm_costs *c = &costs[p];

		if (c->step_bytes > 0)
			out_add(o, "%s: overhead %.3g, latency %.3g, gap %.3g us, %.3g GB/s, adding %.3g GB/s;  ", gpul_comm_proto_name(p),
				c->overhead_us, c->latency_us, c->gap_us, 1e-3 / c->us_per_byte, 1e-3 / c->reduce_us_per_byte);
	}
	out_add(o, "(%.120s)\n", source);
}

static const char *name_of(const gpul_comm_link *link, const char *text, const char *other)
{
	return link->name ? (*link->name ? link->name : text) : other;
}

static void add_head(const struct plan_result *r, struct out *o)
{
	const gpul_comm_machine *m = &r->machine;

	out_add(o, "# gpuload comm plan: %s, %u ranks", gpul_comm_call_name(r->q.call), m->n_ranks);
	if (m->ranks_per_host < m->n_ranks)
		out_add(o, ", %u a host", m->ranks_per_host);
	if (m->cores > 0 && m->ranks_per_host > m->cores)
		out_add(o, "; %.4g ranks share a core", m->ranks_per_host / m->cores);
	out_text(o, "\n");
	if (m->ranks_per_host > 1)
		add_costs(o, "inside", m->inside, name_of(&r->inside, r->q.inside, r->source));
	if (m->ranks_per_host < m->n_ranks)
		add_costs(o, "between", m->across, name_of(&r->link, r->q.link, r->source));
}

/* True if the algorithm and protocol have a time for any size. */
static bool has_times(const struct plan_result *r, gpul_comm_algo algo, gpul_comm_proto proto)
{
	for (unsigned i = 0; i < r->n_rows; i++)
		if (r->rows[i].us[algo][proto] >= 0)
			return true;
	return false;
}

static void add_cells(const struct plan_result *r, const struct plan_row *row, struct out *o)
{
	for (gpul_comm_algo a = GPUL_COMM_RING; a < GPUL_COMM_N_ALGOS; a++)
		for (gpul_comm_proto p = GPUL_COMM_LL; p < GPUL_COMM_N_PROTOS; p++) {
			char name[32];

			if (!has_times(r, a, p))
				continue;
			(void)snprintf(name, sizeof name, "%s/%s", gpul_comm_algo_name(a), gpul_comm_proto_name(p));
			if (!row)
				out_add(o, "%16s", name);
			else if (row->us[a][p] < 0)
				out_add(o, "%16s", "-");
			else
				out_add(o, "%16.*f", row->us[a][p] < 100 ? 2 : row->us[a][p] < 1e5 ? 1 : 0, row->us[a][p]);
		}
	out_text(o, "\n");
}

static void add_ranges(const struct plan_result *r, struct out *o)
{
	bool ring = false;

	out_text(o, "# best:");
	for (unsigned i = 0; i < r->n_ranges; i++) {
		const struct plan_range *range = &r->ranges[i];

		ring = ring || range->algo == GPUL_COMM_RING;
		out_add(o, "%s %s/%s", i ? "," : "", gpul_comm_algo_name(range->algo), gpul_comm_proto_name(range->proto));
		if (i + 1 < r->n_ranges) {
			out_text(o, " below ");
			add_size(o, range->to);
		} else if (i) {
			out_text(o, " from ");
			add_size(o, range->from);
		}
	}
	out_text(o, "\n");
	if (!ring && has_times(r, GPUL_COMM_RING, GPUL_COMM_SIMPLE))
		out_text(o, "# a ring is never the best for these sizes\n");
	for (unsigned i = 0; i < r->n_turns; i++) {
		const struct plan_turn *t = &r->turns[i];

		out_add(o, "# %s is faster than a ring ", t->algo == GPUL_COMM_TREE ? "a tree" : "twolevel");
		if (t->below == 0)
			out_text(o, "for none of these sizes\n");
		else if (t->below == r->rows[r->n_rows - 1].bytes)
			out_text(o, "for all of these sizes\n");
		else {
			out_text(o, "below ");
			add_size(o, t->below);
			out_text(o, "\n");
		}
	}
}

static void add_checks(const struct plan_result *r, struct out *o)
{
	double sum = 0;

	out_add(o, "# measured on %d ranks here; the parameters were fitted to rings of other calls and sizes\n", r->n_here);
	out_add(o, "#%11s  %-16s%14s%14s%10s\n", "size (B)", "algorithm", "predicted us", "measured us", "error");
	for (unsigned i = 0; i < r->n_checks; i++) {
		const struct plan_check *c = &r->checks[i];
		char name[32];

		(void)snprintf(name, sizeof name, "%s/%s", gpul_comm_algo_name(c->algo), gpul_comm_proto_name(c->proto));
		out_add(o, " %11llu  %-16s%14.1f%14.1f%8.0f %%\n", (unsigned long long)c->bytes, name, c->predicted_us, c->measured_us,
			100 * (c->predicted_us / c->measured_us - 1));
		sum += fabs(log(c->predicted_us / c->measured_us));
	}
	if (r->n_checks)
		out_add(o, "# typical error: a factor of %.2f (geometric mean)\n", exp(sum / r->n_checks));
}

void plan_text(const struct plan_result *r, struct out *o)
{
	add_head(r, o);
	if (r->q.check) {
		add_checks(r, o);
		return;
	}
	out_add(o, "#%11s%16s", "size (B)", "best");
	add_cells(r, NULL, o);
	for (unsigned i = 0; i < r->n_rows; i++) {
		const struct plan_row *row = &r->rows[i];
		char name[32];

		(void)snprintf(name, sizeof name, "%s/%s", gpul_comm_algo_name(row->algo), gpul_comm_proto_name(row->proto));
		out_add(o, " %11llu%16s", (unsigned long long)row->bytes, name);
		add_cells(r, row, o);
	}
	out_text(o, "# times in microseconds, predicted\n");
	add_ranges(r, o);
}
