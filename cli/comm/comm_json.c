/* comm_json.c — prints the result of a collective of gpuload comm as JSON. */
#include "cli/comm/comm_bench.h"
#include "cli/lib/json/cli_json.h"

void comm_json_figures(const struct comm_figures *f, bool check, const char *key, struct json *j)
{
	json_begin(j, key, '{');
	json_double(j, "time_us", f->us);
	json_double(j, "time_us_min", f->least_us);
	json_double(j, "time_us_mean", f->mean_us);
	json_double(j, "algbw_gb_per_s", f->algo_gb_s);
	json_double(j, "busbw_gb_per_s", f->bus_gb_s);
	if (check) {
		json_u64(j, "wrong", f->wrong);
		json_bool(j, "same_on_all_ranks", !f->differs);
	} else {
		json_null(j, "wrong");
		json_null(j, "same_on_all_ranks");
	}
	json_end(j, '}');
}

static void add_rank(struct json *j, const struct comm_result *r, int rank)
{
	const struct comm_about *a = &r->about[rank];
	const struct comm_waiting *w = &r->waiting[rank];

	json_begin(j, NULL, '{');
	json_i64(j, "rank", rank);
	json_i64(j, "pid", a->pid);
	json_i64(j, "device", a->device);
	json_text(j, "name", a->name);
	json_text(j, "host", a->host_name);
	json_begin(j, "paths", '[');
	for (int k = 0; k < r->n_ranks; k++) {
		if (k == rank)
			continue;
		json_begin(j, NULL, '{');
		json_i64(j, "rank", k);
		json_text(j, "transport", gpul_comm_transport_name((gpul_comm_transport)a->paths[k].transport));
		json_text(j, "reason", a->paths[k].reason);
		json_end(j, '}');
	}
	json_end(j, ']');
	if (r->q.trace) {
		json_begin(j, "trace", '{');
		json_u64(j, "events", w->n_events);
		json_u64(j, "lost", w->n_lost);
		json_u64(j, "network_events", w->n_net);
		json_u64(j, "network_lost", w->n_net_lost);
		json_double(j, "kernels_us", (double)w->kernel_ns / 1e3);
		json_double(j, "waiting_us", (double)w->waiting_ns / 1e3);
		json_double(j, "clock_bound_us", r->rank_bound_ns[rank] / 1e3);
		json_end(j, '}');
	} else {
		json_null(j, "trace");
	}
	json_end(j, '}');
}

static void add_row(struct json *j, const struct comm_result *r, const struct comm_row *row)
{
	json_begin(j, NULL, '{');
	json_u64(j, "bytes", row->bytes);
	json_u64(j, "count", row->count);
	json_begin(j, "plan", '{');
	json_text(j, "algorithm", gpul_comm_algo_name(row->plan.algo));
	json_text(j, "protocol", gpul_comm_proto_name(row->plan.proto));
	json_u64(j, "blocks", row->plan.n_blocks);
	json_u64(j, "threads", row->plan.n_threads);
	json_text(j, "why", row->reason);
	json_end(j, '}');
	for (int in = 0; in < 2; in++)
		if (row->figures[in].measured)
			comm_json_figures(&row->figures[in], r->q.check, in ? "in_place" : "out_of_place", j);
		else
			json_null(j, in ? "in_place" : "out_of_place");
	json_end(j, '}');
}

static void add_settings(struct json *j, const struct comm_result *r)
{
	const struct comm_request *q = &r->q;
	const struct gpul_comm_call_info *info = gpul_comm_call_info(q->call);

	json_text(j, "collective", gpul_comm_call_name(q->call));
	json_i64(j, "n_ranks", r->n_ranks);
	json_text(j, "launcher", r->launcher);
	json_text(j, "driver", r->driver);
	json_bool(j, "interprets", r->interprets);
	json_text(j, "dtype", gpul_comm_dtype_name(q->dtype));
	if (info->reduces)
		json_text(j, "op", gpul_comm_op_name(q->op));
	else
		json_null(j, "op");
	if (info->has_root)
		json_i64(j, "root", q->root);
	else
		json_null(j, "root");
	json_i64(j, "warmup", q->warmups);
	json_i64(j, "iters", q->iterations);
	json_bool(j, "graph", q->graph);
	json_bool(j, "registered", !q->no_register);
	json_bool(j, "grouped", !q->ungrouped);
	json_bool(j, "checked", q->check && !q->explain);
}

/* Return the name of a host, as reported by the first rank on it. */
static const char *host_name(const struct comm_result *r, int host)
{
	for (int k = 0; k < r->n_ranks; k++)
		if (r->about[k].host == host)
			return r->about[k].host_name;
	return "";
}

void comm_json_hosts(const struct comm_result *r, struct json *j)
{
	json_begin(j, "hosts", '[');
	for (int h = 0; h < r->n_hosts; h++) {
		json_begin(j, NULL, '{');
		json_text(j, "name", host_name(r, h));
		json_i64(j, "clock_offset_ns", r->host[h].offset_ns);
		json_double(j, "clock_drift_ppm", r->host[h].drift_ppm);
		json_double(j, "clock_drift_bound_ppm", r->host[h].drift_bound_ppm);
		json_double(j, "clock_bound_ns", r->host[h].bound_ns);
		json_u64(j, "clock_round_trip_ns", r->host[h].round_trip_ns);
		json_end(j, '}');
	}
	json_end(j, ']');
}

void comm_json(const struct comm_result *r, struct json *j)
{
	json_begin(j, NULL, '{');
	add_settings(j, r);
	json_begin(j, "ranks", '[');
	for (int rank = 0; rank < r->n_ranks; rank++)
		add_rank(j, r, rank);
	json_end(j, ']');
	json_begin(j, "rows", '[');
	for (unsigned i = 0; i < r->n_rows; i++)
		add_row(j, r, &r->row[i]);
	json_end(j, ']');
	json_double(j, "busbw_mean_gb_per_s", comm_result_mean_bus(r));
	if (r->q.trace) {
		json_double(j, "clock_bound_us", r->clock_bound_ns / 1e3);
		comm_json_hosts(r, j);
	} else {
		json_null(j, "clock_bound_us");
		json_null(j, "hosts");
	}
	json_bool(j, "ok", !comm_result_wrong(r));
	json_end(j, '}');
}
