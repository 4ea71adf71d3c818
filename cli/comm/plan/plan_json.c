/* plan_json.c — prints the result of gpuload comm plan as JSON. */
#include "cli/comm/plan/cli_plan.h"
#include "cli/lib/json/cli_json.h"

static void add_costs(struct json *j, const char *key, const gpul_comm_costs costs[GPUL_COMM_N_PROTOS])
{
	json_begin(j, key, '{');
	for (gpul_comm_proto p = GPUL_COMM_LL; p < GPUL_COMM_N_PROTOS; p++) {
		const gpul_comm_costs *c = &costs[p];

		if (c->step_bytes <= 0)
			continue;
		json_begin(j, gpul_comm_proto_name(p), '{');
		json_double(j, "overhead_us", c->overhead_us);
		json_double(j, "latency_us", c->latency_us);
		json_double(j, "gap_us", c->gap_us);
		json_double(j, "gb_per_s", 1e-3 / c->us_per_byte);
		json_double(j, "reduce_gb_per_s", 1e-3 / c->reduce_us_per_byte);
		json_double(j, "step_bytes", c->step_bytes);
		json_end(j, '}');
	}
	json_end(j, '}');
}

static void add_choice(struct json *j, gpul_comm_algo algo, gpul_comm_proto proto)
{
	json_text(j, "algorithm", gpul_comm_algo_name(algo));
	json_text(j, "protocol", gpul_comm_proto_name(proto));
}

static void add_row(struct json *j, const struct plan_row *row)
{
	json_begin(j, NULL, '{');
	json_u64(j, "bytes", row->bytes);
	json_begin(j, "best", '{');
	add_choice(j, row->algo, row->proto);
	json_end(j, '}');
	json_begin(j, "times", '[');
	for (gpul_comm_algo a = GPUL_COMM_RING; a < GPUL_COMM_N_ALGOS; a++)
		for (gpul_comm_proto p = GPUL_COMM_LL; p < GPUL_COMM_N_PROTOS; p++) {
			if (row->us[a][p] < 0)
				continue;
			json_begin(j, NULL, '{');
			add_choice(j, a, p);
			json_double(j, "us", row->us[a][p]);
			json_end(j, '}');
		}
	json_end(j, ']');
	json_end(j, '}');
}

static void add_checks(struct json *j, const struct plan_result *r)
{
	json_begin(j, "checks", '[');
	for (unsigned i = 0; i < r->n_checks; i++) {
		const struct plan_check *c = &r->checks[i];

		json_begin(j, NULL, '{');
		json_u64(j, "bytes", c->bytes);
		add_choice(j, c->algo, c->proto);
		json_double(j, "predicted_us", c->predicted_us);
		json_double(j, "measured_us", c->measured_us);
		json_double(j, "error_percent", 100 * (c->predicted_us / c->measured_us - 1));
		json_end(j, '}');
	}
	json_end(j, ']');
}

void plan_json(const struct plan_result *r, struct json *j)
{
	const gpul_comm_machine *m = &r->machine;

	json_begin(j, NULL, '{');
	json_text(j, "collective", gpul_comm_call_name(r->q.call));
	json_u64(j, "n_ranks", m->n_ranks);
	json_u64(j, "ranks_per_host", m->ranks_per_host);
	json_double(j, "cores", m->cores);
	json_text(j, "parameters", r->source);
	add_costs(j, "inside", m->inside);
	add_costs(j, "between", m->across);
	json_begin(j, "rows", '[');
	for (unsigned i = 0; i < r->n_rows; i++)
		add_row(j, &r->rows[i]);
	json_end(j, ']');
	json_begin(j, "ranges", '[');
	for (unsigned i = 0; i < r->n_ranges; i++) {
		json_begin(j, NULL, '{');
		add_choice(j, r->ranges[i].algo, r->ranges[i].proto);
		json_u64(j, "from_bytes", r->ranges[i].from);
		json_u64(j, "to_bytes", r->ranges[i].to);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_begin(j, "faster_than_ring", '[');
	for (unsigned i = 0; i < r->n_turns; i++) {
		json_begin(j, NULL, '{');
		json_text(j, "algorithm", gpul_comm_algo_name(r->turns[i].algo));
		json_u64(j, "below_bytes", r->turns[i].below);
		json_end(j, '}');
	}
	json_end(j, ']');
	add_checks(j, r);
	json_end(j, '}');
}
